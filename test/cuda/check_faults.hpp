// check_faults.hpp - what a plugin does when CUDA fails under it.
#pragma once

#include "backend/backend.h"

namespace plugin_check {

// Makes every CUDA call of small jobs fail in turn (PGKM_CUDA_FAULT, cuda/plugin/check.hpp): each time a status with a
// text must come back, and the next job must be right. Of its jobs those of the numbers first to last, so that
// processes can share them. A process of more than one job looks for lost device memory, too, and wants to be alone.
// Returns the failures.
int check_faults(const PgkmBackend *backend, int first, int last);

// Lets what only faster ways ask for fail, as if memory had run out, from each such call on: every answer must come,
// and be right.
int check_lean(const PgkmBackend *backend);

// Lets a kernel really fail, after which the process has no device: statuses, no end of the process.
int check_poisoned(const PgkmBackend *backend);

// Lets the tensor cores seem to err (PGKM_CUDA_PRODUCTS, cuda/plugin/products.hpp): a strategy that needs none of what
// is off must take over, and be right.
int check_products(const PgkmBackend *backend);

// Whether rows that repeat go by those that differ, and others do not: entries run their stages apart where such rows
// have a kernel for all of an iteration.
int check_entries(const PgkmBackend *backend);

// A device that does not exist.
int check_absent(const PgkmBackend *backend);

} // namespace plugin_check

// check_faults.hpp - what a plugin does when CUDA fails under it.
#pragma once

#include "backend/backend.h"

namespace plugin_check {

// Makes every CUDA call of small jobs fail in turn (PGKM_CUDA_FAULT, cuda/plugin/check.hpp): each time
// a status with a text must come back, and the next job must be right. Returns the failures.
int check_faults(const PgkmBackend *backend);

// Lets a kernel really fail, after which the process has no device: statuses, no end of the process.
int check_poisoned(const PgkmBackend *backend);

// A device that does not exist.
int check_absent(const PgkmBackend *backend);

} // namespace plugin_check

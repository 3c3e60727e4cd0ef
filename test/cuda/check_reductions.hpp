// check_reductions.hpp - users' reductions on a plugin, beside the reference.
#pragma once

#include "backend/backend.h"

namespace plugin_check {

// Prints a line for each failure; returns how many there were. Nothing where the plugin has no reductions.
int check_reductions(const PgkmBackend *backend, int *comparisons);

} // namespace plugin_check

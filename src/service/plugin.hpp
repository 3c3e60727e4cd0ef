// plugin.hpp - loads the optional CUDA plugin, once per process.
//
// The plugin is a shared library with one symbol (PGKM_BACKEND_ENTRY). It is opened with
// dlopen(RTLD_LOCAL) on first use, so that the extension installs and works where neither
// the file nor a driver exists; failure is remembered together with its reason.
#pragma once

#include <string>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// The plugin's table, or nullptr with the reason in *why. `path` counts on the first
// call only. Thread-safe.
const PgkmBackend *cuda_backend(const char *path, std::string *why);

} // namespace pgkm

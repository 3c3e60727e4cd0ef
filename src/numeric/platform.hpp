// platform.hpp - what the pure engine may and may not see.
//
// Included by every header outside src/pg. The engine knows
// neither PostgreSQL nor CUDA's run time: the checks below make the compiler say so.
// Functions marked PGKM_HD are the numeric contract; the CUDA plugin compiles the very
// same text for the device, so there is one definition of each rounding.
#pragma once

#ifdef POSTGRES_H
#error "engine headers must not be mixed with postgres.h: go through src/engine/api.h"
#endif
#if defined(CUDART_VERSION) && !defined(PGKM_CUDA_PLUGIN)
#error "engine headers must not see the CUDA runtime"
#endif

#include <cstdint>

#ifdef __CUDACC__
#define PGKM_HD __host__ __device__
#else
#define PGKM_HD
#endif

namespace pgkm {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

} // namespace pgkm

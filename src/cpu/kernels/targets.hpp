// targets.hpp - which of Highway's targets are compiled: those of instruction_set.hpp, the scalar one included
// whatever the baseline. Included before any hwy header.
//
// SSSE3 (no CPU of interest stops there) and SVE (its vectors have no size, so they fit no array) are left out.
#pragma once

#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// products.hpp - whether a device's tensor cores keep the bound that filters rest on.
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

// Runs fixed products by each instruction in use (device/fixed_products.cuh), once in a process for each device, and
// notes in the context's facts which of them do. Kernels that need no such product take the place of those that do.
//
// Test hook: PGKM_CUDA_PRODUCTS names an instruction whose results shall seem to be off: mma, wgmma128, wgmma256, or
// wgmma for both of those.
void check_products(Context &context);

} // namespace pgkm::cuda

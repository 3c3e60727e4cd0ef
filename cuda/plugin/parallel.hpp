// parallel.hpp - work of the host's that is shared out to threads: what many problems need before and after
// the device's part.
#pragma once

#include <cstdint>
#include <functional>

#include "plugin/context.hpp"

namespace pgkm::cuda {

// Calls body(i) for every i below `count`, in any order, on several threads where there are at least
// `least` for each; polls between some of them. What a body throws is thrown here, after all have ended.
void for_each_of(const Context &context, std::int64_t count, std::int64_t least,
                 const std::function<void(std::int64_t)> &body);

} // namespace pgkm::cuda

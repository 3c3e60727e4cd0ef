// ahead.hpp - asking for the rows that come next while these are read.
//
// Kernels that read several rows at once hide from the processor that all rows are read in order. So they tell it. The
// second-level cache has room for more requests at a time than the first.
#pragma once

#include <cstddef>

namespace pgkm::cpu {

// For rows that are read one after the other: what comes from memory while a request is under way, and more.
inline constexpr std::ptrdiff_t bytes_ahead = 16384;

// Asks for what lies so many bytes behind `at`, which may be anything. Where it is not inlined GCC sees a function
// without effect, and leaves the call out.
[[gnu::always_inline]] inline void ask_ahead(const void *at, std::ptrdiff_t bytes)
{
    __builtin_prefetch(static_cast<const char *>(at) + bytes, 0, 2);
}

// The bytes that rows of a table lie in, where they ascend and at least a quarter of these is theirs; else 0.
template <typename T>
std::ptrdiff_t dense_bytes(const T *const *rows, int count, std::ptrdiff_t d)
{
    const std::ptrdiff_t values = rows[count - 1] - rows[0] + d;
    return values > 0 && values <= 4 * count * d ? values * static_cast<std::ptrdiff_t>(sizeof(T)) : 0;
}

} // namespace pgkm::cpu

// large_array.hpp - arrays of one element per row, for results that are about to be written.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "numeric/platform.hpp"

namespace pgkm {

// Elements are not set when a vector grows, and large ones lie in large pages where the system has
// them: touching memory for the first time takes longer than what is written there.
template <typename T>
struct LargeAllocator : std::allocator<T> {
    template <typename U>
    struct rebind {
        using other = LargeAllocator<U>;
    };

    T *allocate(std::size_t count)
    {
        T *memory = std::allocator<T>::allocate(count);
#ifdef MADV_HUGEPAGE
        constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const std::uintptr_t begin = (address + page - 1) / page * page,
                             end = (address + count * sizeof(T)) / page * page;
        if (begin < end)
            (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
#endif
        return memory;
    }

    template <typename U>
    void construct(U *place) noexcept
    {
        ::new (static_cast<void *>(place)) U;
    }
    template <typename U, typename... Arguments>
    void construct(U *place, Arguments &&...arguments)
    {
        ::new (static_cast<void *>(place)) U(std::forward<Arguments>(arguments)...);
    }
};

template <typename T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

} // namespace pgkm

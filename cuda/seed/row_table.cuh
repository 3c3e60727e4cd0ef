// row_table.cuh (seed) - where the rows of a problem lie: on one device, or on those of several peers.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace pgkm::cuda {

// Rows first[share] .. first[share + 1] - 1 lie one behind the other from of[share] on.
template <typename T>
struct RowTable {
    const T *of[PGKM_MOST_DEVICES]; // nullptr: they are streamed
    std::int64_t first[PGKM_MOST_DEVICES + 1];
    int shares;
    std::int32_t d;

    __device__ const T *row(std::int64_t number) const
    {
        int share = 0;
        while (number >= first[share + 1])
            ++share;
        return of[share] + (number - first[share]) * d;
    }
};

} // namespace pgkm::cuda

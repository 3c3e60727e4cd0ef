// key_kernels.hpp - keys of rows (numeric/row_key.hpp), lanes along the words of a row.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "cpu/memory.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {

// The marks of all words of a row, in halves.
struct KeyMarks {
    KeyMarks(Budget &budget, std::int32_t d, std::size_t element_bytes)
        : low(budget, d * (element_bytes / 4)), high(budget, d * (element_bytes / 4))
    {
        for (std::size_t word = 0; word < low.size(); ++word) {
            low[word] = static_cast<std::uint32_t>(key_mark(word));
            high[word] = static_cast<std::uint32_t>(key_mark(word) >> 32);
        }
    }

    Buffer<std::uint32_t> low, high;
};

struct KeyKernels {
    // keys[i] = row_key(row i) of `n` rows of d values.
    template <typename T>
    using Keys = void(const T *values, std::int64_t n, std::int32_t d, const KeyMarks &marks, std::uint64_t *keys);
    ForElements<Keys> keys;
};

const KeyKernels &key_kernels(InstructionSet set);

} // namespace pgkm::cpu

// reduction_words.hpp - R as words of 8 bytes, and what comes of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backend/reduction.h"
#include "numeric/platform.hpp"

namespace pgkm {

// A part of R: the row counts of an object's cells (item -1), or what one item fills. Items of PGKM_COMBINE_COUNT have
// none. The element of a cell takes one word, or two: an integer sum, and PGKM_COMBINE_ARGMIN (value, key).
struct Output {
    std::string name;
    std::int32_t object, item;
    PgkmCombine combine; // that of row counts is PGKM_COMBINE_COUNT
    bool integer;        // a sum of integers
    std::int32_t words;
    std::int64_t cells, elements;      // elements of a cell
    std::int64_t scale = 0;            // of integer sums: that of the first element, among all scales
    std::int64_t base = 0, stride = 0; // word of element i of a cell: base + cell * stride + i * words
    // On a GPU (generate/layout.hpp):
    bool shared = false;    // thread layouts: whether the copies lie in shared memory
    std::int64_t place = 0; // thread layouts: first word of a thread's copy there
    bool dealt = false;     // its elements are dealt out to the threads of a block, not the rows

    std::int64_t word(std::int64_t cell, std::int64_t element) const { return base + cell * stride + element * words; }
    std::int64_t size() const { return cells * elements * words; }
};

// By object, the row counts first; in their order in R.
struct Words {
    std::vector<Output> outputs;
    std::int64_t count = 0;  // of R
    std::int64_t scales = 0; // of integer sums: each element has a range and a scale
};

// Either the outputs of a cell lie side by side, so that a row touches one place, and elements of two words begin at
// even ones; or each output is an array.
enum class Arrangement : std::uint8_t { cells, arrays };
Words words_of(const PgkmReduction &program, Arrangement arrangement);

template <typename T>
T word_at(const void *words, std::int64_t place)
{
    T value;
    std::memcpy(&value, static_cast<const char *>(words) + place * 8, sizeof value);
    return value;
}

// Writes values and counts of cells first .. last - 1 of an object. Integer sums are Int128, scaled by their exponents;
// counts are int64, all other words float64.
void read_cells(const PgkmReduction &program, const Words &words, std::int32_t object, std::int64_t first,
                std::int64_t last, const void *total, const std::vector<int> &exponents, PgkmReduced &out);

// Throws Error(PGKM_INVALID), with out.fault set, where a sum is no number.
void check_totals(const PgkmReduction &program, PgkmReduced &out);

} // namespace pgkm

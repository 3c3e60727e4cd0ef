// results.cpp (generate) - numbers from bits.
#include "backend/generate/results.hpp"

#include <bit>
#include <cstring>

#include "numeric/contract.hpp"

namespace pgkm::generate {
namespace {

// The bits of a number, from those that were put in the order of the numbers.
std::uint64_t from_ordered(std::uint64_t word)
{
    const std::uint64_t sign = std::uint64_t{1} << 63;
    return (word & sign) != 0 ? word & ~sign : ~word;
}

// An element's words as read_cells() takes them.
void decode(const Output &output, std::uint64_t *words)
{
    if (output.integer) {
        const auto limb = [&](int i) { return static_cast<Int128>(static_cast<std::int64_t>(words[i])); };
        const Int128 sum = limb(1) * (Int128{1} << 23) + limb(0);
        std::memcpy(words, &sum, sizeof sum);
    } else if (output.combine != PGKM_COMBINE_SUM && output.combine != PGKM_COMBINE_COUNT) {
        for (std::int32_t i = 0; i < output.words; ++i)
            words[i] = from_ordered(words[i]);
    }
}

} // namespace

std::vector<int> scale_exponents(const std::vector<std::uint64_t> &largest)
{
    std::vector<int> exponents;
    for (const std::uint64_t bits : largest)
        exponents.push_back(scale_exponent(std::bit_cast<double>(bits)));
    return exponents;
}

void read_results(const PgkmReduction &program, const Words &words, std::vector<std::uint64_t> &total,
                  const std::vector<int> &exponents, PgkmReduced &out)
{
    for (const Output &output : words.outputs)
        for (std::int64_t cell = 0; cell < output.cells; ++cell)
            for (std::int64_t e = 0; e < output.elements; ++e)
                decode(output, total.data() + output.word(cell, e));
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        read_cells(program, words, o, 0, program.objects[o].cells, total.data(), exponents, out);
    check_totals(program, out);
}

} // namespace pgkm::generate

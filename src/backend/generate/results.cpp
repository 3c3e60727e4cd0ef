// results.cpp (generate) - numbers from bits.
#include "backend/generate/results.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

// The number whose bits were put in the order of the numbers.
double from_ordered(std::uint64_t word)
{
    const std::uint64_t sign = std::uint64_t{1} << 63;
    return std::bit_cast<double>((word & sign) != 0 ? word & ~sign : ~word);
}

double integer_sum(const std::uint64_t *limbs, int exponent)
{
    const auto limb = [](std::uint64_t word) { return static_cast<Int128>(static_cast<std::int64_t>(word)); };
    return scale_by(to_double(limb(limbs[1]) * (Int128{1} << 23) + limb(limbs[0])), -exponent);
}

double result(const Output &output, const std::uint64_t *words, std::int64_t rows, const int *exponent)
{
    if (output.combine == PGKM_COMBINE_SUM)
        return output.integer ? integer_sum(words, *exponent) : std::bit_cast<double>(words[0]);
    if (rows == 0)
        return std::numeric_limits<double>::quiet_NaN();
    return from_ordered(words[output.combine == PGKM_COMBINE_ARGMIN ? 1 : 0]);
}

} // namespace

std::vector<int> scale_exponents(const std::vector<std::uint64_t> &largest)
{
    std::vector<int> exponents;
    for (const std::uint64_t bits : largest)
        exponents.push_back(scale_exponent(std::bit_cast<double>(bits)));
    return exponents;
}

void read_results(const Program &program, const Plan &plan, const std::uint64_t *total,
                  const std::vector<int> &exponents, PgkmReduced &out)
{
    const PgkmReduction &source = program.source();
    double *value = out.values;
    std::int64_t *count = out.counts;
    const int *exponent = exponents.data();
    const Output *first = plan.outputs.data();
    for (std::int32_t o = 0; o < source.n_objects; ++o) {
        const PgkmObject &object = source.objects[o];
        std::int64_t scales = 0;
        const Output *next = first;
        for (std::int64_t cell = 0; cell < object.cells; ++cell) {
            next = first;
            scales = 0;
            const auto rows = static_cast<std::int64_t>(total[next->base + cell * next->stride]);
            ++next;
            *count++ = rows;
            for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
                const PgkmItem &item = source.items[i];
                const std::int64_t elements = item.loop < 0 ? 1 : program.count(item.loop);
                for (std::int64_t e = 0; e < elements; ++e, ++value) {
                    if (item.combine == PGKM_COMBINE_COUNT) {
                        *value = static_cast<double>(rows);
                        continue;
                    }
                    *value = result(*next, total + next->base + cell * next->stride + e * next->words, rows,
                                    exponent + scales);
                    scales += next->integer ? 1 : 0;
                    if (item.combine == PGKM_COMBINE_SUM && !std::isfinite(*value)) {
                        out.fault = PGKM_FAULT_TOTAL;
                        out.row = -1;
                        out.expression = item.value;
                        out.number = *value;
                        throw Error(PGKM_INVALID, "a total of the reduction is out of range");
                    }
                }
                next += item.combine != PGKM_COMBINE_COUNT ? 1 : 0;
            }
        }
        first = next;
        exponent += scales;
    }
}

} // namespace pgkm::generate

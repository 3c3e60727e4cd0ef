// reduction_words.cpp - where the words of R lie, and numbers from them.
#include "backend/reduction_words.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reduction_program.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

double number_of(const Output &output, std::int64_t element, const void *total, std::int64_t word, std::int64_t rows,
                 const std::vector<int> &exponents)
{
    if (output.integer)
        return scale_by(to_double(word_at<Int128>(total, word)), -exponents[at(output.scale + element)]);
    if (output.combine != PGKM_COMBINE_SUM && rows == 0)
        return std::numeric_limits<double>::quiet_NaN();
    return word_at<double>(total, word + (output.combine == PGKM_COMBINE_ARGMIN ? 1 : 0));
}

// The outputs from `first` on, of one object, cell by cell behind the others.
void place_cells(Words &words, std::size_t first)
{
    const auto begin = words.outputs.begin() + static_cast<std::ptrdiff_t>(first);
    const bool pairs = std::any_of(begin, words.outputs.end(), [](const Output &output) { return output.words == 2; });
    const std::int64_t unit = pairs ? 2 : 1;
    words.count = (words.count + unit - 1) / unit * unit;
    std::int64_t cell = 0;
    for (auto output = begin; output != words.outputs.end(); ++output) {
        cell += output->words == 2 ? cell % 2 : 0;
        output->base = words.count + cell;
        cell += output->elements * output->words;
    }
    cell = (cell + unit - 1) / unit * unit;
    for (auto output = begin; output != words.outputs.end(); ++output)
        output->stride = cell;
    words.count += begin->cells * cell;
}

} // namespace

Words words_of(const PgkmReduction &program, Arrangement arrangement)
{
    Words words;
    for (std::int32_t o = 0; o < program.n_objects; ++o) {
        const PgkmObject &object = program.objects[o];
        const std::string name = "update" + std::to_string(o);
        const std::size_t first = words.outputs.size();
        words.outputs.push_back({name + "_rows", o, -1, PGKM_COMBINE_COUNT, false, 1, object.cells, 1});
        for (std::int32_t i = 0; i < object.n_items; ++i) {
            const PgkmItem &item = program.items[object.first_item + i];
            if (item.combine == PGKM_COMBINE_COUNT)
                continue;
            const bool integer = item.combine == PGKM_COMBINE_SUM && program.exact != 0;
            const std::int64_t elements = elements_of(program, item.loop);
            words.outputs.push_back({name + "_" + std::to_string(i), o, object.first_item + i, item.combine, integer,
                                     integer || item.combine == PGKM_COMBINE_ARGMIN ? 2 : 1, object.cells, elements,
                                     words.scales});
            words.scales += integer ? elements : 0;
        }
        if (arrangement == Arrangement::cells)
            place_cells(words, first);
        for (std::size_t i = first; arrangement == Arrangement::arrays && i < words.outputs.size(); ++i) {
            Output &output = words.outputs[i];
            output.base = words.count;
            output.stride = output.elements * output.words;
            words.count += output.size();
        }
    }
    return words;
}

void read_cells(const PgkmReduction &program, const Words &words, std::int32_t object, std::int64_t first,
                std::int64_t last, const void *total, const std::vector<int> &exponents, PgkmReduced &out)
{
    double *values = out.values;
    std::int64_t *counts = out.counts;
    for (std::int32_t o = 0; o < object; ++o) {
        values += program.objects[o].cells * width_of(program, program.objects[o]);
        counts += program.objects[o].cells;
    }
    const PgkmObject &own = program.objects[object];
    const auto rows = std::find_if(words.outputs.begin(), words.outputs.end(),
                                   [&](const Output &output) { return output.object == object; });
    values += first * width_of(program, own);
    for (std::int64_t cell = first; cell < last; ++cell) {
        counts[cell] = word_at<std::int64_t>(total, rows->word(cell, 0));
        auto output = rows + 1;
        for (std::int32_t i = own.first_item; i < own.first_item + own.n_items; ++i) {
            const PgkmItem &item = program.items[i];
            const bool counted = item.combine == PGKM_COMBINE_COUNT;
            for (std::int64_t e = 0; e < elements_of(program, item.loop); ++e)
                *values++ = counted ? static_cast<double>(counts[cell])
                                    : number_of(*output, e, total, output->word(cell, e), counts[cell], exponents);
            output += counted ? 0 : 1;
        }
    }
}

void check_totals(const PgkmReduction &program, PgkmReduced &out)
{
    const double *value = out.values;
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        for (std::int64_t cell = 0; cell < program.objects[o].cells; ++cell)
            for (std::int32_t i = 0; i < program.objects[o].n_items; ++i) {
                const PgkmItem &item = program.items[program.objects[o].first_item + i];
                const double *const end = value + elements_of(program, item.loop);
                if (item.combine == PGKM_COMBINE_SUM)
                    value = std::find_if(value, end, [](double total) { return !std::isfinite(total); });
                if (value != end && item.combine == PGKM_COMBINE_SUM) {
                    out.fault = PGKM_FAULT_TOTAL;
                    out.row = -1;
                    out.expression = item.value;
                    out.number = *value;
                    throw Error(PGKM_INVALID, "a total of the reduction is out of range");
                }
                value = end;
            }
}

} // namespace pgkm

// cells.cpp - rows into cells: sums in the order of the rows, whatever the instruction set.
#include "cpu/reduce/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reduction_program.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::int64_t &count_at(double *word)
{
    return *reinterpret_cast<std::int64_t *>(word);
}
Int128 &total_at(double *word)
{
    return *reinterpret_cast<Int128 *>(word);
}

// The best value, and where there are keys its least key.
void keep_extreme(PgkmCombine combine, double *best, double value, double key)
{
    if (combine == PGKM_COMBINE_MAX ? value > best[0] : value < best[0]) {
        best[0] = value;
        if (combine == PGKM_COMBINE_ARGMIN)
            best[1] = key;
    } else if (combine == PGKM_COMBINE_ARGMIN && value == best[0]) {
        best[1] = std::min(best[1], key);
    }
}

void join(const Output &output, double *to, double *from)
{
    if (output.combine == PGKM_COMBINE_COUNT)
        count_at(to) += count_at(from);
    else if (output.integer)
        total_at(to) += total_at(from);
    else if (output.combine == PGKM_COMBINE_SUM)
        *to += *from;
    else
        keep_extreme(output.combine, to, from[0], output.words == 2 ? from[1] : 0.0);
}

// body(output, element's first word) for all of an object's cells first .. last - 1.
template <typename Body>
void for_elements(const Words &words, std::int32_t object, std::int64_t first, std::int64_t last, Body &&body)
{
    for (const Output &output : words.outputs)
        for (std::int64_t cell = first; output.object == object && cell < last; ++cell)
            for (std::int64_t e = 0; e < output.elements; ++e)
                body(output, output.word(cell, e));
}

} // namespace

// ---- copies ----

Copies::Copies(Context &context, const PgkmReduction &program, const Words &words, std::int64_t count)
    : context_(context), program_(program), words_(words),
      memory_(Buffer<double>::zeros(context.budget, at(size(words) * count))), count_(count)
{
    context.pool.run(count, [&](std::int64_t copy, int) { set_identities(copy); });
}

// Of least and greatest values; of all others it is 0.
void Copies::set_identities(std::int64_t copy)
{
    double *const to = words(copy);
    for (const Output &output : words_.outputs)
        if (output.combine != PGKM_COMBINE_SUM && output.combine != PGKM_COMBINE_COUNT)
            for (std::int64_t cell = 0; cell < output.cells; ++cell)
                std::fill_n(to + output.word(cell, 0), output.elements * output.words,
                            output.combine == PGKM_COMBINE_MAX ? -infinity : infinity);
}

std::vector<int> Copies::exponents()
{
    std::vector<int> exponents;
    for (std::int64_t i = 0; i < words_.scales; ++i) {
        double most = 0.0;
        for (std::int64_t copy = 0; copy < count_; ++copy)
            most = std::max(most, largest(copy)[i]);
        exponents.push_back(scale_exponent(most));
    }
    return exponents;
}

void Copies::combine(std::int32_t object, std::int64_t first, std::int64_t last)
{
    for (std::int64_t copy = 1; copy < count_; ++copy)
        for_elements(words_, object, first, last, [&](const Output &output, std::int64_t word) {
            join(output, words(0) + word, words(copy) + word);
        });
}

void Copies::finish(ThreadPool &pool, PgkmReduced &out)
{
    const std::vector<int> scales = exponents();
    for (std::int32_t o = 0; o < program_.n_objects; ++o) {
        const PgkmObject &object = program_.objects[o];
        const std::int64_t slice =
            std::max<std::int64_t>(1, (std::int64_t{1} << 16) / width_of(program_, object) / count_);
        pool.run((object.cells + slice - 1) / slice, [&](std::int64_t task, int) {
            const std::int64_t first = task * slice, last = std::min(object.cells, first + slice);
            context_.poll();
            combine(o, first, last);
            read_cells(program_, words_, o, first, last, words(0), scales, out);
        });
    }
    check_totals(program_, out);
}

// ---- rows ----

Accumulator::Accumulator(Context &context, const PgkmReduction &program, const Words &words, int batch_rows)
    : program_(program), words_(words), kernels_(reduce_kernels(context.instruction_set)),
      columns_(context.budget, at(4 * batch_rows)), base_(context.budget, at(batch_rows)), live_(columns_.data()),
      cells_(live_ + batch_rows), values_(cells_ + batch_rows), seconds_(values_ + batch_rows)
{
}

void Accumulator::open(double *words, std::int64_t part, std::int64_t parts, const double *scales)
{
    largest_ = nullptr;
    copy_ = words;
    part_ = part;
    parts_ = parts;
    scales_ = scales;
}

void Accumulator::begin_batch(int rows)
{
    rows_ = rows;
    n_ = (rows + 31) / 32 * 32;
    bad_row_ = INT32_MAX;
}

// Parts share the cells where there are enough of them, else the elements of each item.
Accumulator::Range Accumulator::share(std::int64_t count) const
{
    const auto begin = [&](std::int64_t part) { return count / parts_ * part + std::min(part, count % parts_); };
    return {begin(part_), begin(part_ + 1)};
}

Accumulator::Range Accumulator::elements(const Output &output) const
{
    return largest_ != nullptr || is_by_cells() ? Range{0, output.elements} : share(output.elements);
}

void Accumulator::enter(std::int32_t object, const double *filter, const double *cell)
{
    object_ = object;
    const PgkmObject &own = program_.objects[object];
    const Output &counts = *std::find_if(words_.outputs.begin(), words_.outputs.end(),
                                         [&](const Output &output) { return output.object == object; });
    const Range mine = largest_ == nullptr && is_by_cells() ? share(own.cells) : Range{0, own.cells};
    const bool adds = largest_ == nullptr, counts_rows = adds && (is_by_cells() || part_ == 0);
    all_live_ = filter == nullptr && cell == nullptr && rows_ == n_ && mine.first < mine.last;
    if (all_live_) {
        if (counts_rows)
            count_at(copy_ + counts.base) += rows_;
        return;
    }
    if (!kernels_.place(cells_, live_, filter, cell, static_cast<double>(own.cells), n_))
        for (int r = std::min(rows_, bad_row_) - 1; r >= 0; --r)
            if ((filter != nullptr && !std::isfinite(filter[r])) ||
                (live_[r] == 0.0 && (filter == nullptr || filter[r] != 0.0)))
                bad_row_ = r;
    std::fill(live_ + rows_, live_ + n_, 0.0);
    for (int r = 0; r < rows_; ++r) {
        const auto place = static_cast<std::int64_t>(cells_[r]);
        const bool is_mine = place >= mine.first && place < mine.last;
        base_[at(r)] = is_mine ? place * counts.stride : -1;
        if (is_mine && counts_rows)
            ++count_at(copy_ + counts.base + base_[at(r)]);
    }
}

// The values, with 0 for rows that the object does not take.
const double *Accumulator::taken(const double *values, double *masked) const
{
    if (all_live_)
        return values;
    kernels_.mask(masked, values, live_, n_);
    return masked;
}

// What is no number makes its row a bad one, and nothing comes of this reduction.
void Accumulator::check(const double *values)
{
    if (!kernels_.is_finite(values, n_))
        for (int r = std::min(rows_, bad_row_) - 1; r >= 0; --r)
            if (!std::isfinite(values[r]))
                bad_row_ = r;
}

// body(row, its word) for the rows of this part.
template <typename Body>
void Accumulator::for_rows(double *to, Body &&body)
{
    for (int r = 0; r < rows_; ++r)
        if (all_live_)
            body(r, to);
        else if (base_[at(r)] >= 0)
            body(r, to + base_[at(r)]);
}

void Accumulator::add(const Output &output, std::int64_t element, const double *values, const double *seconds)
{
    const bool sum = output.combine == PGKM_COMBINE_SUM, total = sum && output.cells == 1;
    values = taken(values, values_);
    seconds = seconds == nullptr ? nullptr : taken(seconds, seconds_);
    if (largest_ != nullptr && output.integer)
        return raise(largest_[output.scale + element], values);
    if (!output.integer && !total)
        check(values);
    if (seconds != nullptr && !sum)
        check(seconds);
    if (largest_ != nullptr)
        return;
    double *const to = copy_ + output.word(0, element);
    const double scale = output.integer ? scales_[output.scale + element] : 0.0; // looked at when it was measured
    if (total)
        return add_total(output, to, values, seconds, scale);
    if (output.integer) {
        kernels_.quantise(values_, values, scale, n_);
        values = values_;
    }
    if (output.integer)
        for_rows(to, [&](int r, double *word) { total_at(word) += static_cast<std::int64_t>(values[r]); });
    else if (sum)
        for_rows(to, [&](int r, double *word) { *word += values[r]; });
    else // + 0.0: +0 for -0
        for_rows(to, [&](int r, double *word) {
            keep_extreme(output.combine, word, values[r] + 0.0, seconds == nullptr ? 0.0 : seconds[r] + 0.0);
        });
}

void Accumulator::raise(double &most, const double *values)
{
    const double found = kernels_.largest(values, n_);
    if (std::isfinite(found))
        most = std::max(most, found);
    else
        check(values);
}

// Of all rows into one cell: the same bits on every instruction set. Integers of 2^45 stay whole in each part.
void Accumulator::add_total(const Output &output, double *to, const double *values, const double *factors, double scale)
{
    double sums[parts_of_total];
    kernels_.total(values, factors, scale, n_, sums);
    if (output.integer) {
        for (const double sum : sums)
            total_at(to) += static_cast<std::int64_t>(sum);
        return;
    }
    for (int half = parts_of_total / 2; half > 0; half /= 2)
        for (int p = 0; p < half; ++p)
            sums[p] += sums[p + half];
    *to += sums[0];
    if (std::isfinite(sums[0]))
        return;
    for (int r = 0; factors != nullptr && r < n_; ++r)
        values_[r] = values[r] * factors[r];
    check(factors == nullptr ? values : values_);
}

} // namespace pgkm::cpu

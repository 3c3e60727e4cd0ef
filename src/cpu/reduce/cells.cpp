// cells.cpp - rows into cells: sums in the order of the rows, whatever the instruction set.
#include "cpu/reduce/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reduction_walk.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Where part `part` of `parts` of `count` things begins.
std::int64_t part_begin(std::int64_t count, std::int64_t part, std::int64_t parts)
{
    return count / parts * part + std::min(part, count % parts);
}

void keep_extreme(PgkmCombine combine, double &best, double *best_key, double value, double key)
{
    if (combine == PGKM_COMBINE_MAX ? value > best : value < best) {
        best = value;
        if (best_key != nullptr)
            *best_key = key;
    } else if (best_key != nullptr && value == best) {
        *best_key = std::min(*best_key, key);
    }
}

[[noreturn]] void fail_total(const Layout &layout, std::int64_t place, PgkmReduced &out)
{
    std::size_t o = layout.objects.size() - 1;
    while (layout.objects[o].first_value > place)
        --o;
    const ObjectLayout &object = layout.objects[o];
    const std::int64_t column = (place - object.first_value) % object.width;
    const PgkmObject &own = layout.reduction.objects[o];
    for (std::int32_t i = own.first_item; i < own.first_item + own.n_items; ++i)
        if (layout.items[at(i)].offset <= column)
            out.expression = layout.reduction.items[i].value;
    out.fault = PGKM_FAULT_TOTAL;
    out.number = out.values[place];
    throw Error(PGKM_INVALID, "a sum is out of range");
}

// Values of a copy: an even number, so that each begins where an Int128 may lie.
std::int64_t stride_of(const Layout &layout)
{
    return (layout.copy_size() + layout.scaled() + 1) / 2 * 2;
}

Copy copy_in(double *memory, const Layout &layout)
{
    Copy copy;
    copy.totals = reinterpret_cast<Int128 *>(memory);
    copy.values = memory + (layout.exact ? 2 * layout.values : 0);
    copy.keys = copy.values + (layout.plain ? layout.values : 0);
    copy.counts = reinterpret_cast<std::int64_t *>(copy.keys + (layout.keys ? layout.values : 0));
    copy.largest = reinterpret_cast<double *>(copy.counts + layout.counts);
    return copy;
}

} // namespace

void lower(std::atomic<std::int64_t> &least, std::int64_t value)
{
    std::int64_t known = least.load();
    while (value < known && !least.compare_exchange_weak(known, value)) {}
}

std::span<const ItemLayout> Layout::items_of(std::size_t object) const
{
    const PgkmObject &own = reduction.objects[object];
    return {items.data() + own.first_item, at(own.n_items)};
}

Layout::Layout(const PgkmReduction &program) : reduction(program), items(at(program.n_items))
{
    for (std::int32_t i = 0; i < program.n_items; ++i)
        exact = exact || (program.exact != 0 && program.items[i].combine == PGKM_COMBINE_SUM);
    for (std::int32_t o = 0; o < program.n_objects; ++o) {
        const PgkmObject &object = program.objects[o];
        const std::int64_t width = width_of(program, object);
        objects.push_back({values, counts, columns, object.cells, width});
        std::int64_t offset = 0;
        for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
            const PgkmItem &item = program.items[i];
            items[at(i)] = {o, offset, elements_of(program, item.loop), item.combine};
            offset += items[at(i)].elements;
            keys = keys || item.combine == PGKM_COMBINE_ARGMIN;
            plain = plain || (item.combine != PGKM_COMBINE_COUNT && !(exact && item.combine == PGKM_COMBINE_SUM));
        }
        values += object.cells * width;
        counts += object.cells;
        columns += width;
    }
}

Accumulator::Accumulator(Context &context, const Layout &layout, int batch_rows)
    : layout_(layout), kernels_(cell_kernels(context.instruction_set)), live_(context.budget, at(batch_rows)),
      places_(context.budget, at(batch_rows)), base_(context.budget, at(batch_rows)),
      largest_(Buffer<double>::zeros(context.budget, at(layout.scaled())))
{
}

void Accumulator::open(const Copy &copy, std::int64_t part, std::int64_t parts, const Buffer<double> &scales)
{
    copy_ = copy;
    part_ = part;
    parts_ = parts;
    scales_ = scales.data();
    measures_ = false;
}

// Parts share the cells where there are enough of them, else the elements of each item.
Accumulator::Range Accumulator::elements(std::int32_t item) const
{
    const std::int64_t count = layout_.items[at(item)].elements;
    if (measures_ || object_->cells >= parts_)
        return {0, count};
    return {part_begin(count, part_, parts_), part_begin(count, part_ + 1, parts_)};
}

void Accumulator::enter(std::int32_t o, const double *filter, const double *cell, int rows)
{
    object_ = &layout_.objects[at(o)];
    rows_ = rows;
    const bool by_cells = object_->cells >= parts_;
    const Range own = measures_ || !by_cells ? Range{0, object_->cells}
                                             : Range{part_begin(object_->cells, part_, parts_),
                                                     part_begin(object_->cells, part_ + 1, parts_)};
    std::int64_t *const counts = measures_ || (!by_cells && part_ != 0) ? nullptr : copy_.counts + object_->first_count;
    all_live_ = filter == nullptr && cell == nullptr && own.first < own.last;
    if (all_live_) {
        if (counts != nullptr)
            counts[0] += rows;
        return;
    }
    if (!kernels_.place(places_.data(), live_.data(), filter, cell, static_cast<double>(object_->cells), rows))
        find_misplaced(filter, cell);
    for (int r = 0; r < rows; ++r) {
        const auto place = static_cast<std::int64_t>(places_[at(r)]);
        const bool mine = place >= own.first && place < own.last;
        base_[at(r)] = mine ? place * object_->width : -1;
        if (mine && counts != nullptr)
            ++counts[place];
    }
}

void Accumulator::find_misplaced(const double *filter, const double *cell)
{
    for (int r = 0; r < std::min(rows_, bad_row_); ++r) {
        const bool taken = filter == nullptr || filter[r] != 0.0;
        if ((filter != nullptr && !std::isfinite(filter[r])) || (cell != nullptr && taken && live_[at(r)] == 0.0))
            bad_row_ = r;
    }
}

// Whether all values of live rows are numbers.
bool Accumulator::are_good(const double *values)
{
    if (kernels_.is_finite(values, all_live_ ? nullptr : live_.data(), rows_))
        return true;
    for (int r = 0; r < std::min(rows_, bad_row_); ++r)
        if (!std::isfinite(values[r]) && (all_live_ || live_[at(r)] != 0.0))
            bad_row_ = r;
    return false;
}

// Where a value is no number, nothing comes of this reduction.
void Accumulator::add(std::int32_t item, std::int64_t element, const double *values, const double *keys,
                      const double *others)
{
    const ItemLayout &own = layout_.items[at(item)];
    const std::int64_t column = object_->first_column + own.offset + element;
    const std::int64_t place = object_->first_value + own.offset + element;
    if (own.combine == PGKM_COMBINE_SUM)
        return add_sum(place, column, values, others);
    if (are_good(values) && (keys == nullptr || are_good(keys)) && !measures_)
        add_extreme(place, own.combine, values, keys);
}

// body(row, place of its value) for the rows of this part.
template <typename Body>
void Accumulator::for_rows(std::int64_t place, Body &&body)
{
    for (int r = 0; r < rows_; ++r)
        if (all_live_)
            body(r, place);
        else if (base_[at(r)] >= 0)
            body(r, place + base_[at(r)]);
}

void Accumulator::add_sum(std::int64_t place, std::int64_t column, const double *values, const double *others)
{
    if (measures_) {
        const double found = kernels_.largest(values, all_live_ ? nullptr : live_.data(), rows_);
        if (std::isfinite(found) || are_good(values))
            largest_[at(column)] = std::fmax(largest_[at(column)], found);
    } else if (object_->cells == 1) {
        add_total(place, column, values, others);
    } else if (layout_.exact) { // the values were looked at when they were measured
        kernels_.quantise(places_.data(), values, scales_[column], (rows_ + 31) / 32 * 32);
        for_rows(place, [&](int r, std::int64_t to) { copy_.totals[to] += static_cast<std::int64_t>(places_[at(r)]); });
    } else if (are_good(values)) {
        for_rows(place, [&](int r, std::int64_t to) { copy_.values[to] += values[r]; });
    }
}

void Accumulator::add_total(std::int64_t place, std::int64_t column, const double *values, const double *others)
{
    const double *const live = all_live_ ? nullptr : live_.data();
    if (layout_.exact) {
        copy_.totals[place] += kernels_.total_quantised(values, scales_[column], live, rows_);
        return;
    }
    const double total = others == nullptr ? kernels_.total(values, live, rows_)
                                           : kernels_.total_of_products(values, others, live, rows_);
    copy_.values[place] += total;
    if (std::isfinite(total))
        return;
    for (int r = 0; r < std::min(rows_, bad_row_); ++r) {
        const double value = others == nullptr ? values[r] : values[r] * others[r];
        if (!std::isfinite(value) && (live == nullptr || live[r] != 0.0))
            bad_row_ = r;
    }
}

void Accumulator::add_extreme(std::int64_t place, PgkmCombine combine, const double *values, const double *keys)
{
    for_rows(place, [&](int r, std::int64_t to) {
        keep_extreme(combine, copy_.values[to], keys == nullptr ? nullptr : copy_.keys + to, values[r] + 0.0,
                     keys == nullptr ? 0.0 : keys[r] + 0.0); // + 0.0: +0 for -0
    });
}

// ---- copies ----

Copies::Copies(Context &context, ThreadPool &pool, const Layout &layout, std::int64_t count)
    : context_(context), layout_(layout), own_(Buffer<double>::zeros(context.budget, at(stride_of(layout) * count)))
{
    place(own_.data(), count);
    if (layout.plain)
        clear(pool, 0, count);
}

Copies::Copies(Context &context, const Layout &layout, const PgkmCopies &shared) : context_(context), layout_(layout)
{
    place(static_cast<double *>(shared.memory), shared.count);
}

void Copies::place(double *memory, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i)
        copies_.push_back(copy_in(memory + i * stride_of(layout_), layout_));
}

std::int64_t Copies::bytes(const Layout &layout, std::int64_t count)
{
    return 8 * stride_of(layout) * count;
}

Buffer<double> Copies::largest() const
{
    auto largest = Buffer<double>::zeros(context_.budget, at(layout_.scaled()));
    for (const Copy &copy : copies_)
        for (std::size_t c = 0; c < largest.size(); ++c)
            largest[c] = std::max(largest[c], copy.largest[c]);
    return largest;
}

void Copies::clear(ThreadPool &pool, std::int64_t begin, std::int64_t end)
{
    for_cells(pool, [&](std::size_t o, std::int64_t first, std::int64_t last) {
        const ObjectLayout &object = layout_.objects[o];
        const std::int64_t place = object.first_value + first * object.width;
        for (std::int64_t i = begin; i < end; ++i) {
            const Copy &copy = copies_[at(i)];
            if (own_.size() == 0) { // else they are zeros, which the system provides as they are used
                std::fill_n(copy.counts + object.first_count + first, last - first, 0);
                std::fill_n(copy.totals + place, layout_.exact ? (last - first) * object.width : 0, Int128{0});
            }
            for (std::int64_t cell = 0; layout_.plain && cell < last - first; ++cell)
                for (const ItemLayout &item : layout_.items_of(o))
                    clear(copy, item, place + cell * object.width + item.offset);
        }
    });
}

void Copies::clear(const Copy &copy, const ItemLayout &item, std::int64_t place) const
{
    const double start = item.combine == PGKM_COMBINE_MAX                                         ? -infinity
                         : item.combine == PGKM_COMBINE_SUM || item.combine == PGKM_COMBINE_COUNT ? 0.0
                                                                                                  : infinity;
    std::fill_n(copy.values + place, item.elements, start);
    if (layout_.keys)
        std::fill_n(copy.keys + place, item.elements, infinity);
}

template <typename Body>
void Copies::for_cells(ThreadPool &pool, Body &&body)
{
    for (std::size_t o = 0; o < layout_.objects.size(); ++o) {
        const ObjectLayout &object = layout_.objects[o];
        const std::int64_t slice = std::max<std::int64_t>(1, (std::int64_t{1} << 16) / object.width /
                                                                 static_cast<std::int64_t>(copies_.size()));
        pool.run((object.cells + slice - 1) / slice, [&](std::int64_t task, int) {
            context_.poll();
            body(o, task * slice, std::min(object.cells, (task + 1) * slice));
        });
    }
}

void Copies::combine(const ItemLayout &item, std::int64_t place)
{
    const Copy &all = copies_[0];
    for (std::size_t i = 1; i < copies_.size(); ++i) {
        const Copy &copy = copies_[i];
        if (item.combine == PGKM_COMBINE_SUM && layout_.exact)
            all.totals[place] += copy.totals[place];
        else if (item.combine == PGKM_COMBINE_SUM)
            all.values[place] += copy.values[place];
        else if (item.combine != PGKM_COMBINE_COUNT)
            keep_extreme(item.combine, all.values[place], layout_.keys ? all.keys + place : nullptr, copy.values[place],
                         layout_.keys ? copy.keys[place] : 0.0);
    }
}

double Copies::result_of(const ItemLayout &item, std::int64_t place, std::int64_t count, double largest) const
{
    const Copy &all = copies_[0];
    if (item.combine == PGKM_COMBINE_COUNT)
        return static_cast<double>(count);
    if (item.combine == PGKM_COMBINE_SUM)
        return layout_.exact ? scale_by(to_double(all.totals[place]), -scale_exponent(largest)) : all.values[place];
    if (count == 0)
        return std::numeric_limits<double>::quiet_NaN();
    return item.combine == PGKM_COMBINE_ARGMIN ? all.keys[place] : all.values[place];
}

void Copies::finish(ThreadPool &pool, PgkmReduced &out)
{
    const Buffer<double> ranges = largest();
    std::atomic<std::int64_t> failed{INT64_MAX}; // the first of the values
    for_cells(pool, [&](std::size_t o, std::int64_t first, std::int64_t last) {
        const ObjectLayout &object = layout_.objects[o];
        for (std::int64_t cell = first; cell < last; ++cell) {
            std::int64_t &count = out.counts[object.first_count + cell];
            count = 0;
            for (const Copy &copy : copies_)
                count += copy.counts[object.first_count + cell];
            for (const ItemLayout &item : layout_.items_of(o))
                for (std::int64_t e = 0; e < item.elements; ++e) {
                    const std::int64_t place = object.first_value + cell * object.width + item.offset + e;
                    combine(item, place);
                    const double range = layout_.exact ? ranges[at(object.first_column + item.offset + e)] : 0.0;
                    const double result = result_of(item, place, count, range);
                    out.values[place] = result;
                    if (item.combine == PGKM_COMBINE_SUM && !std::isfinite(result))
                        lower(failed, place);
                }
        }
    });
    if (failed.load() != INT64_MAX)
        fail_total(layout_, failed.load(), out);
}

} // namespace pgkm::cpu

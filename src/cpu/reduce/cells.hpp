// cells.hpp - the reduction objects: copies of R, what rows add to them, and what comes of them.
#pragma once

#include <cstdint>
#include <atomic>
#include <span>
#include <vector>

#include "backend/reduction.h"
#include "cpu/context.hpp"
#include "cpu/reduce/cell_kernels.hpp"
#include "numeric/platform.hpp"
#include "numeric/reduction.hpp"

namespace pgkm::cpu {

// Where the values of an object, and of an item in each of its cells, lie.
struct ObjectLayout {
    std::int64_t first_value, first_count, first_column; // columns: values of a cell, of all objects
    std::int64_t cells, width;
};
struct ItemLayout {
    std::int32_t object;
    std::int64_t offset; // in a cell
    std::int64_t elements;
    PgkmCombine combine;
};
struct Layout {
    explicit Layout(const PgkmReduction &reduction);

    const PgkmReduction &reduction;
    std::vector<ObjectLayout> objects;
    std::vector<ItemLayout> items;
    std::int64_t values = 0, counts = 0, columns = 0;
    bool exact = false; // whether there are exact sums
    bool plain = false; // whether there are float64 values: sums that are not exact, least and greatest ones
    bool keys = false;  // whether an item has keys

    std::span<const ItemLayout> items_of(std::size_t object) const;

    // Columns with a range and a scale of their own.
    std::int64_t scaled() const { return exact ? columns : 0; }

    // float64 values, or their room, in a copy of R, but for the greatest magnitudes.
    std::int64_t copy_size() const { return values * ((exact ? 2 : 0) + (plain ? 1 : 0) + (keys ? 1 : 0)) + counts; }
};

// One copy of R. Numbers that the layout does not have are not to be touched.
struct Copy {
    Int128 *totals; // exact sums
    double *values;
    double *keys;
    std::int64_t *counts;
    double *largest; // of each column with exact sums the greatest magnitude, in the rows of this copy
};

// All copies of R.
class Copies {
  public:
    // Empty ones.
    Copies(Context &context, ThreadPool &pool, const Layout &layout, std::int64_t count);
    // Those that lie in the caller's memory.
    Copies(Context &context, const Layout &layout, const PgkmCopies &shared);
    static std::int64_t bytes(const Layout &layout, std::int64_t count);
    const Copy &operator[](std::int64_t i) const { return copies_[static_cast<std::size_t>(i)]; }
    // Makes copies begin .. end - 1 empty, but for the greatest magnitudes.
    void clear(ThreadPool &pool, std::int64_t begin, std::int64_t end);
    // The greatest magnitudes in all copies.
    Buffer<double> largest() const;
    // Brings them together in the first, in their order, and fills `out`. Throws Error(PGKM_INVALID) with out.fault set
    // where a total is no number.
    void finish(ThreadPool &pool, PgkmReduced &out);

  private:
    void place(double *memory, std::int64_t count);
    void clear(const Copy &copy, const ItemLayout &item, std::int64_t place) const;
    void combine(const ItemLayout &item, std::int64_t place);
    double result_of(const ItemLayout &item, std::int64_t place, std::int64_t count, double largest) const;
    // body(object, first cell, last cell) for all cells, some at a time.
    template <typename Body>
    void for_cells(ThreadPool &pool, Body &&body);

    Context &context_;
    const Layout &layout_;
    Buffer<double> own_; // nothing where the memory is the caller's
    std::vector<Copy> copies_;
};

// least = min(least, value), from any thread.
void lower(std::atomic<std::int64_t> &least, std::int64_t value);

// What one thread adds rows to: a part of a copy.
class Accumulator {
  public:
    struct Range {
        std::int64_t first, last; // one past
    };

    Accumulator(Context &context, const Layout &layout, int batch_rows);

    // Magnitudes alone: the greatest of each column, of exact sums.
    void measure() { measures_ = true; }
    const Buffer<double> &largest() const { return largest_; }

    // The part of so many of a copy; of exact sums the scales of the columns.
    void open(const Copy &copy, std::int64_t part, std::int64_t parts, const Buffer<double> &scales);

    void begin_batch() { bad_row_ = INT32_MAX; }
    // The first row of the batch that failed, or INT32_MAX.
    int bad_row() const { return bad_row_; }

    // The columns of a filter and of cells, or NULL.
    void enter(std::int32_t object, const double *filter, const double *cell, int rows);
    // The elements of an item that belong to this part.
    Range elements(std::int32_t item) const;
    // With other values, products of both; only into an object of one cell that is not exact.
    void add(std::int32_t item, std::int64_t element, const double *values, const double *keys, const double *others);

  private:
    void find_misplaced(const double *filter, const double *cell);
    bool are_good(const double *values);
    void add_sum(std::int64_t place, std::int64_t column, const double *values, const double *others);
    void add_total(std::int64_t place, std::int64_t column, const double *values, const double *others);
    void add_extreme(std::int64_t place, PgkmCombine combine, const double *values, const double *keys);
    template <typename Body>
    void for_rows(std::int64_t place, Body &&body);

    const Layout &layout_;
    const CellKernels &kernels_;
    Buffer<double> live_;       // 1 for rows that the object takes
    Buffer<double> places_;     // their cells; of exact sums the integers
    Buffer<std::int64_t> base_; // of each row the first value of its cell in the object, or -1 for none of this part
    Buffer<double> largest_;
    bool measures_ = false;
    Copy copy_ = {};
    std::int64_t part_ = 0, parts_ = 1;
    const double *scales_ = nullptr;
    const ObjectLayout *object_ = nullptr;
    bool all_live_ = true; // and in the one cell there is
    int rows_ = 0;
    int bad_row_ = INT32_MAX;
};

} // namespace pgkm::cpu

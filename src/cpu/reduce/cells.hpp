// cells.hpp - copies of R, what rows add to them, and what comes of them.
#pragma once

#include <cstdint>

#include "backend/reduction_words.hpp"
#include "cpu/context.hpp"
#include "cpu/reduce/kernels.hpp"

namespace pgkm::cpu {

// Copies of R side by side. Behind the words of each: of each integer sum the greatest magnitude in the copy's rows.
class Copies {
  public:
    // Empty ones.
    Copies(Context &context, const PgkmReduction &program, const Words &words, std::int64_t count);
    // float64 numbers of one.
    static std::int64_t size(const Words &words) { return (words.count + words.scales + 1) / 2 * 2; }

    double *words(std::int64_t copy) { return memory_.data() + copy * size(words_); }
    double *largest(std::int64_t copy) { return words(copy) + words_.count; }
    // Of the greatest magnitudes in all copies.
    std::vector<int> exponents();
    // Brings them together in the first, in their order, and fills `out`. Throws Error(PGKM_INVALID) with out.fault set
    // where a total is no number.
    void finish(ThreadPool &pool, PgkmReduced &out);

  private:
    void set_identities(std::int64_t copy);
    void combine(std::int32_t object, std::int64_t first, std::int64_t last);

    Context &context_;
    const PgkmReduction &program_;
    const Words &words_;
    Buffer<double> memory_;
    std::int64_t count_;
};

// What one thread adds rows to: a part of a copy, so many of which threads share.
class Accumulator {
  public:
    struct Range {
        std::int64_t first, last; // one past
    };

    Accumulator(Context &context, const PgkmReduction &program, const Words &words, int batch_rows);

    // Magnitudes alone, of integer sums: the greatest of each. Values are looked at.
    void measure(double *largest) { largest_ = largest; }
    // The scales of integer sums stay the caller's.
    void open(double *words, std::int64_t part, std::int64_t parts, const double *scales);

    void begin_batch(int rows);
    // The first row of the batch that failed, or INT32_MAX.
    int bad_row() const { return bad_row_; }

    // The columns of a filter and of cells, or NULL.
    void enter(std::int32_t object, const double *filter, const double *cell);
    // The elements that belong to this part.
    Range elements(const Output &output) const;
    // `seconds`: keys, or what the values of a float64 sum into one cell are multiplied by; or NULL.
    void add(const Output &output, std::int64_t element, const double *values, const double *seconds);

  private:
    Range share(std::int64_t count) const;
    bool is_by_cells() const { return program_.objects[object_].cells >= parts_; }
    const double *taken(const double *values, double *masked) const;
    void check(const double *values);
    void raise(double &most, const double *values);
    void add_total(const Output &output, double *to, const double *values, const double *factors, double scale);
    template <typename Body>
    void for_rows(double *to, Body &&body);

    const PgkmReduction &program_;
    const Words &words_;
    const ReduceKernels &kernels_;
    Buffer<double> columns_;    // live: 1 for rows that the object takes; their cells; values, keys, integers
    Buffer<std::int64_t> base_; // of each row the first word of its cell, or -1 for none of this part
    double *live_, *cells_, *values_, *seconds_;
    double *largest_ = nullptr; // NULL: rows are added
    double *copy_ = nullptr;
    const double *scales_ = nullptr;
    std::int64_t part_ = 0, parts_ = 1;
    std::int32_t object_ = 0;
    bool all_live_ = true; // all rows of the batch, in the one cell there is
    int rows_ = 0, n_ = 0; // rounded up, as kernels take it
    int bad_row_ = INT32_MAX;
};

} // namespace pgkm::cpu

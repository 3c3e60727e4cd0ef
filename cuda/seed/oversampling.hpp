// oversampling.hpp - the rounds of k-means|| over a problem's rows. Errors throw Error: PGKM_LIMIT, PGKM_CANCELLED, or
// a fault of the device.
#pragma once

#include <vector>

#include "seed/seeder.hpp"

namespace pgkm::cuda {

// What the rounds leave behind.
template <typename T>
struct Candidates {
    std::vector<std::int64_t> rows; // in the order of their draws
    std::vector<Int128> masses;     // of the rows nearest to each; none for k candidates or fewer, or without room
    std::vector<T> values;          // of rows that peers share
};

// The rounds, after the seeder's first row; distances to all candidates are the seeder's afterwards. shared: where
// peers have the rows; then they need room for masses, or throw PGKM_LIMIT.
template <typename T>
Candidates<T> oversample(Data &data, const PgkmProblem &problem, Seeder<T> &seeder, SharedRows<T> *shared = nullptr);

// The masses with little device memory: all distances, with labels of few rows at a time.
template <typename T>
std::vector<Int128> candidate_masses(Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows);

// On the host's limit, for rows that are drawn: their numbers and values.
Claim claim_rows(const Data &data, std::int64_t count);

// Copies the values of these rows to device memory; of resident rows.
template <typename T>
void gather_rows(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows, T *to);

// The rows' values, with +0 for -0.
template <typename T>
std::vector<T> rows_of(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows);

} // namespace pgkm::cuda

// arrays.hpp - where a call's arrays lie in the arena.
//
// First one WireProblem for each problem, of reduce() then the program, then each problem's arrays in turn. Both ends
// walk the same way over the same structs, so that no address travels.
#pragma once

#include <cstdint>

#include "service/wire/protocol.hpp"

namespace pgkm::service {

// Which arrays a problem has.
enum Part : std::uint32_t {
    part_centroids = 1u << 0,
    part_scales = 1u << 1,
    part_statistics = 1u << 2,
    part_labels = 1u << 3,
    part_distances = 1u << 4,
    part_totals = 1u << 5,
    part_masses = 1u << 6,
    part_within = 1u << 7,
    part_sizes = 1u << 8,
    // moments
    part_moments = 1u << 9, // shift, sums and cross
    // em_step
    part_means = 1u << 10,
    part_density = 1u << 11, // log_weights, factors and log_determinants
    part_given_labels = 1u << 12,
    part_mixture_sums = 1u << 13, // responsibilities, first and, unless tied, second
    part_reduced = 1u << 14,      // values and counts
};

// PgkmProblem without addresses.
struct WireProblem {
    std::int64_t first_row;
    std::int64_t n_rows;
    std::int32_t k; // as asked: the arrays have place for so many clusters
    std::int32_t weight_exponent;
    std::int32_t distance_exponent;
    std::uint32_t parts;
    double tol;
    std::int32_t covariance_type; // em_step
    std::uint32_t restart;        // seed
    // Written by the service.
    std::int32_t found_k;
    std::int32_t n_iter;
    std::int32_t converged;
    double shift;
    double max_weight;     // of summarise
    double log_likelihood; // of em_step
    double mass;           // of moments
    // of reduce: PgkmReduced
    std::int32_t fault;
    std::int32_t expression;
    std::int64_t row;
    double number;
};

// The arrays of one problem; nullptr for those it has not.
struct Arrays {
    char *centroids;          // k x d elements
    PgkmFeatureScale *scales; // d
    double *statistics;       // 4 x d: min, max, mean, variance
    std::int32_t *labels;     // n_rows
    double *distances;        // n_rows
    PgkmInt128 *totals;       // k x d
    PgkmInt128 *masses;       // k
    PgkmInt128 *within;       // k
    std::int64_t *sizes;      // k
    // PgkmMoments
    double *shift; // d
    double *sums;  // d
    double *cross; // d (d + 1) / 2
    // PgkmMixture and PgkmMixtureSums; the labels found are `labels`
    double *means;              // k x d
    double *log_weights;        // k
    double *factors;            // full: k x d x d; tied: d x d; diag: k x d; spherical: k
    double *log_determinants;   // k
    std::int32_t *given_labels; // n_rows
    double *responsibilities;   // k: the masses
    double *first;              // k x d
    double *second;             // full: k x d (d + 1) / 2; diag, spherical: k x d
    // PgkmReduced
    double *values;       // as many as the program has
    std::int64_t *counts; // cells
};

// The arrays of a PgkmReduction.
struct ProgramArrays {
    PgkmExpression *expressions;
    std::int64_t *loops;
    double *parameters;
    PgkmItem *items;
    PgkmObject *objects;
};

struct Shape {
    std::int32_t d;
    PgkmElement element;
    std::size_t element_bytes() const { return element == PGKM_FLOAT32 ? 4 : 8; }
};

// Gives out the places of arrays, problem after problem. Without a base it only measures.
class Walk {
  public:
    Walk(const Shape &shape, std::int64_t n_problems, char *base);

    // Both throw Error(PGKM_LIMIT) when sizes overflow. The program comes before the first problem.
    ProgramArrays program(const WireProgram &program);
    Arrays next(const WireProblem &problem);

    WireProblem *problems() const { return reinterpret_cast<WireProblem *>(base_); }
    std::uint64_t end() const { return end_; }

  private:
    void place_moments(Arrays *arrays);
    void place_mixture(const WireProblem &problem, Arrays *arrays);
    template <typename T>
    T *place(bool wanted, std::uint64_t rows, std::uint64_t columns, std::uint64_t size = sizeof(T));

    Shape shape_;
    WireProgram program_ = {};
    char *base_;
    std::uint64_t end_ = 0;
};

} // namespace pgkm::service

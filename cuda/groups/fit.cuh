// fit.cuh (groups) - what the kernels that fit many problems share: one block, one problem.
#pragma once

#include "device/exact.cuh"
#include "plan/stages.hpp"
#include "groups/groups.hpp"

namespace pgkm::cuda {

template <typename T>
struct GroupFit {
    const T             *values;
    const double        *weights;
    int                  d;
    int                  width; // group_width()
    GroupProblem        *problems;
    T                   *centroids; // of all problems
    const std::int32_t  *exponents; // problems x d
    int                  max_iter;
    bool                 cosine;
    const volatile std::int32_t *cancel;
};

inline constexpr int group_replicas = 4; // copies of a block's 32-bit sums
inline constexpr int group_rounds = limb_additions / (group_threads / group_replicas); // of a row per thread, between flushes

// The rows and centroids of this block's problem.
template <typename T>
__device__ inline View<T> group_view(const GroupFit<T> &a, const GroupProblem &problem)
{
    return {a.values + problem.first_row * a.d, a.weights == nullptr ? nullptr : a.weights + problem.first_row,
            problem.n_rows, a.d, problem.k, a.centroids + problem.cluster * a.d,
            a.exponents + std::int64_t{blockIdx.x} * a.d, problem.weight_exponent};
}

// Adds the copies of the 32-bit cells to the 64-bit sums and clears them; the whole block.
__device__ inline void flush_cells(std::int64_t *sums, std::int32_t *cells, int count)
{
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += group_threads) {
        std::int64_t sum = sums[i];
        for (int r = 0; r < group_replicas; ++r) {
            sum += cells[r * count + i];
            cells[r * count + i] = 0;
        }
        sums[i] = sum;
    }
    __syncthreads();
}

// Any cluster without mass? Sums: k x width.
__device__ inline bool group_has_empty(const std::int64_t *sums, int k, int d, int width)
{
    bool empty = false;
    for (int j = threadIdx.x; j < k; j += group_threads)
        empty |= group_sum(sums + j * width, d, d, width) == 0;
    return __syncthreads_or(empty) != 0;
}

// One thread: the clusters' shifts in order, and the decision.
__device__ inline int close_group_iteration(GroupProblem &problem, const double *shifts, bool cancel)
{
    double shift = 0.0;
    for (int j = 0; j < problem.k; ++j)
        shift += shifts[j];
    problem.shift = shift;
    problem.converged = shift <= problem.tol;
    return shift <= problem.tol ? finished : shift == 0.0 ? compare_labels : cancel ? cancelled : running;
}

// Enqueues the fit with rows in registers; false where they do not fit there (fit_register.cu).
bool launch_register_fit(Context &context, const GroupFit<float> &arguments, int problems, int most_k);

} // namespace pgkm::cuda

// assigner.hpp - the strategies of assignment behind one interface.
//
// An assigner serves one problem through all its iterations: begin() takes the centroids of an
// iteration, assign() is then called for blocks of rows from any worker. Whatever it skips or
// estimates, the labels it gives are those of the contract's D.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cpu/assign/choose.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

template <typename T>
class Assigner {
  public:
    virtual ~Assigner() = default;

    virtual Assignment strategy() const = 0;

    // Rows to hand to assign() at a time, at most.
    virtual int rows_at_once() const = 0;

    // centroids: k x d, unchanged until the next begin(). May use the pool.
    virtual void begin(const T *centroids) = 0;

    // Labels of rows first .. first + count - 1. On entry labels[] holds those of the last iteration
    // (-1: none yet); distances, if not NULL, receives D to the centroid found. From the worker's own
    // thread; rows of two calls do not overlap.
    virtual void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) = 0;
};

// What an assigner is wanted for: bounds only pay over several iterations. A single pass may want D as well.
enum class Purpose { iterations, single, distances };

template <typename T>
Shape shape_of(const Rows<T> &rows, Purpose purpose)
{
    return {rows.n,
            rows.d,
            rows.k,
            has_fused(rows.context.instruction_set),
            purpose == Purpose::iterations,
            purpose == Purpose::distances,
            sizeof(T) == sizeof(double)};
}

// Calls body with the assigner, made for the shape where there is none yet. Exact distances to all centroids need the
// least memory: where there is too little for anything else, they take its place, and body runs again.
template <typename T>
void assign_with(std::unique_ptr<Assigner<T>> &assigner, const Rows<T> &rows, Purpose purpose,
                 const std::function<void(Assigner<T> &)> &body);

} // namespace pgkm::cpu

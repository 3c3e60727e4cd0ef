// sparse.hpp (mixture) - E step and sums over those pairs of a row and a component whose responsibility is not nothing,
// for diag and spherical mixtures of many components.
//
// A filter in bfloat16 finds a row's candidates: the components whose log density may lie within `least_share` of the
// row's largest, by a proven bound (candidates.cu). All others have a responsibility of less than exp(-87) < 2^-125, so
// that they add less than 2^-125 a row to a mass, which the M step raises by 2^-49 anyway, and as little of the
// features' squared ranges to the second sums. Log densities of candidates are float64, by differences from the means;
// pairs are sorted by component (stable, so that sums have one order) and summed. Chunks of rows with too many pairs
// are left to the matrix products.
#pragma once

#include "plugin/context.hpp"
#include "mixture/items.cuh"
#include "mixture/parameters.hpp"

namespace pgkm::cuda::mixture {

inline constexpr float least_share = 87.0f; // below the largest log density
inline constexpr int list_size = 16;        // candidates of a row; a row with more has all components

inline constexpr std::int64_t least_rows = 4096; // of a chunk

inline constexpr int filter_components = 64; // of a tile
inline constexpr int filter_depth = 32;      // features of a step

// What the filter makes of a mixture: factors in bfloat16 of y' and, diag, of y'^2, for scaled features y' = s y; for
// each component the constant and the terms of its error bound; powers of two s. Components and features are rounded
// up.
struct FilterLayout {
    std::int64_t components, features;
    int runs;

    __host__ __device__ FilterLayout(std::int64_t k, std::int64_t d, bool diagonal)
        : components((k + filter_components - 1) / filter_components * filter_components),
          features((d + filter_depth - 1) / filter_depth * filter_depth), runs(diagonal ? 2 : 1)
    {
    }
    __host__ __device__ std::int64_t terms() const { return runs * components * features / 2; }
    __host__ __device__ std::int64_t scales() const { return terms() + 4 * components; }
    __host__ __device__ std::int64_t values() const { return scales() + features; }
};

// Arrays for a chunk of rows with up to `pairs` pairs.
struct SparseArrays {
    float *filter;         // FilterLayout
    std::uint16_t *lists;  // rows x list_size: candidates
    std::int32_t *counts;  // rows: how many; k: all
    std::int32_t *offsets; // rows + 1: sums of the counts before
    double *likelihoods;   // for each 64 rows
    std::int32_t *keys[2]; // pairs: components; sorted
    std::int32_t *rows[2]; // pairs: their numbers; sorted
    std::int32_t *row_of;  // pairs
    double *shares;        // pairs: responsibilities
    char *storage;         // CUB's
    std::size_t storage_bytes;
};

// What the kernels get.
template <typename T>
struct SparseLaunch {
    const T *values; // row-major
    std::int32_t n, d;
    const MixtureView *mixture;
    bool diagonal;    // a factor for each feature, else one for a component
    bool from_origin; // sums: else about the means
    SparseArrays arrays;
    const std::int32_t *stop;

    // Component j's factor of feature f.
    __device__ double factor(std::int64_t j, int f) const { return mixture->factors[diagonal ? j * d + f : j]; }
};

// Whether the filter has a kernel for so many features, and components enough that it pays.
bool sparse_fits(const Context &context, std::int64_t k, std::int64_t d, bool diagonal);

template <typename T>
void find_candidates(const SparseLaunch<T> &launch, cudaStream_t stream);
// The stages over chunks of rows, on the host.
template <typename T>
class Sparse {
  public:
    Sparse(Context &context, const Task &task, std::int64_t d);

    // Sees to chunks of up to `rows` rows, and fewer where their workspace would take more than `room` bytes. Bytes of
    // the workspace, or 0 where too few rows fit.
    std::size_t plan(std::int64_t rows, std::uint64_t room);
    // Adds up to `n` rows to the copies of the sums, and says how many: 0 where too many pairs count.
    std::int64_t add(const T *values, std::int64_t n, const MixtureView *device_view, const MixtureView &view,
                     char *workspace, std::int32_t *stop);

  private:
    std::size_t place(char *workspace, std::int64_t rows, SparseArrays &arrays);

    Context &context_;
    const std::int64_t d_, k_;
    const bool diagonal_, from_origin_;
    const std::int64_t pairs_per_row_;
    std::int64_t chunk_ = 0;         // rows of the workspace
    std::int64_t next_ = 65536;      // rows of the next chunk: the first one tells whether it pays
    const void *prepared_ = nullptr; // the mixture whose filter is there
};

} // namespace pgkm::cuda::mixture

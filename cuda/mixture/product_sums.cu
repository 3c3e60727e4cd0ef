// product_sums.cu (mixture) - the sums of diag, spherical and, first ones, tied mixtures as products of
// responsibilities with y and y^2.
//
// Data: a block adds up the rows of one item for 64 components by 32 features (spherical: 64), 16 rows
// at a time from shared memory; a warp has 32 of the components by half of the features. Rows become y = x - origin and
// exponentials become responsibilities on their way there. Spherical: of y^2 only the sum over the features counts,
// which the densities left for each row; the blocks of the first features add it up with the masses. Threads: each
// block owns its part of the item's copy of the sums; the next rows are in registers while these are worked on; one
// barrier for every 16 rows. Error: float64, rows added in the order in which they lie.
#include "device/mma.cuh"
#include "mixture/products.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int threads = product_threads;
constexpr int share_stride = conflict_free(product_depth);

// Features of a block: with two sums for each there is room for half as many.
__host__ __device__ constexpr int width_of(bool diagonal)
{
    return diagonal ? 32 : 64;
}

// Sixteen rows and their responsibilities.
template <int Features>
struct Step {
    double y[product_depth * conflict_free(Features)];
    double shares[strip * share_stride];
};

template <typename T, bool Diagonal>
class SumTile {
    static constexpr int features = width_of(Diagonal), parts = features / 16, row_stride = conflict_free(features);
    static constexpr int lines = threads / features; // rows that a block's threads take at once
    using SumStep = Step<features>;

  public:
    __device__ SumTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, int first, int feature,
                       SumStep *steps)
        : shares_(launch.workspace, item, mixture.k), values_(launch.values + item.first * launch.d + feature),
          origin_(mixture.origin + feature), d_(launch.d), features_left_(launch.d - feature), n_(item.n),
          first_(first), components_left_(mixture.k - first),
          adds_squares_(!Diagonal && feature == 0 && mixture.layout.second_size != 0), steps_(steps)
    {
    }

    __device__ void run()
    {
        const int f = static_cast<int>(threadIdx.x) % features;
        const double origin = f < features_left_ ? origin_[f] : 0.0;
        Next next;
        fetch(0, next);
        put(0, next, origin);
        for (int row = 0; row < n_; row += product_depth) {
            __syncthreads(); // these rows are there, and the ones before are done with
            if (row + product_depth < n_)
                fetch(row + product_depth, next);
            multiply(steps_[row / product_depth % 2]);
            if (row + product_depth < n_)
                put(row + product_depth, next, origin);
        }
    }

    // Into the item's copy of the sums; the block of the first features has the masses.
    __device__ void store(const MixtureView &mixture, int feature, double *out)
    {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int part = 0; part < parts; ++part)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int j = component() + 16 * m + g() + i / 2 * 8,
                              f = own_feature() + 8 * part + 2 * t() + i % 2;
                    if (j >= components_left_ || f >= features_left_)
                        continue;
                    out[mixture.layout.first(first_ + j) + feature + f] += sums_[m][part][0][i];
                    if constexpr (Diagonal)
                        out[mixture.layout.second(first_ + j) + feature + f] += sums_[m][part][1][i];
                }
        if (feature != 0)
            return;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const double mass = sum_lanes<4>(masses_[half]);
            const double square = sum_lanes<4>(squares_[half]);
            const int j = static_cast<int>(threadIdx.x) / 4 + strip / 2 * half;
            if (t() != 0 || j >= components_left_)
                continue;
            out[first_ + j] += mass;
            if (adds_squares_)
                out[mixture.layout.second(first_ + j)] += square; // the first feature has that of all
        }
        if (first_ == 0)
            store_likelihood(out + mixture.k);
    }

  private:
    struct Next {
        T y[product_depth / lines];
        T shares[2][4];
        double factors[4];
        double squares[4];
    };

    // The warp's first component and feature in the block's.
    __device__ static int component()
    {
        return static_cast<int>(threadIdx.x) / 64 * 32;
    }
    __device__ static int own_feature()
    {
        return static_cast<int>(threadIdx.x) / 32 % 2 * (features / 2);
    }

    // A thread has every `lines`-th row of one feature, and four rows of two components, one of each half of the strip.
    __device__ void fetch(int row, Next &next) const
    {
        const int f = static_cast<int>(threadIdx.x) % features, own = static_cast<int>(threadIdx.x) / features;
        const T *from = values_ + std::int64_t{row + own} * d_ + f;
#pragma unroll
        for (int i = 0; i < product_depth / lines; ++i)
            next.y[i] = f < features_left_ && row + own + lines * i < n_ ? from[std::int64_t{lines * i} * d_] : T{0};
        if (adds_squares_)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                next.squares[i] = shares_.squares[row + 4 * t() + i];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int j = static_cast<int>(threadIdx.x) / 4 + strip / 2 * half;
            using Two = std::conditional_t<sizeof(T) == 4, float2, double2>;
            const auto *pair = reinterpret_cast<const Two *>(shares_.exponentials +
                                                             std::int64_t{first_ + j} * shares_.rows + row + 4 * t());
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const Two two = j < components_left_ ? pair[i] : Two{};
                next.shares[half][2 * i] = two.x;
                next.shares[half][2 * i + 1] = two.y;
            }
        }
        const double *factor = shares_.tops + first_ / strip * shares_.rows + row + 4 * t();
#pragma unroll
        for (int i = 0; i < 4; ++i)
            next.factors[i] = factor[i];
    }

    __device__ void put(int row, const Next &next, double origin)
    {
        SumStep &step = steps_[row / product_depth % 2];
        const int f = static_cast<int>(threadIdx.x) % features, own = static_cast<int>(threadIdx.x) / features;
#pragma unroll
        for (int i = 0; i < product_depth / lines; ++i)
            step.y[(own + lines * i) * row_stride + f] =
                row + own + lines * i < n_ ? static_cast<double>(next.y[i]) - origin : 0.0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            double *to = step.shares + (static_cast<int>(threadIdx.x) / 4 + strip / 2 * half) * share_stride + 4 * t();
            double share[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                masses_[half] += share[i] = static_cast<double>(next.shares[half][i]) * next.factors[i];
            if (adds_squares_)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    squares_[half] = fma(share[i], next.squares[i], squares_[half]);
            *reinterpret_cast<double2 *>(to) = make_double2(share[0], share[1]);
            *reinterpret_cast<double2 *>(to + 2) = make_double2(share[2], share[3]);
        }
    }

    __device__ void multiply(const SumStep &step)
    {
        const double *y = step.y + t() * row_stride + own_feature() + g();
        const double *share = step.shares + (component() + g()) * share_stride + t();
#pragma unroll
        for (int row = 0; row < product_depth; row += 8) {
            double b[parts][2], squares[parts][2];
#pragma unroll
            for (int part = 0; part < parts; ++part)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    b[part][i] = y[(row + 4 * i) * row_stride + 8 * part];
                    squares[part][i] = b[part][i] * b[part][i];
                }
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                double a[4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[i] = share[(16 * m + i % 2 * 8) * share_stride + row + i / 2 * 4];
#pragma unroll
                for (int part = 0; part < parts; ++part) {
                    multiply_add(sums_[m][part][0], a, b[part]);
                    if constexpr (Diagonal)
                        multiply_add(sums_[m][part][1], a, squares[part]);
                }
            }
        }
    }

    // The rows' norms, added up in an order that their number alone decides.
    __device__ void store_likelihood(double *out)
    {
        double sum = 0.0;
        for (int row = static_cast<int>(threadIdx.x); row < n_; row += threads)
            sum += shares_.norms[row];
        __syncthreads();
        double *all = steps_[0].y;
        all[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        sum = 0.0;
        for (int i = 0; i < threads; ++i)
            sum += all[i];
        *out += sum;
    }

    const ProductShares<T> shares_;
    const T *values_;
    const double *origin_;
    const int d_, features_left_, n_, first_, components_left_;
    const bool adds_squares_; // of rows
    SumStep *const steps_;
    double sums_[2][parts][Diagonal ? 2 : 1][4] = {}; // 16 components by 8 features: r y, r y^2
    double masses_[2] = {}, squares_[2] = {};
};

// Blocks (x, item): runs of components, and for each its runs of features, side by side so that they read the same
// responsibilities.
template <typename T, bool Diagonal>
__global__ void __launch_bounds__(threads, 3) sums_kernel(Launch<T> launch, int feature_tiles)
{
    extern __shared__ double2 memory[];
    const Item item = launch.items[blockIdx.y];
    const MixtureView &mixture = launch.mixtures[item.problem];
    const int first = static_cast<int>(blockIdx.x) / feature_tiles * strip;
    const int feature = static_cast<int>(blockIdx.x) % feature_tiles * width_of(Diagonal);
    if (stopped(launch.stop) || first >= mixture.k)
        return;
    SumTile<T, Diagonal> tile(launch, item, mixture, first, feature,
                              reinterpret_cast<Step<width_of(Diagonal)> *>(memory));
    tile.run();
    tile.store(mixture, feature, mixture.sums + item.slot * mixture.layout.values());
}

// A thread for each component and feature. (y - m)^2 = y^2 - 2 m y + m^2.
__global__ void __launch_bounds__(threads) recentre_kernel(const MixtureView *mixtures, std::int64_t n_problems)
{
    for (std::int64_t p = blockIdx.y; p < n_problems; p += gridDim.y) {
        const MixtureView &mixture = mixtures[p];
        const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x, d = mixture.layout.d;
        if (i >= mixture.k * d)
            continue;
        const std::int64_t j = i / d, f = i % d;
        const double moved = mixture.means[i] - mixture.origin[f], mass = mixture.results[j];
        double &first = mixture.results[mixture.layout.first(j) + f];
        if (mixture.layout.second_size != 0)
            mixture.results[mixture.layout.second(j) + f] += moved * (moved * mass - first) - moved * first;
        first -= moved * mass;
    }
}

int feature_tiles_of(bool diagonal, std::int64_t d)
{
    return static_cast<int>((d + width_of(diagonal) - 1) / width_of(diagonal));
}

template <typename T, bool Diagonal>
void launch_sums(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    const int feature_tiles = feature_tiles_of(Diagonal, launch.d), blocks = (extent.most_k + strip - 1) / strip;
    constexpr int bytes = 2 * sizeof(Step<width_of(Diagonal)>);
    enqueue(sums_kernel<T, Diagonal>, {feature_tiles * blocks, extent.n_items}, threads, bytes, stream, launch,
            feature_tiles);
}

} // namespace

template <typename T>
void product_sums(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream)
{
    if (type == PGKM_COVARIANCE_DIAG)
        launch_sums<T, true>(launch, extent, stream);
    else
        launch_sums<T, false>(launch, extent, stream);
}

void recentre_products(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t most_values,
                       cudaStream_t stream)
{
    enqueue(recentre_kernel, {(most_values + threads - 1) / threads, std::min<std::int64_t>(n_problems, most_blocks)},
            threads, 0, stream, mixtures, n_problems);
}

std::int64_t product_slots(const DeviceFacts &facts, bool diagonal, std::int64_t k, std::int64_t d)
{
    constexpr std::int64_t blocks = 12; // of a multiprocessor, of which three run at once
    const std::int64_t tiles = (k + strip - 1) / strip * feature_tiles_of(diagonal, d);
    return (blocks * facts.multiprocessors + tiles - 1) / tiles;
}

template void product_sums<float>(const Launch<float> &, const Extent &, PgkmCovariance, cudaStream_t);
template void product_sums<double>(const Launch<double> &, const Extent &, PgkmCovariance, cudaStream_t);

} // namespace pgkm::cuda::mixture

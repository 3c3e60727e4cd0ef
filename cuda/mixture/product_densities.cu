// product_densities.cu (mixture) - log densities of diag, spherical and tied mixtures as a matrix product, and their
// exponentials.
//
// Shape: any; made for more than 64 components or features.
// Data: a block has 64 rows by a strip of 64 components (product_tile.cuh). A warp finds the largest log density of
// each of its rows over the strip and stores the exponentials of the differences from it; norms_kernel joins strips.
// Error: float64 products and sums, about the origin (fused.hpp); exponentials of float32 rows are float32. What
// underflows there is less than 2^-126 of the strip's largest.
#include "mixture/products.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int threads = product_threads;

// A warp makes the coefficients of one component. With m = mean - origin and w the factor:
// -w^2 (y - m)^2 / 2 = (w^2 m) y - (w^2 / 2) y^2 - w^2 m^2 / 2.
__global__ void __launch_bounds__(threads)
    prepare_kernel(const MixtureView *mixtures, int d, PgkmCovariance type, unsigned long long *reach)
{
    const MixtureView mixture = mixtures[blockIdx.x];
    const bool diagonal = type == PGKM_COVARIANCE_DIAG, tied = type == PGKM_COVARIANCE_TIED;
    const ProductLayout layout(mixture.k, d, diagonal);
    const int lane = static_cast<int>(threadIdx.x) % 32, features = static_cast<int>(layout.features);
    double *constants = mixture.products + layout.constants(), *halves = mixture.products + layout.halves();
    for (std::int64_t j = blockIdx.y * (threads / 32) + threadIdx.x / 32; j < layout.components;
         j += gridDim.y * (threads / 32)) {
        double *linear = mixture.products + j * features, *square = linear + layout.components * features;
        double sum = 0.0;
        for (int f = lane; f < features; f += 32) {
            const bool inside = j < mixture.k && f < d;
            const double w = !inside ? 0.0 : tied ? 1.0 : mixture.factors[diagonal ? j * d + f : j];
            const double m = !inside ? 0.0
                             : tied  ? mixture.targets[j * d + f]
                                     : mixture.means[j * d + f] - mixture.origin[f];
            linear[f] = w * w * m;
            if (diagonal)
                square[f] = -0.5 * w * w;
            sum = fma(w * m, w * m, sum);
        }
        sum = sum_lanes(sum);
        if (lane != 0)
            continue;
        constants[j] = j < mixture.k ? fma(-0.5, sum, mixture.constants[j]) : -INFINITY;
        const double w = j >= mixture.k || diagonal ? 0.0 : tied ? 1.0 : mixture.factors[j];
        halves[j] = -0.5 * w * w;
        if (reach != nullptr) // bits of positive values order like them; no number is beyond all
            atomicMax(reach, static_cast<unsigned long long>(__double_as_longlong(fabs(sum))));
    }
}

// A strip's exponentials of the rows from `row` on, components from `first` on.
template <typename T, typename Tile>
__device__ void store_exponentials(const Tile &tile, const MixtureView &mixture, const ProductLayout &layout, int row,
                                   int first, const ProductShares<T> &shares)
{
    using Two = std::conditional_t<sizeof(T) == 4, float2, double2>;
    constexpr int own_count = strip / 8; // components of a lane
    const bool diagonal = layout.runs == 2;
    const double *constant = mixture.products + layout.constants() + first + g();
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const std::int64_t at = row + tile.row(part, 0);
        double norm = 0.0;
        if (!diagonal) {
            norm = tile.norm(part);
            if (first == 0 && t() == 0)
                shares.squares[row + 16 * warp() + 8 * part + g()] = norm;
        }
        T e[2][own_count];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            double own[own_count];
            const double square = diagonal ? 0.0 : __shfl_sync(~0u, norm, (2 * t() + i) * 4);
#pragma unroll
            for (int c = 0; c < own_count; ++c) {
                own[c] = tile.product(c / 2, part, i + c % 2 * 2) + constant[8 * c];
                if (!diagonal)
                    own[c] = fma(constant[layout.components + 8 * c], square, own[c]);
            }
            const double largest = about_largest<4, 16>(own);
            T sum = 0;
#pragma unroll
            for (int c = 0; c < own_count; ++c)
                sum += e[i][c] = exponential(static_cast<T>(own[c] - largest));
            sum = over_lanes<4, 16>(sum, [](T a, T b) { return a + b; });
            if (g() != 0)
                continue;
            shares.tops[first / strip * shares.rows + at + i] = largest;
            shares.sums[first / strip * shares.rows + at + i] = static_cast<double>(sum);
        }
#pragma unroll
        for (int c = 0; c < own_count; ++c)
            if (const std::int64_t j = first + 8 * c + g(); j < mixture.k)
                *reinterpret_cast<Two *>(shares.exponentials + j * shares.rows + at) = {e[0][c], e[1][c]};
    }
}

template <PgkmCovariance Type>
constexpr Factors factors_of = Type == PGKM_COVARIANCE_DIAG ? Factors::with_squares : Factors::linear;
// Rows of tied ones are those that W has been applied to.
template <typename T, PgkmCovariance Type>
using DensityTile = ProductTile<std::conditional_t<Type == PGKM_COVARIANCE_TIED, double, T>, factors_of<Type>>;

template <typename T, PgkmCovariance Type>
__global__ void __launch_bounds__(threads, 3) density_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch.stop) || row >= item.n)
        return;
    const MixtureView &mixture = launch.mixtures[item.problem];
    const ProductLayout layout(mixture.k, d, Type == PGKM_COVARIANCE_DIAG);
    const ProductShares<T> shares(launch.workspace, item, mixture.k);
    const auto work = [&](const auto *values, const double *origin) {
        DensityTile<T, Type> tile({values + std::int64_t{row} * d, origin, item.n - row, d, mixture.products,
                                   layout.features, static_cast<int>(layout.components)},
                                  memory);
        tile.run(static_cast<int>(blockIdx.z) * strip, static_cast<int>(gridDim.z) * strip,
                 [&](int first) { store_exponentials(tile, mixture, layout, row, first, shares); });
    };
    if constexpr (Type == PGKM_COVARIANCE_TIED)
        work(launch.workspace + item.rotated, nullptr);
    else
        work(launch.values + item.first * d, mixture.origin);
}

// A thread joins a row's strips; rows that there are not get a factor of 0.
template <typename T>
__global__ void __launch_bounds__(threads) norms_kernel(Launch<T> launch)
{
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * threads + static_cast<int>(threadIdx.x);
    const int k = launch.mixtures[item.problem].k, strips = (k + strip - 1) / strip;
    const ProductShares<T> shares(launch.workspace, item, k);
    if (stopped(launch.stop) || row >= shares.rows)
        return;
    double top = -INFINITY, sum = 0.0;
    for (int s = 0; s < strips; ++s)
        top = fmax(top, shares.tops[s * shares.rows + row]);
    for (int s = 0; s < strips; ++s) {
        double &factor = shares.tops[s * shares.rows + row];
        factor = exp(factor - top);
        sum = fma(factor, shares.sums[s * shares.rows + row], sum);
    }
    const double inverse = row < item.n ? 1.0 / sum : 0.0;
    for (int s = 0; s < strips; ++s)
        shares.tops[s * shares.rows + row] *= inverse;
    shares.norms[row] = row < item.n ? top + log(sum) : 0.0;
}

template <typename T, PgkmCovariance Type>
void launch_densities(const Launch<T> &launch, const dim3 &grid, cudaStream_t stream)
{
    enqueue(density_kernel<T, Type>, grid, threads, DensityTile<T, Type>::bytes, stream, launch);
}

} // namespace

void prepare_products(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                      PgkmCovariance type, unsigned long long *reach, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>((most_k + strip - 1) / strip * (strip / (threads / 32)));
    enqueue(prepare_kernel, {n_problems, std::min(most_blocks, blocks)}, threads, 0, stream, mixtures,
            static_cast<int>(d), type, reach);
}

template <typename T>
void product_densities(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream)
{
    const dim3 grid = tile_grid(extent, strip);
    if (type == PGKM_COVARIANCE_DIAG)
        launch_densities<T, PGKM_COVARIANCE_DIAG>(launch, grid, stream);
    else if (type == PGKM_COVARIANCE_TIED)
        launch_densities<T, PGKM_COVARIANCE_TIED>(launch, grid, stream);
    else
        launch_densities<T, PGKM_COVARIANCE_SPHERICAL>(launch, grid, stream);
    enqueue(norms_kernel<T>, {extent.n_items, (extent.most_rows + threads - 1) / threads}, threads, 0, stream, launch);
}

template void product_densities<float>(const Launch<float> &, const Extent &, PgkmCovariance, cudaStream_t);
template void product_densities<double>(const Launch<double> &, const Extent &, PgkmCovariance, cudaStream_t);

} // namespace pgkm::cuda::mixture

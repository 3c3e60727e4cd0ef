// product_densities.cu (mixture) - log densities of diag, spherical and tied mixtures as a matrix product, and their
// exponentials.
//
// Shape: any; made for more than 64 components or features.
// Data: a block has 64 rows by 64 components, a warp 32 of the rows by a strip of 32 components, 16 features deep from
// shared memory. Rows become y = x - origin in float64 on their way there. A warp finds the largest log density of
// each of its rows over the strip and stores the exponentials of the differences from it; norms_kernel joins strips.
// Threads: asynchronous copies of coefficients and rows in registers run one step ahead; one barrier a step.
// Error: float64 products and sums, about the origin (fused.hpp); exponentials of float32 rows are float32. What
// underflows there is less than 2^-126 of the strip's largest.
#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "mixture/products.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int threads = 128; // two by two warps
constexpr int stride = conflict_free(product_depth);
constexpr int loads = tile_rows * product_depth / threads;

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

template <bool Diagonal>
struct Step {
    double y[tile_rows * stride];
    double coefficients[(Diagonal ? 2 : 1) * product_components * stride];
};

// Rows of V, exponentials for rows of T.
template <typename T, typename V, bool Diagonal>
class DensityTile {
    static constexpr int runs = Diagonal ? 2 : 1;

  public:
    // origin: nullptr for zeros.
    __device__ DensityTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, const V *values,
                           const double *origin, int row, int first, Step<Diagonal> *steps)
        : values_(values + std::int64_t{row} * launch.d), origin_(origin), d_(launch.d), left_(item.n - row),
          layout_(mixture.k, launch.d, Diagonal),
          coefficients_(mixture.products + std::int64_t{first} * layout_.features), steps_(steps)
    {
    }

    __device__ void run()
    {
        const int count = static_cast<int>(layout_.features) / product_depth;
        V next[loads];
        fetch(0, next);
        copy(0);
        put(0, next);
        for (int step = 0; step < count; ++step) {
            __pipeline_wait_prior(0);
            __syncthreads(); // the step is there, and the one before it is done with
            if (step + 1 < count) {
                fetch(step + 1, next);
                copy(step + 1);
            }
            multiply(steps_[step % 2]);
            if (step + 1 < count)
                put(step + 1, next);
        }
    }

    // Exponentials of the warp's rows and components, of [row, row + 64) and [first, first + 64).
    __device__ void store(const MixtureView &mixture, int row, int first, const ProductShares<T> &shares) const
    {
        const int own_strip = first + component();
        const double *constant = mixture.products + layout_.constants() + own_strip + g();
        double c[4], half[4];
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            c[m] = constant[8 * m];
            half[m] = Diagonal ? 0.0 : constant[layout_.components + 8 * m];
        }
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const std::int64_t at = row + own_row() + 8 * part + 2 * t();
            double norm = norms_[part];
            if constexpr (!Diagonal) {
                norm += __shfl_xor_sync(~0u, norm, 1);
                norm += __shfl_xor_sync(~0u, norm, 2);
                if (own_strip == 0 && t() == 0)
                    shares.squares[row + own_row() + 8 * part + g()] = norm;
            }
            Exponential e[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                double own[4];
                const double square = Diagonal ? 0.0 : __shfl_sync(~0u, norm, (2 * t() + i) * 4);
#pragma unroll
                for (int m = 0; m < 4; ++m)
                    own[m] = Diagonal ? density_[m / 2][part][i + m % 2 * 2] + c[m]
                                      : fma(half[m], square, density_[m / 2][part][i + m % 2 * 2] + c[m]);
                const double largest = about_largest<4, 16>(own);
                Exponential sum = 0;
#pragma unroll
                for (int m = 0; m < 4; ++m)
                    sum += e[i][m] = exponential(static_cast<Exponential>(own[m] - largest));
                sum = over_lanes<4, 16>(sum, [](Exponential a, Exponential b) { return a + b; });
                if (g() != 0 || own_strip >= mixture.k)
                    continue;
                shares.tops[own_strip / strip * shares.rows + at + i] = largest;
                shares.sums[own_strip / strip * shares.rows + at + i] = static_cast<double>(sum);
            }
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                const int j = own_strip + 8 * m + g();
                if (j >= mixture.k)
                    break;
                if constexpr (sizeof(Exponential) == 4)
                    *reinterpret_cast<float2 *>(shares.exponentials + j * shares.rows + at) =
                        make_float2(e[0][m], e[1][m]);
                else
                    *reinterpret_cast<double2 *>(shares.exponentials + j * shares.rows + at) =
                        make_double2(e[0][m], e[1][m]);
            }
        }
    }

  private:
    using Exponential = Wide<T>;

    // The warp's first row and component in the block's.
    __device__ static int own_row()
    {
        return static_cast<int>(threadIdx.x) / 64 * 32;
    }
    __device__ static int component()
    {
        return static_cast<int>(threadIdx.x) / 32 % 2 * strip;
    }
    __device__ static int g()
    {
        return static_cast<int>(threadIdx.x) % 32 / 4;
    }
    __device__ static int t()
    {
        return static_cast<int>(threadIdx.x) % 4;
    }

    // This thread's values of the step's rows.
    __device__ void fetch(int step, V (&next)[loads]) const
    {
        const int f = step * product_depth + static_cast<int>(threadIdx.x) % product_depth;
        const int row = static_cast<int>(threadIdx.x) / product_depth;
        const V *from = values_ + std::int64_t{row} * d_ + f;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            next[i] = f < d_ && row + i * (threads / product_depth) < left_
                          ? from[std::int64_t{i} * (threads / product_depth) * d_]
                          : V{0};
    }

    // Rows that there are not are 0: about a large origin their squares would be infinite.
    __device__ void put(int step, const V (&next)[loads]) const
    {
        const int f = step * product_depth + static_cast<int>(threadIdx.x) % product_depth;
        const int row = static_cast<int>(threadIdx.x) / product_depth;
        const double origin = f < d_ && origin_ != nullptr ? origin_[f] : 0.0;
        double *to = steps_[step % 2].y + row * stride + static_cast<int>(threadIdx.x) % product_depth;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            to[i * (threads / product_depth) * stride] =
                row + i * (threads / product_depth) < left_ ? static_cast<double>(next[i]) - origin : 0.0;
    }

    __device__ void copy(int step) const
    {
#pragma unroll
        for (int run = 0; run < runs; ++run)
            copy_rows<product_components, product_depth, stride, threads>(
                steps_[step % 2].coefficients + run * product_components * stride,
                coefficients_ + run * layout_.components * layout_.features + step * product_depth, layout_.features,
                product_components, product_depth, true);
        __pipeline_commit();
    }

    __device__ void multiply(const Step<Diagonal> &step)
    {
        const double *y = step.y + (own_row() + g()) * stride + t();
        const double *from = step.coefficients + (component() + g()) * stride + t();
#pragma unroll
        for (int at = 0; at < product_depth; at += 8) {
            double b[4][2];
#pragma unroll
            for (int part = 0; part < 4; ++part)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    b[part][i] = y[8 * part * stride + at + 4 * i];
#pragma unroll
            for (int run = 0; run < runs; ++run) {
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    double a[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        a[i] = from[(run * product_components + 16 * m + i % 2 * 8) * stride + at + i / 2 * 4];
#pragma unroll
                    for (int part = 0; part < 4; ++part)
                        multiply_add(density_[m][part], a, b[part]);
                }
#pragma unroll
                for (int part = 0; part < 4; ++part)
                    if (!Diagonal)
                        norms_[part] = fma(b[part][0], b[part][0], fma(b[part][1], b[part][1], norms_[part]));
                    else if (run == 0)
                        for (double &value : b[part])
                            value *= value;
            }
        }
    }

    const V *values_;
    const double *origin_;
    const int d_, left_;
    const ProductLayout layout_;
    const double *coefficients_;
    Step<Diagonal> *const steps_;
    double density_[2][4][4] = {}; // 16 components by 8 rows each
    double norms_[4] = {};         // spherical: |y|^2 of rows g, this lane's features
};

template <typename T, PgkmCovariance Type>
__global__ void __launch_bounds__(threads, 3) density_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows;
    if (stopped(launch) || row >= item.n)
        return;
    const MixtureView &mixture = launch.mixtures[item.problem];
    const ProductShares<T> shares(launch.workspace, item, mixture.k);
    for (int first = static_cast<int>(blockIdx.z) * product_components; first < mixture.k;
         first += static_cast<int>(gridDim.z) * product_components) {
        const auto work = [&](const auto *values, const double *origin) {
            using V = std::remove_cv_t<std::remove_reference_t<decltype(*values)>>;
            constexpr bool diagonal = Type == PGKM_COVARIANCE_DIAG;
            DensityTile<T, V, diagonal> tile(launch, item, mixture, values, origin, row, first,
                                             reinterpret_cast<Step<diagonal> *>(memory));
            tile.run();
            tile.store(mixture, row, first, shares);
        };
        if constexpr (Type == PGKM_COVARIANCE_TIED)
            work(launch.workspace + item.rotated, nullptr);
        else
            work(launch.values + item.first * launch.d, mixture.origin);
        __syncthreads();
    }
}

// A thread joins a row's strips; rows that there are not get a factor of 0.
template <typename T>
__global__ void __launch_bounds__(threads) norms_kernel(Launch<T> launch)
{
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * threads + static_cast<int>(threadIdx.x);
    const int k = launch.mixtures[item.problem].k, strips = (k + strip - 1) / strip;
    const ProductShares<T> shares(launch.workspace, item, k);
    if (stopped(launch) || row >= shares.rows)
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
    constexpr int bytes = 2 * sizeof(Step<Type == PGKM_COVARIANCE_DIAG>);
    checked("cudaFuncSetAttribute", [&] { return allow_shared_memory(density_kernel<T, Type>, bytes); });
    density_kernel<T, Type><<<grid, threads, bytes, stream>>>(launch);
    launched("density_kernel");
}

} // namespace

void prepare_products(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                      PgkmCovariance type, unsigned long long *reach, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>((most_k + product_components - 1) / product_components *
                                              (product_components / (threads / 32)));
    prepare_kernel<<<dim3(static_cast<unsigned>(n_problems), std::min(most_blocks, blocks)), threads, 0, stream>>>(
        mixtures, static_cast<int>(d), type, reach);
    launched("prepare_kernel");
}

template <typename T>
void product_densities(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream)
{
    dim3 grid(extent.n_items, static_cast<unsigned>((extent.most_rows + tile_rows - 1) / tile_rows));
    grid.z =
        std::min(most_blocks, static_cast<unsigned>((extent.most_k + product_components - 1) / product_components));
    if (type == PGKM_COVARIANCE_DIAG)
        launch_densities<T, PGKM_COVARIANCE_DIAG>(launch, grid, stream);
    else if (type == PGKM_COVARIANCE_TIED)
        launch_densities<T, PGKM_COVARIANCE_TIED>(launch, grid, stream);
    else
        launch_densities<T, PGKM_COVARIANCE_SPHERICAL>(launch, grid, stream);
    const dim3 norms(extent.n_items, static_cast<unsigned>((extent.most_rows + threads - 1) / threads));
    norms_kernel<<<norms, threads, 0, stream>>>(launch);
    launched("norms_kernel");
}

template void product_densities<float>(const Launch<float> &, const Extent &, PgkmCovariance, cudaStream_t);
template void product_densities<double>(const Launch<double> &, const Extent &, PgkmCovariance, cudaStream_t);

} // namespace pgkm::cuda::mixture

// candidates.cu (mixture) - which components count for a row: a filter of log densities in bfloat16 (sparse.hpp).
//
// Data: a warp has 32 rows, a block 128, whose scaled features y' = s (x - origin) stay in shared memory as bfloat16;
// coefficients come in tiles of 64 components by 32 features. A row's list of up to 16 candidates lies in shared
// memory; a full list is cleared of those that a better component has put out of reach since.
// Threads: asynchronous copies run one step ahead, one barrier a step. Rows belong to one warp, so that lists do not
// depend on timing.
//
// Bound. A log density is c + sum a y' + b y'^2. Coefficients a, b and y' are rounded to 8 bits (2^-9), and so is the
// square of the rounded y': a product a y' errs by less than 2.02 2^-9 of itself, b y'^2 by less than 4.05 2^-9. Tensor
// cores add sixteen products and the accumulator after cutting them at 2^-23 of the largest: at most 18 x 2^-23 S a
// step, S = sum |a y'| + |b y'^2| <= |a| |y'| + |b| |y'^2| (Cauchy, Schwarz; norms are rounded up). c is rounded once,
// and the sum twice. So the error is at most (2.1 2^-9 + steps 2^-18) |a| |y'| + (4.1 2^-9 + steps 2^-18) |b| |y'^2| +
// 2^-22 |c|. Spherical: b |y'|^2 is float32, with a sum of at most 2^7 terms a lane: 2^-16 of itself. What is infinite
// or no number is a candidate.
#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "device/tensor_mma.cuh"
#include "device/warp.cuh"
#include "mixture/sparse.hpp"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int words = filter_depth / 2; // of a component's step, two values each
constexpr int stride = words + 4;       // without conflicts of banks
constexpr int warps = 4;
constexpr int rows = 32 * warps;
constexpr int threads = 32 * warps;

template <typename T, bool Diagonal>
class Filter {
  public:
    static constexpr int runs = Diagonal ? 2 : 1;
    static constexpr int step_words = runs * filter_components * stride;

    static constexpr std::size_t bytes(std::int64_t features)
    {
        return 4 * static_cast<std::size_t>(2 * step_words + rows * (features / 2 + 4) + 2 * rows + rows * list_size) +
               2 * rows * list_size;
    }

    __device__ Filter(const SparseLaunch<T> &launch, float *memory)
        : launch_(launch), k_(launch.mixture->k), layout_(k_, launch.d, Diagonal),
          features_(static_cast<int>(layout_.features)), row_words_(features_ / 2 + 4), steps_(memory),
          y_(memory + 2 * step_words), norms_(y_ + rows * row_words_), bounds_(norms_ + 2 * rows),
          lists_(reinterpret_cast<std::uint16_t *>(bounds_ + rows * list_size))
    {
    }

    __device__ void run()
    {
        load_rows();
        const int depth_steps = features_ / filter_depth;
        const int steps = static_cast<int>(layout_.components) / filter_components * depth_steps;
        copy(0, depth_steps);
        for (int step = 0; step < steps; ++step) {
            wait_copies<0>();
            __syncthreads();
            if (step + 1 < steps)
                copy(step + 1, depth_steps);
            multiply(steps_ + step % 2 * step_words, step % depth_steps * words);
            if (step % depth_steps == depth_steps - 1)
                join(step / depth_steps * filter_components);
        }
        store();
    }

  private:
    // Both values of a word.
    __device__ static unsigned squared(unsigned word)
    {
        const __nv_bfloat162 pair = *reinterpret_cast<const __nv_bfloat162 *>(&word), square = __hmul2(pair, pair);
        return *reinterpret_cast<const unsigned *>(&square);
    }

    // The warp's rows and their norms.
    __device__ void load_rows()
    {
        const double *origin = launch_.mixture->origin;
        const float *scales = launch_.arrays.filter + layout_.scales();
#pragma unroll 4
        for (int i = 0; i < 32; ++i) {
            const int own = 32 * warp() + i;
            const std::int64_t row = std::int64_t{blockIdx.x} * rows + own;
            float sum = 0.0f, squares = 0.0f;
            for (int f = lane(); f < features_; f += 32) {
                const double y = row < launch_.n && f < launch_.d
                                     ? (static_cast<double>(launch_.values[row * launch_.d + f]) - origin[f]) *
                                           static_cast<double>(scales[f])
                                     : 0.0;
                const auto value = static_cast<float>(y);
                reinterpret_cast<__nv_bfloat16 *>(y_ + own * row_words_)[f] = __float2bfloat16_rn(value);
                sum = fmaf(value, value, sum);
                squares = fmaf(value * value, value * value, squares);
            }
            sum = sum_lanes(sum);
            squares = sum_lanes(squares);
            if (lane() == 0) {
                norms_[2 * own] = sqrtf(sum) * (1.0f + 0x1p-14f);
                norms_[2 * own + 1] = Diagonal ? sqrtf(squares) * (1.0f + 0x1p-14f) : sum;
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int own = 32 * warp() + 8 * i + g();
            linear_[i] = norms_[2 * own];
            square_[i] = norms_[2 * own + 1];
        }
    }

    __device__ void copy(int step, int depth_steps) const
    {
        const int first = step / depth_steps * filter_components, from = step % depth_steps * filter_depth;
#pragma unroll
        for (int run = 0; run < runs; ++run)
            copy_rows<filter_components, words, stride, threads>(
                steps_ + step % 2 * step_words + run * filter_components * stride,
                launch_.arrays.filter + ((run * layout_.components + first) * features_ + from) / 2, features_ / 2,
                filter_components, words, true);
        commit_copies();
    }

    __device__ void multiply(const float *coefficients, int from)
    {
        const auto *y = reinterpret_cast<const unsigned *>(y_) + (32 * warp() + g()) * row_words_ + from + t();
        const auto *c = reinterpret_cast<const unsigned *>(coefficients) + g() * stride + t();
#pragma unroll
        for (int at = 0; at < words; at += 8) {
            unsigned a[2][4];
#pragma unroll
            for (int m = 0; m < 2; ++m)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[m][i] = y[(16 * m + i % 2 * 8) * row_words_ + at + i / 2 * 4];
#pragma unroll
            for (int run = 0; run < runs; ++run) {
#pragma unroll
                for (int part = 0; part < 8; ++part) {
                    const unsigned *b = c + (run * filter_components + 8 * part) * stride + at;
#pragma unroll
                    for (int m = 0; m < 2; ++m)
                        tensor::multiply_bf16(density_[m][part], a[m], b[0], b[4]);
                }
                if (run + 1 < runs)
#pragma unroll
                    for (int m = 0; m < 2; ++m)
#pragma unroll
                        for (int i = 0; i < 4; ++i)
                            a[m][i] = squared(a[m][i]);
            }
        }
    }

    // Half an error bound's width: a lane's row i = 2 m + half.
    __device__ float error(const float4 &terms, int i) const
    {
        const float square = Diagonal ? terms.z * square_[i] : fabsf(terms.z) * 0x1p-16f * square_[i];
        return fmaf(terms.y, linear_[i], square) + terms.w;
    }

    // Components [first, first + 64) to the rows' lists.
    __device__ void join(int first)
    {
        const float4 *terms =
            reinterpret_cast<const float4 *>(launch_.arrays.filter + layout_.terms()) + first + 2 * t();
        float most[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            most[i] = most_[i];
#pragma unroll
        for (int part = 0; part < 8; ++part)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float4 own = terms[8 * part + c];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float &value = density_[i / 2][part][i % 2 * 2 + c];
                    value += own.x;
                    if (!Diagonal)
                        value = fmaf(own.z, square_[i], value);
                    most[i] = fmaxf(most[i], value - error(own, i));
                }
            }
        unsigned marks[4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            most_[i] = max_lanes<4>(most[i]);
#pragma unroll
        for (int part = 0; part < 8; ++part)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float4 own = terms[8 * part + c];
                const bool inside = first + 8 * part + 2 * t() + c < k_;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float &value = density_[i / 2][part][i % 2 * 2 + c];
                    value += error(own, i);
                    if (inside && !(value < most_[i] - least_share))
                        marks[i] |= 1u << (2 * part + c);
                }
            }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            append(i, marks[i], first);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int part = 0; part < 8; ++part)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    density_[m][part][i] = 0.0f;
    }

    // This lane's marked components to the list of its row i; all lanes of the warp.
    __device__ void append(int i, unsigned marks, int first)
    {
        const int own = __popc(marks);
        if (!__any_sync(~0u, own != 0))
            return;
        const int one = __shfl_up_sync(~0u, own, 1, 4), two = __shfl_up_sync(~0u, own, 2, 4),
                  three = __shfl_up_sync(~0u, own, 3, 4);
        const int before = (t() > 0 ? one : 0) + (t() > 1 ? two : 0) + (t() > 2 ? three : 0);
        const int all = __shfl_sync(~0u, before + own, 3, 4);
        const int row = 32 * warp() + 8 * i + g();
        if (__any_sync(~0u, count_[i] <= list_size && count_[i] + all > list_size)) {
            __syncwarp();
            if (t() == 0 && count_[i] <= list_size && count_[i] + all > list_size)
                count_[i] = clear(row, count_[i], most_[i] - least_share);
            count_[i] = __shfl_sync(~0u, count_[i], 0, 4);
            __syncwarp();
        }
        if (count_[i] + all > list_size) { // full for good
            count_[i] = list_size + 1;
            return;
        }
        int at = row * list_size + count_[i] + before;
#pragma unroll
        for (int bit = 0; bit < 16; ++bit)
            if ((marks >> bit & 1) != 0) {
                lists_[at] = static_cast<std::uint16_t>(first + bit / 2 * 8 + 2 * t() + bit % 2);
                bounds_[at++] = density_[i / 2][bit / 2][i % 2 * 2 + bit % 2];
            }
        count_[i] += all;
    }

    // Leaves those that may reach `least` in a row's list, and says how many.
    __device__ int clear(int row, int count, float least) const
    {
        int left = row * list_size;
        for (int at = left, end = left + count; at < end; ++at)
            if (!(bounds_[at] < least)) {
                lists_[left] = lists_[at];
                bounds_[left++] = bounds_[at];
            }
        return left - row * list_size;
    }

    // The lists and counts; a lane for each row.
    __device__ void store()
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (t() == 0) {
                const int own = 32 * warp() + 8 * i + g();
                norms_[2 * own] = most_[i];
                norms_[2 * own + 1] = __int_as_float(count_[i]);
            }
        __syncwarp();
        const int own = 32 * warp() + lane();
        const std::int64_t row = std::int64_t{blockIdx.x} * rows + own;
        if (row >= launch_.n)
            return;
        int count = __float_as_int(norms_[2 * own + 1]);
        if (count <= list_size)
            count = clear(own, count, norms_[2 * own] - least_share);
        launch_.arrays.counts[row] = count > list_size ? k_ : count;
        for (int i = 0; i < count && count <= list_size; ++i)
            launch_.arrays.lists[row * list_size + i] = lists_[own * list_size + i];
    }

    const SparseLaunch<T> &launch_;
    const int k_;
    const FilterLayout layout_;
    const int features_, row_words_;
    float *const steps_, *const y_, *const norms_, *const bounds_;
    std::uint16_t *const lists_;
    float linear_[4], square_[4]; // |y'| and |y'^2| (spherical: |y'|^2) of rows 8 i + g
    float most_[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}; // a log density is at least that
    int count_[4] = {};
    float density_[2][8][4] = {};
};

template <typename T, bool Diagonal>
__global__ void __launch_bounds__(threads, 3) candidates_kernel(SparseLaunch<T> launch)
{
    extern __shared__ float4 memory[];
    if (stopped(launch.stop))
        return;
    Filter<T, Diagonal>(launch, reinterpret_cast<float *>(memory)).run();
}

template <typename T, bool Diagonal>
void launch_filter(const SparseLaunch<T> &launch, cudaStream_t stream)
{
    const auto bytes = static_cast<int>(Filter<T, Diagonal>::bytes(FilterLayout(1, launch.d, Diagonal).features));
    enqueue(candidates_kernel<T, Diagonal>, (launch.n + rows - 1) / rows, threads, bytes, stream, launch);
}

} // namespace

bool sparse_fits(const Context &context, std::int64_t k, std::int64_t d, bool diagonal)
{
    constexpr std::int64_t least_components = 128; // below, products cost as little
    const std::int64_t features = FilterLayout(1, d, diagonal).features;
    return context.facts.mma && k >= least_components && k <= 65535 && d >= 8 &&
           (diagonal ? Filter<float, true>::bytes(features) : Filter<float, false>::bytes(features)) <=
               static_cast<std::size_t>(context.facts.shared_bytes_per_block);
}

template <typename T>
void find_candidates(const SparseLaunch<T> &launch, cudaStream_t stream)
{
    if (launch.diagonal)
        launch_filter<T, true>(launch, stream);
    else
        launch_filter<T, false>(launch, stream);
}

template void find_candidates<float>(const SparseLaunch<float> &, cudaStream_t);
template void find_candidates<double>(const SparseLaunch<double> &, cudaStream_t);

} // namespace pgkm::cuda::mixture

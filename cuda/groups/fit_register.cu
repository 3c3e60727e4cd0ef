// fit_register.cu (groups) - Lloyd's iterations of many problems of float32 rows with d <= 16, one
// block each; up to 1024 rows stay in the block's registers from the first iteration to the last.
//
// Labels: the float32 distances S = sum of fma(x - c, x - c) are a filter. A difference of two
// float32 values and each fma err by at most 2^-24 of their results, all terms are positive, so
// that S lies within a factor 1 +- (d + 3) 2^-24 of the exact distance, plus d 2^-149 where terms
// underflow. A row whose second least S exceeds the least by more than twice that has its label;
// the others are settled by the contract's distance over all centroids. An S that overflowed is
// infinite, which leaves the row to be settled.
//
// Sums are kept from one iteration to the next: rows in registers know their last label, and
// only those whose label changed are taken off one sum and added to another (integer sums make
// that exact). Where nothing changed, the centroids cannot move.
#include "../choose.hpp"
#include "../limbs.cuh"
#include "fit.cuh"

namespace pgkm::cuda {
namespace {

constexpr int held = 4; // rows of a thread in registers

struct Shared {
    std::int64_t *sums;      // k x (2 d + 2): limbs of features, then of the mass
    double       *shifts;    // k
    float        *centroids; // k x D, padded with zeros
    float        *fresh;     // k x D
    std::int32_t *cells;     // group_replicas x k x (2 d + 2)
    std::int32_t *exponents; // D
};

__host__ __device__ inline std::size_t shared_bytes(std::size_t k, std::size_t d, std::size_t padded)
{
    const std::size_t cells = k * (2 * d + 2);
    return cells * 8 + k * 8 + 2 * k * padded * 4 + 12 + group_replicas * cells * 4 + padded * 4;
}

__device__ Shared carve(int k, int d, int padded)
{
    extern __shared__ double memory[];
    Shared s;
    s.sums = reinterpret_cast<std::int64_t *>(memory);
    s.shifts = reinterpret_cast<double *>(s.sums + k * (2 * d + 2));
    // 16-byte aligned, for vector loads.
    const std::uintptr_t after = reinterpret_cast<std::uintptr_t>(s.shifts + k);
    s.centroids = reinterpret_cast<float *>((after + 15) / 16 * 16);
    s.fresh = s.centroids + k * padded;
    s.cells = reinterpret_cast<std::int32_t *>(s.fresh + k * padded);
    s.exponents = s.cells + group_replicas * k * (2 * d + 2);
    return s;
}

template <int D>
struct Row {
    float x[D];
};

template <int D>
__device__ Row<D> load_row(const View<float> &view, std::int64_t row)
{
    Row<D> r;
#pragma unroll
    for (int f = 0; f < D; ++f)
        r.x[f] = f < view.d ? view.values[row * view.d + f] : 0.0f;
    return r;
}

// The contract's label. Padded features add fma(0, 0, sum), which changes nothing.
template <int D>
__device__ __noinline__ int settle(const Row<D> &r, const float *centroids, int k)
{
    Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
    for (int j = 0; j < k; ++j) {
        double sum = 0.0;
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const double difference = static_cast<double>(r.x[f]) - static_cast<double>(centroids[j * D + f]);
            sum = ::fma(difference, difference, sum);
        }
        if (sum < best.distance)
            best = {sum, j};
    }
    return best.label;
}

template <int D>
__device__ int label_of(const Row<D> &r, const float *centroids, int k)
{
    float best = INFINITY, second = INFINITY;
    int label = 0;
#pragma unroll 2
    for (int j = 0; j < k; ++j) {
        float sum = 0.0f;
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const float difference = r.x[f] - centroids[j * D + f];
            sum = __fmaf_rn(difference, difference, sum);
        }
        second = fminf(second, fmaxf(best, sum));
        label = sum < best ? j : label;
        best = fminf(best, sum);
    }
    constexpr float slack = 1.0f + 4.0f * (D + 4) * 0x1p-24f;
    if (second > best * slack + 0x1p-130f)
        return label;
    return settle(r, centroids, k);
}

// Adds the row's limbs to its cluster's cells, or takes them off (sign -1).
template <int D>
__device__ void add_row(const View<float> &view, const Shared &s, const Row<D> &r, std::int64_t row, int label, int sign)
{
    std::int32_t *cell = s.cells + (static_cast<int>(threadIdx.x) % group_replicas * view.k + label) * (2 * view.d + 2);
#pragma unroll
    for (int f = 0; f < D; ++f) {
        if (f >= view.d)
            break;
        Split limbs;
        if (view.weights == nullptr && has_float_scale(s.exponents[f])) {
            limbs = biased_limbs(r.x[f], float_scale(s.exponents[f]));
            limbs.hi -= rounding_bits;
            limbs.lo -= rounding_bits;
        } else {
            limbs = feature_limbs(view, row, f);
        }
        atomicAdd(cell + 2 * f, sign * limbs.hi);
        atomicAdd(cell + 2 * f + 1, sign * limbs.lo);
    }
    const Split mass = mass_limbs(view, row);
    if (mass.hi != 0)
        atomicAdd(cell + 2 * view.d, sign * mass.hi);
    atomicAdd(cell + 2 * view.d + 1, sign * mass.lo);
}

// Rows that stay: each thread's are threadIdx.x, + group_threads, ... below n.
template <int D>
struct HeldRows {
    Row<D> row[held];
    int    label[held];

    __device__ void load(const View<float> &view)
    {
#pragma unroll
        for (int i = 0; i < held; ++i) {
            const std::int64_t at = i * group_threads + static_cast<int>(threadIdx.x);
            label[i] = -1;
            row[i] = load_row<D>(view, at < view.n ? at : 0);
        }
    }
    // Labels anew; sums follow. Whether any label of the block changed.
    __device__ bool pass(const View<float> &view, const Shared &s)
    {
        bool changed = false;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            const std::int64_t at = i * group_threads + static_cast<int>(threadIdx.x);
            if (at >= view.n)
                break;
            const int now = label_of(row[i], s.centroids, view.k);
            if (now == label[i])
                continue;
            if (label[i] >= 0)
                add_row(view, s, row[i], at, label[i], -1);
            add_row(view, s, row[i], at, now, 1);
            label[i] = now;
            changed = true;
        }
        if (!__syncthreads_or(changed))
            return false;
        flush_cells(s.sums, s.cells, view.k * (2 * view.d + 2));
        return true;
    }
};

// More rows are read in every iteration, and all of them added.
template <int D>
struct PassingRows {
    __device__ void load(const View<float> &) {}
    __device__ bool pass(const View<float> &view, const Shared &s)
    {
        const int cells = view.k * (2 * view.d + 2);
        for (int i = threadIdx.x; i < cells; i += group_threads)
            s.sums[i] = 0;
        __syncthreads();
        int round = 0;
        for (std::int64_t start = 0; start < view.n; start += group_threads, ++round) {
            if (round == group_rounds) {
                round = 0;
                flush_cells(s.sums, s.cells, cells);
            }
            const std::int64_t at = start + threadIdx.x;
            if (at >= view.n)
                continue;
            const Row<D> r = load_row<D>(view, at);
            add_row(view, s, r, at, label_of(r, s.centroids, view.k), 1);
        }
        flush_cells(s.sums, s.cells, cells);
        return true;
    }
};

// New centroids from the sums, in the order of update_centroids(); the shifts go to s.shifts.
template <int D>
__device__ void move_centroids(const View<float> &view, const Shared &s, bool cosine)
{
    const int d = view.d;
    for (int i = threadIdx.x; i < view.k * d; i += group_threads) {
        const int j = i / d, f = i - j * d;
        const std::int64_t *sums = s.sums + j * (2 * d + 2);
        s.fresh[j * D + f] = static_cast<float>(mean_of(join_limb_sums(sums[2 * f], sums[2 * f + 1]),
                                                        join_limb_sums(sums[2 * d], sums[2 * d + 1]), s.exponents[f],
                                                        view.weight_exponent));
    }
    __syncthreads();
    for (int j = threadIdx.x; j < view.k; j += group_threads) {
        float *fresh = s.fresh + j * D, *old = s.centroids + j * D;
        s.shifts[j] = 0.0;
        if (cosine && !normalise(fresh, d))
            continue;
        s.shifts[j] = exact_distance(fresh, old, d);
        for (int f = 0; f < d; ++f)
            old[f] = fresh[f];
    }
    __syncthreads();
}

template <int D, typename Rows>
__device__ int iterate(const GroupFit<float> &a, const View<float> &view, const Shared &s, GroupProblem &problem, int &iteration)
{
    __shared__ int stop;
    Rows rows;
    rows.load(view);
    if (threadIdx.x == 0)
        stop = running;
    __syncthreads();
    while (iteration < a.max_iter && stop == running) {
        if (rows.pass(view, s)) {
            if (group_has_empty(s.sums, view.k, view.d))
                return empty_cluster;
            move_centroids<D>(view, s, a.cosine);
        } else { // the same labels, the same sums, the same centroids
            for (int j = threadIdx.x; j < view.k; j += group_threads)
                s.shifts[j] = 0.0;
            __syncthreads();
        }
        ++iteration;
        if (threadIdx.x == 0)
            stop = close_group_iteration(problem, s.shifts, *a.cancel != 0);
        __syncthreads();
    }
    return stop;
}

template <int D>
__global__ void __launch_bounds__(group_threads) register_fit_kernel(GroupFit<float> a)
{
    GroupProblem &problem = a.problems[blockIdx.x];
    const View<float> view = group_view(a, problem);
    float *centroids = a.centroids + problem.cluster * a.d;
    const Shared s = carve(view.k, view.d, D);
    const int cells = view.k * (2 * view.d + 2);
    for (int i = threadIdx.x; i < view.k * D; i += group_threads) {
        const int j = i / D, f = i - j * D;
        s.centroids[i] = f < view.d ? centroids[j * view.d + f] : 0.0f;
        s.fresh[i] = 0.0f;
    }
    for (int i = threadIdx.x; i < cells; i += group_threads)
        s.sums[i] = 0;
    for (int i = threadIdx.x; i < group_replicas * cells; i += group_threads)
        s.cells[i] = 0;
    for (int f = threadIdx.x; f < view.d; f += group_threads)
        s.exponents[f] = view.feature_exponent[f];
    int iteration = 0;
    const int stop = view.n <= held * group_threads
                         ? iterate<D, HeldRows<D>>(a, view, s, problem, iteration)
                         : iterate<D, PassingRows<D>>(a, view, s, problem, iteration);
    for (int i = threadIdx.x; i < view.k * view.d; i += group_threads)
        centroids[i] = s.centroids[i / view.d * D + i % view.d];
    if (threadIdx.x == 0) {
        problem.n_iter = iteration;
        problem.stop = stop;
    }
}

template <int D>
void launch(Context &context, const GroupFit<float> &arguments, int problems, int most_k)
{
    const std::size_t bytes = shared_bytes(static_cast<std::size_t>(most_k), static_cast<std::size_t>(arguments.d), D);
    checked("cudaFuncSetAttribute", [&] {
        return cudaFuncSetAttribute(register_fit_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes));
    });
    register_fit_kernel<D><<<static_cast<unsigned>(problems), group_threads, bytes, context.compute.get()>>>(arguments);
    launched("register_fit_kernel");
}

} // namespace

bool launch_register_fit(Context &context, const GroupFit<float> &arguments, int problems, int most_k)
{
    if (arguments.d <= 2)
        launch<2>(context, arguments, problems, most_k);
    else if (arguments.d <= 4)
        launch<4>(context, arguments, problems, most_k);
    else if (arguments.d <= 8)
        launch<8>(context, arguments, problems, most_k);
    else if (arguments.d <= 16)
        launch<16>(context, arguments, problems, most_k);
    else
        return false;
    return true;
}

} // namespace pgkm::cuda

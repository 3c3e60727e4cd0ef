// fit_register.cu (groups) - Lloyd's iterations of many problems of float32 rows with d <= 16, one
// block each; up to 1024 rows stay in the block's registers from the first iteration to the last.
//
// Sums are kept from one iteration to the next: rows in registers know their last label, and
// those whose label changed are queued, to be taken off one sum and added to another by all
// threads together, one feature each (integer sums make that exact). Where nothing changed, the
// centroids cannot move.
#include "plan/choose.hpp"
#include "device/limbs.cuh"
#include "groups/fit.cuh"
#include "groups/labels.cuh"

namespace pgkm::cuda {
namespace {

constexpr int held = 4; // rows of a thread in registers

// A row whose label changed: from is 0 for none, else the old label + 1.
struct Moved {
    std::int32_t  row;
    std::uint16_t from;
    std::uint16_t to;
};

struct Shared {
    std::int64_t *sums;      // k x width
    double       *shifts;    // k
    float        *centroids; // k x D, padded with zeros
    float        *fresh;     // k x D
    std::int32_t *cells;     // group_replicas x k x width
    std::int32_t *exponents; // D
    std::int32_t *queued;
    Moved        *queue; // held x group_threads
    int           width;
};

__host__ __device__ inline std::size_t shared_bytes(std::size_t k, std::size_t width, std::size_t padded)
{
    const std::size_t cells = k * width;
    return cells * 8 + k * 8 + 2 * k * padded * 4 + 12 + group_replicas * cells * 4 + padded * 4 + 4 +
           held * group_threads * sizeof(Moved);
}

__device__ Shared carve(int k, int width, int padded)
{
    extern __shared__ double memory[];
    Shared s;
    s.width = width;
    s.sums = reinterpret_cast<std::int64_t *>(memory);
    s.shifts = reinterpret_cast<double *>(s.sums + k * width);
    // 16-byte aligned, for vector loads.
    const std::uintptr_t after = reinterpret_cast<std::uintptr_t>(s.shifts + k);
    s.centroids = reinterpret_cast<float *>((after + 15) / 16 * 16);
    s.fresh = s.centroids + k * padded;
    s.cells = reinterpret_cast<std::int32_t *>(s.fresh + k * padded);
    s.exponents = s.cells + group_replicas * k * width;
    s.queued = s.exponents + padded;
    s.queue = reinterpret_cast<Moved *>(s.queued + 1);
    return s;
}

// Limbs of what biased_limbs() is not for. Rare, or of weighted rows: called, so that it costs the loops no registers.
__device__ __noinline__ Split other_limbs(double value, int exponent, bool weighted, int part)
{
    const double scale = power_of_two(exponent);
    return split_limbs(weighted ? quantise_part(value, scale, part) : quantise(value, scale));
}

// The limbs of feature f of a row, or of its mass (f = d); of weighted rows the other part's follow.
__device__ Split limbs_of(const View<float> &view, const Shared &s, std::int64_t row, int f)
{
    const bool weighted = view.weights != nullptr;
    const int part = f > view.d ? 1 : 0;
    f -= part * (view.d + 1);
    const double weight = weighted ? view.weights[row] : 1.0;
    if (f == view.d)
        return weighted ? other_limbs(weight, view.weight_exponent, true, part) : Split{0, 1};
    const float value = view.values[row * view.d + f];
    if (weighted || !has_float_scale(s.exponents[f]))
        return other_limbs(weight * static_cast<double>(value), s.exponents[f], weighted, part);
    const Split biased = biased_limbs(value, float_scale(s.exponents[f]));
    return {biased.hi - rounding_bits, biased.lo - rounding_bits};
}

__device__ std::int32_t *cell_of(const View<float> &view, const Shared &s, int replica, int label, int f)
{
    return s.cells + (replica * view.k + label) * s.width + 2 * f;
}

// Moves the queued rows from their old clusters (0: none, else label + 1) to the new ones; a copy
// of the cells meets a quarter of at most 1024 rows.
__device__ void move_queued(const View<float> &view, const Shared &s, int queued)
{
    const int sums = s.width / 2;
    for (int i = threadIdx.x; i < queued * sums; i += group_threads) {
        const int place = i / sums, f = i - place * sums, replica = place % group_replicas;
        const Moved moved = s.queue[place];
        const Split limbs = limbs_of(view, s, moved.row, f);
        std::int32_t *to = cell_of(view, s, replica, moved.to, f);
        atomicAdd(to, limbs.hi);
        atomicAdd(to + 1, limbs.lo);
        if (moved.from == 0)
            continue;
        std::int32_t *from = cell_of(view, s, replica, moved.from - 1, f);
        atomicAdd(from, -limbs.hi);
        atomicAdd(from + 1, -limbs.lo);
    }
}

// Rows that stay: each thread's are threadIdx.x, + group_threads, ... below n.
template <int D>
struct HeldRows {
    GroupRow<D>  row[held];
    std::int32_t at[held];
    int          label[held];

    __device__ void load(const View<float> &view)
    {
#pragma unroll
        for (int i = 0; i < held; ++i) {
            at[i] = i * group_threads + static_cast<int>(threadIdx.x);
            label[i] = -1;
            at[i] = at[i] < view.n ? at[i] : 0;
            row[i] = load_group_row<D>(view, at[i]);
        }
    }
    // Labels anew; sums follow. Whether any label of the block changed.
    __device__ bool pass(const View<float> &view, const Shared &s)
    {
        int now[held];
        labels_of(view, row, at, s.centroids, now);
        if (threadIdx.x == 0)
            *s.queued = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < held; ++i)
            if (i * group_threads + static_cast<int>(threadIdx.x) < view.n && now[i] != label[i]) {
                const int place = atomicAdd(s.queued, 1);
                s.queue[place] = {at[i], static_cast<std::uint16_t>(label[i] + 1),
                                  static_cast<std::uint16_t>(now[i])};
                label[i] = now[i];
            }
        __syncthreads();
        const int queued = *s.queued;
        if (queued == 0)
            return false;
        move_queued(view, s, queued);
        flush_cells(s.sums, s.cells, view.k * s.width);
        return true;
    }
};

// More rows are read in every iteration, and all of them added.
template <int D>
struct PassingRows {
    __device__ void load(const View<float> &) {}
    __device__ bool pass(const View<float> &view, const Shared &s)
    {
        const int cells = view.k * s.width;
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
            const GroupRow<D> row[1] = {load_group_row<D>(view, at)};
            const std::int32_t number[1] = {static_cast<std::int32_t>(at)};
            int label[1];
            labels_of(view, row, number, s.centroids, label);
            for (int f = 0; f < s.width / 2; ++f) {
                const Split limbs = limbs_of(view, s, at, f);
                std::int32_t *cell = cell_of(view, s, static_cast<int>(threadIdx.x) % group_replicas, label[0], f);
                atomicAdd(cell, limbs.hi);
                atomicAdd(cell + 1, limbs.lo);
            }
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
        const std::int64_t *sums = s.sums + j * s.width;
        s.fresh[j * D + f] = static_cast<float>(mean_of(group_sum(sums, d, f, s.width), group_sum(sums, d, d, s.width),
                                                        s.exponents[f], view.weight_exponent));
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
            if (group_has_empty(s.sums, view.k, view.d, s.width))
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
__global__ void __launch_bounds__(group_threads, D <= 8 ? 3 : 2) register_fit_kernel(GroupFit<float> a)
{
    if (group_cancelled(a.cancel))
        return;
    GroupProblem &problem = a.problems[blockIdx.x];
    const View<float> view = group_view(a, problem);
    float *centroids = a.centroids + problem.cluster * a.d;
    const Shared s = carve(view.k, a.width, D);
    const int cells = view.k * s.width;
    stage_centroids<D>(view, s.centroids);
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
    const std::size_t bytes = shared_bytes(static_cast<std::size_t>(most_k), static_cast<std::size_t>(arguments.width), D);
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(register_fit_kernel<D>, static_cast<int>(bytes));
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

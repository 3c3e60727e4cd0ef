// fit.cu (groups) - Lloyd's iterations of many problems, each by one block from start to end.
//
// Distances are the contract's own. Centroids lie in shared memory in float64; sums as in
// fused/register.cu. float32 rows of few features go to fit_register.cu.
#include <cstring>

#include "groups/fit.cuh"

namespace pgkm::cuda {

std::size_t group_fit_bytes(std::int64_t k, std::int64_t d, bool weighted);

namespace {

struct Shared {
    double       *centroids; // k x d
    std::int64_t *sums;      // k x width
    double       *shifts;    // k
    std::int32_t *cells;     // group_replicas x k x width
    int           width;
};

__device__ Shared carve(int k, int d, int width)
{
    extern __shared__ double memory[];
    Shared s;
    s.centroids = memory;
    s.width = width;
    s.sums = reinterpret_cast<std::int64_t *>(memory + k * d);
    s.shifts = reinterpret_cast<double *>(s.sums + k * s.width);
    s.cells = reinterpret_cast<std::int32_t *>(s.shifts + k);
    return s;
}

template <typename T>
__device__ void sum_rows(const View<T> &view, const Shared &s)
{
    const int cells = view.k * s.width, parts = parts_of(view.weights != nullptr);
    int round = 0;
    for (std::int64_t start = 0; start < view.n; start += group_threads, ++round) {
        if (round == group_rounds) {
            round = 0;
            flush_cells(s.sums, s.cells, cells);
        }
        const std::int64_t row = start + threadIdx.x;
        if (row >= view.n)
            continue;
        const T *x = view.values + row * view.d;
        double least = INFINITY;
        int label = 0;
        for (int j = 0; j < view.k; ++j) {
            const double distance = exact_distance(x, s.centroids + j * view.d, view.d);
            if (distance < least) {
                least = distance;
                label = j;
            }
        }
        std::int32_t *cell = s.cells + static_cast<int>(threadIdx.x) % group_replicas * cells + label * s.width;
        for (int part = 0; part < parts; ++part) {
            for (int f = 0; f < view.d; ++f, cell += 2) {
                const Split limbs = feature_limbs(view, row, f, part);
                atomicAdd(cell, limbs.hi);
                atomicAdd(cell + 1, limbs.lo);
            }
            const Split mass = mass_limbs(view, row, part);
            if (mass.hi != 0)
                atomicAdd(cell, mass.hi);
            atomicAdd(cell + 1, mass.lo);
            cell += 2;
        }
    }
    flush_cells(s.sums, s.cells, cells);
}

// New centroid of cluster j by one thread, in the order of update_centroids(); the shift goes to s.shifts.
template <typename T>
__device__ void move_centroid(const View<T> &view, const Shared &s, int j, bool cosine, T *fresh)
{
    const int d = view.d;
    const std::int64_t *sums = s.sums + j * s.width;
    const Int128 mass = group_sum(sums, d, d, s.width);
    s.shifts[j] = 0.0;
    for (int f = 0; f < d; ++f)
        fresh[f] = static_cast<T>(
            mean_of(group_sum(sums, d, f, s.width), mass, view.feature_exponent[f], view.weight_exponent));
    if (cosine && !normalise(fresh, d)) {
        for (int f = 0; f < d; ++f)
            fresh[f] = static_cast<T>(s.centroids[j * d + f]);
        return;
    }
    s.shifts[j] = exact_distance(fresh, s.centroids + j * d, d);
    for (int f = 0; f < d; ++f)
        s.centroids[j * d + f] = static_cast<double>(fresh[f]);
}

template <typename T>
__global__ void __launch_bounds__(group_threads) fit_kernel(GroupFit<T> a)
{
    __shared__ int stop;
    if (group_cancelled(a.cancel))
        return;
    GroupProblem &problem = a.problems[blockIdx.x];
    const int d = a.d, k = problem.k;
    const Shared s = carve(k, d, a.width);
    const int cells = k * s.width;
    T *centroids = a.centroids + problem.cluster * d;
    const View<T> view = group_view(a, problem);
    for (int i = threadIdx.x; i < k * d; i += group_threads)
        s.centroids[i] = static_cast<double>(centroids[i]);
    for (int i = threadIdx.x; i < group_replicas * cells; i += group_threads)
        s.cells[i] = 0;
    if (threadIdx.x == 0)
        stop = running;
    int iteration = 0;
    __syncthreads();
    while (iteration < a.max_iter && stop == running) {
        for (int i = threadIdx.x; i < cells; i += group_threads)
            s.sums[i] = 0;
        __syncthreads();
        sum_rows(view, s);
        if (group_has_empty(s.sums, k, d, s.width)) {
            if (threadIdx.x == 0)
                stop = empty_cluster;
            __syncthreads();
            break;
        }
        for (int j = threadIdx.x; j < k; j += group_threads)
            move_centroid(view, s, j, a.cosine, centroids + std::int64_t{j} * d);
        __syncthreads();
        ++iteration;
        if (threadIdx.x == 0)
            stop = close_group_iteration(problem, s.shifts, *a.cancel != 0);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        problem.n_iter = iteration;
        problem.stop = stop;
    }
}

template <typename T>
void launch_fit(Context &context, const GroupFit<T> &arguments, const std::vector<GroupProblem> &problems)
{
    std::int32_t most_k = 0;
    for (const GroupProblem &problem : problems)
        most_k = std::max(most_k, problem.k);
    const auto count = static_cast<int>(problems.size());
    if constexpr (sizeof(T) == 4)
        if (launch_register_fit(context, arguments, count, most_k))
            return;
    const std::size_t bytes = group_fit_bytes(most_k, arguments.d, arguments.weights != nullptr);
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(fit_kernel<T>, static_cast<int>(bytes));
    });
    fit_kernel<T><<<static_cast<unsigned>(count), group_threads, bytes, context.compute.get()>>>(arguments);
    launched("groups fit_kernel");
}

} // namespace

template <typename T>
std::vector<std::int64_t> fit_groups(Data &data, PgkmProblem *problems, const std::vector<std::int64_t> &which,
                                     const PgkmFitParams &params)
{
    std::vector<std::int64_t> left;
    if (which.empty())
        return left;
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    Packed<T> packed(data, problems, which, true);
    DeviceArray<std::int32_t> cancel(context.budget, 1);
    cancel.fill_zero(stream);
    const bool weighted = data.host.weights != nullptr;
    launch_fit<T>(context,
                  {reinterpret_cast<const T *>(data.values.get()), weighted ? data.weights.get() : nullptr, data.host.d,
                   group_width(data.host.d, weighted), packed.device_problems.get(), packed.centroids.get(),
                   packed.exponents.get(), params.max_iter, params.metric == PGKM_COSINE, cancel.get()},
                  packed.problems);
    context.report("iterating", 0, 0, 0.0);
    context.wait(stream, cancel.get());
    std::vector<T> centroids(packed.centroids.count());
    packed.centroids.download(centroids.data(), centroids.size(), stream);
    packed.device_problems.download(packed.problems.data(), packed.problems.size(), stream);
    context.wait(stream);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const GroupProblem &from = packed.problems[i];
        if (from.stop == empty_cluster || from.stop == compare_labels) {
            left.push_back(which[i]);
            continue;
        }
        PgkmProblem &to = problems[which[i]];
        to.n_iter = from.n_iter;
        to.converged = from.converged;
        to.shift = from.shift;
        std::memcpy(to.centroids, centroids.data() + from.cluster * data.host.d,
                    static_cast<std::size_t>(from.k) * data.row_bytes());
    }
    return left;
}

template std::vector<std::int64_t> fit_groups<float>(Data &, PgkmProblem *, const std::vector<std::int64_t> &,
                                                     const PgkmFitParams &);
template std::vector<std::int64_t> fit_groups<double>(Data &, PgkmProblem *, const std::vector<std::int64_t> &,
                                                      const PgkmFitParams &);

} // namespace pgkm::cuda

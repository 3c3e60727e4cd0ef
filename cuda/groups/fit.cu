// fit.cu (groups) - Lloyd's iterations of many problems, each by one block from start to end, in one launch.
//
// Shape: problems of at most group_rows_limit rows whose sums fit a block's shared memory (pack.cu). How rows get
// their labels is the labeller's (labels.cuh), how they are summed is in sums.cuh.
// Data: centroids, new centroids and sums lie in shared memory. With float32 rows of at most 16 features, up to 1,024
// rows stay in the block's registers from the first iteration to the last, with their last label. Those whose label
// changed are queued, to be taken off one sum and added to another by all threads together, one feature each; integer
// sums make that exact. Where nothing changed, the centroids cannot move. Other rows are read, and all of them added,
// in every iteration.
// Threads: barriers of the block between labels, sums, new centroids and the decision; blocks do not wait for each
// other.
// Reference: the contract's fit (numeric/contract.hpp): same labels, sums and centroids.
// Paper: Lloyd 1982, Least squares quantization in PCM.
#include <cstring>

#include "groups/labels.cuh"
#include "groups/sums.cuh"

namespace pgkm::cuda {
namespace {

constexpr int held = 4;                                             // rows of a thread in registers
constexpr int replicas = 4;                                         // copies of the counters
constexpr int rounds = limb_additions / (group_threads / replicas); // of a row per thread, between flushes

template <typename T>
struct Arguments {
    const T *values;
    const double *weights;
    int d;
    int width; // group_width()
    GroupProblem *problems;
    T *centroids;                  // of all problems
    const FeatureScale<T> *scales; // problems x d
    int max_iter;
    bool cosine;
    const volatile std::int32_t *cancel;
};

// A row whose label changed: from is 0 for none, else the old label + 1.
struct Moved {
    std::int32_t row;
    std::uint16_t from;
    std::uint16_t to;
};

// One block's shared memory.
template <typename T>
struct Shared {
    std::int64_t *sums;      // k x width
    double *shifts;          // k
    T *centroids;            // k x pitch
    T *fresh;                // k x pitch: the new ones
    FeatureScale<T> *scales; // d
    std::int32_t *counters;  // replicas x k x width
    std::int32_t *queued;
    Moved *queue; // held x group_threads
    int width;
    std::size_t bytes;
};

// Its parts one after the other; without the new centroids and the queue where no row is held.
template <typename Labels, typename T = typename Labels::Element>
__host__ __device__ Shared<T> carve(char *memory, std::int64_t k, int d, int width)
{
    Shared<T> s = {};
    s.width = width;
    const auto take = [&](auto *&array, std::int64_t count) {
        array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(memory + s.bytes);
        s.bytes += static_cast<std::size_t>(count) * sizeof *array;
    };
    take(s.sums, k * width);
    take(s.shifts, k);
    s.bytes = (s.bytes + sizeof *s.scales - 1) / sizeof *s.scales * sizeof *s.scales;
    take(s.scales, d);
    s.bytes = (s.bytes + 15) / 16 * 16; // for vector loads
    take(s.centroids, k * Labels::pitch(d));
    if (Labels::filtered)
        take(s.fresh, k * Labels::pitch(d));
    take(s.counters, replicas * k * width);
    take(s.queued, 1);
    if (Labels::filtered)
        take(s.queue, held * group_threads);
    return s;
}

template <typename T>
__device__ std::int32_t *counters_of(const View<T> &view, const Shared<T> &s, int replica, int label)
{
    return s.counters + (replica * view.k + label) * s.width;
}

// Moves the queued rows from their old clusters (0: none, else label + 1) to the new ones; a copy
// of the counters meets a quarter of at most 1024 rows.
__device__ void move_queued(const View<float> &view, const Shared<float> &s, int queued)
{
    const int sums = s.width / 2;
    for (int i = threadIdx.x; i < queued * sums; i += group_threads) {
        const int place = i / sums, f = i - place * sums, replica = place % replicas;
        const Moved moved = s.queue[place];
        const Split limbs = limbs_of(view, s.scales, moved.row, f);
        add_limbs(counters_of(view, s, replica, moved.to) + 2 * f, limbs);
        if (moved.from != 0)
            add_limbs(counters_of(view, s, replica, moved.from - 1) + 2 * f, {-limbs.hi, -limbs.lo});
    }
}

// Rows that stay: each thread's are threadIdx.x, + group_threads, ... below n.
template <int D>
struct HeldRows {
    GroupRow<D> row[held];
    std::int32_t at[held];
    int label[held];

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
    __device__ bool pass(const View<float> &view, const Shared<float> &s)
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
                s.queue[place] = {at[i], static_cast<std::uint16_t>(label[i] + 1), static_cast<std::uint16_t>(now[i])};
                label[i] = now[i];
            }
        __syncthreads();
        const int queued = *s.queued;
        if (queued == 0)
            return false;
        move_queued(view, s, queued);
        flush_counters(s.sums, s.counters, view.k * s.width, replicas);
        return true;
    }
};

// More rows, or wider ones, are read in every iteration, and all of them added.
template <typename Labels, typename T = typename Labels::Element>
struct PassingRows {
    __device__ void load(const View<T> &) {}
    __device__ bool pass(const View<T> &view, const Shared<T> &s)
    {
        const int count = view.k * s.width;
        clear(s.sums, count);
        __syncthreads();
        int round = 0;
        for (std::int64_t start = 0; start < view.n; start += group_threads, ++round) {
            if (round == rounds) {
                round = 0;
                flush_counters(s.sums, s.counters, count, replicas);
            }
            const std::int64_t row = start + threadIdx.x;
            if (row < view.n)
                add_row(view, s.scales, row,
                        counters_of(view, s, static_cast<int>(threadIdx.x) % replicas,
                                    Labels::label(view, row, s.centroids)));
        }
        flush_counters(s.sums, s.counters, count, replicas);
        return true;
    }
};

// Any cluster without mass?
template <typename T>
__device__ bool has_empty(const View<T> &view, const Shared<T> &s)
{
    bool empty = false;
    for (int j = threadIdx.x; j < view.k; j += group_threads)
        empty |= group_sum(s.sums + j * s.width, view.d, view.d, s.width) == 0;
    return __syncthreads_or(empty) != 0;
}

// New centroids from the sums, in the order of update_centroids(); the shifts go to s.shifts.
template <typename Labels, typename T>
__device__ void renew_centroids(const View<T> &view, const Shared<T> &s, bool cosine)
{
    const int d = view.d, pitch = Labels::pitch(d);
    for (int i = threadIdx.x; i < view.k * d; i += group_threads) {
        const int j = i / d, f = i - j * d;
        const std::int64_t *sums = s.sums + j * s.width;
        const FeatureScale<T> scale = s.scales[f];
        s.fresh[j * pitch + f] =
            static_cast<T>(mean_of(group_sum(sums, d, f, s.width), group_sum(sums, d, d, s.width),
                                   static_cast<double>(scale.origin), scale.exponent, view.weight_exponent));
    }
    __syncthreads();
    for (int j = threadIdx.x; j < view.k; j += group_threads) {
        T *fresh = s.fresh + j * pitch, *old = s.centroids + j * pitch;
        s.shifts[j] = 0.0;
        if (cosine && !normalise(fresh, d))
            continue;
        s.shifts[j] = exact_distance(fresh, old, d);
        for (int f = 0; f < d; ++f)
            old[f] = fresh[f];
    }
    __syncthreads();
}

// One thread: the clusters' shifts in order, and the decision.
__device__ int close_iteration(GroupProblem &problem, const double *shifts, bool cancel)
{
    double shift = 0.0;
    for (int j = 0; j < problem.k; ++j)
        shift += shifts[j];
    problem.shift = shift;
    problem.converged = shift <= problem.tol;
    return shift <= problem.tol ? finished : shift == 0.0 ? compare_labels : cancel ? cancelled : running;
}

template <typename Labels, typename Rows, typename T>
__device__ int iterate(const Arguments<T> &a, const View<T> &view, const Shared<T> &s, GroupProblem &problem,
                       int &iteration)
{
    __shared__ int stop;
    Rows rows;
    rows.load(view);
    if (threadIdx.x == 0)
        stop = running;
    __syncthreads();
    while (iteration < a.max_iter && stop == running) {
        if (rows.pass(view, s)) {
            if (has_empty(view, s))
                return empty_cluster;
            renew_centroids<Labels>(view, s, a.cosine);
        } else { // the same labels, the same sums, the same centroids
            clear(s.shifts, view.k);
            __syncthreads();
        }
        ++iteration;
        if (threadIdx.x == 0)
            stop = close_iteration(problem, s.shifts, *a.cancel != 0);
        __syncthreads();
    }
    return stop;
}

template <typename Labels, typename T = typename Labels::Element>
__global__ void __launch_bounds__(group_threads, Labels::blocks) fit_kernel(Arguments<T> a)
{
    extern __shared__ double2 memory[];
    if (group_cancelled(a.cancel))
        return;
    GroupProblem &problem = a.problems[blockIdx.x];
    T *const centroids = a.centroids + problem.cluster * a.d;
    const View<T> view = {a.values + problem.first_row * a.d,
                          a.weights == nullptr ? nullptr : a.weights + problem.first_row,
                          problem.n_rows,
                          a.d,
                          problem.k,
                          centroids,
                          a.scales + std::int64_t{blockIdx.x} * a.d,
                          problem.weight_exponent};
    Shared<T> s = carve<Labels>(reinterpret_cast<char *>(memory), view.k, view.d, a.width);
    if (!Labels::filtered)
        s.fresh = centroids; // in device memory
    stage_centroids<Labels>(view, s.centroids);
    clear(s.sums, view.k * s.width);
    clear(s.counters, replicas * view.k * s.width);
    for (int f = threadIdx.x; f < view.d; f += group_threads)
        s.scales[f] = view.feature_scales[f];
    int iteration = 0, stop = running;
    if constexpr (Labels::filtered)
        stop = view.n <= held * group_threads
                   ? iterate<Labels, HeldRows<Labels::pitch(0)>>(a, view, s, problem, iteration)
                   : iterate<Labels, PassingRows<Labels>>(a, view, s, problem, iteration);
    else
        stop = iterate<Labels, PassingRows<Labels>>(a, view, s, problem, iteration);
    __syncthreads();
    for (int i = threadIdx.x; i < view.k * view.d; i += group_threads)
        centroids[i] = s.centroids[i / view.d * Labels::pitch(view.d) + i % view.d];
    if (threadIdx.x == 0) {
        problem.n_iter = iteration;
        problem.stop = stop;
    }
}

template <typename T>
void launch_fit(Context &context, const Arguments<T> &arguments, const std::vector<GroupProblem> &problems)
{
    with_labels<T>(arguments.d, [&](auto labels) {
        using Labels = decltype(labels);
        const std::size_t bytes = carve<Labels>(nullptr, most_clusters(problems), arguments.d, arguments.width).bytes;
        enqueue(fit_kernel<Labels, T>, problems.size(), group_threads, bytes, context.compute.get(), arguments);
    });
}

} // namespace

std::size_t group_fit_bytes(int k, int d, bool weighted, std::size_t element)
{
    std::size_t bytes = 0;
    const auto count = [&](auto labels) {
        bytes = carve<decltype(labels)>(nullptr, k, d, group_width(d, weighted)).bytes;
    };
    element == 4 ? with_labels<float>(d, count) : with_labels<double>(d, count);
    return bytes;
}

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
    auto cancel = zeros<std::int32_t>(context.budget, 1, stream);
    const bool weighted = data.host.weights != nullptr;
    launch_fit<T>(context,
                  {reinterpret_cast<const T *>(data.values.get()), weighted ? data.weights.get() : nullptr, data.host.d,
                   group_width(data.host.d, weighted), packed.device_problems.get(), packed.centroids.get(),
                   packed.scales.get(), params.max_iter, params.metric == PGKM_COSINE, cancel.get()},
                  packed.problems);
    context.report("iterating", 0, 0, 0.0);
    context.wait(stream, cancel.get());
    const std::vector<T> centroids = context.fetch(packed.centroids);
    packed.problems = context.fetch(packed.device_problems);
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

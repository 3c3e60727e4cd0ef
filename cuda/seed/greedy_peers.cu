// greedy_peers.cu (seed) - what a step of greedy k-means++ takes more where several devices have the rows.
//
// Each device filters and measures its own rows. All keep v_i and masses of all rows, by position, and so make the same
// draws and choices. They meet twice a step: when each has summed up what trials gain by its rows, and when each has
// the new v_i of its rows. A row that comes nearer costs the others 12 bytes.
// Threads: a row a thread; what another device has written is read past the caches. Masses are integers, so that the
// order of their atomics does not matter.
#include "plan/stages.hpp"
#include "seed/greedy_step.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

// A block a trial.
template <typename T>
__global__ void bring_kernel(GreedyRows<T> rows, RowTable<T> table, T *picked)
{
    if (rows.state->seed.done != 0)
        return;
    const T *from = table.row(rows.order[rows.state->seed.picks[blockIdx.x]]);
    for (std::int32_t f = static_cast<std::int32_t>(threadIdx.x); f < rows.d;
         f += static_cast<std::int32_t>(blockDim.x))
        picked[std::int64_t{blockIdx.x} * rows.d + f] = from[f];
}

template <typename T>
__global__ void choose_kernel(GreedyRows<T> rows, GreedyPeers<T> peers, std::int64_t *chosen)
{
    if (rows.state->seed.done != 0)
        return;
    rows.state->changed = 0;
    choose(rows.state, rows.trials, chosen, [&](int t) {
        UInt128 gain = 0;
        for (int share = 0; share < peers.rows.shares; ++share)
            gain += gain_of(*peers.states[share], t);
        return gain;
    });
}

template <typename T>
__global__ void __launch_bounds__(threads) take_kernel(GreedyRows<T> rows, GreedyPeers<T> peers, bool fresh)
{
    GreedyState *state = rows.state;
    if (state->seed.done != 0)
        return;
    const int exponent = square_exponent(__longlong_as_double(static_cast<long long>(state->seed.largest)));
    unsigned long long fallen = 0;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (int share = 0; share < peers.rows.shares; ++share) {
        if (share == peers.share)
            continue;
        const Changes &changes = peers.changes[share];
        const std::int64_t count = *const_cast<const volatile std::uint32_t *>(&peers.states[share]->changed);
        for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride) {
            const std::uint32_t position = __ldcv(changes.positions + i);
            const double nearest = __ldcv(changes.nearest + i), before = rows.nearest[position];
            rows.nearest[position] = nearest;
            if (!fresh)
                fallen += lower_mass(rows, position, before, nearest, exponent) ? 1 : 0;
        }
    }
    if (fresh)
        return; // all masses are still to be made
    lower_tops<threads>(state, fallen);
    if (arrives_last(&state->arrived) && threadIdx.x == 0)
        end_step(state);
}

} // namespace

template <typename T>
void bring_picked(const Context &context, const GreedyRows<T> &rows, const GreedyPeers<T> &peers, int trials, T *picked)
{
    bring_kernel<<<static_cast<unsigned>(trials), 128, 0, context.compute.get()>>>(rows, peers.rows, picked);
    launched("bring_kernel");
}

template <typename T>
void choose_with_peers(const Context &context, const GreedyRows<T> &rows, const GreedyPeers<T> &peers,
                       std::int64_t *chosen)
{
    choose_kernel<<<1, 1, 0, context.compute.get()>>>(rows, peers, chosen);
    launched("choose_kernel");
}

template <typename T>
void take_changes(const Context &context, const GreedyRows<T> &rows, const GreedyPeers<T> &peers, bool fresh)
{
    const int blocks = blocks_for(rows.n - rows.own, 4 * threads, context.facts.multiprocessors * 2);
    take_kernel<<<blocks, threads, 0, context.compute.get()>>>(rows, peers, fresh);
    launched("take_kernel");
}

template void bring_picked<float>(const Context &, const GreedyRows<float> &, const GreedyPeers<float> &, int, float *);
template void bring_picked<double>(const Context &, const GreedyRows<double> &, const GreedyPeers<double> &, int,
                                   double *);
template void choose_with_peers<float>(const Context &, const GreedyRows<float> &, const GreedyPeers<float> &,
                                       std::int64_t *);
template void choose_with_peers<double>(const Context &, const GreedyRows<double> &, const GreedyPeers<double> &,
                                        std::int64_t *);
template void take_changes<float>(const Context &, const GreedyRows<float> &, const GreedyPeers<float> &, bool);
template void take_changes<double>(const Context &, const GreedyRows<double> &, const GreedyPeers<double> &, bool);

} // namespace pgkm::cuda

// greedy.cu (seed) - the steps of greedy k-means++ by filter and gains: memory and the loop.
//
// All of a step's state lies on the device; the host comes back for a cancel alone. Rows are numbered by position, so
// that v_i and masses of neighbours in canonical order lie together. Where the device has no room for them, the
// steps of seeder.hpp serve, which take nothing beside v_i.
//
// Where several devices have the rows, each filters and measures its own. All keep v_i and masses of all rows, by
// position, and so make the same draws and choices. They meet twice a step: when each has summed up what trials gain by
// its rows, and when each has the new v_i of its rows. A row that comes nearer costs the others 12 bytes. Masses are
// integers, so that the order of their atomics does not matter.
#include <algorithm>

#include "plan/bytes.hpp"
#include "plan/stages.hpp"
#include "seed/canonical.hpp"
#include "seed/gather.cuh"
#include "seed/greedy_step.cuh"
#include "seed/kernels.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr std::int64_t least_rows = 1024; // fewer are not worth their halves

// The lent memory of a peer.
struct Lent {
    GreedyState *state;
    Changes changes;
};

Lent lent_at(std::int64_t *memory, std::int64_t own)
{
    std::int64_t *const behind_state = memory + (sizeof(GreedyState) + 7) / 8;
    return {reinterpret_cast<GreedyState *>(memory),
            {reinterpret_cast<std::uint32_t *>(behind_state + own), reinterpret_cast<double *>(behind_state)}};
}

// Positions of own rows by number, of which the first one has the number `first`.
__global__ void __launch_bounds__(threads)
    numbers_kernel(const std::uint32_t *order, std::int64_t n, std::int64_t first, std::int64_t own,
                   std::uint32_t *positions)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t p = std::int64_t{blockIdx.x} * threads + threadIdx.x; p < n; p += stride) {
        const std::int64_t i = order[p] - first;
        if (i >= 0 && i < own)
            positions[i] = static_cast<std::uint32_t>(p);
    }
}

// Where the peers' rows lie, and the states and changes that they lend.
template <typename T>
struct GreedyPeers {
    RowTable<T> rows;
    const GreedyState *states[PGKM_MOST_DEVICES];
    Changes changes[PGKM_MOST_DEVICES];
    int share;
};

// The rows that were picked; a block a trial.
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

// The trial that gains most, from what all peers have summed up.
template <typename T>
__global__ void choose_kernel(GreedyRows<T> rows, GreedyPeers<T> peers, std::int64_t *chosen)
{
    if (rows.state->seed.done != 0)
        return;
    rows.state->changed = 0;
    choose(rows.state->seed, rows.trials, chosen, [&](int t) {
        UInt128 gain = 0;
        for (int share = 0; share < peers.rows.shares; ++share)
            gain += potential_of(peers.states[share]->seed, t);
        return gain;
    });
}

// Brings v_i and masses up to the others' changes. fresh: v_i alone, since all masses are weighed again. What another
// device has written is read past the caches.
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

template <typename T>
class Greedy {
  public:
    static bool takes(const Context &context, std::int64_t own, std::int32_t d, std::int32_t k)
    {
        return context.facts.takes(Mechanism::trials) && context.facts.mma && context.facts.capability >= 80 &&
               own < (std::int64_t{1} << 31) &&
               filter_bytes(d, greedy_trials(k)) <= static_cast<std::size_t>(context.facts.shared_bytes_per_block);
    }

    // rows: of one device, or the numbers and weights of all that several share.
    Greedy(Context &context, const SeedRows<T> &rows, const SeedKey &key, std::int32_t k,
           SharedRows<T> *shared = nullptr)
        : context_(context), shared_(shared), k_(k), trials_(greedy_trials(k)), n_(rows.n),
          own_(shared == nullptr ? rows.n : shared->own()),
          ordered_(
              order_of_own(rows.d, shared == nullptr ? rows.values : shared->own_values(), rows.masses == nullptr)),
          positions_(context.budget, count(own_)), facts_(context.budget, count(own_)),
          lists_(context.budget, count(own_ * trials_)), nearest_(context.budget, count(n_)),
          slices_(context.budget, count((n_ + seed_slice - 1) / seed_slice)), state_(context.budget, 1),
          chosen_(context.budget, count(k))
    {
        if (shared != nullptr)
            share();
        GreedyState *const state = shared == nullptr ? state_.get() : lent_at(shared->lent(), own_).state;
        enqueue_fill(state, 0, sizeof *state, stream());
        const double *weights = rows.weights;
        if (weights != nullptr && rows.order != nullptr) {
            weights_ = DeviceArray<double>(context.budget, count(n_));
            gather(context, weights, rows.order, n_, weights_.get());
            weights = weights_.get();
        }
        masses_ = {nullptr,        weights, rows.masses, n_, rows.d, rows.weight_exponent,
                   nearest_.get(), nullptr, rows.counts};
        rows_ = {shared == nullptr ? rows.values : shared->own_values() - shared->first() * rows.d,
                 rows.order,
                 picked_.get(),
                 shared == nullptr ? Changes{} : lent_at(shared->lent(), own_).changes,
                 weights,
                 rows.counts,
                 nearest_.get(),
                 n_,
                 own_,
                 rows.d,
                 trials_,
                 ordered_->rows,
                 positions_.get(),
                 facts_.get(),
                 lists_.get(),
                 slices_.get(),
                 state};
        kernels_ = {&state->seed, slices_.get(), key, context.facts.multiprocessors, stream()};
    }

    std::vector<std::int64_t> run()
    {
        find_positions();
        kernels_.weigh(masses_, true);
        pick(true, 1);
        kernels_.choose(1, chosen_.get());
        in_parts(own_, 1, [&](std::int64_t first, std::int64_t some) { steps_.begin_nearest(first, some); });
        meet_with_changes(true);
        steps_.weigh_again();
        // So many steps are enqueued at a time as take some 10 ms: a cancel is seen between them.
        const double terms = static_cast<double>(n_) * rows_.d * (trials_ + 1); // the same for all peers
        const auto at_once = static_cast<std::int32_t>(std::clamp(terms_per_wait / terms, 1.0, 32.0));
        for (std::int32_t i = 1; i < k_; ++i) {
            if (i % at_once == 0 && fetch().done != 0)
                break;
            step();
        }
        return context_.fetch(chosen_.get(), count(fetch().count));
    }

  private:
    static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }
    cudaStream_t stream() const { return context_.compute.get(); }

    SeedState fetch() { return context_.fetch(&rows_.state->seed, 1)[0]; }

    // `distances` a row.
    template <typename Body>
    void in_parts(std::int64_t all, int distances, Body &&body)
    {
        cuda::in_parts(context_, all, static_cast<double>(distances) * rows_.d, body);
    }

    // Beside loaded rows, which are no candidates, theirs stays.
    std::shared_ptr<RowOrder<T>> order_of_own(std::int32_t d, const T *values, bool loaded)
    {
        const int most = pivots_for(own_, d, k_);
        return loaded ? order_of_loaded(context_, values, own_, d, most, true)
                      : order_of_rows(context_, values, own_, d, most, true);
    }

    // Positions of own rows by place. Rows without a canonical order are their own positions. The lists are not in use
    // yet.
    void find_positions()
    {
        const std::int32_t *rows = ordered_->rows.order;
        if (rows_.order == nullptr) {
            enqueue_copy(positions_.get(), reinterpret_cast<const std::uint32_t *>(rows), count(own_), stream());
            return;
        }
        enqueue(numbers_kernel, blocks_for(n_, threads, context_.facts.multiprocessors * 16), threads, 0, stream(),
                rows_.order, n_, shared_ == nullptr ? 0 : shared_->first(), own_, lists_.get());
        gather(context_, lists_.get(), rows, own_, positions_.get());
    }

    // What peers take beside: the picked rows, and who lends what.
    void share()
    {
        picked_ = DeviceArray<T>(context_.budget, count(trials_) * count(shared_->table().d));
        peers_.rows = shared_->table();
        peers_.share = shared_->share();
        for (int share = 0; share < shared_->shares(); ++share) {
            const Lent lent =
                lent_at(shared_->all_lent()[count(share)], peers_.rows.first[share + 1] - peers_.rows.first[share]);
            peers_.states[share] = lent.state;
            peers_.changes[share] = lent.changes;
        }
    }

    void pick(bool first, int trials)
    {
        kernels_.pick(masses_, first, trials);
        if (shared_ != nullptr)
            enqueue(bring_kernel<T>, trials, 128, 0, stream(), rows_, peers_.rows, picked_.get());
    }

    void meet_with_changes(bool fresh)
    {
        if (shared_ == nullptr)
            return;
        shared_->link().meet();
        const int blocks = blocks_for(n_ - own_, 4 * threads, context_.facts.multiprocessors * 2);
        enqueue(take_kernel<T>, blocks, threads, 0, stream(), rows_, peers_, fresh);
    }

    void step()
    {
        pick(false, trials_);
        filter_trials(context_, rows_);
        in_parts(own_, trials_, [&](std::int64_t first, std::int64_t some) {
            steps_.sum_gains(first, some, shared_ == nullptr && first + some == n_, chosen_.get());
        });
        if (shared_ != nullptr) {
            shared_->link().meet();
            enqueue(choose_kernel<T>, 1, 1, 0, stream(), rows_, peers_, chosen_.get());
        }
        steps_.update_nearest();
        meet_with_changes(false);
        steps_.weigh_again();
    }

    Context &context_;
    SharedRows<T> *shared_;
    std::int32_t k_;
    int trials_;
    std::int64_t n_, own_;
    std::shared_ptr<RowOrder<T>> ordered_;
    DeviceArray<std::uint32_t> positions_;
    DeviceArray<HalfFacts> facts_;
    DeviceArray<std::uint32_t> lists_;
    DeviceArray<double> nearest_;
    DeviceArray<unsigned long long> slices_;
    DeviceArray<GreedyState> state_;
    DeviceArray<std::int64_t> chosen_;
    DeviceArray<double> weights_; // by position
    DeviceArray<T> picked_;
    GreedyPeers<T> peers_{};
    SeedRows<T> masses_; // what draws look at
    GreedyRows<T> rows_;
    SeedKernels<T> kernels_;
    const GreedyKernels<T> steps_ = {context_, rows_};
};

} // namespace

std::size_t greedy_lent_bytes(std::int64_t own)
{
    return sizeof(GreedyState) + 8 + static_cast<std::size_t>(own) * sizeof(std::uint32_t);
}

template <typename T>
std::vector<std::int64_t> greedy_positions(SharedRows<T> &shared, const std::uint32_t *order, const double *weights,
                                           const PgkmProblem &problem, const SeedKey &key)
{
    Context &context = shared.context();
    const std::int32_t d = shared.table().d;
    if (!Greedy<T>::takes(context, shared.own(), d, problem.k))
        throw Error(PGKM_UNSUPPORTED, "such rows are seeded by one device");
    const std::uint64_t of_others = (weights == nullptr ? 8 : 16) * static_cast<std::uint64_t>(shared.n());
    if (!context.make_room(of_others + greedy_bytes({shared.own(), d, problem.k, sizeof(T) == 8, false})))
        throw Error(PGKM_LIMIT, "a device has no room to seed its rows");
    const SeedRows<T> rows = {nullptr, weights, nullptr, shared.n(), d, problem.weight_exponent, nullptr, order};
    return Greedy<T>(context, rows, key, problem.k, &shared).run();
}

template <typename T>
std::optional<std::vector<std::int64_t>> greedy_positions(Context &context, const SeedRows<T> &rows, const SeedKey &key,
                                                          std::int32_t k)
{
    std::optional<Greedy<T>> greedy;
    if (k < 2 || rows.n < least_rows || rows.n > most_seed_rows || !Greedy<T>::takes(context, rows.n, rows.d, k) ||
        !context.make_room(greedy_bytes({rows.n, rows.d, k, sizeof(T) == 8, false})) ||
        !within_limit([&] { greedy.emplace(context, rows, key, k); }))
        return {};
    return greedy->run();
}

template std::vector<std::int64_t> greedy_positions<float>(SharedRows<float> &, const std::uint32_t *, const double *,
                                                           const PgkmProblem &, const SeedKey &);
template std::vector<std::int64_t> greedy_positions<double>(SharedRows<double> &, const std::uint32_t *, const double *,
                                                            const PgkmProblem &, const SeedKey &);
template std::optional<std::vector<std::int64_t>> greedy_positions<float>(Context &, const SeedRows<float> &,
                                                                          const SeedKey &, std::int32_t);
template std::optional<std::vector<std::int64_t>> greedy_positions<double>(Context &, const SeedRows<double> &,
                                                                           const SeedKey &, std::int32_t);

} // namespace pgkm::cuda

// seeder.hpp (seed) - the steps of a seeding over one set of rows, those of a problem or candidates.
// Memory: v_i of each row (8 bytes), on the device or page-locked on the host; errors throw Error, a cancel is seen
// between steps.
#pragma once

#include <algorithm>
#include <vector>

#include "seed/host_draw.hpp"
#include "seed/kernels.hpp"
#include "seed/shared_rows.hpp"

namespace pgkm::cuda {

// Rows and distances on the device, for a problem or for candidates.
template <typename T>
class Seeder {
  public:
    Seeder(Context &context, SeedRows<T> rows, const SeedKey &key, std::int32_t most)
        : context_(context), rows_(rows),
          slices_(context.budget, static_cast<std::size_t>((rows.n + seed_slice - 1) / seed_slice)),
          state_(context.budget, 1), chosen_(context.budget, static_cast<std::size_t>(most)),
          candidates_(context.budget, static_cast<std::size_t>(most_trials) * static_cast<std::size_t>(rows.d))
    {
        nearest_ = NearArray<double>(context.budget, context.host_budget, static_cast<std::size_t>(rows.n),
                                     context.budget.limit / 8);
        rows_.nearest = nearest_.get();
        state_.fill_zero(context.compute.get());
        kernels_ = {state_.get(), slices_.get(), key, context.facts.multiprocessors, context.compute.get()};
    }

    // Where the rows' values are when they are not on the device.
    void stream_from(Data &data, std::int64_t first_row)
    {
        data_ = &data;
        first_row_ = first_row;
    }

    // Rows lie on the devices of several peers: `rows` has the weights and the order of all, and own values come from
    // here. Only for add_first() and rounds.
    void share(SharedRows<T> &shared) { shared_ = &shared; }

    // Draws are to be made on the host; for resident rows of a problem.
    void draw_on_host() { on_host_ = true; }

    void add_first()
    {
        // The first draw is by weight and needs all of them at once; those of streamed rows lie
        // for that moment where the distances will be.
        if (data_ != nullptr && data_->host.weights != nullptr) {
            enqueue_copy(rows_.nearest, data_->host.weights + first_row_, static_cast<std::size_t>(rows_.n), stream());
            rows_.weights = rows_.nearest;
        }
        step(true, 1);
    }

    void extend(std::int32_t k, std::int32_t known)
    {
        const int trials = greedy_trials(k);
        // So many steps are enqueued at a time as take some 10 ms: a cancel is seen between them.
        const double terms = static_cast<double>(rows_.n) * rows_.d * (trials + 1);
        const auto at_once = static_cast<std::int32_t>(std::clamp(terms_per_wait / terms, 1.0, 32.0));
        for (std::int32_t i = known; i < k; ++i) {
            if ((i - known) % at_once == 0 && fetch().done != 0)
                return;
            step(false, trials);
        }
    }

    SeedState fetch() { return context_.fetch(state_)[0]; }
    std::vector<std::int64_t> chosen()
    {
        return context_.fetch(chosen_.get(), static_cast<std::size_t>(fetch().count));
    }

    // The rows of a round of k-means||, in the order of their draws; none when no row lies apart.
    std::vector<std::int64_t> draw_round(std::uint32_t round, std::size_t draws)
    {
        if (fetch().largest == 0)
            return {};
        const NearArray<UInt128> parts(context_.budget, context_.host_budget, seed_parts + 1);
        const DeviceArray<std::int64_t> drawn(context_.budget, draws);
        kernels_.draw_round(rows_, round, static_cast<std::int64_t>(draws), parts.get(), drawn.get());
        return context_.fetch(drawn);
    }

    // Adds rows whose values are given, as many at a time as half of the device's limit holds.
    void add(const std::vector<T> &values, std::int32_t count)
    {
        const auto d = static_cast<std::size_t>(rows_.d);
        std::uint64_t room = context_.budget.room() / 2 / (d * sizeof(T));
        // So many that a launch of some 10 ms has rows for all multiprocessors; streamed rows come
        // over the bus for each batch, and shall not for more than need be.
        if (data_ == nullptr)
            room = std::min<std::uint64_t>(room, std::max<std::uint64_t>((std::uint64_t{1} << 18) / d, 64));
        const auto most = static_cast<std::int32_t>(
            std::clamp<std::uint64_t>(room, 1, static_cast<std::uint64_t>(std::max(count, 1))));
        DeviceArray<T> added(context_.budget, count == 0 ? 0 : static_cast<std::size_t>(most) * d);
        for (std::int32_t first = 0; first < count; first += most) {
            const std::int32_t some = std::min(most, count - first);
            added.upload(values.data() + static_cast<std::size_t>(first) * d, static_cast<std::size_t>(some) * d,
                         stream());
            forget_largest();
            each([&](const SeedRows<T> &rows) {
                in_parts(rows, some, [&](const SeedRows<T> &part) {
                    kernels_.update_nearest(part, added.get(), some, false, false);
                });
                context_.wait(stream());
            });
        }
    }

    // For rows that are added by others: v_i of each own row, and the bits of the largest, which each walk over the
    // rows finds anew.
    double *nearest() const { return rows_.nearest + (shared_ == nullptr ? 0 : shared_->first()); }
    unsigned long long *largest() const { return &state_.get()->largest; }
    void forget_largest() { enqueue_fill(largest(), 0, sizeof *largest(), stream()); }

    // After that: what peers have found of their rows.
    void meet_peers()
    {
        if (shared_ == nullptr)
            return;
        shared_->complete(reinterpret_cast<std::int64_t *>(rows_.nearest));
        unsigned long long own = fetch().largest;
        for (const unsigned long long one : shared_->link().tell(own))
            own = std::max(own, one);
        enqueue_copy(largest(), &own, 1, stream(), cudaMemcpyHostToDevice);
        context_.wait(stream());
    }

    // Makes `rows` the chosen ones, all of them already added.
    void set_chosen(const std::vector<std::int64_t> &rows)
    {
        const auto count = static_cast<std::int32_t>(rows.size());
        chosen_.upload(rows.data(), rows.size(), stream());
        enqueue_copy(&state_.get()->count, &count, 1, stream(), cudaMemcpyHostToDevice);
        context_.wait(stream());
    }

  private:
    cudaStream_t stream() const { return context_.compute.get(); }

    // Calls body(part) for parts of rows, `candidates` distances a row.
    template <typename Body>
    void in_parts(const SeedRows<T> &rows, std::int32_t candidates, Body &&body)
    {
        const auto take = [&](std::int64_t first, std::int64_t count) {
            SeedRows<T> part = rows;
            part.values += first * rows.d;
            if (part.weights != nullptr)
                part.weights += first;
            if (part.counts != nullptr)
                part.counts += first;
            part.nearest += first;
            part.n = count;
            body(part);
        };
        cuda::in_parts(context_, rows.n, static_cast<double>(candidates) * rows.d, take);
    }

    template <typename Body>
    void each(Body &&body)
    {
        if (shared_ != nullptr) {
            SeedRows<T> own = rows_;
            own.values = shared_->own_values();
            own.nearest = nearest();
            if (own.weights != nullptr)
                own.weights += shared_->first();
            own.n = shared_->own();
            return body(own);
        }
        if (data_ == nullptr)
            return body(rows_);
        data_->each_chunk<T>(first_row_, rows_.n,
                             [&](const T *values, const double *weights, std::int64_t first, std::int64_t n) {
                                 SeedRows<T> part = rows_;
                                 part.values = values;
                                 part.weights = weights;
                                 part.nearest += first;
                                 part.n = n;
                                 body(part);
                             });
    }

    void step(bool first, int trials)
    {
        if (on_host_) {
            cuda::draw_on_host(context_, rows_, state_, kernels_.key, first, trials);
        } else {
            kernels_.weigh(rows_, first);
            kernels_.pick(rows_, first, trials);
        }
        if (data_ != nullptr)
            rows_.weights = nullptr; // from here on each chunk brings its own
        if (data_ == nullptr && shared_ == nullptr)
            kernels_.gather(rows_, trials, candidates_.get());
        else
            gather_from_host(trials);
        if (!first)
            each([&](const SeedRows<T> &rows) {
                in_parts(rows, trials,
                         [&](const SeedRows<T> &part) { kernels_.potentials(part, candidates_.get(), trials); });
            });
        kernels_.choose(trials, chosen_.get());
        each([&](const SeedRows<T> &rows) {
            in_parts(rows, 1, [&](const SeedRows<T> &part) {
                kernels_.update_nearest(part, candidates_.get(), 1, true, first);
            });
        });
        meet_peers();
    }

    void gather_from_host(int trials)
    {
        const SeedState state = fetch();
        if (state.done != 0)
            return;
        if (shared_ != nullptr) {
            const std::vector<T> values = shared_->values_of({state.picks, state.picks + trials});
            return candidates_.upload(values.data(), values.size(), stream());
        }
        const auto d = static_cast<std::size_t>(rows_.d);
        std::vector<T> values(static_cast<std::size_t>(trials) * d);
        const T *from = static_cast<const T *>(data_->host.values);
        for (std::size_t t = 0; t < static_cast<std::size_t>(trials); ++t)
            std::copy_n(from + static_cast<std::size_t>(first_row_ + state.picks[t]) * d, d, values.data() + t * d);
        candidates_.upload(values.data(), values.size(), stream());
    }

    Context &context_;
    SeedRows<T> rows_;
    NearArray<double> nearest_; // v_i of every row
    DeviceArray<unsigned long long> slices_;
    DeviceArray<SeedState> state_;
    DeviceArray<std::int64_t> chosen_;
    DeviceArray<T> candidates_;
    SeedKernels<T> kernels_{};
    SharedRows<T> *shared_ = nullptr;
    Data *data_ = nullptr;
    std::int64_t first_row_ = 0;
    bool on_host_ = false;
};

} // namespace pgkm::cuda

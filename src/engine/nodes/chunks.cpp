// chunks.cpp - one question to all chunks, with what has to go before it.
#include "engine/nodes/chunks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/host.hpp"
#include "backend/shares.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/seed/row_order.hpp"
#include "engine/nodes/chunk_sums.hpp"
#include "engine/nodes/key_masses.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 14;

// Leaves those rows of a chunk that lie in the buckets.
template <typename T>
void keep_drawn(const PgkmPoints &points, Session &session, const PgkmHost &host, std::int32_t bits,
                const std::vector<std::uint64_t> &buckets, ShareState &state)
{
    const cpu::BlockRunner runner(*cpu::self(session.cpu().get()), true);
    const PgkmPoints all = clustered(points, state);
    const cpu::SeedRows<T> rows = {static_cast<const T *>(all.values), all.weights, all.n, all.d};
    const cpu::Buffer<std::uint64_t> keys = cpu::find_keys(runner, rows);
    std::vector<T> values;
    state.weights.clear();
    state.drawn = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (i % rows_per_poll == 0)
            poll(host);
        if (!std::binary_search(buckets.begin(), buckets.end(), bucket_of(keys[static_cast<std::size_t>(i)], bits)))
            continue;
        values.insert(values.end(), rows.row(i), rows.row(i) + rows.d);
        if (all.weights != nullptr)
            state.weights.push_back(all.weights[i]);
        ++state.drawn;
    }
    state.transformed.reset(new std::byte[values.size() * sizeof(T) + 1]);
    if (!values.empty())
        std::memcpy(state.transformed.get(), values.data(), values.size() * sizeof(T));
}

} // namespace

void Chunks::for_chunks(const Step &body, const Prepare &prepare)
{
    PgkmPoints chunk;
    source_.begin_pass(open_.host);
    while (source_.take(open_.host, chunk)) {
        ShareState state;
        state.passing = true;
        state.unordered = prepare == nullptr;
        state.centroids = centroids_;
        session_.unload();
        if (const auto transform = told_.find(Operation::transform); transform != told_.end()) {
            Share share(session_, chunk, state, open_);
            transform->second(share);
        }
        if (prepare)
            prepare(chunk, state);
        if (state.drawn != 0) {
            Share share(session_, chunk, state, open_);
            body(share);
        }
        session_.unload(); // before the chunk goes, and its state
    }
}

void Chunks::tell(Share &share, Operation last) const
{
    const auto end = told_.upper_bound(last);
    for (auto step = told_.lower_bound(Operation::seed_begin); step != told_.end() && step != end; ++step)
        step->second(share);
}

void Chunks::ask(Operation operation, const Step &step, const Step &ask_and_merge)
{
    if (operation == Operation::seed_begin)
        told_.erase(told_.lower_bound(operation), told_.end());
    if (operation != Operation::transform && operation != Operation::seed_begin) // which each chunk is told later
        for_chunks([&](Share &share) {
            tell(share, operation);
            ask_and_merge(share);
        });
    if (operation == Operation::transform || operation == Operation::seed_begin || operation == Operation::seed_weigh ||
        operation == Operation::seed_gains)
        told_[operation] = step;
}

void Chunks::draw(std::int32_t bits, const std::vector<std::uint64_t> &buckets, const Step &ask_and_merge)
{
    for_chunks(
        [&](Share &share) {
            tell(share, Operation::seed_runs);
            ask_and_merge(share);
        },
        [&](const PgkmPoints &chunk, ShareState &state) {
            with_element(chunk, [&](auto element) {
                keep_drawn<decltype(element)>(chunk, session_, open_.host, bits, buckets, state);
            });
        });
}

void Chunks::call(Call call, Iteration iteration)
{
    // Sums in float64 are those of all rows at once. A device sums each chunk by itself.
    if (session_.table() == cpu_backend() && call.function != Function::assign) {
        ChunkSums sums(session_, call, shape_);
        for_chunks([&](Share &share) { sums.add(share.points()); });
        return sums.finish();
    }
    Results results(shape_of(shape_));
    bool first = true;
    for_chunks([&](Share &share) {
        ShareCall own(call, shape_of(share.points()), 0, false);
        own.problem().n_rows = share.points().n;
        share.call(own.room.call, iteration);
        results.give(own, call, std::exchange(first, false));
    });
    if (iteration == Iteration::none)
        return;
    centroids_before_ = std::move(centroids_);
    centroids_ = centroids_of(*call.problems, shape_of(shape_));
}

bool Chunks::labels_have_changed()
{
    bool changed = false;
    for_chunks([&](Share &share) { changed = changed || share.labels(centroids_before_) != share.labels(centroids_); });
    return changed;
}

} // namespace pgkm::nodes

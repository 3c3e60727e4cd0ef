// chunks.cpp - one question to all chunks, with what has to go before it.
#include "engine/nodes/chunks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/host.hpp"
#include "engine/nodes/chunk_sums.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 14;
constexpr std::size_t bytes_per_poll = std::size_t{1} << 22;

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
        if (!std::binary_search(buckets.begin(), buckets.end(),
                                cpu::bucket_of(keys[static_cast<std::size_t>(i)], bits)))
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

Chunks::Chunks(PgkmStream &source, const PgkmPoints &shape, const BackendChoice &choice, const PgkmOpen &open,
               bool gather)
    : source_(source), shape_(shape), open_(open), session_(choice, open),
      gathers_(gather && session_.table() == cpu_backend() && source.n >= cpu::least_rows_of_entries)
{
    shape_.n = source.n;
}

// Gives up where it does not pay.
void Chunks::gather(const PgkmPoints &chunk)
{
    if (gathers_ && !gathered_->add(chunk)) {
        gathers_ = false;
        gathered_.reset();
    }
}

cpu::Entries *Chunks::entries()
{
    if (gathers_ || gathered_ == nullptr) // or the first pass is not over
        return entries_.get();
    std::shared_ptr<cpu::Entries> made = gathered_->take();
    gathered_.reset();
    if (made != nullptr && transform_entries(*made))
        entries_ = std::move(made);
    return entries_.get();
}

// Brings them into the space of the distance. False where memory is too short.
bool Chunks::transform_entries(cpu::Entries &entries)
{
    const auto transform = told_.find(Operation::transform);
    if (transform == told_.end())
        return true;
    try {
        const cpu::HeldMemory room(session_.cpu().get(), entries.values.size());
        ShareState state;
        Share share(session_, entries.data.points, state, open_);
        transform->second(share);
        session_.unload();
        const std::size_t size = state.transformed == nullptr ? 0 : entries.values.size();
        for (std::size_t begin = 0; begin < size; begin += bytes_per_poll) {
            poll(open_.host);
            std::memcpy(entries.values.data() + begin, state.transformed.get() + begin,
                        std::min(bytes_per_poll, size - begin));
        }
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
        session_.unload();
        return false;
    }
    return true;
}

bool Chunks::call_by_entries(const Call &call)
{
    if (call.function == Function::em_step) { // wants all memory, and has no use for entries
        gathers_ = false;
        gathered_.reset();
        entries_.reset();
    }
    cpu::Entries *const found = entries();
    if (found == nullptr)
        return false;
    bool done = true;
    switch (call.function) {
    case Function::seed:
        done = call.seed.init != PGKM_INIT_FIRST && cpu::seed_of(*found, *call.problems, call.seed);
        break;
    case Function::fit:
        done = cpu::fit_of(*found, *call.problems, call.fit);
        break;
    case Function::assign:
        done = cpu::assign_of(*found, *call.problems, *call.assignments);
        break;
    default:
        return false;
    }
    if (!done)
        entries_.reset(); // memory is too short
    return done;
}

void Chunks::for_chunks(const Step &body, const Prepare &prepare)
{
    PgkmPoints chunk;
    source_.begin_pass(open_.host);
    if (gathers_) // anew, after a pass that failed
        gathered_ = std::make_unique<cpu::GatheredEntries>(*cpu::self(session_.cpu().get()), shape_);
    while (source_.take(open_.host, chunk)) {
        gather(chunk);
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
    gathers_ = false;
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
    if (operation == Operation::transform)
        entries_.reset(); // which lie in the space of another distance
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

void Chunks::call(const Call &call, Iteration iteration, const Step &call_and_merge)
{
    // Sums in float64 are those of all rows at once. A device sums each chunk by itself.
    if (session_.table() == cpu_backend() && call.function != Function::assign) {
        ChunkSums sums(session_, call, shape_);
        for_chunks([&](Share &share) { sums.add(share.points()); });
        return sums.finish();
    }
    for_chunks(call_and_merge);
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

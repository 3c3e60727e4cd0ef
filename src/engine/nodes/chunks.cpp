// chunks.cpp - one request to all chunks, with what has to go before it.
#include "engine/nodes/chunks.hpp"

#include <algorithm>

#include "backend/host.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/seed/row_order.hpp"
#include "engine/nodes/chunk_sums.hpp"
#include "engine/nodes/key_masses.hpp"

namespace pgkm::nodes {
namespace {

constexpr std::int64_t rows_per_poll = 1 << 14;

// For requests about buckets: leaves those rows of a chunk that lie in them. Distances of the others are not asked for.
template <typename T>
void keep_drawn(const PgkmPoints &points, const PgkmOpen &open, const Bytes &request, ShareState &state)
{
    Reader reader(request);
    reader.operation();
    const auto bits = reader.get<std::int32_t>();
    reader.get<std::uint8_t>();
    const auto wanted = reader.get<std::vector<std::uint64_t>>();
    cpu::Context context(without_strategies(open), open.threads);
    const cpu::BlockRunner runner(context, true);
    const PgkmPoints all = clustered(points, state);
    const cpu::SeedRows<T> rows = {static_cast<const T *>(all.values), all.weights, all.n, all.d};
    const cpu::Buffer<std::uint64_t> keys = cpu::find_keys(runner, rows);
    std::vector<T> values;
    state.weights.clear();
    state.drawn = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (i % rows_per_poll == 0)
            poll(open.host);
        if (!std::binary_search(wanted.begin(), wanted.end(), bucket_of(keys[static_cast<std::size_t>(i)], bits)))
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

Writer Chunks::serve(const Bytes &asked, const PgkmPoints &chunk, ShareState &state)
{
    Reader reader(asked);
    Writer reply;
    Share(session_, chunk, state, open_).serve(reader, reply);
    return reply;
}

// Calls body(chunk, state) for each chunk of a pass, its rows brought into the space of the distance.
template <typename Body>
void Chunks::for_chunks(Kind kind, Body &&body)
{
    PgkmPoints chunk;
    source_.begin_pass(open_.host);
    while (source_.take(open_.host, chunk)) {
        ShareState state;
        state.passing = kind != Kind::labels;
        state.unordered = kind == Kind::rows;
        session_.unload();
        if (!transform_.empty())
            serve(transform_, chunk, state);
        session_.unload();
        body(chunk, state);
        session_.unload(); // before the chunk goes, and its state
    }
}

void Chunks::pass(std::initializer_list<const Bytes *> before, const Bytes &request, const Merge &merge, Kind kind)
{
    for_chunks(kind, [&](const PgkmPoints &chunk, ShareState &state) {
        if (kind == Kind::drawn)
            cpu::with_element(chunk,
                              [&](auto element) { keep_drawn<decltype(element)>(chunk, open_, request, state); });
        if (state.drawn == 0)
            return;
        for (const Bytes *earlier : before)
            if (!earlier->empty())
                serve(*earlier, chunk, state);
        const Writer reply = serve(request, chunk, state);
        Reader reader(reply.bytes());
        merge(reader);
    });
}

// One answer for all chunks, in float64. A device sums each chunk by itself.
void Chunks::sum_up(const Bytes &request, const Merge &merge)
{
    Reader asked(request);
    asked.operation();
    if (session_.table() != cpu_backend() ||
        static_cast<Function>(Reader(asked).get<std::uint32_t>()) == Function::assign)
        return pass({}, request, merge);
    ChunkSums sums(session_, asked, shape_);
    for_chunks(Kind::rows,
               [&](const PgkmPoints &chunk, const ShareState &state) { sums.add(clustered(chunk, state)); });
    const Writer reply = sums.finish();
    Reader reader(reply.bytes());
    merge(reader);
}

void Chunks::ask(const Writer &asked, const Merge &merge)
{
    const Bytes &request = asked.bytes();
    switch (Reader(request).operation()) {
    case Operation::transform:
        transform_ = request;
        return;
    case Operation::iterate:
        iteration_before_ = std::move(iteration_);
        iteration_ = request;
        return pass({}, request, merge);
    case Operation::farthest:
        return pass({&iteration_}, request, merge);
    case Operation::call:
        return sum_up(request, merge);
    case Operation::seed_begin:
        begin_ = request;
        for (Bytes *later : {&add_, &weigh_, &gains_})
            later->clear();
        return;
    case Operation::seed_weigh:
        seed(request, merge);
        weigh_ = request;
        return;
    case Operation::seed_gains:
        seed(request, merge);
        gains_ = request;
        return;
    case Operation::seed_runs:
        return seed(request, merge, Kind::drawn);
    case Operation::seed_add:
    case Operation::seed_exact:
    case Operation::seed_choose:
    case Operation::seed_masses:
        return seed(request, merge);
    default:
        return pass({}, request, merge);
    }
}

bool Chunks::labels_have_changed()
{
    bool changed = false;
    pass(
        {&iteration_before_}, iteration_, [&](Reader &reply) { changed = reply.get<std::uint8_t>() != 0 || changed; },
        Kind::labels);
    return changed;
}

} // namespace pgkm::nodes

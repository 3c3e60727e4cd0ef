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

// Leaves those rows of a chunk that lie in the buckets of so many bits which the rest of the request lists.
template <typename T>
void keep_drawn(const PgkmPoints &points, const PgkmOpen &open, std::int32_t bits, Reader &request, ShareState &state)
{
    const std::vector<std::uint64_t> wanted = request.get_all<std::uint64_t>();
    PgkmOpen here = open;
    here.tuning = {}; // what is forced may be a strategy of a device
    cpu::Context context(here, open.threads);
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

// For requests about buckets: distances of the other rows are not asked for.
void Chunks::keep_drawn_rows(const PgkmPoints &chunk, const Bytes &request, ShareState &state) const
{
    Reader reader(request), begin(begin_);
    begin.operation();
    const std::int32_t bits =
        reader.operation() == Operation::seed_rows ? reader.get<std::int32_t>() : begin.get<std::int32_t>();
    if (chunk.element == PGKM_FLOAT32)
        keep_drawn<float>(chunk, open_, bits, reader, state);
    else
        keep_drawn<double>(chunk, open_, bits, reader, state);
}

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
        element_ = chunk.element;
        d_ = chunk.d;
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
            keep_drawn_rows(chunk, request, state);
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
    if (session_.table() != cpu_backend())
        return pass({}, request, merge);
    ChunkSums sums(session_, source_.n, request);
    for_chunks(Kind::rows,
               [&](const PgkmPoints &chunk, const ShareState &state) { sums.add(clustered(chunk, state)); });
    const Writer reply = sums.finish();
    Reader reader(reply.bytes());
    merge(reader);
}

// Keeps the rows that a request has made chosen ones.
template <typename T>
void Chunks::choose(Operation operation, Reader &request)
{
    std::vector<T> rows;
    if (!add_.empty()) {
        Reader before(add_);
        before.operation();
        before.get<std::int32_t>();
        rows = before.get_all<T>();
    }
    const auto index = request.get<std::int32_t>(); // of the trial; else of the first row
    Reader from = request;
    if (operation == Operation::seed_choose) {
        from = Reader(gains_);
        from.operation();
    }
    const std::vector<T> more = from.get_all<T>();
    const auto begin = more.begin() + (operation == Operation::seed_choose ? std::ptrdiff_t{index} * d_ : 0);
    rows.insert(rows.end(), begin, operation == Operation::seed_choose ? begin + d_ : more.end());
    Writer all(Operation::seed_add);
    all.put(std::int32_t{0});
    all.put(rows);
    add_ = all.bytes();
    gains_.clear();
}

void Chunks::ask(const Writer &asked, const Merge &merge)
{
    const Bytes &request = asked.bytes();
    Reader reader(request);
    const Operation operation = reader.operation();
    switch (operation) {
    case Operation::transform:
        transform_ = request;
        return;
    case Operation::iterate:
        iteration_before_ = std::move(iteration_);
        iteration_ = request;
        return pass({}, request, merge);
    case Operation::farthest:
        return pass({&iteration_}, request, merge);
    case Operation::seed_begin:
        begin_ = request;
        for (Bytes *later : {&add_, &sums_, &gains_})
            later->clear();
        return;
    case Operation::seed_sums:
        sums_ = request;
        return pass({&begin_, &add_}, request, merge);
    case Operation::seed_keys:
    case Operation::seed_rows:
        return pass({&begin_, &add_, &sums_}, request, merge, Kind::drawn);
    case Operation::seed_last:
        return pass({&begin_}, request, merge, Kind::ordered);
    case Operation::seed_gains:
        gains_ = request;
        return pass({&begin_, &add_, &sums_}, request, merge);
    case Operation::seed_exact:
        return pass({&begin_, &add_, &sums_, &gains_}, request, merge);
    case Operation::seed_masses:
        return pass({&begin_, &add_}, request, merge);
    case Operation::seed_add:
    case Operation::seed_choose:
        if (operation == Operation::seed_add)
            pass({&begin_, &add_}, request, merge);
        else
            pass({&begin_, &add_, &sums_, &gains_}, request, merge);
        return element_ == PGKM_FLOAT32 ? choose<float>(operation, reader) : choose<double>(operation, reader);
    case Operation::cross:
    case Operation::em_step:
        return sum_up(request, merge);
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

// gathered.cpp - rows that differ, of one chunk after the other.
#include "cpu/entries/gathered.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/seed/runner.hpp"
#include "cpu/unless_short.hpp"

namespace pgkm::cpu {
namespace {

// There is room for so many times what the rows that differ take: the fit needs some as well.
constexpr std::uint64_t times_room = 4;
// Of a row in the table of those that differ, while it grows.
constexpr std::uint64_t table_bytes = 64;
constexpr std::size_t values_per_poll = std::size_t{1} << 20;

template <typename T>
Buffer<T> grown(const Context &context, Budget &budget, const Buffer<T> &from, std::size_t used, std::size_t size)
{
    Buffer<T> to(budget, size);
    for (std::size_t begin = 0; begin < used; begin += values_per_poll) {
        context.poll();
        std::copy_n(from.begin() + begin, std::min(values_per_poll, used - begin), to.begin() + begin);
    }
    return to;
}

} // namespace

GatheredEntries::GatheredEntries(Context &context, const PgkmPoints &like) : kept_{context, like}, keys_(kept_)
{
    kept_.points.n = 0;
    differ_.push_back(std::make_unique<DistinctRows>(context.budget, keys_));
}

// Doubles the room.
void GatheredEntries::make_room()
{
    const std::int64_t room = std::max<std::int64_t>(256, 2 * room_);
    const auto used = static_cast<std::size_t>(differ_[0]->size());
    Context &context = kept_.context;
    Budget &budget = context.budget;
    if (!budget.allows(times_room * static_cast<std::uint64_t>(room) * (keys_.row_bytes() + table_bytes)))
        throw Error(PGKM_LIMIT, "no room for entries");
    values_ =
        grown(context, budget, values_, used * keys_.row_bytes(), static_cast<std::size_t>(room) * keys_.row_bytes());
    kept_.points.values = values_.data();
    if (kept_.points.weights != nullptr) {
        weights_ = grown(context, budget, weights_, used, static_cast<std::size_t>(room));
        kept_.points.weights = weights_.data();
    }
    room_ = room;
}

void GatheredEntries::add_rows(const Data &rows)
{
    const RowKeys keys(rows);
    const std::int64_t size = seed_block_rows(rows.points.d), n = rows.points.n;
    Buffer<std::uint64_t> block(kept_.context.budget, static_cast<std::size_t>(size));
    DistinctRows &differ = *differ_[0];
    for (std::int64_t first = 0; first < n; first += size) {
        kept_.context.poll();
        const std::int64_t count = std::min(size, n - first);
        keys.find(first, count, block.data());
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = first + i, last = differ.size(); // where it stays, if it is new
            if (last == room_)
                make_room();
            std::memcpy(values_.data() + static_cast<std::size_t>(last) * keys_.row_bytes(), keys.row(row),
                        keys_.row_bytes());
            if (kept_.points.weights != nullptr)
                weights_[last] = rows.points.weights[row];
            differ.add(last, block[i], rows.counts == nullptr ? 1 : rows.counts[row]);
        }
    }
}

bool GatheredEntries::add(const PgkmPoints &chunk)
{
    const Data rows = {kept_.context, chunk};
    seen_ += chunk.n;
    try {
        if (chunk.n < least_rows_of_entries)
            add_rows(rows);
        else if (const auto own = make_entries(rows, {chunk.n}))
            add_rows(own->data);
        else
            return false;
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
        return false;
    }
    return differ_[0]->size() * least_copies <= std::max(seen_, least_rows_of_entries);
}

std::shared_ptr<Entries> GatheredEntries::take()
{
    auto entries = unless_short([&] { return std::make_shared<Entries>(kept_, seen_, keys_, differ_); });
    differ_.clear();
    values_ = {};
    weights_ = {};
    return entries;
}

} // namespace pgkm::cpu

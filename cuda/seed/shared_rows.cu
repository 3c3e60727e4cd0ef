// shared_rows.cu - where the peers' rows lie, and what they tell one another of them.
#include "seed/shared_rows.hpp"

#include <algorithm>
#include <string>

#include "seed/canonical.hpp"
#include "seed/oversampling.hpp"

namespace pgkm::cuda {

template <typename T>
SharedRows<T>::SharedRows(Data &data, const PgkmProblem &problem, std::size_t lent_bytes)
    : data_(data), problem_(problem), link_(data.context, *problem.peers)
{
    if (!link_.direct() || any_of_peers(problem.peers, !data.resident))
        throw Error(PGKM_UNSUPPORTED, "rows of several devices are seeded where each reads the others' memory");
    if (problem.peers->n_rows > most_seed_rows)
        throw Error(PGKM_LIMIT, "GPUs seed at most " + std::to_string(most_seed_rows) + " rows");
    struct Share {
        const T *values;
        std::int64_t n;
        std::int64_t *lent;
    };
    const T *const values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * data.host.d;
    const std::size_t words = (lent_bytes + 7) / 8 + static_cast<std::size_t>(problem.n_rows);
    const std::vector<Share> all = link_.tell(Share{values, problem.n_rows, link_.lend(words)});
    table_.shares = problem.peers->shares;
    table_.d = data.host.d;
    for (std::size_t share = 0; share < all.size(); ++share) {
        table_.of[share] = all[share].values;
        table_.first[share + 1] = table_.first[share] + all[share].n;
        lent_.push_back(all[share].lent);
    }
}

template <typename T>
void SharedRows<T>::complete(std::int64_t *of_all)
{
    const auto copy = [&](std::int64_t *to, const std::int64_t *from, std::int64_t rows) {
        enqueue_copy(to, from, static_cast<std::size_t>(rows), context().compute.get());
    };
    copy(lent(), of_all + first(), own());
    link_.meet();
    for (int other = 0; other < shares(); ++other)
        if (other != share())
            copy(of_all + table_.first[other], lent_[static_cast<std::size_t>(other)],
                 table_.first[other + 1] - table_.first[other]);
    link_.meet();
}

// Each peer gives those of its own rows, in their order.
template <typename T>
std::vector<T> SharedRows<T>::values_of(const std::vector<std::int64_t> &rows) const
{
    const auto d = static_cast<std::size_t>(data_.host.d);
    const auto share_of = [&](std::int64_t row) {
        const std::int64_t *const begin = table_.first + 1;
        return static_cast<std::size_t>(std::upper_bound(begin, begin + shares(), row) - begin);
    };
    std::vector<std::int64_t> own_rows;
    for (const std::int64_t row : rows)
        if (share_of(row) == static_cast<std::size_t>(share()))
            own_rows.push_back(row - first());
    const std::vector<T> own = rows_of<T>(data_, problem_, own_rows);
    const PgkmPiece *const pieces = exchange(link_.peers(), own.data(), own.size() * sizeof(T));
    std::vector<const T *> next;
    for (int peer = 0; peer < shares(); ++peer)
        next.push_back(static_cast<const T *>(pieces[peer].data));
    std::vector<T> values(rows.size() * d);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const T *&from = next[share_of(rows[i])];
        std::copy_n(from, d, values.data() + i * d);
        from += d;
    }
    return values;
}

template <typename T>
DeviceArray<double> SharedRows<T>::weights()
{
    if (data_.host.weights == nullptr)
        return {};
    DeviceArray<double> all(context().budget, static_cast<std::size_t>(n()));
    enqueue_copy(all.get() + first(), data_.weights.get() + problem_.first_row, static_cast<std::size_t>(own()),
                 context().compute.get());
    complete(reinterpret_cast<std::int64_t *>(all.get()));
    return all;
}

template class SharedRows<float>;
template class SharedRows<double>;

} // namespace pgkm::cuda

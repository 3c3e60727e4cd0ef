// peers.cpp - rows for empty clusters, from all peers of a problem.
#include "backend/peers.hpp"

#include <cmath>
#include <cstring>

namespace pgkm {
namespace {

// A row as it travels; its values come behind those of all.
struct Travelling {
    double square;
    double weight;
    std::int64_t label;
};

} // namespace

template <typename T>
std::vector<char> pack(const PgkmPoints &points, std::int64_t first_row, const std::vector<FarRow> &rows)
{
    const std::size_t row_bytes = static_cast<std::size_t>(points.d) * sizeof(T);
    std::vector<char> bytes(rows.size() * (sizeof(Travelling) + row_bytes));
    char *head = bytes.data(), *values = head + rows.size() * sizeof(Travelling);
    for (const FarRow &row : rows) {
        const std::int64_t at = first_row + row.row;
        const Travelling one = {row.square, points.weights == nullptr ? 1.0 : points.weights[at], row.label};
        std::memcpy(head, &one, sizeof one);
        std::memcpy(values, static_cast<const T *>(points.values) + at * points.d, row_bytes);
        head += sizeof one;
        values += row_bytes;
    }
    return bytes;
}

template <typename T>
void unpack(const void *bytes, std::size_t size, std::int32_t k, FarRows<T> &rows)
{
    const auto d = static_cast<std::size_t>(rows.points().d);
    const std::size_t count = size / (sizeof(Travelling) + d * sizeof(T));
    const char *head = static_cast<const char *>(bytes), *values = head + count * sizeof(Travelling);
    bool right = count * (sizeof(Travelling) + d * sizeof(T)) == size;
    std::vector<T> content(d);
    for (std::size_t i = 0; i < count && right; ++i) {
        Travelling one;
        std::memcpy(&one, head + i * sizeof one, sizeof one);
        std::memcpy(content.data(), values + i * d * sizeof(T), d * sizeof(T));
        right = one.square > 0.0 && std::isfinite(one.square) && one.label >= 0 && one.label < k && one.weight >= 0.0 &&
                one.weight <= max_magnitude &&
                std::all_of(content.begin(), content.end(), [](T value) { return std::abs(value) <= max_magnitude; });
        rows.add(one.square, static_cast<std::int32_t>(one.label), one.weight, content.data());
    }
    if (!right)
        throw Error(PGKM_INVALID, "rows for empty clusters came that there cannot be");
}

template <typename T>
void relocate_by_farthest_of_peers(const PgkmPoints &points, const PgkmProblem &problem, std::vector<Int128> &masses,
                                   const std::function<std::vector<FarRow>(std::size_t most)> &farthest,
                                   const MoveRows &move)
{
    if (problem.peers == nullptr)
        return relocate_by_farthest<T>(points, problem, masses, farthest, move);
    const PgkmPeers &peers = *problem.peers;
    FarRows<T> all(points);
    PgkmProblem whole = problem; // whose rows are `all`
    whole.first_row = 0;
    whole.n_rows = peers.n_rows;
    const auto of_all = [&](std::size_t most) {
        const std::vector<char> own = pack<T>(points, problem.first_row, farthest(most));
        const PgkmPiece *const pieces = exchange(peers, own.data(), own.size());
        all.clear();
        for (std::int32_t share = 0; share < peers.shares; ++share)
            unpack(pieces[share].data, pieces[share].bytes, problem.k, all);
        return all.first(most);
    };
    relocate_by_farthest<T>(all.points(), whole, masses, of_all, move);
}

template std::vector<char> pack<float>(const PgkmPoints &, std::int64_t, const std::vector<FarRow> &);
template void unpack(const void *, std::size_t, std::int32_t, FarRows<float> &);
template void relocate_by_farthest_of_peers<float>(const PgkmPoints &, const PgkmProblem &, std::vector<Int128> &,
                                                   const std::function<std::vector<FarRow>(std::size_t)> &,
                                                   const MoveRows &);
template std::vector<char> pack<double>(const PgkmPoints &, std::int64_t, const std::vector<FarRow> &);
template void unpack(const void *, std::size_t, std::int32_t, FarRows<double> &);
template void relocate_by_farthest_of_peers<double>(const PgkmPoints &, const PgkmProblem &, std::vector<Int128> &,
                                                    const std::function<std::vector<FarRow>(std::size_t)> &,
                                                    const MoveRows &);

} // namespace pgkm

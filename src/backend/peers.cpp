// peers.cpp - rows for empty clusters, from all peers of a problem.
#include "backend/peers.hpp"

#include <cstring>

namespace pgkm {
namespace {

// A row as it travels; its values come behind those of all.
struct Travelling {
    double square;
    double weight;
    std::int64_t label;
};

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
void unpack(const PgkmPiece &piece, std::int32_t d, FarRows<T> &rows)
{
    const std::size_t row_bytes = static_cast<std::size_t>(d) * sizeof(T);
    const std::size_t count = piece.bytes / (sizeof(Travelling) + row_bytes);
    const char *head = static_cast<const char *>(piece.data), *values = head + count * sizeof(Travelling);
    std::vector<T> content(static_cast<std::size_t>(d));
    for (std::size_t i = 0; i < count; ++i) {
        Travelling one;
        std::memcpy(&one, head + i * sizeof one, sizeof one);
        std::memcpy(content.data(), values + i * row_bytes, row_bytes);
        rows.add(one.square, static_cast<std::int32_t>(one.label), one.weight, content.data());
    }
}

} // namespace

template <typename T>
void relocate_by_farthest_of_peers(const PgkmPoints &points, const PgkmProblem &problem, Sums &sums,
                                   const std::function<std::vector<FarRow>(std::size_t most)> &farthest)
{
    if (problem.peers == nullptr)
        return relocate_by_farthest<T>(points, problem, sums, farthest);
    const PgkmPeers &peers = *problem.peers;
    FarRows<T> all(points);
    PgkmProblem whole = problem; // whose rows are `all`
    whole.first_row = 0;
    whole.n_rows = peers.n_rows;
    relocate_by_farthest<T>(all.points(), whole, sums, [&](std::size_t most) {
        const std::vector<char> own = pack<T>(points, problem.first_row, farthest(most));
        const PgkmPiece *const pieces = exchange(peers, own.data(), own.size());
        all.clear();
        for (std::int32_t share = 0; share < peers.shares; ++share)
            unpack(pieces[share], points.d, all);
        return all.first(most);
    });
}

template void relocate_by_farthest_of_peers<float>(const PgkmPoints &, const PgkmProblem &, Sums &,
                                                   const std::function<std::vector<FarRow>(std::size_t)> &);
template void relocate_by_farthest_of_peers<double>(const PgkmPoints &, const PgkmProblem &, Sums &,
                                                    const std::function<std::vector<FarRow>(std::size_t)> &);

} // namespace pgkm

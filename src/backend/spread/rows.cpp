// rows.cpp - loads rows part by part, and once more where a call wants a problem's rows together.
#include "backend/spread/rows.hpp"

#include <algorithm>
#include <numeric>

#include "numeric/error.hpp"

namespace pgkm::spread {

Rows::Rows(Places &places, const PgkmPoints &points)
    : places_(places), points_(points), parts_(places.count()), gathered_(places.count())
{
    const auto count = static_cast<std::int64_t>(places.count());
    const std::int64_t each = points.n / count, more = points.n % count;
    std::vector<std::size_t> which;
    for (std::int64_t i = 0; i < count; ++i)
        if (each > 0 || i < std::max<std::int64_t>(more, 1)) // a place for no rows at all
            which.push_back(static_cast<std::size_t>(i));
    try {
        places.run(which, [&](std::size_t place, PgkmError *error) {
            const auto i = static_cast<std::int64_t>(place);
            return load(place, parts_[place], i * each + std::min(i, more), each + (i < more ? 1 : 0), error);
        });
    } catch (...) {
        for (const Part &part : parts_)
            places_.inner().unload(part.data);
        throw;
    }
}

Rows::~Rows()
{
    for (const std::vector<Part> *parts : {&parts_, &gathered_})
        for (const Part &part : *parts)
            places_.inner().unload(part.data);
}

PgkmPoints Rows::slice(std::int64_t first, std::int64_t n) const
{
    PgkmPoints some = points_;
    some.n = n;
    if (some.values != nullptr)
        some.values = static_cast<const char *>(points_.values) +
                      static_cast<std::size_t>(first) * static_cast<std::size_t>(points_.d) * element_bytes();
    if (some.weights != nullptr)
        some.weights += first;
    return some;
}

PgkmStatus Rows::load(std::size_t place, Part &part, std::int64_t first, std::int64_t n, PgkmError *error)
{
    places_.inner().unload(part.data);
    part = {first, n, nullptr};
    const PgkmPoints some = slice(first, n);
    return places_.inner().load(places_.context(place), &some, &part.data, error);
}

std::vector<Piece> Rows::pieces_of(const PgkmProblem &problem) const
{
    std::vector<Piece> pieces;
    for (std::size_t place = 0; place < parts_.size(); ++place) {
        const Part &part = parts_[place];
        const std::int64_t first = std::max(problem.first_row, part.first),
                           end = std::min(problem.first_row + problem.n_rows, part.first + part.n);
        if (first >= end)
            continue;
        Piece &piece = pieces.emplace_back(Piece{place, first - problem.first_row, problem});
        piece.problem.first_row = first - part.first;
        piece.problem.n_rows = end - first;
    }
    if (pieces.empty())
        throw Error(PGKM_INVALID, "a problem needs rows within the points");
    return pieces;
}

PgkmData *Rows::gather(std::size_t place, const PgkmProblem &problem, PgkmError *error)
{
    Part &part = gathered_[place];
    if (part.data != nullptr && part.first == problem.first_row && part.n == problem.n_rows)
        return part.data;
    load(place, part, problem.first_row, problem.n_rows, error);
    return part.data;
}

PgkmData *Rows::data(std::size_t place, PgkmError *error)
{
    Part &part = parts_[place];
    if (part.data == nullptr)
        load(place, part, part.first, part.n, error);
    return part.data;
}

void Rows::lend(std::size_t place)
{
    places_.inner().unload(parts_[place].data);
    parts_[place].data = nullptr;
}

void Rows::give_back()
{
    const std::uint64_t row_bytes = static_cast<std::uint64_t>(points_.d) * element_bytes();
    for (std::size_t place = 0; place < gathered_.size(); ++place) {
        Part &part = gathered_[place];
        const auto rows = static_cast<std::uint64_t>(part.n + 4 * parts_[place].n);
        if (places_.device_memory() != 0 && rows * row_bytes > places_.device_memory()) {
            places_.inner().unload(part.data);
            part = {};
        }
    }
}

} // namespace pgkm::spread

// rows.cpp - loads rows run by run, and once more where a call wants a problem's rows together.
#include "backend/spread/rows.hpp"

#include <algorithm>
#include <numeric>

#include "numeric/error.hpp"

namespace pgkm::spread {

Rows::Rows(Contexts &contexts, const PgkmPoints &points)
    : contexts_(contexts), points_(points), own_(contexts.count()), gathered_(contexts.count())
{
    const auto count = static_cast<std::int64_t>(contexts.count());
    const std::int64_t each = points.n / count, more = points.n % count;
    std::vector<std::size_t> which;
    for (std::int64_t i = 0; i < count; ++i)
        if (each > 0 || i < std::max<std::int64_t>(more, 1)) // a context for no rows at all
            which.push_back(static_cast<std::size_t>(i));
    try {
        contexts.run(which, [&](std::size_t context, PgkmError *error) {
            const auto i = static_cast<std::int64_t>(context);
            return load(context, own_[context], i * each + std::min(i, more), each + (i < more ? 1 : 0), error);
        });
    } catch (...) {
        for (const Run &run : own_)
            contexts_.inner().unload(run.data);
        throw;
    }
}

Rows::~Rows()
{
    for (const std::vector<Run> *runs : {&own_, &gathered_})
        for (const Run &run : *runs)
            contexts_.inner().unload(run.data);
}

PgkmStatus Rows::load(std::size_t context, Run &run, std::int64_t first, std::int64_t n, PgkmError *error)
{
    contexts_.inner().unload(run.data);
    run = {first, n, nullptr};
    const PgkmPoints some = part_of(points_, first, n);
    return contexts_.inner().load(contexts_.get(context), &some, &run.data, error);
}

std::vector<Share> Rows::shares_of(const PgkmProblem &problem) const
{
    std::vector<Share> shares;
    for (std::size_t context = 0; context < own_.size(); ++context) {
        const Run &run = own_[context];
        const std::int64_t first = std::max(problem.first_row, run.first),
                           end = std::min(problem.first_row + problem.n_rows, run.first + run.n);
        if (first >= end)
            continue;
        Share &share = shares.emplace_back(Share{context, first - problem.first_row, problem});
        share.problem.first_row = first - run.first;
        share.problem.n_rows = end - first;
    }
    if (shares.empty())
        throw Error(PGKM_INVALID, "a problem needs rows within the points");
    return shares;
}

PgkmData *Rows::gather(std::size_t context, const PgkmProblem &problem, PgkmError *error)
{
    const Run &own = own_[context];
    if (own.first == problem.first_row && own.n == problem.n_rows)
        return data(context, error);
    Run &run = gathered_[context];
    if (run.data != nullptr && run.first == problem.first_row && run.n == problem.n_rows)
        return run.data;
    load(context, run, problem.first_row, problem.n_rows, error);
    return run.data;
}

PgkmData *Rows::data(std::size_t context, PgkmError *error)
{
    Run &run = own_[context];
    if (run.data == nullptr)
        load(context, run, run.first, run.n, error);
    return run.data;
}

void Rows::unload_own(std::size_t context)
{
    contexts_.inner().unload(own_[context].data);
    own_[context].data = nullptr;
}

void Rows::unload_gathered(std::size_t context)
{
    contexts_.inner().unload(gathered_[context].data);
    gathered_[context] = {};
}

void Rows::make_room_for_fit()
{
    for (std::size_t context = 0; context < gathered_.size(); ++context) {
        const auto rows = static_cast<std::uint64_t>(gathered_[context].n + 4 * own_[context].n);
        if (rows * shape().row_bytes() > contexts_.device_memory())
            unload_gathered(context);
    }
}

} // namespace pgkm::spread

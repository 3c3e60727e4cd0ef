#include "engine/session.hpp"

namespace pgkm {
namespace {

void check(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        throw Error(status, error.text);
}

} // namespace

Session::Session(const BackendChoice &choice, const PgkmOpen &options) : table_(choice.table)
{
    PgkmOpen open = options;
    open.struct_size = sizeof open;
    open.device = choice.device;
    open.channel = choice.channel;
    PgkmError error = {};
    check(table_->open(&open, &context_, &error), error);
}

Session::~Session()
{
    table_->unload(data_);
    table_->close(context_);
}

void Session::load(const PgkmPoints &points)
{
    table_->unload(data_);
    data_ = nullptr;
    points_ = points;
    PgkmError error = {};
    check(table_->load(context_, &points_, &data_, &error), error);
}

std::vector<Summary> Session::summarise(const std::vector<PgkmProblem> &problems, bool want_moments)
{
    std::vector<Summary> summaries(problems.size(), Summary(points_.d));
    std::vector<PgkmSummary> views;
    for (Summary &summary : summaries)
        views.push_back({summary.min.data(), summary.max.data(), summary.max_abs.data(), summary.mean.data(),
                         summary.variance.data(), 1.0});
    PgkmError error = {};
    check(table_->summarise(data_, problems.data(), static_cast<std::int64_t>(problems.size()), want_moments ? 1 : 0,
                            views.data(), &error),
          error);
    for (std::size_t i = 0; i < views.size(); ++i)
        summaries[i].max_weight = views[i].max_weight;
    return summaries;
}

void Session::seed(std::vector<PgkmProblem> &problems, const PgkmSeedParams &params)
{
    PgkmError error = {};
    check(table_->seed(data_, problems.data(), static_cast<std::int64_t>(problems.size()), &params, &error), error);
}

void Session::fit(std::vector<PgkmProblem> &problems, const PgkmFitParams &params)
{
    PgkmError error = {};
    check(table_->fit(data_, problems.data(), static_cast<std::int64_t>(problems.size()), &params, &error), error);
}

void Session::assign(const std::vector<PgkmProblem> &problems, std::vector<PgkmAssignment> &assignments)
{
    PgkmError error = {};
    check(table_->assign(data_, problems.data(), static_cast<std::int64_t>(problems.size()), assignments.data(), &error),
          error);
}

} // namespace pgkm

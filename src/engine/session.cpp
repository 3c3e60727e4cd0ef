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

Summary Session::summarise(bool want_moments)
{
    Summary summary(points_.d);
    PgkmSummary view = {summary.min.data(),  summary.max.data(),      summary.max_abs.data(),
                        summary.mean.data(), summary.variance.data(), 1.0};
    PgkmProblem problem = {};
    problem.n_rows = points_.n;
    PgkmError error = {};
    check(table_->summarise(data_, &problem, 1, want_moments ? 1 : 0, &view, &error), error);
    summary.max_weight = view.max_weight;
    return summary;
}

void Session::seed(PgkmProblem &problem, const PgkmSeedParams &params)
{
    PgkmError error = {};
    check(table_->seed(data_, &problem, 1, &params, &error), error);
}

void Session::fit(PgkmProblem &problem, const PgkmFitParams &params)
{
    PgkmError error = {};
    check(table_->fit(data_, &problem, 1, &params, &error), error);
}

void Session::assign(const PgkmProblem &problem, PgkmAssignment &assignment)
{
    PgkmError error = {};
    check(table_->assign(data_, &problem, 1, &assignment, &error), error);
}

} // namespace pgkm

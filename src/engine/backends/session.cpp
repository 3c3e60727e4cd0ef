#include "engine/backends/session.hpp"

#include <algorithm>

#include "numeric/processors.hpp"

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

void Session::moments(const std::vector<PgkmProblem> &problems, std::vector<PgkmMoments> &moments)
{
    PgkmError error = {};
    check(table_->moments(data_, problems.data(), static_cast<std::int64_t>(problems.size()), moments.data(), &error),
          error);
}

void Session::em_step(const std::vector<PgkmProblem> &problems, const std::vector<PgkmMixture> &mixtures,
                      std::vector<PgkmMixtureSums> &sums)
{
    PgkmError error = {};
    check(table_->em_step(data_, problems.data(), static_cast<std::int64_t>(problems.size()), mixtures.data(),
                          sums.data(), &error),
          error);
}

std::int32_t useful_threads(const PgkmSettings &settings, const Work &work)
{
    const double useful = std::min(work.shared / thread_pays + 1.0, 4096.0);
    return std::min(pgkm_cpu_threads(&settings), static_cast<std::int32_t>(useful));
}

PgkmOpen open_options(const PgkmSettings &settings, const PgkmHost &host, const Work &work)
{
    PgkmOpen open = {};
    open.threads = useful_threads(settings, work);
    open.memory_limit = settings.memory_limit;
    open.device_memory_limit = settings.gpu_memory_limit;
    open.tuning = settings.tuning;
    open.host = host;
    return open;
}

void require(const PgkmBackend &table, Capability capability)
{
    PgkmError error = {};
    if (capability != nullptr)
        check(capability(table, &error), error);
}

bool next_backend_may_help(PgkmStatus status)
{
    return status == PGKM_UNAVAILABLE || status == PGKM_UNSUPPORTED || status == PGKM_DEVICE_ERROR ||
           status == PGKM_LIMIT || status == PGKM_OUT_OF_MEMORY;
}

} // namespace pgkm

int32_t pgkm_cpu_threads(const PgkmSettings *settings)
{
    return settings->cpu_threads == 0 ? pgkm::usable_processors() : settings->cpu_threads;
}

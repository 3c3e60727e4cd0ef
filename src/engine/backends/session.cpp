// session.cpp - opening a backend and loading rows into it.
#include "engine/backends/session.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/spread/spread.hpp"
#include "cpu/cpu_backend.hpp"
#include "numeric/processors.hpp"

namespace pgkm {

bool is_fault_of_device(const Error &error)
{
    const PgkmStatus status = error.status();
    return status == PGKM_UNAVAILABLE || status == PGKM_UNSUPPORTED || status == PGKM_DEVICE_ERROR ||
           (status == PGKM_LIMIT && !error.is_limit_of_job()) || status == PGKM_OUT_OF_MEMORY;
}

namespace {

std::shared_ptr<PgkmContext> owned(const PgkmBackend &table, PgkmContext *context)
{
    return {context, [close = table.close](PgkmContext *open) { close(open); }};
}

} // namespace

Session::Session(const BackendChoice &choice, const PgkmOpen &options)
    : table_(choice.table), devices_(std::max(1, static_cast<std::int32_t>(choice.devices.size()))),
      device_memory_limit_(options.device_memory_limit)
{
    PgkmOpen open = options;
    open.struct_size = sizeof open;
    open.device = choice.device;
    open.channel = choice.channel;
    open.devices = choice.devices.data();
    open.n_devices = static_cast<std::int32_t>(choice.devices.size());
    PgkmError error = {};
    PgkmContext *context = nullptr;
    if (!choice.devices.empty() && choice.channel == 0) {
        table_ = spread::table();
        check(spread::open(*choice.table, open, &context, &error), error);
    } else {
        check(table_->open(&open, &context, &error), error);
    }
    context_ = owned(*table_, context);
    open_cpu_ = [options] {
        PgkmOpen beside = options;
        beside.struct_size = sizeof beside;
        beside.device = -1;
        beside.tuning = {}; // what is forced may be a strategy of the device
        PgkmError failure = {};
        PgkmContext *opened = nullptr;
        check(cpu_backend()->open(&beside, &opened, &failure), failure);
        return owned(*cpu_backend(), opened);
    };
}

Session::Session(const BackendChoice &choice, PgkmContext *context,
                 std::function<std::shared_ptr<PgkmContext>()> open_cpu)
    : table_(choice.table), devices_(1), context_(owned(*choice.table, context)), open_cpu_(std::move(open_cpu))
{
}

Session::Session(std::shared_ptr<PgkmContext> cpu) : table_(cpu_backend()), devices_(1), context_(std::move(cpu)) {}

std::shared_ptr<PgkmContext> Session::cpu()
{
    if (cpu_ == nullptr)
        cpu_ = table_ == cpu_backend() ? context_ : open_cpu_();
    return cpu_;
}

std::uint64_t Session::device_memory() const
{
    if (table_ == spread::table())
        return spread::device_memory(context_.get());
    return device_memory_limit_ == 0 ? UINT64_MAX : device_memory_limit_;
}

Session::~Session()
{
    unload();
}

ThreadPool &Session::pool()
{
    return cpu::pool_of(cpu().get());
}

void Session::run_tasks(std::int64_t tasks, std::int64_t threads, const ThreadPool::Body &body)
{
    if (std::min(tasks, threads) > 1)
        return parallel_for(pool(), tasks, threads, body);
    for (std::int64_t task = 0; task < tasks; ++task)
        body(task, 0);
}

void Session::load(const PgkmPoints &points)
{
    unload();
    points_ = points;
    PgkmError error = {};
    check(table_->load(context_.get(), &points_, &data_, &error), error);
}

void Session::unload()
{
    table_->unload(data_);
    data_ = nullptr;
    own_ = false;
}

void Session::load_own(const PgkmPoints &points)
{
    if (!own_ || !same_points(points_, points))
        load(points);
    own_ = true;
}

std::vector<Summary> Session::summarise(std::vector<PgkmProblem> &problems, bool want_moments)
{
    std::vector<Summary> summaries(problems.size(), Summary(points_.d));
    std::vector<PgkmSummary> views;
    for (Summary &summary : summaries)
        views.push_back({summary.min.data(), summary.max.data(), summary.mean.data(), summary.variance.data(), 1.0});
    run(&PgkmBackend::summarise, problems, want_moments ? 1 : 0, views.data());
    for (std::size_t i = 0; i < views.size(); ++i)
        summaries[i].max_weight = views[i].max_weight;
    return summaries;
}

void Session::assign(std::int64_t n, std::int32_t k, void *centroids, PgkmAssignment &wanted)
{
    std::vector<PgkmProblem> problems(1);
    problems[0].n_rows = n;
    problems[0].k = k;
    problems[0].centroids = centroids;
    run(&PgkmBackend::assign, problems, &wanted);
}

std::int32_t useful_threads(const PgkmSettings &settings, const Work &work)
{
    const double useful = std::min(1.0 + std::sqrt(work.shared / thread_costs), 4096.0);
    return std::min(pgkm_cpu_threads(&settings), static_cast<std::int32_t>(useful));
}

void on_first_backend(const PgkmSettings &settings, const Work &work, std::string *notice,
                      const std::function<void(const BackendChoice &)> &body)
{
    const std::vector<BackendChoice> choices = choose_backends(settings, work);
    for (std::size_t i = 0;; ++i) {
        try {
            return body(choices[i]);
        } catch (const Error &error) {
            if (i + 1 == choices.size() || !is_fault_of_device(error))
                throw;
            if (error.status() == PGKM_DEVICE_ERROR)
                *notice = std::string("the GPU failed (") + error.what() + "); the CPU finished the job";
        }
    }
}

} // namespace pgkm

int32_t pgkm_cpu_threads(const PgkmSettings *settings)
{
    return std::min(settings->cpu_threads == 0 ? pgkm::usable_processors() : settings->cpu_threads,
                    pgkm::granted_threads());
}

void pgkm_limit_threads(int32_t most)
{
    pgkm::thread_limit.store(most);
}

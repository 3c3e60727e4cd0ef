// session.hpp - one open backend: its context, the rows loaded there, its errors as exceptions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/call_table.hpp"
#include "engine/backends/registry.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

// Statistics of one problem with the memory they stand in.
struct Summary {
    explicit Summary(std::int32_t d)
    {
        for (std::vector<double> *part : {&min, &max, &mean, &variance})
            part->resize(static_cast<std::size_t>(d));
    }
    std::vector<double> min, max, mean, variance; // d each
    double max_weight = 1.0;
};

// The same rows in the same place, with the same weights.
inline bool same_points(const PgkmPoints &a, const PgkmPoints &b)
{
    return a.values == b.values && a.element == b.element && a.n == b.n && a.d == b.d && a.weights == b.weights;
}

// All functions throw what the backend reports as Error.
class Session {
  public:
    Session(const BackendChoice &choice, const PgkmOpen &options);
    // Takes over a context of the choice's backend that is open already. open_cpu: finds what cpu() says.
    Session(const BackendChoice &choice, PgkmContext *context, std::function<std::shared_ptr<PgkmContext>()> open_cpu);
    // The CPU's, in the context of a session that lasts longer.
    explicit Session(std::shared_ptr<PgkmContext> cpu);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    // Replaces what was loaded before. The rows stay where they are as long as they are loaded.
    void load(const PgkmPoints &points);
    // The same for rows that stay where they are from job to job: nothing is done when these very ones are loaded.
    void load_own(const PgkmPoints &points);

    void unload();

    const PgkmBackend *table() const { return table_; }
    // As many as were asked for.
    std::int32_t devices() const { return devices_; }
    // Bytes that each of several may take, as far as that is known here: a service may grant less. 0: not known.
    std::uint64_t device_memory() const;
    // The CPU backend's context, whose threads and memory all work of the job in this process shares: the session's
    // own, or, beside a device's, one that is opened when it is first asked for.
    std::shared_ptr<PgkmContext> cpu();
    ThreadPool &pool();
    // Runs body(task, worker) for every task in [0, tasks) on up to so many threads of that pool; one needs no pool.
    void run_tasks(std::int64_t tasks, std::int64_t threads, const ThreadPool::Body &body);
    // What the backend has of the loaded rows.
    PgkmData *data() { return data_; }

    // One for each problem.
    std::vector<Summary> summarise(std::vector<PgkmProblem> &problems, bool want_moments);

    // assign() of the first n rows to k centroids, where no scales are needed.
    void assign(std::int64_t n, std::int32_t k, void *centroids, PgkmAssignment &wanted);

    // The other functions of the table: session.run(&PgkmBackend::assign, problems, assignments.data()) is
    // assign() of all problems, whose further arguments are the table's.
    template <typename Problem, typename... Parameters, typename... Arguments>
    void run(PgkmStatus (*PgkmBackend::*function)(PgkmData *, Problem *, std::int64_t, Parameters...),
             std::vector<PgkmProblem> &problems, Arguments... arguments)
    {
        PgkmError error = {};
        check((table_->*function)(data_, problems.data(), static_cast<std::int64_t>(problems.size()), arguments...,
                                  &error),
              error);
    }

    void run(const Call &call)
    {
        PgkmError error = {};
        check(run_call(*table_, data_, call, &error), error);
    }

  private:
    static void check(PgkmStatus status, const PgkmError &error)
    {
        if (status != PGKM_OK)
            throw Error(status, error.text, error.sqlstate);
    }

    const PgkmBackend *table_;
    const std::int32_t devices_;
    const std::uint64_t device_memory_limit_ = 0; // 0: none
    std::shared_ptr<PgkmContext> context_;
    std::function<std::shared_ptr<PgkmContext>()> open_cpu_;
    std::shared_ptr<PgkmContext> cpu_; // as soon as it was asked for
    PgkmData *data_ = nullptr;
    PgkmPoints points_ = {};
    bool own_ = false; // what is loaded came by load_own()
};

// As many threads as the settings allow, but no more than the work is worth starting.
std::int32_t useful_threads(const PgkmSettings &settings, const Work &work);

// Whether another backend may do what has failed so.
bool is_fault_of_device(const Error &error);

// body(choice) on the first backend that can, as choose_backends() orders them: with backend = auto the CPU follows
// a device that failed. *notice says so then. Throws what the last backend throws.
void on_first_backend(const PgkmSettings &settings, const Work &work, std::string *notice,
                      const std::function<void(const BackendChoice &)> &body);

} // namespace pgkm

// session.hpp - an open backend with loaded points, closed again whatever a test does.
#pragma once

#include <stdexcept>

#include "backend/backend.h"
#include "subjects.hpp"

namespace conformance {

// A device leaves the naming of a row that fails to the CPU.
inline PgkmStatus of_failed_row(const Subject &subject)
{
    return subject.device >= 0 ? PGKM_UNSUPPORTED : PGKM_INVALID;
}

class Session {
  public:
    // Throws when the backend cannot be opened or the points not loaded.
    Session(const Subject &subject, const PgkmPoints &points, const PgkmHost &host = {}, std::int32_t threads = 3,
            std::uint64_t memory_limit = 0)
        : Session(subject.table)
    {
        PgkmOpen options = {};
        options.struct_size = sizeof options;
        options.device = subject.device;
        options.threads = threads;
        options.memory_limit = memory_limit;
        options.device_memory_limit = subject.device_memory_limit;
        options.tuning = subject.tuning;
        options.host = host;
        check(table_->open(&options, &context_, &error));
        check(table_->load(context_, &points, &data_, &error));
    }
    ~Session()
    {
        table_->unload(data_);
        table_->close(context_);
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    PgkmStatus summarise(const PgkmProblem *problems, std::size_t count, bool moments, PgkmSummary *summaries)
    {
        return table_->summarise(data_, problems, static_cast<std::int64_t>(count), moments ? 1 : 0, summaries, &error);
    }
    PgkmStatus seed(PgkmProblem *problems, std::size_t count, const PgkmSeedParams &params)
    {
        return table_->seed(data_, problems, static_cast<std::int64_t>(count), &params, &error);
    }
    PgkmStatus fit(PgkmProblem *problems, std::size_t count, const PgkmFitParams &params)
    {
        return table_->fit(data_, problems, static_cast<std::int64_t>(count), &params, &error);
    }
    PgkmStatus assign(const PgkmProblem *problems, std::size_t count, PgkmAssignment *assignments)
    {
        return table_->assign(data_, problems, static_cast<std::int64_t>(count), assignments, &error);
    }
    PgkmStatus moments(const PgkmProblem *problems, std::size_t count, PgkmMoments *moments)
    {
        return table_->moments(data_, problems, static_cast<std::int64_t>(count), moments, &error);
    }
    PgkmStatus em_step(const PgkmProblem *problems, std::size_t count, const PgkmMixture *mixtures,
                       PgkmMixtureSums *sums)
    {
        return table_->em_step(data_, problems, static_cast<std::int64_t>(count), mixtures, sums, &error);
    }

    PgkmStatus reduce(const PgkmProblem *problems, std::size_t count, const PgkmReduction &reduction,
                      PgkmReduced *reduced)
    {
        return table_->reduce(data_, problems, static_cast<std::int64_t>(count), &reduction, reduced, &error);
    }

    PgkmData *data() const { return data_; }

    PgkmError error = {};

  private:
    // Delegated to, so that the destructor runs even when opening throws.
    explicit Session(const PgkmBackend *table) : table_(table) {}

    void check(PgkmStatus status)
    {
        if (status != PGKM_OK)
            throw std::runtime_error(error.text);
    }

    const PgkmBackend *table_;
    PgkmContext *context_ = nullptr;
    PgkmData *data_ = nullptr;
};

} // namespace conformance

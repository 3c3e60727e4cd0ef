// session.hpp - RAII around one open backend: context, loaded points, errors as exceptions.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/backends/registry.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Statistics of one problem with the memory they stand in.
struct Summary {
    explicit Summary(std::int32_t d)
    {
        for (std::vector<double> *part : {&min, &max, &max_abs, &mean, &variance})
            part->resize(static_cast<std::size_t>(d));
    }
    std::vector<double> min, max, max_abs, mean, variance;
    double              max_weight = 1.0;
};

class Session {
  public:
    Session(const BackendChoice &choice, const PgkmOpen &options);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    // Replaces what was loaded before.
    void load(const PgkmPoints &points);
    // One problem or many, as the table has it.
    std::vector<Summary> summarise(const std::vector<PgkmProblem> &problems, bool want_moments);
    void seed(std::vector<PgkmProblem> &problems, const PgkmSeedParams &params);
    void fit(std::vector<PgkmProblem> &problems, const PgkmFitParams &params);
    void assign(const std::vector<PgkmProblem> &problems, std::vector<PgkmAssignment> &assignments);
    void moments(const std::vector<PgkmProblem> &problems, std::vector<PgkmMoments> &moments);
    void em_step(const std::vector<PgkmProblem> &problems, const std::vector<PgkmMixture> &mixtures,
                 std::vector<PgkmMixtureSums> &sums);

    const char *name() const { return table_->name; }

  private:
    const PgkmBackend *table_;
    PgkmContext       *context_ = nullptr;
    PgkmData          *data_ = nullptr;
    PgkmPoints         points_ = {};
};

// As many threads as the settings allow, but no more than the work is worth starting.
std::int32_t useful_threads(const PgkmSettings &settings, const Work &work);

// The options to open a backend with for so much work.
PgkmOpen open_options(const PgkmSettings &settings, const PgkmHost &host, const Work &work);

// Whether a backend has what a job needs: PGKM_OK, or PGKM_UNSUPPORTED with a text.
using Capability = PgkmStatus (*)(const PgkmBackend &table, PgkmError *error);

// Throws unless the backend has it; NULL: nothing special is needed.
void require(const PgkmBackend &table, Capability capability);

// What auto may leave for the next backend: everything that is the device's fault.
bool next_backend_may_help(PgkmStatus status);

// body(choice) on the first backend that can, as choose_backends() orders them. When a device
// failed on the way, *notice says so.
template <typename Body>
void on_first_backend(const PgkmSettings &settings, const Work &work, Capability capability, std::string *notice,
                      Body &&body)
{
    const std::vector<BackendChoice> choices = choose_backends(settings, work);
    for (std::size_t i = 0;; ++i) {
        try {
            require(*choices[i].table, capability);
            return body(choices[i]);
        } catch (const Error &error) {
            if (i + 1 == choices.size() || !next_backend_may_help(error.status()))
                throw;
            if (error.status() == PGKM_DEVICE_ERROR)
                *notice = std::string("the GPU failed (") + error.what() + "); the CPU finished the job";
        }
    }
}

} // namespace pgkm

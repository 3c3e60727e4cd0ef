// fit_run.hpp - requests of the engine's API and their results, as its tests need them.
#pragma once

#include <vector>

#include "engine/api.h"

inline PgkmRequest request_for(const std::vector<double> &values, std::int32_t d, std::int64_t k)
{
    PgkmRequest request = {};
    request.points = {values.data(), PGKM_FLOAT64, static_cast<std::int64_t>(values.size()) / d, d, nullptr};
    request.k = k;
    pgkm_options_default(&request.kmeans);
    request.settings.backend = PGKM_BACKEND_CPU;
    request.want_labels = 1;
    request.want_distances = 1;
    return request;
}

// Runs a job to its end; the result lives as long as this.
class FitRun {
  public:
    explicit FitRun(const PgkmRequest &request)
    {
        if (pgkm_job_start(&request, &job_, &error) != PGKM_OK)
            return;
        while (pgkm_job_wait(job_, 1000) == 0) {}
        pgkm_job_result(job_, 0, &result, &error);
    }
    ~FitRun() { pgkm_job_free(job_); }
    FitRun(const FitRun &) = delete;
    FitRun &operator=(const FitRun &) = delete;

    // Result `i` of several; the first one is `result`.
    PgkmStatus get(std::int64_t i, PgkmResult &one) const
    {
        PgkmError ignored;
        return pgkm_job_result(job_, i, &one, &ignored);
    }
    PgkmJobProgress progress() const
    {
        PgkmJobProgress progress;
        pgkm_job_progress(job_, &progress);
        return progress;
    }

    PgkmError error = {};
    PgkmResult result = {};

  private:
    PgkmJob *job_ = nullptr;
};

inline const std::vector<double> two_clouds = {0, 0, 0, 1, 1, 0, 10, 10, 10, 11, 11, 10};

// mixture_request.hpp - a request for a mixture on the CPU, and its fit.
#pragma once

#include <utility>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "engine/mixture/fitter.hpp"
#include "engine/mixture/options.hpp"

namespace pgkm {

// Of n x d float64 values, which stay the caller's; labels are wanted.
inline PgkmRequest mixture_request(const double *values, std::int64_t n, std::int32_t d, PgkmCovariance type,
                                   std::int64_t k)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_MIXTURE;
    request.points = {values, PGKM_FLOAT64, n, d, nullptr};
    request.k = k;
    pgkm_mixture_options_default(&request.mixture);
    request.mixture.covariance_type = type;
    request.settings.backend = PGKM_BACKEND_CPU;
    request.settings.device = -1;
    request.want_labels = 1;
    return request;
}

// A model for each group.
inline std::vector<MixtureModel> fit_all(const PgkmRequest &request)
{
    Monitor monitor;
    Workplace place({cpu_backend(), -1, 0}, open_options(request, pgkm_cpu_threads(&request.settings), monitor.host()));
    return fit_mixtures(request, place, monitor);
}

inline MixtureModel fit(const PgkmRequest &request)
{
    return std::move(fit_all(request)[0]);
}

} // namespace pgkm

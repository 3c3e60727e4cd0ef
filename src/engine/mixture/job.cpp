// job.cpp - fits of Gaussian mixtures as jobs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cpu/sums/moments.hpp"
#include "cpu/kernels/product_kernels.hpp"
#include "engine/backends/registry.hpp"
#include "engine/api.h"
#include "numeric/error.hpp"
#include "engine/job/job.hpp"
#include "engine/mixture/mixture.hpp"
#include "engine/mixture/clusters.hpp"
#include "engine/backends/session.hpp"
#include "engine/job/work.hpp"

namespace {

bool has_matrices(PgkmCovariance type)
{
    return type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED;
}

// What the threads of an only group work in: rows (where there are matrices centred and transformed, too)
// and responsibilities.
double blocks_bytes(const PgkmMixtureRequest &request)
{
    const double rows = (has_matrices(request.options.covariance_type) ? 3.0 : 1.0) * (request.points.d + 8.0);
    const double k = static_cast<double>(std::min(request.k, request.points.n));
    const int threads = pgkm::useful_threads(request.settings, pgkm::work_of(request));
    return threads * 8.0 * pgkm::cpu::block_rows * (rows + k);
}

struct MixtureJob : PgkmJob {
    explicit MixtureJob(const PgkmMixtureRequest &wanted) : request(wanted) {}
    void run() override { fits = pgkm::fit_mixtures(request, monitor); }

    PgkmMixtureRequest request;
    pgkm::MixtureFits fits;
};

} // namespace

PgkmStatus pgkm_mixture_start(const PgkmMixtureRequest *request, PgkmJob **job, PgkmError *error)
{
    *job = nullptr;
    return pgkm::guarded(error, [&] {
        const bool in_caller = pgkm::is_brief(pgkm::work_of(*request)) && pgkm_mixture_wants_device(request) == 0;
        *job = pgkm::start_job(std::make_unique<MixtureJob>(*request), in_caller);
    });
}

int pgkm_mixture_wants_device(const PgkmMixtureRequest *request)
{
    return pgkm::wants_device(request->settings, pgkm::work_of(*request)) ? 1 : 0;
}

PgkmStatus pgkm_mixture_result(PgkmJob *job, PgkmMixtureResult *result, PgkmError *error)
{
    return pgkm_mixture_group_result(job, 0, result, error);
}

PgkmStatus pgkm_mixture_group_result(PgkmJob *job, int64_t group, PgkmMixtureResult *result, PgkmError *error)
{
    *result = {};
    return pgkm::guarded(error, [&] {
        pgkm::require_done(job);
        const pgkm::MixtureFits &fits = static_cast<const MixtureJob *>(job)->fits;
        if (group < 0 || group >= static_cast<int64_t>(fits.models.size()))
            throw pgkm::Error(PGKM_INTERNAL, "the job has no such group");
        const pgkm::MixtureModel &model = fits.models[static_cast<std::size_t>(group)];
        const pgkm::MixtureParameters &parameters = model.parameters;
        const double count = pgkm::parameter_count(parameters.type, parameters.k, parameters.d);
        result->k = parameters.k;
        result->d = parameters.d;
        result->n = model.n;
        result->weights = parameters.weights.data();
        result->means = parameters.means.data();
        result->covariances = parameters.covariances.data();
        result->log_likelihood = model.log_likelihood;
        result->trace = model.trace.data();
        result->n_iter = static_cast<int32_t>(model.trace.size());
        result->converged = model.converged ? 1 : 0;
        result->aic = 2.0 * count - 2.0 * model.log_likelihood;
        result->bic = count * std::log(static_cast<double>(model.n)) - 2.0 * model.log_likelihood;
        result->labels = pgkm::data_or_null(model.labels);
        std::snprintf(result->notice, sizeof result->notice, "%s", fits.notice.c_str());
    });
}

uint64_t pgkm_mixture_group_estimate(const PgkmMixtureRequest *request, const PgkmGroup *group)
{
    const PgkmFitRequest clusters = pgkm::clusters_request(*request);
    const PgkmCovariance type = request->options.covariance_type;
    const double k = static_cast<double>(std::min(group->k, group->n)), d = request->points.d;
    const double values = k * (type == PGKM_COVARIANCE_FULL ? d * d : d);
    // k-means first; then sums and factors of the mixture, and up to 256 MB of copies of the sums.
    const double segments = std::clamp(static_cast<double>(group->n) / pgkm::cpu::block_rows, 1.0, 64.0);
    const double copies = std::max(values, std::min(segments * values, 33554432.0));
    // One for all components follows from the moments of all rows.
    const double moments =
        type == PGKM_COVARIANCE_TIED ? pgkm::cpu::moments_bytes(group->n, request->points.d, 1) : 0.0;
    const double bytes = 8.0 * (5.0 * values + copies + (has_matrices(type) ? 4.0 * d * d : 0.0)) +
                         4.0 * static_cast<double>(group->n) + moments +
                         static_cast<double>(pgkm_group_estimate(&clusters, group));
    return bytes < 1e19 ? static_cast<uint64_t>(bytes) : UINT64_MAX;
}

uint64_t pgkm_mixture_estimate(const PgkmMixtureRequest *request)
{
    double bytes = 0.0, rows = 0.0;
    for (const PgkmGroup &group : pgkm::mixture_groups(*request)) {
        bytes += static_cast<double>(pgkm_mixture_group_estimate(request, &group));
        rows += static_cast<double>(group.n);
    }
    // What threads and the allocator take beside: 2 MB, next to nothing where rows are few.
    bytes += std::min(2e6, 2e5 + 1000.0 * rows);
    // Rows of the only group are not copied; several threads work at it.
    if (request->n_groups == 0)
        bytes += blocks_bytes(*request) - static_cast<double>(request->points.n) * request->points.d *
                                              (request->points.element == PGKM_FLOAT32 ? 4.0 : 8.0);
    return bytes < 1e19 ? static_cast<uint64_t>(bytes) : UINT64_MAX;
}

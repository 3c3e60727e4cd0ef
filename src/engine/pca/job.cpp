// job.cpp - principal component analysis as a job.
#include <cstdio>

#include "engine/backends/registry.hpp"
#include "engine/api.h"
#include "numeric/error.hpp"
#include "engine/job/job.hpp"
#include "engine/pca/pca.hpp"
#include "engine/job/work.hpp"

namespace {

struct PcaJob : PgkmJob {
    explicit PcaJob(const PgkmPcaRequest &wanted) : request(wanted) {}
    void run() override { model = pgkm::fit_pca(request, monitor); }

    PgkmPcaRequest request;
    pgkm::PcaModel model;
};

} // namespace

PgkmStatus pgkm_pca_start(const PgkmPcaRequest *request, PgkmJob **job, PgkmError *error)
{
    *job = nullptr;
    return pgkm::guarded(error, [&] {
        const bool in_caller = pgkm::is_brief(pgkm::work_of(*request)) && pgkm_pca_wants_device(request) == 0;
        *job = pgkm::start_job(std::make_unique<PcaJob>(*request), in_caller);
    });
}

int pgkm_pca_wants_device(const PgkmPcaRequest *request)
{
    const bool has_rows = request->points.values != nullptr;
    return has_rows && pgkm::wants_device(request->settings, pgkm::work_of(*request)) ? 1 : 0;
}

PgkmStatus pgkm_pca_result(PgkmJob *job, PgkmPcaResult *result, PgkmError *error)
{
    *result = {};
    return pgkm::guarded(error, [&] {
        pgkm::require_done(job);
        const pgkm::PcaModel &model = static_cast<const PcaJob *>(job)->model;
        result->n_components = model.n_components;
        result->d = model.d;
        result->n = model.n;
        result->mean = model.mean.data();
        result->scale = pgkm::data_or_null(model.scale);
        result->components = model.components.data();
        result->explained_variance = model.explained_variance.data();
        result->explained_variance_ratio = model.explained_variance_ratio.data();
        result->singular_values = model.singular_values.data();
        std::snprintf(result->notice, sizeof result->notice, "%s", model.notice.c_str());
    });
}

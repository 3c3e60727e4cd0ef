#include "engine/mixture/mixture.hpp"

#include <algorithm>

#include "numeric/error.hpp"
#include "engine/mixture/fitter.hpp"
#include "engine/mixture/options.hpp"
#include "engine/job/work.hpp"

namespace pgkm {
namespace {

PgkmStatus has_em_step(const PgkmBackend &table, PgkmError *error)
{
    return table.em_step(nullptr, nullptr, 0, nullptr, nullptr, error);
}

// A tied covariance follows from that of all rows.
PgkmStatus has_em_step_and_moments(const PgkmBackend &table, PgkmError *error)
{
    const PgkmStatus status = table.moments(nullptr, nullptr, 0, nullptr, error);
    return status == PGKM_OK ? has_em_step(table, error) : status;
}

void check_memory(const PgkmMixtureRequest &request, std::int64_t k)
{
    const std::uint64_t need = pgkm_mixture_estimate(&request), limit = request.settings.memory_limit;
    if (limit != 0 && need > limit)
        throw Error(PGKM_LIMIT, "a mixture of " + std::to_string(k) + " components of " +
                                    std::to_string(request.points.d) + " features needs an estimated " +
                                    std::to_string(need / 1024) + " kB, more than is left of pg_kmeans.memory_limit (" +
                                    std::to_string(limit / 1024) + " kB)");
}

} // namespace

std::vector<PgkmGroup> mixture_groups(const PgkmMixtureRequest &request)
{
    return groups_of(clusters_request(request));
}

MixtureFits fit_mixtures(const PgkmMixtureRequest &request, Monitor &monitor)
{
    std::int64_t k = 0;
    for (const PgkmGroup &group : mixture_groups(request)) {
        if (group.n < 1 || request.points.d < 1)
            throw Error(PGKM_INVALID, "there are no rows to fit");
        check_mixture_options(request.options, group.k, request.points.d);
        k = std::max(k, group.k);
    }
    check_memory(request, k);
    const Work work = work_of(request);
    MixtureFits fits;
    const Capability needed =
        request.options.covariance_type == PGKM_COVARIANCE_TIED ? has_em_step_and_moments : has_em_step;
    on_first_backend(request.settings, work, needed, &fits.notice, [&](const BackendChoice &choice) {
        monitor.begin_backend(choice.table->name);
        PgkmOpen open = open_options(request.settings, monitor.host(), work);
        open.segment = request.segment;
        Session session(choice, open);
        fits.models = MixtureFitter(request, session, open.threads, monitor).run();
    });
    return fits;
}

} // namespace pgkm

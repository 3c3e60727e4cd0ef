// plugin.cu - the plugin's function table and its one exported symbol.
//
// The first thing a call does is to make the context's device current: CUDA's current device
// belongs to the thread, and the host may call from any.
#include <algorithm>
#include <cstring>
#include <string>

#include "groups/groups.hpp"
#include "mixture/em_step.hpp"
#include "moments/moments.hpp"
#include "plugin/operations.hpp"
#include "plugin/probe.hpp"

namespace pgkm::cuda {

const char *const *strategy_names(const char *stage) noexcept
{
    static const char *const assignment[] = {"register",        "register_constant", "register_shared", "register_global", "generic",
                                             "generic_constant", "tiled",            "tensor_core",     nullptr};
    static const char *const execution[] = {"cross_processing", "multi_pass", "single_pass", nullptr};
    static const char *const feature_sum[] = {"cluster_merge", "partitioned_features", "ballot",
                                              "divide_and_conquer", "atomic", "sorted", nullptr};
    static const char *const mass_sum[] = {"global_atomic", "partitioned_global", "partitioned_local",
                                           "partitioned_private", nullptr};
    static const char *const none[] = {nullptr};
    if (stage == nullptr)
        return none;
    if (std::strcmp(stage, "assignment") == 0)
        return assignment;
    if (std::strcmp(stage, "execution") == 0)
        return execution;
    if (std::strcmp(stage, "feature_sum") == 0)
        return feature_sum;
    if (std::strcmp(stage, "mass_sum") == 0)
        return mass_sum;
    return none;
}

namespace {

Context *self(PgkmContext *context) { return reinterpret_cast<Context *>(context); }
Data *self(PgkmData *data) { return reinterpret_cast<Data *>(data); }

PgkmStatus cuda_open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    return guarded(error, [&] {
        if (options->struct_size != sizeof(PgkmOpen))
            throw Error(PGKM_INVALID, "PgkmOpen of another size");
        *context = reinterpret_cast<PgkmContext *>(new Context(*options));
    });
}

void cuda_close(PgkmContext *context)
{
    if (context == nullptr)
        return;
    cudaSetDevice(self(context)->device);
    delete self(context);
}

PgkmStatus cuda_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    return guarded(error, [&] {
        self(context)->make_current();
        *data = reinterpret_cast<PgkmData *>(new Data(*self(context), *points));
    });
}

void cuda_unload(PgkmData *data)
{
    if (data == nullptr)
        return;
    cudaSetDevice(self(data)->context.device);
    delete self(data);
}

PgkmStatus cuda_summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            summarise_problems<decltype(element)>(*self(data), problems, n_problems, want_moments != 0, summaries);
        });
    });
}

// Indices of all problems but those that `which` (ascending) names, then those it gave back.
std::vector<std::int64_t> remaining(std::int64_t n_problems, const std::vector<std::int64_t> &which,
                                    const std::vector<std::int64_t> &returned)
{
    std::vector<std::int64_t> rest;
    for (std::int64_t p = 0; p < n_problems; ++p)
        if (!std::binary_search(which.begin(), which.end(), p) || std::binary_search(returned.begin(), returned.end(), p))
            rest.push_back(p);
    return rest;
}

PgkmStatus cuda_seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                     PgkmError *error)
{
    return guarded(error, [&] {
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            using T = decltype(element);
            self(data)->context.chosen = {};
            const std::vector<std::int64_t> which = eligible(*self(data), problems, n_problems);
            const std::vector<std::int64_t> returned = seed_groups<T>(*self(data), problems, which, *params);
            for (const std::int64_t p : remaining(n_problems, which, returned)) {
                self(data)->context.poll();
                self(data)->context.report("seeding", static_cast<int>(p), 0, 0.0);
                seed_problem<T>(*self(data), problems[p], *params);
            }
        });
    });
}

PgkmStatus cuda_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                    PgkmError *error)
{
    return guarded(error, [&] {
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            using T = decltype(element);
            self(data)->context.chosen = {};
            const std::vector<std::int64_t> which = eligible(*self(data), problems, n_problems);
            const std::vector<std::int64_t> returned = fit_groups<T>(*self(data), problems, which, *params);
            for (const std::int64_t p : remaining(n_problems, which, returned)) {
                self(data)->context.poll();
                fit_problem<T>(*self(data), problems[p], static_cast<std::int32_t>(p), *params);
            }
        });
    });
}

PgkmStatus cuda_assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                       PgkmAssignment *assignments, PgkmError *error)
{
    return guarded(error, [&] {
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            using T = decltype(element);
            self(data)->context.chosen = {};
            const std::vector<std::int64_t> which = eligible(*self(data), problems, n_problems);
            assign_groups<T>(*self(data), problems, which, assignments);
            for (const std::int64_t p : remaining(n_problems, which, {})) {
                self(data)->context.poll();
                self(data)->context.report("labelling", static_cast<int>(p), 0, 0.0);
                assign_problem<T>(*self(data), problems[p], assignments[p]);
            }
        });
    });
}

PgkmStatus cuda_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                        PgkmError *error)
{
    return guarded(error, [&] {
        if (data == nullptr)
            return; // asked whether it is there
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            self(data)->context.chosen = {};
            sum_moments<decltype(element)>(*self(data), problems, n_problems, moments);
        });
    });
}

PgkmStatus cuda_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                        const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        if (data == nullptr)
            return;
        self(data)->context.make_current();
        with_element(*self(data), [&](auto element) {
            em_step_problems<decltype(element)>(*self(data), problems, n_problems, mixtures, sums);
        });
    });
}

} // namespace
} // namespace pgkm::cuda

extern "C" __attribute__((visibility("default"))) const PgkmBackend *pgkm_backend_entry(std::uint32_t abi)
{
    using namespace pgkm::cuda;
    static const PgkmBackend table = {
        PGKM_BACKEND_ABI, sizeof(PgkmBackend), "cuda",     probe,          strategy_names, cuda_open, cuda_close,
        cuda_load,        cuda_unload,         cuda_summarise, cuda_seed, cuda_fit,       cuda_assign,
        cuda_moments,      cuda_em_step};
    return abi == PGKM_BACKEND_ABI ? &table : nullptr;
}

// entry.cu - the plugin's function table and its one exported symbol.
//
// The first thing a call does is to make the context's device current: CUDA's current device
// belongs to the thread, and the host may call from any.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/generate/compiler.hpp"
#include "entries/entries.hpp"
#include "groups/groups.hpp"
#include "plugin/operations.hpp"
#include "plugin/probe.hpp"

namespace pgkm::cuda {

namespace {

const char *const *cuda_strategies(const char *stage) noexcept
{
    return strategy_names(on_cuda, stage);
}

Context *self(PgkmContext *context)
{
    return reinterpret_cast<Context *>(context);
}
Data *self(PgkmData *data)
{
    return reinterpret_cast<Data *>(data);
}

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

// Makes the device current and calls body(data, T{}), T the rows' element type.
template <typename Body>
PgkmStatus with_rows(PgkmData *rows, PgkmError *error, Body &&body)
{
    return guarded(error, [&] {
        Data &data = *self(rows);
        data.context.make_current();
        with_element(data, [&](auto element) { body(data, element); });
    });
}

// The same for a call that reads the rows.
template <typename Body>
PgkmStatus with_all_rows(PgkmData *rows, PgkmError *error, Body &&body)
{
    return with_rows(rows, error, [&](Data &data, auto element) {
        forget_entries(data);
        body(data, element);
    });
}

// together(which) sees to the problems of which a block takes one each, beside entries, and returns those that it gave
// back; each(p) sees to one of the others.
template <typename Together, typename Each>
void share_out(Data &data, const PgkmProblem *problems, std::int64_t n_problems, Together &&together, Each &&each)
{
    data.context.chosen = {};
    const std::vector<std::int64_t> which = eligible(data, problems, n_problems);
    std::vector<std::int64_t> returned;
    if (!which.empty())
        beside_entries(data, data.host.n, [&] { returned = together(which); });
    for (std::int64_t p = 0; p < n_problems; ++p) {
        if (std::binary_search(which.begin(), which.end(), p) &&
            !std::binary_search(returned.begin(), returned.end(), p))
            continue;
        data.context.poll();
        each(p);
    }
}

PgkmStatus cuda_summarise(PgkmData *rows, const PgkmProblem *problems, std::int64_t n_problems,
                          std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return with_all_rows(rows, error, [&](Data &data, auto element) {
        summarise_problems<decltype(element)>(data, problems, n_problems, want_moments != 0, summaries);
    });
}

PgkmStatus cuda_seed(PgkmData *rows, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                     PgkmError *error)
{
    return with_rows(rows, error, [&](Data &data, auto element) {
        using T = decltype(element);
        if (params->kept != 0 || (params->init == PGKM_INIT_RANDOM && data.host.weights != nullptr))
            throw Error(PGKM_UNSUPPORTED, "the CPU draws rows by weight, and goes on from centroids");
        const auto seed = [&](Data &on, PgkmProblem &own) { seed_problem<T>(on, own, *params); };
        share_out(
            data, problems, n_problems,
            [&](const auto &which) { return seed_groups<T>(data, problems, which, *params); },
            [&](std::int64_t p) {
                data.context.report("seeding", static_cast<int>(p), 0, 0.0);
                if (params->init != PGKM_INIT_FIRST)
                    return by_entries(data, problems[p], worth_entries, false, seed);
                if (problems[p].peers != nullptr) // who meet in it, so that none may do it again
                    forget_entries(data);
                beside_entries(data, 0, [&] { seed(data, problems[p]); });
            });
    });
}

PgkmStatus cuda_fit(PgkmData *rows, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                    PgkmError *error)
{
    return with_rows(rows, error, [&](Data &data, auto element) {
        using T = decltype(element);
        const double passes = std::min<double>(params->max_iter, expected_iterations);
        share_out(
            data, problems, n_problems,
            [&](const auto &which) { return fit_groups<T>(data, problems, which, *params); },
            [&](std::int64_t p) {
                by_entries(data, problems[p], passes, true, [&](Data &on, PgkmProblem &own) {
                    fit_problem<T>(on, own, static_cast<std::int32_t>(p), *params);
                });
            });
    });
}

PgkmStatus cuda_assign(PgkmData *rows, const PgkmProblem *problems, std::int64_t n_problems,
                       PgkmAssignment *assignments, PgkmError *error)
{
    return with_rows(rows, error, [&](Data &data, auto element) {
        using T = decltype(element);
        share_out(
            data, problems, n_problems,
            [&](const auto &which) {
                assign_groups<T>(data, problems, which, assignments);
                return std::vector<std::int64_t>();
            },
            [&](std::int64_t p) {
                data.context.report("labelling", static_cast<int>(p), 0, 0.0);
                by_entries(data, problems[p], 0.0, false, [&](Data &on, const PgkmProblem &own) {
                    if (&on == &data)
                        assign_problem<T>(on, own, assignments[p]);
                    else
                        assign_entries<T>(on, own, assignments[p]);
                });
            });
    });
}

// Without rows: asked whether the function is there.
PgkmStatus cuda_moments(PgkmData *rows, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                        PgkmError *error)
{
    return with_all_rows(rows, error, [&](Data &data, auto element) {
        data.context.chosen = {};
        sum_moments<decltype(element)>(data, problems, n_problems, moments);
    });
}

PgkmStatus cuda_em_step(PgkmData *rows, const PgkmProblem *problems, std::int64_t n_problems,
                        const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    return with_all_rows(rows, error, [&](Data &data, auto element) {
        em_step_problems<decltype(element)>(data, problems, n_problems, mixtures, sums);
    });
}

// Without a compiler for generated kernels there is none.
PgkmStatus cuda_reduce(PgkmData *rows, const PgkmProblem *problems, std::int64_t n_problems,
                       const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
{
    if (std::string why; !generate::has_compiler(&why))
        return set_error(error, PGKM_UNSUPPORTED, why.c_str());
    if (rows == nullptr)
        return guarded(error, [] {});
    return with_all_rows(rows, error, [&](Data &data, auto element) {
        reduce_problems<decltype(element)>(data, problems, n_problems, *reduction, reduced);
    });
}

} // namespace
} // namespace pgkm::cuda

extern "C" __attribute__((visibility("default"))) const PgkmBackend *pgkm_backend_entry(std::uint32_t abi)
{
    using namespace pgkm::cuda;
    // Kernels are loaded with their context: a launch that has to load one waits for those that run, and sees no
    // cancel.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    static const PgkmBackend table = {
        PGKM_BACKEND_ABI, sizeof(PgkmBackend), "cuda",       probe,          cuda_strategies, cuda_open,
        cuda_close,       cuda_load,           cuda_unload,  cuda_summarise, cuda_seed,       cuda_fit,
        cuda_assign,      cuda_moments,        cuda_em_step, cuda_reduce,    nullptr};
    return abi == PGKM_BACKEND_ABI ? &table : nullptr;
}

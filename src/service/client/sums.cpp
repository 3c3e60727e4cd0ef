// sums.cpp - moments() and em_step() as calls to the service.
#include "service/client/sums.hpp"

#include <atomic>

#include "numeric/error.hpp"
#include "service/client/call.hpp"

namespace pgkm::service {
namespace {

// A server has one service, and that one plugin; every job begins with an answer of it.
std::atomic<bool> knows_reduce{true};

// Sizes of a mixture's arrays, in values.
struct MixtureSizes {
    MixtureSizes(const PgkmMixture &mixture, std::uint64_t d) : k(static_cast<std::uint64_t>(mixture.k)), means(k * d)
    {
        switch (mixture.covariance_type) {
        case PGKM_COVARIANCE_FULL:
            factors = k * d * d;
            second = k * (d * (d + 1) / 2);
            break;
        case PGKM_COVARIANCE_TIED:
            factors = d * d;
            break;
        case PGKM_COVARIANCE_DIAG:
            factors = second = means;
            break;
        case PGKM_COVARIANCE_SPHERICAL:
            factors = k;
            second = means;
            break;
        }
    }
    std::uint64_t k, means, factors = 0, second = 0;
};

WireProblem wire_mixture(const PgkmProblem &problem, const PgkmMixture &mixture, const PgkmMixtureSums &sums)
{
    const bool given = mixture.labels != nullptr;
    WireProblem to = wire_range(problem, part_means | (given ? part_given_labels : part_density) |
                                             part_if(sums.masses, part_mixture_sums) |
                                             part_if(given ? nullptr : sums.labels, part_labels));
    to.k = mixture.k;
    to.covariance_type = mixture.covariance_type;
    return to;
}

} // namespace

void note_reduce(bool has_reduce)
{
    knows_reduce.store(has_reduce);
}

PgkmStatus client_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::moments, n_problems);
        const std::uint64_t d = call.d();
        call.describe([&](std::size_t i) { return wire_range(problems[i], part_moments); },
                      [&](std::size_t i, const Arrays &arrays) { copy_array(arrays.shift, moments[i].shift, d); });
        call.run([&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            moments[i].mass = problem.mass;
            copy_array(moments[i].sums, arrays.sums, d);
            copy_array(moments[i].cross, arrays.cross, d * (d + 1) / 2);
        });
    });
}

PgkmStatus client_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        Call call(data, Op::em_step, n_problems);
        const auto rows = [&](std::size_t i) { return static_cast<std::uint64_t>(problems[i].n_rows); };
        call.describe([&](std::size_t i) { return wire_mixture(problems[i], mixtures[i], sums[i]); },
                      [&](std::size_t i, const Arrays &arrays) {
                          const PgkmMixture &from = mixtures[i];
                          const MixtureSizes sizes(from, call.d());
                          copy_array(arrays.means, from.means, sizes.means);
                          copy_array(arrays.log_weights, from.log_weights, sizes.k);
                          copy_array(arrays.factors, from.factors, sizes.factors);
                          copy_array(arrays.log_determinants, from.log_determinants, sizes.k);
                          copy_array(arrays.given_labels, from.labels, rows(i));
                      });
        call.run([&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            const MixtureSizes sizes(mixtures[i], call.d());
            PgkmMixtureSums &to = sums[i];
            to.log_likelihood = problem.log_likelihood;
            copy_array(to.masses, arrays.responsibilities, sizes.k);
            copy_array(to.first, arrays.first, sizes.means);
            copy_array(to.second, arrays.second, sizes.second);
            copy_array(to.labels, arrays.labels, rows(i));
        });
    });
}

PgkmStatus client_reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                         const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
{
    if (data == nullptr)
        return knows_reduce.load() ? set_error(error, PGKM_OK, "")
                                   : set_error(error, PGKM_UNSUPPORTED, "the GPU service found no NVRTC (libnvrtc.so)");
    return guarded(error, [&] {
        Call call(data, Op::reduce, n_problems);
        call.use(*reduction);
        call.describe([&](std::size_t i) { return wire_range(problems[i], part_reduced); },
                      [&](std::size_t, const Arrays &) {});
        const auto take = [&](std::size_t i, const WireProblem &problem, const Arrays &arrays) {
            copy_array(reduced[i].values, arrays.values, static_cast<std::uint64_t>(call.request().program.values));
            copy_array(reduced[i].counts, arrays.counts, static_cast<std::uint64_t>(call.request().program.cells));
            reduced[i].fault = static_cast<PgkmFault>(problem.fault);
            reduced[i].row = problem.row;
            reduced[i].expression = problem.expression;
            reduced[i].number = problem.number;
        };
        try {
            call.ask();
        } catch (const Error &failed) {
            if (failed.status() == PGKM_INVALID)
                call.take_each(take);
            throw;
        }
        call.take_each(take);
    });
}

} // namespace pgkm::service

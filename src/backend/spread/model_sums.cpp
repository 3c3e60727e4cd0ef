// model_sums.cpp - sums in float64, which are added in the order of the contexts.
#include "backend/spread/model_sums.hpp"

#include "backend/calls.hpp"
#include "backend/spread/calls.hpp"
#include "numeric/error.hpp"

namespace pgkm::spread {
namespace {

struct Moments {
    std::vector<double> sums, cross;
    PgkmMoments view;
};

struct MixtureSums {
    std::vector<double> masses, means, squares;
    PgkmMixture mixture;
    PgkmMixtureSums view;
};

} // namespace

PgkmStatus spread_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error)
{
    return guarded(error, [&] {
        Rows &rows = self(data);
        const std::int64_t d = rows.points().d;
        // To add up the shares' sums would take longer than to bring the rows together.
        const auto few_rows = [&](std::int64_t problem) { return (d + 1) / 2 > problems[problem].n_rows; };
        call_shares<Moments>(
            rows, problems, n_problems, few_rows,
            [&](const Shares::Origin &of, const PgkmProblem &) {
                Moments made = {{}, {}, moments[of.problem]};
                if (of.whole)
                    return made;
                made.view.sums = room(made.sums, made.view.sums, d);
                made.view.cross = room(made.cross, made.view.cross, triangle_size(d));
                return made;
            },
            [](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, Moments *found,
               PgkmError *why) {
                std::vector<PgkmMoments> views = views_of(found, count);
                const PgkmStatus status = inner.moments(there, own, count, views.data(), why);
                for (std::int64_t i = 0; i < count; ++i)
                    found[i].view.mass = views[static_cast<std::size_t>(i)].mass;
                return status;
            },
            [&](std::int64_t problem, bool first, const Moments &found) {
                moments[problem].mass = (first ? 0.0 : moments[problem].mass) + found.view.mass;
                add(moments[problem].sums, found.sums, first);
                add(moments[problem].cross, found.cross, first);
            });
    });
}

PgkmStatus spread_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        Rows &rows = self(data);
        const std::int64_t d = rows.points().d;
        const auto few_rows = [&](std::int64_t problem) { // the same
            return second_size(mixtures[problem].covariance_type, mixtures[problem].k, d) >
                   problems[problem].n_rows * d;
        };
        call_shares<MixtureSums>(
            rows, problems, n_problems, few_rows,
            [&](const Shares::Origin &of, const PgkmProblem &) {
                MixtureSums made = {{}, {}, {}, mixtures[of.problem], sums[of.problem]};
                if (of.whole)
                    return made;
                made.mixture.labels = behind(made.mixture.labels, of.skip);
                made.view.labels = behind(made.view.labels, of.skip);
                made.view.masses = room(made.masses, made.view.masses, made.mixture.k);
                made.view.first = room(made.means, made.view.first, made.mixture.k * d);
                made.view.second =
                    room(made.squares, made.view.second, second_size(made.mixture.covariance_type, made.mixture.k, d));
                return made;
            },
            [](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, MixtureSums *found,
               PgkmError *why) {
                std::vector<PgkmMixtureSums> views = views_of(found, count);
                std::vector<PgkmMixture> given;
                for (std::int64_t i = 0; i < count; ++i)
                    given.push_back(found[i].mixture);
                const PgkmStatus status = inner.em_step(there, own, count, given.data(), views.data(), why);
                for (std::int64_t i = 0; i < count; ++i)
                    found[i].view.log_likelihood = views[static_cast<std::size_t>(i)].log_likelihood;
                return status;
            },
            [&](std::int64_t problem, bool first, const MixtureSums &found) {
                PgkmMixtureSums &to = sums[problem];
                to.log_likelihood = (first ? 0.0 : to.log_likelihood) + found.view.log_likelihood;
                add(to.masses, found.masses, first);
                add(to.first, found.means, first);
                add(to.second, found.squares, first);
            });
    });
}

} // namespace pgkm::spread

// calls.hpp - problems cut into shares by where their rows lie, calls of the inner backend for them, and what comes of
// it put together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "backend/spread/rows.hpp"
#include "backend/update.hpp"
#include "numeric/platform.hpp"

namespace pgkm::spread {

inline Rows &self(PgkmData *data)
{
    return *reinterpret_cast<Rows *>(data);
}

// The shares of all problems, in order: context by context they are one call's problems.
class Shares {
  public:
    // Problems whose rows lie on several contexts are left out unless `cut` says so: rest() has them then.
    Shares(const Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, bool cut)
    {
        on_.resize(rows.contexts().count());
        for (std::int64_t i = 0; i < n_problems; ++i) {
            std::vector<Share> shares = rows.shares_of(problems[i]);
            if (shares.size() > 1 && !cut) {
                rest_.push_back({i, std::move(shares)});
                continue;
            }
            for (const Share &share : shares) {
                OnContext &on = on_[share.context];
                on.problems.push_back(share.problem);
                on.of.push_back({i, share.skip, shares.size() == 1});
            }
        }
        for (std::size_t context = 0; context < on_.size(); ++context)
            if (!on_[context].of.empty())
                contexts_.push_back(context);
    }

    struct Origin {
        std::int64_t problem;
        std::int64_t skip; // rows of it before these
        bool whole;        // all rows of it
    };
    struct OnContext {
        std::vector<PgkmProblem> problems;
        std::vector<Origin> of;
    };
    struct Rest {
        std::int64_t problem;
        std::vector<Share> shares;
    };
    const std::vector<std::size_t> &contexts() const { return contexts_; } // that have any
    OnContext &on(std::size_t context) { return on_[context]; }
    const std::vector<Rest> &rest() const { return rest_; }

  private:
    std::vector<OnContext> on_;
    std::vector<std::size_t> contexts_;
    std::vector<Rest> rest_;
};

// Calls call(inner, data, problems, count, results, error) for the shares of all problems, all contexts at once; then,
// with `together`, for each problem whose rows lie on several contexts, on one to which they are brought.
// make(origin, problem) makes a share's results, in the caller's arrays where they are the whole problem's.
// merge(problem, first, results) gets them in order; `first` tells the first share of a problem.
template <typename Result, typename Make, typename Call, typename Merge>
void call_shares(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, bool together, Make &&make,
                 Call &&call, Merge &&merge)
{
    Shares shares(rows, problems, n_problems, !together);
    const PgkmBackend &inner = rows.contexts().inner();
    std::vector<std::vector<Result>> results(rows.contexts().count());
    for (const std::size_t context : shares.contexts())
        for (std::size_t i = 0; i < shares.on(context).of.size(); ++i)
            results[context].push_back(make(shares.on(context).of[i], shares.on(context).problems[i]));
    rows.contexts().run(shares.contexts(), [&](std::size_t context, PgkmError *error) {
        Shares::OnContext &on = shares.on(context);
        PgkmData *const data = rows.data(context, error);
        return data == nullptr ? error->status
                               : call(inner, data, on.problems.data(), static_cast<std::int64_t>(on.problems.size()),
                                      results[context].data(), error);
    });
    for (const std::size_t context : shares.contexts())
        for (std::size_t i = 0; i < shares.on(context).of.size(); ++i)
            merge(shares.on(context).of[i].problem, shares.on(context).of[i].skip == 0, results[context][i]);
    for (const Shares::Rest &rest : shares.rest()) {
        Result result = make(Shares::Origin{rest.problem, 0, true}, problems[rest.problem]);
        const auto attempt = [&](std::size_t context, PgkmError *error) {
            PgkmProblem whole = problems[rest.problem];
            PgkmData *const data = rows.gather(context, whole, error);
            whole.first_row = 0;
            return data == nullptr ? error->status : call(inner, data, &whole, std::int64_t{1}, &result, error);
        };
        rows.contexts().run({rest.shares[0].context}, [&](std::size_t context, PgkmError *error) {
            const PgkmStatus status = attempt(context, error);
            if (status != PGKM_LIMIT && status != PGKM_OUT_OF_MEMORY)
                return status;
            rows.lend(context);
            return attempt(context, error);
        });
        merge(rest.problem, true, result);
    }
}

// The same of whole problems, where call() itself gives the caller what it wants: it gets an Origin for each.
template <typename Call>
void call_whole(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Call &&call)
{
    call_shares<Shares::Origin>(
        rows, problems, n_problems, true, [](const Shares::Origin &of, const PgkmProblem &) { return of; }, call,
        [](std::int64_t, bool, const Shares::Origin &) {});
}

// --- arrays of results ---

// Room for what a share adds, of as many numbers as are wanted.
template <typename Number>
Number *room(std::vector<Number> &own, const Number *wanted, std::int64_t count)
{
    if (wanted == nullptr)
        return nullptr;
    own.resize(static_cast<std::size_t>(count));
    return own.data();
}

// Where the rows of a share begin in an array of the problem's.
template <typename V>
V *behind(V *array, std::int64_t skip)
{
    return array == nullptr ? nullptr : array + skip;
}

// The first share sets what the others add to.
template <typename Number>
void add(Number *to, const std::vector<Number> &from, bool first)
{
    const auto plus = [](const Number &a, const Number &b) {
        if constexpr (std::is_same_v<Number, PgkmInt128>)
            return split(join(a) + join(b));
        else
            return a + b;
    };
    if (to == nullptr)
        return;
    if (first)
        std::fill_n(to, from.size(), Number{});
    std::transform(from.begin(), from.end(), to, to, plus);
}

} // namespace pgkm::spread

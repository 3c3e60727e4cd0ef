// calls.hpp - problems cut into shares by where their rows lie, calls of the inner backend for them, and what comes of
// it put together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <vector>

#include "backend/spread/exchange.hpp"
#include "backend/spread/rows.hpp"
#include "backend/update.hpp"
#include "numeric/platform.hpp"

namespace pgkm::spread {

inline Rows &self(PgkmData *data)
{
    return *reinterpret_cast<Rows *>(data);
}

// Restarts, and each k of a sweep; others do not overlap.
inline bool are_of_same_rows(const PgkmProblem *problems, std::int64_t n_problems)
{
    return n_problems > 1 && problems[0].first_row == problems[1].first_row;
}

// Calls body(context, i, error) for 0 <= i < count: whichever context is free takes the next.
template <typename Body>
void deal(Contexts &contexts, std::size_t count, Body &&body)
{
    std::vector<std::size_t> which(std::min(contexts.count(), count));
    std::iota(which.begin(), which.end(), std::size_t{0});
    std::atomic<std::size_t> next{0};
    contexts.run(which, [&](std::size_t context, PgkmError *error) {
        PgkmStatus status = PGKM_OK;
        for (std::size_t i; status == PGKM_OK && (i = next.fetch_add(1)) < count;)
            status = body(context, i, error);
        return status;
    });
}

// The shares of all problems, in order: context by context they are one call's problems.
class Shares {
  public:
    // Problems of the same rows are left out, and those whose rows lie on several contexts and for whose number
    // together() is true: rest() has them then.
    template <typename Together>
    Shares(const Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Together &&together)
    {
        on_.resize(rows.contexts().count());
        for (std::size_t context = 0; context < on_.size(); ++context)
            on_[context].context = context;
        for (std::int64_t i = 0; i < n_problems; ++i) {
            std::vector<Share> shares = rows.shares_of(problems[i]);
            if ((shares.size() > 1 && together(i)) || are_of_same_rows(problems, n_problems)) {
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
        std::size_t context;
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

// Calls call(inner, data, on, error) for the shares of each context, all contexts at once.
template <typename Call>
void call_contexts(Rows &rows, Shares &shares, Call &&call)
{
    rows.contexts().run(shares.contexts(), [&](std::size_t context, PgkmError *error) {
        PgkmData *const data = rows.data(context, error);
        return data == nullptr ? error->status : call(rows.contexts().inner(), data, shares.on(context), error);
    });
}

// Calls call(inner, data, problem, share, error) for each share of a problem, all at once: as peers.
template <typename Call>
void call_peers(Rows &rows, const std::vector<Share> &shares, std::int64_t n_rows, Call &&call)
{
    Contexts &contexts = rows.contexts();
    Exchange exchange(static_cast<std::int32_t>(shares.size()), n_rows, contexts.host(), contexts.failed());
    std::vector<std::size_t> which, share_on(contexts.count());
    for (std::size_t i = 0; i < shares.size(); ++i) {
        which.push_back(shares[i].context);
        share_on[shares[i].context] = i;
    }
    contexts.run(which, [&](std::size_t context, PgkmError *error) {
        PgkmData *const data = rows.data(context, error);
        if (data == nullptr)
            return error->status;
        const std::size_t share = share_on[context];
        PgkmProblem own = shares[share].problem;
        own.peers = exchange.peers_of(static_cast<std::int32_t>(share));
        const PgkmStatus status = call(contexts.inner(), data, own, share, error);
        return status == PGKM_CANCELLED && exchange.out_of_memory()
                   ? set_error(error, PGKM_OUT_OF_MEMORY, "out of memory")
                   : status;
    });
}

// Calls call(inner, data, problems, count, results, error) for the shares of all problems, all contexts at once; then,
// for those that Shares leaves out, on one context to which their rows are brought. Of problems of the same rows each
// context takes some, where it has room for all rows. make(origin, problem) makes a share's results, in the caller's
// arrays where they are the whole problem's. merge(problem, first, results) gets them in order; `first` tells the first
// share of a problem.
template <typename Result, typename Together, typename Make, typename Call, typename Merge>
void call_shares(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Together &&together, Make &&make,
                 Call &&call, Merge &&merge)
{
    Shares shares(rows, problems, n_problems, together);
    const PgkmBackend &inner = rows.contexts().inner();
    std::vector<std::vector<Result>> results(rows.contexts().count());
    for (const std::size_t context : shares.contexts())
        for (std::size_t i = 0; i < shares.on(context).of.size(); ++i)
            results[context].push_back(make(shares.on(context).of[i], shares.on(context).problems[i]));
    call_contexts(rows, shares, [&](const PgkmBackend &, PgkmData *data, Shares::OnContext &on, PgkmError *error) {
        return call(inner, data, on.problems.data(), std::ssize(on.problems), results[on.context].data(), error);
    });
    for (const std::size_t context : shares.contexts())
        for (std::size_t i = 0; i < shares.on(context).of.size(); ++i)
            merge(shares.on(context).of[i].problem, shares.on(context).of[i].skip == 0, results[context][i]);
    const std::vector<Shares::Rest> &rest = shares.rest();
    std::vector<Result> whole_results;
    for (const Shares::Rest &one : rest)
        whole_results.push_back(make(Shares::Origin{one.problem, 0, true}, problems[one.problem]));
    const auto attempt = [&](std::size_t context, std::size_t i, PgkmError *error) {
        PgkmProblem whole = problems[rest[i].problem];
        PgkmData *const data = rows.gather(context, whole, error);
        whole.first_row = 0;
        return data == nullptr ? error->status : call(inner, data, &whole, std::int64_t{1}, &whole_results[i], error);
    };
    const auto call_whole_problem = [&](std::size_t context, std::size_t i, PgkmError *error) {
        const PgkmStatus status = attempt(context, i, error);
        if (status != PGKM_LIMIT && status != PGKM_OUT_OF_MEMORY)
            return status;
        rows.lend(context);
        return attempt(context, i, error);
    };
    if (are_of_same_rows(problems, n_problems) && rows.have_room(problems[0]))
        deal(rows.contexts(), rest.size(), call_whole_problem);
    else
        for (std::size_t i = 0; i < rest.size(); ++i)
            rows.contexts().run({rest[i].shares[0].context}, [&](std::size_t context, PgkmError *error) {
                return call_whole_problem(context, i, error);
            });
    for (std::size_t i = 0; i < rest.size(); ++i)
        merge(rest[i].problem, true, whole_results[i]);
}

// Every problem whose rows lie on several contexts is seen to apart from the others.
inline bool always(std::int64_t)
{
    return true;
}

// The same of whole problems, where call() itself gives the caller what it wants: it gets an Origin for each.
template <typename Call>
void call_whole(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Call &&call)
{
    call_shares<Shares::Origin>(
        rows, problems, n_problems, always, [](const Shares::Origin &of, const PgkmProblem &) { return of; }, call,
        [](std::int64_t, bool, const Shares::Origin &) {});
}

// --- arrays of results ---

// What the inner backend takes: the views of results, side by side.
template <typename Result>
auto views_of(const Result *results, std::int64_t count)
{
    std::vector<decltype(results->view)> views;
    std::transform(results, results + count, std::back_inserter(views), [](const Result &one) { return one.view; });
    return views;
}

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

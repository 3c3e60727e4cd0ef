// calls.hpp - what travels of the seven calls over problems: the fields of each, described once.
//
// fields() shows the fields of a call to an archive, always in the same order. What the archive does with them depends
// on the leg of the journey: it writes what a call is given, reads and checks that at the other end, writes what the
// call has found, reads that. So both ends of a connection follow from one description. An archive is a FieldArchive,
// and has
//
//   range(problem)          its first_row and n_rows
//   value(way, x)           a number
//   array(way, p, n)        n values; where n is 0 there is no array, and p is not looked at but made NULL by read_call
//   elements(way, p, n)     n values of the rows' element type
//   by_row(way, p, n)       an array of a value for each row, where it is not one like others
//   refuse()                throws Error: what was read cannot be
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/covariance.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

enum class Function : std::uint32_t { summarise, seed, fit, assign, moments, em_step, reduce };

// A call: its function, and of what follows that which the function has. Arrays of problems are the caller's.
struct Call {
    Function function;
    std::int64_t n_problems;
    PgkmProblem *problems;
    std::int32_t want_moments;
    PgkmSeedParams seed;
    PgkmFitParams fit;
    PgkmReduction reduction;
    std::int64_t values, cells; // in all objects of the reduction
    PgkmSummary *summaries;
    PgkmAssignment *assignments;
    PgkmMoments *moments;
    PgkmMixture *mixtures;
    PgkmMixtureSums *sums;
    PgkmReduced *reduced;
};

// The shape of loaded rows.
struct RowShape {
    std::int64_t n;
    std::int32_t d;
    PgkmElement element;
    std::size_t element_bytes() const { return element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double); }
    std::size_t row_bytes() const { return pgkm_row_bytes(element, d); }
    std::uint64_t value_bytes() const { return static_cast<std::uint64_t>(n) * row_bytes(); }
};
inline RowShape shape_of(const PgkmPoints &points)
{
    return {points.n, points.d, points.element};
}

// So many rows, from number `first` on.
inline PgkmPoints part_of(const PgkmPoints &points, std::int64_t first, std::int64_t n)
{
    PgkmPoints part = points;
    part.n = n;
    if (points.values != nullptr)
        part.values = static_cast<const std::byte *>(points.values) +
                      static_cast<std::uint64_t>(first) * shape_of(points).row_bytes();
    if (points.weights != nullptr)
        part.weights += first;
    return part;
}

// Calls body(T{}) with the points' element type. Throws Error(PGKM_UNSUPPORTED) for bits.
template <typename Body>
void with_element(const PgkmPoints &points, Body &&body)
{
    if (points.element == PGKM_FLOAT32)
        body(float{});
    else if (points.element == PGKM_FLOAT64)
        body(double{});
    else
        throw Error(PGKM_UNSUPPORTED, "rows of bits are for k-means alone");
}

// Which way a field goes. An optional or wanted array may be NULL.
enum class Way { given, optional, found, wanted, both };
constexpr bool may_be_null(Way way)
{
    return way == Way::optional || way == Way::wanted;
}

enum class Leg { write_call, read_call, write_results, read_results };

// What archives have in common.
template <typename Archive>
class FieldArchive {
  public:
    FieldArchive(Leg leg, const RowShape &rows) : leg_(leg), rows_(rows) {}
    const RowShape &rows() const { return rows_; } // that the call is about

    // A number of clamp_exponent().
    void exponent(Way way, std::int32_t &exponent)
    {
        self().value(way, exponent);
        if (leg_ == Leg::read_call)
            exponent = clamp_exponent(exponent);
    }
    // An enumerator of 0 .. last, which is compared before it becomes one.
    template <typename E>
    void choice(Way way, E &choice, E last)
    {
        std::int32_t number = writes(way) ? static_cast<std::int32_t>(choice) : 0;
        self().value(way, number);
        require(number >= 0 && number <= static_cast<std::int32_t>(last));
        if (reads(way))
            choice = static_cast<E>(number);
    }
    template <typename T>
    void by_row(Way way, T *&values, std::int64_t n)
    {
        self().array(way, values, n);
    }
    // What has to hold of all that was read so far.
    void require(bool holds)
    {
        if (!holds && (leg_ == Leg::read_call || leg_ == Leg::read_results))
            self().refuse();
    }

  protected:
    Leg leg() const { return leg_; }
    static bool goes_there(Way way) { return way == Way::given || way == Way::optional || way == Way::both; }
    static bool comes_back(Way way) { return way == Way::found || way == Way::wanted || way == Way::both; }
    bool writes(Way way) const
    {
        return leg_ == Leg::write_call ? goes_there(way) : leg_ == Leg::write_results && comes_back(way);
    }
    bool reads(Way way) const
    {
        return leg_ == Leg::read_call ? goes_there(way) : leg_ == Leg::read_results && comes_back(way);
    }

  private:
    Archive &self() { return static_cast<Archive &>(*this); }

    Leg leg_;
    RowShape rows_;
};

// What a call has beside its problems.
template <typename Archive>
void call_fields(Archive &archive, Call &call)
{
    PgkmReduction &program = call.reduction;
    switch (call.function) {
    case Function::summarise:
        return archive.value(Way::given, call.want_moments);
    case Function::seed:
        archive.choice(Way::given, call.seed.init, PGKM_INIT_FIRST);
        archive.value(Way::given, call.seed.seed);
        archive.value(Way::given, call.seed.restart);
        return archive.value(Way::given, call.seed.kept);
    case Function::fit:
        archive.choice(Way::given, call.fit.metric, PGKM_COSINE);
        return archive.value(Way::given, call.fit.max_iter);
    case Function::reduce:
        archive.value(Way::given, program.n_expressions);
        archive.value(Way::given, program.n_loops);
        archive.value(Way::given, program.n_parameters);
        archive.value(Way::given, program.n_items);
        archive.value(Way::given, program.n_objects);
        archive.value(Way::given, program.exact);
        archive.array(Way::given, program.expressions, program.n_expressions);
        archive.array(Way::given, program.loops, program.n_loops);
        archive.array(Way::given, program.parameters, program.n_parameters);
        archive.array(Way::given, program.items, program.n_items);
        return archive.array(Way::given, program.objects, program.n_objects);
    default:
        return;
    }
}

template <typename Archive>
void cluster_fields(Archive &archive, PgkmProblem &problem, Way scales, Way centroids)
{
    archive.value(Way::given, problem.k);
    archive.require(problem.k >= 1);
    archive.exponent(Way::given, problem.weight_exponent);
    archive.exponent(Way::given, problem.distance_exponent);
    archive.array(scales, problem.feature_scales, archive.rows().d);
    archive.elements(centroids, problem.centroids, size_of_product(problem.k, archive.rows().d));
}

template <typename Archive>
void summary_fields(Archive &archive, bool want_moments, PgkmSummary &summary)
{
    const std::int64_t d = archive.rows().d;
    archive.array(Way::found, summary.min, d);
    archive.array(Way::found, summary.max, d);
    archive.array(Way::found, summary.mean, want_moments ? d : 0);
    archive.array(Way::found, summary.variance, want_moments ? d : 0);
    archive.value(Way::found, summary.max_weight);
}

template <typename Archive>
void assignment_fields(Archive &archive, PgkmProblem &problem, PgkmAssignment &assignment)
{
    const std::int64_t d = archive.rows().d;
    cluster_fields(archive, problem, Way::optional, Way::given);
    archive.by_row(Way::wanted, assignment.labels, problem.n_rows);
    archive.by_row(Way::wanted, assignment.distances, problem.n_rows);
    archive.array(Way::wanted, assignment.totals, size_of_product(problem.k, d));
    archive.array(Way::wanted, assignment.masses, problem.k);
    const bool scaled = problem.feature_scales != nullptr;
    archive.require(scaled || (assignment.totals == nullptr && assignment.masses == nullptr));
    archive.array(Way::wanted, assignment.within, problem.k);
    archive.array(Way::wanted, assignment.sizes, problem.k);
}

template <typename Archive>
void moments_fields(Archive &archive, PgkmMoments &moments)
{
    const std::int64_t d = archive.rows().d;
    archive.array(Way::given, moments.shift, d);
    archive.array(Way::found, moments.sums, d);
    archive.array(Way::found, moments.cross, triangle_size(d));
    archive.value(Way::found, moments.mass);
}

// Without labels and factors, as servers are asked, the nearest mean gives a row its label.
template <typename Archive>
void mixture_fields(Archive &archive, const PgkmProblem &problem, PgkmMixture &mixture, PgkmMixtureSums &sums)
{
    const std::int64_t d = archive.rows().d;
    archive.value(Way::given, mixture.k);
    archive.require(mixture.k >= 1);
    archive.choice(Way::given, mixture.covariance_type, PGKM_COVARIANCE_SPHERICAL);
    const std::int64_t k = mixture.k;
    archive.array(Way::given, mixture.means, size_of_product(k, d));
    archive.by_row(Way::optional, mixture.labels, problem.n_rows);
    const bool labelled = mixture.labels != nullptr;
    archive.array(Way::optional, mixture.factors, labelled ? 0 : factors_size(mixture.covariance_type, k, d));
    const bool dense = !labelled && mixture.factors != nullptr;
    archive.array(Way::given, mixture.log_weights, dense ? k : 0);
    archive.array(Way::given, mixture.log_determinants, dense ? k : 0);
    archive.array(Way::wanted, sums.masses, k);
    const bool summed = sums.masses != nullptr;
    archive.array(Way::found, sums.first, summed ? size_of_product(k, d) : 0);
    archive.array(Way::found, sums.second, summed ? second_size(mixture.covariance_type, k, d) : 0);
    archive.by_row(Way::wanted, sums.labels, labelled ? 0 : problem.n_rows);
    archive.value(Way::found, sums.log_likelihood);
}

template <typename Archive>
void reduced_fields(Archive &archive, const Call &call, PgkmReduced &reduced)
{
    archive.array(Way::found, reduced.values, call.values);
    archive.array(Way::found, reduced.counts, call.cells);
    archive.choice(Way::found, reduced.fault, PGKM_FAULT_TOTAL);
    archive.value(Way::found, reduced.row);
    archive.value(Way::found, reduced.expression);
    archive.value(Way::found, reduced.number);
}

template <typename Archive>
void problem_fields(Archive &archive, Call &call, std::int64_t i)
{
    PgkmProblem &problem = call.problems[i];
    std::int32_t asked = 0;
    archive.range(problem);
    switch (call.function) {
    case Function::summarise:
        return summary_fields(archive, call.want_moments != 0, call.summaries[i]);
    case Function::seed:
        archive.value(Way::given, problem.restart);
        cluster_fields(archive, problem, Way::optional, Way::both);
        asked = problem.k;
        archive.value(Way::found, problem.k); // the last: sizes above are those that were asked
        return archive.require(problem.k >= 1 && problem.k <= asked);
    case Function::fit:
        archive.value(Way::given, problem.tol);
        cluster_fields(archive, problem, Way::given, Way::both);
        archive.value(Way::found, problem.n_iter);
        archive.value(Way::found, problem.converged);
        return archive.value(Way::found, problem.shift);
    case Function::assign:
        return assignment_fields(archive, problem, call.assignments[i]);
    case Function::moments:
        return moments_fields(archive, call.moments[i]);
    case Function::em_step:
        return mixture_fields(archive, problem, call.mixtures[i], call.sums[i]);
    case Function::reduce:
        return reduced_fields(archive, call, call.reduced[i]);
    }
}

// Those of the whole call. Of a reduction a reader sets values and cells in between, once it has checked the program.
template <typename Archive>
void fields(Archive &archive, Call &call)
{
    call_fields(archive, call);
    for (std::int64_t i = 0; i < call.n_problems; ++i)
        problem_fields(archive, call, i);
}

} // namespace pgkm

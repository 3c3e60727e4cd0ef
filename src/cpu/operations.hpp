// operations.hpp - the calls of the backend's table, of which each folder has its own (backend/backend.h says what
// they do). All throw Error.
#pragma once

#include "cpu/context.hpp"
#include "numeric/large_array.hpp"
#include "numeric/reduction.hpp"

namespace pgkm::cpu {

// Float64 sums over rows, with their memory.
struct RowSums {
    RowSums(Context &context, const SumPlan &of)
        : plan(of), memory(Buffer<double>::zeros(context.budget, static_cast<std::size_t>(of.memory()))),
          ordered(of, memory.data())
    {
    }
    SumPlan plan;
    Buffer<double> memory;
    OrderedSums ordered;
};

// sums/: summaries[p] receives the statistics of problems[p]; mean and variance only with want_moments.
void summarise(Data &data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
               PgkmSummary *summaries);
// Of each feature the integer sums of values and of squares about the middle of its range: ranges that have all rows.
std::vector<Int128> moment_sums(Data &data, const PgkmProblem &problem, PgkmSummary ranges);
// moments[p] receives sums and products of problems[p]'s rows.
void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

// The same of rows that come in pieces: of whole blocks (block_rows), but the last.
// moments: where the sums go in the end, with the shift. The bits are those of all n rows at once.
RowSums begin_moments(Context &context, std::int64_t n, std::int32_t d, bool weighted);
void add_moments(Data &piece, std::int64_t first, const PgkmMoments &moments, RowSums &sums);
void finish_moments(Context &context, const RowSums &sums, std::int32_t d, bool weighted, PgkmMoments &moments);

// seed/: sets the centroids of each problem and lowers its k to the number of distinct rows found.
void seed(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params);

// fit/: Lloyd's iterations, and one assignment to fixed centroids.
void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params);
void assign(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments);

// hamming/: the same of rows of bits; an assignment has neither totals nor masses.
void summarise_bits(Data &data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
                    PgkmSummary *summaries);
void fit_bits(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params);
void assign_bits(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments);

// Labels of all rows, of a caller who has iterations made one at a time.
struct KeptLabels {
    LargeArray<std::int32_t> values;
    const void *kept = nullptr; // the iteration in the data that they belong to
};
// One such iteration: the sums under the problem's centroids. It goes on from the last one if the labels are that
// one's, else it begins anew. Whether a label has changed since.
bool iterate_on(Data &data, const PgkmProblem &problem, bool first, KeptLabels &labels, PgkmAssignment &sums);

// sizes/: fit() and assign() with bounds of the clusters' sizes (PgkmBackend.fit_sizes).
void fit_sizes(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
               const PgkmSizeBounds *bounds, PgkmAssignment *assignments);

// mixture/: the E step and the sums of the M step. Throws Error(PGKM_INVALID) where squares overflow.
// Copies of the sums of large mixtures take 256 MB, so that there are some threads' worth of them.
inline constexpr std::int64_t most_mixture_values = 32 << 20;
void em_step(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
             PgkmMixtureSums *sums);

// The same of rows that come in pieces, as moments. sums: what is wanted; labels of the mixture are the piece's.
RowSums begin_em_step(Context &context, std::int64_t n, std::int32_t d, const PgkmMixture &mixture, bool want_sums);
void add_em_step(Data &piece, std::int64_t first, const PgkmMixture &mixture, bool want_sums, RowSums &sums);
void finish_em_step(Context &context, const RowSums &sums, std::int32_t d, const PgkmMixture &mixture,
                    PgkmMixtureSums &out);

// reduce/: a user's reduction. Throws Error(PGKM_INVALID) where a row fails, with reduced[p].fault set.
void reduce(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction *reduction,
            PgkmReduced *reduced);

} // namespace pgkm::cpu

// entries.hpp - seed(), fit() and assign() over the rows that differ, where rows repeat.
//
// What a row adds to a sum is rounded first and multiplied by its count then, so that entries give the bits of their
// rows. Errors throw Error, as in plugin/operations.hpp.
#pragma once

#include <vector>

#include "backend/entries.hpp"
#include "backend/peers.hpp"
#include "plugin/operations.hpp"

namespace pgkm::cuda {

// What making entries takes, in passes of a row by a centroid: less work than that goes to the rows. A seeding of these
// sorts them, too. Measured on an H200: 250 (5,000,000 x 4) to 700 (400,000 x 768).
inline constexpr double worth_entries = 512.0;

// What so many passes of this problem go by: the entries of its rows, with peers of the rows of all, where there are
// some or making them is worth it; the rows, beside entries that other problems or calls may use; nullptr: the rows
// alone. Entries of other ranges that share rows with the problem's go: of problems over changing ranges few are kept.
// Peers call it at the same time, and get the same answer.
Data *rows_for(Data &rows, const PgkmProblem &problem, double passes, bool fits);

// Whether there are entries, and ample room beside them: faster kernels keep orders of n rows, and more.
bool may_stay(const Data &rows, std::int64_t n);

// Gives them up: a call reads the rows.
void forget_entries(Data &rows);

// assign_problem() of entries; what is asked of each row comes from its entry.
template <typename T>
void assign_entries(Data &entries, const PgkmProblem &problem, const PgkmAssignment &wanted);

// body(), which reads n rows, beside entries that may stay. They go where it finds too little memory, and it is called
// once more.
template <typename Body>
void beside_entries(Data &rows, std::int64_t n, Body &&body)
{
    if (may_stay(rows, n)) {
        if (unless_short(body))
            return;
        rows.may_repeat = false;
    }
    forget_entries(rows);
    body();
}

// body(data, problem) on the problem's entries, where it has some, or on the rows: also where it finds too little
// memory beside entries. What it throws then leaves the problem, and centroids that it changes (fits), as they were.
// Of peers each does the whole problem by entries, with no word to the others, and all of them turn to the rows where
// one has to.
template <typename Problem, typename Body>
void by_entries(Data &rows, Problem &problem, double passes, bool fits, Body &&body)
{
    if (Data *const on = rows_for(rows, problem, passes, fits)) {
        bool have_met = false;
        const std::size_t bytes = fits ? static_cast<std::size_t>(problem.k) * rows.row_bytes() : 0;
        if (unless_short([&] {
                const Claim claim(rows.context.host_budget, bytes);
                std::vector<std::byte> centroids(bytes);
                std::vector<PgkmProblem> own = {problem};
                if (on != &rows) {
                    own[0].first_row = 0;
                    own[0].n_rows = on->host.n;
                    own[0].peers = nullptr;
                }
                on_copies(&problem, own, fits ? rows.row_bytes() : 0, centroids.data(), [&](PgkmProblem *one) {
                    body(*on, *one);
                    have_met = true;
                    if (any_of_peers(problem.peers, false))
                        throw Error(PGKM_LIMIT, "another device has too little memory beside entries");
                });
            }))
            return;
        if (!have_met)
            any_of_peers(problem.peers, true);
        rows.may_repeat = false;
    }
    forget_entries(rows);
    body(rows, problem);
}

} // namespace pgkm::cuda

// entries.hpp - seed(), fit() and assign() over the rows that differ, where rows repeat.
//
// What a row adds to a sum is rounded first and multiplied by its count then, so that entries give the bits of their
// rows. Errors throw Error, as in plugin/operations.hpp.
#pragma once

#include <vector>

#include "backend/entries.hpp"
#include "plugin/operations.hpp"

namespace pgkm::cuda {

// What making entries takes, in passes of a row by a centroid: less work than that goes to the rows. A seeding of these
// sorts them, too. Measured on an H200: 250 (5,000,000 x 4) to 700 (400,000 x 768).
inline constexpr double worth_entries = 512.0;

// What so many passes of this problem go by: the entries of all loaded rows, where there are some or making them is
// worth it; the rows, beside entries that other calls may use; nullptr: the rows alone.
Data *rows_for(Data &rows, const PgkmProblem &problem, double passes, bool fits);

// Gives them up: a call reads the rows.
void forget_entries(Data &rows);

// assign_problem() of entries; what is asked of each row comes from its entry.
template <typename T>
void assign_entries(Data &entries, const PgkmProblem &problem, const PgkmAssignment &wanted);

// body() beside entries, where there are some. They go where it finds too little memory, and it is called once more.
template <typename Body>
void beside_entries(Data &rows, Body &&body)
{
    if (rows.entries != nullptr) {
        if (unless_short(body))
            return;
        rows.may_repeat = false;
        forget_entries(rows);
    }
    body();
}

// body(data, problems) on the entries, where there is one problem and it has some, or on the rows: also where it finds
// too little memory beside the entries. What it throws then leaves the problem, and centroids that it changes (fits),
// as they were.
template <typename Problem, typename Body>
void by_entries(Data &rows, Problem *problems, std::int64_t n_problems, double passes, bool fits, Body &&body)
{
    if (Data *const on = n_problems == 1 ? rows_for(rows, *problems, passes, fits) : nullptr) {
        const std::size_t bytes = fits ? static_cast<std::size_t>(problems->k) * rows.row_bytes() : 0;
        if (unless_short([&] {
                const Claim claim(rows.context.host_budget, bytes);
                std::vector<std::byte> centroids(bytes);
                std::vector<PgkmProblem> own = {*problems};
                own[0].n_rows = on->host.n;
                on_copies(problems, own, fits ? rows.row_bytes() : 0, centroids.data(),
                          [&](PgkmProblem *one) { body(*on, one); });
            }))
            return;
        rows.may_repeat = false;
    }
    forget_entries(rows);
    body(rows, problems);
}

} // namespace pgkm::cuda

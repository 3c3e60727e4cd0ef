// entries.hpp - seed(), fit() and assign() over the rows that differ, where rows repeat.
//
// What a row adds to a sum is rounded first and multiplied by its count then, so that entries give the bits of their
// rows. Errors throw Error, as in plugin/operations.hpp.
#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "backend/entries.hpp"
#include "plugin/operations.hpp"

namespace pgkm::cuda {

// What making entries takes, in passes of a row by a centroid: less work than that goes to the rows. A seeding of these
// sorts them, too.
inline constexpr double worth_entries = 1024.0;

// The entries of all loaded rows for this problem, if there are some, or making them is worth it for so many passes;
// else nullptr.
Data *entries_of(Data &rows, const PgkmProblem &problem, double passes, bool fits);

// Gives them up: a call reads the rows.
void forget_entries(Data &rows);

// assign_problem() of entries; what is asked of each row comes from its entry.
template <typename T>
void assign_entries(Data &entries, const PgkmProblem &problem, const PgkmAssignment &wanted);

// body(data, problems) on the entries, where there is one problem and it has some, or on the rows: also where it finds
// too little memory beside the entries. Then centroids that it changes (fits) are as they were.
template <typename Problem, typename Body>
void by_entries(Data &rows, Problem *problems, std::int64_t n_problems, double passes, bool fits, Body &&body)
{
    if (Data *const entries = n_problems == 1 ? entries_of(rows, *problems, passes, fits) : nullptr) {
        PgkmProblem own = *problems;
        own.n_rows = entries->host.n;
        std::vector<char> before;
        Claim claim;
        try {
            if (fits) {
                const std::size_t bytes = static_cast<std::size_t>(own.k) * rows.row_bytes();
                claim = Claim(rows.context.host_budget, bytes);
                const char *const from = static_cast<const char *>(own.centroids);
                before.assign(from, from + bytes);
            }
            body(*entries, &own);
            if constexpr (!std::is_const_v<Problem>) {
                own.n_rows = problems->n_rows;
                *problems = own;
            }
            return;
        } catch (const Error &error) {
            if (error.status() != PGKM_LIMIT && error.status() != PGKM_OUT_OF_MEMORY)
                throw;
        }
        if (!before.empty())
            std::memcpy(problems->centroids, before.data(), before.size());
        rows.may_repeat = false;
    }
    forget_entries(rows);
    body(rows, problems);
}

} // namespace pgkm::cuda

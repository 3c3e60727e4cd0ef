// problems.hpp - one call's problems, read from the arena and checked.
#pragma once

#include <vector>

#include "backend/call_table.hpp"
#include "service/wire/arena.hpp"
#include "service/wire/fields.hpp"

namespace pgkm::service {

[[noreturn]] void refuse(const char *what);

class Problems {
  public:
    // Throws Error(PGKM_INVALID) for what cannot be: rows or arrays that are not there.
    Problems(const CallRequest &request, const PgkmPoints &points, const Arena &arena);

    // Runs the call on `table`.
    PgkmStatus run(const PgkmBackend &table, PgkmData *data, PgkmError *error) const
    {
        return run_call(table, data, call_, error);
    }
    // fit() may have written over the centroids that it started from: as they were.
    void restore();
    // What the call found, into the arena.
    void write_back();
    // In distance terms: rows x features x clusters x passes over the rows.
    double work() const { return work_; }

  private:
    void copy_program();
    void keep(std::size_t problem);
    void keep_labels(PgkmMixture &mixture, std::int64_t n);
    double work_of(std::size_t problem) const;

    const RowShape rows_;
    char *const arena_;
    ArenaFields reader_;
    CallRoom room_;
    Call &call_ = room_.call;
    std::vector<PgkmProblem> asked_;
    // Copies of a reduction's program.
    std::vector<PgkmExpression> expressions_;
    std::vector<std::int64_t> loops_;
    std::vector<double> parameters_;
    std::vector<PgkmItem> items_;
    std::vector<PgkmObject> objects_;
    std::vector<std::vector<std::int32_t>> given_labels_; // copies that were checked
    std::vector<std::vector<char>> centroids_;            // of fit, as given
    double work_ = 0.0;
};

} // namespace pgkm::service

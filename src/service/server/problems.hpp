// problems.hpp - one call's problems, read from the arena and checked.
#pragma once

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
    // What the call found, into the arena.
    void write_back();
    // In distance terms: rows x features x clusters x passes over the rows.
    double work() const { return work_; }

  private:
    void check(std::int64_t problem) const;
    double work_of(std::int64_t problem) const;

    const RowShape rows_;
    char *const arena_;
    ArenaFields reader_;
    CallRoom room_;
    Call &call_ = room_.call;
    double work_ = 0.0;
};

} // namespace pgkm::service

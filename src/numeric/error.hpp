// error.hpp - our one exception, and its translation at the C boundary.
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "numeric/platform.hpp"
#include "numeric/status.h"

namespace pgkm {

// The SQLSTATE of an Error(PGKM_LIMIT) about memory that every backend of a job shares.
inline constexpr char limit_of_job[] = "54000";

class Error : public std::exception {
  public:
    Error(PgkmStatus status, std::string text, std::string sqlstate = {})
        : status_(status), text_(std::move(text)), sqlstate_(std::move(sqlstate))
    {
    }
    explicit Error(const PgkmError &error) : Error(error.status, error.text, error.sqlstate) {}
    PgkmStatus status() const noexcept { return status_; }
    const char *sqlstate() const noexcept { return sqlstate_.c_str(); }
    const char *what() const noexcept override { return text_.c_str(); }
    bool is_limit_of_job() const noexcept { return status_ == PGKM_LIMIT && sqlstate_ == limit_of_job; }

  private:
    PgkmStatus status_;
    std::string text_;
    std::string sqlstate_; // as in PgkmError
};

inline PgkmStatus set_error(PgkmError *error, PgkmStatus status, const char *text, const char *sqlstate = "") noexcept
{
    if (error != nullptr) {
        error->status = status;
        std::snprintf(error->text, sizeof error->text, "%s", text);
        std::snprintf(error->sqlstate, sizeof error->sqlstate, "%s", sqlstate);
    }
    return status;
}

// Runs `body` and turns whatever it throws into a status and a text: the only place where
// exceptions end, used by every function that a C caller can reach.
template <typename Body>
PgkmStatus guarded(PgkmError *error, Body &&body) noexcept
{
    try {
        body();
        return set_error(error, PGKM_OK, "");
    } catch (const Error &thrown) {
        return set_error(error, thrown.status(), thrown.what(), thrown.sqlstate());
    } catch (const std::bad_alloc &) {
        return set_error(error, PGKM_OUT_OF_MEMORY, "out of memory");
    } catch (const std::system_error &thrown) {
        return set_error(error, PGKM_OUT_OF_MEMORY, thrown.what()); // a thread could not be started
    } catch (const std::exception &thrown) {
        return set_error(error, PGKM_INTERNAL, thrown.what());
    } catch (...) {
        return set_error(error, PGKM_INTERNAL, "unknown exception");
    }
}

} // namespace pgkm

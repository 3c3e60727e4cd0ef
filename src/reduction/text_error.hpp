// text_error.hpp - what is wrong with a text, as an exception that ends at the border (lower.h).
#pragma once

#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

#include "reduction/lower.h"

namespace pgkm::reduction {

struct TextError {
    const char *sqlstate;
    std::string text;
    std::int32_t place;
};

namespace sqlstate {
inline constexpr char unsupported[] = "0A000";
inline constexpr char division_by_zero[] = "22012";
inline constexpr char out_of_range[] = "22003";
inline constexpr char invalid[] = "22023";
inline constexpr char undefined_name[] = "42703";
inline constexpr char wrong_type[] = "42804";
inline constexpr char recursion[] = "42P19";
inline constexpr char out_of_memory[] = "53200";
inline constexpr char too_large[] = "54000";
inline constexpr char cancelled[] = "57014";
inline constexpr char internal[] = "XX000";
} // namespace sqlstate

[[noreturn]] inline void raise(const char *sqlstate, std::int32_t place, std::string text)
{
    throw TextError{sqlstate, std::move(text), place};
}

inline std::string quoted(const char *name)
{
    return '"' + std::string(name) + '"';
}

// A number that reads back as itself.
inline std::string with_digits(double number)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", number);
    return text;
}

[[noreturn]] inline void raise_nested(std::int32_t place)
{
    raise(sqlstate::too_large, place, "the expressions of the reduction are nested too deeply");
}

// Runs `body`; where it throws, says so in *error and returns false.
template <typename Body>
bool at_border(PgkmTextError *error, Body &&body) noexcept
{
    const auto set = [error](const char *sqlstate, std::int32_t place, const char *text) {
        std::snprintf(error->sqlstate, sizeof error->sqlstate, "%s", sqlstate);
        std::snprintf(error->text, sizeof error->text, "%s", text);
        error->place = place;
        return false;
    };
    set("00000", -1, "");
    try {
        body();
        return true;
    } catch (const TextError &thrown) {
        return set(thrown.sqlstate, thrown.place, thrown.text.c_str());
    } catch (const std::bad_alloc &) {
        return set(sqlstate::out_of_memory, -1, "out of memory");
    } catch (const std::exception &thrown) {
        return set(sqlstate::internal, -1, thrown.what());
    }
}

} // namespace pgkm::reduction

// fields.cpp - the places of a call's numbers and arrays.
#include "service/wire/fields.hpp"

#include "numeric/copy.h"
#include "numeric/error.hpp"

namespace pgkm::service {

ArenaFields::ArenaFields(Leg leg, const RowShape &rows, char *base, std::uint64_t numbers, std::uint64_t bytes)
    : FieldArchive(leg, rows), base_(base), most_numbers_(numbers), bytes_(bytes)
{
    if (numbers > bytes / number_bytes)
        refuse();
}

void ArenaFields::refuse() const
{
    throw Error(PGKM_INVALID, leg() == Leg::read_results ? "the GPU service gave an answer that cannot be"
                                                         : "the GPU service got a call that cannot be");
}

char *ArenaFields::next_number()
{
    const std::uint64_t number = numbers_++;
    if (base_ == nullptr)
        return nullptr;
    if (number >= most_numbers_)
        refuse();
    return base_ + number * number_bytes;
}

// Without an arena nullptr; sizes that overflow are too large a call then.
char *ArenaFields::next_array(std::int64_t n, std::size_t size)
{
    const std::uint64_t begin = arrays_;
    std::uint64_t bytes = 0, end = 0;
    if (n < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(n), size, &bytes) ||
        __builtin_add_overflow(begin, bytes, &end) || end > INT64_MAX / 2) {
        if (base_ != nullptr)
            refuse();
        throw Error(PGKM_LIMIT, "the call's arrays are too large");
    }
    arrays_ = (end + alignment - 1) / alignment * alignment;
    if (base_ == nullptr)
        return nullptr;
    const std::uint64_t first = begin_of_arrays(most_numbers_);
    if (first + end > bytes_)
        refuse();
    return base_ + first + begin;
}

void ArenaFields::range(PgkmProblem &problem)
{
    value(Way::given, problem.first_row);
    value(Way::given, problem.n_rows);
    require(problem.n_rows >= 1 && problem.n_rows <= rows().n && problem.first_row >= 0 &&
            problem.first_row <= rows().n - problem.n_rows);
}

char *ArenaFields::place(Way way, void *values, std::int64_t n, std::size_t size)
{
    if (n == 0)
        return nullptr;
    std::int64_t count = may_be_null(way) && values == nullptr ? 0 : n;
    value(Way::given, count); // which the client knows when it reads results
    require(count == n || (count == 0 && may_be_null(way)));
    if (count == 0 || leg() == Leg::write_results) // of which the arrays are in place
        return nullptr;
    char *at = next_array(n, size);
    const std::size_t bytes = static_cast<std::size_t>(n) * size;
    if (at == nullptr || (leg() == Leg::read_call && !reads(way)))
        return at;
    if (leg() == Leg::read_call) {
        const Copy &copy = copies_.emplace_back(
            Copy{std::unique_ptr<char[]>(new char[bytes]), way == Way::both ? at : nullptr, bytes});
        values = copy.values.get();
    }
    if (writes(way))
        pgkm_copy(at, values, bytes);
    if (reads(way) && values != nullptr)
        pgkm_copy(values, at, bytes);
    return static_cast<char *>(values);
}

void ArenaFields::put_back() const
{
    for (const Copy &copy : copies_)
        if (copy.from != nullptr)
            pgkm_copy(copy.from, copy.values.get(), copy.bytes);
}

} // namespace pgkm::service

// fields.cpp - the places of a call's numbers and arrays.
#include "service/wire/fields.hpp"

namespace pgkm::service {

Places::Places(const RowShape &rows, char *base, std::uint64_t numbers, std::uint64_t bytes)
    : rows_(rows), base_(base), most_numbers_(numbers), bytes_(bytes)
{
    if (base != nullptr && numbers > bytes / number_bytes)
        refuse();
}

void Places::refuse()
{
    throw Error(PGKM_INVALID, "the GPU service got a call that cannot be");
}

char *Places::next_number()
{
    const std::uint64_t place = numbers_++;
    if (base_ == nullptr)
        return nullptr;
    if (place >= most_numbers_)
        refuse();
    return base_ + place * number_bytes;
}

char *Places::next_array(std::int64_t n, std::size_t size)
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

void CallWriter::write(Way way, const void *from, std::int64_t n, std::size_t size)
{
    if (n == 0)
        return;
    const bool is_there = !may_be_null(way) || from != nullptr;
    put(is_there ? n : std::int64_t{0});
    if (!is_there)
        return;
    char *to = next_array(n, size);
    if (to != nullptr && goes_there(way))
        pgkm_copy(to, from, static_cast<std::size_t>(n) * size);
}

void CallReader::range(PgkmProblem &problem)
{
    problem.first_row = get<std::int64_t>();
    problem.n_rows = get<std::int64_t>();
    require(problem.n_rows >= 1 && problem.n_rows <= rows().n && problem.first_row >= 0 &&
            problem.first_row <= rows().n - problem.n_rows);
}

char *CallReader::find(Way way, std::int64_t n, std::size_t size)
{
    if (n == 0)
        return nullptr;
    const auto told = get<std::int64_t>();
    if (told == 0 && may_be_null(way))
        return nullptr;
    require(told == n);
    return next_array(n, size);
}

const char *ResultReader::find(Way way, const void *to, std::int64_t n, std::size_t size)
{
    if (n == 0)
        return nullptr;
    pass();
    return may_be_null(way) && to == nullptr ? nullptr : next_array(n, size);
}

} // namespace pgkm::service

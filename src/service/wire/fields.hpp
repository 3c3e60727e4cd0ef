// fields.hpp - a call's fields (backend/calls.hpp) in the arena: how either end writes and reads them.
//
// First come the numbers, of 8 bytes each, then the arrays. Both ends walk the same way, so that no address travels. An
// array has a number, too: how many values it has, 0 where it is NULL. The client writes what a call is given and
// leaves room for what it finds. The service reads each number once and leaves the arrays in place.
#pragma once

#include <cstring>
#include <type_traits>

#include "backend/calls.hpp"
#include "numeric/contract.hpp"
#include "numeric/copy.h"
#include "numeric/error.hpp"

namespace pgkm::service {

// Where the fields lie, one after the other.
class Places {
  public:
    const RowShape &rows() const { return rows_; }
    std::uint64_t numbers() const { return numbers_; }
    std::uint64_t bytes() const { return begin_of_arrays(numbers_) + arrays_; } // of all, once all have their places

  protected:
    // numbers: of the call; bytes: of the arena.
    Places(const RowShape &rows, char *base, std::uint64_t numbers, std::uint64_t bytes);

    template <typename T>
    T get()
    {
        T value;
        static_assert(std::is_arithmetic_v<T> && sizeof value <= number_bytes);
        std::memcpy(&value, next_number(), sizeof value);
        return value;
    }
    template <typename T>
    void put(T value)
    {
        static_assert(std::is_arithmetic_v<T> && sizeof value <= number_bytes);
        char *to = next_number();
        if (to == nullptr)
            return;
        std::memset(to, 0, number_bytes);
        std::memcpy(to, &value, sizeof value);
    }
    void pass() { next_number(); }
    // The place of n values; nullptr without an arena. Throws Error: PGKM_INVALID where they pass the arena's end,
    // PGKM_LIMIT where there is no arena and sizes overflow.
    char *next_array(std::int64_t n, std::size_t size);

    [[noreturn]] static void refuse();

  private:
    static constexpr std::uint64_t number_bytes = sizeof(std::uint64_t), alignment = 64; // of an array
    static std::uint64_t begin_of_arrays(std::uint64_t numbers)
    {
        return (numbers * number_bytes + alignment - 1) / alignment * alignment;
    }
    char *next_number();

    RowShape rows_;
    char *base_;
    std::uint64_t most_numbers_, bytes_;
    std::uint64_t numbers_ = 0, arrays_ = 0; // so far; arrays in bytes
};

// The client's, before the call. Without an arena it measures.
class CallWriter : public Places {
  public:
    explicit CallWriter(const RowShape &rows) : Places(rows, nullptr, 0, 0) {}
    CallWriter(const RowShape &rows, char *base, const CallWriter &measured)
        : Places(rows, base, measured.numbers(), measured.bytes())
    {
    }

    void range(const PgkmProblem &problem)
    {
        put(problem.first_row);
        put(problem.n_rows);
    }
    template <typename T>
    void value(Way way, const T &value)
    {
        if (goes_there(way))
            put(value);
        else
            put(T{});
    }
    void exponent(Way way, const std::int32_t &exponent) { value(way, exponent); }
    template <typename E>
    void choice(Way way, const E &choice, E)
    {
        put(goes_there(way) ? static_cast<std::int32_t>(choice) : 0);
    }
    template <typename T>
    void array(Way way, T *from, std::int64_t n)
    {
        write(way, from, n, sizeof(T));
    }
    void elements(Way way, const void *from, std::int64_t n) { write(way, from, n, rows().element_bytes()); }
    void require(bool) {}

  private:
    void write(Way way, const void *from, std::int64_t n, std::size_t size);
};

// The service's, before the call: addresses are those in the arena. Refuses what cannot be.
class CallReader : public Places {
  public:
    CallReader(const RowShape &rows, char *base, std::uint64_t numbers, std::uint64_t bytes)
        : Places(rows, base, numbers, bytes)
    {
    }

    void range(PgkmProblem &problem);
    template <typename T>
    void value(Way way, T &value)
    {
        if (goes_there(way))
            value = get<T>();
        else
            pass();
    }
    void exponent(Way way, std::int32_t &exponent)
    {
        value(way, exponent);
        exponent = clamp_exponent(exponent);
    }
    template <typename E>
    void choice(Way way, E &choice, E last)
    {
        if (!goes_there(way))
            return pass();
        const auto number = get<std::int32_t>();
        require(number >= 0 && number <= static_cast<std::int32_t>(last));
        choice = static_cast<E>(number);
    }
    template <typename T>
    void array(Way way, T *&place, std::int64_t n)
    {
        place = reinterpret_cast<T *>(find(way, n, sizeof(T)));
    }
    void elements(Way way, void *&place, std::int64_t n) { place = find(way, n, rows().element_bytes()); }
    void require(bool holds)
    {
        if (!holds)
            refuse();
    }

  private:
    char *find(Way way, std::int64_t n, std::size_t size);
};

// The service's, after the call: arrays are in place already.
class ResultWriter : public Places {
  public:
    ResultWriter(const RowShape &rows, char *base, const CallReader &read)
        : Places(rows, base, read.numbers(), read.bytes())
    {
    }

    void range(const PgkmProblem &)
    {
        pass();
        pass();
    }
    template <typename T>
    void value(Way way, const T &value)
    {
        if (comes_back(way))
            put(value);
        else
            pass();
    }
    void exponent(Way way, const std::int32_t &exponent) { value(way, exponent); }
    template <typename E>
    void choice(Way way, const E &choice, E)
    {
        value(way, static_cast<std::int32_t>(choice));
    }
    void array(Way, const void *, std::int64_t n)
    {
        if (n != 0)
            pass();
    }
    void elements(Way way, const void *place, std::int64_t n) { array(way, place, n); }
    void require(bool) {}
};

// The client's, after the call.
class ResultReader : public Places {
  public:
    ResultReader(const RowShape &rows, char *base, const CallWriter &written)
        : Places(rows, base, written.numbers(), written.bytes())
    {
    }

    void range(const PgkmProblem &)
    {
        pass();
        pass();
    }
    template <typename T>
    void value(Way way, T &value)
    {
        if (comes_back(way))
            value = get<T>();
        else
            pass();
    }
    void exponent(Way way, std::int32_t &exponent) { value(way, exponent); }
    template <typename E>
    void choice(Way way, E &choice, E last)
    {
        if (!comes_back(way))
            return pass();
        const auto number = get<std::int32_t>();
        require(number >= 0 && number <= static_cast<std::int32_t>(last));
        choice = static_cast<E>(number);
    }
    template <typename T>
    void array(Way way, T *to, std::int64_t n)
    {
        const char *from = find(way, to, n, sizeof(T));
        if constexpr (!std::is_const_v<T>)
            take(way, to, from, n, sizeof(T));
    }
    void elements(Way way, void *to, std::int64_t n)
    {
        const std::size_t size = rows().element_bytes();
        take(way, to, find(way, to, n, size), n, size);
    }
    void require(bool holds)
    {
        if (!holds)
            throw Error(PGKM_INVALID, "the GPU service gave an answer that cannot be");
    }

  private:
    const char *find(Way way, const void *to, std::int64_t n, std::size_t size);
    static void take(Way way, void *to, const char *from, std::int64_t n, std::size_t size)
    {
        if (from != nullptr && to != nullptr && comes_back(way))
            pgkm_copy(to, from, static_cast<std::size_t>(n) * size);
    }
};

} // namespace pgkm::service

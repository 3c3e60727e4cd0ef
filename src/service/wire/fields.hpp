// fields.hpp - a call's fields (backend/calls.hpp) in the arena.
//
// First come the numbers, of 8 bytes each, then the arrays. Both ends walk the same way, so that no address travels. An
// array has a number, too: how many values it has, 0 where it is NULL. The client writes what a call is given and
// leaves room for what it finds. The service reads each number once, and copies what a call is given: that cannot
// change any more, and an attempt that fails leaves the arena as it was. What the call only finds is written in place.
#pragma once

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "backend/calls.hpp"

namespace pgkm::service {

class ArenaFields : public FieldArchive<ArenaFields> {
  public:
    // Measures what the client would write.
    explicit ArenaFields(const RowShape &rows) : ArenaFields(Leg::write_call, rows, nullptr, 0, 0) {}
    // base, bytes: the arena; numbers: of the call. Throws Error(PGKM_INVALID) where it does not hold them.
    ArenaFields(Leg leg, const RowShape &rows, char *base, std::uint64_t numbers, std::uint64_t bytes);

    std::uint64_t numbers() const { return numbers_; }                          // so far
    std::uint64_t bytes() const { return begin_of_arrays(numbers_) + arrays_; } // of all, once all have their places

    // After read_call and the call: what it has changed, to where it was read.
    void put_back() const;

    void range(PgkmProblem &problem);
    template <typename T>
    void value(Way way, T &value)
    {
        static_assert(std::is_arithmetic_v<T> && sizeof value <= number_bytes);
        char *at = next_number();
        if (at == nullptr)
            return;
        if (leg() == Leg::write_call)
            std::memset(at, 0, number_bytes);
        if (writes(way))
            std::memcpy(at, &value, sizeof value);
        if (reads(way))
            std::memcpy(&value, at, sizeof value);
    }
    template <typename T>
    void array(Way way, T *&values, std::int64_t n)
    {
        void *at = place(way, const_cast<std::remove_const_t<T> *>(values), n, sizeof(T));
        if (leg() == Leg::read_call)
            values = static_cast<T *>(at);
    }
    void elements(Way way, void *&values, std::int64_t n)
    {
        void *at = place(way, values, n, rows().element_bytes());
        if (leg() == Leg::read_call)
            values = at;
    }
    [[noreturn]] void refuse() const;

  private:
    static constexpr std::uint64_t number_bytes = sizeof(std::uint64_t), alignment = 64; // of an array
    static std::uint64_t begin_of_arrays(std::uint64_t numbers)
    {
        return (numbers * number_bytes + alignment - 1) / alignment * alignment;
    }
    // Of an array that read_call has read. from: its place, if the call changes it.
    struct Copy {
        std::unique_ptr<char[]> values;
        char *from;
        std::size_t bytes;
    };

    char *next_number();
    char *next_array(std::int64_t n, std::size_t size);
    // Copies an array to or from its place. Of read_call: where it is now; NULL: there is none.
    char *place(Way way, void *values, std::int64_t n, std::size_t size);

    char *base_;
    std::uint64_t most_numbers_, bytes_;
    std::uint64_t numbers_ = 0, arrays_ = 0; // so far; arrays in bytes
    std::vector<Copy> copies_;
};

} // namespace pgkm::service

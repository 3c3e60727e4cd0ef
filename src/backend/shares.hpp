// shares.hpp - one problem of a call for a share of its rows, and what the shares have found put together: by the
// fields of the call (backend/calls.hpp).
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "backend/call_table.hpp"
#include "backend/update.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Brings the problem of a call to a share: its rows' part of arrays by row, and for what else is found memory of its
// own, which lasts as long as this. A share that is the whole problem fills the caller's arrays: it has memory of its
// own for those alone that are given to it, too.
class Cut : public FieldArchive<Cut> {
  public:
    // skip: rows of the problem before those of the share. whole: it has all of them.
    Cut(const RowShape &rows, std::int64_t skip, bool whole)
        : FieldArchive(Leg::write_results, rows), skip_(skip), whole_(whole)
    {
    }

    void range(PgkmProblem &) {}
    void require(bool) {} // both ends are here
    template <typename T>
    void value(Way, T &)
    {
    }
    template <typename E>
    void choice(Way, E &, E)
    {
    }
    template <typename T>
    void array(Way way, T *&values, std::int64_t n)
    {
        if constexpr (!std::is_const_v<T>)
            if (n != 0 && values != nullptr && has_own(way))
                values = static_cast<T *>(copy(way, values, static_cast<std::size_t>(n) * sizeof(T)));
    }
    void elements(Way way, void *&values, std::int64_t n)
    {
        if (has_own(way))
            values = copy(way, values, static_cast<std::size_t>(n) * rows().element_bytes());
    }
    template <typename T>
    void by_row(Way, T *&values, std::int64_t n)
    {
        if (n != 0 && values != nullptr)
            values += skip_;
    }

  private:
    bool has_own(Way way) const { return writes(way) && (!whole_ || way == Way::both); }

    void *copy(Way way, const void *given, std::size_t bytes)
    {
        memory_.push_back(way == Way::both ? std::make_unique_for_overwrite<std::byte[]>(bytes)
                                           : std::make_unique<std::byte[]>(bytes));
        if (way == Way::both)
            std::memcpy(memory_.back().get(), given, bytes);
        return memory_.back().get();
    }

    std::int64_t skip_;
    bool whole_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;
};

// The call of one problem for a share of it, with memory of its own for what it finds.
struct ShareCall {
    ShareCall(const Call &one, const RowShape &rows, std::int64_t skip, bool whole) : cut(rows, skip, whole)
    {
        room.call = one;
        room.make(1);
        room.set(0, one);
        problem_fields(cut, room.call, 0);
    }
    ShareCall(const ShareCall &) = delete;
    ShareCall &operator=(const ShareCall &) = delete;
    PgkmProblem &problem() { return *room.call.problems; }

    CallRoom room;
    Cut cut;
};

// Shows the results of a share's call first, then those of the whole one, which take them or have them added.
class Results : public FieldArchive<Results> {
  public:
    explicit Results(const RowShape &rows) : FieldArchive(Leg::write_results, rows) {}

    // A share's to the call of its problem.
    void give(ShareCall &from, Call &to, bool first) { give(from.room.call, 0, to, 0, first); }
    // Problem i of `from` to problem j of `to`. first: it sets what others add to.
    void give(Call &from, std::int64_t i, Call &to, std::int64_t j, bool first)
    {
        first_ = first;
        giving_ = false;
        found_.clear();
        problem_fields(*this, from, i);
        giving_ = true;
        next_ = 0;
        problem_fields(*this, to, j);
    }

    void range(PgkmProblem &) {}
    void require(bool) {} // both ends are here
    template <typename T>
    void value(Way way, T &value)
    {
        T *values = &value;
        array(way, values, 1);
    }
    template <typename E>
    void choice(Way way, E &choice, E)
    {
        value(way, choice);
    }
    template <typename T>
    void array(Way way, T *&values, std::int64_t n)
    {
        if constexpr (!std::is_const_v<T>) {
            if (n == 0 || values == nullptr || !writes(way))
                return;
            if (!giving_) {
                found_.push_back(values);
                return;
            }
            const T *const own = static_cast<const T *>(found_[next_++]);
            if (first_ && own != values)
                std::copy_n(own, n, values);
            else if (own != values)
                std::transform(own, own + n, values, values, [](const T &a, const T &b) { return sum(a, b); });
        }
    }
    void elements(Way way, void *&values, std::int64_t n)
    {
        auto *bytes = static_cast<char *>(values);
        array(way, bytes, n * static_cast<std::int64_t>(rows().element_bytes()));
    }
    template <typename T>
    void by_row(Way, T *&, std::int64_t)
    {
    }

  private:
    template <typename T>
    static T sum(const T &a, const T &b)
    {
        if constexpr (std::is_arithmetic_v<T>)
            return static_cast<T>(b + a);
        else
            return a; // of one share
    }
    // Of what another server has told, which may be anything, the bits beyond 128 are lost.
    static PgkmInt128 sum(const PgkmInt128 &a, const PgkmInt128 &b)
    {
        return split(static_cast<Int128>(static_cast<UInt128>(join(a)) + static_cast<UInt128>(join(b))));
    }

    bool first_ = true, giving_ = false;
    std::vector<const void *> found_; // in the order of the fields
    std::size_t next_ = 0;
};

} // namespace pgkm

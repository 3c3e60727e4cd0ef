// message.hpp - what the engine and a node say to one another: plain values in the byte order of the machine.
//
// A request begins with `message_magic`, which holds the version, an operation, and how many bytes of an answer may
// come at once. Numbers of another version or byte order are refused there. A longer request comes before, in parts,
// and is Operation::whole then. An answer begins with 0; or it is one number: how many bytes it has, which the server
// holds for Operation::held. Integers of sums travel as they are, so that they add up to the same bits everywhere.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/update.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"
#include "numeric/told.hpp"

namespace pgkm::nodes {

using Bytes = std::vector<std::byte>;

// "PGK" and the version of all that follows.
inline constexpr std::uint32_t message_magic = 0x50474B08u;

// What a node is asked: functions of Share and Seeding (operations.hpp), which say what they take and return.
enum class Operation : std::uint32_t {
    call,         // a function of the table, and what it has found: an iteration among others
    ranges,       // least and greatest values, the largest weight
    moments,      // integer sums of values and squares about the middle of given ranges
    transform,    // standardize, bring to unit length
    farthest,     // of the last iteration: rows for empty clusters
    cluster_sums, // sums over the rows of each cluster, in float64
    seed_begin,   // bring rows into canonical order; each of what follows builds upon those before it
    seed_add,     // new chosen rows: distances to them
    seed_masses,  // masses by nearest chosen row
    seed_weigh,   // masses by bucket of keys
    seed_runs,    // the contents, or the keys alone, of some buckets, and their masses
    seed_gains,   // bounds of how much each trial would lower the potential
    seed_exact,   // the same exactly, of some trials
    seed_choose,  // a trial becomes a chosen row: how masses change
    held,         // some bytes of the last answer, which was too long to come at once
    part,         // some bytes of a request that is as long
    whole         // the request that has come so
};

// Of a message at most: that of a value in SQL.
inline constexpr std::uint64_t most_message_bytes = std::uint64_t{1} << 30;

// What a request begins with.
struct Asked {
    Operation operation;
    std::uint64_t most_at_once; // bytes
};

// A value of several fields has each(value, body), which calls body(field) for one after the other.
template <typename T>
concept HasFields = requires(T value)
{
    T::each(value, [](auto &) {});
};
template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;

// An answer that says no more than that what was asked is done.
struct Nothing {
    static void each(auto &&, auto &&) {}
};

class Writer {
  public:
    Writer() = default;
    template <typename... Fields>
    explicit Writer(Operation operation, const Fields &...fields)
    {
        put(message_magic);
        put(operation);
        put(std::uint64_t{UINT64_MAX});
        (put(fields), ...);
    }
    // Of a request: how many bytes of the answer may come at once.
    void limit_answer(std::uint64_t most)
    {
        std::memcpy(bytes_.data() + sizeof message_magic + sizeof(Operation), &most, sizeof most);
    }

    template <typename T>
    void put(const T &value)
    {
        if constexpr (is_vector<T>) {
            put(value.data(), value.size());
        } else if constexpr (HasFields<T>) {
            T::each(value, [this](const auto &field) { put(field); });
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            append(&value, sizeof value);
        }
    }
    // The number of values, then these.
    template <typename T>
    void put(const T *values, std::size_t count)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        put(static_cast<std::uint64_t>(count));
        append(values, count * sizeof(T));
    }

    const Bytes &bytes() const { return bytes_; }
    Bytes take() { return std::move(bytes_); }

  private:
    void append(const void *from, std::size_t size)
    {
        if (size == 0)
            return;
        const std::size_t end = bytes_.size();
        bytes_.resize(end + size);
        std::memcpy(bytes_.data() + end, from, size);
    }

    Bytes bytes_;
};

// Of sums in float64 that another server has told.
template <typename T>
void check_sums(const T *values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        if (!std::isfinite(values[i]))
            throw Error(PGKM_INVALID, "sums are not finite: features are too large, or their squares overflow");
}
// Of an integer sum that another server has told. No rows come to more: such a one is found before it is added, so that
// no other server is blamed.
inline void check_sum(PgkmInt128 value)
{
    constexpr std::int64_t limit = std::int64_t{1} << 62;
    require_shape(value.hi >= -limit && value.hi < limit);
}
inline void add_told(Int128 &sum, PgkmInt128 value)
{
    check_sum(value);
    require_shape(!__builtin_add_overflow(sum, join(value), &sum));
}

// Reads what a Writer has written, in the same order. Throws Error where there is less.
class Reader {
  public:
    Reader(const void *bytes, std::size_t size) : next_(static_cast<const std::byte *>(bytes)), left_(size) {}
    explicit Reader(const Bytes &bytes) : Reader(bytes.data(), bytes.size()) {}

    template <typename T>
    T get()
    {
        if constexpr (is_vector<T>) {
            return take_all<typename T::value_type>(static_cast<std::size_t>(get<std::uint64_t>()));
        } else if constexpr (HasFields<T>) {
            T value;
            T::each(value, [this](auto &field) { field = get<std::decay_t<decltype(field)>>(); });
            return value;
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            static_assert(!std::is_enum_v<T> || !std::is_convertible_v<T, int>, "not every number is one");
            T value;
            take(&value, sizeof value);
            return value;
        }
    }
    // So many values, without their number before them.
    template <typename T>
    std::vector<T> take_all(std::size_t count)
    {
        if (count > left_ / sizeof(T))
            throw Error(PGKM_INVALID, "a message between nodes is too short");
        std::vector<T> values(count);
        take(values.data(), count * sizeof(T));
        return values;
    }
    // So many bytes behind others.
    void append_to(Bytes &bytes, std::size_t count)
    {
        if (count > left_)
            throw Error(PGKM_INVALID, "a message between nodes is too short");
        bytes.insert(bytes.end(), next_, next_ + count);
        next_ += count;
        left_ -= count;
    }
    Asked asked()
    {
        if (get<std::uint32_t>() != message_magic)
            throw Error(PGKM_INVALID, "a message between nodes is of another version of pg_kmeans, or of a machine of "
                                      "another byte order");
        return {get<Operation>(), get<std::uint64_t>()};
    }
    std::size_t left() const { return left_; } // bytes
    // Nothing may follow.
    void finish() const { require_shape(left_ == 0); }

  private:
    void take(void *to, std::size_t size)
    {
        if (size > left_)
            throw Error(PGKM_INVALID, "a message between nodes is too short");
        if (size > 0)
            std::memcpy(to, next_, size);
        next_ += size;
        left_ -= size;
    }

    const std::byte *next_;
    std::size_t left_;
};

} // namespace pgkm::nodes

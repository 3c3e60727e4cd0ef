// message.hpp - what the engine and a node say to one another: plain values in the byte order of the machine.
//
// A request begins with `message_magic`, which holds the version, and an operation. Numbers of another version or byte
// order are refused there. Integers of sums travel as they are, so that they add up to the same bits everywhere.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

using Bytes = std::vector<std::byte>;

// "PGK" and the version of all that follows.
inline constexpr std::uint32_t message_magic = 0x50474B04u;

// What a node is asked. The names of the fields are those of share.cpp and share_seed.cpp, where they are read.
enum class Operation : std::uint32_t {
    ranges,         // least and greatest values, the largest weight
    moments,        // integer sums of values and squares about the middle of given ranges
    transform,      // standardize, bring to unit length
    iterate,        // centroids down, integer sums up
    farthest,       // of the last iteration: rows for empty clusters
    assign,         // centroids down; sizes, masses and sums of squares up
    cross,          // float64 sums of products about a shift
    em_step,        // a mixture down, float64 sums up
    seed_begin,     // bring rows into canonical order
    seed_sums,      // masses by bucket of keys
    seed_keys,      // the keys of some buckets, and their masses
    seed_rows,      // the contents of some buckets, or behind some keys, and their masses
    seed_last,      // the last row in canonical order
    seed_add,       // new chosen rows: distances to them
    seed_gains,     // bounds of how much each trial would lower the potential
    seed_exact,     // the same exactly, of some trials
    seed_choose,    // a trial becomes a chosen row: how masses change
    seed_masses,    // masses by nearest chosen row
    cluster_totals, // sums of the rows of each cluster, in float64
    cluster_spreads // their distances to its mean, in float64
};

class Writer {
  public:
    Writer() = default;
    explicit Writer(Operation operation)
    {
        put(message_magic);
        put(operation);
    }

    template <typename T>
    void put(const T &value)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        append(&value, sizeof value);
    }
    // The number of values, then these.
    template <typename T>
    void put(const T *values, std::size_t count)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        put(static_cast<std::uint64_t>(count));
        append(values, count * sizeof(T));
    }
    template <typename T>
    void put(const std::vector<T> &values)
    {
        put(values.data(), values.size());
    }

    const Bytes &bytes() const { return bytes_; }

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

// What comes over the network decides where memory is read and written, and anybody may send it. So shapes,
// enumerators, and values that would leave no nearest centroid, are checked. Throws Error(PGKM_INVALID).
[[noreturn]] inline void raise_shape()
{
    throw Error(PGKM_INVALID, "a message between nodes has another shape than expected");
}
inline void require_shape(bool holds)
{
    if (!holds)
        raise_shape();
}
template <typename T>
void check_values(const T *values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        if (!(std::fabs(static_cast<double>(values[i])) <= max_magnitude))
            throw Error(PGKM_INVALID, "a message between nodes has values that are not finite");
}

// Reads what a Writer has written, in the same order. Throws Error where there is less.
class Reader {
  public:
    Reader(const void *bytes, std::size_t size) : next_(static_cast<const std::byte *>(bytes)), left_(size) {}
    explicit Reader(const Bytes &bytes) : Reader(bytes.data(), bytes.size()) {}

    template <typename T>
    T get()
    {
        static_assert(std::is_trivially_copyable_v<T>);
        static_assert(!std::is_enum_v<T> || !std::is_convertible_v<T, int>, "not every number is one: get_choice()");
        T value;
        take(&value, sizeof value);
        return value;
    }
    // An enumerator of 0 .. last, which is compared before it becomes one.
    template <typename E>
    E get_choice(E last)
    {
        const auto number = get<std::int32_t>();
        require_shape(number >= 0 && number <= static_cast<std::int32_t>(last));
        return static_cast<E>(number);
    }
    template <typename T>
    std::vector<T> get_all()
    {
        const auto count = get<std::uint64_t>();
        return take_all<T>(static_cast<std::size_t>(count));
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
    // The same, of a number that is known.
    template <typename T>
    std::vector<T> get_all(std::size_t count)
    {
        std::vector<T> values = get_all<T>();
        require_shape(values.size() == count);
        return values;
    }
    Operation operation()
    {
        if (get<std::uint32_t>() != message_magic)
            throw Error(PGKM_INVALID, "a message between nodes is of another version of pg_kmeans, or of a machine of "
                                      "another byte order");
        return get<Operation>();
    }
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

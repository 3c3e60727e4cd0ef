// draws.hpp - draws of rows by mass over all servers: from masses by bucket of keys to contents.
//
// A draw finds its bucket by prefix sums here. Then it asks for the bucket's contents, or, where these are many, for
// its keys and for the contents behind one of them. All draws of a step travel together.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backend/random_places.hpp"
#include "backend/update.hpp"
#include "engine/nodes/node_set.hpp"
#include "numeric/philox.hpp"
#include "numeric/platform.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::nodes {

// The integers by which rows are drawn.
struct Masses {
    cpu::Mass kind;
    std::int32_t exponent;
    bool operator==(const Masses &) const = default;
};

// A step of k-means++ asks for the contents of whole buckets at once where these are no more bytes than this.
inline constexpr double most_bucket_bytes = 1 << 20;

// Of a mass or a gain, which another server has told.
inline UInt128 join_unsigned(PgkmInt128 value)
{
    check_sum(value);
    require_shape(value.hi >= 0);
    return static_cast<UInt128>(join(value));
}

// The orders of rows' contents: by value, and canonical, with their keys.
struct ContentOrder {
    template <typename T>
    bool operator()(const std::vector<T> &a, const std::vector<T> &b) const
    {
        return compare_content(a.data(), b.data(), static_cast<int>(a.size())) < 0;
    }
    template <typename T>
    bool operator()(const std::pair<std::uint64_t, T> &a, const std::pair<std::uint64_t, T> &b) const
    {
        return a.first != b.first ? a.first < b.first : (*this)(a.second, b.second);
    }
};

template <typename T>
class Draws {
  public:
    using Content = std::vector<T>;
    using KeyedContent = std::pair<std::uint64_t, Content>;

    Draws(NodeSet &nodes, std::int32_t d, std::int32_t bits)
        : nodes_(nodes), d_(static_cast<std::size_t>(d)), bits_(bits), sums_(std::size_t{1} << bits, 0),
          ends_(sums_.size(), 0)
    {
        nodes_.ask<Operation::seed_begin, T>([](Nothing) {}, bits);
    }

    // Sums these masses, unless that is what apply() has kept.
    void weigh(const Masses &masses)
    {
        if (kept_ == masses)
            return;
        std::fill(sums_.begin(), sums_.end(), 0);
        largest_ = 0.0;
        const auto add = [&](const cpu::Changes &own) {
            largest_ = std::max(largest_, own.largest);
            apply(own, 1);
        };
        nodes_.ask<Operation::seed_weigh, T>(add, masses.kind, masses.exponent);
        kept_ = masses;
        prepare();
    }
    // What a server says of changes of its masses, all of this sign. prepare() before the next draw.
    void apply(const cpu::Changes &changes, int sign)
    {
        require_shape(changes.buckets.size() == changes.differences.size());
        for (std::size_t i = 0; i < changes.buckets.size(); ++i) {
            require_shape(changes.buckets[i] < sums_.size() && (changes.differences[i] < 0) == (sign < 0));
            sums_[changes.buckets[i]] += changes.differences[i];
        }
    }
    void prepare()
    {
        UInt128 end = 0;
        for (std::size_t b = 0; b < sums_.size(); ++b) {
            if (sums_[b] < 0)
                raise_masses();
            ends_[b] = end += static_cast<UInt128>(sums_[b]);
        }
    }
    // Masses have changed otherwise.
    void forget() { kept_.reset(); }

    UInt128 total() const { return ends_.back(); }
    // Of cpu::Mass::apart, before a row is chosen: whether some differ.
    bool masses_differ() const
    {
        require_shape(std::isfinite(largest_));
        const UInt128 most = drawn_mass(largest_, power_of_two(kept_->exponent));
        return total() != most * static_cast<std::uint64_t>(nodes_.n());
    }

    // The contents of the first rows in canonical order whose running sums pass these targets, of which each lies
    // below the total; the last row's where that is 0.
    std::vector<Content> find(std::vector<UInt128> targets)
    {
        if (total() == 0) {
            weigh({cpu::Mass::one, 0});
            std::fill(targets.begin(), targets.end(), total() - 1);
        }
        std::vector<std::uint64_t> buckets;
        for (UInt128 &target : targets) {
            const auto b =
                static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), target) - ends_.begin());
            buckets.push_back(b);
            target -= b == 0 ? 0 : ends_[b - 1];
        }
        const double rows = static_cast<double>(nodes_.n()) / static_cast<double>(sums_.size());
        const double row_bytes = static_cast<double>(d_ * sizeof(T) + sizeof(std::uint64_t) + sizeof(PgkmInt128));
        const bool whole = rows * row_bytes * static_cast<double>(targets.size()) <= most_bucket_bytes;
        std::vector<KeyedContent> found = pass_in(bits_, whole, buckets, targets);
        if (!whole) {
            std::transform(found.begin(), found.end(), buckets.begin(), [](const auto &one) { return one.first; });
            found = pass_in(64, true, buckets, targets);
        }
        std::vector<Content> contents;
        for (KeyedContent &one : found)
            contents.push_back(std::move(one.second));
        return contents;
    }

  private:
    // A server has told others than before: which one is not known, since those of all are kept as one.
    [[noreturn]] static void raise_masses() { throw Error(PGKM_INVALID, "masses of nodes do not add up"); }

    static std::vector<std::uint64_t> distinct(std::vector<std::uint64_t> values)
    {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        return values;
    }

    static std::size_t place_in(const std::vector<std::uint64_t> &wanted, std::uint64_t bucket)
    {
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), bucket);
        require_shape(at != wanted.end() && *at == bucket);
        return static_cast<std::size_t>(at - wanted.begin());
    }

    // The first entry in order whose running sum passes `left`, which is lowered by those before it.
    static const KeyedContent &pass(const std::map<KeyedContent, UInt128, ContentOrder> &masses, UInt128 &left)
    {
        for (const auto &[content, mass] : masses) {
            if (left < mass)
                return content;
            left -= mass;
        }
        raise_masses();
    }

    // Which content in its bucket, of so many bits, each passes; or which key, with no values.
    std::vector<KeyedContent> pass_in(std::int32_t bits, bool with_values, const std::vector<std::uint64_t> &buckets,
                                      std::vector<UInt128> &left)
    {
        const std::vector<std::uint64_t> wanted = distinct(buckets);
        const std::size_t d = with_values ? d_ : 0;
        std::vector<std::map<KeyedContent, UInt128, ContentOrder>> found(wanted.size());
        const auto merge = [&](const cpu::Runs<T> &own) {
            require_shape(own.masses.size() == own.keys.size() && own.values.size() == own.keys.size() * d);
            check_values(own.values.data(), own.values.size());
            for (std::size_t i = 0; i < own.keys.size(); ++i) {
                const auto from = own.values.begin() + static_cast<std::ptrdiff_t>(i * d);
                found[place_in(wanted, cpu::bucket_of(own.keys[i], bits))]
                     [{own.keys[i], Content(from, from + static_cast<std::ptrdiff_t>(d))}] +=
                    join_unsigned(own.masses[i]);
            }
        };
        nodes_.ask<Operation::seed_runs, T>(merge, bits, static_cast<std::uint8_t>(with_values), wanted);
        std::vector<KeyedContent> passed;
        for (std::size_t i = 0; i < buckets.size(); ++i)
            passed.push_back(pass(found[place_in(wanted, buckets[i])], left[i]));
        return passed;
    }

    NodeSet &nodes_;
    std::size_t d_;
    std::int32_t bits_;
    std::optional<Masses> kept_; // what is summed
    std::vector<Int128> sums_;   // by bucket, of all servers
    std::vector<UInt128> ends_;  // prefix sums
    double largest_ = 0.0;       // weight, where masses are weights
};

} // namespace pgkm::nodes

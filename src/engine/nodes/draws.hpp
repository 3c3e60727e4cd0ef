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

#include "backend/update.hpp"
#include "engine/nodes/node_set.hpp"
#include "engine/nodes/share_seed.hpp"
#include "numeric/philox.hpp"
#include "numeric/platform.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::nodes {

// The integers by which rows are drawn.
struct Masses {
    Mass kind;
    std::int32_t exponent;
    bool operator==(const Masses &) const = default;
};

// A step of k-means++ asks for the contents of whole buckets at once where these are no more bytes than this.
inline constexpr double most_bucket_bytes = 1 << 20;

// Of a mass or a gain, which another server has told.
inline UInt128 join_unsigned(PgkmInt128 value)
{
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
        Writer request(Operation::seed_begin);
        request.put(bits);
        nodes_.ask(request);
    }

    // Sums these masses, unless that is what apply() has kept.
    void weigh(const Masses &masses)
    {
        if (kept_ == masses)
            return;
        Writer request(Operation::seed_sums);
        request.put(masses.kind);
        request.put(masses.exponent);
        std::fill(sums_.begin(), sums_.end(), 0);
        nodes_.ask(request, [&](Reader &reply) { apply(reply); });
        kept_ = masses;
        prepare();
    }
    // What a server says of changes of its masses. prepare() before the next draw.
    void apply(Reader &reply)
    {
        apply_as<std::int64_t>(reply);
        apply_as<PgkmInt128>(reply);
    }
    void prepare()
    {
        UInt128 end = 0;
        for (std::size_t b = 0; b < sums_.size(); ++b) {
            require_shape(sums_[b] >= 0);
            ends_[b] = end += static_cast<UInt128>(sums_[b]);
        }
    }
    // Masses have changed otherwise.
    void forget() { kept_.reset(); }

    UInt128 total() const { return ends_.back(); }

    // The contents of the first rows in canonical order whose running sums pass these targets, of which each lies
    // below the total; the last row's where that is 0.
    std::vector<Content> find(const std::vector<UInt128> &targets)
    {
        if (total() == 0)
            return std::vector<Content>(targets.size(), last());
        std::vector<std::uint64_t> buckets;
        std::vector<UInt128> left;
        for (const UInt128 target : targets) {
            const auto b =
                static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), target) - ends_.begin());
            buckets.push_back(b);
            left.push_back(target - (b == 0 ? 0 : ends_[b - 1]));
        }
        const double rows = static_cast<double>(nodes_.n()) / static_cast<double>(sums_.size());
        const double row_bytes = static_cast<double>(d_ * sizeof(T) + sizeof(std::uint64_t) + sizeof(PgkmInt128));
        if (rows * row_bytes * static_cast<double>(targets.size()) <= most_bucket_bytes)
            return rows_of(bits_, buckets, left);
        return rows_of(64, keys_of(buckets, left), left);
    }

  private:
    static Int128 wide(std::int64_t value) { return value; }
    static Int128 wide(PgkmInt128 value) { return join(value); }

    template <typename Integer>
    void apply_as(Reader &reply)
    {
        const std::vector<std::uint32_t> buckets = reply.get_all<std::uint32_t>();
        const std::vector<Integer> differences = reply.get_all<Integer>(buckets.size());
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            if (buckets[i] >= sums_.size())
                raise_shape();
            sums_[buckets[i]] += wide(differences[i]);
        }
    }

    template <typename Value>
    static std::vector<Value> distinct(std::vector<Value> values)
    {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        return values;
    }

    // The first entry in order whose running sum passes `left`, which is lowered by those before it.
    template <typename Key, typename Order>
    static const Key &pass(const std::map<Key, UInt128, Order> &masses, UInt128 &left)
    {
        for (const auto &[key, mass] : masses) {
            if (left < mass)
                return key;
            left -= mass;
        }
        throw Error(PGKM_INVALID, "masses of nodes do not add up"); // one of them has told others than before
    }

    // How many keys each bucket has, of so many.
    static void check_counts(const std::vector<std::uint64_t> &counts, std::size_t keys)
    {
        for (const std::uint64_t count : counts) {
            require_shape(count <= keys);
            keys -= static_cast<std::size_t>(count);
        }
        require_shape(keys == 0);
    }

    std::vector<std::uint64_t> keys_of(const std::vector<std::uint64_t> &buckets, std::vector<UInt128> &left)
    {
        const std::vector<std::uint64_t> wanted = distinct(buckets);
        Writer request(Operation::seed_keys);
        request.put(wanted);
        std::vector<std::map<std::uint64_t, UInt128, std::less<>>> found(wanted.size());
        nodes_.ask(request, [&](Reader &reply) {
            const std::vector<std::uint64_t> counts = reply.get_all<std::uint64_t>(wanted.size());
            const std::vector<std::uint64_t> keys = reply.get_all<std::uint64_t>();
            const std::vector<PgkmInt128> masses = reply.get_all<PgkmInt128>(keys.size());
            check_counts(counts, keys.size());
            std::size_t next = 0;
            for (std::size_t b = 0; b < wanted.size(); ++b)
                for (std::uint64_t i = 0; i < counts[b]; ++i, ++next)
                    found[b][keys[next]] += join_unsigned(masses[next]);
        });
        std::vector<std::uint64_t> keys;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            const auto b = std::lower_bound(wanted.begin(), wanted.end(), buckets[i]) - wanted.begin();
            keys.push_back(pass(found[static_cast<std::size_t>(b)], left[i]));
        }
        return keys;
    }

    // Of buckets of so many bits; of 64: behind keys.
    std::vector<Content> rows_of(std::int32_t bits, const std::vector<std::uint64_t> &buckets,
                                 std::vector<UInt128> &left)
    {
        const std::vector<std::uint64_t> wanted = distinct(buckets);
        Writer request(Operation::seed_rows);
        request.put(bits);
        request.put(wanted);
        std::vector<std::map<KeyedContent, UInt128, ContentOrder>> found(wanted.size());
        nodes_.ask(request, [&](Reader &reply) {
            const std::vector<std::uint64_t> counts = reply.get_all<std::uint64_t>(wanted.size());
            const std::vector<std::uint64_t> keys = reply.get_all<std::uint64_t>();
            const std::vector<PgkmInt128> masses = reply.get_all<PgkmInt128>(keys.size());
            check_counts(counts, keys.size());
            const std::vector<T> values = reply.get_all<T>(keys.size() * d_);
            check_values(values.data(), values.size());
            std::size_t next = 0;
            for (std::size_t b = 0; b < wanted.size(); ++b)
                for (std::uint64_t i = 0; i < counts[b]; ++i, ++next) {
                    const auto from = values.begin() + static_cast<std::ptrdiff_t>(next * d_);
                    found[b][{keys[next], Content(from, from + static_cast<std::ptrdiff_t>(d_))}] +=
                        join_unsigned(masses[next]);
                }
        });
        std::vector<Content> rows;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            const auto b = std::lower_bound(wanted.begin(), wanted.end(), buckets[i]) - wanted.begin();
            rows.push_back(pass(found[static_cast<std::size_t>(b)], left[i]).second);
        }
        return rows;
    }

    Content last()
    {
        std::uint64_t last_key = 0;
        Content last;
        nodes_.ask(Writer(Operation::seed_last), [&](Reader &reply) {
            const auto key = reply.get<std::uint64_t>();
            Content content = reply.get_all<T>(d_);
            check_values(content.data(), d_);
            if (last.empty() || key > last_key ||
                (key == last_key && compare_content(content.data(), last.data(), static_cast<int>(d_)) > 0)) {
                last_key = key;
                last = std::move(content);
            }
        });
        return last;
    }

    NodeSet &nodes_;
    std::size_t d_;
    std::int32_t bits_;
    std::optional<Masses> kept_; // what is summed
    std::vector<Int128> sums_;   // by bucket, of all servers
    std::vector<UInt128> ends_;  // prefix sums
};

} // namespace pgkm::nodes

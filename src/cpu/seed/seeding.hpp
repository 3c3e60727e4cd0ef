// seeding.hpp - some of the rows that are seeded, of which other servers have the rest: what is kept of them meanwhile,
// and what is asked of them: masses by key, draws' rows, distances to chosen rows. Which rows are chosen is decided
// where the answers of all servers meet (engine/nodes/seeder.hpp). So values are checked, and rows are told by content.
//
// The rows of a round of k-means||, and the trials of a device or of a chunk that is seen once, meet the backend's
// assign(). On a CPU trials meet tiles of rows, as on one server: rows that no trial can win are passed over.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/seed/key_masses.hpp"
#include "cpu/seed/sampler.hpp"
#include "cpu/seed/trials.hpp"
#include "numeric/contract.hpp"
#include "numeric/platform.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {

// By which integers rows are drawn.
enum class Mass : std::int32_t {
    one,    // each row counts 1
    weight, // its weight, quantised with the exponent
    square, // weight times squared distance to the nearest chosen row, quantised with the exponent
    apart   // of rows apart from the chosen ones the weight, quantised with the exponent, but at least 1
};

// The buckets whose sums have changed, and by how much: more than 64 bits hold comes in parts.
struct Changes {
    std::vector<std::uint32_t> buckets;
    std::vector<std::int64_t> differences;
    double largest = 0.0; // after a choice: weight times squared distance that is left; of Mass::apart: weight of all
    static void each(auto &self, auto &&body)
    {
        body(self.buckets);
        body(self.differences);
        body(self.largest);
    }
};

// The contents of all buckets that were asked for: their keys and masses, and values, unless keys are enough.
template <typename T>
struct Runs {
    std::vector<std::uint64_t> keys;
    std::vector<PgkmInt128> masses;
    std::vector<T> values;
    static void each(auto &self, auto &&body)
    {
        body(self.keys);
        body(self.masses);
        body(self.values);
    }
};

// It takes a good part of the memory that iterations have afterwards. Where these need it, it is given up, and the next
// restart makes it anew.
template <typename T>
class Seeding final : private Spare {
  public:
    // Distances of all rows to k others, by the backend that has them: assign() of all rows.
    using Assign = std::function<void(std::int32_t k, T *to, PgkmAssignment &wanted)>;
    // Throws where an answer may not have so many bytes.
    using Check = std::function<void(std::uint64_t bytes)>;

    // counts: the copies of each point, or NULL. context: of the CPU in this process, whichever backend serves the
    // points. Rows that are not ordered have no places, and no copies.
    Seeding(const PgkmPoints &points, const std::uint16_t *counts, std::shared_ptr<PgkmContext> context,
            std::int32_t bits, bool ordered, Check check_answer);
    ~Seeding();
    Seeding(const Seeding &) = delete;
    Seeding &operator=(const Seeding &) = delete;

    // Forgets the chosen rows.
    void begin();
    // Rows are seeded: only begin() comes next.
    void rest();
    bool is_at_rest() const { return is_at_rest_; }
    // Gives up what it has of the rows, which may go then. It is of use to go_on_from() alone, until the next begin().
    void leave_rows();
    bool was_given_up() const { return masses_ == nullptr; }
    std::int32_t bits() const { return bits_; }
    // Stands where the other one does, which has left the same rows in another form. serve_by() comes before.
    void go_on_from(const Seeding &other);

    // Sums the masses of all rows by bucket.
    Changes weigh(Mass kind, std::int32_t exponent);
    // Buckets of so many bits; 64: keys. They are asked for in order and once, so that no answer has more than all
    // rows.
    Runs<T> runs(std::int32_t bits, std::uint8_t with_values, const std::vector<std::uint64_t> &buckets);
    // The first of these rows is chosen row number `first`. The largest weight times squared distance that is left.
    double add(std::int32_t first, const std::vector<T> &values);
    // Bounds of what each of these trials would take from the potential; the same exactly, of the trials asked for.
    std::vector<GainBounds> gains(const std::vector<T> &values);
    std::vector<PgkmInt128> exact_gains(const std::vector<std::int32_t> &which);
    // A trial becomes a chosen row.
    Changes choose(std::int32_t best);
    std::vector<PgkmInt128> masses_of_chosen(std::int32_t count, std::int32_t exponent);

    // Of the request at hand. on_cpu: whether the backend is the context's.
    void serve_by(Assign assign, bool on_cpu)
    {
        assign_ = std::move(assign);
        on_cpu_ = on_cpu;
    }

  private:
    void give_up() override;
    void forget_trials()
    {
        trials_.reset();
        trial_rows_.clear();
    }
    template <typename Body>
    void with_mass(Body &&body) const;
    Changes take_changes();
    const T *row_at(std::int64_t place) const { return rows_.row(masses_->row_at(place)); }
    std::uint64_t key_at(std::int64_t place) const { return row_key(row_at(place), rows_.d); }
    std::int64_t run_end(std::int64_t place, std::int64_t end) const;
    UInt128 run_mass(std::int64_t place, std::int64_t end) const;
    // Of a row, if a row at this distance is chosen.
    std::uint64_t lost_mass(std::int64_t row, double square) const
    {
        const double own = nearest_[static_cast<std::size_t>(row)];
        return square < own ? rows_.mass(row, own, scale_) - rows_.mass(row, square, scale_) : 0;
    }
    template <typename Nearer>
    void meet(const std::vector<T> &values, std::int32_t first, Nearer &&nearer);
    std::vector<UInt128> gains_by_distances(const std::vector<T> &values);
    void group_trials();
    void add_chosen(const T *row);

    const std::shared_ptr<PgkmContext> context_;
    const BlockRunner runner_;
    const PgkmPoints points_;
    const SeedRows<T> rows_;
    const Check check_answer_;
    const std::int32_t bits_;
    Assign assign_;
    bool on_cpu_ = false;
    bool is_at_rest_ = false;
    Buffer<RowNumber> order_;
    std::unique_ptr<KeyMasses> masses_; // NULL when memory is given up

    Mass mass_ = Mass::one; // by which rows are drawn at the moment, and its scale
    double scale_ = 1.0;
    Buffer<double> nearest_;
    Buffer<std::int32_t> labels_;        // which chosen row is nearest
    std::deque<std::vector<T>> chosen_;  // their contents
    std::vector<const T *> chosen_rows_; // the same
    // Trials of the current step, their gains where these are known exactly, and what passes rows over; NULL when
    // distances have changed otherwise.
    std::vector<T> trial_rows_;
    std::vector<UInt128> trial_gains_;
    std::unique_ptr<SeedTrials<T>> trials_;
};

} // namespace pgkm::cpu

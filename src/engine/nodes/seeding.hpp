// seeding.hpp - what a server keeps of its rows while they are seeded: their order, masses by key, distances to chosen
// rows, and the trials of the current step.
//
// It works as the CPU's sampler does on one server (cpu/seed): rows that no trial can win are passed over.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "cpu/seed/trials.hpp"
#include "engine/nodes/key_masses.hpp"
#include "engine/nodes/share_seed.hpp"
#include "numeric/contract.hpp"
#include "numeric/platform.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::nodes {

template <typename T>
struct Seeding {
    // open: of the backend that serves the points, which may be another one; its host lasts as long as this. Rows that
    // are not ordered have no places.
    Seeding(const PgkmPoints &points, const PgkmOpen &open, std::int32_t bits, bool ordered = true);

    // Forgets the chosen rows.
    void begin();

    // Calls body(mass) where mass(row) is the integer by which rows are drawn at the moment.
    template <typename Body>
    void with_mass(Body &&body) const
    {
        switch (mass) {
        case Mass::one:
            return body([](std::int64_t) { return std::uint64_t{1}; });
        case Mass::weight:
            return body(
                [&](std::int64_t row) { return static_cast<std::uint64_t>(quantise(rows.weights[row], scale)); });
        case Mass::square:
            return body([&](std::int64_t row) {
                return static_cast<std::uint64_t>(
                    quantise_mass(rows.weight(row) * nearest[static_cast<std::size_t>(row)], scale));
            });
        }
    }

    // Sums the masses of all rows by bucket.
    void weigh(Mass kind, std::int32_t exponent);

    const T *row_at(std::int64_t place) const { return rows.row(masses.row_at(place)); }
    std::uint64_t key_at(std::int64_t place) const { return row_key(row_at(place), rows.d); }
    // The place behind the rows that equal that of `place`, up to `end`; and the mass of these rows.
    std::int64_t run_end(std::int64_t place, std::int64_t end) const;
    UInt128 run_mass(std::int64_t place, std::int64_t end) const;

    // The largest weight times squared distance to the nearest chosen row.
    double largest() const;

    cpu::Context context;
    const cpu::BlockRunner runner;
    const cpu::SeedRows<T> rows;
    const cpu::Buffer<cpu::RowNumber> order;
    KeyMasses masses;
    Mass mass = Mass::one; // which these are, and their scale
    double scale = 1.0;
    cpu::Buffer<double> nearest;
    cpu::Buffer<std::int32_t> labels;   // which chosen row is nearest
    std::deque<std::vector<T>> chosen;  // their contents
    std::vector<const T *> chosen_rows; // the same
    // Trials of the current step, their gains where these are known exactly, and what passes rows over; NULL when
    // distances have changed otherwise.
    std::vector<T> trial_rows;
    std::vector<UInt128> trial_gains;
    std::unique_ptr<cpu::SeedTrials<T>> trials;

    // Makes `trials`, unless there are some.
    void make_trials();
    void forget_trials()
    {
        trials.reset();
        trial_rows.clear();
    }
    std::int32_t n_trials() const { return static_cast<std::int32_t>(trial_rows.size()) / rows.d; }
    void choose(std::vector<T> row)
    {
        chosen.push_back(std::move(row));
        chosen_rows.push_back(chosen.back().data());
    }
};

} // namespace pgkm::nodes

// sampler.hpp - D^2 sampling over the rows of one problem, or over the candidates of k-means||; and draws by weight.
//
// Per row it keeps the squared distance to the nearest chosen row and which that is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/encode/encoded.hpp"
#include "cpu/seed/masses.hpp"

namespace pgkm::cpu {

// The random numbers of a sampler: rows and k-means|| candidates must not share them.
struct SeedStreams {
    Stream first;
    Stream trial;
};

// Masses by which the first row is drawn: given ones, or the rows' weights quantised.
struct FirstMasses {
    const std::int64_t *given; // n, or NULL
    double weight_scale;       // of quantise(); unused without weights
};

// The largest weight times squared distance to the nearest chosen row.
template <typename T>
double largest_square(const BlockRunner &runner, const SeedRows<T> &rows, const double *nearest);

// What the rows of a problem weigh, with their copies (counts, or NULL), in integers of its exponent, by the chosen row
// that is nearest to them.
std::vector<Int128> masses_by_label(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                                    const std::int32_t *labels, std::size_t count,
                                    const std::uint16_t *counts = nullptr);

// Weighted k-means++ among the candidates of k-means|| (values), of which each weighs as much as the rows nearest to it
// (totals: integers): up to k of them, by number.
template <typename T>
std::vector<std::int64_t> choose_among(const BlockRunner &runner, const T *values, std::int32_t d,
                                       const std::vector<Int128> &totals, std::int32_t k, const PgkmSeedParams &params);

template <typename T>
class SeedSampler {
  public:
    // order: the rows in canonical order, or NULL where that is their own.
    SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const RowNumber *order, const FirstMasses &masses,
                const PgkmSeedParams &params, SeedStreams streams);

    // Draws the first row by mass and chooses it.
    void choose_first();

    // Greedy k-means++ until k rows are chosen or none lies apart.
    void extend(std::int32_t k);

    // Draws the rows of a round of k-means||, in the order of the draws, each content once. None when no row lies
    // apart.
    std::vector<std::int64_t> draw_round(std::uint32_t round, std::int32_t k);
    // The same of draws by weight: rows that lie apart from the chosen ones, if any. Weights are not NULL.
    std::vector<std::int64_t> draw_by_weight(std::uint32_t round, std::int64_t draws);
    // Adds rows to the chosen ones. The caller has brought nearest() and labels() to them.
    void add(const std::vector<std::int64_t> &rows);
    // Centroids that go before all chosen rows, which the caller has brought nearest() to, too. They stay the caller's.
    void keep(const T *values, std::int32_t count);

    // With those that are kept.
    std::int64_t count() const { return static_cast<std::int64_t>(kept_.size() + chosen_.size()); }
    const std::vector<std::int64_t> &chosen() const { return chosen_; }
    // Per row the squared distance to the nearest chosen row, and its index in chosen(), behind those that are kept.
    double *nearest() { return nearest_.data(); }
    std::int32_t *labels() { return labels_.data(); }

  private:
    std::uint64_t draw_bits(Stream stream, std::uint32_t round, std::uint64_t index) const
    {
        return draw(params_.seed, params_.restart, stream, round, index);
    }
    std::int64_t first_mass(std::int64_t row) const;
    std::shared_ptr<const Projection<T>> projection(EncodedRows<T> &encoded, const Rows<T> &all) const;
    void extend_by_filters(std::int32_t k);
    template <typename Trials, typename... More>
    void extend_by(std::int32_t k, More &&...more);
    template <typename Trials>
    void extend_with(std::int32_t k, Trials &trials);
    std::uint64_t mass(std::int64_t row) const { return rows_.mass(row, nearest_[row], scale_); }
    bool weigh(double largest);
    template <typename Mass>
    std::vector<std::int64_t> draw_contents(Stream stream, std::uint32_t round, std::int64_t draws, Mass &&mass) const;

    const BlockRunner &runner_;
    SeedRows<T> rows_;
    FirstMasses first_masses_;
    PgkmSeedParams params_;
    SeedStreams streams_;
    Buffer<double> nearest_;
    Buffer<std::int32_t> labels_;
    SeedMasses masses_;
    std::vector<const T *> kept_;
    std::vector<std::int64_t> chosen_;
    double scale_ = 0.0; // of the sampling integers; 0: the sums are stale
};

} // namespace pgkm::cpu

// seeded_rows.hpp - rows that a backend has loaded, and first centroids among them.
#pragma once

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "numeric/contract.hpp"

namespace pgkm {

class SeededRows {
  public:
    SeededRows(const PgkmBackend *table, std::vector<double> rows, std::int32_t d, std::vector<double> weights = {},
               std::uint64_t limit = 0)
        : table_(table), rows_(std::move(rows)), weights_(std::move(weights)), d_(d)
    {
        PgkmOpen options = {};
        options.struct_size = sizeof options;
        options.threads = 1;
        options.memory_limit = limit;
        const PgkmPoints points = {rows_.data(), PGKM_FLOAT64, n(), d_, weights_.empty() ? nullptr : weights_.data()};
        EXPECT_EQ(table_->open(&options, &context_, &error_), PGKM_OK);
        EXPECT_EQ(table_->load(context_, &points, &data_, &error_), PGKM_OK);
        const auto [least, most] = std::minmax_element(rows_.begin(), rows_.end());
        scales_.assign(static_cast<std::size_t>(d_), sum_scale(*least, *most, heaviest()));
    }
    ~SeededRows()
    {
        table_->unload(data_);
        table_->close(context_);
    }
    SeededRows(const SeededRows &) = delete;

    std::int64_t n() const { return static_cast<std::int64_t>(rows_.size()) / d_; }

    // The chosen centroids: as many as were found, none where it failed.
    std::vector<double> seed_or_none(std::int32_t k, PgkmInit init, std::uint64_t seed)
    {
        std::vector<double> centroids(static_cast<std::size_t>(k) * static_cast<std::size_t>(d_));
        PgkmProblem one = problem(centroids);
        const PgkmSeedParams params = {init, seed, 0, 0};
        status = table_->seed(data_, &one, 1, &params, &error_);
        centroids.resize(static_cast<std::size_t>(one.k) * static_cast<std::size_t>(d_));
        return centroids;
    }
    std::vector<double> seed(std::int32_t k, PgkmInit init, std::uint64_t seed)
    {
        std::vector<double> centroids = seed_or_none(k, init, seed);
        EXPECT_EQ(status, PGKM_OK) << error_.text;
        return centroids;
    }

    PgkmStatus status = PGKM_OK; // of the last one

  protected:
    PgkmProblem problem(std::vector<double> &centroids) const
    {
        PgkmProblem result = {};
        result.n_rows = n();
        result.k = static_cast<std::int32_t>(centroids.size()) / d_;
        result.centroids = centroids.data();
        result.feature_scales = scales_.data();
        if (!weights_.empty())
            result.weight_exponent = scale_exponent(heaviest());
        return result;
    }

    const PgkmBackend *table_;
    PgkmData *data_ = nullptr;
    PgkmError error_ = {};

  private:
    double heaviest() const { return weights_.empty() ? 1.0 : *std::max_element(weights_.begin(), weights_.end()); }

    std::vector<double> rows_, weights_;
    std::int32_t d_;
    std::vector<PgkmFeatureScale> scales_;
    PgkmContext *context_ = nullptr;
};

} // namespace pgkm

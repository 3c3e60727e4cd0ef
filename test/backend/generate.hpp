// generate.hpp - rows of numbers for the cases, as float64; the element type comes later.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace conformance {

using Rows = std::vector<double>;

class Generator {
  public:
    explicit Generator(std::uint64_t seed) : engine_(seed) {}

    double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
    double normal() { return std::normal_distribution<double>()(engine_); }
    std::int64_t below(std::int64_t bound)
    {
        return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(engine_);
    }

    // Gaussian blobs around `centers` points of the unit cube; they overlap, as real data do.
    Rows blobs(std::int64_t n, std::int32_t d, std::int64_t centers, double spread = 0.1)
    {
        Rows middle;
        for (std::int64_t i = 0; i < centers * d; ++i)
            middle.push_back(uniform(-1.0, 1.0));
        Rows rows;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t center = below(centers);
            for (std::int32_t f = 0; f < d; ++f)
                rows.push_back(middle[static_cast<std::size_t>(center * d + f)] + spread * normal());
        }
        return rows;
    }

    // Points near a space of few dimensions: their images are short.
    Rows near_subspace(std::int64_t n, std::int32_t d, std::int32_t dimensions)
    {
        Rows axes, rows;
        for (std::int32_t i = 0; i < dimensions * d; ++i)
            axes.push_back(normal());
        for (std::int64_t i = 0; i < n; ++i) {
            rows.resize(rows.size() + static_cast<std::size_t>(d));
            double *row = rows.data() + i * d;
            for (std::int32_t a = 0; a < dimensions; ++a) {
                const double along = normal();
                for (std::int32_t f = 0; f < d; ++f)
                    row[f] += along * axes[static_cast<std::size_t>(a * d + f)];
            }
            for (std::int32_t f = 0; f < d; ++f)
                row[f] += 0.2 * normal();
        }
        return rows;
    }

    // Features far from 0 beside their range, of either sign, between ordinary and constant ones.
    Rows far_from_zero(std::int64_t n, std::int32_t d, double offset)
    {
        Rows rows = blobs(n, d, 8, 0.2);
        for (std::size_t i = 0; i < rows.size(); ++i)
            switch (i % static_cast<std::size_t>(d) % 5) {
            case 0:
                rows[i] = offset + 16.0 * rows[i];
                break;
            case 1:
                rows[i] = -3.0 * offset + 16.0 * rows[i];
                break;
            case 2:
                rows[i] = 0.1;
                break;
            case 3: // x and 2 x are in the range, and so is what lies at its ends
                rows[i] = std::clamp(1.5 + rows[i], 1.0, 2.0);
                break;
            default:
                break;
            }
        return rows;
    }

    // Points of a coarse integer grid: many duplicates, many exact ties.
    Rows grid(std::int64_t n, std::int32_t d, std::int64_t side)
    {
        Rows rows;
        for (std::int64_t i = 0; i < n * d; ++i)
            rows.push_back(static_cast<double>(below(side)));
        return rows;
    }

    // `texts` features of 12 levels, of which each is a column of 0 and 1, behind the numbers of each row.
    Rows levels_beside(const Rows &numbers, std::int64_t n, std::int64_t texts)
    {
        const auto width = static_cast<std::ptrdiff_t>(numbers.size()) / n;
        Rows rows;
        for (std::int64_t i = 0; i < n; ++i) {
            rows.insert(rows.end(), numbers.begin() + i * width, numbers.begin() + (i + 1) * width);
            for (std::int64_t text = 0; text < texts; ++text) {
                rows.resize(rows.size() + 12);
                rows[rows.size() - 1 - static_cast<std::size_t>(below(12))] = 1.0;
            }
        }
        return rows;
    }

    // 10^low .. 10^high, evenly in the logarithm, both signs.
    double log_uniform(double low, double high)
    {
        const double magnitude = std::pow(10.0, uniform(low, high));
        return below(2) == 0 ? magnitude : -magnitude;
    }

    Rows weights(std::int64_t n, double low, double high)
    {
        Rows result;
        for (std::int64_t i = 0; i < n; ++i)
            result.push_back(std::fabs(log_uniform(low, high)));
        return result;
    }

  private:
    std::mt19937_64 engine_;
};

inline Rows shifted(Rows rows, double factor, double offset)
{
    for (double &value : rows)
        value = value * factor + offset;
    return rows;
}

} // namespace conformance

// draws.hpp - generated rows, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

using Values = std::vector<double>;

// The same numbers as in bench/seeding_quality.py, which sums and multiplies in the same order.
class Draws {
  public:
    explicit Draws(std::uint64_t seed) : state_(seed) {}

    double uniform()
    {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }
    double normal()
    {
        double sum = 0.0;
        for (int i = 0; i < 12; ++i)
            sum += uniform();
        return sum - 6.0;
    }
    // shares: where the next centre begins; empty: all alike.
    Values clouds(std::int64_t n, std::int32_t d, std::int32_t centres, double apart, const Values &shares = {})
    {
        Values middle, rows;
        for (std::int32_t i = 0; i < centres * d; ++i)
            middle.push_back(apart * normal());
        for (std::int64_t i = 0; i < n; ++i) {
            const double u = uniform();
            auto which = static_cast<std::size_t>(u * centres);
            if (!shares.empty()) {
                which = 0;
                while (which < shares.size() && u >= shares[which])
                    ++which;
            }
            for (std::size_t f = 0; f < static_cast<std::size_t>(d); ++f)
                rows.push_back(middle[which * static_cast<std::size_t>(d) + f] + normal());
        }
        return rows;
    }
    template <typename Make>
    Values fill(std::size_t count, Make &&make)
    {
        Values rows;
        for (std::size_t i = 0; i < count; ++i)
            rows.push_back(make(*this));
        return rows;
    }

  private:
    std::uint64_t state_;
};

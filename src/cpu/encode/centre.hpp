// centre.hpp - a point near the middle of rows, and how far they are from it, by a sample that lies evenly among them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cpu/rows.hpp"

namespace pgkm::cpu {

// Any is right for bounds; these make them tight.
template <typename T>
struct Centre {
    explicit Centre(const Rows<T> &rows) : middle(rows.context.budget, rows.d)
    {
        constexpr std::int64_t most = 256;
        const std::int64_t count = std::min(rows.n, most), d = rows.d;
        std::vector<double> sum(d, 0.0);
        const auto row = [&](std::int64_t i) { return rows.row(i * rows.n / count); };
        for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t f = 0; f < d; ++f)
                sum[f] += static_cast<double>(row(i)[f]);
        for (std::int64_t f = 0; f < d; ++f)
            middle[f] = static_cast<T>(sum[f] / static_cast<double>(count));
        double longest = 0.0;
        for (std::int64_t i = 0; i < count; ++i) {
            double square = 0.0;
            for (std::int64_t f = 0; f < d; ++f) {
                const double value = static_cast<double>(row(i)[f]) - static_cast<double>(middle[f]);
                square += value * value;
            }
            longest = std::max(longest, square);
        }
        length = std::sqrt(longest);
    }

    Buffer<T> middle;
    double length; // of the longest of the sample
};

} // namespace pgkm::cpu

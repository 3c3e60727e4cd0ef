// compare.hpp - equality without tolerance, saying where two results part.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "results.hpp"

namespace conformance {

inline bool operator==(const PgkmInt128 &a, const PgkmInt128 &b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

inline std::string shown(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g (%a)", value, value);
    return text;
}
inline std::string shown(std::int32_t value)
{
    return std::to_string(value);
}
inline std::string shown(std::int64_t value)
{
    return std::to_string(value);
}
inline std::string shown(const PgkmInt128 &value)
{
    char text[48];
    std::snprintf(text, sizeof text, "0x%016llx%016llx", static_cast<unsigned long long>(value.hi),
                  static_cast<unsigned long long>(value.lo));
    return text;
}

template <typename T>
testing::AssertionResult same(const std::vector<T> &expected, const std::vector<T> &actual)
{
    if (expected.size() != actual.size())
        return testing::AssertionFailure() << expected.size() << " expected, " << actual.size() << " there";
    std::size_t differing = 0, first = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(expected[i] == actual[i]) && differing++ == 0)
            first = i;
    if (differing == 0)
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << differing << " of " << expected.size() << " differ, the first at " << first
                                       << ": expected " << shown(expected[first]) << ", got " << shown(actual[first]);
}

// The centroids of one group, byte for byte.
inline testing::AssertionResult same_centroids(const Problems &expected, const Problems &actual, std::size_t group)
{
    const PgkmProblem &a = expected.list[group], &b = actual.list[group];
    if (a.k != b.k)
        return testing::AssertionFailure() << "k: expected " << a.k << ", got " << b.k;
    const std::size_t bytes = expected.centroid_bytes(group);
    if (std::memcmp(a.centroids, b.centroids, bytes) == 0)
        return testing::AssertionSuccess();
    const bool narrow = expected.data->element == PGKM_FLOAT32;
    const std::size_t size = expected.data->element_size();
    for (std::size_t i = 0;; ++i) {
        const auto *x = static_cast<const std::byte *>(a.centroids) + i * size;
        const auto *y = static_cast<const std::byte *>(b.centroids) + i * size;
        if (std::memcmp(x, y, size) == 0)
            continue;
        const auto value = [narrow](const std::byte *at) {
            return narrow ? static_cast<double>(*reinterpret_cast<const float *>(at))
                          : *reinterpret_cast<const double *>(at);
        };
        return testing::AssertionFailure() << "centroid " << i / static_cast<std::size_t>(expected.data->d)
                                           << " feature " << i % static_cast<std::size_t>(expected.data->d)
                                           << ": expected " << shown(value(x)) << ", got " << shown(value(y));
    }
}

// A forced strategy of a device may not serve every shape, but then it must say so.
#define PGKM_REQUIRE_OK(status, session, subject)                       \
    do {                                                                \
        const PgkmStatus pgkm_status = (status);                        \
        if (pgkm_status == PGKM_UNSUPPORTED && (subject).device >= 0) { \
            ASSERT_STRNE((session).error.text, "");                     \
            GTEST_SKIP() << (session).error.text;                       \
        }                                                               \
        ASSERT_EQ(pgkm_status, PGKM_OK) << (session).error.text;        \
    } while (false)

} // namespace conformance

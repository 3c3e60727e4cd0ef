// copy_test.cpp - large copies: all bytes, and no others, whatever the size and the alignment.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/api.h"

namespace {

// Different at any two places that are not 2^32 bytes apart or a multiple of 251.
unsigned char byte_at(std::size_t i)
{
    return static_cast<unsigned char>((i * 2654435761u >> 16) % 251 + 1);
}

void expect_copied(std::size_t bytes, std::size_t to, std::size_t from)
{
    constexpr std::size_t margin = 64;
    std::vector<unsigned char> source(bytes + from);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = byte_at(i);
    std::vector<unsigned char> target(margin + to + bytes + margin, 0);
    pgkm_copy(target.data() + margin + to, source.data() + from, bytes);
    const auto begin = target.begin() + static_cast<std::ptrdiff_t>(margin + to);
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    EXPECT_TRUE(std::equal(begin, end, source.begin() + static_cast<std::ptrdiff_t>(from))) << bytes << " bytes";
    EXPECT_EQ(std::count(target.begin(), begin, 0), begin - target.begin()) << bytes << " bytes";
    EXPECT_EQ(std::count(end, target.end(), 0), target.end() - end) << bytes << " bytes";
}

TEST(Copy, Small)
{
    for (const std::size_t bytes : {0, 1, 7, 4096, 100000})
        expect_copied(bytes, 3, 5);
}

TEST(Copy, BySeveralThreads)
{
    constexpr std::size_t mb = std::size_t{1} << 20;
    for (const std::size_t bytes : {4 * mb - 1, 4 * mb, 4 * mb + 1, 8 * mb, 37 * mb + 12345})
        for (const std::size_t to : {0, 1, 4095})
            expect_copied(bytes, to, 3 * to);
}

} // namespace

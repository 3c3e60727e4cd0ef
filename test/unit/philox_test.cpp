// The random numbers: published vectors, and draws that use them well.
#include "numeric/philox.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace pgkm {
namespace {

void expect_block(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1, PhiloxBlock expected)
{
    const PhiloxBlock block = philox4x32_10(counter, key0, key1);
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(block.word[i], expected.word[i]) << "word " << i;
}

// kat_vectors of Random123 (Salmon et al.).
TEST(Philox, KnownAnswers)
{
    expect_block({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    expect_block({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff,
                 {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    expect_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
                 {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, EveryPartOfTheKeyMatters)
{
    std::set<std::uint64_t> seen;
    int draws = 0;
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32})
        for (const std::uint32_t restart : {0u, 1u})
            for (const Stream stream : {Stream::random_rows, Stream::first_centroid, Stream::trial, Stream::oversample,
                                        Stream::candidate_first, Stream::candidate_trial})
                for (const std::uint32_t round : {0u, 1u, 4u})
                    for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
                        seen.insert(draw(seed, restart, stream, round, index));
                        ++draws;
                    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(draws));
}

// Chi-squared over 256 bins of the highest and of the lowest bits: 255 degrees of freedom,
// 99.99 % of the samples of a uniform source lie between 172 and 348.
TEST(Philox, DrawsAreUniform)
{
    constexpr int draws = 1 << 18, bins = 256;
    std::vector<int> high(bins), low(bins);
    for (std::uint64_t i = 0; i < draws; ++i) {
        const std::uint64_t bits = draw(7, 0, Stream::trial, 0, i);
        ++high[bits >> 56];
        ++low[bits & 255];
    }
    for (const std::vector<int> &counts : {high, low}) {
        double chi_squared = 0.0;
        for (const int count : counts)
            chi_squared += (count - draws / bins) * static_cast<double>(count - draws / bins) / (draws / bins);
        EXPECT_GT(chi_squared, 172.0);
        EXPECT_LT(chi_squared, 348.0);
    }
}

TEST(ScaleDraw, StaysBelowTheBound)
{
    const std::uint64_t most = ~std::uint64_t{0};
    for (const UInt128 bound : {UInt128{1}, UInt128{2}, UInt128{1000003}, UInt128{most}, UInt128{1} << 64,
                                (UInt128{1} << 100) + 12345, UInt128{1} << 126}) {
        EXPECT_TRUE(scale_draw(0, bound) == 0);
        EXPECT_TRUE(scale_draw(most, bound) < bound);
        // The last draw reaches the last 2^-64 of the range.
        EXPECT_TRUE(scale_draw(most, bound) >= bound - 1 - (bound >> 64));
    }
}

TEST(ScaleDraw, IsTheProductsUpperHalf)
{
    EXPECT_TRUE(scale_draw(std::uint64_t{1} << 63, 10) == 5);
    EXPECT_TRUE(scale_draw((std::uint64_t{1} << 63) - 1, 10) == 4);
    EXPECT_TRUE(scale_draw(std::uint64_t{1} << 62, UInt128{1} << 80) == UInt128{1} << 78);
    EXPECT_TRUE(scale_draw(3, (UInt128{1} << 66) + 7) == 12); // 3 * 2^66 / 2^64, and the 21 / 2^64 cut off
}

} // namespace
} // namespace pgkm

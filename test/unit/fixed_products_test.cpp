// The fixed products by which a device shows that its tensor cores keep the filters' bound, on adders of known
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#define __host__
#define __device__
#include "device/fixed_products.cuh"

namespace {

using pgkm::cuda::FixedProducts;

// The sum of a row and a column by an adder that cuts each addend at 2^-bits of the largest, towards zero.
float sum_of(const FixedProducts &set, int row, int column, int bits)
{
    double addends[17], most = 0.0, sum = 0.0;
    for (int i = 0; i < 17; ++i) {
        addends[i] = i < 16 ? double(set.left(row, i)) * double(set.right(column, i)) : double(set.start(row, column));
        most = std::max(most, std::abs(addends[i]));
    }
    const double unit = most == 0.0 ? 1.0 : std::ldexp(1.0, std::ilogb(most) - bits);
    for (const double addend : addends)
        sum += std::trunc(addend / unit) * unit;
    return static_cast<float>(sum);
}

int refused(int bits)
{
    int count = 0;
    for (unsigned number = 0; number < 32; ++number)
        for (int row = 0; row < 16; ++row)
            for (int column = 0; column < 8; ++column) {
                const FixedProducts set(number);
                count += set.allows(row, column, sum_of(set, row, column, bits)) ? 0 : 1;
            }
    return count;
}

TEST(FixedProducts, AllowWhatTheBoundDoes)
{
    EXPECT_EQ(refused(23), 0);
    EXPECT_EQ(refused(26), 0);
    EXPECT_EQ(refused(50), 0); // rounded once
}

TEST(FixedProducts, RefuseCoarserSums)
{
    EXPECT_GT(refused(20), 100);
    EXPECT_GT(refused(14), 1000);
    const FixedProducts set(0);
    EXPECT_FALSE(set.allows(0, 0, NAN));
}

} // namespace

// The steps of a search for paths by each instruction set, beside plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/sizes/path_kernels.hpp"

namespace pgkm::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Few values, so that many are equal, and infinities.
std::vector<double> draw(std::mt19937_64 &random, std::size_t count)
{
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(random() % 5 == 0 ? infinity : static_cast<double>(random() % 7) - 2.5);
    return values;
}

class PathKernelsOf : public ::testing::TestWithParam<int> {
  protected:
    void SetUp() override
    {
        if (!is_supported(set()))
            GTEST_SKIP() << "this processor does not have it";
    }
    static InstructionSet set() { return static_cast<InstructionSet>(GetParam()); }
};

TEST_P(PathKernelsOf, TakesSteps)
{
    std::mt19937_64 random(1);
    for (std::size_t count = 1; count < 60; ++count) {
        const std::vector<double> floors = draw(random, count), prices(count, 0.25);
        std::vector<double> distances = draw(random, count), open = distances;
        std::vector<std::int64_t> before(count, -1);
        std::vector<double> wanted = distances, wanted_open = open;
        std::vector<std::int64_t> wanted_before = before;
        const double so_far = 1.0, own = 0.5;
        for (std::size_t j = 0; j < count; ++j) {
            const double distance = so_far + std::max(0.0, floors[j] + prices[j] - own);
            if (distance < wanted[j]) {
                wanted[j] = wanted_open[j] = distance;
                wanted_before[j] = 77;
            }
        }
        path_kernels(set()).take_steps({static_cast<std::int32_t>(count), distances.data(), open.data(), before.data()},
                                       77, so_far, own, floors.data(), prices.data());
        EXPECT_EQ(distances, wanted) << count;
        EXPECT_EQ(open, wanted_open) << count;
        EXPECT_EQ(before, wanted_before) << count;
    }
}

TEST_P(PathKernelsOf, FindsTheFirstOfTheLeast)
{
    std::mt19937_64 random(2);
    for (std::size_t count = 1; count < 60; ++count)
        for (int repeat = 0; repeat < 10; ++repeat) {
            const std::vector<double> values = repeat == 0 ? std::vector<double>(count, infinity) : draw(random, count);
            EXPECT_EQ(path_kernels(set()).least_of(values.data(), static_cast<std::int32_t>(count)),
                      std::min_element(values.begin(), values.end()) - values.begin());
        }
}

INSTANTIATE_TEST_SUITE_P(Sets, PathKernelsOf, ::testing::Range(0, instruction_set_count));

} // namespace
} // namespace pgkm::cpu

// The CUDA plugin's choice of strategies is a pure function: no GPU is needed to test it.
#include <gtest/gtest.h>

#include "plan/bytes.hpp"
#include "plan/choose.hpp"
#include "mixture/slices.hpp"

namespace {

using namespace pgkm;
using namespace pgkm::cuda;

constexpr DeviceFacts hopper = {132, 90, 232448};
constexpr DeviceFacts ampere = {108, 80, 166912};
constexpr DeviceFacts small = {16, 75, 65536};

constexpr Shape shape(std::int64_t n, std::int32_t d, std::int32_t k)
{
    return {n, d, k, false, false};
}

TEST(Choose, LeavesNothingAutomatic)
{
    for (const DeviceFacts &device : {hopper, ampere, small})
        for (const std::int64_t n : {std::int64_t{1}, std::int64_t{100}, std::int64_t{10000}, std::int64_t{1} << 36})
            for (const std::int32_t d : {1, 2, 3, 16, 17, 41, 128, 1536, 20000})
                for (const std::int32_t k : {1, 2, 8, 64, 1024, 65536, 1 << 24})
                    for (const bool float64 : {false, true})
                        for (const bool weighted : {false, true}) {
                            const Plan plan = choose({n, d, k, float64, weighted}, device, {});
                            EXPECT_NE(plan.assignment, Assignment::automatic);
                            EXPECT_NE(plan.execution, Execution::automatic);
                            EXPECT_NE(plan.feature_sum, FeatureSum::automatic);
                            EXPECT_NE(plan.mass_sum, MassSum::automatic);
                        }
}

// A launch of an E step ends well before a cancel is due, at a third of what the device declares, and is no
// shorter than 5 ms at all of it; however slow its float64 is, and where blocks are few.
TEST(Choose, SlicesOfAnEmStepEndInTime)
{
    const double fast = float64_rate({132, 90, 0, 2}), slow = float64_rate({128, 89, 0, 64});
    EXPECT_EQ(fast, 132 * 64 * 1.5e9);
    EXPECT_EQ(slow, 128 * 2 * 1.5e9);
    EXPECT_EQ(float64_rate({108, 80, 0, 2}), 108 * 32 * 1.5e9);
    for (const double rate : {fast, slow})
        for (const double busy : {1.0, 4.0, 0.05}) {
            const double seconds = mixture::slice_products(rate, busy) / (rate * std::min(busy, 1.0));
            EXPECT_LT(3 * seconds, 0.05);
            EXPECT_GT(seconds, 0.005);
        }
    EXPECT_EQ(mixture::slice_rows(1e9, 1e3, 64), 1'000'000 / 64 * 64);
    EXPECT_EQ(mixture::slice_rows(1e3, 1e6, 64), 64); // a tile at least
}

TEST(Choose, KeepsWhatIsForced)
{
    Forced forced;
    forced.assignment = Assignment::generic_constant;
    forced.execution = Execution::cross_processing;
    forced.feature_sum = FeatureSum::ballot;
    forced.mass_sum = MassSum::partitioned_private;
    const Plan plan = choose(shape(1000, 4, 4), hopper, forced);
    EXPECT_EQ(plan.assignment, Assignment::generic_constant);
    EXPECT_EQ(plan.execution, Execution::cross_processing);
    EXPECT_EQ(plan.feature_sum, FeatureSum::ballot);
    EXPECT_EQ(plan.mass_sum, MassSum::partitioned_private);
}

// A forced stage that a fused kernel would pass over means stages apart.
TEST(Choose, ForcedStagesRunApart)
{
    Forced forced;
    forced.feature_sum = FeatureSum::sorted;
    EXPECT_EQ(choose(shape(1 << 20, 4, 16), hopper, forced).execution, Execution::multi_pass);
    EXPECT_EQ(choose(shape(1 << 20, 4, 16), hopper, {}).execution, Execution::single_pass);
}

// A forced execution that says how rows travel leaves the passes to the choice, or takes the stages apart.
TEST(Choose, RowsTravelAsForced)
{
    const Shape many = shape(1 << 20, 4, 16), wide = shape(1 << 20, 256, 4);
    const auto plan = [&](const Shape &of, Execution execution) {
        Forced forced;
        forced.execution = execution;
        return choose(of, hopper, forced);
    };
    EXPECT_EQ(choose(many, hopper, {}).travel, Travel::overlapped);
    EXPECT_EQ(plan(many, Execution::co_processing).travel, Travel::shared);
    EXPECT_EQ(plan(many, Execution::co_processing).execution, Execution::single_pass);
    EXPECT_EQ(plan(many, Execution::co_processing).moves, choose(many, hopper, {}).moves);
    EXPECT_EQ(plan(wide, Execution::co_processing).execution, Execution::multi_pass);
    EXPECT_EQ(plan(many, Execution::serial_chunks).travel, Travel::serial);
    EXPECT_EQ(plan(many, Execution::serial_chunks).execution, Execution::multi_pass);
    EXPECT_EQ(plan(many, Execution::round_trip).travel, Travel::round_trip);
    EXPECT_EQ(plan(many, Execution::round_trip).execution, Execution::multi_pass);
    EXPECT_EQ(plan(many, Execution::round_trip).moves, Moves::none);
}

TEST(Choose, FewFeaturesStayInRegisters)
{
    EXPECT_EQ(choose(shape(134217728, 4, 64), hopper, {}).assignment, Assignment::register_);
    EXPECT_EQ(choose({1000000, 8, 100, true, false}, hopper, {}).assignment, Assignment::register_);
    EXPECT_EQ(register_size(5), 6);
    EXPECT_EQ(register_size(16), 16);
    EXPECT_EQ(register_size(17), 0);
}

// The multiple of the multiprocessors that is nearest above 256.
TEST(Choose, SumsBecomeOneByMultiplesOfTheMultiprocessors)
{
    EXPECT_EQ(merge_fan_in(hopper), 264);
    EXPECT_EQ(merge_fan_in(ampere), 324);
    EXPECT_EQ(merge_fan_in(small), 256);
    EXPECT_EQ(merge_fan_in({300, 90, 232448}), 300);
}

TEST(Choose, TensorCoresWhereArithmeticIsTheLimit)
{
    EXPECT_EQ(choose(shape(1000000, 128, 1024), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(1000000, 128, 1024), ampere, {}).assignment, Assignment::tensor_core);
    EXPECT_NE(choose(shape(1000000, 128, 1024), small, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(1000000, 100, 32), hopper, {}).assignment, Assignment::tensor_core);
    // Few rows do not repay what is prepared, unless features and clusters are many.
    EXPECT_EQ(choose(shape(1000, 128, 1024), hopper, {}).assignment, Assignment::tiled);
    EXPECT_EQ(choose(shape(3000, 1536, 100), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(100, 128, 1024), hopper, {}).assignment, Assignment::generic);
}

// A device whose tensor cores do not keep the filters' bound has kernels that need none.
TEST(Choose, DoesWithoutProductsThatAreOff)
{
    DeviceFacts off = hopper, no_wgmma = hopper;
    off.mma = off.wgmma = no_wgmma.wgmma = false;
    for (const std::int32_t d : {4, 12, 16, 24, 64, 128, 2000, 5000})
        for (const std::int32_t k : {2, 10, 64, 300, 5000}) {
            const Plan plan = choose(shape(1000000, d, k), off, {});
            EXPECT_NE(plan.assignment, Assignment::tensor_core);
            EXPECT_NE(plan.moves, Moves::strips);
        }
    EXPECT_EQ(choose(shape(1000000, 128, 1024), no_wgmma, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(1000000, 5000, 1024), no_wgmma, {}).assignment, Assignment::tiled); // no tile of such rows
}

// What the environment leaves out is not chosen, and something else is.
TEST(Choose, TakesTheNextBestOfWhatIsLeftOut)
{
    const auto without = [](const char *names, const Shape &of) {
        DeviceFacts device = hopper;
        device.left_out = Mechanisms(names);
        return choose(of, device, {});
    };
    const Shape points = shape(1000000, 8, 100), wide = shape(1000000, 784, 10), middle = shape(1000000, 41, 64);
    EXPECT_EQ(without("", points).moves, Moves::leaves);
    EXPECT_EQ(without("leaves", points).moves, Moves::few);
    EXPECT_EQ(without("few,leaves", points).moves, Moves::sorted);
    EXPECT_EQ(without("few,leaves", points).assignment, Assignment::tensor_core);
    EXPECT_EQ(without("sorted,leaves,few,unknown", points).moves, Moves::none);
    EXPECT_EQ(without("", middle).moves, Moves::strips);
    EXPECT_EQ(without("strips", middle).moves, Moves::sorted);
    EXPECT_EQ(without("gaps,,held_rows", wide).assignment, Assignment::register_);
    EXPECT_EQ(without("wide", wide).assignment, Assignment::tensor_core);
    DeviceFacts device = hopper;
    EXPECT_TRUE(fits_narrow(16, 1000, device));
    device.left_out = Mechanisms("narrow");
    EXPECT_FALSE(fits_narrow(16, 1000, device));
}

// A fit's iterations whose sums follow the rows: float32, resident, labels and sums that fit.
TEST(Choose, SumsFollowTheRows)
{
    EXPECT_EQ(choose(shape(134217728, 4, 4), hopper, {}).moves, Moves::few);
    EXPECT_EQ(choose(shape(134217728, 4, 12), hopper, {}).moves, Moves::few);
    EXPECT_EQ(choose(shape(134217728, 4, 64), hopper, {}).moves, Moves::leaves);
    EXPECT_EQ(choose(shape(4000000, 2, 400), ampere, {}).moves, Moves::leaves);
    EXPECT_EQ(choose(shape(4000000, 12, 64), ampere, {}).moves, Moves::few);
    EXPECT_EQ(choose(shape(10000, 2, 400), ampere, {}).moves, Moves::few);
    EXPECT_EQ(choose(shape(1000000, 3, 10000), hopper, {}).moves, Moves::leaves);
    EXPECT_EQ(choose(shape(8388608, 64, 4), hopper, {}).moves, Moves::strips);
    EXPECT_EQ(choose(shape(51200, 34, 32), ampere, {}).moves, Moves::strips);
    EXPECT_EQ(choose(shape(8388608, 64, 4), hopper, {}).assignment, Assignment::tensor_core); // of labels alone
    EXPECT_EQ(choose(shape(1000000, 41, 64), hopper, {}).assignment, Assignment::tiled);
    EXPECT_EQ(choose({1000000, 41, 64, false, true}, hopper, {}).assignment, Assignment::tensor_core); // no strips
    EXPECT_EQ(choose(shape(1000000, 65, 20), hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(1000000, 4, 64), small, {}).moves, Moves::sorted); // no tensor cores of that kind
    // Assignment and sums by themselves.
    EXPECT_EQ(choose(shape(1000000, 128, 1024), hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(1000000, 2, most_leaves_k + 1), hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(1000000, 784, 10), hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose({1000000, 4, 64, true, false}, hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(10000, 128, 1024), hopper, {}).moves, Moves::none);
}

TEST(Choose, ForcedStagesMakeTheirOwnSums)
{
    Forced assignment, sum;
    assignment.assignment = Assignment::register_;
    sum.mass_sum = MassSum::global_atomic;
    EXPECT_EQ(choose(shape(1000000, 4, 64), hopper, assignment).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(1000000, 4, 64), hopper, sum).moves, Moves::none);
    sum.mass_sum = MassSum::automatic;
    sum.feature_sum = FeatureSum::atomic;
    EXPECT_EQ(choose(shape(1000000, 128, 1024), hopper, sum).moves, Moves::none);
    sum.feature_sum = FeatureSum::sorted;
    EXPECT_EQ(choose(shape(1000, 4, 4), hopper, sum).moves, Moves::sorted);
}

// The sums of weighted rows are of two limbs, which no fused kernel makes: stages run apart, even where one pass is
// forced.
TEST(Choose, WeightedRowsRunStagesApart)
{
    Forced one_pass, sums_on_host;
    one_pass.execution = Execution::single_pass;
    sums_on_host.execution = Execution::cross_processing;
    for (const std::int32_t d : {2, 8, 24, 64})
        for (const std::int32_t k : {4, 64, 300}) {
            const Shape weighted = {1 << 20, d, k, false, true}, plain = shape(1 << 20, d, k);
            for (const Forced &forced : {Forced{}, one_pass}) {
                const Plan plan = choose(weighted, hopper, forced);
                EXPECT_EQ(plan.execution, Execution::multi_pass);
                EXPECT_EQ(plan.moves, Moves::sorted);
                EXPECT_EQ(plan.assignment, labels_in_tiles(plain, hopper) ? Assignment::tensor_core
                                                                          : choose(plain, hopper, {}).assignment);
            }
            EXPECT_EQ(choose(weighted, hopper, sums_on_host).execution, Execution::cross_processing);
        }
}

// Of entries, too; and of those no sums are made on the chip, which holds too few bits.
TEST(Choose, EntriesRunStagesApart)
{
    Forced one_pass;
    one_pass.execution = Execution::single_pass;
    for (const DeviceFacts &device : {hopper, ampere, small})
        for (const std::int64_t n : {100, 20000, 1 << 20})
            for (const std::int32_t d : {1, 8, 24, 64, 300})
                for (const std::int32_t k : {1, 4, 64, 300, 5000})
                    for (const bool weighted : {false, true})
                        for (const Forced &forced : {Forced{}, one_pass}) {
                            const Plan plan = choose({n, d, k, false, weighted, true}, device, forced);
                            EXPECT_EQ(plan.execution, Execution::multi_pass);
                            EXPECT_EQ(plan.moves, n >= follow_n ? Moves::sorted : Moves::none);
                            EXPECT_TRUE(plan.feature_sum == FeatureSum::sorted ||
                                        plan.feature_sum == FeatureSum::atomic);
                            EXPECT_EQ(plan.mass_sum, MassSum::global_atomic);
                        }
}

// A fit goes by entries the later, the more the rows' own kernels gain.
TEST(Choose, EntriesRepayLaterWhereRowsHaveKernelsOfTheirOwn)
{
    EXPECT_EQ(repaying_copies(shape(1000000, 128, 1024), hopper), 2);
    EXPECT_EQ(repaying_copies({1000000, 4, 100, true, false}, hopper), 2);
    EXPECT_EQ(repaying_copies({1000000, 4, 100, false, true}, hopper), 2);
    EXPECT_EQ(repaying_copies(shape(1000000, 4, 8), hopper), 8);
    EXPECT_EQ(repaying_copies(shape(1000000, 64, 64), hopper), 8);
    EXPECT_EQ(repaying_copies(shape(1000000, 3, 10000), hopper), 19);
}

// Few clusters of many features: rows rest, and nothing is prepared.
TEST(Choose, FewClustersOfManyFeatures)
{
    for (const std::int32_t k : {1, 10, wide_k})
        for (const DeviceFacts &device : {hopper, ampere}) {
            EXPECT_EQ(choose(shape(1000000, 784, k), device, {}).assignment, Assignment::register_);
            EXPECT_EQ(choose(shape(1000000, 784, k), device, {}).execution, Execution::multi_pass);
        }
    EXPECT_EQ(choose(shape(1000000, 65, 8), hopper, {}).moves, Moves::sorted);
    EXPECT_EQ(choose(shape(5000, 200, 8), hopper, {}).assignment, Assignment::register_);
    EXPECT_EQ(choose(shape(5000, 65, 8), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(1000000, 784, wide_k + 1), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(1000000, 2000, wide_k), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(100000, 4096, 500), hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose(shape(100000, 3072, 500), ampere, {}).assignment, Assignment::tiled);
    EXPECT_EQ(choose({1000000, 784, 10, true, false}, hopper, {}).assignment, Assignment::tensor_core);
    EXPECT_EQ(choose({1000000, 784, 10, false, true}, hopper, {}).assignment, Assignment::register_);
}

// The rows of the measured sweep that decide.
TEST(Choose, FollowsTheSweep)
{
    const auto plan = [](std::int64_t n, std::int32_t d, std::int32_t k) { return choose(shape(n, d, k), hopper, {}); };
    EXPECT_EQ(plan(8388608, 2, 256).execution, Execution::single_pass);
    EXPECT_EQ(plan(2097152, 8, 2048).assignment, Assignment::tensor_core);
    EXPECT_EQ(plan(2097152, 8, 2048).feature_sum, FeatureSum::atomic);
    EXPECT_EQ(plan(1048576, 16, 256).assignment, Assignment::tensor_core);
    EXPECT_EQ(plan(1000000, 64, 128).moves, Moves::strips);
    EXPECT_EQ(plan(1000000, 32, 256).assignment, Assignment::tensor_core);
    EXPECT_EQ(plan(699050, 24, 256).execution, Execution::multi_pass);
    EXPECT_EQ(plan(2000000, 16, 160).assignment, Assignment::tensor_core);
    EXPECT_EQ(plan(2000000, 16, 160).moves, Moves::sorted);
    EXPECT_EQ(plan(10000, 16, 160).moves, Moves::few); // too few rows to prepare them
    EXPECT_EQ(plan(2000000, 16, 96).moves, Moves::few);
    EXPECT_EQ(plan(2000000, 16, 128).moves, Moves::sorted);
    EXPECT_EQ(plan(699050, 24, 2048).feature_sum, FeatureSum::sorted);
    EXPECT_EQ(plan(262144, 64, 256).feature_sum, FeatureSum::sorted);
    EXPECT_EQ(plan(65536, 256, 4).feature_sum, FeatureSum::partitioned_features);
    EXPECT_EQ(plan(65536, 24, 16).feature_sum, FeatureSum::block_merge);
    EXPECT_EQ(plan(65536, 256, 4).execution, Execution::multi_pass);
    EXPECT_EQ(plan(65536, 256, 2048).feature_sum, FeatureSum::atomic);
    EXPECT_EQ(plan(1000000, 128, 1024).feature_sum, FeatureSum::sorted);
    EXPECT_EQ(plan(65536, 24, 16384).mass_sum, MassSum::global_atomic);
}

// A block's memory holds the columns of the filter for few features up to some thousand clusters.
TEST(Choose, ColumnsOfFewFeaturesFitABlock)
{
    EXPECT_TRUE(fits_narrow(16, 1000, hopper));
    EXPECT_TRUE(fits_narrow(32, 3200, hopper));
    EXPECT_FALSE(fits_narrow(32, 3201, hopper));
    EXPECT_FALSE(fits_narrow(33, 64, hopper));
    EXPECT_FALSE(fits_narrow(16, 1 << 30, hopper));
}

// Wherever one pass by the register kernels is chosen there are kernels that take the shape, for iterations and for
// labels alone.
TEST(Choose, RegisterKernelsTakeWhatIsChosenForThem)
{
    for (const DeviceFacts &device : {hopper, ampere, small})
        for (std::int32_t d = 1; d <= register_d; ++d)
            for (std::int32_t k = 1; k < 8192; k = k * 5 / 4 + 1) {
                const Shape s = shape(1 << 20, d, k);
                if (fits_fused_register(s, device)) {
                    EXPECT_TRUE(fits_register(s, device));
                    EXPECT_NE(choose_moves(s, device), Moves::none);
                }
                if (choose(s, device, {}).assignment == Assignment::register_) {
                    EXPECT_TRUE(fits_register(s, device));
                }
            }
}

// The arrays of DeviceProblem, and with peers those of PeerSums: three times a peer's own sums.
TEST(Bytes, AFitHasRoomForItsArrays)
{
    for (const bool float64 : {false, true})
        for (const bool weighted : {false, true})
            for (const std::int32_t k : {1, 7, 100000})
                for (const std::int32_t d : {1, 3, 1000}) {
                    const Shape s = {1000, d, k, float64, weighted};
                    const std::uint64_t values = std::uint64_t(k) * std::uint64_t(d), parts = weighted ? 2 : 1;
                    const std::uint64_t sums = parts * 2 * 8 * (values + std::uint64_t(k));
                    EXPECT_GE(least_bytes(s, false), 4 * values * (float64 ? 8 : 4) + sums + 8 * std::uint64_t(k));
                    EXPECT_EQ(least_bytes(s, true) - least_bytes(s, false), 3 * sums);
                }
}

// Those that grow with k: a row's number for each cluster; for each trial a list of rows.
TEST(Bytes, SeedingHasRoomForTheRowsItChooses)
{
    const auto bytes = [](std::int64_t n, std::int32_t k) { return greedy_bytes({n, 4, k, false, false}); };
    EXPECT_EQ(bytes(1 << 20, 1000000) - bytes(1 << 20, 900000), 8 * 100000); // as many trials
    EXPECT_EQ(bytes(1 << 20, 9) - bytes(1 << 20, 2), 8 * 7 + 2 * 4 * (1 << 20));
}

} // namespace

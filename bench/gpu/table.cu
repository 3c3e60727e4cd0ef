// table.cu - one iteration on every shape: as it is chosen, and by each strategy of each stage.
#include <cstdio>
#include <string>

#include "bench.hpp"

namespace pgkm::cuda {
const char *const *strategy_names(const char *stage) noexcept;
}

namespace bench {
namespace {

constexpr int repeats = 24;

std::string name_of(const char *stage, int value) { return strategy_names(stage)[value - 1]; }

std::string plan_of(const Row &row, const DeviceFacts &device)
{
    const Plan plan = choose({row.n, row.d, row.k, false, false}, device, {});
    const std::string text = name_of("execution", static_cast<int>(plan.execution)) + " " +
                             name_of("assignment", static_cast<int>(plan.assignment));
    const char *const moves[] = {"", " few", " slots", " cells", " strips"};
    if (plan.execution == Execution::single_pass)
        return text + moves[static_cast<int>(plan.moves)];
    return text + " " + name_of("feature_sum", static_cast<int>(plan.feature_sum)) + " " +
           name_of("mass_sum", static_cast<int>(plan.mass_sum));
}

void print_shape(const Row &row) { std::printf("%lld,%d,%d", static_cast<long long>(row.n), row.d, row.k); }

// Runs body(forced, stage, name) for every strategy of every stage.
template <typename Body>
void each_strategy(Body &&body)
{
    const auto each = [&](const char *stage, auto &&force) {
        for (int i = 1; strategy_names(stage)[i - 1] != nullptr; ++i) {
            Forced forced;
            force(forced, i);
            body(forced, stage, strategy_names(stage)[i - 1]);
        }
    };
    each("assignment", [](Forced &f, int i) { f.assignment = static_cast<Assignment>(i); });
    each("execution", [](Forced &f, int i) { f.execution = static_cast<Execution>(i); });
    each("feature_sum", [](Forced &f, int i) { f.feature_sum = static_cast<FeatureSum>(i); });
    each("mass_sum", [](Forced &f, int i) { f.mass_sum = static_cast<MassSum>(i); });
}

} // namespace

void automatic(const std::vector<int> &which)
{
    std::printf("n,d,k,limit_ms,iteration_ms,loop_ms,ratio_to_limit,goal_ms,goal_reached,flash_kmeans_ms,flash_ratio,plan\n");
    for (const int i : which) {
        const Row &row = rows[i];
        Setup setup(row);
        const double alone = setup.iteration({}, repeats), loop = setup.loop();
        const double best = loop > 0 ? std::min(loop, alone) : alone;
        print_shape(row);
        std::printf(",%.3f,%.4f,%.4f,%.2f,%.3f,%s,%.3f,%.1f,%s\n", row.limit_ms, alone, loop, best / row.limit_ms, row.goal_ms,
                    best <= row.goal_ms ? "yes" : "no", row.flash_ms, row.flash_ms / best,
                    plan_of(row, setup.context.facts).c_str());
        std::fflush(stdout);
    }
}

namespace {

// Every strategy of every stage on one shape; those that need milliseconds are run less often.
void time_strategies(const Row &row, int most_repeats)
{
    Setup setup(row);
    const double chosen = setup.iteration({}, most_repeats);
    const auto line = [&](const char *stage, const char *name, double ms) {
        print_shape(row);
        std::printf(",%s,%s,%.4f,%.2f\n", stage, name, ms, ms / chosen);
        std::fflush(stdout);
    };
    line("auto", plan_of(row, setup.context.facts).c_str(), chosen);
    each_strategy([&](const Forced &forced, const char *stage, const char *name) {
        if (forced.execution == Execution::cross_processing)
            return; // its iterations are the host's: these are the device's
        if (row.d > register_d && std::string(name).starts_with("register"))
            return; // no kernel of that name takes the shape
        const double first = setup.iteration(forced, 1);
        line(stage, name, first > 20.0 ? first : setup.iteration(forced, std::min(most_repeats, 8)));
    });
}

} // namespace

void all(const std::vector<int> &which)
{
    std::printf("n,d,k,stage,strategy,iteration_ms,ratio_to_auto\n");
    for (const int i : which)
        time_strategies(rows[i], repeats);
}

void iterations(const std::vector<int> &which)
{
    std::printf("n,d,k,1st_ms,2nd_ms,3rd_ms,4th_ms,5th_ms,6th_ms,7th_ms,8th_ms,sums_made_anew_ms\n");
    for (const int i : which) {
        const Row &row = rows[i];
        Setup setup(row);
        print_shape(row);
        const std::vector<Setup::Timed> timed = setup.iterations({}, 3 * 8);
        for (int number = 0; number < 8; ++number) {
            std::vector<double> times; // empty beyond the fit's end
            for (const Setup::Timed &each : timed)
                if (each.number == number)
                    times.push_back(each.ms);
            std::printf(",%.4f", median(times));
        }
        Forced anew;
        anew.assignment = choose({row.n, row.d, row.k, false, false}, setup.context.facts, {}).assignment;
        anew.execution = choose({row.n, row.d, row.k, false, false}, setup.context.facts, {}).execution;
        std::printf(",%.4f\n", setup.iteration(anew, 8));
        std::fflush(stdout);
    }
}

void sweep()
{
    std::printf("n,d,k,stage,strategy,iteration_ms,ratio_to_auto\n");
    for (const int d : {2, 8, 16, 24, 64, 256})
        for (const int k : {4, 32, 256, 2048, 16384})
            if (k * d <= 1 << 20)
                time_strategies({(std::int64_t{1} << 24) / d, d, k, 0.0, 0.0, 0.0}, 5);
}

} // namespace bench

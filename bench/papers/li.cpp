// li.cpp - Li, Zhao, Chu, Liu, Speeding up k-Means by GPUs (CIT 2010): tables 1 to 11, figures 3 to 5.
#include "data.hpp"

namespace bench {
namespace {

constexpr By low = {"register_global", "divide_and_conquer", "partitioned_global", "multi_pass"};
constexpr By high = {"distance_matrix", "divide_and_conquer", "partitioned_global", "multi_pass"};
constexpr By by_tiles = {"tiled", "divide_and_conquer", "partitioned_global", "multi_pass"};
constexpr By low_in_chunks = {"register_global", "divide_and_conquer", "partitioned_global", "serial_chunks"};
constexpr By high_in_chunks = {"distance_matrix", "divide_and_conquer", "partitioned_global", "serial_chunks"};

void stages(Measured &rows, std::int32_t k)
{
    rows.fit(k, 50);
    if (on_cpu() || !rows.is_forced())
        return;
    rows.find(k);
    rows.feature_sum(k);
    rows.mass_sum(k);
}

// Figure 3 is a line of table 1, in operations.
void few_features()
{
    for (const std::int32_t d : {2, 8})
        if (is_wanted("li-1")) {
            const Drawn drawn("uniform", 4000000, d);
            for (const std::int64_t part : {2, 1})
                each("li-1", drawn.set().head(drawn.set().n / part), {low, by_choice}, [](Measured &rows) {
                    rows.fit(100, 50);
                    rows.fit(400, 50);
                });
        }
    if (is_wanted("li-2"))
        for (const std::int32_t d : {2, 4, 6, 8, 10}) {
            const Drawn drawn("uniform", 1000000, d);
            each("li-2", drawn.set(), {low, by_choice}, [](Measured &rows) { stages(rows, 100); });
        }
    if (is_wanted("li-3")) {
        const Drawn drawn("uniform", 1000000, 4);
        each("li-3", drawn.set(), {low, by_choice}, [](Measured &rows) {
            for (const std::int32_t k : {100, 200, 400})
                stages(rows, k);
        });
    }
    if (is_wanted("li-4")) {
        const Drawn drawn("uniform", 8192000, 4);
        for (const std::int64_t eighths : {1, 2, 3, 4, 6, 8})
            each("li-4", drawn.set().head(drawn.set().n / 8 * eighths), {low, by_choice},
                 [](Measured &rows) { stages(rows, 100); });
    }
}

// KDD 99 by its 34 columns of measures (those of Rodinia's file), whichever the work chose. Figure 4 is a line of table
// 5, in operations; the entries of table 8 are lost.
void many_features()
{
    if (is_wanted("li-5") || is_wanted("li-7")) {
        Table kdd("kddcup.data");
        kdd.drop({1, 2, 3, 6, 11, 20, 21});
        if (!kdd.is_empty()) {
            for (const std::int64_t n : {51200, 494080})
                each("li-5", kdd.rows(n), {high, by_tiles, by_choice}, [](Measured &rows) { rows.fit(32, 100); });
            each("li-7", kdd.rows(51200), {high, by_tiles, by_choice}, [](Measured &rows) {
                for (const std::int32_t k : {32, 64, 128, 256, 512})
                    rows.fit(k, 100);
            });
        }
    }
    if (is_wanted("li-9"))
        for (std::int32_t d = 32; d <= 160; d += 32) {
            const Drawn drawn("uniform", 51200, d);
            each("li-9", drawn.set(), {high, by_tiles, by_choice}, [](Measured &rows) { rows.fit(32, 100); });
        }
    // Algorithm 3 or 4.
    if (is_wanted("li-limit"))
        for (const std::int32_t d : {8, 12, 16, 20, 24, 32}) {
            const Drawn drawn("uniform", 1000000, d);
            std::vector<By> list = {high, by_tiles, by_choice};
            if (d <= 22) // of more features register_global is generic
                list.push_back(low);
            each("li-limit", drawn.set(), list, [](Measured &rows) { rows.fit(100, 50); });
        }
}

// Rows that the device does not hold. The work's sets are 100 times larger than those above; these are cut to 2 GB
// beside 512 MB of device memory, for the CPU to 128 MB.
void large_sets()
{
    constexpr std::uint64_t device = std::uint64_t{512} << 20;
    const auto parts = [&](const char *figure, std::int32_t d, std::int32_t k, const By &by, const By &overlapped) {
        if (!is_wanted(figure))
            return;
        const std::int64_t values = std::int64_t{1} << (on_cpu() ? 25 : 29);
        const Drawn drawn("uniform", values / d, d);
        for (const std::int64_t quarters : {2, 3, 4})
            each(
                figure, drawn.set().head(drawn.set().n / 4 * quarters), {by, overlapped, by_choice},
                [&](Measured &rows) { rows.fit(k, 3); }, device);
    };
    parts("li-10", 4, 100, low_in_chunks, low);
    parts("li-11", 34, 32, high_in_chunks, high);
}

} // namespace

void li()
{
    few_features();
    many_features();
    large_sets();
}

} // namespace bench

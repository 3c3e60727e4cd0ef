// lutz.cpp - Lutz et al., Efficient and Scalable k-Means on GPUs (2018): figures 6 to 13. Rates follow from bytes of
// rows by time.
#include "data.hpp"

namespace bench {
namespace {

constexpr std::int64_t values = std::int64_t{1} << 29; // 2 GB
constexpr std::int32_t features[] = {2, 4, 8, 16, 32, 64, 128, 256};

constexpr By single = {"register", "-", "-", "single_pass"};
constexpr By wide_single = {"generic", "-", "-", "single_pass"};
constexpr By multi = {"register", "partitioned_features", "partitioned_local", "multi_pass"};
constexpr By wide_multi = {"generic", "partitioned_features", "partitioned_local", "multi_pass"};
constexpr By cross = {"register", "-", "-", "cross_processing"};
constexpr By shared_out = {"register", "-", "-", "co_processing"};
constexpr By wide_cross = {"generic", "-", "-", "cross_processing"};

// The CPU adds up, one row after the other: a 64th of the rows makes the same rate.
Set for_cross(const Set &set)
{
    return set.head(set.n / 64);
}

void by_features(const Set &set)
{
    if (!on_cpu())
        each("lutz-6", set,
             {{"generic", "cluster_merge", "-", "multi_pass"},
              {"generic", "partitioned_features", "-", "multi_pass"},
              {"generic", "block_merge", "-", "multi_pass"}},
             [](Measured &rows) {
                 rows.feature_sum(4);
                 rows.feature_sum(64);
             });
    const bool is_wide = set.d > 16;
    const auto fit = [](Measured &rows) { rows.fit(4, 20); };
    each("lutz-11", set, {is_wide ? wide_single : single, is_wide ? wide_multi : multi, by_choice}, fit);
    if (!on_cpu())
        each("lutz-11", for_cross(set), {is_wide ? wide_cross : cross}, fit);
}

void by_clusters(const Set &set)
{
    if (!on_cpu()) {
        each("lutz-7", set,
             {{"register", "-", "global_atomic", "multi_pass"},
              {"register", "-", "partitioned_global", "multi_pass"},
              {"register", "-", "partitioned_local", "multi_pass"},
              {"register", "-", "partitioned_private", "multi_pass"}},
             [](Measured &rows) {
                 for (std::int32_t k = 2; k <= 1024; k *= 2)
                     rows.mass_sum(k);
             });
        each("lutz-8", set, {multi}, [](Measured &rows) {
            rows.assignment(4);
            rows.feature_sum(4);
            rows.mass_sum(4);
        });
        each("lutz-8", for_cross(set), {cross}, [](Measured &rows) {
            rows.assignment(4);
            rows.labels(4);
            rows.fit(4, 10);
        });
    }
    each("lutz-8", set, {multi, single, by_choice}, [](Measured &rows) { rows.fit(4, 20); });
    const auto fits = [](Measured &rows) {
        for (std::int32_t k = 2; k <= 256; k *= 2)
            rows.fit(k, 5);
    };
    each("lutz-10", set, {single, multi}, fits);
    if (!on_cpu())
        each("lutz-10", for_cross(set), {cross}, fits);
}

// A chunk is an eighth of the device memory that is allowed. Transfers and kernels overlap.
void streamed(const Set &set)
{
    const auto limit = [](std::uint64_t megabytes) { return 8 * (megabytes << 20); };
    for (const std::uint64_t megabytes : {1, 2, 4, 8, 16, 32, 64, 128})
        each(
            "lutz-12-" + std::to_string(megabytes), set, {single}, [](Measured &rows) { rows.fit(4, 4); },
            limit(megabytes));
    for (std::int64_t part = 8; part >= 1; part /= 2)
        each(
            "lutz-13", set.head(set.n / part), {single, multi, shared_out},
            [](Measured &rows) {
                rows.fit(4, 4);
                rows.fit(64, 4);
            },
            limit(16));
}

} // namespace

void lutz()
{
    for (const std::int32_t d : features) {
        if (d != 4 && !is_wanted("lutz-6") && !is_wanted("lutz-11"))
            continue;
        const Drawn drawn("blobs", values / d, d);
        by_features(drawn.set());
        if (d == 4)
            by_clusters(drawn.set());
        if (d == 4 && !on_cpu())
            streamed(drawn.set());
    }
}

} // namespace bench

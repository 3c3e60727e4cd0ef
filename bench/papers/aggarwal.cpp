// aggarwal.cpp - K-means on GPUs (master's thesis, IIT Kanpur 2013): tables 4.1 to 4.3, 6.1 to 6.5, figures 2.2
// and 6.1.
#include "data.hpp"

namespace bench {
namespace {

constexpr By whole = {"generic_constant", "ballot", "partitioned_global", "multi_pass"};

void fit(Measured &rows, std::int32_t k)
{
    rows.fit(k, 50);
    rows.stages(k);
}

// Covertype and KDD 99: by the number of rows, then by that of clusters.
void whole_fits(Table &table, const std::string &by_n, const std::vector<std::int64_t> &sizes, const std::string &by_k,
                std::int64_t n, const std::vector<std::int32_t> &clusters)
{
    if (table.is_empty())
        return;
    if (is_wanted(by_n))
        for (const std::int64_t size : sizes)
            each(by_n, table.rows(size), {whole, by_choice}, [](Measured &rows) { fit(rows, 64); });
    if (is_wanted(by_k))
        each(by_k, table.rows(n), {whole, by_choice}, [&](Measured &rows) {
            for (const std::int32_t k : clusters)
                fit(rows, k);
        });
}

} // namespace

void aggarwal()
{
    // Assignment alone. The work's sets, times 8: a modern GPU takes no time for them.
    const auto by = [](const char *assignment) {
        return By{assignment, "block_merge", "partitioned_local", "multi_pass"};
    };
    const auto assignments = [](const char *figure, const Set &set, const std::vector<By> &forced, std::int32_t k) {
        if (!on_cpu())
            each(figure, set, forced, [=](Measured &rows) { rows.find(k); });
        each(figure, set, {by_choice}, [=](Measured &rows) { rows.assignment(k); });
    };
    if (is_wanted("aggarwal-4.1"))
        for (std::int32_t d = 2; d <= 22; d += 2)
            assignments("aggarwal-4.1", Drawn("uniform", 8000000, d).set(),
                        {by("register_shared"), by("register_constant"), by("register_global")}, 100);
    if (is_wanted("aggarwal-4.3"))
        assignments("aggarwal-4.3", Drawn("uniform", 6553600, 34).set(), {by("generic_constant"), by("generic")}, 32);
    if (is_wanted("aggarwal-6.1") || is_wanted("aggarwal-6.2") || is_wanted("aggarwal-f6.1")) {
        Table kdd("kddcup.data");
        whole_fits(kdd, "aggarwal-6.1", {1000000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000, 4500000},
                   "aggarwal-6.2", 2000000, {32, 64, 96, 128, 160});
    }
    if (is_wanted("aggarwal-6.3") || is_wanted("aggarwal-6.4")) {
        Table covertype("covtype.");
        whole_fits(covertype, "aggarwal-6.3", {100000, 200000, 300000, 400000, 500000, 580000}, "aggarwal-6.4", 500000,
                   {32, 64, 96, 128, 160, 192});
    }
    if (is_wanted("aggarwal-6.5"))
        for (std::int32_t d = 32; d <= 160; d += 32) {
            const Drawn drawn("uniform", 51200, d);
            each("aggarwal-6.5", drawn.set(),
                 {whole, {"distance_matrix", "divide_and_conquer", "partitioned_global", "multi_pass"}, by_choice},
                 [](Measured &rows) { rows.fit(32, 100); });
        }
    if (on_cpu() && is_wanted("aggarwal-f2.2")) {
        const Drawn drawn("uniform", 5749132, 9); // Record Linkage by its shape
        const int all = options.threads;
        for (options.threads = 1; options.threads <= all; options.threads *= 2)
            each("aggarwal-f2.2", drawn.set(), {}, [](Measured &rows) { rows.fit(2, 100); });
        options.threads = all;
    }
}

} // namespace bench

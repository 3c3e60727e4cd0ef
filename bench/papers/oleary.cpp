// oleary.cpp - O'Leary, k-Means lab report (UTCS 2021): its table, by the shapes of the lab's files (d is derived).
#include "data.hpp"

namespace bench {

void oleary()
{
    constexpr struct {
        std::int64_t n;
        std::int32_t d;
    } files[] = {{2048, 16}, {16384, 24}, {65536, 32}};
    constexpr std::int32_t k = 16;
    const int all = options.threads;
    if (on_cpu())
        options.threads = 1; // the work's is sequential
    for (const auto &file : files) {
        const Drawn drawn("blobs", file.n, file.d);
        each("oleary", drawn.set(),
             {{"generic", "atomic", "global_atomic", "round_trip"},
              {"generic", "atomic", "global_atomic", "multi_pass"},
              {"generic", "staged_rows", "partitioned_local", "round_trip"},
              by_choice},
             [](Measured &rows) {
                 rows.load();
                 rows.seed(k, PGKM_INIT_RANDOM, "seed random");
                 rows.seed(k, PGKM_INIT_KMEANS_PLUS_PLUS, "seed k-means++");
                 rows.fit(k, 300);
                 rows.labels(k);
                 rows.assignment(k);
                 rows.feature_sum(k);
                 rows.mass_sum(k);
             });
    }
    options.threads = all;
}

} // namespace bench

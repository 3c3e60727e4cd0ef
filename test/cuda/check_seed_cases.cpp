// check_seed_cases.cpp - cases of which the order of rows, or what decides between equals, must not matter.
#include "check_cases.hpp"

namespace plugin_check {

// First centroids in canonical order: duplicates, -0 beside 0, weights, equal keys, one group and many. Of the last
// ones some are large enough to be streamed, with room to sort their keys and without.
std::vector<Case> seed_cases()
{
    std::vector<Case> cases;
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM}) {
        cases.push_back({.name = "seed zeros",
                         .n = 3001,
                         .d = 3,
                         .k = 11,
                         .init = init,
                         .step = 1.0,
                         .minus_zeros = true,
                         .any_order = true});
        cases.push_back({.name = "seed repeated",
                         .n = 2500,
                         .d = 20,
                         .k = 17,
                         .weighted = true,
                         .distinct = 300,
                         .init = init,
                         .any_order = true});
        cases.push_back({.name = "seed all but k repeated",
                         .n = 5000,
                         .d = 5,
                         .k = 30,
                         .distinct = 7,
                         .init = init,
                         .any_order = true});
        cases.push_back({.name = "seed equal keys",
                         .n = 700,
                         .d = 200,
                         .k = 6,
                         .init = init,
                         .same_keys = true,
                         .any_order = true});
        cases.push_back({.name = "seed equal keys, weighted",
                         .n = 900,
                         .d = 170,
                         .k = 9,
                         .weighted = true,
                         .init = init,
                         .same_keys = true});
        cases.push_back(
            {.name = "seed equal keys, streamed", .n = 3000, .d = 190, .k = 8, .init = init, .same_keys = true});
        cases.push_back({.name = "seed wide, streamed",
                         .n = 6000,
                         .d = 96,
                         .k = 12,
                         .weighted = true,
                         .distinct = 5000,
                         .init = init,
                         .any_order = true});
        cases.push_back({.name = "seed narrow, streamed",
                         .n = 90000,
                         .d = 6,
                         .k = 9,
                         .init = init,
                         .step = 0.25,
                         .minus_zeros = true});
        cases.push_back({.name = "seed groups",
                         .n = 9000,
                         .d = 3,
                         .k = 7,
                         .weighted = true,
                         .init = init,
                         .groups = 30,
                         .step = 0.5,
                         .minus_zeros = true});
        cases.push_back({.name = "seed groups, equal keys",
                         .n = 1500,
                         .d = 150,
                         .k = 4,
                         .init = init,
                         .groups = 25,
                         .same_keys = true});
        cases.push_back({.name = "seed few rows", .n = 33, .d = 40, .k = 30, .init = init, .any_order = true});
        cases.push_back({.name = "seed two rows", .n = 2, .d = 1, .k = 2, .init = init, .any_order = true});
        cases.push_back({.name = "seed one row", .n = 1, .d = 9, .k = 5, .init = init});
        cases.push_back({.name = "seed many", .n = 2600, .d = 5, .k = 1200, .init = init, .any_order = true});
        cases.push_back({.name = "seed many of few",
                         .n = 3000,
                         .d = 33,
                         .k = 150,
                         .element = PGKM_FLOAT64,
                         .weighted = true,
                         .decades = 12.0,
                         .distinct = 140,
                         .init = init,
                         .minus_zeros = true,
                         .any_order = true});
        // Rows whose places allow copies of 4 and of 8 bytes alone, and rows of few features; lists of more entries
        // than distances are kept of.
        cases.push_back({.name = "seed odd rows",
                         .n = 4000,
                         .d = 131,
                         .k = 40,
                         .weighted = true,
                         .distinct = 3000,
                         .init = init,
                         .any_order = true});
        cases.push_back({.name = "seed even rows", .n = 3000, .d = 134, .k = 60, .init = init, .any_order = true});
        cases.push_back({.name = "seed odd rows",
                         .n = 2000,
                         .d = 75,
                         .k = 33,
                         .element = PGKM_FLOAT64,
                         .init = init,
                         .any_order = true});
        cases.push_back({.name = "seed few features", .n = 70000, .d = 13, .k = 30, .init = init, .any_order = true});
        cases.push_back({.name = "seed far away",
                         .n = 4100,
                         .d = 65,
                         .k = 90,
                         .offset = 1e5,
                         .init = init,
                         .mixed_scale = true,
                         .far_row = true});
    }
    return cases;
}

// So few rows differ that one stands for many, or for 300,000; they may differ in the last bit alone, have weights, or
// leave clusters empty. Three groups are a half, a sixth and a third of the rows; in some cases those of the second
// differ. Of the first of several devices some rows differ, or all. Of the full ones so many differ that a seeding
// filters them, and that sums follow them.
std::vector<Case> repeat_cases(Extent extent)
{
    std::vector<Case> cases;
    for (const PgkmInit init :
         {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST}) {
        const bool any_order = init != PGKM_INIT_FIRST;
        cases.push_back({.name = "repeat",
                         .n = 20000,
                         .d = 9,
                         .k = any_order ? 40 : 120, // a fit alone makes entries where it has much to do
                         .distinct = 300,
                         .init = init,
                         .any_order = any_order});
        cases.push_back({.name = "repeat, weighted",
                         .n = 17000,
                         .d = 20,
                         .k = 17,
                         .weighted = true,
                         .distinct = 300,
                         .init = init,
                         .like_weights = true});
        cases.push_back({.name = "repeat, equal keys",
                         .n = 50000,
                         .d = 190,
                         .k = 15,
                         .distinct = 120,
                         .init = init,
                         .same_keys = true,
                         .any_order = any_order});
        cases.push_back({.name = "repeat, equal keys, weighted",
                         .n = 17000,
                         .d = 12,
                         .k = 15,
                         .element = PGKM_FLOAT64,
                         .weighted = true,
                         .distinct = 300,
                         .init = init,
                         .like_weights = true,
                         .same_keys = true});
        cases.push_back({.name = "repeat, wide", .n = 16500, .d = 130, .k = 24, .distinct = 500, .init = init});
        cases.push_back({.name = "repeat, zeros",
                         .n = 20000,
                         .d = 3,
                         .k = 20,
                         .apart = 1.0,
                         .init = init,
                         .step = 2.0,
                         .minus_zeros = true,
                         .any_order = any_order});
        cases.push_back({.name = "repeat but for the last bit",
                         .n = 20000,
                         .d = 4,
                         .k = 30,
                         .distinct = 150,
                         .init = init,
                         .last_bit = true});
        cases.push_back({.name = "repeat, empty clusters",
                         .n = 18000,
                         .d = 5,
                         .k = 14,
                         .distinct = 9,
                         .init = init,
                         .far_start = true});
        cases.push_back(
            {.name = "repeat, negative tol", .n = 17000, .d = 3, .k = 13, .distinct = 50, .init = init, .tol = -1.0});
        cases.push_back({.name = "repeat, cosine",
                         .n = 17000,
                         .d = 12,
                         .k = 13,
                         .distinct = 200,
                         .init = init,
                         .metric = PGKM_COSINE});
        cases.push_back({.name = "repeat 100,000 times", .n = 200000, .d = 2, .k = 2, .distinct = 2, .init = init});
        for (const std::int64_t single : {1500, 20000})
            cases.push_back({.name = "repeat but for the first " + std::to_string(single),
                             .n = 60000,
                             .d = 3,
                             .k = 15,
                             .weighted = true,
                             .distinct = 100,
                             .single_to = single,
                             .init = init,
                             .far_start = true,
                             .like_weights = true,
                             .max_iter = 6});
        cases.push_back({.name = "repeat in groups",
                         .n = 102000,
                         .d = 3,
                         .k = 12,
                         .weighted = true,
                         .distinct = 200,
                         .single_from = 51000,
                         .single_to = 68000,
                         .init = init,
                         .groups = 3,
                         .like_weights = true});
        cases.push_back({.name = "repeat in groups, empty clusters",
                         .n = 100000,
                         .d = 6,
                         .k = 14,
                         .element = PGKM_FLOAT64,
                         .distinct = 30,
                         .init = init,
                         .groups = 3,
                         .far_start = true});
        if (extent != Extent::full)
            continue;
        cases.push_back({.name = "repeat 300,000 times",
                         .n = 600000,
                         .d = 2,
                         .k = 2,
                         .weighted = true,
                         .distinct = 2,
                         .init = init,
                         .like_weights = true});
        cases.push_back({.name = "repeat 300,000 times in a group",
                         .n = 600000,
                         .d = 2,
                         .k = 3,
                         .weighted = true,
                         .distinct = 1,
                         .single_from = 300000,
                         .single_to = 400000,
                         .init = init,
                         .groups = 3,
                         .like_weights = true});
        cases.push_back({.name = "repeat among many", .n = 320000, .d = 8, .k = 20, .distinct = 40000, .init = init});
        cases.push_back({.name = "repeat among many, weighted",
                         .n = 320000,
                         .d = 10,
                         .k = 70,
                         .weighted = true,
                         .decades = 6.0,
                         .distinct = 40000,
                         .init = init,
                         .like_weights = true});
    }
    return cases;
}

// Rows for empty clusters where many lie equally far: more than are asked for at a time, and their clusters need the
// content, the weight, or both to choose.
std::vector<Case> tie_cases()
{
    return {
        {.name = "far ties", .n = 8000, .d = 2, .k = 12, .init = PGKM_INIT_FIRST, .far_start = true, .step = 4.0},
        {.name = "far ties, weighted",
         .n = 8000,
         .d = 3,
         .k = 12,
         .weighted = true,
         .distinct = 5,
         .init = PGKM_INIT_FIRST,
         .far_start = true,
         .minus_zeros = true},
        {.name = "far ties, wide",
         .n = 4000,
         .d = 70,
         .k = 10,
         .weighted = true,
         .init = PGKM_INIT_RANDOM,
         .far_start = true,
         .step = 8.0,
         .constants = 68},
        {.name = "far ties, duplicates", .n = 6000, .d = 40, .k = 9, .distinct = 3, .far_start = true},
    };
}

} // namespace plugin_check

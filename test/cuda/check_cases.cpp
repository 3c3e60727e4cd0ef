#include "check_cases.hpp"

namespace plugin_check {
namespace {

std::vector<Case> tiny_cases()
{
    return {
        {.name = "narrow", .n = 300, .d = 3, .k = 5, .init = PGKM_INIT_KMEANS_PLUS_PLUS},
        {.name = "weighted", .n = 211, .d = 2, .k = 4, .weighted = true, .init = PGKM_INIT_KMEANS_PARALLEL},
        {.name = "decades",
         .n = 211,
         .d = 5,
         .k = 4,
         .weighted = true,
         .decades = 15.0,
         .init = PGKM_INIT_KMEANS_PARALLEL},
        {.name = "wide", .n = 300, .d = 41, .k = 9, .init = PGKM_INIT_KMEANS_PLUS_PLUS},
        {.name = "empty clusters",
         .n = 150,
         .d = 20,
         .k = 6,
         .weighted = true,
         .init = PGKM_INIT_RANDOM,
         .far_start = true},
        {.name = "groups", .n = 240, .d = 4, .k = 3, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 6},
        {.name = "cosine", .n = 200, .d = 12, .k = 5, .init = PGKM_INIT_RANDOM, .metric = PGKM_COSINE},
        {.name = "repeated",
         .n = 300,
         .d = 7,
         .k = 6,
         .weighted = true,
         .distinct = 40,
         .init = PGKM_INIT_KMEANS_PARALLEL,
         .far_start = true,
         .any_order = true},
        {.name = "equal keys", .n = 90, .d = 200, .k = 4, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .same_keys = true},
        {.name = "loop", .n = 900, .d = 34, .k = 9, .init = PGKM_INIT_RANDOM, .max_iter = 20},
    };
}

} // namespace

std::vector<Case> make_cases(Extent extent)
{
    std::vector<Case> cases;
    const auto add = [&](Case c) {
        for (const PgkmElement element : {PGKM_FLOAT32, PGKM_FLOAT64}) {
            c.element = element;
            cases.push_back(c);
        }
    };
    if (extent == Extent::tiny) {
        for (const Case &c : tiny_cases())
            add(c);
        return cases;
    }
    const PgkmInit inits[] = {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST};
    int i = 0;
    for (const int d : {1, 2, 3, 4, 7, 8, 16, 17, 22, 32, 34, 41, 54, 64, 100, 128})
        add({.name = "d", .n = 3001, .d = d, .k = 7 + d % 5, .weighted = d % 3 == 0, .init = inits[i++ % 4]});
    add({.name = "one cluster", .n = 777, .d = 5, .k = 1, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "n clusters", .n = 65, .d = 3, .k = 65, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "n below k", .n = 9, .d = 3, .k = 20, .init = PGKM_INIT_KMEANS_PARALLEL});
    add({.name = "many clusters", .n = 5000, .d = 4, .k = 400, .init = PGKM_INIT_RANDOM});
    add({.name = "duplicates", .n = 2000, .d = 4, .k = 16, .distinct = 9, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "duplicates random", .n = 2000, .d = 20, .k = 16, .distinct = 9, .init = PGKM_INIT_RANDOM});
    add({.name = "offset", .n = 4000, .d = 6, .k = 12, .offset = 1e6, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
    add({.name = "offset 40", .n = 4000, .d = 40, .k = 12, .offset = 1e6, .init = PGKM_INIT_RANDOM});
    for (const int d : {2, 5, 12, 34, 64, 130}) {
        add({.name = "narrow", .n = 6000, .d = d, .k = 12, .offset = -3e5, .init = PGKM_INIT_RANDOM});
        add({.name = "narrow, weighted",
             .n = 3000,
             .d = d,
             .k = 9,
             .weighted = true,
             .decades = 12.0,
             .offset = 3e5,
             .init = PGKM_INIT_RANDOM});
    }
    add({.name = "narrow, denormal", .n = 3000, .d = 5, .k = 10, .offset = 1e-36, .spread = 1e-41});
    add({.name = "narrow, denormal 40", .n = 3000, .d = 40, .k = 10, .offset = 1e-36, .spread = 1e-41});
    add({.name = "narrow, empty", .n = 3000, .d = 6, .k = 30, .offset = 1e5, .far_start = true});
    for (const int d : {3, 11, 24})
        add({.name = "narrow, groups",
             .n = 5000,
             .d = d,
             .k = 6,
             .weighted = d == 11,
             .offset = 1e6,
             .init = PGKM_INIT_KMEANS_PLUS_PLUS,
             .groups = d == 3 ? 60 : 11});
    add({.name = "mixed scale",
         .n = 3000,
         .d = 3,
         .k = 10,
         .weighted = true,
         .init = PGKM_INIT_KMEANS_PARALLEL,
         .mixed_scale = true});
    for (const int d : {2, 9, 20, 70, 200})
        add({.name = "decades", .n = 3000, .d = d, .k = 9, .weighted = true, .decades = 15.0, .init = inits[i++ % 4]});
    add({.name = "decades, many clusters",
         .n = 5000,
         .d = 4,
         .k = 400,
         .weighted = true,
         .decades = 15.0,
         .init = PGKM_INIT_RANDOM});
    add({.name = "decades, empty clusters",
         .n = 3000,
         .d = 5,
         .k = 30,
         .weighted = true,
         .decades = 15.0,
         .init = PGKM_INIT_RANDOM,
         .far_start = true});
    add({.name = "decades, vanishing",
         .n = 2000,
         .d = 3,
         .k = 12,
         .weighted = true,
         .decades = 60.0,
         .init = PGKM_INIT_KMEANS_PARALLEL});
    for (const int d : {4, 11, 30})
        add({.name = "decades, groups",
             .n = 4000,
             .d = d,
             .k = 6,
             .weighted = true,
             .decades = 15.0,
             .init = PGKM_INIT_KMEANS_PLUS_PLUS,
             .groups = 12});
    // Blobs far apart that several centroids share: a row has many candidates within a loose bound.
    for (const int d : {96, 300})
        add({.name = "cut up",
             .n = 6000,
             .d = d,
             .k = 256,
             .blobs = 64,
             .apart = 30.0,
             .init = PGKM_INIT_RANDOM,
             .max_iter = d == 96 ? 20 : 5});
    // More clusters than different rows: centroids repeat, and rows tie.
    for (const int d : {19, 32, 62})
        add({.name = "repeated, mixed scale",
             .n = 3000,
             .d = d,
             .k = 64,
             .distinct = 40,
             .init = PGKM_INIT_RANDOM,
             .mixed_scale = true,
             .max_iter = d == 32 ? 2 : 20});
    add({.name = "mixed scale 44, 128", .n = 5000, .d = 44, .k = 128, .init = PGKM_INIT_RANDOM, .mixed_scale = true});
    add({.name = "mixed scale 33", .n = 3000, .d = 33, .k = 10, .init = PGKM_INIT_RANDOM, .mixed_scale = true});
    add({.name = "tiny", .n = 3000, .d = 5, .k = 10, .spread = 1e-40, .init = PGKM_INIT_RANDOM});
    add({.name = "huge", .n = 3000, .d = 5, .k = 10, .spread = 1e36, .init = PGKM_INIT_RANDOM});
    add({.name = "huge 40", .n = 1000, .d = 40, .k = 10, .spread = 1e36, .init = PGKM_INIT_RANDOM});
    add({.name = "empty clusters", .n = 3000, .d = 4, .k = 12, .init = PGKM_INIT_RANDOM, .far_start = true});
    add({.name = "empty clusters 48",
         .n = 1500,
         .d = 48,
         .k = 12,
         .weighted = true,
         .init = PGKM_INIT_RANDOM,
         .far_start = true});
    add({.name = "negative tol", .n = 1500, .d = 3, .k = 6, .init = PGKM_INIT_RANDOM, .tol = -1.0});
    add({.name = "tol", .n = 1500, .d = 3, .k = 6, .init = PGKM_INIT_RANDOM, .tol = 1e-3});
    add({.name = "cosine", .n = 3000, .d = 12, .k = 9, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .metric = PGKM_COSINE});
    add({.name = "cosine 64",
         .n = 3000,
         .d = 64,
         .k = 9,
         .weighted = true,
         .init = PGKM_INIT_KMEANS_PARALLEL,
         .metric = PGKM_COSINE});
    add({.name = "groups",
         .n = 4000,
         .d = 4,
         .k = 6,
         .weighted = true,
         .init = PGKM_INIT_KMEANS_PLUS_PLUS,
         .groups = 12});
    add({.name = "groups 2",
         .n = 4000,
         .d = 9,
         .k = 6,
         .init = PGKM_INIT_KMEANS_PARALLEL,
         .groups = 7,
         .far_start = true});
    add({.name = "groups 80",
         .n = 6000,
         .d = 5,
         .k = 5,
         .init = PGKM_INIT_KMEANS_PLUS_PLUS,
         .groups = 80,
         .tol = 1e-3});
    add({.name = "groups cosine",
         .n = 6000,
         .d = 10,
         .k = 7,
         .weighted = true,
         .init = PGKM_INIT_KMEANS_PLUS_PLUS,
         .metric = PGKM_COSINE,
         .groups = 9});
    add({.name = "groups duplicates",
         .n = 3000,
         .d = 3,
         .k = 12,
         .distinct = 11,
         .init = PGKM_INIT_KMEANS_PLUS_PLUS,
         .groups = 6});
    for (const Case &c : seed_cases())
        add(c);
    for (const Case &c : tie_cases())
        add(c);
    for (const Case &c : repeat_cases(extent))
        add(c);
    // Enough rows and clusters for leaves of a tree.
    cases.push_back({.name = "leaves", .n = 170000, .d = 2, .k = 100, .init = PGKM_INIT_RANDOM});
    cases.push_back({.name = "leaves ties", .n = 66001, .d = 3, .k = 290, .init = PGKM_INIT_RANDOM, .step = 1.0});
    if (extent == Extent::full) {
        for (const int d : {1, 3, 4, 5, 7, 8})
            cases.push_back({.name = "leaves", .n = 150001, .d = d, .k = 112 + d, .init = PGKM_INIT_RANDOM});
        cases.push_back(
            {.name = "leaves weighted", .n = 90000, .d = 4, .k = 190, .weighted = true, .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "leaves offset",
                         .n = 150000,
                         .d = 8,
                         .k = 120,
                         .offset = 1e5,
                         .spread = 3.0,
                         .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "leaves wide labels", .n = 90000, .d = 2, .k = 300, .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "leaves many clusters", .n = 70000, .d = 3, .k = 2500, .init = PGKM_INIT_RANDOM});
        cases.push_back(
            {.name = "leaves many ties", .n = 70000, .d = 2, .k = 1200, .init = PGKM_INIT_RANDOM, .step = 0.125});
        cases.push_back(
            {.name = "leaves few clusters", .n = 560000, .d = 6, .k = 34, .init = PGKM_INIT_RANDOM, .step = 1.0});
        cases.push_back({.name = "leaves duplicates",
                         .n = 530000,
                         .d = 3,
                         .k = 60,
                         .distinct = 700,
                         .init = PGKM_INIT_RANDOM,
                         .far_start = true});
        // More rows of one value than the leaves of a branch take.
        cases.push_back(
            {.name = "leaves few values", .n = 600000, .d = 2, .k = 34, .distinct = 40, .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "leaves mixed scale",
                         .n = 90000,
                         .d = 5,
                         .k = 190,
                         .init = PGKM_INIT_RANDOM,
                         .mixed_scale = true});
        // Some leaves list so many centroids that they are put off.
        cases.push_back({.name = "leaves put off",
                         .n = 70000,
                         .d = 3,
                         .k = 1500,
                         .init = PGKM_INIT_RANDOM,
                         .mixed_scale = true,
                         .max_iter = 4});
        cases.push_back(
            {.name = "leaves constants", .n = 90000, .d = 6, .k = 190, .init = PGKM_INIT_RANDOM, .constants = 4});
        cases.push_back(
            {.name = "leaves far row", .n = 90000, .d = 4, .k = 190, .init = PGKM_INIT_RANDOM, .far_row = true});
        cases.push_back(
            {.name = "leaves tiny", .n = 70000, .d = 5, .k = 250, .spread = 1e-40, .init = PGKM_INIT_RANDOM});
        cases.push_back(
            {.name = "leaves huge", .n = 70000, .d = 5, .k = 250, .spread = 1e36, .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "leaves cosine",
                         .n = 70000,
                         .d = 5,
                         .k = 250,
                         .init = PGKM_INIT_RANDOM,
                         .metric = PGKM_COSINE,
                         .max_iter = 15});
        cases.push_back(
            {.name = "leaves at rest", .n = 430000, .d = 2, .k = 40, .init = PGKM_INIT_RANDOM, .max_iter = 40});
        add({.name = "octets", .n = 20000, .d = 4, .k = 64, .init = PGKM_INIT_RANDOM});
        add({.name = "octets 12", .n = 9000, .d = 12, .k = 20, .init = PGKM_INIT_RANDOM});
        add({.name = "octets 8", .n = 9000, .d = 8, .k = 300, .weighted = true, .init = PGKM_INIT_RANDOM});
        add({.name = "octets duplicates",
             .n = 9000,
             .d = 3,
             .k = 60,
             .distinct = 55,
             .init = PGKM_INIT_RANDOM,
             .far_start = true});
        add({.name = "strips", .n = 20000, .d = 34, .k = 70, .init = PGKM_INIT_RANDOM});
        add({.name = "strips 64", .n = 8000, .d = 64, .k = 120, .weighted = true, .init = PGKM_INIT_RANDOM});
        add({.name = "strips cosine", .n = 9000, .d = 41, .k = 30, .init = PGKM_INIT_RANDOM, .metric = PGKM_COSINE});
        add({.name = "strips duplicates",
             .n = 9000,
             .d = 20,
             .k = 30,
             .distinct = 25,
             .init = PGKM_INIT_RANDOM,
             .far_start = true});
        // Rows ordered by pivots: loads of any width, rows that do and do not stay in registers.
        add({.name = "pivots odd", .n = 9000, .d = 17, .k = 20, .offset = 1e5, .init = PGKM_INIT_RANDOM});
        add({.name = "pivots 66",
             .n = 9000,
             .d = 66,
             .k = 30,
             .offset = 1e4,
             .init = PGKM_INIT_RANDOM,
             .far_start = true});
        add({.name = "pivots mixed scale", .n = 9000, .d = 50, .k = 30, .init = PGKM_INIT_RANDOM, .mixed_scale = true});
        // Sums that follow the rows after an assignment by itself: by pieces of 1, 2 and 4 values, of all rows and of
        // few.
        add({.name = "follow 17", .n = 33000, .d = 17, .k = 300, .weighted = true, .init = PGKM_INIT_RANDOM});
        add({.name = "follow 34", .n = 33000, .d = 34, .k = 490, .init = PGKM_INIT_RANDOM, .max_iter = 6});
        add({.name = "follow 132", .n = 33000, .d = 132, .k = 125, .init = PGKM_INIT_RANDOM, .max_iter = 6});
        add({.name = "follow 3", .n = 50000, .d = 3, .k = 1100, .init = PGKM_INIT_RANDOM});
        add({.name = "follow duplicates",
             .n = 40000,
             .d = 200,
             .k = 30,
             .distinct = 28,
             .init = PGKM_INIT_RANDOM,
             .far_start = true});
        add({.name = "follow cosine",
             .n = 35000,
             .d = 6,
             .k = 40,
             .weighted = true,
             .init = PGKM_INIT_RANDOM,
             .metric = PGKM_COSINE,
             .max_iter = 30});
        add({.name = "large d", .n = 500, .d = 1536, .k = 12, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
        add({.name = "k 1100", .n = 6000, .d = 24, .k = 1100, .init = PGKM_INIT_RANDOM});
        add({.name = "k 2000", .n = 9000, .d = 2, .k = 2000, .init = PGKM_INIT_RANDOM});
        add({.name = "longer", .n = 200000, .d = 4, .k = 8, .init = PGKM_INIT_KMEANS_PLUS_PLUS});
        add({.name = "longer 40", .n = 60000, .d = 40, .k = 20, .weighted = true, .init = PGKM_INIT_RANDOM});
        add({.name = "longer 2", .n = 300000, .d = 2, .k = 40, .init = PGKM_INIT_RANDOM});
        // Many rows of few features, and pivots that have one centroid each, so that their rows rest.
        cases.push_back({.name = "many rows of 2", .n = 1 << 24, .d = 2, .k = 5, .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "many rows weighted",
                         .n = 1 << 22,
                         .d = 8,
                         .k = 8,
                         .weighted = true,
                         .distinct = 300,
                         .init = PGKM_INIT_RANDOM});
        cases.push_back({.name = "many rows duplicates",
                         .n = 1 << 23,
                         .d = 4,
                         .k = 7,
                         .offset = 1e5,
                         .distinct = 500,
                         .init = PGKM_INIT_RANDOM,
                         .far_start = true});
        cases.push_back(
            {.name = "pivots at rest", .n = 1100000, .d = 20, .k = 4, .distinct = 30, .init = PGKM_INIT_RANDOM});
    }
    for (const Case &c : long_cases())
        cases.push_back(c);
    for (const Case &c : gap_cases())
        if (extent == Extent::full)
            add(c);
        else
            cases.push_back(c);
    // Columns that a block's memory holds (assign/tensor_narrow.cuh).
    for (const int d : {9, 16, 17, 31})
        add({.name = "columns in memory",
             .n = 5100,
             .d = d,
             .k = 4 * d + 300,
             .weighted = d == 17,
             .offset = d == 9 ? 1e4 : 0.0,
             .distinct = d == 31 ? 900 : 0,
             .init = PGKM_INIT_RANDOM,
             .max_iter = 6});
    if (extent == Extent::full)
        for (const int d : {16, 32})
            cases.push_back({.name = "many columns in memory",
                             .n = 20000,
                             .d = d,
                             .k = 1000,
                             .init = PGKM_INIT_RANDOM,
                             .max_iter = 3});
    if (extent == Extent::full)
        cases.push_back(
            {.name = "gaps, large tiles", .n = 68000, .d = 65, .k = 253, .init = PGKM_INIT_RANDOM, .max_iter = 5});
    // Clusters without rows: rows in several slices and groups of tiles, and iteration after iteration.
    add({.name = "empty among many rows", .n = 60000, .d = 8, .k = 24, .init = PGKM_INIT_RANDOM, .far_start = true});
    add({.name = "empty again", .n = 4000, .d = 4, .k = 40, .distinct = 25, .init = PGKM_INIT_RANDOM});
    // Labels that relocation asks for, by the order of rows that the sums follow.
    add({.name = "empty among ordered rows", .n = 20000, .d = 40, .k = 60, .apart = 60.0, .distinct = 45});
    for (const Case &c : wide_cases())
        cases.push_back(c);
    for (const Case &c : shift_cases())
        cases.push_back(c);
    return cases;
}

} // namespace plugin_check

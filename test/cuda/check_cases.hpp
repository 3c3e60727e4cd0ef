// check_cases.hpp - shapes and kinds of data that the plugin is checked on, without a test framework.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace plugin_check {

struct Case {
    std::string name;
    std::int64_t n;
    int d;
    int k;
    PgkmElement element = PGKM_FLOAT32;
    bool weighted = false;
    double decades = 0.0; // over which weights are spread; 0: ordinary ones
    double offset = 0.0;
    double spread = 1.0;
    int blobs = 5;       // that the rows come from
    double apart = 10.0; // of the blobs' centres, in spreads
    int distinct = 0;    // rows are drawn from so many values; 0: all differ
    // With `distinct`: rows of these numbers differ all the same.
    std::int64_t single_from = 0, single_to = 0;
    PgkmInit init = PGKM_INIT_RANDOM;
    PgkmMetric metric = PGKM_L2;
    int groups = 1;
    bool far_start = false; // centroids that leave clusters empty
    double tol = 0.0;
    bool mixed_scale = false;
    double step = 0.0;         // values are multiples of it, so that many rows and distances are equal; 0: any values
    int constants = 0;         // so many of the last features are the same everywhere
    bool far_row = false;      // the last row is far from all others
    bool minus_zeros = false;  // every second 0 is -0
    bool last_bit = false;     // of every third row the last value is the next one above
    bool like_weights = false; // with `distinct`: equal rows have equal weights
    bool same_keys = false;    // different rows, but all with one key in the canonical order (numeric/row_key.hpp)
    bool any_order = false;    // the rows in another order give the same first centroids
    int max_iter = 0; // so many iterations, and as the plugin chooses strategies alone; 0: as many as the extent allows
};

// Moved, never copied: points shows into the vectors.
struct Rows {
    Rows() = default;
    Rows(Rows &&) = default;
    Rows &operator=(Rows &&) = default;

    std::vector<float> f32;
    std::vector<double> f64;
    std::vector<double> weights;
    PgkmPoints points{};
};

// The rows of a case, the same for the same number.
Rows make_rows(const Case &c, unsigned seed);

// The same rows, the last one first.
Rows reversed(const Case &c, const Rows &rows);

// quick: small cases of every kind; full: larger ones beside them; tiny: a few of some hundred
// rows, which even compute-sanitizer runs in seconds.
enum class Extent { tiny, quick, full };
std::vector<Case> make_cases(Extent extent);

// Those among quick and full ones that are about first centroids, and about ties of rows for empty clusters.
std::vector<Case> seed_cases();
std::vector<Case> tie_cases();

// About rows that repeat so often that one stands for many (cuda/entries).
std::vector<Case> repeat_cases(Extent extent);

// Those that run long enough for rows to rest, and for bundles of columns to be left out.
std::vector<Case> long_cases();
std::vector<Case> gap_cases();
std::vector<Case> wide_cases();
std::vector<Case> shift_cases();

} // namespace plugin_check

#include "cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "numeric/contract.hpp"
#include "generate.hpp"

namespace conformance {
namespace {

// What a case may have beside rows, d and k.
struct Extra {
    Rows weights = {};
    Rows start = {};
    PgkmMetric metric = PGKM_L2;
    double tol = 0.0;
    std::vector<Group> groups = {};
};

enum class Elements { both, float32, float64 };

class Collection {
  public:
    void add(const std::string &name, const Rows &rows, std::int32_t d, std::int32_t k, const Extra &extra = {},
             Elements elements = Elements::both)
    {
        if (elements != Elements::float64)
            add_as<float>(name + "_float32", rows, d, k, extra);
        if (elements != Elements::float32)
            add_as<double>(name + "_float64", rows, d, k, extra);
    }

    // The cases from here on differ from earlier ones in magnitudes alone.
    void change_magnitudes() { of_magnitudes_ = true; }
    std::vector<Case> take() { return std::move(cases_); }

  private:
    template <typename T>
    void add_as(const std::string &name, const Rows &rows, std::int32_t d, std::int32_t k, const Extra &extra)
    {
        Case made = {};
        made.name = name;
        made.element = sizeof(T) == sizeof(float) ? PGKM_FLOAT32 : PGKM_FLOAT64;
        made.d = d;
        made.n = static_cast<std::int64_t>(rows.size()) / d;
        std::vector<T> values;
        for (const double value : rows)
            values.push_back(static_cast<T>(value));
        if (extra.metric == PGKM_COSINE)
            for (std::int64_t i = 0; i < made.n; ++i)
                pgkm::normalise(values.data() + i * d, d);
        made.values.resize(values.size() * sizeof(T));
        std::memcpy(made.values.data(), values.data(), made.values.size());
        made.weights = extra.weights;
        made.groups = extra.groups.empty() ? std::vector<Group>{{0, made.n, k}} : extra.groups;
        made.metric = extra.metric;
        made.start = extra.start;
        made.tol = extra.tol;
        made.is_of_magnitudes = of_magnitudes_;
        if (!small_ || made.work() <= 60'000)
            cases_.push_back(std::move(made));
    }

    const bool small_ = std::getenv("PGKM_SMALL") != nullptr;
    bool of_magnitudes_ = false;
    std::vector<Case> cases_;
};

void add_shapes(Collection &to)
{
    struct Shape {
        std::int64_t n;
        std::int32_t d, k;
    };
    // Every d on which a kernel might be specialised, and its neighbours; n is never round.
    for (const Shape shape : {Shape{5003, 1, 7},
                              {4001, 2, 15},
                              {1009, 2, 4},
                              {3001, 3, 10},
                              {2503, 4, 16},
                              {1003, 5, 5},
                              {2003, 8, 9},
                              {1201, 16, 33},
                              {1009, 17, 12},
                              {603, 19, 11},
                              {509, 22, 9},
                              {509, 31, 8},
                              {701, 34, 32},
                              {603, 41, 20},
                              {509, 54, 13},
                              {401, 64, 17},
                              {307, 128, 11},
                              {101, 768, 9},
                              {67, 1536, 5}}) {
        Generator random(static_cast<std::uint64_t>(shape.d) * 1000 + static_cast<std::uint64_t>(shape.k));
        to.add("blobs_" + std::to_string(shape.n) + "x" + std::to_string(shape.d) + "_k" + std::to_string(shape.k),
               random.blobs(shape.n, shape.d, shape.k), shape.d, shape.k);
    }
    Generator random(1);
    const Rows near = random.near_subspace(803, 130, 6);
    to.add("near_subspace", near, 130, 60);
    to.add("near_subspace_weighted", near, 130, 60, {.weights = random.weights(803, -9, 1)});
    to.add("one_cluster", random.blobs(1003, 3, 4), 3, 1);
    to.add("as_many_clusters_as_rows", random.blobs(257, 2, 4), 2, 257);
    to.add("one_row", random.blobs(1, 5, 1), 5, 1);
    to.add("two_rows", random.blobs(2, 17, 2), 17, 2);
    to.add("more_clusters_than_rows", random.blobs(5, 3, 2), 3, 9, {.start = random.blobs(9, 3, 3)});
    to.add("k1100_d2", random.blobs(1703, 2, 300), 2, 1100);
    to.add("k1030_d17", random.blobs(1051, 17, 100), 17, 1030);
    to.add("stops_by_tol", random.blobs(997, 4, 6, 0.4), 4, 6, {.tol = 1e-2});
    // In the second iteration a row without mass changes its label, and no centroid moves: a third one follows.
    to.add("labels_change_alone", {0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 4.9}, 1, 2,
           {.weights = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1e-40}, .start = {1.0, 8.0}, .tol = -1.0});
    // More rows in one cluster than a 64-bit partial sum can hold, close to the scale's end.
    Rows full(static_cast<std::size_t>(2 * pgkm::partial_sum_length + 77), 0.99999999);
    full[5] = -1.5;
    to.add("partial_sums", full, 1, 2);
    to.add("partial_sums_negative", shifted(full, -1.0, 0.0), 1, 1);
    to.add("partial_sums_weighted", full, 1, 1, {.weights = Rows(full.size(), 0.3)});
}

void add_ties(Collection &to)
{
    Generator random(2);
    to.add("grid_d2", random.grid(1501, 2, 6), 2, 12);
    to.add("grid_d3_integer_centroids", random.grid(1009, 3, 5), 3, 20, {.start = random.grid(20, 3, 5)});
    to.add("grid_half_way", random.grid(803, 2, 4), 2, 9, {.start = shifted(random.grid(9, 2, 4), 1.0, 0.5)});
    Rows twice = random.grid(6, 4, 3);
    twice.insert(twice.end(), twice.begin(), twice.end());
    to.add("equal_centroids", random.grid(301, 4, 3), 4, 12, {.start = twice});
    to.add("wide_grid", random.grid(203, 130, 2), 130, 9, {.start = random.grid(9, 130, 2)});
    twice = random.grid(2, 300, 2);
    twice.insert(twice.end(), twice.begin(), twice.end());
    to.add("few_centroids", random.grid(403, 300, 2), 300, 3, {.start = random.grid(3, 300, 2)});
    to.add("few_equal_centroids", random.grid(203, 300, 2), 300, 4, {.start = twice});
    to.add("zeros_and_ones", random.grid(1009, 37, 2), 37, 40);
    to.add("levels_beside_numbers", random.levels_beside(random.blobs(1203, 6, 8), 1203, 4), 54, 10);
    const Rows levels = random.levels_beside(random.grid(1009, 4, 9), 1009, 3);
    to.add("levels_beside_grid", levels, 40, 40);
    to.add("levels_beside_grid_weighted", levels, 40, 9, {.weights = random.weights(1009, -9, 1)});
    const Rows few = random.blobs(20, 3, 5);
    Rows repeated;
    for (int i = 0; i < 30; ++i)
        repeated.insert(repeated.end(), few.begin(), few.end());
    to.add("twenty_distinct_rows", repeated, 3, 30);
    to.add("all_rows_equal", Rows(101 * 4, 0.1), 4, 3);
    to.add("all_zero", Rows(67 * 2, 0.0), 2, 2);
    Rows constant = random.blobs(703, 5, 4);
    for (std::size_t i = 0; i < constant.size(); i += 5) {
        constant[i] = 0.3;
        constant[i + 3] = 0.0;
    }
    to.add("constant_features", constant, 5, 6);
    Rows negative_zero = random.grid(203, 2, 3);
    for (std::size_t i = 0; i < negative_zero.size(); i += 3)
        if (negative_zero[i] == 0.0)
            negative_zero[i] = -0.0;
    to.add("negative_zero", negative_zero, 2, 5);
}

// One feature from 1e-3 to 1e9, the others ordinary.
Rows mixed_magnitudes(Generator &random, std::int64_t n, std::int32_t d)
{
    Rows rows = random.blobs(n, d, 8);
    for (std::size_t i = 0; i < rows.size(); i += static_cast<std::size_t>(d))
        rows[i] = random.log_uniform(-3, 9);
    return rows;
}

void add_magnitudes(Collection &to)
{
    Generator random(3);
    for (const std::int32_t d : {2, 8, 41, 128}) {
        const std::int64_t n = d > 50 ? 211 : 1201;
        to.add("offset_1e6_d" + std::to_string(d), shifted(random.blobs(n, d, 8), 1.0, 1e6), d, 8);
        to.add("mixed_magnitudes_d" + std::to_string(d), mixed_magnitudes(random, n, d), d, 9);
    }
    to.add("mixed_magnitudes_few", mixed_magnitudes(random, 211, 300), 300, 3);
    // Spread of a few units in the last place around a large offset.
    to.add("tight_on_offset", shifted(random.blobs(803, 3, 5), 0.25, 1.6e6), 3, 7);
    Rows tiny, denormal, huge, large;
    for (int i = 0; i < 303 * 4; ++i) {
        tiny.push_back(random.log_uniform(-320, -290));
        denormal.push_back(random.log_uniform(-44, -36));
        huge.push_back(random.uniform(-1.0, 1.0) * 0x1p500);
        large.push_back(random.uniform(-1.0, 1.0) * 1e30);
    }
    to.add("denormal", tiny, 4, 5, {}, Elements::float64);
    to.add("denormal", denormal, 4, 5, {}, Elements::float32);
    to.add("near_2_to_500", huge, 4, 5, {}, Elements::float64);
    to.add("squares_overflow", large, 4, 5, {}, Elements::float32);
    to.add(
        "tiny_and_large",
        [&] {
            Rows rows;
            for (int i = 0; i < 403 * 3; ++i)
                rows.push_back(random.log_uniform(-37, 37));
            return rows;
        }(),
        3, 6, {}, Elements::float32);
    // Squares of one or two of the smallest denormals: every distance is mostly rounding.
    Rows small;
    for (int i = 0; i < 2003 * 8; ++i)
        small.push_back(random.uniform(-3e-162, 3e-162));
    to.add("squares_underflow", small, 8, 20, {}, Elements::float64);
    // Beside a large one: squares that a filter in units of the range must not take for 0.
    Rows beside;
    for (int i = 0; i < 1501 * 2; ++i)
        beside.push_back(i == 7 ? 1.0 : random.log_uniform(-150, -130));
    to.add("tiny_beside_one", beside, 2, 5, {}, Elements::float64);
    // Each centroid that is found leaves squares orders of magnitude smaller.
    Rows steep;
    for (int i = 0; i < 101; ++i)
        steep.push_back(random.log_uniform(-30, 30));
    to.add("log_uniform", steep, 1, 60);
}

// Centroids of which all but the first `near` lie where no row is nearest to them.
Rows mostly_far(Generator &random, std::int32_t near, std::int32_t k, std::int32_t d)
{
    Rows start = random.blobs(near, d, near);
    for (std::int32_t j = near; j < k; ++j)
        for (std::int32_t f = 0; f < d; ++f)
            start.push_back(1e3 + j);
    return start;
}

void add_offsets(Collection &to)
{
    Generator random(8);
    for (const std::int32_t d : {1, 2, 5, 8, 17, 41, 130}) {
        const std::int64_t n = d > 50 ? 211 : 1103;
        const std::string name = "far_from_zero_d" + std::to_string(d);
        to.add(name, random.far_from_zero(n, d, 1e15), d, 7, {}, Elements::float64);
        to.add(name, random.far_from_zero(n, d, 1e6), d, 7, {}, Elements::float32);
        to.add(name + "_weighted", random.far_from_zero(n, d, 1e15), d, 7, {.weights = random.weights(n, -12, 2)},
               Elements::float64);
        to.add(name + "_weighted", random.far_from_zero(n, d, 1e6), d, 7, {.weights = random.weights(n, -12, 2)},
               Elements::float32);
    }
    to.add("far_pairs", {1e15, 1e15 + 1, 1e15 + 10, 1e15 + 11}, 1, 2, {.start = {1e15, 1e15 + 11}}, Elements::float64);
    // A range of denormals around values that are not, and the widest one.
    Rows narrow, narrow32, widest;
    for (int i = 0; i < 307; ++i) {
        narrow.insert(narrow.end(), {random.normal(), 0x1p-1000 * (1.0 + static_cast<double>(i % 7) * 0x1p-52)});
        narrow32.insert(narrow32.end(), {random.normal(), 0x1p-120 * (1.0 + static_cast<double>(i % 7) * 0x1p-23)});
        widest.insert(widest.end(), {i % 3 == 0 ? -0x1p500 : 0x1p500 / (1 + i % 5), random.uniform(0x1p499, 0x1p500)});
    }
    to.add("range_of_denormals", narrow, 2, 5, {}, Elements::float64);
    to.add("range_of_denormals", narrow32, 2, 5, {}, Elements::float32);
    to.add("range_of_2_to_501", widest, 2, 5, {}, Elements::float64);
    to.add("far_many_empty", random.far_from_zero(803, 4, 1e4), 4, 30, {.start = mostly_far(random, 3, 30, 4)});
    // Each group has an origin of its own.
    const std::vector<Group> groups = {{0, 200, 5},  {200, 1, 1},  {201, 300, 6},
                                       {501, 64, 8}, {565, 33, 3}, {598, 5, 4}};
    Rows apart;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const Rows part = random.far_from_zero(groups[g].n, 6, 1e3 * std::pow(-10.0, static_cast<double>(g)));
        apart.insert(apart.end(), part.begin(), part.end());
    }
    to.add("groups_far_apart", apart, 6, 0, {.groups = groups});
    to.add("groups_far_apart_weighted", apart, 6, 0, {.weights = random.weights(603, -9, 3), .groups = groups});
}

void add_weights(Collection &to)
{
    Generator random(4);
    to.add("weights_d2", random.blobs(1503, 2, 9), 2, 9, {.weights = random.weights(1503, -1, 1)});
    // From 1 down to 1e-15: most need the lower limb of their sums.
    to.add("weights_decades_d5", random.blobs(1003, 5, 9), 5, 9, {.weights = random.weights(1003, -15, 0)});
    to.add("weights_d17", random.blobs(503, 17, 9), 17, 9, {.weights = random.weights(503, -15, 0)});
    to.add("weights_d130", random.blobs(203, 130, 9), 130, 7, {.weights = random.weights(203, -15, 0)});
    // Clusters all of whose rows are light, on the other side of a heavy one.
    Rows apart, light_and_heavy;
    for (int i = 0; i < 601; ++i) {
        const bool heavy = i % 5 == 0;
        for (int f = 0; f < 4; ++f)
            apart.push_back(heavy ? random.uniform(7.0, 9.0) : random.uniform(-9.0, -1.0));
        light_and_heavy.push_back(heavy ? random.uniform(1.0, 9.0) : random.uniform(3e-15, 5e-14));
    }
    to.add("weights_light_clusters", apart, 4, 6, {.weights = light_and_heavy});
    // Some weights vanish beside the largest: their rows have mass 0.
    to.add("weights_huge_ratio", random.blobs(1003, 3, 5), 3, 8, {.weights = random.weights(1003, -20, 20)});
    to.add("weights_tiny", random.blobs(403, 3, 5), 3, 4, {.weights = random.weights(403, -200, -180)});
    to.add("weights_large", random.blobs(403, 3, 5), 3, 4, {.weights = random.weights(403, 90, 100)});
    to.add("weights_ties", random.grid(603, 2, 4), 2, 7,
           {.weights = shifted(random.grid(603, 1, 3), 1.0, 1.0), .start = random.grid(7, 2, 4)});
    to.add("weights_k1100", random.blobs(1303, 2, 99), 2, 1100, {.weights = random.weights(1303, -12, 2)});
}

void add_empty_clusters(Collection &to)
{
    Generator random(5);
    to.add("one_empty", random.blobs(703, 2, 5), 2, 5, {.start = mostly_far(random, 4, 5, 2)});
    to.add("many_empty", random.blobs(1203, 4, 5), 4, 40, {.start = mostly_far(random, 3, 40, 4)});
    to.add("many_empty_d130", random.blobs(151, 130, 5), 130, 12, {.start = mostly_far(random, 2, 12, 130)});
    to.add("empty_ties", random.grid(403, 2, 5), 2, 30, {.start = mostly_far(random, 2, 30, 2)});
    to.add("empty_weighted", random.blobs(603, 3, 5), 3, 20,
           {.weights = random.weights(603, -9, 9), .start = mostly_far(random, 2, 20, 3)});
    // Fewer rows than empty clusters, and rows that lie on their centroid: some stay empty.
    to.add("more_empty_than_rows", random.blobs(5, 2, 2), 2, 20, {.start = mostly_far(random, 2, 20, 2)});
    to.add("stays_empty", Rows(31 * 2, 0.5), 2, 4, {.start = mostly_far(random, 1, 4, 2)});
    // More rows at the same distance than are looked at.
    Rows two_sides(1001);
    for (std::size_t i = 0; i < two_sides.size(); ++i)
        two_sides[i] = i % 2 == 0 ? 1.0 : -1.0;
    to.add("empty_all_ties", two_sides, 1, 3, {.start = {0.0, 100.0, 200.0}});
    // The farthest rows are alone in their clusters: none of the first that are looked at may go.
    Rows alone = {1.0, -2.0, 0.5}, centres = {0.0};
    for (int j = 1; j <= 90; ++j) {
        alone.push_back(1000.0 * j + 10.0);
        centres.push_back(1000.0 * j);
    }
    centres.push_back(1e6);
    to.add("empty_and_unfit_rows", alone, 1, 92, {.start = centres});
    to.add("k1100_empty", random.blobs(1303, 2, 50), 2, 1100, {.start = mostly_far(random, 700, 1100, 2)});
    // Clusters that got a row of others' lose it again, for these come back to where their rows lie: labels rest in the
    // iteration that moves rows of the cluster that is spread out.
    Rows rests, near;
    for (int j = 0; j < 64; ++j) {
        for (int copy = 0; copy < 3; ++copy)
            rests.insert(rests.end(), {1000.0 * j, 0.0});
        near.insert(near.end(), {1000.0 * j + 30.0, 0.0});
    }
    for (int i = 0; i < 100; ++i)
        rests.insert(rests.end(), {random.normal(), 1e5 + random.normal()});
    near.insert(near.end(), {0.0, 1e5});
    for (int empty = 0; empty < 15; ++empty)
        near.insert(near.end(), {1e7, 1e7});
    to.add("rests_while_rows_move", rests, 2, 80, {.start = near});
}

void add_cosine(Collection &to)
{
    Generator random(6);
    for (const std::int32_t d : {2, 3, 16, 128}) {
        const std::int64_t n = d > 100 ? 203 : 1003;
        to.add("cosine_d" + std::to_string(d), random.blobs(n, d, 8, 0.3), d, 8, {.metric = PGKM_COSINE});
    }
    to.add("cosine_weights", random.blobs(503, 5, 8, 0.3), 5, 8,
           {.weights = random.weights(503, -3, 3), .metric = PGKM_COSINE});
    // Opposite rows: a mean of length zero keeps the old centroid.
    Rows opposite;
    for (int i = 0; i < 50; ++i)
        opposite.insert(opposite.end(), {1.0, 0.0, -1.0, 0.0});
    to.add("cosine_zero_mean", opposite, 2, 2, {.start = {0.0, 1.0, 0.6, -0.8}, .metric = PGKM_COSINE});
}

void add_groups(Collection &to)
{
    Generator random(7);
    const auto unequal = [](std::vector<std::pair<std::int64_t, std::int32_t>> sizes) {
        std::vector<Group> groups;
        std::int64_t first = 0;
        for (const auto &[n, k] : sizes) {
            groups.push_back({first, n, k});
            first += n;
        }
        return groups;
    };
    const auto few = unequal({{1, 1}, {2, 2}, {7, 3}, {1009, 11}, {64, 8}, {3, 3}, {500, 1}, {33, 33}});
    to.add("groups", random.blobs(1619, 3, 30), 3, 0, {.groups = few});
    to.add("groups_weighted", random.blobs(1619, 6, 30), 6, 0,
           {.weights = random.weights(1619, -12, 3), .groups = few});
    // Not in row order, and rows between them that belong to no group.
    to.add("groups_with_gaps", mixed_magnitudes(random, 1200, 4), 4, 0,
           {.groups = {{700, 301, 7}, {10, 100, 5}, {150, 1, 1}, {1100, 99, 4}}});
    std::vector<std::pair<std::int64_t, std::int32_t>> many;
    std::int64_t rows = 0;
    for (int i = 0; i < 150; ++i) {
        many.emplace_back(1 + random.below(20), 1 + static_cast<std::int32_t>(random.below(4)));
        rows += many.back().first;
    }
    for (auto &[n, k] : many)
        k = static_cast<std::int32_t>(std::min<std::int64_t>(n, k));
    to.add("groups_150", random.blobs(rows, 2, 30), 2, 0, {.groups = unequal(many)});
}

} // namespace

std::int64_t Case::work() const
{
    std::int64_t sum = 0;
    for (const Group &group : groups)
        sum += group.n * group.k * d;
    return sum;
}

PgkmPoints Case::points() const
{
    return {values.data(), element, n, d, weights.empty() ? nullptr : weights.data()};
}

std::int64_t Case::centroid_offset(std::size_t group) const
{
    std::int64_t offset = 0;
    for (std::size_t g = 0; g < group; ++g)
        offset += groups[g].k;
    return offset;
}

const std::vector<Case> &all_cases()
{
    static const std::vector<Case> cases = [] {
        Collection collection;
        add_shapes(collection);
        add_ties(collection);
        add_weights(collection);
        add_empty_clusters(collection);
        add_groups(collection);
        add_cosine(collection);
        collection.change_magnitudes();
        add_magnitudes(collection);
        add_offsets(collection);
        return collection.take();
    }();
    return cases;
}

const Case &case_named(std::string_view name)
{
    for (const Case &candidate : all_cases())
        if (candidate.name == name)
            return candidate;
    throw std::out_of_range("no case " + std::string(name));
}

} // namespace conformance

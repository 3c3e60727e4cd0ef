// Metric hamming: rows of bits beside plain counts, and beside the same rows as float32.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/call_table.hpp"
#include "cpu/cpu_backend.hpp"
#include "draws.hpp"
#include "fit_run.hpp"
#include "numeric/bit_rows.hpp"

namespace pgkm {
namespace {

// Rows of 0 and 1 near some centres, in three forms.
struct Rows {
    Rows(std::int64_t rows, std::int32_t features, std::uint64_t seed) : n(rows), d(features)
    {
        Draws draws(seed);
        std::vector<float> centres(static_cast<std::size_t>(5 * d));
        for (float &bit : centres)
            bit = draws.uniform() < 0.5 ? 1.0f : 0.0f;
        for (std::int64_t i = 0; i < n; ++i) {
            const auto centre = static_cast<std::int64_t>(draws.uniform() * 5.0);
            for (std::int32_t f = 0; f < d; ++f) {
                const bool turned = draws.uniform() < 0.2;
                values.push_back((centres[static_cast<std::size_t>(centre * d + f)] != 0.0f) != turned ? 1.0f : 0.0f);
            }
            weights.push_back(0.1 + draws.uniform());
        }
        words.resize(static_cast<std::size_t>(n * bit_words(d)));
        for (std::int64_t i = 0; i < n; ++i)
            bits_of_values(values.data() + i * d, d, words.data() + i * bit_words(d));
    }
    PgkmPoints bits(bool weighted) const { return {words.data(), PGKM_BIT, n, d, weighted ? weights.data() : nullptr}; }
    PgkmPoints floats(bool weighted) const
    {
        return {values.data(), PGKM_FLOAT32, n, d, weighted ? weights.data() : nullptr};
    }
    std::int32_t distance(std::int64_t row, const double *centroid) const
    {
        std::int32_t count = 0;
        for (std::int32_t f = 0; f < d; ++f)
            count += values[static_cast<std::size_t>(row * d + f)] != static_cast<float>(centroid[f]) ? 1 : 0;
        return count;
    }

    std::int64_t n;
    std::int32_t d;
    std::vector<float> values;
    std::vector<double> weights;
    std::vector<BitWord> words;
};

PgkmRequest request_of(const PgkmPoints &points, std::int64_t k)
{
    PgkmRequest request = {};
    request.points = points;
    request.k = k;
    pgkm_options_default(&request.kmeans);
    request.kmeans.metric = points.element == PGKM_BIT ? PGKM_HAMMING : PGKM_L2;
    request.settings.backend = PGKM_BACKEND_CPU;
    request.want_labels = request.want_distances = 1;
    return request;
}

TEST(Hamming, PlacesOfBits)
{
    const unsigned char bytes[16] = {0x80, 0x01, 0, 0, 0, 0, 0, 0, 0x40};
    BitWord row[2];
    std::copy_n(bytes, 16, reinterpret_cast<unsigned char *>(row));
    for (int f = 0; f < 128; ++f)
        EXPECT_EQ(bit_of(row, f), f == 0 || f == 15 || f == 65) << f;
    float values[100];
    values_of_bits(row, 100, values);
    EXPECT_EQ(std::count(values, values + 100, 1.0f), 3);
    EXPECT_EQ(pgkm_row_bytes(PGKM_BIT, 64), 8u);
    EXPECT_EQ(pgkm_row_bytes(PGKM_BIT, 65), 16u);
}

// First centroids, seen by a cluster for each row or by no more than they: in the order in which they were drawn.
TEST(Hamming, SeedsAreThoseOfFloats)
{
    for (const std::int32_t d : {3, 40, 64, 65, 200, 700})
        for (const bool weighted : {false, true})
            for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_RANDOM, PGKM_INIT_FIRST})
                for (const std::int32_t k : {1, 7, 60}) {
                    const Rows rows(500, d, 11);
                    std::vector<float> centroids[2];
                    std::int32_t found[2];
                    for (const int bits : {0, 1}) {
                        PgkmOpen open = {};
                        open.struct_size = sizeof open;
                        open.threads = 2;
                        PgkmContext *context = nullptr;
                        PgkmData *data = nullptr;
                        PgkmError error;
                        const PgkmBackend &cpu = *cpu_backend();
                        const PgkmPoints points = bits != 0 ? rows.bits(weighted) : rows.floats(weighted);
                        ASSERT_EQ(cpu.open(&open, &context, &error), PGKM_OK);
                        ASSERT_EQ(cpu.load(context, &points, &data, &error), PGKM_OK);
                        centroids[bits].assign(static_cast<std::size_t>(k * d), 0.0f);
                        PgkmProblem problem = {};
                        problem.n_rows = rows.n;
                        problem.k = k;
                        problem.centroids = centroids[bits].data();
                        problem.weight_exponent = weighted ? scale_exponent(1.1) : 0;
                        const PgkmSeedParams params = {init, 5, 1, 0};
                        ASSERT_EQ(cpu.seed(data, &problem, 1, &params, &error), PGKM_OK) << error.text;
                        found[bits] = problem.k;
                        cpu.unload(data);
                        cpu.close(context);
                    }
                    EXPECT_EQ(found[0], found[1]);
                    EXPECT_EQ(centroids[0], centroids[1]) << d << ' ' << weighted << ' ' << init << ' ' << k;
                }
}

// A fit that has come to rest: nearest centroids, majorities, and sums of distances, by plain counts.
TEST(Hamming, ModelsAreAtRest)
{
    for (const std::int32_t d : {1, 63, 64, 129, 513})
        for (const bool weighted : {false, true}) {
            const Rows rows(3000, d, 3);
            PgkmRequest request = request_of(rows.bits(weighted), 12);
            request.kmeans.tol = 0.0;
            const FitRun run(request);
            ASSERT_STREQ(run.error.text, "");
            const PgkmResult &found = run.result;
            ASSERT_TRUE(found.converged != 0);
            std::vector<double> masses(static_cast<std::size_t>(found.k), 0.0), ones(masses.size() * d, 0.0);
            double inertia = 0.0;
            for (std::int64_t i = 0; i < rows.n; ++i) {
                std::int32_t label = 0;
                for (std::int32_t j = 1; j < found.k; ++j)
                    if (rows.distance(i, found.centroids + j * d) < rows.distance(i, found.centroids + label * d))
                        label = j;
                ASSERT_EQ(found.labels[i], label);
                ASSERT_EQ(found.distances[i], rows.distance(i, found.centroids + label * d));
                const double weight = weighted ? rows.weights[static_cast<std::size_t>(i)] : 1.0;
                inertia += weight * found.distances[i];
                masses[static_cast<std::size_t>(label)] += weight;
                for (std::int32_t f = 0; f < d; ++f)
                    ones[static_cast<std::size_t>(label * d + f)] +=
                        weight * rows.values[static_cast<std::size_t>(i * d + f)];
            }
            EXPECT_NEAR(found.inertia, inertia, 1e-9 * inertia);
            for (std::int32_t j = 0; j < found.k; ++j)
                for (std::int32_t f = 0; f < d; ++f)
                    ASSERT_EQ(found.centroids[j * d + f],
                              2.0 * ones[static_cast<std::size_t>(j * d + f)] > masses[static_cast<std::size_t>(j)]
                                  ? 1.0
                                  : 0.0);
        }
}

// Neither threads, instructions nor the order of rows matter.
TEST(Hamming, SameEverywhere)
{
    const Rows rows(5000, 300, 9);
    Rows turned = rows;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        const std::int64_t from = rows.n - 1 - i, words = bit_words(rows.d);
        std::copy_n(rows.words.data() + from * words, words, turned.words.data() + i * words);
        turned.weights[static_cast<std::size_t>(i)] = rows.weights[static_cast<std::size_t>(from)];
    }
    const FitRun first(request_of(rows.bits(true), 40));
    for (const char *set : {"scalar", static_cast<const char *>(nullptr)})
        for (const std::int32_t threads : {1, 4})
            for (const Rows *each : {&rows, static_cast<const Rows *>(&turned)}) {
                PgkmRequest request = request_of(each->bits(true), 40);
                request.settings.cpu_threads = threads;
                request.settings.tuning.instruction_set = set;
                const FitRun run(request);
                ASSERT_EQ(run.result.k, first.result.k);
                EXPECT_EQ(run.result.n_iter, first.result.n_iter);
                EXPECT_EQ(run.result.inertia, first.result.inertia);
                EXPECT_TRUE(std::equal(run.result.centroids, run.result.centroids + run.result.k * rows.d,
                                       first.result.centroids));
            }
}

// First centroids far from all rows, of which all choose one: the others get the rows that lie farthest.
TEST(Hamming, EmptyClustersGetRows)
{
    const Rows rows(200, 70, 21);
    std::vector<double> given(4 * 70, 1.0);
    std::fill(given.begin(), given.begin() + 70, 0.0);
    PgkmRequest request = request_of(rows.bits(false), 4);
    request.kmeans.init_centroids = {given.data(), 2, {4, 70}};
    const FitRun run(request);
    ASSERT_EQ(run.result.k, 4);
    for (std::int32_t j = 0; j < 4; ++j)
        EXPECT_GT(run.result.sizes[j], 0);
}

TEST(Hamming, RefusesWhatIsNotForBits)
{
    const Rows rows(50, 9, 2);
    const auto text = [](const PgkmRequest &request) { return std::string(FitRun(request).error.text); };
    PgkmRequest request = request_of(rows.bits(false), 2);
    EXPECT_EQ(text(request), "");
    request.kmeans.metric = PGKM_L2;
    EXPECT_EQ(text(request), "bits are features of metric hamming, which has no others");
    request = request_of(rows.floats(false), 2);
    request.kmeans.metric = PGKM_HAMMING;
    EXPECT_EQ(text(request), "bits are features of metric hamming, which has no others");
    request = request_of(rows.bits(false), 2);
    request.kmeans.refine = 1;
    EXPECT_EQ(text(request), "option refine is not for metric hamming");
    request = request_of(rows.bits(false), 2);
    request.k_last = 4;
    EXPECT_EQ(text(request), "sweeps are not for metric hamming");
    request = request_of(rows.bits(false), 2);
    request.algorithm = PGKM_TREE;
    EXPECT_EQ(text(request), "bits are features of k-means with metric hamming alone");
}

} // namespace
} // namespace pgkm

// Models side by side give back what was put in.
#include <gtest/gtest.h>

#include "engine/kmeans/packed_models.hpp"

namespace pgkm {
namespace {

Model model_of(std::int32_t k, std::int32_t d, double first, bool standardized)
{
    Model model;
    model.k = k;
    model.d = d;
    model.n = 10 * k;
    for (std::int32_t i = 0; i < k * d; ++i)
        model.centroids.push_back(first++);
    for (std::int32_t j = 0; j < k; ++j) {
        model.within_ss.push_back(first++);
        model.sizes.push_back(static_cast<std::int64_t>(first++));
    }
    for (std::int32_t f = 0; f < d && standardized; ++f) {
        model.center.push_back(first++);
        model.scale.push_back(first++);
    }
    for (std::int32_t f = 0; f < d && !standardized && k % 2 == 0; ++f) {
        model.mean.push_back(first++);
        model.deviation.push_back(first++);
    }
    model.inertia = first++;
    model.n_iter = k + 1;
    model.converged = k % 2 == 0;
    return model;
}

std::vector<double> copy(const double *values, std::int64_t count)
{
    return values == nullptr ? std::vector<double>{} : std::vector<double>(values, values + count);
}

TEST(PackedModels, GiveBackWhatWasPutIn)
{
    PackedModels packed;
    std::vector<Model> models;
    for (std::int32_t i = 0; i < 50; ++i) {
        models.push_back(model_of(1 + i % 7, 3, 100.0 * i, i % 3 == 0));
        packed.add(models.back());
    }
    ASSERT_EQ(packed.size(), 50);
    for (std::int64_t i = 0; i < packed.size(); ++i) {
        const Model &wanted = models[static_cast<std::size_t>(i)];
        PgkmResult result = {}, direct = {};
        packed.get(i, &result);
        describe(wanted, &direct);
        for (const PgkmResult &one : {result, direct}) {
            EXPECT_EQ(one.k, wanted.k);
            EXPECT_EQ(one.d, wanted.d);
            EXPECT_EQ(one.n, wanted.n);
            EXPECT_EQ(one.inertia, wanted.inertia);
            EXPECT_EQ(one.n_iter, wanted.n_iter);
            EXPECT_EQ(one.converged != 0, wanted.converged);
            EXPECT_EQ(copy(one.centroids, wanted.k * wanted.d), wanted.centroids);
            EXPECT_EQ(copy(one.within_ss, wanted.k), wanted.within_ss);
            EXPECT_EQ(std::vector<std::int64_t>(one.sizes, one.sizes + wanted.k), wanted.sizes);
            EXPECT_EQ(copy(one.center, wanted.d), wanted.center);
            EXPECT_EQ(copy(one.feature_means, wanted.d), wanted.mean);
            EXPECT_EQ(copy(one.feature_deviations, wanted.d), wanted.deviation);
            EXPECT_EQ(copy(one.scale, wanted.d), wanted.scale);
            EXPECT_EQ(one.labels, nullptr);
            EXPECT_EQ(one.distances, nullptr);
        }
    }
}

} // namespace
} // namespace pgkm

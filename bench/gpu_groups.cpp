// gpu_groups.cpp - many problems at once against one of the same total size: seeding, fit and
// assignment of 10,000 groups of 1,000 x 8, k = 8, and of one problem of 10,000,000 x 8.
//
//   gpu_groups PLUGIN
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/contract.hpp"
#include "backend/backend.h"

namespace {

double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run(const PgkmBackend *backend, PgkmData *data, std::int64_t groups, std::int64_t n, int d, int k)
{
    std::vector<float> centroids(static_cast<std::size_t>(groups * k * d));
    std::vector<std::int32_t> exponents(static_cast<std::size_t>(d), pgkm::scale_exponent(64.0));
    std::vector<PgkmProblem> problems(static_cast<std::size_t>(groups));
    for (std::int64_t g = 0; g < groups; ++g)
        problems[static_cast<std::size_t>(g)] = {g * (n / groups), n / groups, k, centroids.data() + g * k * d,
                                                 exponents.data(), 0, 30, 0.0, 0, 0, 0.0};
    PgkmError error{};
    const PgkmSeedParams seed = {PGKM_INIT_KMEANS_PLUS_PLUS, 1, 0};
    const PgkmFitParams fit = {PGKM_L2, 20};
    std::vector<PgkmAssignment> out(problems.size());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
    for (std::size_t g = 0; g < out.size(); ++g) {
        out[g] = {};
        out[g].labels = labels.data() + problems[g].first_row;
    }
    for (int repeat = 0; repeat < 2; ++repeat) {
        for (PgkmProblem &problem : problems)
            problem.k = k;
        const double start = seconds();
        PgkmStatus status = backend->seed(data, problems.data(), groups, &seed, &error);
        const double seeded = seconds();
        if (status == PGKM_OK)
            status = backend->fit(data, problems.data(), groups, &fit, &error);
        const double fitted = seconds();
        if (status == PGKM_OK)
            status = backend->assign(data, problems.data(), groups, out.data(), &error);
        const double end = seconds();
        std::int64_t iterations = 0;
        for (const PgkmProblem &problem : problems)
            iterations += problem.n_iter;
        std::printf("%lld groups: seed %.1f ms, fit %.1f ms (%.1f iterations each), assign %.1f ms %s\n",
                    static_cast<long long>(groups), (seeded - start) * 1e3, (fitted - seeded) * 1e3,
                    static_cast<double>(iterations) / static_cast<double>(groups), (end - fitted) * 1e3, error.text);
    }
}

} // namespace

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library == nullptr)
        return 2;
    using Entry = const PgkmBackend *(*)(std::uint32_t);
    const PgkmBackend *backend = reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY))(PGKM_BACKEND_ABI);
    const std::int64_t n = 10000000;
    const int d = 8, k = 8;
    std::vector<float> values(static_cast<std::size_t>(n * d));
    std::minstd_rand random(1);
    for (float &value : values)
        value = static_cast<float>(random() % 65536) * 0x1p-12f + static_cast<float>(random() % 4) * 8.0f;
    const PgkmPoints points = {values.data(), PGKM_FLOAT32, n, d, nullptr};
    PgkmOpen open{};
    open.struct_size = sizeof open;
    open.device = -1;
    PgkmError error{};
    PgkmContext *context = nullptr;
    PgkmData *data = nullptr;
    if (backend->open(&open, &context, &error) != PGKM_OK || backend->load(context, &points, &data, &error) != PGKM_OK) {
        std::printf("%s\n", error.text);
        return 1;
    }
    run(backend, data, 10000, n, d, k);
    run(backend, data, 1, n, d, k);
    backend->unload(data);
    backend->close(context);
    return 0;
}

// gpu.cu - what one iteration costs on the GPU: the shapes of the design's table, float32 rows
// on the device, blobs (10 centres uniform in [-100, 100] per coordinate, normal spread of
// 10 / sqrt(d)), initial centroids k random rows. CSV: median over iterations by CUDA events.
//
//   gpu [auto|all] [row ...]      auto: the chosen strategies only; all: each by itself too
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "job.hpp"

namespace {

using namespace pgkm;
using namespace pgkm::cuda;

struct Row {
    std::int64_t n;
    int          d, k;
    double       limit_ms, flash_ms, goal_ms;
};

constexpr Row rows[] = {
    {134217728, 4, 4, 0.47, 11.76, 0.60},   {134217728, 4, 64, 1.1, 14.57, 2.2}, {8388608, 64, 4, 0.47, 1.71, 0.60},
    {8388608, 64, 64, 0.47, 1.84, 1.2},     {4000000, 2, 400, 0.11, 2.11, 0.30}, {4000000, 8, 100, 0.11, 0.82, 0.25},
    {51200, 34, 32, 0.002, 0.305, 0.015},   {494080, 34, 32, 0.018, 0.346, 0.05}, {4500000, 41, 64, 0.39, 1.73, 0.60},
    {580000, 54, 64, 0.066, 0.38, 0.12},    {65536, 32, 16, 0.002, 0.34, 0.012}, {1000000, 128, 1024, 0.7, 1.65, 1.3},
    {10000000, 128, 4096, 13, 48.7, 35},    {1000000, 768, 1024, 2.0, 20.2, 6},
};

__device__ float uniform(std::uint64_t key)
{
    key = (key ^ (key >> 31)) * 0x7fb5d329728ea185ULL;
    key = (key ^ (key >> 27)) * 0x81dadef4bc2dd44dULL;
    key ^= key >> 33;
    return (static_cast<float>(key >> 40) + 0.5f) * 0x1p-24f;
}

__global__ void blobs_kernel(float *values, std::int64_t n, int d)
{
    const float spread = 10.0f / sqrtf(static_cast<float>(d));
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n * d;
         i += std::int64_t{gridDim.x} * blockDim.x) {
        const std::int64_t row = i / d;
        const int blob = static_cast<int>(uniform(static_cast<std::uint64_t>(row) * 77 + 1) * 10.0f);
        const float centre = 200.0f * uniform(0x123456789ULL + static_cast<std::uint64_t>(blob) * 65536 + static_cast<std::uint64_t>(i - row * d)) - 100.0f;
        const float u = uniform(static_cast<std::uint64_t>(i) * 2 + 0x9999999999ULL);
        const float v = uniform(static_cast<std::uint64_t>(i) * 2 + 0xABCDEF012345ULL + 1);
        values[i] = centre + spread * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
    }
}

double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times.empty() ? -1.0 : times[times.size() / 2];
}

struct Timed {
    double iteration = -1; // pass and update, by events
    double loop = -1;      // an iteration inside the device's own loop, by the wall clock
};

struct Setup {
    Context            context;
    Data               data;
    std::vector<float> start;
    std::vector<float> copy; // on the host, for relocation in loop()
    std::vector<std::int32_t> exponents;
    PgkmProblem        problem{};

    Setup(const Row &row) : context(options()), data(context, PgkmPoints{nullptr, PGKM_FLOAT32, 0, row.d, nullptr})
    {
        data.values = DeviceArray<char>(context.budget, static_cast<std::size_t>(row.n) * static_cast<std::size_t>(row.d) * 4);
        data.host.n = row.n;
        data.resident = true;
        auto *values = reinterpret_cast<float *>(data.values.get());
        blobs_kernel<<<4096, 256, 0, context.compute.get()>>>(values, row.n, row.d);
        launched("blobs_kernel");
        start.resize(static_cast<std::size_t>(row.k) * static_cast<std::size_t>(row.d));
        for (int j = 0; j < row.k; ++j) {
            const std::int64_t pick = static_cast<std::int64_t>((static_cast<unsigned __int128>(j) * 0x9E3779B97F4A7C15ULL + 12345) % static_cast<unsigned __int128>(row.n));
            checked("cudaMemcpyAsync", [&] {
                return cudaMemcpyAsync(start.data() + static_cast<std::size_t>(j) * static_cast<std::size_t>(row.d), values + pick * row.d,
                                       static_cast<std::size_t>(row.d) * 4, cudaMemcpyDeviceToHost, context.compute.get());
            });
        }
        context.wait(context.compute.get());
        if (row.n * row.d < 40000000) {
            copy.resize(static_cast<std::size_t>(row.n) * static_cast<std::size_t>(row.d));
            check(cudaMemcpy(copy.data(), values, copy.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
            data.host.values = copy.data();
        }
        exponents.assign(static_cast<std::size_t>(row.d), scale_exponent(300.0));
        problem = {0, row.n, row.k, start.data(), exponents.data(), 0, 0, -1.0, 0, 0, 0.0};
    }

    static PgkmOpen options()
    {
        PgkmOpen open{};
        open.struct_size = sizeof open;
        open.device = -1;
        return open;
    }

    Timed time(const Forced &forced, int repeats)
    {
        context.forced = forced;
        Timed timed;
        {
            Job<float> job(data, problem);
            const PgkmFitParams params = {PGKM_L2, 1 << 30};
            const UpdateArguments<float> arguments = job.update_arguments(&params, nullptr);
            const Control fresh = {running, 0, 1 << 30, 0, -1.0, 0.0, 0, 0};
            cudaEvent_t from, to;
            check(cudaEventCreate(&from), "event");
            check(cudaEventCreate(&to), "event");
            std::vector<double> times;
            job.control.upload(&fresh, 1, job.stream());
            for (int i = 0; i < repeats; ++i) {
                Control seen{};
                job.control.download(&seen, 1, job.stream());
                context.wait(job.stream());
                if (i % 8 == 0 || seen.stop != running) {
                    job.control.upload(&fresh, 1, job.stream());
                    job.upload_centroids(start.data(), &params);
                }
                context.wait(job.stream());
                check(cudaEventRecord(from, job.stream()), "record");
                job.pass(job.view(reinterpret_cast<const float *>(data.values.get()), nullptr, problem.n_rows), job.control.get());
                update(arguments, job.stream());
                job.prepare_tiles(job.control.get());
                check(cudaEventRecord(to, job.stream()), "record");
                context.wait(job.stream());
                float ms = 0.0f;
                check(cudaEventElapsedTime(&ms, from, to), "elapsed");
                if (i > 0)
                    times.push_back(static_cast<double>(ms));
            }
            timed.iteration = median(times);
            cudaEventDestroy(from);
            cudaEventDestroy(to);
        }
        return timed;
    }

    // Two fits of different lengths: their difference is free of set-up costs.
    double loop(const Forced &forced)
    {
        context.forced = forced;
        std::vector<double> times;
        for (int repeat = 0; repeat < 5; ++repeat) {
            double seconds[2];
            int    iterations[2];
            for (int i = 0; i < 2; ++i) {
                std::vector<float> centroids = start;
                PgkmProblem run = problem;
                run.centroids = centroids.data();
                const PgkmFitParams params = {PGKM_L2, i == 0 ? 3 : 43};
                const auto begin = std::chrono::steady_clock::now();
                try {
                    fit_problem<float>(data, run, 0, params);
                } catch (const Error &) {
                    return -1;
                }
                seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                iterations[i] = run.n_iter;
            }
            if (iterations[1] > iterations[0])
                times.push_back((seconds[1] - seconds[0]) * 1e3 / (iterations[1] - iterations[0]));
        }
        return median(times);
    }
};

const char *const assignments[] = {"auto", "register", "register_constant", "register_shared", "register_global", "generic", "generic_constant", "tiled", "tensor_core"};
const char *const executions[] = {"auto", "cross_processing", "multi_pass", "single_pass"};
const char *const features[] = {"auto", "cluster_merge", "partitioned_features", "ballot", "divide_and_conquer", "atomic", "sorted"};
const char *const masses[] = {"auto", "global_atomic", "partitioned_global", "partitioned_local", "partitioned_private"};

void bench_row(const Row &row, bool all)
{
    Setup setup(row);
    const double bytes_ms = static_cast<double>(row.n) * row.d * 4 / 4.56e9;
    const double tuned = setup.time({}, 25).iteration;
    const double loop = row.n * row.d < 40000000 ? setup.loop({}) : -1;
    std::printf("%lld x %d, %d: limit %.3f flash %.3f goal %.3f | auto %.4f ms (x %.2f of limit, bytes %.3f)  loop %.4f %s\n",
                static_cast<long long>(row.n), row.d, row.k, row.limit_ms, row.flash_ms, row.goal_ms, tuned, tuned / row.limit_ms,
                bytes_ms, loop, (loop > 0 ? std::min(loop, tuned) : tuned) <= row.goal_ms ? "GOAL" : "miss");
    std::fflush(stdout);
    if (!all)
        return;
    const auto strategy = [&](const char *stage, const char *name, const Forced &forced) {
        std::printf("   %-12s %-22s %.4f ms\n", stage, name, setup.time(forced, 5).iteration);
        std::fflush(stdout);
    };
    for (int i = 1; i <= 8; ++i)
        strategy("assignment", assignments[i], {.assignment = static_cast<Assignment>(i)});
    strategy("execution", executions[2], {.execution = Execution::multi_pass});
    for (int i = 1; i <= 6; ++i)
        strategy("feature_sum", features[i], {.feature_sum = static_cast<FeatureSum>(i)});
    for (int i = 1; i <= 4; ++i)
        strategy("mass_sum", masses[i], {.mass_sum = static_cast<MassSum>(i)});
}

} // namespace

int main(int argc, char **argv)
{
    const bool all = argc > 1 && std::strcmp(argv[1], "all") == 0;
    const int count = static_cast<int>(std::size(rows));
    for (int i = 0; i < count; ++i) {
        bool wanted = argc <= 2;
        for (int a = 2; a < argc; ++a)
            wanted |= std::atoi(argv[a]) == i;
        if (!wanted)
            continue;
        try {
            bench_row(rows[i], all);
        } catch (const Error &error) {
            std::printf("row %d: %s\n", i, error.what());
        }
    }
    return 0;
}

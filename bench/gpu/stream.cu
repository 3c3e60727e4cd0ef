// stream.cu - how fast rows that do not fit the device's limit are iterated over, against plain
// copies of as much page-locked memory to the device.
#include <cstdio>
#include <thread>

#include "session.hpp"

namespace bench {
namespace {

// Bytes per second of copies in pieces of `piece` bytes, two buffers in turn.
double copy_rate(const char *from, std::size_t bytes, std::size_t piece)
{
    Context context(plain_options());
    DeviceArray<char> buffers[2] = {{context.budget, piece}, {context.budget, piece}};
    check(cudaHostRegister(const_cast<char *>(from), bytes, cudaHostRegisterReadOnly), "cudaHostRegister");
    std::vector<double> times;
    for (int repeat = 0; repeat < 4; ++repeat)
        times.push_back(time_ms(context, [&] {
            for (std::size_t done = 0, i = 0; done < bytes; done += piece, ++i)
                buffers[i % 2].upload(from + done, std::min(piece, bytes - done), context.compute.get());
        }));
    cudaHostUnregister(const_cast<char *>(from));
    return static_cast<double>(bytes) / median(times) * 1e3;
}

void bench_shape(std::int64_t n, int d, int k, std::uint64_t limit)
{
    const std::vector<float> rows = host_rows(n, d);
    const std::size_t bytes = rows.size() * 4;
    const double plain = copy_rate(reinterpret_cast<const char *>(rows.data()), bytes, std::size_t{64} << 20);
    const double begin = seconds();
    Session session({rows.data(), PGKM_FLOAT32, n, d, nullptr}, limit);
    const double loaded = seconds();
    const std::vector<PgkmFeatureScale> scales(static_cast<std::size_t>(d), sum_scale(-64.0, 64.0, 1.0));
    const auto fit = [&](int iterations) {
        std::vector<float> centroids(rows.begin(), rows.begin() + static_cast<long>(k) * d);
        PgkmProblem problem = {0, n, k, centroids.data(), scales.data(), 0, 0, -1.0, nullptr, 0, 0, 0.0, 0};
        const PgkmFitParams params = {PGKM_L2, iterations};
        const double start = seconds();
        require(session.table->fit(session.data, &problem, 1, &params, &session.error), session.error);
        return seconds() - start;
    };
    fit(1);
    constexpr int few = 2, many = 8;
    std::vector<double> times;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const double shorter = fit(few);
        times.push_back((fit(many) - shorter) / (many - few));
    }
    const double rate = static_cast<double>(bytes) / median(times);
    std::printf("%lld,%d,%d,%.2f,%.2f,%.2f,%.3f,%.2f,%.2f,%.3f,%s\n", static_cast<long long>(n), d, k,
                static_cast<double>(bytes) * 1e-9, static_cast<double>(limit) * 1e-9, loaded - begin, median(times),
                plain * 1e-9, rate * 1e-9, rate / plain, rate >= 0.9 * plain ? "yes" : "no");
    std::fflush(stdout);
}

} // namespace

std::vector<float> host_rows(std::int64_t n, int d)
{
    std::vector<float> rows(static_cast<std::size_t>(n) * static_cast<std::size_t>(d));
    const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned part = 0; part < parts; ++part)
        threads.emplace_back([&rows, part, parts] {
            std::uint64_t state = 0x9E3779B97F4A7C15ULL * (part + 1);
            for (std::size_t i = rows.size() * part / parts; i < rows.size() * (part + 1) / parts; ++i) {
                state = state * 6364136223846793005ULL + 1442695040888963407ULL;
                rows[i] = static_cast<float>(state >> 48) * 0x1p-12f + static_cast<float>((state >> 40) & 3) * 8.0f;
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    return rows;
}

void stream()
{
    std::printf("n,d,k,gigabytes,limit_gigabytes,load_s,iteration_s,copies_gb_s,iteration_gb_s,ratio,goal_reached\n");
    bench_shape(67108864, 16, 16, std::uint64_t{1} << 30);
    bench_shape(134217728, 4, 4, std::uint64_t{1} << 30);
    bench_shape(16777216, 64, 64, std::uint64_t{1} << 30);
    bench_shape(16777216, 64, 64, std::uint64_t{64} << 20);
}

} // namespace bench

// moments.cu - what the sums of a PCA take on rows that lie on the device, and how far they are from
// the reading of the rows and from what the matrix units can do.
#include <cstdio>
#include <limits>

#include "plugin/operations.hpp"
#include "session.hpp"

namespace bench {
namespace {

// Uniform in [-1, 1) around an offset that differs by feature.
template <typename T>
__global__ void uniform_kernel(T *values, std::int64_t count, int d)
{
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
        unsigned long long x = static_cast<unsigned long long>(i) * 0x9E3779B97F4A7C15ULL;
        x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
        x ^= x >> 32;
        values[i] = static_cast<T>(static_cast<double>(x >> 11) * 0x1p-52 - 1.0 + static_cast<double>(i % d) * 0.125);
    }
}

// Every 16 bytes once, so that the time is that of the memory alone.
__global__ void read_kernel(const uint4 *values, std::int64_t count, unsigned *out)
{
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
    unsigned sum = 0;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += 4 * step) {
        uint4 x[4] = {};
        for (int j = 0; j < 4; ++j)
            if (i + j * step < count)
                x[j] = values[i + j * step];
        for (int j = 0; j < 4; ++j)
            sum ^= x[j].x ^ x[j].y ^ x[j].z ^ x[j].w;
    }
    if (sum == 0x12345678u)
        *out = sum;
}

template <typename Body>
double median_of(Context &context, int repeats, Body &&body)
{
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i)
        times.push_back(time_ms(context, body));
    times.erase(times.begin()); // the first makes the workspace
    return median(times);
}

template <typename T>
void bench_shape(std::int64_t n, int d)
{
    Context context(plain_options());
    Data data(context, {nullptr, sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, 0, d, nullptr});
    const std::int64_t count = n * d;
    data.values = DeviceArray<char>(context.budget, static_cast<std::size_t>(count) * sizeof(T));
    data.host.n = n;
    data.resident = true;
    enqueue(uniform_kernel<T>, 4096, 256, 0, context.compute.get(), reinterpret_cast<T *>(data.values.get()), count, d);
    std::vector<double> shift(static_cast<std::size_t>(d)), sums(shift.size()),
        cross(shift.size() * (shift.size() + 1) / 2);
    for (int f = 0; f < d; ++f)
        shift[static_cast<std::size_t>(f)] = f * 0.125;
    PgkmProblem problem{};
    problem.n_rows = n;
    PgkmMoments moments = {shift.data(), sums.data(), cross.data(), 0.0};
    const double ms = median_of(context, 10, [&] { sum_moments<T>(data, &problem, 1, &moments); });
    DeviceArray<unsigned> out(context.budget, 1);
    const double read = median_of(context, 10, [&] {
        enqueue(read_kernel, 132 * 16, 512, 0, context.compute.get(),
                reinterpret_cast<const uint4 *>(data.values.get()), count * static_cast<std::int64_t>(sizeof(T)) / 16,
                out.get());
    });
    // Two operations for each pair of features on or below the diagonal.
    const double flops = static_cast<double>(n) * d * (d + 1.0);
    std::printf("%lld,%d,%s,%.3f,%.3f,%.2f,%.1f,%.9g\n", static_cast<long long>(n), d,
                sizeof(T) == 4 ? "float32" : "float64", ms, read, ms / read, flops / ms * 1e-9,
                cross.back() / static_cast<double>(n));
    std::fflush(stdout);
}

} // namespace

void moments()
{
    std::printf("n,d,type,ms,read_ms,ratio,tflops,last_variance\n");
    bench_shape<float>(10000000, 128);
    bench_shape<float>(262144, 80);
    bench_shape<float>(10000000, 16);
    bench_shape<float>(10000000, 64);
    bench_shape<float>(1000000, 768);
    bench_shape<float>(200000, 2048);
    bench_shape<float>(100000, 4096);
    bench_shape<double>(10000000, 128);
    bench_shape<double>(262144, 80);
    bench_shape<double>(1000000, 768);
    bench_shape<double>(200000, 2048);
}

} // namespace bench

#include "bench.hpp"

#include <chrono>

namespace bench {
namespace {

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
        const auto blob = static_cast<std::uint64_t>(uniform(static_cast<std::uint64_t>(row) * 77 + 1) * 10.0f);
        const float centre =
            200.0f * uniform(0x123456789ULL + blob * 65536 + static_cast<std::uint64_t>(i - row * d)) - 100.0f;
        const float u = uniform(static_cast<std::uint64_t>(i) * 2 + 0x9999999999ULL);
        const float v = uniform(static_cast<std::uint64_t>(i) * 2 + 0xABCDEF012345ULL + 1);
        values[i] = centre + spread * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
    }
}

PgkmOpen options()
{
    PgkmOpen open{};
    open.struct_size = sizeof open;
    open.device = -1;
    return open;
}

} // namespace

double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times.empty() ? -1.0 : times[times.size() / 2];
}

Timer::Timer(cudaStream_t stream) : stream_(stream)
{
    check(cudaEventCreate(&from_), "cudaEventCreate");
    check(cudaEventCreate(&to_), "cudaEventCreate");
}

Timer::~Timer()
{
    cudaEventDestroy(from_);
    cudaEventDestroy(to_);
}

void Timer::start() { check(cudaEventRecord(from_, stream_), "cudaEventRecord"); }

double Timer::stop(Context &context)
{
    check(cudaEventRecord(to_, stream_), "cudaEventRecord");
    context.wait(stream_);
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, from_, to_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
}

Setup::Setup(const Row &row) : context(options()), data(context, PgkmPoints{nullptr, PGKM_FLOAT32, 0, row.d, nullptr})
{
    const auto d = static_cast<std::size_t>(row.d), n = static_cast<std::size_t>(row.n);
    data.values = DeviceArray<char>(context.budget, n * d * 4);
    data.host.n = row.n;
    data.resident = true;
    auto *rows = reinterpret_cast<float *>(data.values.get());
    blobs_kernel<<<4096, 256, 0, context.compute.get()>>>(rows, row.n, row.d);
    launched("blobs_kernel");
    start.resize(static_cast<std::size_t>(row.k) * d);
    for (int j = 0; j < row.k; ++j) {
        const auto pick = static_cast<std::int64_t>((static_cast<UInt128>(j) * 0x9E3779B97F4A7C15ULL + 12345) %
                                                    static_cast<UInt128>(row.n));
        checked("cudaMemcpyAsync", [&] {
            return cudaMemcpyAsync(start.data() + static_cast<std::size_t>(j) * d, rows + pick * row.d, d * 4,
                                   cudaMemcpyDeviceToHost, context.compute.get());
        });
    }
    context.wait(context.compute.get());
    if (n * d < 40000000) {
        copy.resize(n * d);
        check(cudaMemcpy(copy.data(), rows, copy.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
        data.host.values = copy.data();
    }
    exponents.assign(d, scale_exponent(300.0));
    problem = {0, row.n, row.k, start.data(), exponents.data(), 0, 0, -1.0, 0, 0, 0.0};
}

std::vector<Setup::Timed> Setup::iterations(const Forced &forced, int repeats, int longest)
{
    context.forced = forced;
    Job<float> job(data, problem);
    const PgkmFitParams params = {PGKM_L2, 1 << 30};
    const UpdateArguments<float> arguments = job.update_arguments(&params, nullptr);
    const Control fresh = {running, 0, 1 << 30, 0, -1.0, 0.0, 0, 0};
    Timer timer(job.stream());
    std::vector<Timed> times;
    int number = 0;
    for (int i = 0; i <= repeats; ++i, ++number) {
        Control seen = fresh;
        if (i > 0)
            job.control.download(&seen, 1, job.stream());
        context.wait(job.stream());
        if (i == 0 || number == longest || seen.stop != running) { // an empty cluster stops a fit
            number = 0;
            job.control.upload(&fresh, 1, job.stream());
            job.upload_centroids(start.data(), &params);
            context.wait(job.stream());
        }
        const double ms = timer.time(context, [&] {
            job.iteration(arguments, job.control.get());
        });
        if (i > 0)
            times.push_back({number, ms});
    }
    return times;
}

double Setup::iteration(const Forced &forced, int repeats)
{
    std::vector<double> times;
    for (const Timed &timed : iterations(forced, repeats))
        times.push_back(timed.ms);
    return median(times);
}

double Setup::loop()
{
    using Clock = std::chrono::steady_clock;
    if (copy.empty())
        return -1.0;
    context.forced = {};
    std::vector<double> times;
    for (int repeat = 0; repeat < 5; ++repeat) {
        double ms[2];
        int iterations[2];
        for (int i = 0; i < 2; ++i) {
            std::vector<float> centroids = start;
            PgkmProblem run = problem;
            run.centroids = centroids.data();
            run.tol = 0.0; // a fit that converges ends without a look at the labels
            const Clock::time_point begin = Clock::now();
            fit_problem<float>(data, run, 0, {PGKM_L2, i == 0 ? 3 : 43});
            ms[i] = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
            iterations[i] = run.n_iter;
        }
        if (iterations[1] > iterations[0])
            times.push_back((ms[1] - ms[0]) / (iterations[1] - iterations[0]));
    }
    return median(times);
}

} // namespace bench

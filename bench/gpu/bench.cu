#include "bench.hpp"

namespace bench {

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

void Timer::start()
{
    check(cudaEventRecord(from_, stream_), "cudaEventRecord");
}

double Timer::stop(Context &context)
{
    check(cudaEventRecord(to_, stream_), "cudaEventRecord");
    context.wait(stream_);
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, from_, to_), "cudaEventElapsedTime");
    return static_cast<double>(ms);
}

} // namespace bench

// bench.hpp - the shapes of the design's table, their data on the device, and how an iteration is timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "job.hpp"

namespace bench {

using namespace pgkm;
using namespace pgkm::cuda;

// One shape: what hardware allows (of an H200), what flash-kmeans took there, and the goal.
struct Row {
    std::int64_t n;
    int          d, k;
    double       limit_ms, flash_ms, goal_ms;
};

inline constexpr Row rows[] = {
    {134217728, 4, 4, 0.47, 11.76, 0.60},   {134217728, 4, 64, 1.1, 14.57, 2.2},  {8388608, 64, 4, 0.47, 1.71, 0.60},
    {8388608, 64, 64, 0.47, 1.84, 1.2},     {4000000, 2, 400, 0.11, 2.11, 0.30},  {4000000, 8, 100, 0.11, 0.82, 0.25},
    {51200, 34, 32, 0.002, 0.305, 0.015},   {494080, 34, 32, 0.018, 0.346, 0.05}, {4500000, 41, 64, 0.39, 1.73, 0.60},
    {580000, 54, 64, 0.066, 0.38, 0.12},    {65536, 32, 16, 0.002, 0.34, 0.012},  {1000000, 128, 1024, 0.7, 1.65, 1.3},
    {10000000, 128, 4096, 13, 48.7, 35},    {1000000, 768, 1024, 2.0, 20.2, 6},
};

double median(std::vector<double> times);

// Milliseconds of what `body` enqueues in the stream, by events.
class Timer {
  public:
    explicit Timer(cudaStream_t stream);
    ~Timer();
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    template <typename Body>
    double time(Context &context, Body &&body)
    {
        start();
        body();
        return stop(context);
    }

  private:
    void start();
    double stop(Context &context);

    cudaStream_t stream_;
    cudaEvent_t  from_ = nullptr, to_ = nullptr;
};

// Blobs of one shape on the device: 10 centres uniform in [-100, 100] per coordinate, normal spread
// of 10 / sqrt(d); initial centroids are k rows.
struct Setup {
    Context                   context;
    Data                      data;
    std::vector<float>        start;
    std::vector<float>        copy; // on the host, for fits of small shapes
    std::vector<std::int32_t> exponents;
    PgkmProblem               problem{};

    explicit Setup(const Row &row);

    const float *values() const { return reinterpret_cast<const float *>(data.values.get()); }
    // Milliseconds of iterations, by number within their fit; fits start again after `longest` of
    // them, or where they end.
    struct Timed {
        int    number; // from 0
        double ms;
    };
    std::vector<Timed> iterations(const Forced &forced, int repeats, int longest = 8);
    // The median of the above.
    double iteration(const Forced &forced, int repeats);
    // Milliseconds of an iteration inside the device's own loop: two fits of different lengths,
    // whose difference is free of set-up costs. -1 where the shape is large and launches cost nothing.
    double loop();
};

// The modes; each prints CSV with a heading. `which`: indices of `rows`.
void automatic(const std::vector<int> &which);
void all(const std::vector<int> &which);
void iterations(const std::vector<int> &which);
void sweep();
void cost(const std::vector<int> &which);
void stream();
void cancel(const std::vector<int> &which);
void relocation();
void groups();
void mixture(const std::vector<int> &which);
void moments();

} // namespace bench

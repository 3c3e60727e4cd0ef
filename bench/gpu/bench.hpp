// bench.hpp - what the modes share: medians, and times by events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fit/device_problem.hpp"

namespace bench {

using namespace pgkm;
using namespace pgkm::cuda;

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
    cudaEvent_t from_ = nullptr, to_ = nullptr;
};

// The modes; each prints CSV with a heading. `which`: numbers of its shapes.
void stream();
void cancel(const std::vector<int> &which);
void relocation();
void groups();
void mixture(const std::vector<int> &which);
void moments();

} // namespace bench

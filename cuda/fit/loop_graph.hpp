// loop_graph.hpp - iterations as a CUDA graph that the device repeats until the fit stops: no host between two of them.
#pragma once

#include "fit/device_problem.hpp"

namespace pgkm::cuda {

template <typename T>
class LoopGraph {
  public:
    // Made, and for the workspace as it is now: kernels in it know its address.
    bool ready(const Context &context) const
    {
        return exec_.get() != nullptr && generation_ == context.workspace_generation;
    }
    void drop();

    // while (running) { some iterations }
    // An iteration was enqueued before: it has brought the workspace to its size, which a capture could not.
    void build(DeviceProblem<T> &problem, UpdateArguments<T> arguments);

    void launch(cudaStream_t stream);

  private:
    Graph graph_;
    GraphExec exec_;
    int generation_ = 0;
};

} // namespace pgkm::cuda

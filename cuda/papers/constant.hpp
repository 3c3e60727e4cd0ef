// constant.hpp - who may use constant memory.
//
// Constant memory belongs to the process, not to a stream: what one problem copies there another's
// kernels would read. So one problem at a time holds it; others take the same
// strategy's kernel without it.
#pragma once

#include <atomic>

#include "plugin/context.hpp"

namespace pgkm::cuda {

// Holds the process's constant memory, or does not.
class ConstantMemory {
  public:
    explicit ConstantMemory(const Context &context) : context_(context) {}
    ConstantMemory(const ConstantMemory &) = delete;
    ConstantMemory &operator=(const ConstantMemory &) = delete;
    ~ConstantMemory()
    {
        if (!held_)
            return;
        cudaStreamSynchronize(context_.compute.get()); // kernels may still read it
        taken_.store(false);
    }
    // Takes it, unless another problem holds it.
    void take() { held_ = held_ || !taken_.exchange(true); }
    bool held() const { return held_; }

  private:
    static inline std::atomic<bool> taken_{false};
    const Context &context_;
    bool held_ = false;
};

} // namespace pgkm::cuda

// module.hpp (reduce) - generated kernels on a device, compiled once in the life of the process.
#pragma once

#include <memory>
#include <string>

#include "plugin/context.hpp"

namespace pgkm::cuda {

// The kernels of one text (src/backend/generate/kernel.hpp); magnitudes may be null.
struct Module {
    cudaLibrary_t library = nullptr;
    cudaKernel_t init = nullptr, reduc = nullptr, combine = nullptr, magnitudes = nullptr;

    Module() = default;
    Module(const Module &) = delete;
    Module &operator=(const Module &) = delete;
    ~Module();
};

// Finds the text among those compiled before, or compiles it for the context's device. `measures`: it has magnitudes.
// Heeds the host's cancel.
std::shared_ptr<const Module> module_of(Context &context, const std::string &text, bool measures);

} // namespace pgkm::cuda

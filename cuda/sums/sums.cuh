// sums.cuh - what the strategies of feature sums and mass sums share: what of a row is summed, and how a global sum
// takes it.
#pragma once

#include "device/limbs.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {

// What of a row is summed, `width` integers: its d features, or its mass.
struct Features {
    template <typename T>
    __host__ __device__ static int width(const View<T> &view)
    {
        return view.d;
    }
    template <typename T>
    __device__ static std::int64_t integer(const View<T> &view, std::int64_t row, int f)
    {
        return feature_integer(view, row, f, scaling_of(view, f), view.part);
    }
    // Whether the limbs of any number of rows fit 32 bits.
    template <typename T>
    __device__ static bool is_count(const View<T> &)
    {
        return false;
    }
};

struct Masses {
    template <typename T>
    __host__ __device__ static constexpr int width(const View<T> &)
    {
        return 1;
    }
    template <typename T>
    __device__ static std::int64_t integer(const View<T> &view, std::int64_t row, int)
    {
        return view.weights == nullptr
                   ? 1
                   : quantise_part(view.weights[row], power_of_two(view.weight_exponent), view.part);
    }
    template <typename T>
    __device__ static bool is_count(const View<T> &view)
    {
        return view.weights == nullptr;
    }
};

} // namespace pgkm::cuda

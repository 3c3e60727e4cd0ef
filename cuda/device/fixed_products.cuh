// fixed_products.cuh - products of 16 pairs by which a device shows that its tensor cores keep the bound that the
// filters rest on, and that bound. PTX promises no more than that sums are of single precision.
//
// The bound: an instruction adds 16 exact products and the accumulator after cutting each at 2^-23 of the largest or
// finer, then rounds: |result - sum| <= 2^-23 (17 A + |sum|), A the largest addend (fused/strips_scores.cuh,
// assign/tensor.cu).
#pragma once

#include <cmath>

namespace pgkm::cuda {

// Sets of factors, all with eight significant bits, which fp16 and bfloat16 hold. A set has rows and columns of 16.
class FixedProducts {
  public:
    __host__ __device__ explicit FixedProducts(unsigned number) : number_(number) {}

    __host__ __device__ float left(int row, int i) const { return factor(static_cast<unsigned>(row), i, true); }
    __host__ __device__ float right(int column, int i) const
    {
        return factor(4096 + static_cast<unsigned>(column), i, false);
    }
    // What the sum starts from.
    __host__ __device__ float start(int row, int column) const
    {
        const unsigned bits = mixed(8192 + static_cast<unsigned>(row * 256 + column));
        return number_ / 4 % 3 == 0 ? 0.0f : ldexpf(value(bits), static_cast<int>(bits >> 8 & 31) - 16);
    }
    // Whether the product of a row and a column may have this result.
    __host__ __device__ bool allows(int row, int column, float result) const
    {
        double sum = static_cast<double>(start(row, column)), most = std::fabs(sum);
        for (int i = 0; i < 16; ++i) {
            const double product = static_cast<double>(left(row, i)) * static_cast<double>(right(column, i));
            sum += product;
            most = std::fmax(most, std::fabs(product));
        }
        return std::fabs(static_cast<double>(result) - sum) <= 0x1p-23 * (17.0 * most + std::fabs(sum));
    }

  private:
    __host__ __device__ unsigned mixed(unsigned line) const
    {
        unsigned x = number_ * 0x9e3779b9u + line * 0x85ebca6bu;
        x = (x ^ x >> 16) * 0x7feb352du;
        x = (x ^ x >> 15) * 0x846ca68bu;
        return x ^ x >> 16;
    }
    // 1 to 2, with a sign.
    __host__ __device__ static float value(unsigned bits)
    {
        const float size = 1.0f + static_cast<float>(bits >> 1 & 127) / 128.0f;
        return (bits & 1) != 0 ? -size : size;
    }
    __host__ __device__ float factor(unsigned line, int i, bool is_left) const
    {
        const unsigned bits = mixed(line * 16 + static_cast<unsigned>(i));
        switch (number_ % 4) {
        case 0:
            return value(bits);
        case 1: // of many sizes
            return ldexpf(value(bits), -static_cast<int>(bits >> 8 & 7));
        case 2: // a large one, which cuts the others, all of one sign, at about their size
            return i == 0 ? 128.0f : ldexpf(std::fabs(value(bits)), -5);
        default: // two large ones that cancel
            return i > 1 ? ldexpf(value(bits), -5) : i == 1 && is_left ? -128.0f : 128.0f;
        }
    }

    unsigned number_;
};

} // namespace pgkm::cuda

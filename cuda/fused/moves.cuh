// moves.cuh - sums that follow the rows: only a row whose label changed is taken from its old
// cluster's sums and added to its new one's. Integer sums make that exact; once few labels
// change, an iteration costs little more than its assignment.
//
// A block holds 32-bit sums of three 15-bit limbs in shared memory, `replicas` copies, and
// adds them to the global sums at its end: a limb is at most 2^15 in magnitude, so a cell takes
// move_limit additions, more than the rows of one block's launch.
#pragma once

#include <climits>

#include "../limbs.cuh"

namespace pgkm::cuda {

inline constexpr int move_limit = 65535; // additions of a 16-bit limb to a 32-bit cell

// Labels of the iteration before, one or two bytes each; all bits set: the row is in no sum yet.
struct KeptLabels {
    void *values;
    bool  wide; // two bytes

    __device__ int get(std::int64_t i) const
    {
        return wide ? static_cast<const std::uint16_t *>(values)[i] : static_cast<const std::uint8_t *>(values)[i];
    }
    __device__ void set(std::int64_t i, int label) const
    {
        if (wide)
            static_cast<std::uint16_t *>(values)[i] = static_cast<std::uint16_t>(label);
        else
            static_cast<std::uint8_t *>(values)[i] = static_cast<std::uint8_t>(label);
    }
    __device__ int none() const { return wide ? 0xffff : 0xff; }
};

// A scaled value as high 2^30 + middle 2^15 + low.
struct Limbs15 {
    int high, middle, low;
};

__device__ inline Limbs15 limbs15(std::int64_t value)
{
    const int low = static_cast<int>((value + 0x4000) & 0x7fff) - 0x4000;
    const std::int64_t above = (value - low) >> 15;
    const int middle = static_cast<int>((above + 0x4000) & 0x7fff) - 0x4000;
    return {static_cast<int>((above - middle) >> 15), middle, low};
}

// The same of rint(x 2^s) without 64-bit arithmetic: the argument is that of biased_limbs(), with
// one more limb.
__device__ inline Limbs15 limbs15(float x, int exponent)
{
    const float whole = __int_as_float((exponent + 127) << 23);
    const float high = __fmaf_rn(x, whole * 0x1p-30f, rounding_magic);
    const float rest = __fmaf_rn(high - rounding_magic, -__int_as_float((30 - exponent + 127) << 23), x);
    const float middle = __fmaf_rn(rest, whole * 0x1p-15f, rounding_magic);
    const float last = __fmaf_rn(middle - rounding_magic, -__int_as_float((15 - exponent + 127) << 23), rest);
    const float low = __fmaf_rn(last, whole, rounding_magic);
    return {__float_as_int(high) - rounding_bits, __float_as_int(middle) - rounding_bits, __float_as_int(low) - rounding_bits};
}

// Whether limbs15() of float32 may stand for quantise() in a feature of unweighted rows.
__host__ __device__ inline bool takes_floats(int exponent) { return exponent >= -90 && exponent <= 120; }

// Limbs of a row's feature; `floats`: no weights, and takes_floats() of all features.
__device__ inline Limbs15 feature_limbs15(const View<float> &view, std::int64_t row, int f, float value, bool floats)
{
    if (floats)
        return limbs15(value, view.feature_exponent[f]);
    const double product = view.weights == nullptr ? static_cast<double>(value) : view.weights[row] * static_cast<double>(value);
    return limbs15(quantise(product, power_of_two(view.feature_exponent[f])));
}

__device__ inline Limbs15 mass_limbs15(const View<float> &view, std::int64_t row)
{
    if (view.weights == nullptr)
        return {0, 0, 1};
    return limbs15(quantise(view.weights[row], power_of_two(view.weight_exponent)));
}

// The block's dynamic shared memory. Functions that are not inlined name it themselves: through a
// pointer that they are given they could not know it is shared, and atomics would be slow.
__device__ inline std::int32_t *shared_words(int offset)
{
    extern __shared__ uint4 block_memory[];
    return reinterpret_cast<std::int32_t *>(block_memory) + offset;
}

// Sums of k clusters in shared memory: d features and, as feature d, the mass.
struct MoveCells {
    int offset; // in words: k x (d + 1) x 3 x replicas of them
    int k, d, replicas;

    __host__ __device__ static std::size_t count(int k, int d, int replicas)
    {
        return static_cast<std::size_t>(k) * static_cast<std::size_t>(d + 1) * 3 * static_cast<std::size_t>(replicas);
    }
    __device__ void clear() const
    {
        std::int32_t *cells = shared_words(offset);
        for (int i = static_cast<int>(threadIdx.x); i < k * (d + 1) * 3 * replicas; i += static_cast<int>(blockDim.x))
            cells[i] = 0;
    }
    // From one cluster to another; from == none: into `to` alone.
    __device__ void move(int from, int to, int none, int feature, const Limbs15 &limbs, int replica) const
    {
        std::int32_t *target = shared_words(offset) + ((to * (d + 1) + feature) * 3) * replicas + replica;
        atomicAdd(target, limbs.high);
        atomicAdd(target + replicas, limbs.middle);
        atomicAdd(target + 2 * replicas, limbs.low);
        if (from == none)
            return;
        std::int32_t *source = shared_words(offset) + ((from * (d + 1) + feature) * 3) * replicas + replica;
        atomicAdd(source, -limbs.high);
        atomicAdd(source + replicas, -limbs.middle);
        atomicAdd(source + 2 * replicas, -limbs.low);
    }
    // To the global sums, by the whole block after a barrier. 2^30 are 2^7 of the accumulators'
    // upper limb.
    __device__ void publish(const Accumulators &sums) const
    {
        const std::int32_t *cells = shared_words(offset);
        for (int i = static_cast<int>(threadIdx.x); i < k * (d + 1); i += static_cast<int>(blockDim.x)) {
            std::int64_t limbs[3] = {};
            for (int limb = 0; limb < 3; ++limb)
                for (int r = 0; r < replicas; ++r) // neighbours start in different banks
                    limbs[limb] += cells[(i * 3 + limb) * replicas + ((r + static_cast<int>(threadIdx.x)) & (replicas - 1))];
            const int cluster = i / (d + 1), feature = i - cluster * (d + 1);
            std::int64_t *to = feature < d ? sums.totals + (std::int64_t{cluster} * d + feature) * 2 : sums.masses + 2 * cluster;
            const std::int64_t low = limbs[1] * 32768 + limbs[2];
            if (limbs[0] != 0)
                add64(to, limbs[0] * 128);
            if (low != 0)
                add64(to + 1, low);
        }
    }
};

// Rows that a warp puts off until it has one for each lane: what few rows need then costs a
// warp little, however they lie among the others.
class Later {
  public:
    static constexpr int capacity = 64;
    struct Entry {
        std::int32_t row;
        std::int16_t from, to; // labels; to < 0: not known yet
    };

    // memory: capacity entries of this warp.
    __device__ explicit Later(Entry *memory) : entries_(memory) {}
    __device__ static Entry entry(int row, int from, int to)
    {
        return {row, static_cast<std::int16_t>(from), static_cast<std::int16_t>(to)};
    }
    // By all lanes; at most 32 entries may be waiting.
    __device__ void push(bool wanted, const Entry &entry)
    {
        const unsigned ballot = __ballot_sync(~0u, wanted);
        if (wanted)
            entries_[count_ + __popc(ballot & ((1u << (threadIdx.x & 31)) - 1))] = entry;
        count_ += __popc(ballot);
    }
    __device__ bool full() const { return count_ >= 32; }
    __device__ bool empty() const { return count_ == 0; }
    // The last 32 entries or all there are; row < 0 where a lane gets none.
    __device__ Entry pop()
    {
        __syncwarp();
        const int taken = min(count_, 32), lane = static_cast<int>(threadIdx.x & 31);
        count_ -= taken;
        const Entry entry = lane < taken ? entries_[count_ + lane] : Entry{-1, 0, 0};
        __syncwarp();
        return entry;
    }

  private:
    Entry *entries_;
    int    count_ = 0;
};

} // namespace pgkm::cuda

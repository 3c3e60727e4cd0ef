// moves.cuh - sums that follow the rows: only a row whose label changed is taken from its old
// cluster's sums and added to its new one's. Integer sums make that exact; once few labels
// change, an iteration costs little more than its assignment.
//
// A block holds 32-bit sums of three 15-bit limbs in shared memory, `replicas` copies, and
// adds them to the global sums at its end: a limb is at most 2^15 in magnitude, so a sum takes
// move_limit additions, more than the rows of one block's launch.
#pragma once

#include <climits>

#include "device/limbs.cuh"
#include "device/load_row.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {

inline constexpr int move_limit = 65535; // additions of a 16-bit limb to 32 bits

// Labels of the iteration before, one or two bytes each; all bits set: the row is in no sum yet.
struct KeptLabels {
    void *values;
    bool wide; // two bytes

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

// The same of rint(x 2^s) without 64-bit arithmetic, scale = 2^s: the argument is that of
// float_limbs(), with one more limb. x 2^s is exact, or so small that it rounds to 0.
__device__ inline Limbs15 limbs15(float x, float scale)
{
    const float scaled = x * scale;
    const float high = __fmaf_rn(scaled, 0x1p-30f, rounding_magic);
    const float rest = __fmaf_rn(high - rounding_magic, -0x1p30f, scaled);
    const float middle = __fmaf_rn(rest, 0x1p-15f, rounding_magic);
    const float low = __fmaf_rn(middle - rounding_magic, -0x1p15f, rest) + rounding_magic;
    return {__float_as_int(high) - rounding_bits, __float_as_int(middle) - rounding_bits,
            __float_as_int(low) - rounding_bits};
}

// Whether limbs15() of float32 may stand for quantise() in a feature.
__host__ __device__ inline bool takes_floats(int exponent)
{
    return exponent >= -90 && exponent <= 120;
}

// A feature's scale in float32; `scale` is 1 where takes_floats() does not hold.
struct FloatScaling {
    float origin;
    float scale;
};

__device__ inline FloatScaling float_scaling(const View<float> &view, int f, bool floats)
{
    const FeatureScale<float> scale = view.feature_scales[f];
    return {scale.origin, floats ? __int_as_float((scale.exponent + 127) << 23) : 1.0f};
}

// Limbs of a row's feature; `floats`: takes_floats() of all features. The subtraction is exact (contract.hpp).
__device__ inline Limbs15 feature_limbs15(const View<float> &view, int f, float value, const FloatScaling &scaling,
                                          bool floats)
{
    const float centred = value - scaling.origin;
    if (floats)
        return limbs15(centred, scaling.scale);
    return limbs15(quantise(static_cast<double>(centred), power_of_two(view.feature_scales[f].exponent)));
}

// The block's dynamic shared memory. Functions that are not inlined name it themselves: through a
// pointer that they are given they could not know it is shared, and atomics would be slow.
__device__ inline std::int32_t *shared_words(int offset)
{
    extern __shared__ uint4 block_memory[];
    return reinterpret_cast<std::int32_t *>(block_memory) + offset;
}

// Sums of k clusters of unweighted rows in shared memory: d features and, as feature d, the mass.
struct MoveCounters {
    int offset; // in words: k x (d + 1) x 3 x replicas of them, and behind them d scales and d origins
    int k, d, replicas;

    __host__ __device__ static std::size_t bytes(int k, int d, int replicas)
    {
        const auto features = static_cast<std::size_t>(d);
        return 4 *
               (static_cast<std::size_t>(k) * (features + 1) * 3 * static_cast<std::size_t>(replicas) + 2 * features);
    }
    __device__ void clear() const
    {
        std::int32_t *counters = shared_words(offset);
        for (int i = static_cast<int>(threadIdx.x); i < k * (d + 1) * 3 * replicas; i += static_cast<int>(blockDim.x))
            counters[i] = 0;
    }
    // Of features, where prepare_scales() was called.
    __device__ FloatScaling scaling(int f) const
    {
        const float *scales = reinterpret_cast<float *>(shared_words(offset + k * (d + 1) * 3 * replicas));
        return {scales[d + f], scales[f]};
    }
    __device__ void prepare_scales(const View<float> &view, bool floats) const
    {
        float *scales = reinterpret_cast<float *>(shared_words(offset + k * (d + 1) * 3 * replicas));
        for (int f = static_cast<int>(threadIdx.x); f < d; f += static_cast<int>(blockDim.x)) {
            const FloatScaling own = float_scaling(view, f, floats);
            scales[f] = own.scale;
            scales[d + f] = own.origin;
        }
    }
    // Of one cluster's limbs of a feature.
    __device__ std::int32_t *counter(int cluster, int feature, int replica) const
    {
        return shared_words(offset) + (cluster * (d + 1) + feature) * 3 * replicas + replica;
    }
    __device__ void add(std::int32_t *to, const Limbs15 &limbs) const
    {
        atomicAdd(to, limbs.high);
        atomicAdd(to + replicas, limbs.middle);
        atomicAdd(to + 2 * replicas, limbs.low);
    }
    __device__ void subtract(std::int32_t *from, const Limbs15 &limbs) const
    {
        add(from, {-limbs.high, -limbs.middle, -limbs.low});
    }
    // From one cluster to another; from == none: into `to` alone.
    __device__ void move(int from, int to, int none, int feature, const Limbs15 &limbs, int replica) const
    {
        add(counter(to, feature, replica), limbs);
        if (from != none)
            subtract(counter(from, feature, replica), limbs);
    }
    // The same of a row's mass, which has but a low limb.
    __device__ void move_mass(int from, int to, int none, int replica) const
    {
        atomicAdd(counter(to, d, replica) + 2 * replicas, 1);
        if (from != none)
            atomicAdd(counter(from, d, replica) + 2 * replicas, -1);
    }
    // To the global sums, by the whole block, which waits for its warps. 2^30 are 2^7 of the accumulators' upper limb.
    __device__ void publish(const Accumulators &sums) const
    {
        __syncthreads();
        const std::int32_t *counters = shared_words(offset);
        for (int i = static_cast<int>(threadIdx.x); i < k * (d + 1); i += static_cast<int>(blockDim.x)) {
            std::int64_t limbs[3] = {};
            for (int limb = 0; limb < 3; ++limb)
                for (int r = 0; r < replicas; ++r) // neighbours start in different banks
                    limbs[limb] +=
                        counters[(i * 3 + limb) * replicas + ((r + static_cast<int>(threadIdx.x)) & (replicas - 1))];
            const int cluster = i / (d + 1), feature = i - cluster * (d + 1);
            std::int64_t *to =
                feature < d ? sums.totals + (std::int64_t{cluster} * d + feature) * 2 : sums.masses + 2 * cluster;
            const std::int64_t low = limbs[1] * 32768 + limbs[2];
            if (limbs[0] != 0)
                add64(to, limbs[0] * 128);
            if (low != 0)
                add64(to + 1, low);
        }
    }
};

// Moves a row of at most D features between the sums.
template <int D>
__device__ inline void move_row(const View<float> &view, const MoveCounters &counters, bool floats, const float (&x)[D],
                                int from, int to, int none)
{
    const int replica = static_cast<int>(threadIdx.x) & (counters.replicas - 1), stride = 3 * counters.replicas;
    std::int32_t *target = counters.counter(to, 0, replica),
                 *source = counters.counter(from == none ? to : from, 0, replica);
#pragma unroll
    for (int f = 0; f < D; ++f, target += stride, source += stride) {
        if (f >= view.d)
            break;
        const Limbs15 limbs = feature_limbs15(view, f, x[f], counters.scaling(f), floats);
        counters.add(target, limbs);
        if (from != none)
            counters.subtract(source, limbs);
    }
    counters.move_mass(from, to, none, replica);
}

// Rows that a warp puts off until it has one for each lane: what few rows need then costs a
// warp little, however they lie among the others.
class Later {
  public:
    static constexpr int capacity = 64; // where at most 32 entries wait before a push
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
    __device__ static Entry none() { return {-1, 0, 0}; }
    // By all lanes. Returns the entry's place.
    __device__ int push(bool wanted, const Entry &entry)
    {
        const unsigned ballot = __ballot_sync(~0u, wanted);
        const int place = count_ + lanes_below(ballot);
        if (wanted)
            entries_[place] = entry;
        count_ += __popc(ballot);
        return place;
    }
    __device__ bool full() const { return count_ >= 32; }
    __device__ bool empty() const { return count_ == 0; }
    // The last 32 entries or all there are; row < 0 where a lane gets none. place: that of the entry,
    // which stays as it is until the next push.
    __device__ Entry pop(int &place)
    {
        __syncwarp();
        const int taken = min(count_, 32), lane = static_cast<int>(threadIdx.x & 31);
        count_ -= taken;
        place = count_ + lane;
        const Entry entry = lane < taken ? entries_[place] : none();
        __syncwarp();
        return entry;
    }
    __device__ Entry pop()
    {
        int place;
        return pop(place);
    }

  private:
    Entry *entries_;
    int count_ = 0;
};

} // namespace pgkm::cuda

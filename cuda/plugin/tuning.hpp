// tuning.hpp - the plan made of strategies, and what it is made from: plain data, no CUDA.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "backend/strategies.hpp"

namespace pgkm::cuda {

// Whose sums follow the rows from label to label: kernels of a whole iteration (fused/moves.hpp), or, after an
// assignment by itself, those of sums/sorted.hpp.
enum class Moves : std::int8_t { none, few, leaves, strips, sorted };

// How rows and results travel in a fit: chunks beside the kernels; one after the other; some of them not at all, for
// the CPU takes them; or all arrays to the host and back between kernels.
enum class Travel : std::int8_t { overlapped, serial, shared, round_trip };

// What the caller forces; automatic where it leaves the choice to choose().
struct Forced {
    Assignment assignment = Assignment::automatic;
    Execution execution = Execution::automatic;
    FeatureSum feature_sum = FeatureSum::automatic;
    MassSum mass_sum = MassSum::automatic;
    ReductionLayout reduction_layout = ReductionLayout::automatic;

    // Whether choose() is free to choose.
    constexpr bool nothing() const
    {
        return assignment == Assignment::automatic && execution == Execution::automatic &&
               feature_sum == FeatureSum::automatic && mass_sum == MassSum::automatic;
    }
};

// What choose() decides: nothing is automatic any more.
struct Plan {
    Assignment assignment;
    Execution execution;
    FeatureSum feature_sum;
    MassSum mass_sum;
    Moves moves;   // what a fit's iterations run instead, where rows and labels are resident
    Travel travel; // serial, shared: of streamed rows
};

// The shape of one problem.
struct Shape {
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
    bool float64;
    bool weighted;
    bool counted = false; // rows stand for several equal ones (entries/)
};

// What makes something faster and may be left out: the next best takes its place, with the same bits. Kernels of an
// iteration (Moves), of assignments, what the filter on the tensor cores adds to its products, of k-means++, and rows
// that stand for those that equal them.
enum class Mechanism : std::uint8_t {
    few,
    leaves,
    strips,
    sorted,
    wide,
    narrow,
    gaps,
    label_order,
    held_rows,
    trials,
    entries
};
inline constexpr std::array<std::string_view, 11> mechanism_names = {
    "few", "leaves", "strips", "sorted", "wide", "narrow", "gaps", "label_order", "held_rows", "trials", "entries"};

// A set of mechanisms.
class Mechanisms {
  public:
    constexpr Mechanisms() = default;
    // Names with commas between them; those of no mechanism count for nothing.
    constexpr explicit Mechanisms(std::string_view names)
    {
        while (!names.empty()) {
            const std::string_view name = names.substr(0, names.find(','));
            for (std::size_t i = 0; i < mechanism_names.size(); ++i)
                bits_ |= name == mechanism_names[i] ? 1u << i : 0u;
            names.remove_prefix(std::min(name.size() + 1, names.size()));
        }
    }
    constexpr bool has(Mechanism mechanism) const { return (bits_ >> static_cast<int>(mechanism) & 1) != 0; }

  private:
    std::uint32_t bits_ = 0;
};

// The facts of a device that decide anything.
struct DeviceFacts {
    std::int32_t multiprocessors;
    std::int32_t capability;             // 90 for 9.0
    std::int32_t shared_bytes_per_block; // with opt-in
    std::int32_t float64_ratio = 2;      // operations in float32 in the time of one in float64
    bool mma = true;                     // products of fp16 and bfloat16 keep the filters' bound (plugin/products.hpp)
    bool wgmma = true;                   // and those by a warpgroup
    Mechanisms left_out = {};            // by the environment, to measure what they gain

    constexpr bool takes(Mechanism mechanism) const { return !left_out.has(mechanism); }
};

// Multiplications with additions in float64 in a second, of multiprocessors at 1.5 GHz: each has 64 lanes for
// float32, from compute capability 8.6 on (and 9.0) 128, and does one in float64 in the place of `float64_ratio` of
// those.
constexpr double float64_rate(const DeviceFacts &device)
{
    const double lanes = device.capability <= 80 ? 64.0 : 128.0;
    return device.multiprocessors * lanes / (device.float64_ratio > 1 ? device.float64_ratio : 1) * 1.5e9;
}

} // namespace pgkm::cuda

// host_draw.hpp (seed) - a step's draws on the host: the distances of all rows travel there, and the picks go back
// (O'Leary 2021, k-means++). The definition is that of test/reference/seed.cpp, as the device's is (draws.cuh).
#pragma once

#include <bit>
#include <vector>

#include "plugin/upload.hpp"
#include "seed/sampler.cuh"

namespace pgkm::cuda {

// Does what SeedKernels::weigh() and pick() do, for rows of a problem that are resident.
template <typename T>
void draw_on_host(Context &context, const SeedRows<T> &rows, const DeviceArray<SeedState> &on_device,
                  const SeedKey &key, bool first, int trials)
{
    const cudaStream_t stream = context.compute.get();
    const auto send = [&](const SeedState &state) {
        enqueue_copy(on_device.get(), &state, 1, stream, cudaMemcpyHostToDevice);
    };
    SeedState state = context.fetch(on_device)[0];
    if (!first && (state.done != 0 || state.largest == 0)) {
        state.done = 1;
        return send(state);
    }
    const auto n = static_cast<std::size_t>(rows.n);
    const Claim claim(context.host_budget, n * (sizeof(double) + sizeof(std::uint32_t)));
    const double *source = first ? rows.weights : rows.nearest; // nullptr: rows without weights
    std::vector<double> values(source == nullptr ? 0 : n);
    std::vector<std::uint32_t> order(n);
    download(context, order.data(), rows.order, n * sizeof order[0]);
    if (source != nullptr)
        download(context, values.data(), source, n * sizeof values[0]);
    const double scale =
        power_of_two(first ? rows.weight_exponent : square_exponent(std::bit_cast<double>(state.largest)));
    const auto mass = [&](std::uint32_t row) {
        if (source == nullptr)
            return std::uint64_t{1};
        return static_cast<std::uint64_t>(first ? quantise(values[row], scale) : quantise_mass(values[row], scale));
    };
    UInt128 total = 0;
    for (const std::uint32_t row : order)
        total += mass(row);
    for (int trial = 0; trial < trials; ++trial) {
        context.poll();
        const std::uint64_t index = first ? 0 : static_cast<std::uint64_t>(state.count) * 64 + trial;
        const std::uint64_t bits = draw(key.seed, key.restart, first ? key.first : key.trial, 0, index);
        const UInt128 target = scale_draw(bits, total);
        UInt128 running = 0;
        state.picks[trial] = order.back(); // should all masses be 0
        for (const std::uint32_t row : order)
            if ((running += mass(row)) > target) {
                state.picks[trial] = row;
                break;
            }
        state.potential[trial][0] = state.potential[trial][1] = 0;
    }
    send(state);
}

} // namespace pgkm::cuda

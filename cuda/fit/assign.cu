// assign.cu - one assignment to fixed centroids with everything that is asked over it.
#include <vector>

#include "backend/update.hpp"
#include "fit/device_problem.hpp"
#include "assign/measure.hpp"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
namespace {

void store(PgkmInt128 *out, const std::vector<std::int64_t> &sums, bool weighted)
{
    const auto count = static_cast<std::int64_t>(sums.size()) / (2 * parts_of(weighted));
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = split(sum_of(sums.data(), count, i, weighted));
}

} // namespace

template <typename T>
void assign_problem(Data &data, const PgkmProblem &problem, PgkmAssignment &out)
{
    Context &context = data.context;
    // What is asked of entries stays on the device (entries/).
    const auto bring = [&](auto *to, const auto *from, std::size_t count) {
        if (data.copies.rows != 0)
            enqueue_copy(to, from, count, context.compute.get());
        else
            download(context, to, from, count * sizeof *to);
    };
    DeviceProblem<T> device(data, problem);
    device.iterates = false;
    const Control *control = device.control.get();
    device.upload_centroids(problem.centroids);
    const auto k = static_cast<std::size_t>(problem.k);
    const bool want_sums = out.within != nullptr || out.sizes != nullptr;
    auto sums = zeros<std::int64_t>(context.budget, k * measure_sums, device.stream());
    DeviceArray<double> distances;
    if (out.distances != nullptr)
        distances = DeviceArray<double>(context.budget, device.labels.count());
    device.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        context.poll();
        const auto count = static_cast<std::size_t>(rows.n);
        device.assign_rows(rows, control, device.labels.get());
        if (out.totals != nullptr)
            device.sum_features(rows, control, device.labels.get());
        if (out.masses != nullptr)
            device.sum_masses(rows, control, device.labels.get());
        if (want_sums || out.distances != nullptr)
            measure<T>({rows, device.labels.get(), distances.get(), want_sums ? sums.get() : nullptr,
                        problem.distance_exponent, control},
                       context.facts.multiprocessors, context.facts.shared_bytes_per_block / 2, device.stream());
        device.wait();
        if (out.labels != nullptr)
            bring(out.labels + first, device.labels.get(), count);
        if (out.distances != nullptr)
            bring(out.distances + first, distances.get(), count);
    });
    const std::size_t n_totals = out.totals == nullptr ? 0 : device.totals.count();
    const Claim claim(context.host_budget, 8 * (n_totals + device.masses.count() + k * measure_sums));
    const std::vector<std::int64_t> totals = context.fetch(device.totals.get(), n_totals),
                                    masses = context.fetch(device.masses), measured = context.fetch(sums);
    if (out.totals != nullptr)
        store(out.totals, totals, device.weighted);
    if (out.masses != nullptr)
        store(out.masses, masses, device.weighted);
    for (std::size_t j = 0; j < k; ++j) {
        const std::int64_t *measured_sums = measured.data() + j * measure_sums;
        if (out.within != nullptr)
            out.within[j] = split(sum_of(measured_sums, 1, 0, true));
        if (out.sizes != nullptr)
            out.sizes[j] = measured_sums[4];
    }
}

template void assign_problem<float>(Data &, const PgkmProblem &, PgkmAssignment &);
template void assign_problem<double>(Data &, const PgkmProblem &, PgkmAssignment &);

} // namespace pgkm::cuda

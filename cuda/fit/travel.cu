// travel.cu - iterations whose rows and results travel in another way than beside the kernels: some of the streamed
// rows stay with the CPU (Lutz et al. 2018), or arrays go to the host and back between kernels (O'Leary 2021).
#include "fit/device_problem.hpp"
#include "papers/copies.cuh"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
// Adds the CPU's sums to those on the device, before the division.
template <typename T>
void DeviceProblem<T>::add_sums(const std::vector<Int128> &sums, const DeviceArray<std::int64_t> &to,
                                const Control *watched)
{
    const std::vector<std::int64_t> limbs = limbs_of(sums, weighted);
    NearArray<std::int64_t> from(context.budget, context.host_budget, limbs.size());
    from.upload(limbs.data(), limbs.size(), stream());
    merge_copies({from.get(), 1, static_cast<std::int64_t>(limbs.size())}, to.get(), watched, stream());
    wait(); // `from` may lie on the host
}

// A pass over streamed rows of which the CPU takes some.
template <typename T>
void DeviceProblem<T>::shared_pass(const Control *watched)
{
    std::vector<T> current(static_cast<std::size_t>(k) * static_cast<std::size_t>(d));
    wait();
    centroids.download(current.data(), current.size(), stream());
    wait();
    if (!cpu_share)
        cpu_share.emplace(context, k, d);
    const Sums &sums = cpu_share->add_up(data.host, problem, current.data(), [&](const NextRows &next) {
        data.template each_streamed<T>(problem.first_row, problem.n_rows, next,
                                       [&](const T *values, const double *weights, std::int64_t, std::int64_t rows) {
                                           pass(view(values, weights, rows), watched);
                                       });
    });
    add_sums(sums.totals, totals, watched);
    add_sums(sums.masses, masses, watched);
}

// Where the plan has it so: what is in device memory to the host and back.
template <typename T>
void DeviceProblem<T>::there_and_back(const void *array, std::size_t bytes)
{
    if (plan.travel != Travel::round_trip)
        return;
    const std::uint64_t room = std::max<std::uint64_t>(context.host_budget.room() / 2, 65536);
    std::vector<char> on_host(std::min<std::uint64_t>({bytes, room, std::uint64_t{64} << 20}));
    char *on_device = static_cast<char *>(const_cast<void *>(array)); // which gets back what it has
    wait();
    for (std::size_t done = 0; done < bytes; done += on_host.size()) {
        const std::size_t some = std::min(on_host.size(), bytes - done);
        download(context, on_host.data(), on_device + done, some);
        upload(context, on_device + done, on_host.data(), some);
    }
}

template void DeviceProblem<float>::shared_pass(const Control *);
template void DeviceProblem<float>::there_and_back(const void *, std::size_t);
template void DeviceProblem<double>::shared_pass(const Control *);
template void DeviceProblem<double>::there_and_back(const void *, std::size_t);

} // namespace pgkm::cuda

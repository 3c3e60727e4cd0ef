#include "relocation/relocation.hpp"

#include <optional>

#include "fit/measure.hpp"
#include "relocation/farthest.hpp"
#include "relocation/labels_differ.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
std::vector<FarRow> farthest_rows(Job<T> &job, std::size_t most)
{
    Context &context = job.context;
    const std::size_t slice_rows = job.labels.count();
    context.make_room(slice_rows * sizeof(double) + FarthestRows::bytes(most, slice_rows));
    DeviceArray<double> squares(context.budget, slice_rows);
    FarthestRows farthest(context, most, slice_rows);
    const Control *control = job.control.get();
    job.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        job.assign_rows(rows, control, job.labels.get());
        measure<T>({rows, job.labels.get(), squares.get(), nullptr, 0, control}, context.facts.multiprocessors, 0,
                   job.stream());
        job.wait();
        farthest.add(squares.get(), job.labels.get(), static_cast<std::int32_t>(rows.n), first);
    });
    return farthest.take();
}

} // namespace

template <typename T>
void relocate(Job<T> &job, Sums &sums)
{
    std::optional<Claim> claim;
    relocate_by_farthest<T>(job.data.host, job.problem, sums, [&](std::size_t most) {
        claim.reset();
        claim.emplace(job.context.host_budget, 3 * most * sizeof(FarRow)); // of two slices, and the device's
        return farthest_rows(job, most);
    });
}

template <typename T>
bool same_labels(Job<T> &job, int set, int other)
{
    Context &context = job.context;
    context.make_room(sizeof(std::int32_t));
    DeviceArray<std::int32_t> differ(context.budget, 1);
    differ.fill_zero(job.stream());
    const Control *control = job.control.get();
    std::int32_t different = 0;
    job.each_slice(set, [&](const View<T> &rows, std::int64_t) {
        if (different != 0)
            return;
        // The operands belong to the current centroids: other sets are assigned without a filter.
        if (set == 0)
            job.assign_rows(rows, control, job.labels.get());
        else
            assign_generic(job.stage(control), rows, job.labels.get());
        labels_differ(job.stage(control), job.under(other, rows), job.labels.get(), differ.get());
        job.wait();
        differ.download(&different, 1, job.stream());
        context.wait(job.stream());
    });
    return different == 0;
}

template void relocate<float>(Job<float> &, Sums &);
template void relocate<double>(Job<double> &, Sums &);
template bool same_labels<float>(Job<float> &, int, int);
template bool same_labels<double>(Job<double> &, int, int);

} // namespace pgkm::cuda

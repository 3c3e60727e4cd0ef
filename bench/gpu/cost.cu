// cost.cu - what exactness costs: our labels, sums and passes beside the same in float32 (float_kernels.hpp).
#include <cstdio>

#include "bench.hpp"
#include "float_kernels.hpp"

namespace bench {
namespace {

constexpr int repeats = 21;

struct Costs {
    double labels, sums, pass; // milliseconds; pass: both, in one read of the rows where that is faster
};

// Medians of `body`, of 21 runs after one that does not count.
template <typename Body>
double repeat(Timer &timer, Context &context, Body &&body)
{
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
        const double ms = timer.time(context, body);
        if (i > 0)
            times.push_back(ms);
    }
    return median(times);
}

Costs ours(Setup &setup, DeviceArray<std::int32_t> &labels)
{
    setup.context.forced = {};
    Job<float> job(setup.data, setup.problem);
    const PgkmFitParams params = {PGKM_L2, 1 << 30};
    const Control fresh = {running, 0, 1 << 30, 0, -1.0, 0.0, 0, 0};
    job.control.upload(&fresh, 1, job.stream());
    job.upload_centroids(setup.start.data(), &params);
    setup.context.wait(job.stream());
    Timer timer(job.stream());
    const Control *control = job.control.get();
    const auto slices = [&](auto &&body) { job.each_slice(0, body); };
    Costs costs{};
    costs.labels = repeat(timer, setup.context, [&] {
        slices([&](const View<float> &rows, std::int64_t first) { job.assign_rows(rows, control, labels.get() + first); });
    });
    costs.sums = repeat(timer, setup.context, [&] {
        slices([&](const View<float> &rows, std::int64_t first) {
            job.sum_features(rows, control, labels.get() + first);
            job.sum_masses(rows, control, labels.get() + first);
        });
    });
    costs.pass = repeat(timer, setup.context,
                        [&] { job.pass(job.view(setup.values(), nullptr, setup.problem.n_rows), control); });
    return costs;
}

Costs in_float(Setup &setup, DeviceArray<std::int32_t> &labels)
{
    Context &context = setup.context;
    const cudaStream_t stream = context.compute.get();
    const auto k = static_cast<std::size_t>(setup.problem.k), cells = setup.start.size();
    DeviceArray<float> centroids(context.budget, cells), sums(context.budget, cells), counts(context.budget, k),
        half(context.budget, k);
    centroids.upload(setup.start.data(), cells, stream);
    sums.fill_zero(stream);
    counts.fill_zero(stream);
    const FloatProblem problem = {setup.values(), centroids.get(), setup.problem.n_rows, setup.data.host.d, setup.problem.k,
                                  labels.get(),   sums.get(),      counts.get(),         context.facts.multiprocessors};
    halves(problem, half.get(), stream);
    context.wait(stream);
    Timer timer(stream);
    Costs costs{};
    costs.labels = repeat(timer, context, [&] { float_labels(problem, half.get(), stream); });
    costs.sums = repeat(timer, context, [&] { float_sums(problem, stream); });
    costs.pass = costs.labels + costs.sums;
    if (fits_fused(problem.d, problem.k))
        costs.pass = std::min(costs.pass, repeat(timer, context, [&] { float_fused(problem, half.get(), stream); }));
    return costs;
}

} // namespace

void cost(const std::vector<int> &which)
{
    std::printf("n,d,k,labels_ms,float_labels_ms,ratio_of_labels,sums_ms,float_sums_ms,ratio_of_sums,pass_ms,float_pass_ms,"
                "ratio_of_pass,iteration_ms,ratio_of_iteration\n");
    for (const int i : which) {
        Setup setup(rows[i]);
        DeviceArray<std::int32_t> labels(setup.context.budget, static_cast<std::size_t>(rows[i].n));
        const Costs exact = ours(setup, labels), plain = in_float(setup, labels);
        // What a fit runs; where sums follow the rows, they leave the pass behind.
        const double iteration = setup.iteration({}, repeats);
        std::printf("%lld,%d,%d,%.4f,%.4f,%.2f,%.4f,%.4f,%.2f,%.4f,%.4f,%.2f,%.4f,%.2f\n", static_cast<long long>(rows[i].n), rows[i].d,
                    rows[i].k, exact.labels, plain.labels, exact.labels / plain.labels, exact.sums, plain.sums,
                    exact.sums / plain.sums, exact.pass, plain.pass, exact.pass / plain.pass, iteration,
                    iteration / plain.pass);
        std::fflush(stdout);
    }
}

} // namespace bench

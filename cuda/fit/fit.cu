// fit.cu - Lloyd's iterations. The device decides by itself when the fit has converged: iterations are launches that
// are enqueued ahead of the decision. The host watches, and finishes iterations in which a cluster is empty.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backend/peers.hpp"
#include "fit/device_problem.hpp"
#include "fit/relocation.hpp"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
namespace {

constexpr std::int32_t ahead = 4; // iterations in the stream at a time

template <typename T>
class Fit {
  public:
    Fit(Data &data, PgkmProblem &problem, std::int32_t index, const PgkmFitParams &params)
        : on_device_(data, problem), problem_(problem), index_(index), params_(params),
          progress_(data.context.mailbox<Progress>(0)), state_(data.context.mailbox<Control>(256))
    {
        on_device_.few_iterations = params.max_iter <= 2;
    }

    void run();

  private:
    void iterate_on_device();
    void enqueue_iterations(const UpdateArguments<T> &arguments);
    void enqueue_ahead(const UpdateArguments<T> &arguments, std::int32_t most);
    void start_control() { start_control(params_.max_iter); }
    void start_control(std::int32_t max_iter);
    void fetch_control();
    void take_centroids();
    std::vector<std::int32_t> labels_on_host();
    void claim_sums();
    void relocate();
    void compare_labels_of_history();
    void iterate_on_host();
    void sum_on_host(const std::vector<std::int32_t> &labels, Sums &sums);
    template <typename Unchanged>
    void finish_host_iteration(Sums &sums, Unchanged &&unchanged);
    void tick();

    Context &context() { return on_device_.context; }
    cudaStream_t stream() { return on_device_.stream(); }

    DeviceProblem<T> on_device_;
    PgkmProblem &problem_;
    std::int32_t index_;
    const PgkmFitParams &params_;
    Progress *progress_;
    Control *state_;                  // the device's control, as last fetched
    std::array<Event, ahead> ends_;   // of iterations
    std::optional<Claim> sums_claim_; // from when it is needed to the end
    std::vector<Int128> last_masses_; // of the last one that found a cluster empty: the last_relocated_-th
    std::int32_t last_relocated_ = 0;
    std::int32_t reported_ = -1;
};

template <typename T>
void Fit<T>::start_control(std::int32_t max_iter)
{
    Control &control = state_[0];
    control = {};
    control.stop = running;
    control.n_iter = problem_.n_iter;
    control.max_iter = max_iter;
    control.tol = problem_.tol;
    control.shift = problem_.shift;
    on_device_.control.upload(&control, 1, stream());
}

template <typename T>
void Fit<T>::fetch_control()
{
    on_device_.control.download(state_, 1, stream());
    context().wait(stream(), &on_device_.control.get()->stop, [&] { tick(); });
    problem_.n_iter = state_[0].n_iter;
    problem_.converged = state_[0].converged;
    problem_.shift = state_[0].shift;
}

template <typename T>
void Fit<T>::tick()
{
    const std::int32_t iteration = progress_[0].iteration;
    if (iteration == reported_)
        return;
    reported_ = iteration;
    context().report("iterating", index_, iteration, progress_[0].shift);
}

// Iterations until control says why they stopped.
template <typename T>
void Fit<T>::iterate_on_device()
{
    start_control();
    const UpdateArguments<T> arguments = on_device_.update_arguments(&params_, progress_);
    do {
        enqueue_iterations(arguments);
        fetch_control();
    } while (state_[0].stop == running);
}

// Some iterations, which may go on until the fit stops.
template <typename T>
void Fit<T>::enqueue_iterations(const UpdateArguments<T> &arguments)
{
    const std::int32_t left = params_.max_iter - problem_.n_iter;
    if (problem_.peers != nullptr)
        return enqueue_ahead(arguments, on_device_.peer_sums->ahead() ? left : 1);
    if (!on_device_.data.resident)
        return on_device_.iteration(arguments, on_device_.control.get());
    enqueue_ahead(arguments, left);
}

// Up to `most` iterations, of which some are in the stream before it is known that the fit goes on to them: those that
// come after its end do nothing.
template <typename T>
void Fit<T>::enqueue_ahead(const UpdateArguments<T> &arguments, std::int32_t most)
{
    const std::int32_t first = problem_.n_iter;
    for (std::int32_t i = 0; i < most; ++i) {
        Event &ends = ends_[static_cast<std::size_t>(i % ahead)];
        if (i >= ahead) {
            context().wait(ends.get());
            tick();
            if (progress_[0].iteration - first <= i - ahead)
                return; // that iteration has not ended: the fit has
        } else if (ends.get() == nullptr) {
            ends = make_event();
        }
        if (problem_.peers != nullptr)
            on_device_.iteration_of_peers(arguments);
        else
            on_device_.iteration(arguments, on_device_.control.get());
        record(ends.get(), stream());
    }
}

template <typename T>
void Fit<T>::take_centroids()
{
    on_device_.centroids.download(static_cast<T *>(problem_.centroids),
                                  static_cast<std::size_t>(on_device_.k) * static_cast<std::size_t>(on_device_.d),
                                  stream());
    context().wait(stream());
}

template <typename T>
std::vector<std::int32_t> Fit<T>::labels_on_host()
{
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n_rows));
    start_control(); // kernels shall run, until a cancel stops them
    on_device_.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        on_device_.assign_rows(rows, on_device_.control.get(), on_device_.labels.get());
        on_device_.wait(); // a copy to memory that is not page-locked would wait without a look at the cancel flag
        download(context(), labels.data() + first, on_device_.labels.get(),
                 static_cast<std::size_t>(rows.n) * sizeof labels[0]);
    });
    return labels;
}

// The rest of an iteration that the host finishes: empty clusters, new centroids, decision.
template <typename T>
template <typename Unchanged>
void Fit<T>::finish_host_iteration(Sums &sums, Unchanged &&unchanged)
{
    if (has_empty_cluster(sums))
        cuda::relocate(on_device_, sums.masses, move_within<T>(sums));
    problem_.shift = update_centroids<T>(problem_, on_device_.d, params_.metric, sums);
    ++problem_.n_iter;
    problem_.converged = problem_.shift <= problem_.tol || unchanged();
    context().report("iterating", index_, problem_.n_iter, problem_.shift);
}

// For the sums of iterations in which the host has a part. Other fits need none of it.
template <typename T>
void Fit<T>::claim_sums()
{
    if (!sums_claim_)
        sums_claim_.emplace(context().host_budget, (on_device_.weighted ? 4 : 3) * sizeof(Int128) *
                                                       static_cast<std::uint64_t>(on_device_.k) *
                                                       static_cast<std::uint64_t>(on_device_.d));
}

// The device met an empty cluster and has changed nothing: sums are those of the current centroids. The host says which
// rows move, and the device ends the iteration.
template <typename T>
void Fit<T>::relocate()
{
    UpdateArguments<T> arguments = on_device_.update_arguments(&params_, progress_);
    on_device_.take_all_sums(arguments);
    arguments.empty_remain = true; // for which there is no row
    const std::int32_t k = on_device_.k;
    const Claim claim(context().host_budget, static_cast<std::uint64_t>(k) * (5 * sizeof(Int128)));
    const std::vector<std::int64_t> limbs = context().fetch(arguments.sums.masses, on_device_.masses.count());
    std::vector<Int128> masses(static_cast<std::size_t>(k));
    for (std::int32_t j = 0; j < k; ++j)
        masses[static_cast<std::size_t>(j)] = sum_of(limbs.data(), k, j, on_device_.weighted);
    start_control(); // kernels shall run again
    // Labels that stay make the same sums, with the same empty clusters: an iteration before that the device could
    // finish had none.
    const bool may_rest = last_relocated_ != 0 && last_relocated_ == problem_.n_iter && masses == last_masses_;
    const bool rests = may_rest && !any_of_peers(problem_.peers, !same_labels(on_device_, 0, 1));
    last_masses_ = masses;
    std::optional<MovedSums> moved_sums;
    cuda::relocate(on_device_, masses,
                   [&](const PgkmPoints &points, const PgkmProblem &of, const std::vector<MovedRow> &moved) {
                       moved_sums.emplace(on_device_, arguments.sums, points, of, moved, masses);
                   });
    if (rests) // the last one: its shift is the chain (sums/update.cuh)
        start_control(problem_.n_iter + 1);
    update(arguments, stream());
    fetch_control();
    problem_.converged |= rests ? 1 : 0;
    last_relocated_ = problem_.n_iter;
    if (arguments.sums_stay) { // they follow rows, and none has moved for them
        start_control();
        moved_sums->put_back(last_masses_);
        on_device_.wait();
    }
    if (problem_.n_iter <= 2) // the device stopped before it could order rows by their labels
        for (PreparedRows::Part &part : on_device_.prepared.parts)
            part.first_order = true;
}

// The device cannot tell whether labels changed: only those of the last two iterations can.
template <typename T>
void Fit<T>::compare_labels_of_history()
{
    start_control();
    problem_.converged = problem_.n_iter > 1 && !any_of_peers(problem_.peers, !same_labels(on_device_, 1, 2));
}

template <typename T>
void Fit<T>::sum_on_host(const std::vector<std::int32_t> &labels, Sums &sums)
{
    const PgkmPoints &points = on_device_.data.host;
    const std::int64_t rows_per_poll = std::max(1, 1000000 / on_device_.d);
    sums.reset(on_device_.k, on_device_.d);
    for (std::int64_t i = 0; i < problem_.n_rows; ++i) {
        if (i % rows_per_poll == 0)
            context().poll();
        const std::int64_t row = problem_.first_row + i;
        const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
        sums.masses[label] += row_mass(points, problem_, row);
        Int128 *totals = sums.totals.data() + label * static_cast<std::size_t>(on_device_.d);
        for (std::int32_t f = 0; f < on_device_.d; ++f)
            totals[f] += row_feature<T>(points, problem_, row, f);
    }
}

// Cross-processing (Lutz et al. 2018): labels on the GPU, sums and update on the CPU.
template <typename T>
void Fit<T>::iterate_on_host()
{
    claim_sums();
    const Claim claim(context().host_budget,
                      8 * static_cast<std::uint64_t>(problem_.n_rows)); // labels of two iterations
    std::vector<std::int32_t> previous;
    Sums sums;
    while (problem_.n_iter < params_.max_iter && problem_.converged == 0) {
        std::vector<std::int32_t> labels = labels_on_host();
        sum_on_host(labels, sums);
        add_over(problem_.peers, sums);
        finish_host_iteration(sums, [&] { return !any_of_peers(problem_.peers, labels != previous); });
        previous.swap(labels);
        on_device_.upload_centroids(problem_.centroids);
    }
}

template <typename T>
void Fit<T>::run()
{
    problem_.n_iter = 0;
    problem_.converged = 0;
    problem_.shift = 0.0;
    progress_[0].iteration = 0;
    progress_[0].shift = 0.0;
    start_control();
    on_device_.upload_centroids(problem_.centroids);
    const bool by_host = problem_.peers != nullptr && !on_device_.peer_sums->ahead();
    if (by_host || on_device_.plan.travel == Travel::shared)
        claim_sums();
    if (on_device_.plan.execution == Execution::cross_processing)
        return iterate_on_host();
    while (problem_.n_iter < params_.max_iter && problem_.converged == 0) {
        iterate_on_device();
        if (state_[0].stop == empty_cluster)
            relocate();
        else if (state_[0].stop == compare_labels)
            compare_labels_of_history();
    }
    take_centroids();
}

} // namespace

template <typename T>
void fit_problem(Data &data, PgkmProblem &problem, std::int32_t index, const PgkmFitParams &params)
{
    Fit<T>(data, problem, index, params).run();
}

template void fit_problem<float>(Data &, PgkmProblem &, std::int32_t, const PgkmFitParams &);
template void fit_problem<double>(Data &, PgkmProblem &, std::int32_t, const PgkmFitParams &);

} // namespace pgkm::cuda

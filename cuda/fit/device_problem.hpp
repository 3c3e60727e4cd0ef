// device_problem.hpp - the device memory of one problem while it is fitted or assigned, and its stages.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fit/peer_sums.hpp"
#include "plugin/operations.hpp"
#include "fused/leaves.hpp"
#include "order/ordered_rows.hpp"
#include "papers/constant.hpp"
#include "papers/share_rows.hpp"
#include "plan/stages.hpp"
#include "sums/update.cuh"

namespace pgkm::cuda {

struct MoveArguments;

// Sums as the device has them: parts, each in two limbs.
std::vector<std::int64_t> limbs_of(const std::vector<Int128> &sums, bool weighted);

template <typename T>
struct DeviceProblem {
    Data &data;
    Context &context;
    const PgkmProblem problem; // as it was given
    Plan plan;
    std::int32_t d, k;
    bool weighted;
    ConstantMemory constant;

    DeviceArray<T> centroids; // three sets
    DeviceArray<T> fresh;
    DeviceArray<T> shift;
    DeviceArray<double> shifts;
    DeviceArray<std::int64_t> totals;
    DeviceArray<std::int64_t> masses;
    DeviceArray<FeatureScale<T>> scales;
    DeviceArray<Control> control;
    std::optional<StopFlag> stop_flag; // control's
    DeviceArray<std::int32_t> labels;  // of one slice of rows
    Middle<T> middle;
    PreparedRows prepared;                  // by tensor.cu and wide_rows.cu, for resident rows that come again
    bool iterates = true;                   // the same rows come again
    bool few_iterations = false;            // too few of them to repay an order of the rows
    std::shared_ptr<RowOrder<float>> order; // of the problem's rows by pivots
    DeviceArray<char> kept;            // labels of the last iteration, where sums follow the rows, and entries (sums/)
    std::optional<Leaves> leaves;      // made with them
    std::optional<CpuShare> cpu_share; // of streamed rows
    std::optional<PeerSums> peer_sums; // of a problem with peers, who make theirs at the same time; ends first, for it
                                       // waits for what uses the others

    // May_stream: rows that leave no room are streamed from now on; else that is Error(PGKM_LIMIT).
    DeviceProblem(Data &owner, const PgkmProblem &given, bool may_stream = true);

    cudaStream_t stream() const { return context.compute.get(); }
    Stage<T> stage(const Control *watched)
    {
        return {context, stream(), watched, middle, iterates && data.resident ? &prepared : nullptr, constant.held()};
    }
    UpdateArguments<T> update_arguments(const PgkmFitParams *params, Progress *progress) const;

    // Waits for what was enqueued under `control`; on cancel the rest of it returns at once.
    void wait() { context.wait(stream(), &control.get()->stop); }

    // Centroids from the caller's memory, and all that depends on them anew.
    void upload_centroids(const void *values);

    // The view of rows that lie on the device, compared with centroid set `set`.
    View<T> view(const T *values, const double *weights, std::int64_t rows, int set = 0) const;
    // The same rows, compared with centroid set `set`.
    View<T> under(int set, View<T> rows) const
    {
        rows.centroids = centroids.get() + std::int64_t{set} * k * d;
        return rows;
    }

    // Whose kernel a pass in one read of the rows is: register_ or tiled.
    Assignment fused_assignment() const;
    // Labels of a view by the planned assignment.
    void assign_rows(const View<T> &rows, const Control *watched, std::int32_t *out);
    void sum_features(const View<T> &rows, const Control *watched, const std::int32_t *of);
    void sum_masses(const View<T> &rows, const Control *watched, const std::int32_t *of);
    // One pass over rows on the device: labels (not kept) and sums.
    void pass(const View<T> &rows, const Control *watched);
    // One iteration over all rows: labels, sums, new centroids, and what the next one needs. One with peers ends it
    // with its own sums.
    void iteration(const UpdateArguments<T> &arguments, const Control *watched);
    // The whole of it, with the peers.
    void iteration_of_peers(UpdateArguments<T> arguments);
    // The sums of all rows, once an iteration has made them.
    void take_all_sums(UpdateArguments<T> &arguments) const;

    // All rows, as they lie on the device: body(view), more than once where they come in chunks.
    template <typename Body>
    void each_chunk(Body &&body, int set = 0)
    {
        data.template each_chunk<T>(problem.first_row, problem.n_rows,
                                    [&](const T *values, const double *weights, std::int64_t first, std::int64_t rows) {
                                        if constexpr (std::is_invocable_v<Body, const View<T> &, std::int64_t>)
                                            body(view(values, weights, rows, set), first);
                                        else
                                            body(view(values, weights, rows, set));
                                    });
    }

    // Slices of rows whose labels fit the labels array: body(view, first row).
    template <typename Body>
    void each_slice(int set, Body &&body)
    {
        each_chunk(
            [&](const View<T> &rows, std::int64_t first) {
                const auto most = static_cast<std::int64_t>(labels.count());
                for (std::int64_t done = 0; done < rows.n; done += most)
                    body(slice(rows, done, std::min(most, rows.n - done)), first + done);
            },
            set);
    }

  private:
    void sum_parts(const Both<Sum> &function, View<T> rows, const Control *watched, const std::int32_t *of,
                   const DeviceArray<std::int64_t> &sums);
    void fused_pass(const View<T> &rows, const Control *watched);
    void register_pass(const View<T> &rows, const Control *watched);
    void upload_scales();
    void find_middle();
    void use_plan();
    bool keeps_labels();
    bool keeps_entries();
    bool takes_floats() const;
    void forget_labels();
    MoveArguments move_arguments(const UpdateArguments<T> &arguments, const View<T> &rows) const;
    void shared_pass(const Control *watched);
    void add_sums(const std::vector<Int128> &sums, const DeviceArray<std::int64_t> &to, const Control *watched);
    void there_and_back(const void *array, std::size_t bytes);
    void iterate_moves(const UpdateArguments<T> &arguments);
    void iterate_apart(UpdateArguments<T> arguments);
};

} // namespace pgkm::cuda

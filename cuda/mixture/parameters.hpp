// parameters.hpp (mixture) - mixtures of one call and their sums in device memory. All values are float64.
#pragma once

#include <memory>
#include <vector>

#include "plugin/context.hpp"
#include "mixture/items.cuh"

namespace pgkm::cuda::mixture {

// Which kernels see to a problem: those of fused.hpp, of products.hpp, or of stages.hpp.
enum class Way { fused, products, staged };

// One problem of a call with everything that belongs to it.
struct Task {
    const PgkmProblem *problem;
    const PgkmMixture *mixture;
    PgkmMixtureSums *out;
    Way way;
    bool sparse;                // rows may go the way of sparse.hpp first
    std::vector<double> origin; // d: the mean of the means; empty where none is needed

    bool given() const { return mixture->labels != nullptr; }
};

// A component's weighted log density at its mean.
double log_constant(const PgkmMixture &mixture, std::int64_t j, std::int64_t d);

SumsLayout layout_of(const PgkmMixture &mixture, std::int64_t d);

// Bytes of device memory of a task's mixture without its sums.
std::uint64_t parameter_bytes(const Task &task, std::int64_t d);

class Parameters {
  public:
    // rows_per_slot: of how many rows a copy of the sums is made, where there is room for so many copies.
    Parameters(Context &context, const std::vector<Task> &tasks, std::int64_t d, std::int64_t rows_per_slot);

    const MixtureView *views() const { return views_.get(); }
    // A view of the host's, whose addresses are the device's.
    const MixtureView &view(std::size_t task) const { return host_views_[task]; }
    // Copies of the sums, of all tasks together.
    std::int64_t slots() const { return slots_; }

    // Combines the copies and hands the sums out; waits. from_origin: they are sums of products.hpp.
    void store(const std::vector<Task> &tasks, bool from_origin, std::int32_t *stop);

  private:
    void place_sums(const std::vector<Task> &tasks, std::int64_t rows_per_slot);
    void upload(const std::vector<Task> &tasks);
    void upload_large(const Task &task, double *to, MixtureView &view);
    template <typename Copy>
    void hand_out(const Task &task, const SumsLayout &layout, Copy &&copy) const;

    Context &context_;
    const std::int64_t d_;
    DeviceArray<double> values_;  // parameters, one mixture's after the other
    DeviceArray<double> sums_;    // copies of the sums, one mixture's after the other
    DeviceArray<double> results_; // the sums, one mixture's after the other
    DeviceArray<MixtureView> views_;
    std::vector<MixtureView> host_views_;
    Claim claim_;                          // on the host's budget, for:
    std::unique_ptr<double[]> travelling_; // parameters on their way, then sums
    std::int64_t slots_ = 0;
    std::int64_t most_values_ = 0; // in one mixture's sums
};

} // namespace pgkm::cuda::mixture

// batch.hpp (mixture) - problems that go through the kernels together.
//
// Mixtures of moderate size have kernels that read the rows once (fused.hpp). For others rows go through in slices
// whose responsibilities fit a workspace. A slice is cut into items, each of which adds to a copy of the sums of its
// own; the copies are added up in their order. No atomics: the bits are the same from run to run.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "groups/transfer.hpp"
#include "plugin/upload.hpp"
#include "mixture/fused.hpp"
#include "mixture/parameters.hpp"
#include "mixture/products.hpp"
#include "mixture/sparse.hpp"
#include "mixture/slices.hpp"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {

inline constexpr std::uint64_t most_workspace = std::uint64_t{256} << 20;
inline constexpr std::int64_t most_slice_rows = 4'000'000; // rows of one problem: a grid's limit

inline std::int64_t rounded_up(std::int64_t value, std::int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

// Problems of one covariance type, all fused or all staged, that want the same outputs.
template <typename T>
class Batch {
  public:
    Batch(Data &data, const std::vector<Task> &tasks)
        : data_(data), context_(data.context), tasks_(tasks), d_(data.host.d), type_(tasks[0].mixture->covariance_type),
          way_(tasks[0].way), products_(way_ == Way::products), given_(tasks[0].given()),
          wants_sums_(tasks[0].out->masses != nullptr), wants_labels_(tasks[0].out->labels != nullptr && !given_),
          parameters_(context_, tasks, d_, rows_per_slot()),
          slice_products_(
              slice_products(float64_rate(context_.facts), static_cast<double>(parameters_.slots() * blocks_of_slot()) /
                                                               blocks_of(context_, tasks[0], d_))),
          stop_(context_.budget, 1), stop_flag_(context_, stop_.get())
    {
        stop_.fill_zero(context_.compute.get());
        for (const Task &task : tasks)
            most_k_ = std::max<std::int64_t>(most_k_, task.mixture->k);
        if (way_ != Way::fused)
            make_workspace();
        else
            capacity_ = seen_rows();
    }

    void run()
    {
        if (products_)
            prepare_products(parameters_.views(), static_cast<std::int64_t>(tasks_.size()), d_, most_k_, type_, nullptr,
                             context_.compute.get());
        if (type_ == PGKM_COVARIANCE_TIED && !given_) {
            rotate_means(parameters_.views(), static_cast<std::int64_t>(tasks_.size()), d_, most_k_,
                         context_.compute.get());
            if (may_become_products())
                products_ = prepare_tied() <= most_reach<T>;
        }
        context_.chosen = {};
        context_.chosen.execution = way_ == Way::fused ? "single_pass" : "multi_pass";
        if (data_.resident) {
            const T *values = reinterpret_cast<const T *>(data_.values.get());
            weights_ = data_.host.weights == nullptr ? nullptr : data_.weights.get();
            for (std::size_t i = 0; i < tasks_.size(); ++i)
                add_rows(values, i, 0, tasks_[i].problem->first_row, tasks_[i].problem->n_rows);
            flush(values);
        } else {
            for (std::size_t i = 0; i < tasks_.size(); ++i)
                data_.each_chunk<T>(tasks_[i].problem->first_row, tasks_[i].problem->n_rows,
                                    [&](const T *values, const double *weights, std::int64_t first, std::int64_t rows) {
                                        weights_ = weights;
                                        add_rows(values, i, first, 0, rows);
                                        flush(values);
                                    });
        }
        parameters_.store(tasks_, products_, stop_.get());
        context_.report("iterating", 0, 0, 0.0);
    }

  private:
    // The slices' workspace, and labels where they are given or wanted.
    void make_workspace()
    {
        share_values_ = products_ || may_become_products()
                            ? std::max(ProductShares<T>::values_per_row(most_k_), most_k_ + 1)
                            : most_k_ + 1;
        per_row_ = share_values_ + (type_ == PGKM_COVARIANCE_TIED ? d_ : 0);
        const std::uint64_t room = std::min(most_workspace, context_.scratch_limit() / 2);
        const auto row_bytes = static_cast<std::uint64_t>(per_row_) * 8 + 4;
        const std::int64_t fits = static_cast<std::int64_t>(room / row_bytes) / tile_rows * tile_rows;
        // At least a tile: the budget has the last word.
        capacity_ = std::max<std::int64_t>(std::min({fits, seen_rows(), most_slice_rows}), tile_rows);
        const auto bytes = static_cast<std::size_t>(capacity_ * per_row_) * 8;
        workspace_ = reinterpret_cast<double *>(context_.scratch(std::max(bytes, plan_sparse())));
        if (given_ || wants_labels_)
            labels_ = DeviceArray<std::int32_t>(context_.budget, static_cast<std::size_t>(capacity_));
    }

    // Tied: products pay for one large problem, if its means lie near enough.
    bool may_become_products() const
    {
        constexpr std::int64_t pay = 1024; // components x features
        return type_ == PGKM_COVARIANCE_TIED && !given_ && data_.host.weights == nullptr && wants_sums_ &&
               !wants_labels_ && tasks_.size() == 1 && most_k_ * d_ >= pay;
    }

    // Coefficients of the rotated means, and how far these lie from the origin.
    double prepare_tied()
    {
        const cudaStream_t stream = context_.compute.get();
        auto reach = zeros<unsigned long long>(context_.budget, 1, stream);
        prepare_products(parameters_.views(), 1, d_, most_k_, type_, reach.get(), stream);
        context_.wait(stream, stop_.get()); // the copy itself would wait without a look at the cancel flag
        double found = 0.0;
        static_assert(sizeof found == sizeof(unsigned long long));
        reach.download(reinterpret_cast<unsigned long long *>(&found), 1, stream);
        context_.wait(stream);
        return found;
    }

    // Bytes of workspace if pairs are to be tried first: for one problem.
    std::size_t plan_sparse()
    {
        constexpr std::int64_t most_rows = 1 << 20;
        if (tasks_.size() != 1 || !tasks_[0].sparse || tasks_[0].problem->n_rows < least_rows)
            return 0;
        sparse_.emplace(context_, tasks_[0], d_);
        const std::size_t bytes = sparse_->plan(std::min(tasks_[0].problem->n_rows, most_rows),
                                                std::min(2 * most_workspace, context_.scratch_limit() / 2));
        if (bytes == 0)
            sparse_.reset();
        return bytes;
    }

    // Multiplications of a slice of so many rows, and with an exponential as ten of them.
    double products_of(std::int64_t rows) const
    {
        const double terms = type_ == PGKM_COVARIANCE_FULL ? 2.0 * static_cast<double>(d_) : 4.0;
        return static_cast<double>(rows * most_k_) * (static_cast<double>(d_) * terms + 10.0);
    }
    std::int64_t seen_rows() const { return slice_rows(slice_products_, products_of(1), tile_rows); }

    // Rows of the caller's that one slice holds, with their labels.
    struct Part {
        std::size_t task;
        std::int64_t first; // of the problem's rows
        std::int64_t label; // of the slice's
        std::int64_t n;
    };

    // Blocks that add to one copy of the sums at the same time, at least: each has 32 components, or one of full.
    std::int64_t blocks_of_slot() const
    {
        if (way_ != Way::staged)
            return 1;
        return type_ == PGKM_COVARIANCE_FULL ? tasks_[0].mixture->k : (tasks_[0].mixture->k + 31) / 32;
    }

    // As many copies of all sums as keep the device busy.
    std::int64_t rows_per_slot() const
    {
        std::int64_t rows = 0;
        for (const Task &task : tasks_)
            rows += task.problem->n_rows;
        const std::int64_t slots = blocks_of(context_, tasks_[0], d_);
        return rounded_up((rows + slots - 1) / slots, tile_rows);
    }

    // Takes rows [first, first + n) of a problem, which lie at row `at` of the values.
    void add_rows(const T *values, std::size_t task, std::int64_t first, std::int64_t at, std::int64_t n)
    {
        for (std::int64_t rows = 0; sparse_.has_value() && n > 0; first += rows, at += rows, n -= rows) {
            rows = sparse_->add(values + at * d_, n, parameters_.views(), parameters_.view(task),
                                reinterpret_cast<char *>(workspace_), stop_.get());
            if (rows == 0)
                sparse_.reset();
        }
        for (std::int64_t done = 0; done < n;) {
            if (used_ + tile_rows > capacity_)
                flush(values);
            const std::int64_t rows = std::min(n - done, capacity_ - used_);
            add_items(task, at + done, rows);
            parts_.push_back({task, first + done, used_, rows});
            used_ += rounded_up(rows, tile_rows);
            done += rows;
        }
    }

    // One item for each copy of the sums, if the rows suffice.
    void add_items(std::size_t task, std::int64_t at, std::int64_t rows)
    {
        const MixtureView &view = parameters_.view(task);
        const std::int64_t length = rounded_up((rows + view.slots - 1) / view.slots, tile_rows);
        for (std::int64_t done = 0, slot = 0; done < rows; done += length, ++slot) {
            const std::int64_t n = std::min(length, rows - done), row = used_ + done;
            const std::int64_t shares = row * per_row_;
            items_.push_back({at + done, row, shares, shares + rounded_up(n, tile_rows) * share_values_,
                              static_cast<std::int32_t>(n), static_cast<std::int32_t>(task),
                              static_cast<std::int32_t>(slot)});
            extent_.most_rows = std::max(extent_.most_rows, static_cast<std::int32_t>(n));
            extent_.most_k = std::max(extent_.most_k, view.k);
        }
    }

    // Enqueues the stages over what has gathered.
    void flush(const T *values)
    {
        if (items_.empty())
            return;
        context_.poll();
        const cudaStream_t stream = context_.compute.get();
        if (device_items_.count() < items_.size())
            device_items_ = DeviceArray<Item>(context_.budget, items_.size());
        device_items_.upload(items_.data(), items_.size(), stream);
        extent_.n_items = static_cast<unsigned>(items_.size());
        const Launch<T> launch = {values,
                                  weights_,
                                  static_cast<std::int32_t>(d_),
                                  parameters_.views(),
                                  device_items_.get(),
                                  workspace_,
                                  given_ || wants_labels_ ? labels_.get() : nullptr,
                                  stop_.get()};
        if (products_) {
            if (type_ == PGKM_COVARIANCE_TIED)
                rotate_rows(launch, extent_, stream);
            product_densities(launch, extent_, type_, stream);
            product_sums(launch, extent_, type_, stream);
        } else if (way_ == Way::staged)
            run_stages(launch, stream);
        else
            fused_step(launch, extent_.n_items, FusedShape(type_, extent_.most_k, d_), extent_.most_k, stream);
        // The host stays near: it sees a cancel, and kernels ahead of it do not.
        enqueued_ += products_of(used_);
        if (enqueued_ > slice_products_ / 8) {
            context_.wait(stream, stop_.get());
            enqueued_ = 0.0;
        }
        items_.clear();
        parts_.clear();
        extent_ = {};
        used_ = 0;
    }

    void run_stages(const Launch<T> &launch, cudaStream_t stream)
    {
        find_shares(launch, stream);
        share_sums(launch, extent_, wants_sums_, stream);
        if (wants_sums_) {
            weighted_sums(launch, extent_, type_ == PGKM_COVARIANCE_DIAG || type_ == PGKM_COVARIANCE_SPHERICAL, stream);
            if (type_ == PGKM_COVARIANCE_FULL)
                scatter_sums(launch, extent_, stream);
        }
        if (wants_labels_)
            fetch_labels(stream);
    }

    void find_shares(const Launch<T> &launch, cudaStream_t stream)
    {
        if (given_) {
            for (const Part &part : parts_)
                labels_.upload(tasks_[part.task].mixture->labels + part.first, static_cast<std::size_t>(part.n), stream,
                               static_cast<std::size_t>(part.label));
            return given_shares(launch, extent_, stream);
        }
        if (type_ == PGKM_COVARIANCE_TIED)
            rotate_rows(launch, extent_, stream);
        if (type_ == PGKM_COVARIANCE_FULL)
            full_densities(launch, extent_, stream);
        else
            scaled_densities(launch, extent_, type_, stream);
        normalise(launch, extent_, stream);
    }

    void fetch_labels(cudaStream_t stream)
    {
        context_.wait(stream, stop_.get());
        std::vector<Rows<std::int32_t>> wanted;
        for (const Part &part : parts_)
            wanted.push_back({part.label, part.n, tasks_[part.task].out->labels + part.first});
        download_rows(context_, labels_, wanted);
    }

    Data &data_;
    Context &context_;
    const std::vector<Task> &tasks_;
    const std::int64_t d_;
    const PgkmCovariance type_;
    const Way way_;
    bool products_; // by the kernels of products.hpp, as soon as it is known
    const bool given_, wants_sums_, wants_labels_;
    Parameters parameters_;
    const double slice_products_; // of a slice
    DeviceArray<std::int32_t> stop_;
    StopFlag stop_flag_; // for chunks
    std::int64_t most_k_ = 1;
    double enqueued_ = 0.0;         // multiplications since the last wait
    std::int64_t per_row_ = 1;      // values in the workspace
    std::int64_t share_values_ = 1; // of them without a rotated row
    std::int64_t capacity_ = 0;     // rows of a slice
    double *workspace_ = nullptr;
    std::optional<Sparse<T>> sparse_;  // until rows have too many pairs
    DeviceArray<std::int32_t> labels_; // of a slice
    DeviceArray<Item> device_items_;
    const double *weights_ = nullptr; // of the rows that the items are over, on the device
    // The slice that is gathering.
    std::vector<Item> items_;
    std::vector<Part> parts_;
    Extent extent_{};
    std::int64_t used_ = 0; // rows
};

} // namespace pgkm::cuda::mixture

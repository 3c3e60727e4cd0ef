// em_step.cpp - em_step(): responsibilities and their sums, cut into segments (numeric/reduction.hpp).
#include "cpu/operations.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <vector>

#include "backend/covariance.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/mixture/mixture_kernels.hpp"
#include "cpu/kernels/product_kernels.hpp"
#include "numeric/reduction.hpp"

namespace pgkm::cpu {
namespace {

// R of the reduction: the log-likelihood, then masses, first and second sums as in PgkmMixtureSums.
struct Layout {
    Layout(const PgkmMixture &mixture, std::int32_t features, bool wanted)
        : k(mixture.k), d(features), second_size(pgkm::second_size(mixture.covariance_type, 1, features))
    {
        values = wanted ? 1 + k * (1 + d + second_size) : 1;
    }
    double *mass(double *r, std::int64_t j) const { return r + 1 + j; }
    double *first(double *r, std::int64_t j) const { return r + 1 + k + j * d; }
    double *second(double *r, std::int64_t j) const
    {
        return second_size == 0 ? nullptr : r + 1 + k + k * d + j * second_size;
    }

    std::int64_t k, d;
    std::int64_t second_size; // of one component
    std::int64_t values;
};

// Of two factors each, with W or of features: some milliseconds' work.
constexpr std::int64_t products_between_polls = 1 << 26;

template <typename T>
class EmStep {
  public:
    // labels: NULL, or where those of the problem's rows go.
    EmStep(Data &data, ThreadPool &pool, const PgkmProblem &problem, const PgkmMixture &mixture, bool want_sums,
           std::int32_t *labels)
        : context_(data.context), pool_(pool), n_(problem.n_rows), mixture_(mixture), want_sums_(want_sums),
          labels_(labels), d_(data.points.d),
          x_(static_cast<const T *>(data.points.values) + problem.first_row * data.points.d),
          weights_(data.points.weights == nullptr ? nullptr : data.points.weights + problem.first_row),
          shape_(mixture.covariance_type), layout_(mixture, data.points.d, want_sums),
          products_(product_kernels(context_.instruction_set)), kernels_(mixture_kernels(context_.instruction_set)),
          zeros_(d_, 0.0), features_(padded_features(d_)), rows_(std::min(block_rows, padded_rows(problem.n_rows))),
          own_size_((blocks() * features_ + mixture.k + 1) * rows_),
          own_(Buffer<double>::zeros(context_.budget, own_size_ * pool.size()))
    {
        if (mixture.labels == nullptr)
            prepare();
    }

    // Of those that the sums have a plan for, these rows are `first` and on.
    void add_to(OrderedSums &sums, std::int64_t first)
    {
        sums.add(
            first, first + n_,
            [&](std::int64_t tasks, const auto &body) {
                pool_.run(tasks, [&](std::int64_t task, int worker) {
                    context_.poll();
                    body(task, worker);
                });
            },
            [&](const ReductionTask &task, double *r, int worker) {
                for (std::int64_t i = task.first; i < task.last; i += block_rows)
                    block(i - first, static_cast<int>(std::min<std::int64_t>(block_rows, task.last - i)), r, worker);
            });
        if (!finite_.load())
            throw Error(PGKM_INVALID, "features are too large: their squares overflow");
    }

  private:
    // Blocks of features that a worker needs: the rows; where there are matrices, also centred and transformed.
    std::int64_t blocks() const { return shape_.is_matrix() ? 3 : 1; }
    const double *mean(std::int64_t j) const { return mixture_.means + j * d_; }

    // Constants of the densities, and the factors as the kernels read them.
    void prepare()
    {
        for (std::int32_t j = 0; j < mixture_.k; ++j)
            constants_.push_back(mixture_.log_weights[j] + mixture_.log_determinants[j] -
                                 0.5 * d_ * std::log(2.0 * std::numbers::pi));
        const std::int64_t matrices = shape_.matrices(mixture_.k);
        packed_ = Buffer<double>::zeros(context_.budget, matrices * packed_size(d_));
        pool_.run(matrices, [&](std::int64_t j, int) { pack(j); });
        if (shape_.is_shared) {
            transform_means();
            about_ = transformed_.data();
            scales_.assign(d_, 1.0);
        } else if (shape_.dimensions == 0) {
            for (std::int32_t j = 0; j < mixture_.k; ++j)
                scales_.insert(scales_.end(), d_, mixture_.factors[j]);
        }
    }

    // What scaled_squares() multiplies differences with.
    const double *scales(std::int64_t j) const
    {
        return shape_.dimensions == 1 ? mixture_.factors + j * d_ : scales_.data() + (shape_.is_shared ? 0 : j * d_);
    }

    void pack(std::int64_t j)
    {
        double *const packed = packed_.data() + j * packed_size(d_);
        for (std::int64_t c = 0; c < d_; ++c) {
            context_.poll();
            for (std::int64_t f = 0; f <= c; ++f)
                packed[c / 4 * 4 * packed_columns(d_) + f * 4 + c % 4] = mixture_.factors[(j * d_ + c) * d_ + f];
        }
    }

    // With one W for all, |W (x - mean)| = |W (x - origin) - W (mean - origin)|: rows and means are
    // transformed once. The origin, amid the means, keeps wide offsets from cancelling.
    void transform_means()
    {
        origin_.assign(d_, 0.0);
        for (std::int32_t j = 0; j < mixture_.k; ++j)
            for (std::int32_t f = 0; f < d_; ++f)
                origin_[f] += mean(j)[f] / mixture_.k;
        for (std::int64_t j = 0; j < mixture_.k; ++j)
            for (std::int64_t c = 0; c < d_; ++c) {
                context_.poll();
                double sum = 0.0;
                for (std::int64_t f = 0; f <= c; ++f)
                    sum += mixture_.factors[c * d_ + f] * (mean(j)[f] - origin_[f]);
                transformed_.push_back(sum);
            }
    }

    // Rows [first, first + rows) of the problem into R.
    void block(std::int64_t first, int rows, double *r, int worker)
    {
        context_.poll();
        const int stride = padded_rows(rows);
        double *const x = own_.data() + own_size_ * worker;
        double *const centred = x + features_ * rows_;
        double *const weighted = centred + features_ * rows_;
        double *const shares = x + blocks() * features_ * rows_;
        const double *const weights = padded_weights(first, rows, stride, shares + mixture_.k * rows_);
        products_.turn(x_ + first * d_, rows, d_, zeros_.data(), x, stride);
        if (mixture_.labels != nullptr)
            given_shares(first, rows, stride, shares);
        else
            find_shares(first, rows, stride, x, centred, weighted, weights, shares, r);
        if (!want_sums_)
            return;
        for (std::int32_t j = 0; j < mixture_.k; ++j)
            add_sums(j, stride, x, centred, weighted, shares + std::int64_t{j} * stride, r);
    }

    // Those of a block's rows, and 0 beside them; NULL where rows have none.
    const double *padded_weights(std::int64_t first, int rows, int stride, double *to) const
    {
        if (weights_ == nullptr)
            return nullptr;
        std::copy_n(weights_ + first, rows, to);
        std::fill(to + rows, to + stride, 0.0);
        return to;
    }

    void given_shares(std::int64_t first, int rows, int stride, double *shares) const
    {
        std::fill_n(shares, std::int64_t{mixture_.k} * stride, 0.0);
        for (int i = 0; i < rows; ++i)
            shares[std::int64_t{mixture_.labels[first + i]} * stride + i] =
                weights_ == nullptr ? 1.0 : weights_[first + i];
    }

    // A multiple of `unit` things of which each takes so many products.
    static std::int64_t run_of(std::int64_t products, std::int64_t unit)
    {
        return std::max<std::int64_t>(products_between_polls / products / unit, 1) * unit;
    }

    // Calls body(first, count) for all of `whole` things, `run` at a time.
    template <typename Body>
    void for_runs(std::int64_t whole, std::int64_t run, Body &&body) const
    {
        for (std::int64_t first = 0; first < whole; first += run) {
            context_.poll();
            body(first, std::min(run, whole - first));
        }
    }

    void find_shares(std::int64_t first, int rows, int stride, const double *x, double *centred, double *weighted,
                     const double *weights, double *shares, double *r)
    {
        if (shape_.is_shared) {
            kernels_.centre(x, stride, d_, origin_.data(), centred);
            for_runs(stride, row_run_, [&](std::int64_t at, std::int64_t count) {
                kernels_.transform(centred + at, static_cast<int>(count), stride, d_, packed_.data(), weighted + at);
            });
        }
        for (std::int64_t j = 0; j < mixture_.k; ++j) {
            double *const squares = shares + j * stride;
            context_.poll();
            if (shape_.has_own_matrices()) {
                kernels_.centre(x, stride, d_, mean(j), centred);
                for_runs(stride, row_run_, [&](std::int64_t at, std::int64_t count) {
                    kernels_.transformed_squares(centred + at, static_cast<int>(count), stride, d_,
                                                 packed_.data() + j * packed_size(d_), squares + at);
                });
            } else {
                kernels_.scaled_squares(shape_.is_shared ? weighted : x, stride, d_, about_ + j * d_, scales(j),
                                        squares);
            }
        }
        const BlockDensity density = kernels_.normalise(shares, rows, stride, mixture_.k, constants_.data(), weights,
                                                        labels_ == nullptr ? nullptr : labels_ + first);
        r[0] += density.log_likelihood;
        if (!density.finite)
            finite_.store(false);
    }

    void add_sums(std::int64_t j, int stride, const double *x, double *centred, double *weighted, const double *share,
                  double *r)
    {
        context_.poll();
        if (std::all_of(share, share + stride, [](double value) { return value == 0.0; }))
            return; // most blocks, where components lie apart
        if (!shape_.has_own_matrices()) {
            *layout_.mass(r, j) +=
                kernels_.weighted_sums(x, stride, d_, share, mean(j), layout_.first(r, j), layout_.second(r, j));
            return;
        }
        kernels_.centre(x, stride, d_, mean(j), centred);
        *layout_.mass(r, j) += kernels_.weigh(centred, stride, d_, share, weighted);
        products_.add_rows(weighted, stride, d_, layout_.first(r, j));
        for_runs(d_, feature_run_, [&](std::int64_t at, std::int64_t count) {
            products_.add_products(weighted, centred, stride, static_cast<std::int32_t>(at),
                                   static_cast<std::int32_t>(at + count), layout_.second(r, j));
        });
    }

    Context &context_;
    ThreadPool &pool_;
    const std::int64_t n_;
    const PgkmMixture &mixture_;
    const bool want_sums_;
    std::int32_t *const labels_;
    const std::int32_t d_;
    const T *const x_;
    const double *const weights_; // of the problem's rows, or NULL
    const CovarianceShape shape_;
    const Layout layout_;
    const ProductKernels &products_;
    const MixtureKernels &kernels_;
    const std::vector<double> zeros_; // d: rows are turned as they are
    const std::int64_t features_;
    const std::int64_t rows_; // of a block, at most
    const std::int64_t row_run_ = run_of(triangle_size(d_), transformed_rows);
    const std::int64_t feature_run_ = run_of(std::int64_t{d_} * block_rows, feature_panel);
    const std::size_t own_size_;
    Buffer<double> own_;                       // per worker: blocks of features, one of shares, one of weights
    Buffer<double> packed_;                    // full: k matrices, tied: one
    std::vector<double> constants_;            // k
    std::vector<double> origin_, transformed_; // tied: d, and the means transformed, k x d
    std::vector<double> scales_;               // spherical: k x d; tied: d
    const double *about_ = mixture_.means;     // what scaled_squares() takes rows about
    std::atomic<bool> finite_{true};
};

SumPlan plan_em_step(const Layout &layout, std::int64_t n)
{
    return plan_sums(n, block_rows, layout.values, 1, most_mixture_values);
}

void copy_sums(const Context &context, const Layout &layout, double *total, PgkmMixtureSums &out)
{
    out.log_likelihood = total[0];
    if (out.masses == nullptr)
        return;
    std::copy_n(layout.mass(total, 0), layout.k, out.masses);
    std::copy_n(layout.first(total, 0), layout.k * layout.d, out.first);
    for (std::int64_t j = 0; layout.second_size > 0 && j < layout.k; ++j) {
        context.poll();
        std::copy_n(layout.second(total, j), layout.second_size, out.second + j * layout.second_size);
    }
}

} // namespace

void em_step(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
             PgkmMixtureSums *sums)
{
    const auto work = [&](std::int64_t p) {
        return em_step_products(mixtures[p].covariance_type, static_cast<double>(problems[p].n_rows), mixtures[p].k,
                                data.points.d);
    };
    for_problems(data, n_problems, work, [&](std::int64_t p, ThreadPool &pool) {
        const Layout layout(mixtures[p], data.points.d, sums[p].masses != nullptr);
        RowSums all(data.context, plan_em_step(layout, problems[p].n_rows));
        with_element(data.points, [&](auto element) {
            EmStep<decltype(element)>(data, pool, problems[p], mixtures[p], sums[p].masses != nullptr, sums[p].labels)
                .add_to(all.ordered, 0);
        });
        copy_sums(data.context, layout, all.ordered.total(), sums[p]);
    });
}

RowSums begin_em_step(Context &context, std::int64_t n, std::int32_t d, const PgkmMixture &mixture, bool want_sums)
{
    return RowSums(context, plan_em_step(Layout(mixture, d, want_sums), n));
}

void add_em_step(Data &piece, std::int64_t first, const PgkmMixture &mixture, bool want_sums, RowSums &sums)
{
    PgkmProblem problem = {};
    problem.n_rows = piece.points.n;
    with_element(piece.points, [&](auto element) {
        EmStep<decltype(element)>(piece, piece.context.pool, problem, mixture, want_sums, nullptr)
            .add_to(sums.ordered, first);
    });
}

void finish_em_step(Context &context, const RowSums &sums, std::int32_t d, const PgkmMixture &mixture,
                    PgkmMixtureSums &out)
{
    copy_sums(context, Layout(mixture, d, out.masses != nullptr), sums.ordered.total(), out);
}

} // namespace pgkm::cpu

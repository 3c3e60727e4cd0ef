// projection.cpp - projects rows, decides on how many directions, and proves what float32 may do to them.
//
// The bound. Let X be the exact centred point, X' its float32 form, u = 2^-24; |X' - X| <= 1.0001 u |X|. P holds m
// directions in float32, s is its skew. The exact projection is (Q X, |X - Q^T Q X|), with Q the orthonormal matrix
// nearest to P (its polar factor), so that |P - Q| <= s and |P| <= 1 + s.
//
//   1. y = fl(P X'). Sums run in chains of 32 features: each value is off by at most g1 |P_j| |X'|, where
//      g1 = 1.01 u (32 + d / 32 + 2), so |y - Q X| <= (1.02 sqrt(m) g1 + s + 1.01 u) |X| = e1 |X|.
//   2. z = fl(X' - P^T y), in chains of 32 directions: off by at most g2 (|X'| + sum |y_j| |P_j|), hence by
//      g2 (1 + 1.03 sqrt(m)) |X|, with g2 = 1.01 u (32 + m / 32 + 2). The exact X' - P^T y differs from X - Q^T Q X by
//      at most (1.01 u + 1.03 s + 1.01 e1) |X|.
//   3. The length of z: float32 sums of d squares and a root move it by (d / 2 + 4) u |z| at most.
//
// Where products are rounded apart from sums, chains of 32 count 64. Together, with small products in a factor of 1.05,
// that is relative_error_ times |X|; the projection's own length differs from |X| by no more, which another factor
// covers. Underflow loses less than d 2^-149 of a square, and d m 2^-149 of a sum: both are within (d + m) 2^-70.
#include "cpu/encode/projection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/encode/score_bound.hpp"
#include "cpu/kernels/vector_kernels.hpp"

namespace pgkm::cpu {
namespace {

constexpr double unit = 0x1p-24;
constexpr std::int32_t most_features = 64;
// Numbers of features to choose from.
constexpr int sizes[] = {8, 16, 24, 32, 48, most_features};
constexpr std::int64_t most_centroids = 1024; // that are looked at to choose
constexpr std::int32_t most_scored = 1 << 24; // the filter numbers them in float32

// Rows of so many times the features of a projection are worth one.
constexpr std::int32_t least_gain = 4;

// Cycles for one row. A product takes 16 of its terms a cycle, a distance apart from it 8 and a call.
template <typename T>
double estimate_cost(std::int32_t d)
{
    return 120.0 + static_cast<double>(d) * sizeof(T) / 20.0;
}
double product_cost(double features, double k)
{
    constexpr double besides = 60.0; // limits, and what a row is found to be near
    return besides + features + k * (features + 16.0) / 14.0;
}

// The same with rows as 16-bit integers (int16.hpp).
double int16_cost(double features, double k)
{
    return features + k * (features + 40.0) / 24.0;
}

// Cycles to find so many directions, and to choose among them.
double preparation_cost(double d, double k, double directions)
{
    return d * directions * (200.0 + 3.0 * directions + (std::min<double>(k, most_centroids) + 64.0) / 3.0);
}

template <typename T>
class Chooser {
  public:
    Chooser(const Rows<T> &rows, const T *middle, const T *centroids, const Directions &directions)
        : rows_(rows), directions_(directions), vectors_(vector_kernels(rows.context.instruction_set)),
          wide_(directions.values.begin(), directions.values.end()), k_(std::min<std::int64_t>(rows.k, most_centroids))
    {
        for (std::int64_t i = 0; i < rows_in_trial; ++i)
            row_[i] = add(rows.row(i * rows.n / rows_in_trial), middle);
        for (std::int64_t j = 0; j < k_; ++j)
            centroid_.push_back(add(centroids + j * rows.k / k_ * rows.d, middle));
        const auto last = static_cast<std::size_t>(directions.count);
        const ExactKernels &exact = exact_kernels(rows.context.instruction_set);
        for (std::int64_t i = 0; i < rows_in_trial; ++i) {
            double best = std::numeric_limits<double>::infinity();
            std::int64_t nearest = 0;
            for (std::int64_t j = 0; j < k_; ++j) {
                const double square = between(row_[i], centroid_[j], last).low;
                if (square < best) {
                    best = square;
                    nearest = j;
                }
            }
            const T *c = centroids + nearest * rows.k / k_ * rows.d;
            T square;
            exact.estimates(rows.row(i * rows.n / rows_in_trial), &c, 1, rows.d, &square);
            nearest_[i] = static_cast<double>(square);
        }
    }

    // Cycles for a row with a projection of so many features, of whose candidates such a share counts.
    double cost(int features, double share_of_candidates) const
    {
        const auto count = static_cast<std::size_t>(std::min(features - 1, directions_.count));
        double near = 0.0, possible = 0.0;
        for (std::int64_t i = 0; i < rows_in_trial; ++i) {
            double most = std::numeric_limits<double>::infinity();
            std::vector<double> low(k_);
            for (std::int64_t j = 0; j < k_; ++j) {
                const Range square = between(row_[i], centroid_[j], count);
                low[j] = square.low;
                most = std::min(most, square.high);
            }
            const auto open = [&](double limit) {
                return static_cast<double>(std::count_if(low.begin(), low.end(), [&](double s) { return s <= limit; }));
            };
            near += open(nearest_[i] * 1.001); // the nearest is measured first
            const double found = open(most);
            possible += found > 1.0 ? found : 0.0;
        }
        const double share =
            share_of_candidates * static_cast<double>(rows_.k) / static_cast<double>(k_ * rows_in_trial);
        return product_cost(features, rows_.k) +
               std::min(1.0 + near * share, possible * share) * estimate_cost<T>(rows_.d);
    }

  private:
    static constexpr std::int64_t rows_in_trial = 32;
    struct Point {
        std::vector<double> along; // the directions
        std::vector<double> rest;  // what the first 0, 1, ... leave of the square of its length
    };
    struct Range {
        double low, high;
    };

    Point add(const T *values, const T *middle) const
    {
        rows_.context.poll();
        const std::int64_t d = rows_.d;
        std::vector<double> centred(d);
        double square = 0.0;
        for (std::int64_t f = 0; f < d; ++f) {
            centred[f] = static_cast<double>(values[f]) - static_cast<double>(middle[f]);
            square += centred[f] * centred[f];
        }
        Point point;
        point.rest.push_back(square);
        for (std::int32_t j = 0; j < directions_.count; ++j) {
            const double sum = vectors_.dot(centred.data(), wide_.data() + j * d, d);
            point.along.push_back(sum);
            point.rest.push_back(std::max(0.0, point.rest.back() - sum * sum));
        }
        return point;
    }

    static Range between(const Point &x, const Point &c, std::size_t count)
    {
        double square = 0.0;
        for (std::size_t j = 0; j < count; ++j)
            square += (x.along[j] - c.along[j]) * (x.along[j] - c.along[j]);
        const double r = std::sqrt(x.rest[count]), s = std::sqrt(c.rest[count]);
        return {square + (r - s) * (r - s), square + (r + s) * (r + s)};
    }

    const Rows<T> &rows_;
    const Directions &directions_;
    const VectorKernels &vectors_;
    std::vector<double> wide_; // the directions
    std::int64_t k_;
    Point row_[rows_in_trial];
    std::vector<Point> centroid_;
    double nearest_[rows_in_trial];
};

} // namespace

template <typename T>
std::int32_t most_directions(const Rows<T> &rows, double passes)
{
    if (rows.k >= most_scored)
        return 0;
    const double whole = int16_cost(rows.d, rows.k) * static_cast<double>(rows.n);
    std::int32_t most = std::min(most_features, rows.d / least_gain) - 1;
    while (most >= 7 && preparation_cost(rows.d, rows.k, most) > 0.1 * passes * whole)
        most = (most + 1) / 2 - 1;
    return most < 7 ? 0 : most;
}

template <typename T>
int choose_features(const Rows<T> &rows, const T *middle, const Directions &directions, const ProjectionUse<T> &use,
                    int kept)
{
    if (directions.count == 0)
        return 0;
    const Chooser<T> chooser(rows, middle, use.centroids, directions);
    const double others = 0.9 * int16_cost(rows.d, rows.k);
    double least = std::numeric_limits<double>::infinity();
    bool pays = false;
    int chosen = 0;
    for (const int size : sizes) {
        if (size > (directions.count / 8 + 1) * 8)
            break;
        rows.context.poll();
        const double each = chooser.cost(size, use.share), making = 2.0 * rows.d * (size + 16.0) / 14.0 / use.passes;
        pays = pays || each + (size == kept && use.passes <= 1.0 ? 0.0 : making) < others;
        if (each + (size == kept ? 0.0 : making) < least) {
            least = each + (size == kept ? 0.0 : making);
            chosen = size;
        }
    }
    return pays ? chosen : 0;
}

template <typename T>
std::shared_ptr<const Projection<T>> Projection<T>::make(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre,
                                                         const Directions &directions, int features)
{
    std::shared_ptr<Projection> made(
        new Projection(rows, std::move(centre), directions, std::min(features - 1, directions.count)));
    made->bound(directions.skew);
    if (!(made->relative_error_ < 0.01))
        return nullptr;
    made->fill(rows);
    return made;
}

template <typename T>
Projection<T>::Projection(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre, const Directions &directions,
                          std::int32_t count)
    : context_(rows.context), d_(rows.d), kernels_(score_kernels(rows.context.instruction_set)),
      centre_(std::move(centre)), count_(count), features_((count / 8 + 1) * 8),
      onto_(rows.context.budget, std::int64_t{features_} * rows.d, 0.0f),
      out_(rows.context.budget, padded(rows.d) * count, 0.0f), zeros_(rows.context.budget, features_, 0.0f),
      values_(rows.context.budget, rows.n * features_)
{
    for (std::int32_t j = 0; j < count; ++j)
        for (std::int64_t f = 0; f < rows.d; ++f) {
            const float value = directions.values[j * rows.d + f];
            onto_[panel_place(j, f, rows.d)] = value;
            out_[panel_place(f, j, count)] = -value;
        }
}

template <typename T>
void Projection<T>::bound(double skew)
{
    const double d = d_, m = count_, root = std::sqrt(m);
    const double chain = kernels_.fused ? score_chain : 2.0 * score_chain;
    const double g1 = 1.01 * unit * (chain + d / score_chain + 3.0), g2 = 1.01 * unit * (chain + m / score_chain + 3.0);
    const double e1 = 1.02 * root * g1 + skew + 1.01 * unit;
    const double e2 = g2 * (1.0 + 1.03 * root) + 1.01 * unit + 1.03 * skew + 1.01 * e1;
    relative_error_ = 1.05 * 1.02 * (e1 + e2 + (d / 2.0 + 4.0) * unit * (kernels_.fused ? 1.0 : 2.0));
    smallest_error_ = (d + m) * 0x1p-70;
}

template <typename T>
void Projection<T>::project(float *block, float *image) const
{
    const std::int64_t d = d_;
    const std::int64_t panels = features_ / tiled_panel;
    for (std::int64_t f = 0; f < d; f += score_chain) {
        kernels_.add(block + f * tiled_width, static_cast<int>(std::min<std::int64_t>(score_chain, d - f)),
                     onto_.data() + f * tiled_panel, tiled_panel * d, panels, f == 0 ? zeros_.data() : nullptr, image,
                     nullptr);
        if (f % (8 * score_chain) == 0)
            context_.poll();
    }
    for (std::int32_t j = 0; j < count_; j += score_chain)
        kernels_.add(image + j * tiled_width, std::min<int>(score_chain, count_ - j), out_.data() + j * tiled_panel,
                     std::int64_t{tiled_panel} * count_, padded(d) / tiled_panel, nullptr, block, nullptr);
    float *rest = image + (features_ - 1) * tiled_width;
    kernels_.norms(block, d_, rest);
    for (int i = 0; i < tiled_width; ++i)
        rest[i] = std::sqrt(rest[i]);
}

template <typename T>
void Projection<T>::fill(const Rows<T> &rows)
{
    std::vector<Buffer<float>> blocks, made;
    std::vector<double> longest(rows.pool.size(), 0.0);
    for (int worker = 0; worker < rows.pool.size(); ++worker) {
        blocks.emplace_back(rows.context.budget, padded(d_) * tiled_width);
        made.emplace_back(rows.context.budget, features_ * tiled_width);
    }
    for_blocks(rows, tiled_width, [&](int worker, std::int64_t first, int count) {
        const T *points[tiled_width] = {};
        for (int i = 0; i < count; ++i)
            points[i] = rows.row(first + i);
        kernels_.pack(points, count, d_, middle(), blocks[worker].data());
        project(blocks[worker].data(), made[worker].data());
        for (int i = 0; i < count; ++i) {
            double square = 0.0;
            for (int f = 0; f < features_; ++f) {
                const float value = made[worker][f * tiled_width + i];
                values_[(first + i) * features_ + f] = value;
                square += static_cast<double>(value) * static_cast<double>(value);
            }
            longest[worker] = square <= longest[worker] ? longest[worker] : square < 0x1p120 ? square : HUGE_VAL;
        }
    });
    longest_ = std::sqrt(*std::max_element(longest.begin(), longest.end())) * (1.0 + 0x1p-40);
}

template std::int32_t most_directions(const Rows<float> &, double);
template std::int32_t most_directions(const Rows<double> &, double);
template int choose_features(const Rows<float> &, const float *, const Directions &, const ProjectionUse<float> &, int);
template int choose_features(const Rows<double> &, const double *, const Directions &, const ProjectionUse<double> &,
                             int);
template class Projection<float>;
template class Projection<double>;

} // namespace pgkm::cpu

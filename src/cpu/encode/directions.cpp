// directions.cpp - subspace iteration on a sample of the rows, by the float32 products of score_kernels.hpp.
//
// The sample is kept twice: row blocks feature by feature, for products with the directions, and blocks of features
// row by row, for the products back. How well the directions fit decides about speed alone.
#include "cpu/encode/directions.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Eigenvalues>

#include "cpu/kernels/vector_kernels.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sample_rows = 512;
constexpr int rounds = 2;
constexpr std::int64_t panel_of(std::int64_t count)
{
    return (count + tiled_panel - 1) / tiled_panel;
}

template <typename T>
class Sample {
  public:
    Sample(const Rows<T> &rows, std::int32_t most)
        : rows_(rows), kernels_(score_kernels(rows.context.instruction_set)),
          blocks_((std::min(rows.n, sample_rows) + tiled_width - 1) / tiled_width),
          chunks_((rows.d + tiled_width - 1) / tiled_width),
          by_rows_(rows.context.budget, blocks_ * rows.d * tiled_width),
          by_features_(rows.context.budget, chunks_ * tiled_width * blocks_ * tiled_width, 0.0f),
          panels_(rows.context.budget, panel_of(most) * tiled_panel * std::max<std::int64_t>(rows.d, size())),
          zeros_(rows.context.budget, panel_of(most) * tiled_panel, 0.0f),
          scores_(rows.context.budget, rows.pool.size() * panel_of(most) * tiled_panel * tiled_width)
    {
    }

    static std::uint64_t bytes(const Rows<T> &rows, std::int32_t most)
    {
        const auto d = static_cast<std::uint64_t>(rows.d), m = static_cast<std::uint64_t>(most);
        return 8 * sample_rows * (d + 64) + 4 * (m + tiled_panel) * (d + sample_rows) + 28 * m * d +
               (1 << 18) * static_cast<std::uint64_t>(rows.pool.size());
    }

    std::int64_t size() const { return blocks_ * tiled_width; }

    // Whether the sample is finite and has some spread; it is scaled to at most 1.
    bool load(const T *shift)
    {
        rows_.for_ranges(blocks_, 1, [&](std::int64_t b, std::int64_t, int) {
            const T *points[tiled_width];
            for (std::int64_t i = 0; i < tiled_width; ++i)
                points[i] = rows_.row((b + i * blocks_) * rows_.n / size());
            kernels_.pack(points, tiled_width, rows_.d, shift, block(b));
        });
        float largest = 0.0f;
        for (const float value : by_rows_) {
            if (!std::isfinite(value))
                return false;
            largest = std::max(largest, std::fabs(value));
        }
        if (largest == 0.0f)
            return false;
        int exponent = 0;
        std::frexp(largest, &exponent);
        const float factor = std::ldexp(1.0f, std::min(-exponent, 127));
        rows_.for_ranges(blocks_, 1, [&](std::int64_t b, std::int64_t, int) {
            for (std::int64_t f = 0; f < rows_.d; ++f) {
                float *line = block(b) + f * tiled_width;
                float *to = by_features_.data() + (f / tiled_width * size() + b * tiled_width) * tiled_width;
                for (std::int64_t i = 0; i < tiled_width; ++i)
                    to[i * tiled_width + f % tiled_width] = line[i] *= factor;
            }
        });
        return true;
    }

    // out (count x size) = directions (count x d) times the sample.
    void along(const float *directions, std::int32_t count, float *out)
    {
        fill_panels(directions, count, rows_.d, panel_of(count), 1.0f, panels_.data());
        multiply(by_rows_.data(), blocks_, rows_.d, count, out, size());
    }

    // out (count x d) = weights (count x size) times the sample's rows.
    void back(const float *weights, std::int32_t count, float *out)
    {
        fill_panels(weights, count, size(), panel_of(count), 1.0f, panels_.data());
        multiply(by_features_.data(), chunks_, size(), count, out, rows_.d);
    }

    void copy_row(std::int64_t i, float *to) const
    {
        for (std::int64_t f = 0; f < rows_.d; ++f)
            to[f] = by_rows_[(i / tiled_width * rows_.d + f) * tiled_width + i % tiled_width];
    }

  private:
    float *block(std::int64_t b) { return by_rows_.data() + b * rows_.d * tiled_width; }

    // out[j][b * tiled_width + i] = sum over the depth of panels and blocks.
    void multiply(const float *blocks, std::int64_t count, std::int64_t depth, std::int32_t outputs, float *out,
                  std::int64_t stride)
    {
        const std::int64_t panels = panel_of(outputs), room = panels * tiled_panel * tiled_width;
        rows_.for_ranges(count, 1, [&](std::int64_t b, std::int64_t, int worker) {
            float *scores = scores_.data() + worker * room;
            constexpr std::int64_t part = 64;
            for (std::int64_t f = 0; f < depth; f += part)
                kernels_.add(blocks + (b * depth + f) * tiled_width, static_cast<int>(std::min(part, depth - f)),
                             panels_.data() + f * tiled_panel, tiled_panel * depth, panels,
                             f == 0 ? zeros_.data() : nullptr, scores, nullptr);
            const std::int64_t width = std::min<std::int64_t>(tiled_width, stride - b * tiled_width);
            for (std::int32_t j = 0; j < outputs; ++j)
                std::copy_n(scores + j * tiled_width, width, out + j * stride + b * tiled_width);
        });
    }

    const Rows<T> &rows_;
    const ScoreKernels &kernels_;
    std::int64_t blocks_, chunks_;
    Buffer<float> by_rows_;     // blocks x d x tiled_width
    Buffer<float> by_features_; // chunks x size x tiled_width
    Buffer<float> panels_, zeros_, scores_;
};

// Gram and Schmidt, twice; what is (nearly) dependent is dropped. Returns how many are left.
std::int32_t orthonormalise(const Context &context, const VectorKernels &vectors, const std::vector<float> &from,
                            std::int32_t count, std::int64_t d, std::vector<double> &out)
{
    out.resize(static_cast<std::size_t>(count * d));
    std::int32_t kept = 0;
    for (std::int32_t j = 0; j < count; ++j) {
        context.poll();
        double *own = out.data() + kept * d;
        std::copy_n(from.data() + j * d, d, own);
        const double before = std::sqrt(vectors.dot(own, own, d));
        for (int pass = 0; pass < 2; ++pass)
            for (std::int32_t i = 0; i < kept; ++i)
                vectors.add(own, -vectors.dot(own, out.data() + i * d, d), out.data() + i * d, d);
        const double length = std::sqrt(vectors.dot(own, own, d));
        if (!(length > 1e-5 * before) || !std::isfinite(length))
            continue;
        for (std::int64_t f = 0; f < d; ++f)
            own[f] /= length;
        ++kept;
    }
    return kept;
}

// The directions turned so that the sample's spread along them is uncorrelated, and decreases.
std::vector<double> by_spread(const Context &context, const std::vector<double> &directions, std::int32_t count,
                              std::int64_t d, const std::vector<float> &along, std::int64_t size)
{
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Matrix w = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
                         along.data(), count, size)
                         .cast<double>();
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(w * w.transpose());
    const Matrix turn = solver.eigenvectors().rowwise().reverse().transpose();
    std::vector<double> turned(directions.size());
    constexpr std::int64_t features_per_poll = 4096;
    for (std::int64_t f = 0; f < d; f += features_per_poll) {
        context.poll();
        const std::int64_t width = std::min(features_per_poll, d - f);
        Eigen::Map<Matrix>(turned.data(), count, d).middleCols(f, width).noalias() =
            turn * Eigen::Map<const Matrix>(directions.data(), count, d).middleCols(f, width);
    }
    return turned;
}

// The bound of Directions::skew, with what float64 may have rounded away.
double skew_of(const Context &context, const VectorKernels &vectors, const std::vector<float> &values,
               std::int32_t count, std::int64_t d)
{
    const std::vector<double> wide(values.begin(), values.end());
    double square = 0.0;
    for (std::int32_t i = 0; i < count; ++i) {
        context.poll();
        for (std::int32_t j = 0; j <= i; ++j) {
            const double off = std::fabs(vectors.dot(wide.data() + i * d, wide.data() + j * d, d) - (i == j)) +
                               static_cast<double>(d + 8) * 0x1p-51;
            square += (i == j ? 1.0 : 2.0) * off * off;
        }
    }
    return std::sqrt(square) * 1.001;
}

} // namespace

void fill_panels(const float *matrix, std::int64_t count, std::int64_t d, std::int64_t panels, float sign, float *out)
{
    for (std::int64_t j = 0; j < panels * tiled_panel; ++j) {
        float *to = out + j / tiled_panel * tiled_panel * d + j % tiled_panel;
        for (std::int64_t f = 0; f < d; ++f)
            to[f * tiled_panel] = j < count ? sign * matrix[j * d + f] : 0.0f;
    }
}

template <typename T>
Directions find_directions(const Rows<T> &rows, const T *shift, std::int32_t most)
{
    Directions found;
    if (!rows.context.budget.allows(Sample<T>::bytes(rows, most)))
        return found;
    const VectorKernels &vectors = vector_kernels(rows.context.instruction_set);
    const std::int64_t d = rows.d;
    Sample<T> sample(rows, most);
    if (!sample.load(shift))
        return found;
    const Reservation room(rows.context.budget, 28 * static_cast<std::uint64_t>(most) * rows.d);
    std::int32_t count = std::min<std::int32_t>(most, static_cast<std::int32_t>(sample.size()));
    std::vector<float> matrix(static_cast<std::size_t>(count * d)), along(count * sample.size());
    std::vector<double> orthonormal;
    for (std::int32_t j = 0; j < count; ++j)
        sample.copy_row(j * sample.size() / count, matrix.data() + j * d);
    for (int round = 0;; ++round) {
        rows.context.poll();
        count = orthonormalise(rows.context, vectors, matrix, count, d, orthonormal);
        if (count == 0)
            return found;
        std::copy_n(orthonormal.begin(), count * d, matrix.begin());
        sample.along(matrix.data(), count, along.data());
        if (round == rounds)
            break;
        sample.back(along.data(), count, matrix.data());
    }
    const std::vector<double> turned = by_spread(rows.context, orthonormal, count, d, along, sample.size());
    found.values.assign(turned.begin(), turned.end());
    found.count = count;
    found.skew = skew_of(rows.context, vectors, found.values, count, d);
    if (!std::isfinite(found.skew) || found.skew > 1e-3)
        return {};
    return found;
}

template Directions find_directions(const Rows<float> &, const float *, std::int32_t);
template Directions find_directions(const Rows<double> &, const double *, std::int32_t);

} // namespace pgkm::cpu

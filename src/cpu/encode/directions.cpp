// directions.cpp - subspace iteration on a sample of the rows. How well the directions fit decides about speed alone.
#include "cpu/encode/directions.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/Eigenvalues>

namespace pgkm::cpu {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t sample_rows = 256;
constexpr int rounds = 2;
constexpr double least_share = 1e-10; // of the largest eigenvalue; directions of less are nearly dependent

// Calls body(first, count) for parts of the columns: a moment's work.
template <typename Body>
void for_parts(const Context &context, std::int64_t columns, Body &&body)
{
    constexpr std::int64_t most = 2048;
    for (std::int64_t first = 0; first < columns; first += most) {
        context.poll();
        body(first, std::min(most, columns - first));
    }
}

// Rows less the shift, scaled to at most 1; none where they are not finite or have no spread.
template <typename T>
Matrix<float> sample_of(const Rows<T> &rows, const T *shift)
{
    const std::int64_t count = std::min(rows.n, sample_rows);
    Matrix<float> sample(count, rows.d);
    for (std::int64_t i = 0; i < count; ++i) {
        rows.context.poll();
        const T *row = rows.row(i * rows.n / count);
        for (std::int32_t f = 0; f < rows.d; ++f)
            sample(i, f) = static_cast<float>(row[f] - shift[f]);
    }
    const float largest = sample.cwiseAbs().maxCoeff();
    if (!sample.allFinite() || largest == 0.0f)
        return {};
    int exponent = 0;
    std::frexp(largest, &exponent);
    sample *= std::ldexp(1.0f, std::min(-exponent, 127));
    return sample;
}

Matrix<double> products(const Context &context, const Matrix<float> &lines)
{
    Matrix<double> sums = Matrix<double>::Zero(lines.rows(), lines.rows());
    for_parts(context, lines.cols(), [&](std::int64_t first, std::int64_t count) {
        const Matrix<double> some = lines.middleCols(first, count).cast<double>();
        sums.noalias() += some * some.transpose();
    });
    return sums;
}

// Turns the lines into those of turn * lines.
void turn_by(const Context &context, const Matrix<double> &turn, Matrix<float> &lines)
{
    Matrix<float> turned(turn.rows(), lines.cols());
    for_parts(context, lines.cols(), [&](std::int64_t first, std::int64_t count) {
        const Matrix<double> some = lines.middleCols(first, count).cast<double>();
        turned.middleCols(first, count) = (turn * some).cast<float>();
    });
    lines = std::move(turned);
}

// What is (nearly) dependent is dropped. Whether any are left.
bool orthonormalise(const Context &context, Matrix<float> &lines)
{
    const Eigen::SelfAdjointEigenSolver<Matrix<double>> solver(products(context, lines));
    const auto &values = solver.eigenvalues(); // ascending
    const double least = least_share * values(values.size() - 1);
    const Eigen::Index kept = (values.array() > least).count();
    turn_by(context,
            values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal() *
                solver.eigenvectors().rightCols(kept).transpose(),
            lines);
    return kept > 0;
}

// Of each direction and each row of the sample.
Matrix<float> coordinates(const Context &context, const Matrix<float> &directions, const Matrix<float> &sample)
{
    Matrix<float> along = Matrix<float>::Zero(directions.rows(), sample.rows());
    for_parts(context, sample.cols(), [&](std::int64_t first, std::int64_t count) {
        along.noalias() += directions.middleCols(first, count) * sample.middleCols(first, count).transpose();
    });
    return along;
}

// The bound of Directions::skew, with what float64 may have rounded away.
double skew_of(const Context &context, const Matrix<float> &lines)
{
    const Matrix<double> one = Matrix<double>::Identity(lines.rows(), lines.rows());
    const double rounded = static_cast<double>(lines.cols() + 8) * 0x1p-51;
    return ((products(context, lines) - one).cwiseAbs().array() + rounded).matrix().norm() * 1.001;
}

} // namespace

template <typename T>
Directions find_directions(const Rows<T> &rows, const T *shift, std::int32_t most)
{
    const Context &context = rows.context;
    const auto d = static_cast<std::uint64_t>(rows.d), m = static_cast<std::uint64_t>(most);
    const Reservation room(rows.context.budget, 4 * d * (sample_rows + 4 * m) + (1 << 23)); // the last for parts
    const Matrix<float> sample = sample_of(rows, shift);
    if (sample.size() == 0)
        return {};
    const std::int64_t begun = std::min<std::int64_t>(most, sample.rows());
    Matrix<float> directions(begun, rows.d);
    for (std::int64_t j = 0; j < begun; ++j)
        directions.row(j) = sample.row(j * sample.rows() / begun);
    for (int round = 0;; ++round) {
        if (!orthonormalise(context, directions))
            return {};
        if (round == rounds)
            break;
        const Matrix<float> along = coordinates(context, directions, sample);
        for_parts(context, rows.d, [&](std::int64_t first, std::int64_t count) {
            directions.middleCols(first, count) = along * sample.middleCols(first, count);
        });
    }
    if (!orthonormalise(context, directions)) // of what rounding left dependent
        return {};
    // Turned so that the sample's spread along them is uncorrelated, and decreases.
    const Eigen::SelfAdjointEigenSolver<Matrix<double>> spread(
        products(context, coordinates(context, directions, sample)));
    turn_by(context, spread.eigenvectors().rowwise().reverse().transpose(), directions);
    const double skew = skew_of(context, directions);
    if (!(skew <= 1e-3)) // nor where it is not a number
        return {};
    Buffer<float> values(rows.context.budget, static_cast<std::size_t>(directions.size()));
    std::copy_n(directions.data(), directions.size(), values.data());
    return {static_cast<std::int32_t>(directions.rows()), std::move(values), skew};
}

template Directions find_directions(const Rows<float> &, const float *, std::int32_t);
template Directions find_directions(const Rows<double> &, const double *, std::int32_t);

} // namespace pgkm::cpu

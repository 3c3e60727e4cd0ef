// factors.cpp - factors of covariances and of precisions: Eigen's Cholesky, some rows between two polls.
#include "engine/mixture/factors.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include <Eigen/Cholesky>

#include "backend/covariance.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixView = Eigen::Map<Matrix>;

[[noreturn]] void singular(const CovarianceShape &shape, std::int64_t component)
{
    const std::string which =
        shape.is_shared ? "the covariance" : "the covariance of component " + std::to_string(component);
    throw Error(PGKM_INVALID, which + " is singular: raise reg_covar, lower k, or leave out features that depend on "
                                      "one another");
}

// Calls body(rows above, rows) for the rows of a d x d triangle, as many at a time as take some milliseconds.
template <typename Body>
void for_rows(Eigen::Index d, const Poll &poll, Body &&body)
{
    constexpr Eigen::Index products_between_polls = 1 << 25, most = 256;
    for (Eigen::Index above = 0, rows = 0; above < d; above += rows) {
        poll();
        rows = std::min(std::clamp<Eigen::Index>(products_between_polls / ((above + 1) * (above + 1)), 1, most),
                        d - above);
        body(above, rows);
    }
}

// The lower triangle of `matrix`, all that is read, becomes L with L L' = matrix. False when a pivot is what rounding
// makes of 0.
bool cholesky(MatrixView &matrix, const Poll &poll)
{
    bool is_positive = true;
    for_rows(matrix.rows(), poll, [&](Eigen::Index above, Eigen::Index rows) {
        if (!is_positive)
            return;
        auto left = matrix.block(above, 0, rows, above);
        Eigen::Ref<Matrix> corner = matrix.block(above, above, rows, rows);
        const Eigen::ArrayXd least =
            static_cast<double>(matrix.rows()) * std::numeric_limits<double>::epsilon() * corner.diagonal();
        if (above > 0) {
            matrix.topLeftCorner(above, above)
                .triangularView<Eigen::Lower>()
                .transpose()
                .solveInPlace<Eigen::OnTheRight>(left);
            corner.selfadjointView<Eigen::Lower>().rankUpdate(left, -1.0);
        }
        const Eigen::LLT<Eigen::Ref<Matrix>> factor(corner);
        const Eigen::ArrayXd pivots = corner.diagonal().array().square();
        is_positive = factor.info() == Eigen::Success && (pivots > least).all() && pivots.isFinite().all();
    });
    return is_positive;
}

// L, with zeros above it, becomes its inverse.
void invert(MatrixView &lower, const Poll &poll)
{
    for_rows(lower.rows(), poll, [&](Eigen::Index above, Eigen::Index rows) {
        auto left = lower.block(above, 0, rows, above), corner = lower.block(above, above, rows, rows);
        corner = corner.triangularView<Eigen::Lower>().solve(Matrix::Identity(rows, rows)).eval();
        if (above > 0)
            left = -(corner.triangularView<Eigen::Lower>() * left).eval() *
                   lower.topLeftCorner(above, above).triangularView<Eigen::Lower>();
    });
}

// The other way about the diagonal from the last row's first value to the first row's last.
void transpose_about_other_diagonal(MatrixView &matrix, const Poll &poll)
{
    const Eigen::Index d = matrix.rows();
    for (Eigen::Index c = 0; c < d; ++c) {
        poll();
        for (Eigen::Index f = 0; f < d - 1 - c; ++f)
            std::swap(matrix(c, f), matrix(d - 1 - f, d - 1 - c));
    }
}

// Appends the lower triangle of a symmetric matrix, and zeros above it, to an array that has room; reversed: with its
// rows and columns in reverse.
MatrixView append_lower(const double *matrix, std::int64_t d, bool reversed, std::vector<double> &out, const Poll &poll)
{
    const std::size_t begin = out.size();
    for (std::int64_t i = 0; i < d; ++i) {
        poll();
        const double *const row = matrix + (reversed ? d - 1 - i : i) * d;
        if (reversed)
            std::reverse_copy(row + d - 1 - i, row + d, std::back_inserter(out));
        else
            out.insert(out.end(), row, row + i + 1);
        out.resize(begin + at((i + 1) * d), 0.0);
    }
    return {out.data() + begin, d, d};
}

// W of a precision matrix is U' with U U' = precision, U upper triangular: Cholesky's factor of the matrix in reverse.
void matrix_factors(const MixtureParameters &parameters, const double *values, bool precisions, const Poll &poll,
                    MixtureFactors &out)
{
    const CovarianceShape shape(parameters.type);
    const std::int64_t d = parameters.d, matrices = shape.matrices(parameters.k);
    out.factors.reserve(at(matrices * d * d));
    for (std::int64_t j = 0; j < matrices; ++j) {
        MatrixView factor = append_lower(values + j * d * d, d, precisions, out.factors, poll);
        const bool is_positive = cholesky(factor, poll);
        if (!is_positive && precisions)
            throw Error(PGKM_INVALID, "option precisions_init must hold positive definite matrices");
        if (!is_positive)
            singular(shape, j);
        if (precisions)
            transpose_about_other_diagonal(factor, poll);
        else
            invert(factor, poll);
        out.log_determinants.push_back(factor.diagonal().unaryExpr([](double x) { return std::log(x); }).sum());
    }
    out.log_determinants.resize(at(parameters.k), out.log_determinants[0]); // tied: the same for all
}

// The k x d (diag) or k (spherical) factors of variances, or of precisions.
void scalar_factors(const MixtureParameters &parameters, const double *values, bool precisions, MixtureFactors &out)
{
    const CovarianceShape shape(parameters.type);
    const std::int64_t per_component = shape.size(parameters.d);
    for (std::int64_t j = 0; j < parameters.k; ++j) {
        double sum = 0.0;
        for (std::int64_t f = 0; f < per_component; ++f) {
            const double value = values[j * per_component + f];
            const double factor = precisions ? std::sqrt(value) : 1.0 / std::sqrt(value);
            if (precisions && !(value > 0.0))
                throw Error(PGKM_INVALID, "option precisions_init must hold positive values");
            if (!(value > 0.0) || !std::isfinite(factor))
                singular(shape, j);
            out.factors.push_back(factor);
            sum += std::log(factor);
        }
        out.log_determinants.push_back(per_component == 1 ? sum * parameters.d : sum);
    }
}

} // namespace

PgkmMixture MixtureFactors::view(const MixtureParameters &parameters) const
{
    return {parameters.k, type, log_weights.data(), parameters.means.data(), factors.data(), log_determinants.data(),
            nullptr};
}

void MixtureFactors::make_full(std::int32_t d, const Poll &poll)
{
    const std::vector<double> one = std::move(factors);
    const std::size_t k = log_weights.size();
    factors.clear();
    factors.reserve(k * one.size());
    for (std::size_t i = 0; i < k * at(d); ++i) {
        poll();
        const auto row = one.begin() + static_cast<std::ptrdiff_t>(i % at(d)) * d;
        factors.insert(factors.end(), row, row + d);
    }
    type = PGKM_COVARIANCE_FULL;
}

double invert_factor(double *matrix, std::int64_t d, const Poll &poll)
{
    MatrixView factor(matrix, d, d);
    if (!cholesky(factor, poll))
        return std::numeric_limits<double>::quiet_NaN();
    factor.triangularView<Eigen::StrictlyUpper>().setZero();
    invert(factor, poll);
    return -factor.diagonal().array().log().sum();
}

MixtureFactors factorise(const MixtureParameters &parameters, const Poll &poll, const double *precisions)
{
    const bool given = precisions != nullptr;
    const double *const values = given ? precisions : parameters.covariances.data();
    MixtureFactors out;
    out.type = parameters.type;
    for (const double weight : parameters.weights)
        out.log_weights.push_back(std::log(weight));
    if (CovarianceShape(parameters.type).is_matrix())
        matrix_factors(parameters, values, given, poll, out);
    else
        scalar_factors(parameters, values, given, out);
    return out;
}

} // namespace pgkm

PgkmStatus pgkm_mixture_factors(PgkmCovariance type, int32_t k, int32_t d, const double *covariances, double *factors,
                                double *log_determinants, PgkmInterrupted interrupted, PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        pgkm::MixtureParameters parameters;
        parameters.type = type;
        parameters.k = k;
        parameters.d = d;
        parameters.covariances.assign(covariances, covariances + pgkm_covariance_size(type, k, d));
        const pgkm::MixtureFactors found = pgkm::factorise(parameters, pgkm::poll_for(interrupted));
        std::copy(found.factors.begin(), found.factors.end(), factors);
        std::copy(found.log_determinants.begin(), found.log_determinants.end(), log_determinants);
    });
}

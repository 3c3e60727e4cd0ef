// prepare.cpp - standardizes rows and brings them to unit length.
#include "engine/rows/prepare.hpp"

#include <algorithm>
#include <cmath>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"

namespace pgkm {

Standardization standardization_of(const std::vector<double> &mean, const std::vector<double> &variance)
{
    Standardization result = {mean, {}};
    for (const double v : variance) {
        const double deviation = std::sqrt(v);
        result.scale.push_back(deviation > 0.0 ? deviation : 1.0);
    }
    return result;
}

template <typename T>
bool transform_row(T *row, std::int32_t d, const double *center, const double *scale, PgkmMetric metric)
{
    if (center != nullptr)
        for (std::int32_t f = 0; f < d; ++f)
            row[f] = static_cast<T>((static_cast<double>(row[f]) - center[f]) / scale[f]);
    return metric != PGKM_COSINE || normalise(row, d);
}

template <typename T>
void transform_rows(const T *rows, std::int64_t n, std::int32_t d, const Standardization &standardization,
                    PgkmMetric metric, const std::function<void()> &poll, T *result)
{
    const std::int64_t rows_between_polls = std::max(1, 65536 / d);
    const bool standardize = !standardization.center.empty();
    const double *center = standardize ? standardization.center.data() : nullptr;
    const double *scale = standardize ? standardization.scale.data() : nullptr;
    for (std::int64_t i = 0; i < n; ++i) {
        if (i % rows_between_polls == 0)
            poll();
        if (result != rows)
            std::copy_n(rows + i * d, d, result + i * d);
        if (!transform_row(result + i * d, d, center, scale, metric))
            throw Error(PGKM_INVALID, "row " + std::to_string(i + 1) + " is a zero vector" +
                                          (standardize ? " after standardization" : "") +
                                          ", which has no direction for metric cosine");
    }
}

template bool transform_row<float>(float *, std::int32_t, const double *, const double *, PgkmMetric);
template bool transform_row<double>(double *, std::int32_t, const double *, const double *, PgkmMetric);
template void transform_rows<float>(const float *, std::int64_t, std::int32_t, const Standardization &, PgkmMetric,
                                    const std::function<void()> &, float *);
template void transform_rows<double>(const double *, std::int64_t, std::int32_t, const Standardization &, PgkmMetric,
                                     const std::function<void()> &, double *);

} // namespace pgkm

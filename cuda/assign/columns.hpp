// columns.hpp - the values of rows in either layout: as they were loaded, or feature by feature, so that the threads of
// a warp, a row each, read neighbouring values (Aggarwal 2013, section 4.1, who keeps rows both ways).
#pragma once

#include "plan/stages.hpp"

namespace pgkm::cuda {

// Feature f of row i is values[i * row_step + f * feature_step].
template <typename T>
struct RowValues {
    const T *values;
    std::int64_t row_step;
    std::int64_t feature_step;

    RowValues from(std::int64_t row) const { return {values + row * row_step, row_step, feature_step}; }
};

// The rows feature by feature where they come again and the device has room for them once more, else as they lie. The
// first call for some rows enqueues their copy; it stays in stage.prepared.
template <typename T>
RowValues<T> by_feature(const Stage<T> &stage, const View<T> &view);

} // namespace pgkm::cuda

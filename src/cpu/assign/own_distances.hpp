// own_distances.hpp - exact distances of rows to the centroids that they are assigned to.
#pragma once

#include <algorithm>

#include "cpu/kernels/exact_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

// out[i] = D(row first + i, centroid labels[i]) for i < count; centroids: k x d. Polls.
template <typename T>
void own_distances(const Rows<T> &rows, const T *centroids, std::int64_t first, int count, const std::int32_t *labels,
                   double *out)
{
    constexpr int batch = 256;
    const ExactKernels &kernels = exact_kernels(rows.context.instruction_set);
    const T *x[batch] = {}, *c[batch] = {};
    for (int done = 0; done < count; done += batch) {
        const int size = std::min(batch, count - done);
        for (int i = 0; i < size; ++i) {
            x[i] = rows.row(first + done + i);
            c[i] = centroids + std::int64_t{labels[done + i]} * rows.d;
        }
        rows.context.poll();
        kernels.pairs(x, c, size, rows.d, out + done);
    }
}

} // namespace pgkm::cpu

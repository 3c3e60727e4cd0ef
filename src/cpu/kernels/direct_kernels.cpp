// direct_kernels.cpp - exact distances of a block of rows to all centroids.
//
// Rows lie feature by feature (pack-inl.hpp), lanes run over rows; a panel of four centroids shares the loads.
// Panels that stay in half of L1 meet all rows of the block before the next ones do.
#include "cpu/kernels/direct_kernels.hpp"

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "cpu/kernels/direct_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// One tile: tile_vectors of points against one panel. D_ is the number of features where it
// is known to the compiler (it then unrolls and keeps the points in registers), else 0.
template <int D_>
HWY_INLINE void nearest_tile(const double *points, int width, int d, const double *panel, Vector index, Vector *best,
                             Vector *label)
{
    Vector sum[panel_width][tile_vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < panel_width; ++j)
        HWY_UNROLL(4)
    for (int v = 0; v < tile_vectors; ++v)
        sum[j][v] = hn::Zero(tag);
    const int features = D_ == 0 ? d : D_;
    for (int f = 0; f < features; ++f) {
        Vector x[tile_vectors];
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            x[v] = hn::Load(tag, points + static_cast<std::ptrdiff_t>(f) * width + v * lanes);
        HWY_UNROLL(4)
        for (int j = 0; j < panel_width; ++j) {
            const Vector c = hn::Set(tag, panel[f * panel_width + j]);
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v)
                sum[j][v] = add_square(hn::Sub(x[v], c), sum[j][v]);
        }
    }
    HWY_UNROLL(4)
    for (int j = 0; j < panel_width; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v) {
            const auto nearer = hn::Lt(sum[j][v], best[v]); // strictly: the lowest index stays on a tie
            best[v] = hn::Min(sum[j][v], best[v]);
            label[v] = hn::IfThenElse(nearer, index, label[v]);
        }
        index = hn::Add(index, hn::Set(tag, 1.0));
    }
}

template <int D_>
void nearest_for(const double *block, int width, int d, const double *panels, std::int64_t count, double first,
                 double *best, double *label)
{
    const int features = D_ == 0 ? d : D_;
    const std::int64_t panel_size = std::int64_t{panel_width} * features;
    // Panels that stay in half of L1 while all points of the block pass.
    const std::int64_t range = std::max<std::int64_t>(1, 2048 / panel_size);
    for (std::int64_t p = 0; p < count; p += range) {
        const std::int64_t end = std::min(count, p + range);
        for (int i = 0; i < width; i += tile_vectors * lanes) {
            Vector b[tile_vectors], l[tile_vectors];
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v) {
                b[v] = hn::Load(tag, best + i + v * lanes);
                l[v] = hn::Load(tag, label + i + v * lanes);
            }
            for (std::int64_t q = p; q < end; ++q)
                nearest_tile<D_>(block + i, width, d, panels + q * panel_size,
                                 hn::Set(tag, first + static_cast<double>(q * panel_width)), b, l);
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v) {
                hn::Store(b[v], tag, best + i + v * lanes);
                hn::Store(l[v], tag, label + i + v * lanes);
            }
        }
    }
}

void nearest(const double *block, int width, int d, const double *panels, std::int64_t count, double first,
             double *best, double *label)
{
    static constexpr decltype(&nearest_for<0>) by_features[] = {nearest_for<0>, nearest_for<1>, nearest_for<2>,
                                                                nearest_for<3>, nearest_for<4>, nearest_for<5>,
                                                                nearest_for<6>, nearest_for<7>, nearest_for<8>};
    by_features[d <= 8 ? d : 0](block, width, d, panels, count, first, best, label);
}

template <typename T>
void pack(const T *const *rows, int count, int d, int width, double *block)
{
    pack_rows<T>(rows, count, d, nullptr, width, block);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(DirectKernels, direct_kernels, {pack<float>, pack<double>}, nearest)

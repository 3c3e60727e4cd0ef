// fused.cu (mixture) - the fused kernels of all shapes and their launch, which mixtures they serve, the coefficients of
// these about an origin, and the sums' way back to the means.
//
// Block::Kernel is what a block does with an item: diagonal_warp.cuh, diagonal_tile.cuh, full_tile.cuh. What the host
// computes for a mixture is float64 and takes k d (diag) or k d^2 (full) steps.
#include "mixture/fused.hpp"

#include <algorithm>
#include <cmath>

#include "mixture/diagonal_tile.cuh"
#include "mixture/full_tile.cuh"
#include "mixture/products.hpp"
#include "mixture/sparse.hpp"

namespace pgkm::cuda::mixture {
namespace {

template <typename Block, typename T>
__global__ void __launch_bounds__(Block::threads, Block::per_multiprocessor) fused_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    if (stopped(launch.stop))
        return;
    const Item item = launch.items[blockIdx.x];
    typename Block::template Kernel<T> kernel(launch, item, launch.mixtures[item.problem],
                                              reinterpret_cast<double *>(memory));
    kernel.run();
    kernel.store(item.slot);
}

// Calls use(block) with the one of this shape.
template <typename... Blocks, typename Use>
void find_block(const FusedShape &shape, Use &&use)
{
    const auto try_one = [&](auto block) {
        if (block.components == shape.components && block.feature_tiles == shape.features)
            use(block);
    };
    (try_one(Blocks()), ...);
}

template <typename Use>
void with_block(const FusedShape &shape, Use &&use)
{
    if (shape.full)
        find_block<FullBlock<1, 1>, FullBlock<1, 2>, FullBlock<1, 3>, FullBlock<1, 4>, FullBlock<2, 1>,
                   FullBlock<2, 2>>(shape, use);
    else
        find_block<WarpBlock<1, 1>, WarpBlock<1, 2>, WarpBlock<1, 3>, WarpBlock<1, 4>, WarpBlock<2, 1>, WarpBlock<2, 2>,
                   DiagonalBlock<1, 6>, DiagonalBlock<1, 8>, DiagonalBlock<2, 4>, DiagonalBlock<2, 6>,
                   DiagonalBlock<2, 8>, DiagonalBlock<4, 2>, DiagonalBlock<4, 4>, DiagonalBlock<4, 6>,
                   DiagonalBlock<4, 8>>(shape, use);
}

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

// Element c of W (mean - origin) of component j.
double transformed(const PgkmMixture &mixture, std::int64_t j, std::int64_t c, std::int64_t d,
                   const std::vector<double> &origin)
{
    const double *const mean = mixture.means + j * d;
    if (mixture.covariance_type == PGKM_COVARIANCE_DIAG || mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL) {
        const double factor = mixture.factors[mixture.covariance_type == PGKM_COVARIANCE_DIAG ? j * d + c : j];
        return factor * (mean[c] - origin[at(c)]);
    }
    const double *const row = mixture.factors + (j * d + c) * d;
    double sum = 0.0;
    for (std::int64_t f = 0; f <= c; ++f)
        sum += row[f] * (mean[f] - origin[at(f)]);
    return sum;
}

// The largest squared Mahalanobis distance of a mean from the origin. An error of rounding in a log
// density is that times 2^-53 or so, and in a variance relative to it.
double reach(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin)
{
    double most = 0.0;
    for (std::int64_t j = 0; j < mixture.k; ++j) {
        double square = 0.0;
        for (std::int64_t f = 0; f < d; ++f) {
            const double z = transformed(mixture, j, f, d, origin);
            square += z * z;
        }
        most = std::max(most, square);
        if (!(square <= most)) // NaN
            return INFINITY;
    }
    return most;
}

// Whether the factors' squares, and those of rows that they bring to the order of 1, lie well within
// float64: the coefficients of y^2 and y^2 itself must.
bool has_usual_scales(const PgkmMixture &mixture, std::int64_t d)
{
    const std::int64_t count = mixture.covariance_type == PGKM_COVARIANCE_DIAG ? mixture.k * d : mixture.k;
    return std::all_of(mixture.factors, mixture.factors + count,
                       [](double factor) { return factor > 1e-140 && factor < 1e140; });
}

// The mean of the means. Polls: tied, there may be millions of values.
std::vector<double> origin_of(const Context &context, const PgkmMixture &mixture, std::int64_t d)
{
    std::vector<double> origin(at(d));
    for (std::int64_t j = 0; j < mixture.k; ++j) {
        if (j % 4096 == 4095 || d > 4096)
            context.poll();
        for (std::int64_t f = 0; f < d; ++f)
            origin[at(f)] += mixture.means[j * d + f] / mixture.k;
    }
    return origin;
}

// Coefficients of log densities as fragments of the product's left side, then the constants.
// With m = mean - origin and w the factor: -w^2 (y - m)^2 / 2 = (w^2 m) y - (w^2 / 2) y^2 - w^2 m^2 / 2.
void pack_diagonal(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin,
                   const FusedShape &shape, double *packed)
{
    const bool spherical = mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL;
    double *const constants = packed + shape.components * shape.features * 256;
    std::fill(constants, constants + 16 * shape.components, -INFINITY); // of components that there are not
    for (std::int64_t j = 0; j < mixture.k; ++j) {
        constants[j] = log_constant(mixture, j, d);
        for (std::int64_t f = 0; f < d; ++f) {
            const double w = mixture.factors[spherical ? j : j * d + f], m = mixture.means[j * d + f] - origin[at(f)];
            constants[j] -= 0.5 * (w * m) * (w * m);
            // Element (j % 16, f % 8) of a fragment (mma.cuh).
            const std::int64_t lane = j % 8 * 4 + f % 4, half = f % 8 / 4, part = j % 16 / 8;
            double *const tile = packed + (j / 16 * 2 * shape.features + f / 8) * 128 + half * 64 + lane * 2 + part;
            tile[0] = w * w * m;
            tile[shape.features * 128] = -0.5 * w * w;
        }
    }
}

// Fragments of W', means about the origin times W, and constants, for k rounded up to fours.
void pack_full(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, const FusedShape &shape,
               double *packed)
{
    const std::int64_t k = (mixture.k + 3) / 4 * 4, fragments = shape.features * (shape.features + 1) / 2;
    double *const centres = packed + k * fragments * 64, *const constants = centres + k * 8 * shape.features;
    std::fill(constants, constants + k, -INFINITY); // of components that there are not
    for (std::int64_t j = 0; j < mixture.k; ++j) {
        constants[j] = log_constant(mixture, j, d);
        for (std::int64_t c = 0; c < d; ++c) {
            centres[j * 8 * shape.features + c] = transformed(mixture, j, c, d, origin);
            // Row c of W is column c % 8 of the right sides c / 8 (mma.cuh), one for each eight features.
            const std::int64_t tile = c / 8;
            for (std::int64_t f = 0; f <= c; ++f)
                packed[(j * fragments + tile * (tile + 1) / 2 + f / 8) * 64 + (c % 8 * 4 + f % 4) * 2 + f % 8 / 4] =
                    mixture.factors[(j * d + c) * d + f];
        }
    }
}

} // namespace

BlockNeeds needs_of(const FusedShape &shape, int k)
{
    BlockNeeds found = {};
    with_block(shape, [&](auto block) { found = {block.bytes(k), block.per_multiprocessor}; });
    return found;
}

template <typename T>
void fused_step(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream)
{
    with_block(shape, [&](auto block) {
        using Block = decltype(block);
        enqueue(fused_kernel<Block, T>, n_items, Block::threads, Block::bytes(k), stream, launch);
    });
}

template void fused_step<float>(const Launch<float> &, unsigned, const FusedShape &, int, cudaStream_t);
template void fused_step<double>(const Launch<double> &, unsigned, const FusedShape &, int, cudaStream_t);

template <typename T>
Task plan_task(const Context &context, const PgkmProblem &problem, const PgkmMixture &mixture, PgkmMixtureSums &out,
               std::int64_t d, bool weighted)
{
    Task task = {&problem, &mixture, &out, Way::staged, false, {}};
    if (task.given())
        return task;
    if (mixture.covariance_type == PGKM_COVARIANCE_TIED) {
        task.origin = origin_of(context, mixture, d);
        return task;
    }
    if (weighted)
        return task;
    const FusedShape shape(mixture.covariance_type, mixture.k, d);
    const bool fits = shape.fits() && needs_of(shape, mixture.k).shared_bytes <= context.facts.shared_bytes_per_block;
    if (out.labels != nullptr || !(shape.full ? fits : has_usual_scales(mixture, d)) ||
        !(fits || out.masses != nullptr))
        return task;
    task.origin = origin_of(context, mixture, d);
    if (reach(mixture, d, task.origin) <= most_reach<T>)
        task.way = fits ? Way::fused : Way::products;
    task.sparse = task.way != Way::fused && out.masses != nullptr && !shape.full &&
                  sparse_fits(context, mixture.k, d, mixture.covariance_type == PGKM_COVARIANCE_DIAG);
    if (task.way == Way::staged && !task.sparse)
        task.origin.clear();
    return task;
}

template Task plan_task<float>(const Context &, const PgkmProblem &, const PgkmMixture &, PgkmMixtureSums &,
                               std::int64_t, bool);
template Task plan_task<double>(const Context &, const PgkmProblem &, const PgkmMixture &, PgkmMixtureSums &,
                                std::int64_t, bool);

int blocks_of(const Context &context, const Task &task, std::int64_t d)
{
    const FusedShape shape(task.mixture->covariance_type, task.mixture->k, d);
    if (task.way == Way::products)
        return static_cast<int>(
            product_slots(context.facts, task.mixture->covariance_type == PGKM_COVARIANCE_DIAG, task.mixture->k, d));
    return context.facts.multiprocessors *
           (task.way == Way::fused ? needs_of(shape, task.mixture->k).per_multiprocessor : 4);
}

FusedShape::FusedShape(PgkmCovariance type, std::int64_t k, std::int64_t d)
    : full(type == PGKM_COVARIANCE_FULL), components(static_cast<int>((k + 15) / 16)),
      features(static_cast<int>((d + 7) / 8))
{
    if (full)
        return;
    components = components > 2 ? (components + 3) / 4 * 4 : components;
    if (components > 2 || components * features > 4)
        features = (features + 1) / 2 * 2; // two warps share them
}

std::int64_t FusedShape::coefficient_count(std::int64_t k) const
{
    return full ? (k + 3) / 4 * 4 * (features * (features + 1) * 32 + 8 * features + 1)
                : std::int64_t{components} * features * 256 + 16 * components;
}

void pack_coefficients(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, double *packed)
{
    const FusedShape shape(mixture.covariance_type, mixture.k, d);
    (shape.full ? pack_full : pack_diagonal)(mixture, d, origin, shape, packed);
}

void recentre(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, PgkmMixtureSums &sums)
{
    const bool full = mixture.covariance_type == PGKM_COVARIANCE_FULL;
    double *second = sums.second;
    std::vector<double> moved(at(d));
    for (std::int64_t j = 0; j < mixture.k; ++j) {
        double *const first = sums.first + j * d;
        const double mass = sums.masses[j];
        for (std::int64_t f = 0; f < d; ++f)
            moved[at(f)] = mixture.means[j * d + f] - origin[at(f)];
        // (y - m)(y - m)' = y y' - m y' - y m' + m m', before the first sums change.
        for (std::int64_t a = 0; a < d; ++a)
            for (std::int64_t b = full ? 0 : a; b <= a; ++b)
                *second++ += moved[at(a)] * (moved[at(b)] * mass - first[b]) - moved[at(b)] * first[a];
        for (std::int64_t f = 0; f < d; ++f)
            first[f] -= moved[at(f)] * mass;
    }
}

} // namespace pgkm::cuda::mixture

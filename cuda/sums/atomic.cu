// atomic.cu - sums by global atomics: one thread per value (O'Leary 2021, basic CUDA), one per row for masses
// (Lutz et al. 2018, "global atomic").
//
// To use: many clusters, where no copy of the sums fits shared memory and additions rarely meet.
#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

template <typename What, typename T>
__global__ void atomic_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *sums)
{
    if (stopped(control))
        return;
    const int width = What::width(view);
    const std::int64_t values = view.n * width, stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < values; i += stride) {
        const std::int64_t row = i / width;
        const int f = static_cast<int>(i - row * width);
        std::int64_t *const sum = sums + (std::int64_t{labels[row]} * width + f) * 2,
                            integer = What::integer(view, row, f);
        if (view.counts == nullptr)
            add_limbs(sum, split_limbs(integer));
        else
            add_integer(sum, integer * view.counts[row]);
    }
}

template <typename What, typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *sums)
{
    const int blocks = blocks_for(view.n * What::width(view), 256, stage.context.facts.multiprocessors * 32);
    enqueue(atomic_kernel<What, T>, blocks, 256, 0, stage.stream, view, stage.control, labels, sums);
}

} // namespace

const Both<Sum> sum_features_atomic = {sum<Features, float>, sum<Features, double>};
const Both<Sum> sum_masses_global_atomic = {sum<Masses, float>, sum<Masses, double>};

} // namespace pgkm::cuda

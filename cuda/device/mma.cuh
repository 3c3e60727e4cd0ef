// mma.cuh - products of small float64 matrices by one warp: the tensor cores' D += A B.
//
// Lane 4 g + t (g in 0..7, t in 0..3) holds of A, 16 x 8: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
// of B, 8 x 8: (t, g), (t + 4, g); of C, 16 x 8: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
// (PTX ISA, "Matrix Fragments for mma.m16n8k8 with .f64"). Every product is rounded as fma() is.
#pragma once

namespace pgkm::cuda::mixture {

// The lane 4 g + t, and its warp in the block.
__device__ inline int lane()
{
    return static_cast<int>(threadIdx.x) % 32;
}
__device__ inline int warp()
{
    return static_cast<int>(threadIdx.x) / 32;
}
__device__ inline int g()
{
    return lane() / 4;
}
__device__ inline int t()
{
    return lane() % 4;
}

// An array of doubles in shared memory that fragments are read from without conflicts of banks has
// rows of a length that is 4 modulo 16.
__host__ __device__ constexpr int conflict_free(int columns)
{
    return (columns + 11) / 16 * 16 + 4;
}

// A lane's part of a fragment of A, of many in memory one after the other: of each all lanes' first two
// values, then their others.
__device__ inline void load_fragment(const double *fragments, int number, int lane, double (&a)[4])
{
    const double2 *from = reinterpret_cast<const double2 *>(fragments) + number * 64 + lane;
    const double2 low = from[0], high = from[32];
    a[0] = low.x;
    a[1] = low.y;
    a[2] = high.x;
    a[3] = high.y;
}

__device__ inline void multiply_add(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                : "d"(a[2 * step + half]), "d"(b[step]));
#endif
}

} // namespace pgkm::cuda::mixture

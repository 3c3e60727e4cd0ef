// lapack.hpp - the system's LAPACK, where there is one: neither the build nor a server without wide PCA needs it.
#pragma once

#include <cstddef>

#include "numeric/platform.hpp"

namespace pgkm {

// Functions of Fortran: all arguments by reference, matrices by columns, and the lengths of strings at the end.
struct Lapack {
    // A symmetric matrix becomes a tridiagonal one (diagonal, beside) and reflections (in a and factors).
    void (*dsytrd)(const char *triangle, const int *n, double *a, const int *stride, double *diagonal, double *beside,
                   double *factors, double *work, const int *size, int *info, std::size_t);
    // Its values, ascending, instead of the diagonal, and its vectors.
    void (*dstedc)(const char *which, const int *n, double *diagonal, double *beside, double *vectors,
                   const int *stride, double *work, const int *size, int *integers, const int *integers_size, int *info,
                   std::size_t);
    // The reflections are applied to columns.
    void (*dormtr)(const char *side, const char *triangle, const char *transposed, const int *n, const int *columns,
                   const double *a, const int *stride, const double *factors, double *to, const int *to_stride,
                   double *work, const int *size, int *info, std::size_t, std::size_t, std::size_t);
    void (*set_threads)(int); // NULL: there are none to set
};

// Opened on the first call and never closed; NULL where there is none.
const Lapack *lapack();

} // namespace pgkm

// rank_one.hpp - the conquest of divide and conquer: two solved parts of a tridiagonal matrix and the
// element that couples them become one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/matrix_product.hpp"
#include "engine/platform.hpp"

namespace pgkm {

// Eigenvalues and eigenvectors of the diagonal blocks of an n x n matrix. Row r belongs to value r; in
// a block [first, last) its elements outside these columns mean nothing.
struct PartialEigen {
    std::int64_t n;
    std::vector<double> values;      // n
    std::vector<double> vectors;     // n x n, one a row
    std::vector<std::int64_t> order; // n: of each block, its rows by ascending value
    std::vector<double> rows, parts; // n x n each: room for merge()

    double *row(std::int64_t i) { return vectors.data() + i * n; }
};

// Blocks [first, middle) and [middle, last), and the element beside the diagonal between them, whose
// magnitude the last diagonal element of the one and the first of the other have lost.
struct Coupling {
    std::int64_t first, middle, last;
    double beside;
};

// Makes one block of two. choose(), where given, is called when values and order stand, and says how
// many of the vectors of the largest values are wanted; rows of others then mean nothing.
void merge(const MatrixWork &work, PartialEigen &state, const Coupling &coupling,
           const std::function<std::int64_t()> &choose = {});

} // namespace pgkm

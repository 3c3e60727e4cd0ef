// kernel.hpp (generate) - a user's reduction as CUDA C++, for NVRTC: a text without an include.
#pragma once

#include <string>

#include "backend/generate/layout.hpp"

namespace pgkm::generate {

// The element type of the rows, and d values a row.
struct Rows {
    bool float32;
    std::int32_t d;
};

// The kernels of the text, all extern "C"; Word is a 64-bit integer, addresses are those of device memory.
//
// init(Word *total): R without any row. One thread a word.
// reduc(const Element *rows, long long first, long long count, const double *parameters, const double *scales,
//       Word *own, Word *copies, Word *fault, const int *stop)
//   Blocks of plan.threads threads, plan.shared_words words of dynamic shared memory. `first`: the number of rows[0];
//   scales: plan.words.scales of them; own: blocks x threads x own_words words; copies: a copy of R a block (of layout
//   global: R itself); fault: the least number of a row that failed, all bits 1 before; stop: not 0 ends the kernel.
// combine(const Word *copies, long long blocks, Word *total): adds the copies to R. One thread a word.
// magnitudes(rows, first, count, parameters, Word *largest, fault, stop): of each element of integer sums the largest
//   magnitude, as the bits of a double. Any blocks of plan.threads threads.
std::string kernel_source(const Program &program, const Plan &plan, const Rows &rows);

} // namespace pgkm::generate

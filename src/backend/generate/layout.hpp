// layout.hpp (generate) - where the variables of a reduction lie on a GPU: a pure function of the program and the
// device.
//
// Variables are those of Ma and Agrawal (ICS 2009, section 4): the rows are dealt out to threads; parameters are input,
// read by all; the reduction objects R are output, which a loop over the rows writes, so that each thread (or block)
// has a copy. Temporary variables are scalars here and stay in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/generate/expressions.hpp"
#include "backend/reduction_words.hpp"
#include "backend/strategies.hpp"

namespace pgkm::generate {

using Layout = ReductionLayout;

struct Device {
    std::int32_t multiprocessors;
    std::int64_t shared_bytes;  // that a block may have
    std::int32_t threads = 512; // that a block may have, with 128 registers each
};

// Rows that a block holds in shared memory as float64, for the elements that are dealt out to its threads.
struct Stage {
    std::int64_t rows = 0; // a power of two; 0: there is none
    std::int64_t first = 0, columns = 0;
    std::int64_t place = 0; // its first word
};

struct Plan {
    Layout layout;
    std::int32_t threads = 0;      // of a block
    std::int64_t own_words = 0;    // thread layouts: of a thread's copy in device memory
    std::int64_t shared_words = 0; // of a block, all in all
    std::vector<Input> inputs = {};
    Words words = {}; // R
    Stage stage = {};

    bool is_per_thread() const { return layout <= Layout::thread_write_first; }
    bool has_copies() const { return layout != Layout::global; } // one a block, which combine() adds up
};

// What is known of a compute capability (90: 9.0) without a device of it.
Device device_of_capability(std::int32_t capability);

// The layout that make_plan() takes where none is forced.
Layout choose_layout(const Words &words, const Device &device);

// A block that does not fit becomes global.
Plan make_plan(const Program &program, Layout forced, const Device &device);

// Blocks of a launch, at most what `room` bytes of device memory hold copies for; 0: not even one.
std::int64_t choose_blocks(const Plan &plan, std::int64_t rows, const Device &device, std::uint64_t room);

// Bytes of device memory for the copies of one block, and of a thread's copies in device memory.
std::uint64_t block_bytes(const Plan &plan);

} // namespace pgkm::generate

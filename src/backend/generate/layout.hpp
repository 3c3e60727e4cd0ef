// layout.hpp (generate) - where the variables of a reduction lie on a GPU: a pure function of the program, the rows and
// the device.
//
// Variables are those of Ma and Agrawal (ICS 2009, section 4): the rows are dealt out to threads; parameters are input,
// read by all; the reduction objects R are output, which a loop over the rows writes, so that each thread (or block)
// has a copy. Temporary variables are scalars here and stay in registers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/generate/program.hpp"
#include "backend/strategies.hpp"

namespace pgkm::generate {

using Layout = ReductionLayout;

// A parameter: an array of rows x columns values, which begins at `first` of PgkmReduction::parameters.
struct Input {
    std::string name;
    std::int64_t first, rows, columns;
    std::int64_t place; // its first word in shared memory; -1: it stays in device memory

    std::int64_t values() const { return rows * columns; }
};

// A part of R: the row counts of an object's cells (item -1), or what one item fills. A word has 8 bytes.
struct Output {
    std::string name;
    std::int32_t object, item;
    PgkmCombine combine;          // that of row counts is PGKM_COMBINE_COUNT
    bool integer;                 // a sum of integers: two limbs of 23 bits
    std::int32_t words;           // of an element: two for integer sums and PGKM_COMBINE_ARGMIN (value, key)
    std::int64_t cells, elements; // elements of a cell
    std::int64_t base, stride;    // word of element i of a cell: base + cell * stride + i * words
    bool shared;                  // thread layouts: whether the copies lie in shared memory
    std::int64_t place;           // thread layouts: first word of a thread's copy there
    bool spread = false;          // its elements are dealt out to the threads of a block, not the rows

    std::int64_t size() const { return cells * elements * words; }
};

// Rows that a block holds in shared memory as float64, for outputs whose elements are dealt out.
struct Stage {
    std::int64_t rows = 0; // 0: there is none
    std::int64_t first = 0, columns = 0;
    std::int64_t place = 0; // its first word
};

struct Device {
    std::int32_t multiprocessors;
    std::int64_t shared_bytes;  // that a block may have
    std::int32_t threads = 512; // that a block may have, with 128 registers each
};

struct Plan {
    Layout layout;
    std::int32_t threads;      // of a block
    std::int32_t parts;        // of R; 1 but for Layout::parts
    std::int64_t part_words;   // of R in each part
    std::int64_t words;        // of R
    std::int64_t own_words;    // thread layouts: of a thread's copy in device memory
    std::int64_t shared_words; // of a block, all in all
    std::vector<Input> inputs;
    std::vector<Output> outputs; // in the order of R, by object, the row counts first
    Stage stage;

    bool is_per_thread() const { return layout <= Layout::thread_write_first; }
    bool has_copies() const { return layout != Layout::global; } // one a block, which combine() adds up
    bool has_spread() const;
};

// What is known of a compute capability (90: 9.0) without a device of it.
Device device_of_capability(std::int32_t capability);

// The layout that make_plan() takes where none is forced: by the size of R, by how many outputs a row changes, and by
// how often the rows of a warp meet in a cell.
Layout choose_layout(const std::vector<Output> &outputs, std::int64_t rows, const Device &device);

Plan make_plan(const Program &program, Layout forced, std::int64_t rows, const Device &device);

// Blocks of a launch for each part of R, at most what `room` bytes of device memory hold copies for; 0: not even one.
std::int64_t choose_blocks(const Plan &plan, std::int64_t rows, const Device &device, std::uint64_t room);

// Bytes of device memory for the copies of one block, and of a thread's copies in device memory.
std::uint64_t block_bytes(const Plan &plan);

} // namespace pgkm::generate

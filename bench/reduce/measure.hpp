// measure.hpp (reduce) - the time of calls that alternate.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "loaded.hpp"

namespace bench {

// In [0, 1), the same in each run.
std::vector<float> uniform(std::int64_t n);

// What is measured. run() returns values to compare, or none; layout() may be asked after it.
struct Run {
    std::string by;
    std::function<std::vector<double>()> run;
    std::function<std::string()> layout = [] { return std::string(); };
};

// The program in the layout that is chosen, with float64 and with integer sums, and in each layout of the backend.
std::vector<Run> runs_of(const std::vector<float> &values, std::int32_t d, const Program &program);

// The loop that a user would write, beside the CPU alone: a GPU that waits for it lowers its clock, and the next call
// is slow.
void add_plain(std::vector<Run> &runs, const std::function<std::vector<double>()> &loop);

// Prints a line for each run. Values are compared with those of the first.
void measure(const char *name, const std::vector<Run> &runs);

} // namespace bench

// measure.hpp (reduce) - rows in a backend, and the time of calls that alternate.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../test/support/program.hpp"
#include "backend/backend.h"

namespace bench {

using conformance::Program;

struct Options {
    const PgkmBackend *backend = nullptr;
    int threads = 2;
    int repeats = 5;
};
extern Options options;

// Throws std::runtime_error.
void check(PgkmStatus status, const PgkmError &error);

// In [0, 1), the same in each run.
std::vector<float> uniform(std::int64_t n);

// Rows loaded into the backend, with strategies that are forced (NULL: chosen).
class Loaded {
  public:
    Loaded(const std::vector<float> &values, std::int32_t d, const char *assignment = nullptr,
           const char *layout = nullptr);
    ~Loaded();
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;

    std::vector<double> reduce(const Program &program);

    PgkmError error = {};
    PgkmData *data = nullptr;
    PgkmProblem all = {};
    std::string layout; // of the last reduction, where the backend has layouts

  private:
    PgkmContext *context_ = nullptr;
};

// What is measured. run() returns values to compare, or none; layout() may be asked after it.
struct Run {
    std::string by;
    std::function<std::vector<double>()> run;
    std::function<std::string()> layout = [] { return std::string(); };
};

// The program in the layout that is chosen, with float64 and with integer sums, and in each layout of the backend.
std::vector<Run> runs_of(const std::vector<float> &values, std::int32_t d, const Program &program);

// Prints a line for each run. Values are compared with those of the first.
void measure(const char *name, const std::vector<Run> &runs);

} // namespace bench

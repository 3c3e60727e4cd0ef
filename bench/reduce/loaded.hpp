// loaded.hpp - rows loaded into a backend, called through its own table. bench/papers uses it, too.
#pragma once

#include <cstdint>
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

// The table of the backend named cuda or cpu; nullptr with a message where it cannot be had. `plugin`: of cuda, or
// NULL.
const PgkmBackend *find_backend(const std::string &name, const char *plugin);

bool on_cpu();

// Throws std::runtime_error.
void check(PgkmStatus status, const PgkmError &error);

// A context of options.backend with rows, which stay the caller's.
class Loaded {
  public:
    // `tuning`: strategies that are forced; `device_limit`: bytes of device memory, 0: no limit.
    Loaded(const PgkmPoints &points, const PgkmTuning &tuning, std::uint64_t device_limit = 0);
    Loaded(const std::vector<float> &values, std::int32_t d, const char *assignment = nullptr,
           const char *layout = nullptr);
    ~Loaded();
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;

    // Loads the rows again.
    void reload();
    std::vector<double> reduce(const Program &program);
    std::string layout() const; // of the last reduction, where the backend has layouts

    PgkmError error = {};
    PgkmData *data = nullptr;
    PgkmProblem all = {};
    PgkmTuning chosen = {}; // by the last call

  private:
    PgkmPoints points_;
    PgkmContext *context_ = nullptr;
};

} // namespace bench

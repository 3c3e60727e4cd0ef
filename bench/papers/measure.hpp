// measure.hpp (papers) - calls of a backend on one set of rows, timed as the works did, written as CSV.
//
// A line's ms is the wall-clock time of a call, of one thread of a CPU its processor time; the median of at least
// three. what:
//   fit         a fit of so many iterations from the first k different rows, or fewer where no label changes any more
//   assignment, feature_sum, mass_sum
//               one stage over given centroids: assign() that wants no more, less assign() without the stage, less
//               the same of 1,024 rows, which leaves the call itself out
//   stages      all three: an iteration without new centroids and without rows for empty clusters
//   find        an assignment within a fit, where kernels may have a copy of the rows as they like it: the iteration of
//               a fit of 30 less its sums as above; with a thirtieth of the time of the copy, and the new centroids
//   load, seed, labels
//               rows to the backend; first centroids; the assignment with its labels brought to the host
//
// by: the strategies that were forced; ran: those that the backend named last.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../reduce/loaded.hpp"

namespace bench {

struct Wanted {
    std::string figures;   // those whose name has this text
    std::string data;      // a folder, or empty
    double scale = 1.0;    // of the numbers of rows
    double seconds = 10.0; // of a fit: of one that takes longer, fewer iterations are run
};
extern Wanted wanted;

bool is_wanted(const std::string &figure);

// A series of a figure: the strategies that are forced, "-" for one that is chosen.
struct By {
    const char *assignment, *feature_sum, *mass_sum, *execution;
};
inline constexpr By by_choice = {"-", "-", "-", "-"};

// Rows that others own.
struct Set {
    std::string name;
    const float *values;
    std::int64_t n;
    std::int32_t d;

    Set head(std::int64_t rows) const { return {name, values, rows, d}; }
};

// One set in one context.
class Measured {
  public:
    Measured(const std::string &figure, const Set &set, const By &by, std::uint64_t device_limit);

    bool is_forced() const; // else stages may not run apart
    void fit(std::int32_t k, std::int32_t iterations);
    void assignment(std::int32_t k);
    void feature_sum(std::int32_t k);
    void mass_sum(std::int32_t k);
    void stages(std::int32_t k);
    void find(std::int32_t k);
    void load();
    void seed(std::int32_t k, PgkmInit init, const char *name);
    void labels(std::int32_t k);

  private:
    using Call = std::function<void(const PgkmProblem &problem)>;

    std::vector<float> first_rows(std::int32_t k) const;
    // Milliseconds of a fit, and the iterations that it ran.
    std::pair<double, std::int32_t> time_fit(std::int32_t k, std::int32_t iterations);
    PgkmProblem problem_of(std::vector<float> &centroids) const;
    // The least time of a call, on all rows less on a few.
    double stage(const PgkmProblem &problem, const Call &call, const Call &without);
    Call assigning(bool totals, bool masses, std::vector<std::int32_t> *labels = nullptr);
    void write(const char *what, std::int32_t k, double ms, std::int32_t iterations);

    std::string figure_;
    Set set_;
    By by_;
    Loaded rows_;
    std::vector<PgkmFeatureScale> scales_;
    std::vector<PgkmInt128> totals_, masses_;
};

// body() for each series, which a backend may not have; on the CPU instead for `direct`, exact distances to all
// centroids, and for what is chosen.
void each(const std::string &figure, const Set &set, const std::vector<By> &list,
          const std::function<void(Measured &)> &body, std::uint64_t device_limit = 0);

// The works. Data: see data.hpp.
void aggarwal();
void li();
void lutz();
void oleary();

} // namespace bench

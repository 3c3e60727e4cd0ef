// problems.hpp - one call's problems, copied out of the arena and checked.
#pragma once

#include <vector>

#include "service/wire/arena.hpp"
#include "service/wire/arrays.hpp"

namespace pgkm::service {

[[noreturn]] void refuse(const char *what);

class Problems {
  public:
    // Throws Error(PGKM_INVALID) for what cannot be: rows or arrays that are not there.
    Problems(Op op, const CallRequest &request, const PgkmPoints &points, const Arena &arena);

    // Runs the call on `table`.
    PgkmStatus run(const PgkmBackend &table, PgkmData *data, PgkmError *error);
    // fit() may have written over the centroids that it started from: as they were.
    void restore();
    // What the call found, into the arena.
    void write_back() const;
    // In distance terms: rows x features x clusters x passes over the rows.
    double work() const { return work_; }

  private:
    bool is_possible(const WireProblem &wire, std::int64_t n) const;
    void add(const WireProblem &wire, const Arrays &at);
    void check_sizes(const WireProgram &program) const;
    void copy_program(const ProgramArrays &from);
    void add_mixture(const WireProblem &wire, const Arrays &at);
    double work_of(const WireProblem &wire) const;

    Op op_;
    CallRequest request_;
    Shape shape_;
    WireProblem *in_arena_;
    std::vector<WireProblem> wires_;
    std::vector<Arrays> arrays_;
    std::vector<PgkmProblem> problems_;
    std::vector<PgkmSummary> summaries_;      // of summarise
    std::vector<PgkmAssignment> assignments_; // of assign
    std::vector<PgkmMoments> moments_;
    std::vector<PgkmMixture> mixtures_; // of em_step, as the two below
    std::vector<PgkmMixtureSums> sums_;
    PgkmReduction reduction_ = {}; // of reduce, of the copies below
    std::vector<PgkmExpression> expressions_;
    std::vector<std::int64_t> loops_;
    std::vector<double> parameters_;
    std::vector<PgkmItem> items_;
    std::vector<PgkmObject> objects_;
    std::vector<PgkmReduced> reduced_;
    std::vector<std::vector<std::int32_t>> given_labels_; // copies that were checked
    std::vector<std::vector<char>> centroids_;            // of fit, as given
    double work_ = 0.0;
};

} // namespace pgkm::service

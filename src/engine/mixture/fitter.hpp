// fitter.hpp - EM in one session: the mixtures of all groups of a request side by side.
//
// An iteration is one call of the backend for all groups that have not converged, and M steps that
// threads share out; what a group's model becomes does not depend on the others.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/job/algorithm.hpp"
#include "engine/kmeans/fit.hpp"
#include "engine/kmeans/loaded_rows.hpp"
#include "engine/mixture/parameters.hpp"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

struct MixtureModel {
    MixtureParameters parameters;
    std::int64_t n = 0;
    double mass = 0.0;     // of the rows: n without weights
    Standardization units; // of the rows as fitted; empty: those of the data
    double log_likelihood = 0.0;
    std::vector<double> trace; // one per iteration
    bool converged = false;
    std::vector<std::int32_t> labels; // n, or empty
};

class MixtureFitter {
  public:
    // Of a checked request, whose rows are loaded into the place unless they are there.
    MixtureFitter(const PgkmRequest &request, Workplace &place, Monitor &monitor);

    // A model for each group. Throws Error.
    std::vector<MixtureModel> run();

  private:
    // A group's fit from one start.
    struct Start {
        MixtureModel model;
        MixtureFactors factors;
        std::vector<MixtureSums> sums; // one, once k is known
        double mean_log_likelihood;    // of a row, at the last iteration
    };

    void for_each(std::size_t count, const std::function<void(std::size_t)> &body);
    void find_totals();
    std::vector<Model> find_clusters(std::int32_t restart);
    // One E step of some groups: of mixture(g) over the rows of group g, as sums(g) asks. Returns sums of each.
    std::vector<PgkmMixtureSums> em_step(const std::vector<std::size_t> &groups,
                                         const std::function<PgkmMixture(std::size_t)> &mixture,
                                         const std::function<PgkmMixtureSums(std::size_t)> &sums);
    // An E step of mixture(g) and the M step, for some groups.
    void step(std::vector<Start> &starts, std::vector<std::size_t> groups,
              const std::function<PgkmMixture(std::size_t)> &mixture);
    void sum_components(Start &start);
    std::vector<MixtureModel> run_once(std::int32_t restart);
    void begin(Start &start);
    void begin_with_clusters(std::vector<Start> &starts, std::int32_t restart);
    void iterate(std::vector<Start> &starts);
    void finish_iteration(Start &start);
    void label(std::vector<Start> &starts);
    void weigh(Start &start) const;

    const PgkmRequest &request_;
    const PgkmMixtureOptions &options_;
    Session &session_;
    Monitor &monitor_;
    const Poll poll_ = [this] { monitor_.poll(); };
    ThreadPool pool_;
    std::vector<std::size_t> all_;           // 0, 1, ... : the groups
    std::vector<std::int64_t> k_;            // of each group
    std::vector<PgkmProblem> problems_;      // likewise: its rows
    std::vector<TotalCovariance> totals_;    // likewise, where they are tied
    PgkmPoints points_;                      // as loaded
    std::shared_ptr<const LoadedRows> rows_; // unless all is given, to the only group
};

} // namespace pgkm

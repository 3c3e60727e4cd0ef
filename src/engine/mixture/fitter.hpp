// fitter.hpp - EM in one session: the mixtures of all groups of a request side by side.
//
// An iteration is one call of the backend for all groups that have not converged, and M steps that
// threads share out; what a group's model becomes does not depend on the others.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "numeric/thread_pool.hpp"
#include "engine/mixture/mixture.hpp"
#include "engine/mixture/clusters.hpp"
#include "engine/backends/session.hpp"

namespace pgkm {

class MixtureFitter {
public:
    // Of a checked request; `threads` for M steps.
    MixtureFitter(const PgkmMixtureRequest &request, Session &session, int threads, Monitor &monitor);

    // A model for each group. Throws Error.
    std::vector<MixtureModel> run();

private:
    struct Group {
        PgkmProblem problem; // its rows
        std::int64_t k;
        TotalCovariance total; // tied
    };
    // A group's fit from one start.
    struct Start {
        MixtureModel model;
        MixtureFactors factors;
        std::vector<MixtureSums> sums; // one, once k is known
        double mean_log_likelihood;    // of a row, at the last iteration
    };

    void poll() const;
    void for_each(std::size_t count, const std::function<void(std::size_t)> &body);
    void load();
    void find_totals();
    void set_total(std::size_t group, const std::vector<double> &sums, const std::vector<double> &cross);
    std::vector<MixtureModel> run_once(std::int32_t restart);
    void begin(Start &start);
    void begin_with_clusters(std::vector<Start> &starts, std::int32_t restart);
    void iterate(std::vector<Start> &starts);
    void iterate_once(std::size_t group, Start &start);
    void label(std::vector<Start> &starts);

    const PgkmMixtureRequest &request_;
    const PgkmMixtureOptions &options_;
    Session &session_;
    Monitor &monitor_;
    ThreadPool pool_;
    std::vector<Group> groups_;
    PgkmPoints points_;                         // as loaded
    std::unique_ptr<MixtureClusters> clusters_; // unless all is given, to the only group
};

} // namespace pgkm

// clusters.hpp - the clusters of k-means that mixtures begin with, in the session that the
// mixtures are fitted in: rows are loaded once for both.
#pragma once

#include <memory>
#include <vector>

#include "engine/kmeans/fit.hpp"
#include "engine/kmeans/loaded_rows.hpp"
#include "engine/backends/session.hpp"

namespace pgkm {

// The k-means that belongs to a request of mixtures: its rows, or its groups.
PgkmFitRequest clusters_request(const PgkmMixtureRequest &request);

class MixtureClusters {
public:
    // Loads the request's rows into the session. Throws Error.
    MixtureClusters(const PgkmMixtureRequest &request, Session &session, Monitor &monitor);

    // All rows as loaded, the groups one after the other.
    const PgkmPoints &points() const;

    // A model for each group, with labels; fewer clusters than the group's k where rows repeat. Throws Error.
    std::vector<Model> find(std::uint64_t seed);

private:
    PgkmFitRequest request_;
    Session &session_;
    std::unique_ptr<LoadedRows<float>> narrow_; // one of the two
    std::unique_ptr<LoadedRows<double>> wide_;
};

} // namespace pgkm

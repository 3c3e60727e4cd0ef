// mixture_clusters.hpp - the clusters of k-means that a mixture begins with, in the session that the
// mixture is fitted in: rows are loaded once for both.
#pragma once

#include <memory>

#include "engine/fit.hpp"
#include "engine/loaded_rows.hpp"
#include "engine/session.hpp"

namespace pgkm {

class MixtureClusters {
public:
    // Loads the request's rows into the session. Throws Error.
    MixtureClusters(const PgkmMixtureRequest &request, Session &session, Monitor &monitor);

    // With labels; fewer than the request's k where rows repeat. Throws Error.
    Model find(std::uint64_t seed);

private:
    PgkmFitRequest request_ = {};
    Session &session_;
    std::unique_ptr<LoadedRows<float>> narrow_; // one of the two
    std::unique_ptr<LoadedRows<double>> wide_;
};

} // namespace pgkm

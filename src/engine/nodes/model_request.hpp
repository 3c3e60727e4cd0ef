// model_request.hpp - the other end of model_sums: what is asked of rows for PCA and mixtures, and room for the sums.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "engine/nodes/message.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Of rows of d features. Constructors read what follows the operation and throw Error.
struct CrossRequest {
    CrossRequest(Reader &request, std::int32_t d);
    CrossRequest(const CrossRequest &) = delete;
    CrossRequest &operator=(const CrossRequest &) = delete;
    void reply(Writer &reply) const;

    PgkmMoments moments; // views of what follows
    std::vector<double> shift, sums, products;
};

struct MixtureRequest {
    MixtureRequest(Reader &request, std::int32_t d);
    MixtureRequest(const MixtureRequest &) = delete;
    MixtureRequest &operator=(const MixtureRequest &) = delete;
    // Where there are no factors, each row belongs to the component of the nearest mean.
    bool wants_labels() const { return factors.empty(); }
    void reply(Writer &reply) const;

    PgkmMixture mixture = {}; // views of what follows, but for labels
    PgkmMixtureSums sums = {};
    bool want_sums;
    std::vector<double> means, factors, log_weights, log_determinants, masses, first, second;
};

} // namespace pgkm::nodes

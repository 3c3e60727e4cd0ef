// model_sums.cpp - asks all servers for sums of PCA and mixtures, and adds these up.
#include "engine/nodes/model_sums.hpp"

#include <algorithm>

namespace pgkm::nodes {
namespace {

void add_to(double *totals, const std::vector<double> &own)
{
    for (std::size_t i = 0; i < own.size(); ++i)
        totals[i] += own[i];
}

// Values of PgkmMixture.factors, and of PgkmMixtureSums.second.
std::size_t factors_of(PgkmCovariance type, std::size_t k, std::size_t d)
{
    return type == PGKM_COVARIANCE_FULL   ? k * d * d
           : type == PGKM_COVARIANCE_TIED ? d * d
           : type == PGKM_COVARIANCE_DIAG ? k * d
                                          : k;
}
std::size_t squares_of(PgkmCovariance type, std::size_t k, std::size_t d)
{
    return type == PGKM_COVARIANCE_FULL ? k * (d * (d + 1) / 2) : type == PGKM_COVARIANCE_TIED ? 0 : k * d;
}

} // namespace

void sum_cross(NodeSet &nodes, PgkmMoments &out)
{
    const auto d = static_cast<std::size_t>(nodes.points().d);
    Writer request(Operation::cross);
    request.put(out.shift, d);
    out.mass = 0.0;
    std::fill_n(out.sums, d, 0.0);
    std::fill_n(out.cross, d * (d + 1) / 2, 0.0);
    nodes.ask(request, [&](Reader &reply) {
        out.mass += reply.get<double>();
        add_to(out.sums, reply.get_all<double>(d));
        add_to(out.cross, reply.get_all<double>(d * (d + 1) / 2));
    });
}

void sum_mixture(NodeSet &nodes, const PgkmMixture &mixture, PgkmMixtureSums &out)
{
    if (mixture.labels != nullptr || out.labels != nullptr)
        throw Error(PGKM_UNSUPPORTED, "labels of several servers stay there");
    const auto d = static_cast<std::size_t>(nodes.points().d), k = static_cast<std::size_t>(mixture.k);
    const bool labelled = mixture.factors == nullptr, want_sums = out.masses != nullptr;
    const std::size_t squares = squares_of(mixture.covariance_type, k, d);
    Writer request(Operation::em_step);
    request.put(mixture.k);
    request.put(mixture.covariance_type);
    request.put(static_cast<std::uint8_t>(want_sums));
    request.put(mixture.means, k * d);
    request.put(mixture.factors, labelled ? 0 : factors_of(mixture.covariance_type, k, d));
    request.put(mixture.log_weights, labelled ? 0 : k);
    request.put(mixture.log_determinants, labelled ? 0 : k);
    out.log_likelihood = 0.0;
    if (want_sums) {
        std::fill_n(out.masses, k, 0.0);
        std::fill_n(out.first, k * d, 0.0);
        if (squares > 0)
            std::fill_n(out.second, squares, 0.0);
    }
    nodes.ask(request, [&](Reader &reply) {
        out.log_likelihood += reply.get<double>();
        add_to(out.masses, reply.get_all<double>(want_sums ? k : 0));
        add_to(out.first, reply.get_all<double>(want_sums ? k * d : 0));
        add_to(out.second, reply.get_all<double>(want_sums ? squares : 0));
    });
}

} // namespace pgkm::nodes

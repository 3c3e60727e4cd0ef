// model_sums.cpp - asks all servers for sums of PCA and mixtures, and adds these up.
#include "engine/nodes/model_sums.hpp"

#include <algorithm>

#include "engine/backends/moments.hpp"

namespace pgkm::nodes {
namespace {

void add_to(double *totals, const std::vector<double> &own)
{
    for (std::size_t i = 0; i < own.size(); ++i)
        totals[i] += own[i];
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
    const PgkmCovariance type = mixture.covariance_type;
    const auto factors = static_cast<std::size_t>(pgkm_covariance_size(type, mixture.k, nodes.points().d));
    const auto squares = static_cast<std::size_t>(second_size(type, mixture.k, nodes.points().d));
    Writer request(Operation::em_step);
    request.put(mixture.k);
    request.put(type);
    request.put(static_cast<std::uint8_t>(want_sums));
    request.put(mixture.means, k * d);
    request.put(mixture.factors, labelled ? 0 : factors);
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

// model_request.cpp - reads requests for sums of PCA and mixtures, and answers them.
#include "engine/nodes/model_request.hpp"

#include "engine/backends/moments.hpp"
#include "engine/nodes/share.hpp"

namespace pgkm::nodes {

CrossRequest::CrossRequest(Reader &request, std::int32_t d)
    : shift(request.get_all<double>(static_cast<std::size_t>(d))), sums(shift.size()),
      products(static_cast<std::size_t>(triangle_size(d)))
{
    moments = {shift.data(), sums.data(), products.data(), 0.0};
}

void CrossRequest::reply(Writer &reply) const
{
    reply.put(moments.mass);
    reply.put(sums);
    reply.put(products);
}

MixtureRequest::MixtureRequest(Reader &request, std::int32_t d)
{
    const auto k = static_cast<std::size_t>(request.get<std::int32_t>());
    mixture.k = static_cast<std::int32_t>(k);
    mixture.covariance_type = request.get<PgkmCovariance>();
    if (mixture.covariance_type < PGKM_COVARIANCE_FULL || mixture.covariance_type > PGKM_COVARIANCE_SPHERICAL)
        raise_shape();
    want_sums = request.get<std::uint8_t>() != 0;
    means = read_rows<double>(request, k, d);
    factors = request.get_all<double>();
    log_weights = request.get_all<double>();
    log_determinants = request.get_all<double>();
    if (!factors.empty() &&
        (factors.size() != static_cast<std::size_t>(pgkm_covariance_size(mixture.covariance_type, mixture.k, d)) ||
         log_weights.size() != k || log_determinants.size() != k))
        raise_shape();
    mixture.means = means.data();
    mixture.log_weights = log_weights.data();
    mixture.factors = factors.data();
    mixture.log_determinants = log_determinants.data();
    if (!want_sums)
        return;
    masses.resize(k);
    first.resize(means.size());
    second.resize(static_cast<std::size_t>(second_size(mixture.covariance_type, mixture.k, d)));
    sums.masses = masses.data();
    sums.first = first.data();
    sums.second = second.data();
}

void MixtureRequest::reply(Writer &reply) const
{
    reply.put(sums.log_likelihood);
    reply.put(masses);
    reply.put(first);
    reply.put(second);
}

} // namespace pgkm::nodes

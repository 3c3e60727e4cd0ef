// cluster_sums.cpp - both ends of requests for sums over the rows of clusters.
//
// Labels are found anew each time: that is a small part of the fit before it.
#include "engine/nodes/cluster_sums.hpp"

#include <algorithm>
#include <functional>

#include "backend/host.hpp"
#include "engine/nodes/node_set.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/rows/cluster_sums.hpp"

namespace pgkm::nodes {
namespace {

std::vector<double> sum_up(NodeSet &nodes, const Writer &request, std::size_t size)
{
    std::vector<double> sums(size, 0.0);
    nodes.ask(request, [&](Reader &reply) {
        const std::vector<double> own = reply.get_all<double>(size);
        std::transform(own.begin(), own.end(), sums.begin(), sums.begin(), std::plus<>());
    });
    return sums;
}

} // namespace

std::vector<double> cluster_totals(PgkmData *data, const std::vector<double> &centroids, std::int32_t k)
{
    NodeSet &nodes = *reinterpret_cast<NodeSet *>(data);
    Writer request(Operation::cluster_totals);
    request.put(k);
    request.put(centroids);
    return sum_up(nodes, request, centroids.size() + static_cast<std::size_t>(k));
}

std::vector<double> cluster_spreads(PgkmData *data, const std::vector<double> &centroids, std::int32_t k,
                                    const std::vector<double> &means)
{
    NodeSet &nodes = *reinterpret_cast<NodeSet *>(data);
    Writer request(Operation::cluster_spreads);
    request.put(k);
    request.put(centroids);
    request.put(means);
    return sum_up(nodes, request, static_cast<std::size_t>(k) + 2);
}

template <typename T>
void serve_cluster_sums(Session &session, const PgkmPoints &points, int threads, const PgkmHost &host,
                        Operation operation, Reader &request, Writer &reply)
{
    const auto k = request.get<std::int32_t>();
    const std::vector<double> centroids = read_rows<double>(request, static_cast<std::size_t>(k), points.d);
    const LargeArray<std::int32_t> labels = nearest_labels<T>(session, points, k, centroids.data());
    const LabelledRows rows = {points, labels.data(), k, threads, [&host] { poll(host); }};
    if (operation == Operation::cluster_totals)
        return reply.put(rows.totals());
    const std::vector<double> means = request.get_all<double>(centroids.size() + static_cast<std::size_t>(k));
    reply.put(rows.spreads(means.data(), centroids.data()));
}

template void serve_cluster_sums<float>(Session &, const PgkmPoints &, int, const PgkmHost &, Operation, Reader &,
                                        Writer &);
template void serve_cluster_sums<double>(Session &, const PgkmPoints &, int, const PgkmHost &, Operation, Reader &,
                                         Writer &);

} // namespace pgkm::nodes

// arrays.cpp - the order and sizes of a problem's arrays.
#include "service/wire/arrays.hpp"

#include <type_traits>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

constexpr std::uint64_t alignment = 64;

} // namespace

template <typename T>
T *Walk::place(bool wanted, std::uint64_t rows, std::uint64_t columns, std::uint64_t size)
{
    if (!wanted)
        return nullptr;
    const std::uint64_t begin = end_;
    std::uint64_t bytes = 0, end = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, size, &bytes) ||
        __builtin_add_overflow(begin, bytes, &end) || end > INT64_MAX - alignment)
        throw Error(PGKM_LIMIT, "the call's arrays are too large");
    end_ = (end + alignment - 1) / alignment * alignment;
    return base_ == nullptr ? nullptr : reinterpret_cast<T *>(base_ + begin);
}

Walk::Walk(const Shape &shape, std::int64_t n_problems, char *base) : shape_(shape), base_(base)
{
    place<WireProblem>(true, static_cast<std::uint64_t>(n_problems), 1);
}

Arrays Walk::next(const WireProblem &problem)
{
    const auto n = static_cast<std::uint64_t>(problem.n_rows);
    const auto k = static_cast<std::uint64_t>(problem.k);
    const auto d = static_cast<std::uint64_t>(shape_.d);
    const auto has = [&](Part part) { return (problem.parts & part) != 0; };
    Arrays arrays = {};
    arrays.centroids = place<char>(has(part_centroids), k, d, shape_.element_bytes());
    arrays.scales = place<PgkmFeatureScale>(has(part_scales), d, 1);
    arrays.statistics = place<double>(has(part_statistics), d, 4);
    arrays.labels = place<std::int32_t>(has(part_labels), n, 1);
    arrays.distances = place<double>(has(part_distances), n, 1);
    arrays.totals = place<PgkmInt128>(has(part_totals), k, d);
    arrays.masses = place<PgkmInt128>(has(part_masses), k, 1);
    arrays.within = place<PgkmInt128>(has(part_within), k, 1);
    arrays.sizes = place<std::int64_t>(has(part_sizes), k, 1);
    if (has(part_moments))
        place_moments(&arrays);
    place_mixture(problem, &arrays);
    arrays.values = place<double>(has(part_reduced), static_cast<std::uint64_t>(program_.values), 1);
    arrays.counts = place<std::int64_t>(has(part_reduced), static_cast<std::uint64_t>(program_.cells), 1);
    return arrays;
}

ProgramArrays Walk::program(const WireProgram &program)
{
    const auto array = [&](auto *of, std::int64_t count) {
        return place<std::remove_pointer_t<decltype(of)>>(true, static_cast<std::uint64_t>(count), 1);
    };
    program_ = program;
    ProgramArrays arrays = {};
    arrays.expressions = array(arrays.expressions, program.n_expressions);
    arrays.loops = array(arrays.loops, program.n_loops);
    arrays.parameters = array(arrays.parameters, program.n_parameters);
    arrays.items = array(arrays.items, program.n_items);
    arrays.objects = array(arrays.objects, program.n_objects);
    return arrays;
}

void Walk::place_moments(Arrays *arrays)
{
    const auto d = static_cast<std::uint64_t>(shape_.d);
    arrays->shift = place<double>(true, d, 1);
    arrays->sums = place<double>(true, d, 1);
    arrays->cross = place<double>(true, d * (d + 1) / 2, 1);
}

void Walk::place_mixture(const WireProblem &problem, Arrays *arrays)
{
    const auto k = static_cast<std::uint64_t>(problem.k);
    const auto d = static_cast<std::uint64_t>(shape_.d);
    const auto type = static_cast<PgkmCovariance>(problem.covariance_type);
    const auto has = [&](Part part) { return (problem.parts & part) != 0; };
    const bool one = type == PGKM_COVARIANCE_TIED, full = type == PGKM_COVARIANCE_FULL;
    const std::uint64_t factor = full || one ? d * d : type == PGKM_COVARIANCE_DIAG ? d : 1;
    arrays->means = place<double>(has(part_means), k, d);
    arrays->log_weights = place<double>(has(part_density), k, 1);
    arrays->factors = place<double>(has(part_density), one ? 1 : k, factor);
    arrays->log_determinants = place<double>(has(part_density), k, 1);
    arrays->given_labels = place<std::int32_t>(has(part_given_labels), static_cast<std::uint64_t>(problem.n_rows), 1);
    arrays->responsibilities = place<double>(has(part_mixture_sums), k, 1);
    arrays->first = place<double>(has(part_mixture_sums), k, d);
    arrays->second = place<double>(has(part_mixture_sums) && !one, k, full ? d * (d + 1) / 2 : d);
}

} // namespace pgkm::service

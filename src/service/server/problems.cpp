// problems.cpp - checks the problems of a call and runs it on the plugin's table.
#include "service/server/problems.hpp"

#include <algorithm>
#include <string>

#include "backend/reduction_program.hpp"
#include "numeric/error.hpp"

namespace pgkm::service {

void refuse(const char *what)
{
    throw Error(PGKM_INVALID, std::string("the GPU service got ") + what);
}

Problems::Problems(Op op, const CallRequest &request, const PgkmPoints &points, const Arena &arena)
    : op_(op), request_(request), shape_{points.d, points.element},
      in_arena_(reinterpret_cast<WireProblem *>(arena.get()))
{
    const std::int64_t n = request.n_problems;
    if (n < 1 || static_cast<std::uint64_t>(n) > arena.bytes() / sizeof(WireProblem))
        refuse("a number of problems that cannot be");
    // Copied first: what is checked here cannot change any more.
    wires_.assign(in_arena_, in_arena_ + n);
    Walk sizes(shape_, n, nullptr);
    if (op == Op::reduce) {
        check_sizes(request.program);
        sizes.program(request.program);
        if (sizes.end() > arena.bytes())
            refuse("an arena that is too short");
    }
    for (const WireProblem &wire : wires_) {
        if (!is_possible(wire, points.n))
            refuse("a problem that cannot be");
        sizes.next(wire);
    }
    if (sizes.end() > arena.bytes())
        refuse("an arena that is too short");
    Walk walk(shape_, n, arena.get());
    if (op == Op::reduce)
        copy_program(walk.program(request.program));
    for (const WireProblem &wire : wires_)
        add(wire, walk.next(wire));
}

void Problems::check_sizes(const WireProgram &program) const
{
    const bool negative = program.n_expressions < 0 || program.n_loops < 0 || program.n_items < 0 ||
                          program.n_objects < 0 || program.n_parameters < 0 || program.values < 0 || program.cells < 0;
    if (negative)
        refuse("a reduction that cannot be");
}

// Copied, and then checked as the engine checks it.
void Problems::copy_program(const ProgramArrays &from)
{
    const WireProgram &sizes = request_.program;
    expressions_.assign(from.expressions, from.expressions + sizes.n_expressions);
    loops_.assign(from.loops, from.loops + sizes.n_loops);
    parameters_.assign(from.parameters, from.parameters + sizes.n_parameters);
    items_.assign(from.items, from.items + sizes.n_items);
    objects_.assign(from.objects, from.objects + sizes.n_objects);
    reduction_ = {expressions_.data(), sizes.n_expressions, loops_.data(),           sizes.n_loops,
                  parameters_.data(),  sizes.n_parameters,  items_.data(),           sizes.n_items,
                  objects_.data(),     sizes.n_objects,     sizes.exact != 0 ? 1 : 0};
    check_program(reduction_, shape_.d);
    if (values_in(reduction_) != sizes.values || cells_in(reduction_) != sizes.cells)
        refuse("results of another size");
}

bool Problems::is_possible(const WireProblem &wire, std::int64_t n) const
{
    const auto has = [&](Part part) { return (wire.parts & part) != 0; };
    if (wire.n_rows < 1 || wire.first_row < 0 || wire.n_rows > n || wire.first_row > n - wire.n_rows ||
        wire.covariance_type < PGKM_COVARIANCE_FULL || wire.covariance_type > PGKM_COVARIANCE_SPHERICAL)
        return false;
    switch (op_) {
    case Op::summarise:
        return wire.k >= 0 && has(part_statistics);
    case Op::moments:
        return wire.k >= 0 && has(part_moments);
    case Op::reduce:
        return wire.k >= 0 && has(part_reduced);
    case Op::em_step:
        return wire.k >= 1 && has(part_means) && (has(part_given_labels) ? has(part_mixture_sums) : has(part_density));
    default:
        return wire.k >= 1 && has(part_centroids);
    }
}

void Problems::add(const WireProblem &wire, const Arrays &at)
{
    const std::int64_t d = shape_.d;
    PgkmProblem problem = {};
    problem.first_row = wire.first_row;
    problem.n_rows = wire.n_rows;
    problem.k = wire.k;
    problem.centroids = at.centroids;
    problem.feature_scales = at.scales;
    problem.weight_exponent = wire.weight_exponent;
    problem.distance_exponent = wire.distance_exponent;
    problem.tol = wire.tol;
    problem.restart = wire.restart;
    problems_.push_back(problem);
    arrays_.push_back(at);
    work_ += work_of(wire);
    double *const s = at.statistics;
    if (op_ == Op::summarise)
        summaries_.push_back({s, s + d, s + 2 * d, s + 3 * d, 1.0});
    if (op_ == Op::assign)
        assignments_.push_back({at.labels, at.distances, at.totals, at.masses, at.within, at.sizes});
    if (op_ == Op::moments)
        moments_.push_back({at.shift, at.sums, at.cross, 0.0});
    if (op_ == Op::em_step)
        add_mixture(wire, at);
    if (op_ == Op::reduce)
        reduced_.push_back({at.values, at.counts, PGKM_FAULT_NONE, -1, -1, 0.0});
    if (op_ == Op::fit)
        centroids_.emplace_back(at.centroids,
                                at.centroids + wire.k * d * static_cast<std::int64_t>(shape_.element_bytes()));
}

void Problems::add_mixture(const WireProblem &wire, const Arrays &at)
{
    const std::int32_t *given = nullptr;
    if (at.given_labels != nullptr) {
        // They are places in arrays: checked, and out of the client's reach.
        given_labels_.emplace_back(at.given_labels, at.given_labels + wire.n_rows);
        given = given_labels_.back().data();
        if (std::any_of(given, given + wire.n_rows, [&](std::int32_t label) { return label < 0 || label >= wire.k; }))
            refuse("a label of no component");
    }
    mixtures_.push_back({wire.k, static_cast<PgkmCovariance>(wire.covariance_type), at.log_weights, at.means,
                         at.factors, at.log_determinants, given});
    sums_.push_back({0.0, at.responsibilities, at.first, at.second, at.labels});
}

double Problems::work_of(const WireProblem &wire) const
{
    const double d = shape_.d, values = static_cast<double>(wire.n_rows) * d;
    if (op_ == Op::moments)
        return values * d;
    if (op_ == Op::reduce)
        return static_cast<double>(wire.n_rows) * program_work(reduction_).row;
    const double of_k = values * std::max(1, wire.k);
    if (op_ == Op::em_step)
        return of_k * (wire.covariance_type == PGKM_COVARIANCE_FULL ? d : 2.0);
    return op_ == Op::fit ? of_k * std::clamp(request_.fit.max_iter, 1, 30) : of_k; // few need more passes
}

PgkmStatus Problems::run(const PgkmBackend &table, PgkmData *data, PgkmError *error)
{
    const auto n = static_cast<std::int64_t>(problems_.size());
    switch (op_) {
    case Op::summarise:
        return table.summarise(data, problems_.data(), n, request_.want_moments, summaries_.data(), error);
    case Op::seed:
        return table.seed(data, problems_.data(), n, &request_.seed, error);
    case Op::fit:
        return table.fit(data, problems_.data(), n, &request_.fit, error);
    case Op::moments:
        return table.moments(data, problems_.data(), n, moments_.data(), error);
    case Op::em_step:
        return table.em_step(data, problems_.data(), n, mixtures_.data(), sums_.data(), error);
    case Op::reduce:
        return table.reduce(data, problems_.data(), n, &reduction_, reduced_.data(), error);
    default:
        return table.assign(data, problems_.data(), n, assignments_.data(), error);
    }
}

void Problems::restore()
{
    for (std::size_t i = 0; i < centroids_.size(); ++i)
        std::copy(centroids_[i].begin(), centroids_[i].end(), arrays_[i].centroids);
    for (std::size_t i = 0; i < wires_.size(); ++i)
        problems_[i].k = wires_[i].k;
}

void Problems::write_back() const
{
    for (std::size_t i = 0; i < wires_.size(); ++i) {
        WireProblem &to = in_arena_[i];
        to.found_k = problems_[i].k;
        to.n_iter = problems_[i].n_iter;
        to.converged = problems_[i].converged;
        to.shift = problems_[i].shift;
        to.max_weight = summaries_.empty() ? 1.0 : summaries_[i].max_weight;
        to.mass = moments_.empty() ? 0.0 : moments_[i].mass;
        to.log_likelihood = sums_.empty() ? 0.0 : sums_[i].log_likelihood;
        if (reduced_.empty())
            continue;
        to.fault = reduced_[i].fault;
        to.row = reduced_[i].row;
        to.expression = reduced_[i].expression;
        to.number = reduced_[i].number;
    }
}

} // namespace pgkm::service

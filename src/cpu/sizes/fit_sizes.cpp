// fit_sizes.cpp - fit_sizes(): Lloyd's iterations whose assignment is the balancer's, and the sums over its labels.
//
// Such iterations: Bradley, Bennett, Demiriz (2000), constrained k-means. The inertia falls until labels rest, as
// without bounds.
#include "cpu/operations.hpp"

#include <algorithm>
#include <vector>

#include "backend/size_units.hpp"
#include "cpu/assign/own_distances.hpp"
#include "cpu/fit/lloyd.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/sizes/balancer.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

// Labels that are known.
template <typename T>
class Labelled : public Assigner<T> {
  public:
    Labelled(const Rows<T> &rows, const std::int32_t *labels) : rows_(rows), labels_(labels) {}

    Assignment strategy() const override { return Assignment::automatic; }
    int rows_at_once() const override { return 1024; }
    void begin(const T *centroids) override { centroids_ = centroids; }
    void assign(int, std::int64_t first, int count, std::int32_t *labels, double *distances) override
    {
        std::copy_n(labels_ + first, count, labels);
        if (distances != nullptr)
            own_distances(rows_, centroids_, first, count, labels, distances);
    }

  private:
    const Rows<T> rows_;
    const std::int32_t *labels_;
    const T *centroids_ = nullptr;
};

// The balancer's, of all rows at once.
template <typename T>
class Balanced final : public Labelled<T> {
  public:
    Balanced(const Rows<T> &rows, const RowNumber *order, const PgkmSizeBounds *bounds, int size_exponent,
             std::int32_t *labels)
        : Labelled<T>(rows, labels), balancer_(rows, order, bounds, size_exponent), fresh_(labels)
    {
    }
    void begin(const T *centroids) override { balancer_.assign(centroids, fresh_); }

  private:
    Balancer<T> balancer_;
    std::int32_t *fresh_;
};

template <typename T>
void fit_problem(const Data &data, ThreadPool &pool, PgkmProblem &problem, std::int64_t index,
                 const PgkmFitParams &params, const PgkmSizeBounds *bounds, Buffer<RowNumber> &order,
                 std::int32_t *labels)
{
    const Rows<T> rows(data, pool, problem);
    if (order.size() == 0)
        order = canonical_order(BlockRunner(data.context, &pool == &data.context.pool),
                                SeedRows<T>{rows.values, nullptr, rows.n, rows.d});
    Buffer<std::int32_t> old(data.context.budget, problem.n_rows, -1);
    Balanced<T> balanced(rows, order.data(), bounds, size_exponent(rows.n, problem.weight_exponent), labels);
    Iteration<T> iteration(data, pool, problem, Purpose::iterations, old.data(), &balanced);
    iterate(iteration, problem, index, params, old.data());
    balanced.begin(static_cast<const T *>(problem.centroids));
}

} // namespace

void fit_sizes(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
               const PgkmSizeBounds *bounds, PgkmAssignment *assignments)
{
    std::vector<Buffer<RowNumber> *> orders; // their map is one thread's
    std::vector<std::int64_t> first_bounds;  // of each problem
    std::int64_t n_bounds = 0;
    for (std::int64_t p = 0; p < n_problems; ++p) {
        orders.push_back(&data.row_orders[{problems[p].first_row, problems[p].n_rows}]);
        first_bounds.push_back(n_bounds);
        n_bounds += problems[p].k;
    }
    with_element(data.points, [&](auto element) {
        using T = decltype(element);
        for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
            if (params != nullptr)
                return fit_problem<T>(data, pool, problems[p], p, *params, bounds + first_bounds[at(p)], *orders[at(p)],
                                      assignments[p].labels);
            Labelled<T> labelled(Rows<T>(data, pool, problems[p]), assignments[p].labels);
            PgkmAssignment wanted = assignments[p];
            wanted.labels = nullptr;
            assign_by(labelled, data, pool, problems[p], wanted);
        });
    });
}

} // namespace pgkm::cpu

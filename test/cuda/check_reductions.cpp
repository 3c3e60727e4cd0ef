// check_reductions.cpp - a step of k-means with least values and their rows, and sums of products, in each layout. All
// sums are those of integers or of numbers with few digits, so that values are compared bit for bit.
#include "check_reductions.hpp"

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "reference/reference.hpp"
#include "support/program.hpp"

namespace plugin_check {
namespace {

using conformance::Program;
using conformance::Reduced;

// Cells by the nearest of k centroids, or, of many cells, by the row's number: sums and least values of d features, the
// row number of the least first feature; one cell with the rows whose second feature lies above the first; and one with
// the products of all pairs of a row's values.
Program make_program(std::int32_t k, std::int32_t d, bool exact, const std::vector<double> &rows)
{
    Program program;
    program.exact = exact;
    program.parameters.assign(rows.begin(), rows.begin() + k * (d + 1));
    for (std::int32_t c = 0; c < k; ++c) // the last value of a row is its number
        for (std::int32_t i = 0; i < d; ++i)
            program.parameters[static_cast<std::size_t>(c * d + i)] = rows[static_cast<std::size_t>(c * (d + 1) + i)];
    const std::int32_t cell =
        k <= 40 ? program.nearest(k, d, 0) : program.add(PGKM_MODULO, {program.column(d), program.constant(k)});
    const std::int32_t i = program.loop(d);
    const std::int32_t value = program.column(0, program.index(i), d);
    program.item(value, PGKM_COMBINE_SUM, i);
    program.item(value, PGKM_COMBINE_MIN, i);
    program.item(program.column(0), PGKM_COMBINE_ARGMIN, -1, program.column(d));
    program.object(k, cell);
    program.item(value, PGKM_COMBINE_MAX, i);
    program.object(1, -1, program.add(PGKM_LESS, {program.column(0), program.column(1)}));
    const std::int32_t all = d + 1, e = program.loop(std::int64_t{all} * all), at = program.index(e),
                       width = program.constant(all);
    const std::int32_t a = program.column(0, program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {at, width})}), all);
    const std::int32_t b = program.column(0, program.add(PGKM_MODULO, {at, width}), all);
    program.item(program.add(PGKM_MULTIPLY, {a, b}), PGKM_COMBINE_SUM, e);
    program.object(1, -1);
    return program;
}

PgkmStatus reduce(const PgkmBackend *backend, const char *layout, std::uint64_t limit, const PgkmPoints &points,
                  const Program &program, Reduced &out)
{
    PgkmOpen options = {};
    options.struct_size = sizeof options;
    options.device = -1;
    options.threads = 1;
    options.device_memory_limit = limit;
    options.tuning.reduction_layout = layout;
    PgkmContext *context = nullptr;
    PgkmData *data = nullptr;
    PgkmError error = {};
    const PgkmReduction view = program.view();
    PgkmProblem all = {};
    all.n_rows = points.n;
    PgkmStatus status = backend->open(&options, &context, &error);
    if (status == PGKM_OK)
        status = backend->load(context, &points, &data, &error);
    if (status == PGKM_OK)
        status = backend->reduce(data, &all, 1, &view, &out.view, &error);
    backend->unload(data);
    backend->close(context);
    if (status != PGKM_OK)
        std::printf("reduction %s: %s\n", layout == nullptr ? "auto" : layout, error.text);
    return status;
}

} // namespace

int check_reductions(const PgkmBackend *backend, int *comparisons)
{
    PgkmError error = {};
    if (backend->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) != PGKM_OK)
        return std::printf("reductions are skipped: %s\n", error.text) < 0;
    int failures = 0;
    for (const std::int32_t k : {3, 40, 5000}) { // copies a thread, a block, or none
        constexpr std::int32_t d = 6;
        constexpr std::int64_t n = 6000;
        std::mt19937_64 random(7);
        std::vector<double> rows;
        for (std::int64_t r = 0; r < n; ++r) {
            for (std::int32_t i = 0; i < d; ++i)
                rows.push_back(static_cast<double>(random() % 1000) / 16.0);
            rows.push_back(static_cast<double>(r));
        }
        const PgkmPoints points = {rows.data(), PGKM_FLOAT64, n, d + 1, nullptr};
        const Program program = make_program(k, d, k != 40, rows);
        Reduced expected(program);
        reduce(pgkm::reference_backend(), nullptr, 0, points, program, expected);
        std::vector<const char *> layouts = {nullptr};
        for (const char *const *name = backend->strategies("reduction_layout"); *name != nullptr; ++name)
            layouts.push_back(*name);
        for (const char *const layout : layouts)
            for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{16} << 20}) {
                Reduced found(program);
                const PgkmStatus status = reduce(backend, layout, limit, points, program, found);
                const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
                // A copy for each of a block's 1,024 threads may not fit: so says the error.
                const bool copies = layout != nullptr && std::strncmp(layout, "thread", 6) == 0;
                if (copies && status == PGKM_LIMIT && limit != 0 && found.values.size() * 8 * 1024 > limit) {
                    ++*comparisons;
                    continue;
                }
                bool equal = status == PGKM_OK && found.counts == expected.counts;
                for (std::size_t i = 0; equal && i < found.values.size(); ++i)
                    equal = same(found.values[i], expected.values[i]);
                ++*comparisons;
                if (!equal && ++failures > 0)
                    std::printf("FAIL reduction k=%d layout=%s limit=%llu\n", k, layout == nullptr ? "auto" : layout,
                                static_cast<unsigned long long>(limit));
            }
    }
    return failures;
}

} // namespace plugin_check

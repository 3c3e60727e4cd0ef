// program.hpp - a user's reduction put together in a test, with the memory it stands in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "backend/reduction.h"

namespace conformance {

struct Program {
    std::vector<PgkmExpression> expressions;
    std::vector<std::int64_t> loops;
    std::vector<double> parameters;
    std::vector<PgkmItem> items;
    std::vector<PgkmObject> objects;
    bool exact = false;

    std::int32_t add(PgkmOperation operation, std::initializer_list<std::int32_t> arguments, std::int32_t loop = -1)
    {
        PgkmExpression made = {operation, {-1, -1, -1}, 0.0, loop, 0, {1, 1}, 0};
        std::int32_t i = 0;
        for (const std::int32_t argument : arguments)
            made.a[i++] = argument;
        expressions.push_back(made);
        return static_cast<std::int32_t>(expressions.size()) - 1;
    }
    std::int32_t constant(double number)
    {
        const std::int32_t e = add(PGKM_CONSTANT, {});
        expressions.back().number = number;
        return e;
    }
    std::int32_t loop(std::int64_t count)
    {
        loops.push_back(count);
        return static_cast<std::int32_t>(loops.size()) - 1;
    }
    std::int32_t index(std::int32_t loop) { return add(PGKM_INDEX, {}, loop); }
    std::int32_t column(std::int64_t first, std::int32_t subscript = -1, std::int32_t extent = 1)
    {
        const std::int32_t e = add(PGKM_COLUMN, {subscript});
        expressions.back().first = first;
        expressions.back().extent[0] = extent;
        return e;
    }
    std::int32_t parameter(std::int64_t first, std::int32_t i = -1, std::int32_t rows = 1, std::int32_t j = -1,
                           std::int32_t columns = 1)
    {
        const std::int32_t e = add(PGKM_PARAMETER, {i, j});
        expressions.back().first = first;
        expressions.back().extent[0] = rows;
        expressions.back().extent[1] = columns;
        return e;
    }
    // argmin(j, k, sum(i, d, power(f[i] - c[j][i], 2))), f from value 0, c from parameter `first`.
    std::int32_t nearest(std::int32_t k, std::int32_t d, std::int64_t first)
    {
        const std::int32_t j = loop(k), i = loop(d), at_i = index(i);
        const std::int32_t difference =
            add(PGKM_SUBTRACT, {column(0, at_i, d), parameter(first, index(j), k, at_i, d)});
        const std::int32_t square = add(PGKM_POWER, {difference, constant(2.0)});
        return add(PGKM_ARGMIN, {add(PGKM_SUM, {square}, i)}, j);
    }
    void item(std::int32_t value, PgkmCombine combine = PGKM_COMBINE_SUM, std::int32_t loop = -1, std::int32_t key = -1)
    {
        items.push_back({value, loop, combine, key});
    }
    // Of the items added since the last object.
    void object(std::int64_t cells, std::int32_t cell, std::int32_t filter = -1)
    {
        const std::int32_t first = objects.empty() ? 0 : objects.back().first_item + objects.back().n_items;
        objects.push_back({cells, cell, filter, first, static_cast<std::int32_t>(items.size()) - first});
    }

    PgkmReduction view() const
    {
        const auto size = [](const auto &list) { return static_cast<std::int32_t>(list.size()); };
        return {expressions.data(), size(expressions), loops.data(),
                size(loops),        parameters.data(), static_cast<std::int64_t>(parameters.size()),
                items.data(),       size(items),       objects.data(),
                size(objects),      exact ? 1 : 0};
    }
};

// What a reduction comes to.
struct Reduced {
    explicit Reduced(const Program &program)
    {
        std::size_t n_values = 0, n_counts = 0;
        for (const PgkmObject &object : program.objects) {
            std::int64_t width = 0;
            for (std::int32_t i = 0; i < object.n_items; ++i) {
                const std::int32_t loop = program.items[static_cast<std::size_t>(object.first_item + i)].loop;
                width += loop < 0 ? 1 : program.loops[static_cast<std::size_t>(loop)];
            }
            n_values += static_cast<std::size_t>(object.cells * width);
            n_counts += static_cast<std::size_t>(object.cells);
        }
        values.resize(n_values);
        counts.resize(n_counts);
        view.values = values.data();
        view.counts = counts.data();
    }
    Reduced(const Reduced &) = delete;
    Reduced &operator=(const Reduced &) = delete;

    std::vector<double> values;
    std::vector<std::int64_t> counts;
    PgkmReduced view = {};
};

} // namespace conformance

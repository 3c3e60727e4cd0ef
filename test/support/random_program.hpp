// random_program.hpp - random reductions that obey src/backend/reduction.h, for rows of small numbers. Some rows fail.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "backend/reduction_program.hpp"
#include "support/program.hpp"

namespace conformance {

class RandomProgram {
  public:
    RandomProgram(std::uint64_t seed, std::int32_t d) : random_(seed), d_(d) { make(); }

    Program program;

    // Whether item i is the sum of the magnitudes of item i - 1.
    std::vector<bool> is_scale;

  private:
    int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
    bool chance(int percent) { return below(100) < percent; }
    std::int32_t one_of(const std::vector<std::int32_t> &list)
    {
        return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
    }

    void make()
    {
        for (int i = 0; i < 40; ++i)
            program.parameters.push_back(small());
        program.exact = chance(40);
        const int objects = chance(75) ? 1 : 2;
        for (int o = 0; o < objects; ++o)
            object();
    }

    double small() { return chance(50) ? below(7) - 3 : std::normal_distribution<double>(0.0, 1.5)(random_); }

    void object()
    {
        const std::int64_t cells = chance(40) ? 1 : chance(90) ? 1 + below(9) : 5000;
        std::int32_t cell = -1, filter = -1;
        if (chance(25))
            filter = truth(2);
        if (cells > 1) {
            cell = expression(2);
            if (chance(97)) // else it may lie outside
                cell = bounded(cell, cells);
        }
        const int items = 1 + below(3);
        for (int i = 0; i < items; ++i)
            item();
        program.object(cells, cell, filter);
    }

    void item()
    {
        std::int32_t loop = -1;
        if (chance(40)) {
            matrix_width_ = chance(30) ? 2 + below(2) : 0;
            loop = program.loop(matrix_width_ > 0 ? matrix_width_ * (2 + below(2)) : 1 + below(6));
            matrix_ = matrix_width_ > 0 ? loop : -1;
            scope_.push_back(loop);
        }
        const auto combine = static_cast<PgkmCombine>(below(chance(50) ? 1 : 5));
        const std::int32_t value = expression(4);
        if (combine == PGKM_COMBINE_ARGMIN) {
            program.item(value, combine, loop, expression(2));
        } else if (combine == PGKM_COMBINE_COUNT) {
            program.item(-1, combine, loop);
        } else {
            program.item(value, combine, loop);
        }
        is_scale.push_back(false);
        if (combine == PGKM_COMBINE_SUM) {
            program.item(program.add(PGKM_ABS, {value}), combine, loop);
            is_scale.push_back(true);
        }
        scope_.clear();
    }

    // A whole number in 0 .. count - 1.
    std::int32_t bounded(std::int32_t value, std::int64_t count)
    {
        const std::int32_t whole = program.add(PGKM_FLOOR, {program.add(PGKM_ABS, {value})});
        return program.add(PGKM_LEAST, {program.constant(static_cast<double>(count - 1)), whole});
    }

    std::int32_t truth(int depth)
    {
        static constexpr PgkmOperation compare[] = {PGKM_EQUAL, PGKM_NOT_EQUAL, PGKM_LESS, PGKM_LESS_EQUAL};
        if (depth > 0 && chance(25))
            return program.add(chance(50) ? PGKM_AND : PGKM_OR, {truth(depth - 1), truth(depth - 1)});
        if (depth > 0 && chance(10))
            return program.add(PGKM_NOT, {truth(depth - 1)});
        const std::int32_t a = expression(depth - 1), b = expression(depth - 1);
        return program.add(compare[below(4)], {a, b});
    }

    std::int32_t expression(int depth)
    {
        const std::int32_t known = chance(15) ? reuse() : -1;
        const std::int32_t e = known >= 0 ? known : fresh(depth);
        pool_.push_back(e);
        return e;
    }

    // An earlier expression that may stand here.
    std::int32_t reuse()
    {
        if (pool_.empty())
            return -1;
        const std::int32_t e = one_of(pool_);
        const auto facts = pgkm::facts_of(program.view());
        for (const std::int32_t loop : facts[static_cast<std::size_t>(e)].loops)
            if (std::find(scope_.begin(), scope_.end(), loop) == scope_.end())
                return -1;
        return holds_scope(e) ? -1 : e;
    }
    bool holds_scope(std::int32_t e) const
    {
        const PgkmExpression &own = program.expressions[static_cast<std::size_t>(e)];
        if (pgkm::goes_over_loop(own.operation) && std::find(scope_.begin(), scope_.end(), own.loop) != scope_.end())
            return true;
        for (int i = 0; i < pgkm::arguments_of(own.operation); ++i)
            if (own.a[i] >= 0 && holds_scope(own.a[i]))
                return true;
        return false;
    }

    // The index of a matrix's elements is mostly taken apart.
    std::int32_t index_of(std::int32_t loop)
    {
        const std::int32_t index = program.index(loop);
        if (loop != matrix_ || chance(10))
            return index;
        const std::int32_t width = program.constant(matrix_width_);
        return chance(50) ? program.add(PGKM_MODULO, {index, width})
                          : program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {index, width})});
    }

    std::int32_t leaf()
    {
        const int kind = below(10);
        if (kind < 2)
            return program.constant(chance(30) ? 2.0 : small());
        if (kind < 5 && !scope_.empty())
            return index_of(one_of(scope_));
        if (kind < 6)
            return program.parameter(below(40));
        return program.column(below(d_));
    }

    std::int32_t subscript(int depth, std::int32_t extent)
    {
        if (!scope_.empty() && chance(70)) {
            const std::int32_t loop = one_of(scope_), index = index_of(loop);
            return program.loops[static_cast<std::size_t>(loop)] <= extent || chance(3) ? index
                                                                                        : bounded(index, extent);
        }
        const std::int32_t value = expression(depth - 1);
        return chance(98) ? bounded(value, extent) : value;
    }

    std::int32_t element(int depth)
    {
        if (chance(50))
            return program.column(0, subscript(depth, d_), d_);
        const std::int32_t rows = 5, columns = 6, i = subscript(depth, rows);
        return program.parameter(below(3), i, rows, chance(80) ? subscript(depth, columns) : program.constant(1.0),
                                 columns);
    }

    std::int32_t over_loop(int depth)
    {
        static constexpr PgkmOperation operations[] = {PGKM_SUM, PGKM_SUM, PGKM_SUM,    PGKM_SUM,    PGKM_PROD,
                                                       PGKM_MIN, PGKM_MAX, PGKM_ARGMIN, PGKM_ARGMAX, PGKM_COUNT};
        const PgkmOperation operation = operations[below(10)];
        std::int32_t loop = -1;
        if (!program.loops.empty() && chance(30)) {
            loop = below(static_cast<int>(program.loops.size()));
            if (std::find(scope_.begin(), scope_.end(), loop) != scope_.end() ||
                program.loops[static_cast<std::size_t>(loop)] == 0)
                loop = -1;
        }
        if (loop < 0) {
            const bool empty =
                chance(4) && (operation == PGKM_SUM || operation == PGKM_COUNT || operation == PGKM_PROD);
            loop = program.loop(empty ? 0 : 1 + below(scope_.empty() ? 9 : 6));
        }
        scope_.push_back(loop);
        std::int32_t body;
        if (operation == PGKM_COUNT) {
            body = truth(depth - 1);
        } else if (operation == PGKM_SUM && chance(60)) {
            const bool square = chance(60);
            const std::int32_t a = chance(70) ? element(depth - 1) : expression(depth - 1);
            const std::int32_t b = chance(70) ? element(depth - 1) : expression(depth - 1);
            body = square ? program.add(PGKM_POWER, {program.add(PGKM_SUBTRACT, {a, b}), program.constant(2.0)})
                          : program.add(PGKM_MULTIPLY, {a, b});
        } else {
            body = expression(depth - 1);
        }
        // What was made of this loop's index stays behind.
        scope_.pop_back();
        const std::int32_t e = program.add(operation, {body}, loop);
        return holds_twice(e) ? leaf() : e;
    }
    // Whether a loop stands in its own body, by way of what was taken again.
    bool holds_twice(std::int32_t e)
    {
        scope_.push_back(program.expressions[static_cast<std::size_t>(e)].loop);
        const bool held = holds_scope(program.expressions[static_cast<std::size_t>(e)].a[0]);
        scope_.pop_back();
        return held;
    }

    std::int32_t fresh(int depth)
    {
        if (depth <= 0)
            return leaf();
        const int kind = below(100);
        if (kind < 22 && scope_.size() < 3)
            return over_loop(depth);
        if (kind < 34)
            return element(depth);
        if (kind < 44) {
            const std::int32_t condition = truth(depth - 1), a = expression(depth - 1);
            return program.add(PGKM_CASE, {condition, a, expression(depth - 1)});
        }
        if (kind < 52) // a division that cannot fail
            return guarded_division(depth);
        if (kind < 62)
            return rare(depth);
        if (kind < 72) {
            static constexpr PgkmOperation operations[] = {PGKM_NEGATE, PGKM_ABS,   PGKM_FLOOR, PGKM_CEIL,
                                                           PGKM_ROUND,  PGKM_TRUNC, PGKM_SIGN,  PGKM_NOT};
            return program.add(operations[below(8)], {expression(depth - 1)});
        }
        if (kind < 76)
            return truth(depth - 1);
        static constexpr PgkmOperation operations[] = {PGKM_ADD,   PGKM_SUBTRACT, PGKM_MULTIPLY, PGKM_ADD,
                                                       PGKM_LEAST, PGKM_GREATEST, PGKM_MULTIPLY};
        const std::int32_t a = expression(depth - 1), b = expression(depth - 1);
        return program.add(operations[below(7)], {a, b});
    }

    std::int32_t guarded_division(int depth)
    {
        const std::int32_t a = expression(depth - 1), b = expression(depth - 1), zero = program.constant(0.0);
        const std::int32_t good = program.add(PGKM_NOT_EQUAL, {b, zero});
        const std::int32_t ratio = program.add(chance(60) ? PGKM_DIVIDE : PGKM_MODULO, {a, b});
        const std::int32_t value = chance(50) ? ratio : program.add(PGKM_TANH, {ratio});
        return program.add(PGKM_CASE, {good, value, a});
    }

    // What fails for some numbers; mostly kept from it.
    std::int32_t rare(int depth)
    {
        static constexpr PgkmOperation operations[] = {PGKM_SQRT, PGKM_LN,   PGKM_EXP,  PGKM_SIN,  PGKM_COS,
                                                       PGKM_TAN,  PGKM_ASIN, PGKM_ACOS, PGKM_ATAN, PGKM_TANH};
        const std::int32_t value = expression(depth - 1);
        if (chance(20))
            return program.add(chance(50) ? PGKM_ATAN2 : PGKM_POWER, {value, expression(depth - 1)});
        const std::int32_t one = program.constant(1.0), absolute = program.add(PGKM_ABS, {value});
        const std::int32_t positive = program.add(PGKM_ADD, {absolute, one});
        const std::int32_t small = program.add(PGKM_DIVIDE, {value, positive});
        const int operation = below(10);
        const bool is_root = operations[operation] == PGKM_SQRT || operations[operation] == PGKM_LN;
        return program.add(operations[operation], {chance(5) ? value : is_root ? positive : small});
    }

    std::mt19937_64 random_;
    std::int32_t d_;
    std::vector<std::int32_t> scope_;             // loops that are open
    std::int32_t matrix_ = -1, matrix_width_ = 0; // a loop over the elements of a matrix
    std::vector<std::int32_t> pool_;
};

} // namespace conformance

// The language of users' reductions: which words there are, what each term is, and the program it becomes.
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "backend/reduction_program.hpp"
#include "fit_run.hpp"
#include "reduction/lower.h"
#include "support/tree.hpp"

namespace {

using conformance::Tree;
using Term = Tree::Term;

const std::vector<double> v_values = {2, 4}, m_values = {1, 2, 3, 4, 5, 6}, k_value = {3};

// Rows (x, b, f[3]): b is a boolean column. Parameters: the number k = 3, the vector v, the matrix m of 2 x 3.
class Lower : public testing::Test {
  protected:
    Term n(double number) { return tree.number(number); }
    Term x() { return tree.name("x"); }
    Term b() { return tree.name("b"); }
    Term f() { return tree.name("f"); }
    Term v() { return tree.name("v"); }
    Term m() { return tree.name("m"); }
    Term i() { return tree.name("i"); }
    Term j() { return tree.name("j"); }
    Term op(const char *symbol, std::vector<Term> arguments) { return tree.symbol(symbol, std::move(arguments)); }
    Term fn(const char *name, std::vector<Term> arguments) { return tree.function(name, std::move(arguments)); }
    Term at(Term base, std::initializer_list<Term> subscripts) { return tree.at(base, subscripts); }

    // One object of these values; `combine` for all.
    bool lower(std::vector<Term> values, PgkmValueShape *shape = nullptr)
    {
        std::vector<PgkmCombine> combines(values.size(), combine);
        const PgkmObjectTree object = {
            index, cells, filter, key, values.data(), combines.data(), static_cast<std::int32_t>(values.size())};
        const PgkmNames names = {columns.data(),    static_cast<std::int32_t>(columns.size()),
                                 parameters.data(), static_cast<std::int32_t>(parameters.size()),
                                 lets.data(),       static_cast<std::int32_t>(lets.size())};
        program.reset(pgkm_program_lower(&object, 1, &names, give_up, shape, &error));
        if (program != nullptr)
            pgkm::check_program(view(), 5);
        return program != nullptr;
    }
    PgkmReduction view() const { return pgkm_program_reduction(program.get(), 0); }

    // What the values of the row are, one behind the other.
    std::vector<double> values_of(Term value)
    {
        std::vector<double> all;
        if (!lower({value})) {
            ADD_FAILURE() << error.sqlstate << " " << error.text << " at " << error.place;
            return all;
        }
        PgkmRequest request = request_for(row, 5, 0);
        request.algorithm = PGKM_REDUCTION;
        request.want_labels = request.want_distances = 0;
        request.reduction = view();
        const FitRun run(request);
        if (run.result.reduced == nullptr)
            ADD_FAILURE() << run.error.text;
        else
            all.assign(run.result.reduced->values,
                       run.result.reduced->values + pgkm_object_width(&request.reduction, 0));
        return all;
    }
    // The SQLSTATE and the sentence; "good" where nothing is wrong.
    std::string fault_of(Term value)
    {
        return lower({value}) ? "good" : std::string(error.sqlstate) + ": " + error.text;
    }
    // What is refused before names are known.
    std::string word_fault(Term term)
    {
        return pgkm_term_binds(term, &error) >= 0 ? "good" : std::string(error.sqlstate) + ": " + error.text;
    }

    struct Free {
        void operator()(PgkmProgram *own) const { pgkm_program_free(own); }
    };
    Tree tree;
    Term index = nullptr, cells = nullptr, filter = nullptr, key = nullptr;
    PgkmCombine combine = PGKM_COMBINE_SUM;
    std::vector<PgkmLet> lets;
    std::vector<PgkmNamed> columns = {
        {"x", 0, {1, 1}, 0, 0, nullptr}, {"b", 0, {1, 1}, 1, 1, nullptr}, {"f", 1, {3, 1}, 2, 0, nullptr}};
    std::vector<PgkmNamed> parameters = {{"k", 0, {1, 1}, 0, 0, k_value.data()},
                                         {"v", 1, {2, 1}, 0, 0, v_values.data()},
                                         {"m", 2, {2, 3}, 0, 0, m_values.data()}};
    std::vector<double> row = {1.5, 1, 10, 20, 30};
    PgkmGiveUp give_up = nullptr;
    PgkmTextError error = {};
    std::unique_ptr<PgkmProgram, Free> program;
};

using Values = std::vector<double>;

TEST_F(Lower, WordsMeanWhatTheySay)
{
    EXPECT_EQ(values_of(op("+", {x(), op("*", {n(2), tree.name("k")})})), Values{7.5});
    EXPECT_EQ(values_of(op("+", {op("-", {x()})})), Values{-1.5});
    EXPECT_EQ(values_of(op("greatest", {x(), n(1), n(7), n(2)})), Values{7});
    EXPECT_EQ(values_of(op("least", {x()})), Values{1.5});
    EXPECT_EQ(values_of(op("case", {op(">", {x(), n(1)}), n(1), op("/", {n(1), n(0)})})), Values{1});
    EXPECT_EQ(
        values_of(op("case", {op("or", {op(">=", {n(1), x()}), op("not", {tree.truth(true)}), b()}), n(5), n(6)})),
        Values{5});
    EXPECT_EQ(values_of(fn("power", {x(), n(2)})), Values{2.25});
    EXPECT_EQ(values_of(fn("pi", {})), Values{M_PI});
    EXPECT_EQ(values_of(fn("array_length", {m(), n(2)})), Values{3});
    EXPECT_EQ(values_of(fn("cardinality", {m()})), Values{6});
    EXPECT_EQ(values_of(at(m(), {n(1), n(2)})), Values{6});
    EXPECT_EQ(values_of(at(f(), {op("-", {n(2), n(1)})})), Values{20});
}

TEST_F(Lower, LoopsGoOverIndexesAndVectors)
{
    EXPECT_EQ(values_of(fn("sum", {i(), n(3), op("*", {at(f(), {i()}), i()})})), Values{80});
    EXPECT_EQ(values_of(fn("sum", {i(), n(0), at(f(), {i()})})), Values{0});
    EXPECT_EQ(values_of(fn("argmax", {f()})), Values{2});
    EXPECT_EQ(values_of(fn("min", {op("-", {f(), at(m(), {n(1)})})})), Values{6});
    EXPECT_EQ(values_of(fn("count", {op(">", {f(), n(15)})})), Values{2});
    // An inner index of the same name hides the outer one.
    EXPECT_EQ(values_of(fn("sum", {i(), n(2), fn("sum", {i(), n(3), i()})})), Values{6});
}

TEST_F(Lower, ABooleanColumnIsAConditionAndANumber)
{
    lets = {{"c", b()}};
    EXPECT_EQ(values_of(fn("count", {i(), n(2), b()})), Values{2});
    EXPECT_EQ(values_of(fn("count", {i(), n(2), tree.name("c")})), Values{2});
    EXPECT_EQ(values_of(fn("sum", {i(), n(2), b()})), Values{2});
    EXPECT_EQ(values_of(op("case", {op("case", {b(), b(), op(">", {x(), n(1)})}), n(1), n(0)})), Values{1});
    EXPECT_EQ(values_of(op("case", {b(), b(), n(3)})), Values{1});
    EXPECT_EQ(fault_of(fn("count", {i(), n(2), op("+", {b(), n(1)})})), "42804: count is over a condition");
    filter = tree.name("c");
    EXPECT_EQ(fault_of(x()), "good");
}

TEST_F(Lower, VectorsAndMatricesAreValuesInRowMajorOrder)
{
    EXPECT_EQ(values_of(f()), (Values{10, 20, 30}));
    EXPECT_EQ(values_of(op("-", {m()})), (Values{-1, -2, -3, -4, -5, -6}));
    const auto entry = [&] { return op("+", {op("*", {n(10), i()}), j()}); };
    EXPECT_EQ(values_of(fn("vector", {i(), n(2), fn("vector", {j(), n(2), entry()})})), (Values{0, 1, 10, 11}));
    // Lines of different lengths, and what is inside of lines, where the value itself is a vector.
    EXPECT_EQ(values_of(fn("vector", {i(), n(3), fn("vector", {j(), op("+", {i(), n(1)}), entry()})})),
              (Values{0, 10, 11, 20, 21, 22}));
    EXPECT_EQ(values_of(fn("vector", {i(), n(2), fn("sum", {j(), op("+", {i(), n(1)}), n(1)})})), (Values{1, 2}));
    EXPECT_EQ(values_of(fn("vector", {i(), n(2), op("*", {n(2), fn("vector", {j(), op("+", {i(), n(1)}), n(1)})})})),
              (Values{2, 2, 2}));
    Term l = tree.name("l");
    EXPECT_EQ(
        values_of(fn("vector", {i(), n(2), fn("vector", {j(), n(2), fn("vector", {l, n(2), op("+", {l, entry()})})})})),
        (Values{0, 1, 1, 2, 10, 11, 11, 12}));
    const char *const uneven = "22023: a count must be made of numbers and parameters alone";
    const auto triangle = [&] { return fn("vector", {i(), n(2), fn("vector", {j(), op("+", {i(), n(1)}), n(1)})}); };
    EXPECT_EQ(fault_of(op("*", {n(2), triangle()})), uneven);
    EXPECT_EQ(fault_of(fn("sum", {fn("sum", {triangle()})})), uneven);
    lets = {{"t", triangle()}};
    EXPECT_EQ(fault_of(tree.name("t")), uneven);
}

TEST_F(Lower, AFormulaTellsItsShape)
{
    PgkmValueShape shape;
    ASSERT_TRUE(lower({m()}, &shape));
    EXPECT_EQ(shape.dimensions, 2);
    EXPECT_EQ(shape.extent[0], 2);
    EXPECT_EQ(shape.extent[1], 3);
    EXPECT_EQ(shape.truth, 0);
    ASSERT_TRUE(lower({op("=", {x(), n(1)})}, &shape));
    EXPECT_EQ(shape.dimensions, 0);
    EXPECT_EQ(shape.truth, 1);
    EXPECT_FALSE(lower({fn("vector", {i(), n(2), fn("vector", {j(), op("+", {i(), n(1)}), n(1)})})}, &shape));
    EXPECT_FALSE(lower({fn("vector", {i(), n(2), m()})}, &shape));
    EXPECT_STREQ(error.text, "this is a vector of matrices: it needs subscripts here");
}

TEST_F(Lower, WhatIsNoWordIsRefused)
{
    EXPECT_EQ(word_fault(fn("random", {})), "0A000: random with 0 arguments is no function of reductions");
    EXPECT_EQ(word_fault(fn("abs", {x(), n(1)})), "0A000: abs with 2 arguments is no function of reductions");
    EXPECT_EQ(word_fault(fn("foo", {x()})), "0A000: foo with 1 argument is no function of reductions");
    EXPECT_EQ(word_fault(fn("count", {})), "0A000: count with 0 arguments is no function of reductions");
    EXPECT_EQ(word_fault(fn("+", {x(), x()})), "0A000: + with 2 arguments is no function of reductions");
    EXPECT_EQ(word_fault(op("||", {x(), x()})), "0A000: operator || is no operator of reductions");
    EXPECT_EQ(word_fault(op("*", {x()})), "0A000: operator * needs two arguments");
    EXPECT_EQ(word_fault(fn("sum", {n(1), n(2), n(3)})),
              "0A000: sum of a reduction is sum(index, count, expression) or sum(vector)");
    EXPECT_EQ(word_fault(fn("vector", {f()})), "0A000: vector of a reduction is vector(index, count, expression)");
    EXPECT_EQ(word_fault(fn("array_length", {f(), n(3)})),
              "0A000: lengths in a reduction are cardinality(name), array_length(name, 1) and array_length(name, 2)");
    // Deep inside, too, and at its place.
    const Term bad = fn("now", {});
    EXPECT_EQ(fault_of(op("+", {x(), fn("sum", {i(), n(2), bad})})).substr(0, 5), "0A000");
    EXPECT_EQ(error.place, bad->place);
}

TEST_F(Lower, NamesThatMeanNothingOrThemselves)
{
    EXPECT_EQ(fault_of(op("+", {x(), i()})), "42703: \"i\" is no column, parameter or index");
    EXPECT_EQ(fault_of(tree.old("x")), "42703: there is no old parameter \"x\" here");
    parameters.push_back({"old.x", 0, {1, 1}, 0, 0, k_value.data()});
    EXPECT_EQ(values_of(tree.old("x")), Values{3});
    lets = {{"a", op("+", {n(1), tree.name("c")})}, {"c", op("*", {tree.name("a"), x()})}};
    EXPECT_EQ(fault_of(tree.name("a")), "42P19: \"a\" means itself");
    // An expression with a name does not see the indexes of the place where the name stands.
    lets = {{"a", i()}};
    EXPECT_EQ(fault_of(fn("sum", {i(), n(2), tree.name("a")})), "42703: \"i\" is no column, parameter or index");
}

TEST_F(Lower, TypesHaveToFit)
{
    const char *const number = "42804: a number is expected here, not a condition";
    const char *const condition = "42804: a condition is expected here, not a number";
    const auto greater = [&] { return op(">", {x(), n(1)}); };
    EXPECT_EQ(fault_of(greater()), number);
    EXPECT_EQ(fault_of(op("+", {n(1), greater()})), number);
    EXPECT_EQ(fault_of(op(">", {op("+", {f(), n(1)}), n(2)})), number);
    EXPECT_EQ(fault_of(op("and", {x(), greater()})), condition);
    EXPECT_EQ(fault_of(op("not", {x()})), condition);
    EXPECT_EQ(fault_of(op("case", {x(), n(1), n(2)})), condition);
    EXPECT_EQ(fault_of(op("case", {greater(), greater(), n(2)})),
              "42804: CASE has both numbers and conditions as results");
    EXPECT_EQ(fault_of(fn("sum", {i(), n(3), greater()})), "42804: a loop is over numbers, not over conditions");
    EXPECT_EQ(fault_of(fn("count", {i(), n(3), x()})), "42804: count is over a condition");
    EXPECT_EQ(fault_of(fn("sum", {x()})), "42804: a vector is expected here, not a number");
    EXPECT_EQ(fault_of(fn("sum", {m()})), "42804: a vector is expected here, not a matrix");
    EXPECT_EQ(fault_of(op("+", {f(), v()})), "42804: vectors or matrices of different sizes meet");
    EXPECT_EQ(fault_of(op("+", {f(), m()})), "42804: vectors or matrices of different sizes meet");
    EXPECT_EQ(fault_of(at(f(), {n(0), n(1)})), "42804: \"f\" is a vector and has too many subscripts");
    EXPECT_EQ(fault_of(at(x(), {n(0)})), "42804: \"x\" is a number and has too many subscripts");
    EXPECT_EQ(fault_of(fn("cardinality", {x()})), "42804: a number has no such length");
    EXPECT_EQ(fault_of(fn("array_length", {f(), n(2)})), "42804: a vector has no such length");
    EXPECT_EQ(fault_of(at(f(), {f()})), "42804: \"f\" is a vector: it needs a subscript here");
    EXPECT_EQ(fault_of(at(op("+", {f(), f()}), {n(0)})), "0A000: only a name can have subscripts");
    const char *const three = "42804: what has more than two dimensions has no subscripts and no lengths";
    lets = {{"t", fn("vector", {i(), n(2), m()})}};
    EXPECT_EQ(fault_of(at(tree.name("t"), {n(0), n(0), n(0)})), three);
    EXPECT_EQ(fault_of(fn("cardinality", {tree.name("t")})), three);
    EXPECT_EQ(fault_of(tree.name("t")), "42804: \"t\" is a vector of matrices: it needs subscripts here");
    // The texts of an object that are one number, or one condition.
    filter = x();
    EXPECT_EQ(fault_of(x()), condition);
    filter = nullptr;
    cells = n(2);
    index = at(m(), {n(0)});
    EXPECT_EQ(fault_of(x()), "42804: \"m\" is a matrix: it needs subscripts here");
    index = op("+", {x(), f()});
    EXPECT_EQ(fault_of(x()), "42804: \"f\" is a vector: it needs a subscript here");
    EXPECT_EQ(error.place, index->arguments[1]->place);
    index = n(0);
    combine = PGKM_COMBINE_ARGMIN;
    key = greater();
    EXPECT_EQ(fault_of(x()), number);
}

TEST_F(Lower, CountsAreMadeOfNumbersAndParameters)
{
    const char *const alone = "22023: a count must be made of numbers and parameters alone";
    EXPECT_EQ(values_of(fn("sum", {i(), op("-", {at(m(), {n(1), n(0)}), n(1)}), n(1)})), Values{3});
    EXPECT_EQ(
        values_of(fn("sum", {i(), op("case", {op("=", {tree.name("k"), n(3)}), n(2), op("/", {n(1), n(0)})}), n(1)})),
        Values{2});
    EXPECT_EQ(fault_of(fn("sum", {i(), x(), n(1)})), alone);
    EXPECT_EQ(fault_of(fn("sum", {i(), n(3), fn("sum", {j(), i(), n(1)})})), alone);
    EXPECT_EQ(fault_of(fn("sum", {i(), op(">", {n(2), n(1)}), n(1)})), alone);
    EXPECT_EQ(fault_of(fn("sum", {i(), op("/", {n(1), n(0)}), n(1)})), alone);
    EXPECT_EQ(fault_of(fn("sum", {i(), at(v(), {n(2)}), n(1)})), alone);
    EXPECT_EQ(fault_of(fn("sum", {i(), n(2.5), n(1)})),
              "22023: a count must be a whole number from 0 to 2147483647, not 2.5");
    EXPECT_EQ(fault_of(fn("min", {i(), n(0), n(1)})),
              "22023: a count must be a whole number from 1 to 2147483647, not 0");
    index = n(0);
    cells = x();
    EXPECT_EQ(fault_of(x()), alone);
    cells = n(0);
    EXPECT_EQ(fault_of(x()), "22023: a count must be a whole number from 1 to 1099511627776, not 0");
}

TEST_F(Lower, SubscriptsOfAnExpressionAreKnownToBeInside)
{
    lets = {{"d", op("-", {f(), n(1)})},
            {"e", fn("vector", {i(), n(2), fn("vector", {j(), n(3), op("-", {i(), j()})})})}};
    const auto d = [&](Term subscript) { return at(tree.name("d"), {subscript}); };
    EXPECT_EQ(values_of(d(op("-", {n(2), n(1)}))), Values{19});
    EXPECT_EQ(values_of(fn("sum", {i(), n(2), d(i())})), Values{28});
    EXPECT_EQ(values_of(fn("vector", {i(), n(3), fn("vector", {j(), n(2), op("-", {d(i()), d(j())})})})),
              (Values{0, -10, 10, 0, 20, 10}));
    EXPECT_EQ(values_of(at(tree.name("e"), {n(1)})), (Values{1, 0, -1}));
    EXPECT_EQ(fault_of(d(n(3))), "22003: subscript 3 is out of range");
    EXPECT_EQ(fault_of(d(n(0.5))), "22003: subscript 0.5 is out of range");
    const char *const loop = "0A000: a subscript of \"d\" must be a number, or the index of a loop no longer than it";
    EXPECT_EQ(fault_of(d(x())), loop);
    EXPECT_EQ(fault_of(fn("sum", {i(), n(4), d(i())})), loop);
    EXPECT_EQ(fault_of(fn("vector", {i(), n(4), fn("vector", {j(), n(2), d(i())})})), loop);
    EXPECT_EQ(fault_of(fn("vector", {i(), n(2), fn("vector", {j(), n(4), d(j())})})), loop);
}

TEST_F(Lower, EqualExpressionsAreOneAndConstantsAreFolded)
{
    const auto size = [&](Term value) {
        EXPECT_TRUE(lower({value}));
        return view().n_expressions;
    };
    EXPECT_EQ(size(op("+", {op("*", {x(), x()}), op("*", {x(), x()})})), 3);
    EXPECT_EQ(size(op("+", {n(1), op("*", {n(2), n(3)})})), 5); // 1, 2, 3, 6, 7
    EXPECT_EQ(size(op("+", {fn("sum", {i(), n(3), at(f(), {i()})}), fn("sum", {j(), n(3), at(f(), {j()})})})), 4);
    // What fails stays, for the branch that no row takes.
    ASSERT_TRUE(lower({op("/", {n(1), n(0)})}));
    EXPECT_EQ(view().expressions[view().n_expressions - 1].operation, PGKM_DIVIDE);
    // Counts leave nothing behind, and parameters that are not used are not copied.
    ASSERT_TRUE(lower({fn("sum", {i(), tree.name("k"), at(v(), {n(1)})})}));
    EXPECT_EQ(view().n_parameters, 2);
}

TEST_F(Lower, TextsThatAreTooLarge)
{
    const auto nested = [&](int depth) {
        Term term = x();
        while (--depth > 0)
            term = fn("abs", {term});
        return term;
    };
    const char *const deep = "54000: the expressions of the reduction are nested too deeply";
    EXPECT_EQ(fault_of(nested(PGKM_MOST_NESTED)), "good");
    EXPECT_EQ(fault_of(nested(PGKM_MOST_NESTED + 1)), deep);
    // Depth adds up over names, whichever of them is met first.
    lets = {{"a", nested(1500)}, {"c", fn("abs", {tree.name("a")})}};
    Term on_top = tree.name("c");
    for (int depth = 0; depth < 600; ++depth)
        on_top = fn("abs", {on_top});
    EXPECT_EQ(fault_of(op("+", {tree.name("a"), on_top})), deep);
    // Each of these names means two of the one before.
    lets = {{"a0", x()}};
    std::deque<std::string> names;
    for (int level = 1; level <= 20; ++level) {
        const Term before = tree.name(lets.back().name);
        names.push_back("a" + std::to_string(level));
        lets.push_back({names.back().c_str(), op("+", {before, before})});
    }
    EXPECT_EQ(fault_of(tree.name("a12")), "good");
    EXPECT_EQ(fault_of(tree.name("a20")), "54000: reduction is too large");
    // In a text without a value as well: of rows that are counted the filter.
    filter = op("=", {tree.name("a20"), n(1)});
    EXPECT_EQ(fault_of(n(1)), "54000: reduction is too large");
    filter = nullptr;

    const char *const steps = "54000: loops of a reduction have too many steps";
    EXPECT_EQ(fault_of(fn("sum", {i(), n(1 << 20), fn("sum", {j(), n(1 << 20), x()})})), "good");
    EXPECT_EQ(fault_of(fn("sum", {i(), n(1 << 20), fn("sum", {j(), n((1 << 20) + 1), x()})})), steps);
    PgkmValueShape shape;
    EXPECT_FALSE(lower({fn("vector", {i(), n(65536), fn("vector", {j(), n(32768), n(1)})})}, &shape));
    EXPECT_STREQ(error.text, "a matrix is too large");
    // A loop for each length.
    EXPECT_EQ(fault_of(fn("vector", {i(), n(1e6), fn("vector", {j(), op("+", {i(), n(1)}), x()})})), steps);
    EXPECT_EQ(fault_of(fn("vector", {i(), n(1e6), fn("sum", {j(), op("least", {i(), n(1)}), x()})})),
              "54000: reduction is too large: it has more than 65536 different expressions");
}

TEST_F(Lower, GivesUpWhenAsked)
{
    give_up = [] { return 1; };
    EXPECT_EQ(fault_of(fn("vector", {i(), n(1000), fn("vector", {j(), op("+", {i(), n(1)}), x()})})).substr(0, 5),
              "57014");
}

TEST_F(Lower, FaultsOfARowSayWhatAndWhere)
{
    const Term root = fn("sqrt", {x()}), division = op("/", {x(), n(0)});
    ASSERT_TRUE(lower({root, division}));
    const PgkmReduction reduction = view();
    const auto fault = [&](PgkmFault fault, PgkmOperation operation, double number) {
        PgkmReduced reduced = {};
        reduced.fault = fault;
        reduced.number = number;
        reduced.expression = -1;
        for (std::int32_t e = 0; e < reduction.n_expressions; ++e)
            if (reduction.expressions[e].operation == operation)
                reduced.expression = e;
        pgkm_reduction_fault(&reduction, &reduced, &error);
        return std::string(error.sqlstate) + ": " + error.text;
    };
    EXPECT_EQ(fault(PGKM_FAULT_DIVISION, PGKM_DIVIDE, 1), "22012: division by zero");
    EXPECT_EQ(error.place, division->place);
    EXPECT_EQ(fault(PGKM_FAULT_NUMBER, PGKM_SQRT, NAN), "22003: square root of a negative number");
    EXPECT_EQ(error.place, root->place);
    EXPECT_EQ(fault(PGKM_FAULT_NUMBER, PGKM_COLUMN, NAN), "22003: value is not a number");
    EXPECT_EQ(fault(PGKM_FAULT_NUMBER, PGKM_COLUMN, INFINITY), "22003: value is out of range");
    EXPECT_EQ(fault(PGKM_FAULT_SUBSCRIPT, PGKM_COLUMN, 0.1), "22003: subscript 0.10000000000000001 is out of range");
    EXPECT_EQ(fault(PGKM_FAULT_CELL, PGKM_COLUMN, -1), "22003: cell -1 is out of range");
    EXPECT_EQ(fault(PGKM_FAULT_TOTAL, PGKM_OPERATIONS, INFINITY), "22003: a total is out of range");
    EXPECT_EQ(error.place, -1);
}

} // namespace

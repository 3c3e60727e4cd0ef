/*
 * lower.cpp - makes expressions of terms, and checks their types.
 */
#include "pg/reduce/lowering.h"

#include <cmath>

/* The body of `vector(index, count, body)` or of a loop, with that index. */
static Value lower_body(Lowering *lowering, const ReduceTerm *term, int32 index, const At *at)
{
    Scope scope = {term->name, index, lowering->scope};

    lowering->scope = &scope;
    const Value value = lower(lowering, term->arguments[1], at);
    lowering->scope = scope.outer;
    return value;
}

static Value lower_name(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const Found found = find_name(lowering, term);

    if (found.scope != NULL)
        return {found.scope->index, false};
    if (found.let != NULL) {
        const int dimensions = shape_of(lowering, term).dimensions;

        if (dimensions > 0 && dimensions != at->n)
            lowering_raise_shape(lowering, term, dimensions);
        return within_let(lowering, found.let, term, [lowering, at, dimensions](const ReduceTerm *meant) {
            return lower(lowering, meant, dimensions > 0 ? at : &nowhere);
        });
    }
    if (found.name->dimensions == 0)
        return {reduce_emit_value(lowering->program, found.operation, term->place, found.name, -1, -1), false};
    if (found.name->dimensions != at->n)
        lowering_raise_shape(lowering, term, found.name->dimensions);
    return {reduce_emit_value(lowering->program, found.operation, term->place, found.name, at->index[0], at->index[1]),
            false};
}

int32 lower_number(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const Value value = lower(lowering, term, at);

    if (value.truth)
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place, "a number is expected here, not a condition");
    return value.expression;
}

static bool is_boolean_column(const Lowering *lowering, const ReduceTerm *term)
{
    const ReduceName *const name = term->kind == TERM_NAME ? find_name(lowering, term).name : NULL;

    return name != NULL && name->truth;
}

int32 lower_truth(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const Value value = lower(lowering, term, at);

    if (!value.truth && !is_boolean_column(lowering, term))
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place, "a condition is expected here, not a number");
    return value.expression;
}

/* How far the index of a loop goes, or its part that counts the rows or columns of a matrix; -1 for others. */
static int64 extent_of_index(const ReduceProgram *program, int32 expression)
{
    const PgkmExpression *const all = program->expressions;
    const PgkmExpression *const own = &all[expression];

    if (own->operation == PGKM_INDEX && own->loop >= 0)
        return program->loops[own->loop];

    const bool quotient = own->operation == PGKM_FLOOR && all[own->a[0]].operation == PGKM_DIVIDE;
    const PgkmExpression *const parts = quotient ? &all[own->a[0]] : own;

    if (!quotient && own->operation != PGKM_MODULO)
        return -1;

    const int64 of = all[parts->a[0]].operation == PGKM_INDEX ? extent_of_index(program, parts->a[0]) : -1;
    const double by = all[parts->a[1]].operation == PGKM_CONSTANT ? all[parts->a[1]].number : 0;

    if (of < 0 || !(by >= 1 && by <= MAX_COUNT && by == std::floor(by)))
        return -1;
    return quotient ? (of - 1) / (int64)by + 1 : Min(of, (int64)by);
}

/* An expression has no subscript that is checked when it runs: its place must be known to be inside. */
static void check_inside(const Lowering *lowering, const ReduceTerm *base, const ReduceTerm *term, int32 subscript,
                         int64 extent)
{
    const PgkmExpression *const expression = &lowering->program->expressions[subscript];
    const double number = expression->number;

    const int64 reached = extent_of_index(lowering->program, subscript);

    if (reached >= 0 && reached <= extent)
        return;
    if (expression->operation != PGKM_CONSTANT)
        lowering_raise(
            lowering, ERRCODE_FEATURE_NOT_SUPPORTED, term->place,
            psprintf("a subscript of \"%s\" must be a number, or the index of a loop no longer than it", base->name));
    if (!(number >= 0 && number < (double)extent && number == std::floor(number)))
        lowering_raise(lowering, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, term->place,
                       psprintf("subscript %.17g is out of range", number));
}

/* The subscripts go before those where the whole is lowered. */
static Value lower_subscript(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const ReduceTerm *const base = term->arguments[0];
    const int n = term->n_arguments - 1;
    At inner = nowhere;

    if (base->kind != TERM_NAME && base->kind != TERM_OLD)
        lowering_raise(lowering, ERRCODE_FEATURE_NOT_SUPPORTED, base->place, "only a name can have subscripts");

    const ReduceShape shape = shape_of_base(lowering, base);
    const int rest = shape.dimensions - n;
    const bool is_let = find_name(lowering, base).let != NULL;

    if (rest < 0)
        lowering_raise(
            lowering, ERRCODE_DATATYPE_MISMATCH, base->place,
            psprintf("\"%s\" is %s and has too many subscripts", base->name, name_of_shape(shape.dimensions)));
    if (rest > 0 && rest != at->n)
        lowering_raise_shape(lowering, base, shape.dimensions);
    for (int i = 1; i <= n; ++i) {
        inner.index[inner.n] = lower_number(lowering, term->arguments[i], &nowhere);
        if (is_let)
            check_inside(lowering, base, term->arguments[i], inner.index[inner.n], shape.extent[i - 1]);
        ++inner.n;
    }
    for (int i = 0; i < rest; ++i)
        inner.index[inner.n++] = at->index[i];
    return lower_name(lowering, base, &inner);
}

static Value lower_case(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const int32 condition = lower_truth(lowering, term->arguments[0], at);
    const Value yes = lower(lowering, term->arguments[1], at);
    const Value no = lower(lowering, term->arguments[2], at);

    if (yes.truth != no.truth)
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                       "CASE has both numbers and conditions as results");
    return {reduce_emit(lowering->program, PGKM_CASE, term->place, condition, yes.expression, no.expression),
            yes.truth};
}

static bool takes_truths(PgkmOperation operation)
{
    return operation == PGKM_AND || operation == PGKM_OR || operation == PGKM_NOT;
}

static bool gives_truth(PgkmOperation operation)
{
    return takes_truths(operation) || (operation >= PGKM_EQUAL && operation <= PGKM_LESS_EQUAL);
}

static Value lower_operation(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    int32 arguments[3] = {-1, -1, -1};

    if (term->operation == PGKM_CASE)
        return lower_case(lowering, term, at);
    for (int i = 0; i < term->n_arguments; ++i)
        arguments[i] = takes_truths(term->operation) ? lower_truth(lowering, term->arguments[i], at)
                                                     : lower_number(lowering, term->arguments[i], at);
    return {reduce_emit(lowering->program, term->operation, term->place, arguments[0], arguments[1]),
            gives_truth(term->operation)};
}

static Value lower_loop(Lowering *lowering, const ReduceTerm *term)
{
    const bool may_be_none =
        term->operation == PGKM_SUM || term->operation == PGKM_PROD || term->operation == PGKM_COUNT;
    int64 count;

    if (term->name != NULL) {
        count = count_of(lowering, term->arguments[0], may_be_none ? 0 : 1, MAX_COUNT);
    } else {
        const ReduceShape shape = shape_of(lowering, term->arguments[0]);

        if (shape.dimensions != 1)
            lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                           psprintf("a vector is expected here, not %s", name_of_shape(shape.dimensions)));
        count = shape.extent[0];
    }

    const int32 loop = enter_loop(lowering, count, false, term->place);
    const At here = {1, {index_of(lowering, loop, term->place), -1}};
    const Value body = term->name != NULL ? lower_body(lowering, term, here.index[0], &nowhere)
                                          : lower(lowering, term->arguments[0], &here);

    leave_loop(lowering, loop);
    if (body.truth != (term->operation == PGKM_COUNT))
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                       body.truth ? "a loop is over numbers, not over conditions" : "count is over a condition");
    return {reduce_emit_loop(lowering->program, term->operation, term->place, loop, body.expression), false};
}

static Value lower_length(Lowering *lowering, const ReduceTerm *term)
{
    const ReduceShape shape = shape_of_base(lowering, term->arguments[0]);
    const int dimension = (int)term->number;

    if (shape.dimensions == 0 || dimension > shape.dimensions)
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                       psprintf("%s has no such length", name_of_shape(shape.dimensions)));
    return {reduce_emit_constant(lowering->program, term->place,
                                 dimension == 0 ? (double)shape.extent[0] * (double)shape.extent[1]
                                                : (double)shape.extent[dimension - 1]),
            false};
}

static Value lower_vector(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    const At inner = {at->n - 1, {at->index[1], -1}};

    if (at->n == 0)
        lowering_raise_shape(lowering, term, 1);
    return lower_body(lowering, term, at->index[0], &inner);
}

Value lower(Lowering *lowering, const ReduceTerm *term, const At *at)
{
    lowering_count(lowering, term);
    switch (term->kind) {
    case TERM_NUMBER:
    case TERM_TRUTH:
        return {reduce_emit_constant(lowering->program, term->place, term->number), term->kind == TERM_TRUTH};
    case TERM_NAME:
    case TERM_OLD:
        return lower_name(lowering, term, at);
    case TERM_SUBSCRIPT:
        return lower_subscript(lowering, term, at);
    case TERM_OPERATION:
        return lower_operation(lowering, term, at);
    case TERM_LOOP:
        return lower_loop(lowering, term);
    case TERM_VECTOR:
        return lower_vector(lowering, term, at);
    case TERM_LENGTH:
        return lower_length(lowering, term);
    }
    pg_unreachable();
}

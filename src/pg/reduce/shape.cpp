/*
 * shape.cpp - what the names of a reduction stand for, how long its loops are, and what shape its terms have.
 */
#include "pg/reduce/lowering.h"

#include <cmath>

extern "C" {
#include "miscadmin.h"
}

[[noreturn]] void lowering_raise(const Lowering *lowering, int sqlstate, int32 place, const char *message)
{
    ereport(ERROR, (errcode(sqlstate), errmsg("%s", message), reduce_position(lowering->text, place)));
    pg_unreachable();
}

const char *name_of_shape(int dimensions)
{
    static const char *const names[] = {"a number", "a vector", "a matrix", "a vector of matrices"};

    return names[Min(dimensions, 3)];
}

/* Of a vector or a matrix where a number is wanted. */
[[noreturn]] void lowering_raise_shape(const Lowering *lowering, const ReduceTerm *term, int dimensions)
{
    const char *const name = term->name == NULL || term->kind == TERM_VECTOR ? "this" : psprintf("\"%s\"", term->name);

    lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                   psprintf("%s is %s: it needs %s here", name, name_of_shape(dimensions),
                            dimensions == 1 ? "a subscript" : "subscripts"));
}

void lowering_switch_text(Lowering *lowering, const ReduceText *text)
{
    lowering->text = lowering->errors.text = text;
}

void lowering_count(Lowering *lowering, const ReduceTerm *term)
{
    check_stack_depth();
    CHECK_FOR_INTERRUPTS();
    if (++lowering->lowered > MAX_LOWERED)
        lowering_raise(lowering, ERRCODE_PROGRAM_LIMIT_EXCEEDED, term->place, "reduction is too large");
}

/* --- names --- */

static const ReduceName *find_among(const ReduceName *names, int count, const char *name)
{
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i].name, name) == 0)
            return &names[i];
    return NULL;
}

Found find_name(const Lowering *lowering, const ReduceTerm *term)
{
    const ReduceParameters *const parameters = lowering->program->parameters;
    const ReduceName *const column = find_among(lowering->columns->names, lowering->columns->n_names, term->name);

    if (term->kind == TERM_OLD) {
        const ReduceName *const old =
            find_among(parameters->names, parameters->n_names, psprintf("old.%s", term->name));

        if (old == NULL)
            lowering_raise(lowering, ERRCODE_UNDEFINED_COLUMN, term->place,
                           psprintf("there is no old parameter \"%s\" here", term->name));
        return {NULL, NULL, old, PGKM_PARAMETER};
    }
    for (const Scope *scope = lowering->scope; scope != NULL; scope = scope->outer)
        if (strcmp(scope->name, term->name) == 0)
            return {scope, NULL, NULL, PGKM_INDEX};
    for (int i = 0; i < lowering->lets->n_lets; ++i)
        if (strcmp(lowering->lets->lets[i].text.what, term->name) == 0)
            return {NULL, &lowering->lets->lets[i], NULL, PGKM_INDEX};

    const ReduceName *const parameter = find_among(parameters->names, parameters->n_names, term->name);

    if (column == NULL && parameter == NULL)
        lowering_raise(lowering, ERRCODE_UNDEFINED_COLUMN, term->place,
                       psprintf("\"%s\" is no column, parameter or index", term->name));
    return {NULL, NULL, column != NULL ? column : parameter, column != NULL ? PGKM_COLUMN : PGKM_PARAMETER};
}

/* --- counts and loops --- */

/* A whole number made of parameters and numbers. Its expressions do not stay in the program. */
int64 count_of(Lowering *lowering, const ReduceTerm *term, int64 least, int64 most)
{
    const int32 before = lowering->program->n;
    const Value value = lower(lowering, term, &nowhere);
    double number;

    if (value.truth || !reduce_evaluate(lowering->program, value.expression, &number))
        lowering_raise(lowering, ERRCODE_INVALID_PARAMETER_VALUE, term->place,
                       "a count must be made of numbers and parameters alone");
    reduce_program_cut(lowering->program, before);
    if (!(number >= (double)least && number <= (double)most && number == std::floor(number)))
        lowering_raise(lowering, ERRCODE_INVALID_PARAMETER_VALUE, term->place,
                       psprintf("a count must be a whole number from %lld to %lld, not %.17g", (long long)least,
                                (long long)most, number));
    return (int64)number;
}

/* A loop of so many steps that does not run around the term: the same ones again, so that equal bodies are equal
 * expressions. Loops over the elements of items are others than those within. */
int32 enter_loop(Lowering *lowering, int64 count, bool of_item, int32 place)
{
    ReduceProgram *const program = lowering->program;
    int32 loop = 0;

    while (loop < program->n_loops &&
           (program->loops[loop] != count || lowering->running[loop] || lowering->of_items[loop] != of_item))
        ++loop;
    lowering->steps *= (double)Max(count, (int64)1);
    if (loop == MAX_LOOPS || lowering->steps > REDUCE_MAX_STEPS)
        lowering_raise(lowering, ERRCODE_PROGRAM_LIMIT_EXCEEDED, place, "loops of a reduction have too many steps");
    if (loop == program->n_loops)
        (void)reduce_add_loop(program, count);
    lowering->running[loop] = true;
    lowering->of_items[loop] = of_item;
    return loop;
}

void leave_loop(Lowering *lowering, int32 loop)
{
    lowering->running[loop] = false;
    lowering->steps /= (double)Max(lowering->program->loops[loop], (int64)1);
}

int32 index_of(Lowering *lowering, int32 loop, int32 place)
{
    return reduce_emit_loop(lowering->program, PGKM_INDEX, place, loop, -1);
}

/* --- shapes --- */

/* No loop: its index is a number that no count may be made of. */
#define UNKNOWN_LOOP (-1)

static ReduceShape shape_of_vector(Lowering *lowering, const ReduceTerm *term, bool by_rows)
{
    const int64 count = count_of(lowering, term->arguments[0], 1, MAX_COUNT);
    const int32 before = lowering->program->n;
    Scope scope = {term->name,
                   by_rows ? reduce_emit_constant(lowering->program, term->place, 0)
                           : index_of(lowering, UNKNOWN_LOOP, term->place),
                   lowering->scope};

    lowering->scope = &scope;
    const ReduceShape body = shape_of(lowering, term->arguments[1], by_rows);
    lowering->scope = scope.outer;
    reduce_program_cut(lowering->program, before);

    return {body.dimensions + 1, {count, body.extent[0]}, false};
}

/* Numbers go with anything, vectors with vectors as long. */
static ReduceShape shape_of_operation(Lowering *lowering, const ReduceTerm *term)
{
    ReduceShape shape = {0, {1, 1}, false};

    for (int i = 0; i < term->n_arguments; ++i) {
        const ReduceShape next = shape_of(lowering, term->arguments[i]);

        if (next.dimensions > 0 && shape.dimensions > 0 &&
            (next.dimensions != shape.dimensions || memcmp(next.extent, shape.extent, sizeof next.extent) != 0))
            lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, term->place,
                           "vectors or matrices of different sizes meet");
        if (next.dimensions > 0)
            shape = next;
    }
    return shape;
}

ReduceShape shape_of_base(Lowering *lowering, const ReduceTerm *base)
{
    const ReduceShape shape = shape_of(lowering, base);

    if (shape.dimensions > 2)
        lowering_raise(lowering, ERRCODE_DATATYPE_MISMATCH, base->place,
                       "what has more than two dimensions has no subscripts and no lengths");
    return shape;
}

ReduceShape shape_of(Lowering *lowering, const ReduceTerm *term, bool by_rows)
{
    ReduceShape shape = {0, {1, 1}, false};

    lowering_count(lowering, term);
    switch (term->kind) {
    case TERM_NAME:
    case TERM_OLD: {
        const Found found = find_name(lowering, term);

        if (found.let != NULL)
            return within_let(lowering, found.let, term,
                              [lowering](const ReduceTerm *meant) { return shape_of(lowering, meant); });
        if (found.name != NULL)
            shape = {found.name->dimensions, {found.name->extent[0], found.name->extent[1]}, false};
        return shape;
    }
    case TERM_SUBSCRIPT: {
        const ReduceShape base = shape_of_base(lowering, term->arguments[0]);

        shape.dimensions = Max(base.dimensions - (term->n_arguments - 1), 0);
        if (shape.dimensions > 0)
            shape.extent[0] = base.extent[base.dimensions - 1];
        return shape;
    }
    case TERM_OPERATION:
        return shape_of_operation(lowering, term);
    case TERM_VECTOR:
        return shape_of_vector(lowering, term, by_rows);
    default:
        return shape;
    }
}

/*
 * items.cpp - makes a program of the objects of a reduction, or of an expression of parameters.
 */
#include "pg/reduce/lowering.h"

extern "C" {
#include "miscadmin.h"
}

#define MAX_CELLS ((int64)1 << 40)

/* Other than `term` in what is lowered: the key of a value, and how values come together. */
struct ItemRest {
    PgkmCombine combine;
    const ReduceText *text;
    const ReduceTerm *key; /* or NULL */
    const ReduceText *key_text;
};

static void add_item(Lowering *lowering, const ReduceTerm *term, const At *at, int32 loop, const ItemRest *rest)
{
    PgkmItem item = {lower_number(lowering, term, at), loop, rest->combine, -1};

    if (rest->key != NULL) {
        lowering_switch_text(lowering, rest->key_text);
        item.key = lower_number(lowering, rest->key, &nowhere);
        lowering_switch_text(lowering, rest->text);
    }
    reduce_add_item(lowering->program, &item);
}

static bool mentions(const ReduceTerm *term, const char *name)
{
    check_stack_depth();
    if (term->kind == TERM_NAME && strcmp(term->name, name) == 0)
        return true;
    for (int i = 0; i < term->n_arguments; ++i)
        if (mentions(term->arguments[i], name))
            return true;
    return false;
}

/* Whether a loop or a vector within the term is as long as the index of that name says. */
static bool has_length_of(const ReduceTerm *term, const char *name)
{
    check_stack_depth();
    CHECK_FOR_INTERRUPTS();
    if ((term->kind == TERM_LOOP || term->kind == TERM_VECTOR) && term->name != NULL &&
        mentions(term->arguments[0], name))
        return true;
    for (int i = 0; i < term->n_arguments; ++i)
        if (has_length_of(term->arguments[i], name))
            return true;
    return false;
}

/* All elements of a matrix, row by row: one item over one loop. */
static void lower_matrix(Lowering *lowering, const ReduceTerm *term, const ReduceShape *shape, const ItemRest *rest)
{
    ReduceProgram *const program = lowering->program;
    const int32 loop = enter_loop(lowering, shape->extent[0] * shape->extent[1], true, term->place);
    const int32 index = index_of(lowering, loop, term->place);
    const int32 width = reduce_emit_constant(program, term->place, (double)shape->extent[1]);
    const int32 row =
        reduce_emit(program, PGKM_FLOOR, term->place, reduce_emit(program, PGKM_DIVIDE, term->place, index, width));
    const At here = {2, {row, reduce_emit(program, PGKM_MODULO, term->place, index, width)}};

    add_item(lowering, term, &here, loop, rest);
    leave_loop(lowering, loop);
}

/* A vector becomes an item over a loop, and so does a matrix. The rows of a `vector` may differ in length: then each
 * of them becomes one, and so does each part of what has more dimensions. */
static void lower_items(Lowering *lowering, const ReduceTerm *term, const ItemRest *rest)
{
    const ReduceShape shape = shape_of(lowering, term, true);

    if (shape.dimensions == 0) {
        add_item(lowering, term, &nowhere, -1, rest);
    } else if (shape.dimensions == 1) {
        const int32 loop = enter_loop(lowering, shape.extent[0], true, term->place);
        const At here = {1, {index_of(lowering, loop, term->place), -1}};

        add_item(lowering, term, &here, loop, rest);
        leave_loop(lowering, loop);
    } else if (shape.dimensions == 2 && (int64)shape.extent[0] * shape.extent[1] <= MAX_COUNT &&
               !(term->kind == TERM_VECTOR && has_length_of(term->arguments[1], term->name))) {
        lower_matrix(lowering, term, &shape, rest);
    } else if (term->kind == TERM_VECTOR) {
        for (int64 j = 0; j < shape.extent[0]; ++j) {
            const int32 row = reduce_emit_constant(lowering->program, term->place, (double)j);
            Scope scope = {term->name, row, lowering->scope};

            lowering->scope = &scope;
            lower_items(lowering, term->arguments[1], rest);
            lowering->scope = scope.outer;
        }
    } else {
        lowering_raise_shape(lowering, term, shape.dimensions);
    }
}

/* Until reduce_errors_end. */
static Lowering *start(ReduceProgram *program, const ReduceColumns *columns, const ReduceLets *lets,
                       const ReduceText *text)
{
    Lowering *const lowering = (Lowering *)palloc0(sizeof(Lowering));

    lowering->program = program;
    lowering->columns = columns;
    lowering->lets = lets;
    lowering->meant = (bool *)palloc0(Max(lets->n_lets, 1) * sizeof(bool));
    lowering->text = text;
    reduce_errors_begin(&lowering->errors, text);
    lowering->steps = 1;
    return lowering;
}

static void lower_object(Lowering *lowering, const ReduceObject *object)
{
    const ReduceText *const text = object->value.text == NULL ? &object->op : &object->value; /* which counts alone */
    ReduceProgram *const program = lowering->program;
    PgkmObject *const target = &program->objects[program->n_objects++];
    int i = 0;
    ListCell *cell;

    *target = {1, -1, -1, program->n_items, 0};
    if (object->filter_term != NULL) {
        lowering_switch_text(lowering, &object->filter);
        target->filter = lower_truth(lowering, object->filter_term, &nowhere);
    }
    if (object->cells_term != NULL) {
        lowering_switch_text(lowering, &object->cells);
        target->cells = count_of(lowering, object->cells_term, 1, MAX_CELLS);
    }
    if (object->index_term != NULL) {
        lowering_switch_text(lowering, &object->index);
        target->cell = lower_number(lowering, object->index_term, &nowhere);
    }
    lowering_switch_text(lowering, text);
    foreach (cell, object->values) {
        const PgkmCombine combine = object->combines[i++];
        const ItemRest rest = {combine, text, combine == PGKM_COMBINE_ARGMIN ? object->key_term : NULL, &object->key};

        lower_items(lowering, (ReduceTerm *)lfirst(cell), &rest);
    }
    target->n_items = program->n_items - target->first_item;
}

ReduceProgram *reduce_lower(const ReduceObject *objects, int n_objects, const ReduceLets *lets,
                            const ReduceColumns *columns, const ReduceParameters *parameters)
{
    ReduceProgram *const program = reduce_program_create(parameters, n_objects);
    Lowering *const lowering = start(program, columns, lets, &objects[0].value);

    for (int i = 0; i < n_objects; ++i)
        lower_object(lowering, &objects[i]);
    reduce_errors_end(&lowering->errors);
    return program;
}

static const ReduceName row_number = {"", 0, {1, 1}, 0, false};

static void lower_formula(Lowering *lowering, ReduceFormula *formula)
{
    ReduceProgram *const program = lowering->program;
    const ReduceTerm *const term = formula->term;
    ReduceShape *const shape = &formula->shape;
    PgkmObject *const object = &program->objects[program->n_objects++];
    At at = nowhere;
    PgkmItem item = {-1, -1, PGKM_COMBINE_SUM, -1};

    lowering_switch_text(lowering, &formula->text);
    *shape = shape_of(lowering, term);
    if (shape->dimensions > 2)
        lowering_raise_shape(lowering, term, shape->dimensions);
    *object = {1, -1, -1, program->n_items, 1};
    if (shape->dimensions == 2) {
        object->cells = shape->extent[0];
        object->cell = at.index[at.n++] = reduce_emit_value(program, PGKM_COLUMN, term->place, &row_number, -1, -1);
    }
    if (shape->dimensions > 0) {
        item.loop = enter_loop(lowering, shape->extent[shape->dimensions - 1], true, term->place);
        at.index[at.n++] = index_of(lowering, item.loop, term->place);
    }

    const Value value = lower(lowering, term, &at);

    if (item.loop >= 0)
        leave_loop(lowering, item.loop);
    item.value = value.expression;
    shape->truth = value.truth;
    reduce_add_item(program, &item);
}

ReduceProgram *reduce_lower_formulas(ReduceFormula *formulas, int n, const ReduceParameters *parameters, int64 *n_rows)
{
    static const ReduceColumns none = {NULL, 0};
    static const ReduceLets no_lets = {NULL, 0};
    ReduceProgram *const program = reduce_program_create(parameters, n);
    Lowering *const lowering = start(program, &none, &no_lets, &formulas[0].text);

    *n_rows = 1;
    for (int i = 0; i < n; ++i) {
        lower_formula(lowering, &formulas[i]);
        *n_rows = Max(*n_rows, program->objects[i].cells);
    }
    for (int i = 0; i < n; ++i) {
        PgkmObject *const object = &program->objects[i];
        const int32 place = formulas[i].term->place;

        if (object->cells < *n_rows)
            object->filter = reduce_emit(program, PGKM_LESS, place,
                                         reduce_emit_value(program, PGKM_COLUMN, place, &row_number, -1, -1),
                                         reduce_emit_constant(program, place, (double)object->cells));
    }
    reduce_errors_end(&lowering->errors);
    return program;
}

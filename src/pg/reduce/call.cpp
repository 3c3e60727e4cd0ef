/*
 * call.cpp - finds a reduction's columns, reads its rows, runs it, and says which row failed.
 */
#include "pg/reduce/call.h"

#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

/* --- columns --- */

/* The index of a loop around a term. */
struct Bound {
    const char *name;
    const Bound *outer;
};

struct Collecting {
    ReduceCall *call;
    const ReduceText *text;
    TableColumn *columns;
    int n_columns;
};

static bool is_parameter(const ReduceParameters *parameters, const char *name)
{
    for (int i = 0; i < parameters->n_names; ++i)
        if (strcmp(parameters->names[i].name, name) == 0)
            return true;
    return false;
}

static bool is_let(const ReduceLets *lets, const char *name)
{
    for (int i = 0; i < lets->n_lets; ++i)
        if (strcmp(lets->lets[i].text.what, name) == 0)
            return true;
    return false;
}

/* A name that is no index of a loop. */
static void collect_name(Collecting *collecting, const ReduceTerm *term)
{
    const TableRelation *const relation = &collecting->call->call->relation;
    const bool is_column = OidIsValid(table_column_type(relation, term->name));
    const bool known = is_parameter(collecting->call->parameters, term->name);

    if (is_column && known)
        ereport(ERROR,
                (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                 errmsg("\"%s\" is both a parameter and a column of relation \"%s\"", term->name, relation->name),
                 reduce_position(collecting->text, term->place)));
    if (known || is_let(&collecting->call->objects->lets, term->name))
        return;
    for (int i = 0; i < collecting->n_columns; ++i)
        if (strcmp(collecting->columns[i].name, term->name) == 0)
            return;
    if (!is_column)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("\"%s\" is no parameter, no index of a loop and no column of relation \"%s\"",
                               term->name, relation->name),
                        reduce_position(collecting->text, term->place)));
    collecting->columns =
        (TableColumn *)repalloc(collecting->columns, (collecting->n_columns + 1) * sizeof(TableColumn));
    table_feature_find(&collecting->columns[collecting->n_columns++], relation, term->name);
}

static void collect(Collecting *collecting, const ReduceTerm *term, const Bound *bound)
{
    const bool binds = term->name != NULL && (term->kind == TERM_LOOP || term->kind == TERM_VECTOR);
    const Bound inner = {term->name, bound};

    check_stack_depth();
    CHECK_FOR_INTERRUPTS();
    if (term->kind == TERM_NAME) {
        while (bound != NULL && strcmp(bound->name, term->name) != 0)
            bound = bound->outer;
        if (bound == NULL)
            collect_name(collecting, term);
        return;
    }
    for (int i = 0; i < term->n_arguments; ++i)
        collect(collecting, term->arguments[i], binds && i == 1 ? &inner : bound);
}

static void collect_text(Collecting *collecting, const ReduceText *text, const ReduceTerm *term)
{
    ReduceErrors errors;

    if (term == NULL || text->text == NULL)
        return;
    collecting->text = text;
    reduce_errors_begin(&errors, text);
    collect(collecting, term, NULL);
    reduce_errors_end(&errors);
}

static void check_let(const ReduceCall *call, const char *name)
{
    const TableRelation *const relation = &call->call->relation;
    const bool known = is_parameter(call->parameters, name);

    if (known || OidIsValid(table_column_type(relation, name)))
        ereport(ERROR,
                (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                 known ? errmsg("\"%s\" is both a parameter and a name of let", name)
                       : errmsg("\"%s\" is both a name of let and a column of relation \"%s\"", name, relation->name)));
}

void reduce_call_check_parameter(const ReduceCall *call, const char *name)
{
    const TableCall *const table = call->call;

    if (is_let(&call->objects->lets, name))
        ereport(ERROR,
                (errcode(ERRCODE_AMBIGUOUS_COLUMN), errmsg("\"%s\" is both a parameter and a name of let", name)));
    for (int i = 0; i < table->n_features; ++i)
        if (strcmp(table->features[i].name, name) == 0)
            ereport(ERROR,
                    (errcode(ERRCODE_AMBIGUOUS_COLUMN),
                     errmsg("\"%s\" is both a parameter and a column of relation \"%s\"", name, table->relation.name)));
}

static void find_columns(ReduceCall *call)
{
    Collecting collecting = {call, NULL, (TableColumn *)palloc(sizeof(TableColumn)), 0};
    const ReduceLets *const lets = &call->objects->lets;

    for (int i = 0; i < lets->n_lets; ++i) {
        check_let(call, lets->lets[i].text.what);
        collect_text(&collecting, &lets->lets[i].text, lets->lets[i].term);
    }

    for (int i = 0; i < call->objects->n_objects; ++i) {
        const ReduceObject *const object = &call->objects->objects[i];
        ListCell *cell;

        collect_text(&collecting, &object->filter, object->filter_term);
        collect_text(&collecting, &object->cells, object->cells_term);
        collect_text(&collecting, &object->index, object->index_term);
        foreach (cell, object->values)
            collect_text(&collecting, &object->value, (ReduceTerm *)lfirst(cell));
        collect_text(&collecting, &object->key, object->key_term);
    }
    if (collecting.n_columns == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a reduction must name a column"),
                        errdetail("Its columns say which rows take part: those where one is not null.")));
    call->call->features = collecting.columns;
    call->call->n_features = collecting.n_columns;
}

/* --- rows --- */

static void place_columns(ReduceCall *call, const TableRows *rows)
{
    const TableCall *const table = call->call;
    ReduceColumns *const columns = &call->columns;
    int64 next = 0;

    columns->n_names = table->n_features;
    columns->names = (ReduceName *)palloc(columns->n_names * sizeof(ReduceName));
    for (int i = 0; i < columns->n_names; ++i) {
        const TableColumn *const column = &table->features[i];
        const int32 width = column->kind == COLUMN_NUMBER ? 1 : rows->widths != NULL ? rows->widths[i] : rows->used->d;

        columns->names[i] = {
            column->name, column->kind == COLUMN_NUMBER ? 0 : 1, {width, 1}, next, column->type == BOOLOID};
        next += width;
    }
}

/* TableReduction.make. */
static const PgkmReduction *make_program(void *arg, const TableRows *first)
{
    ReduceCall *const call = (ReduceCall *)arg;
    MemoryContext caller = MemoryContextSwitchTo(call->call->context);

    place_columns(call, first);
    call->program = reduce_call_lower(call);
    call->request.points.d = first->used->d;
    reduce_request(&call->request, call->program, call->exact);
    MemoryContextSwitchTo(caller);
    return &call->request.reduction;
}

bool reduce_call_read(ReduceCall *call, FunctionCallInfo fcinfo)
{
    TableCall *const table = call->call;
    TableQuery query;

    reduce_objects_parse(call->objects);
    table_relation_find(&table->relation, table_call_relation(fcinfo), TABLE_READ, true);
    find_columns(call);
    memset(&query, 0, sizeof query);
    call->reduction.make = make_program;
    call->reduction.arg = call;
    query.reduction = call->once ? &call->reduction : NULL;
    call->rows = table_call_read(table, call->function, &query);
    if (table_rows_used(call->rows) == 0)
        return false;
    if (call->program == NULL)
        place_columns(call, call->rows);
    return true;
}

ReduceProgram *reduce_call_lower(const ReduceCall *call)
{
    return reduce_lower(call->objects->objects, call->objects->n_objects, &call->objects->lets, &call->columns,
                        call->parameters);
}

/* --- running --- */

PgkmReduction reduce_program_of(const ReduceProgram *program, bool exact)
{
    PgkmReduction reduction;

    memset(&reduction, 0, sizeof reduction);
    reduction.expressions = program->expressions;
    reduction.n_expressions = program->n;
    reduction.loops = program->loops;
    reduction.n_loops = program->n_loops;
    reduction.parameters = program->parameters->values;
    reduction.n_parameters = program->parameters->n_values;
    reduction.items = program->items;
    reduction.n_items = program->n_items;
    reduction.objects = program->objects;
    reduction.n_objects = program->n_objects;
    reduction.exact = exact;
    return reduction;
}

void reduce_request(PgkmRequest *request, const ReduceProgram *program, bool exact)
{
    PgkmError error;

    request->algorithm = PGKM_REDUCTION;
    request->reduction = reduce_program_of(program, exact);
    if (pgkm_reduction_check(request, &error) != PGKM_OK)
        pgkm_raise(&error);
}

int64 reduce_object_width(const ReduceProgram *program, int object)
{
    const PgkmObject *const of = &program->objects[object];
    int64 width = 0;

    for (int i = of->first_item; i < of->first_item + of->n_items; ++i)
        width += program->items[i].loop < 0 ? 1 : program->loops[program->items[i].loop];
    return width;
}

/* The ctid of a row, which was not kept, by another read of the same snapshot; or its number. */
static const char *place_of_row(ReduceCall *call, int64 row)
{
    TableCall *const table = call->call;
    TableQuery query;
    TableCursor cursor;

    if (row < 0)
        return NULL;
    if (!table_may_read_ctid(&table->relation))
        return psprintf("It is row %lld of those that take part.", (long long)row + 1);
    memset(&query, 0, sizeof query);
    query.need_ctid = true;
    table_rows_clear(call->rows);

    TableRows *const rows = table_call_read_into(table, call->function, &query, table->context);

    bool found = false;

    table_cursor_start(&cursor);
    while (!found && table_cursor_next(&cursor, rows))
        found = cursor.used == row;
    if (!found)
        return NULL;

    const TableOrigin origin = table_rows_origin(rows, cursor.position);
    const char *const of = table->relation.has_rows_of_others ? psprintf(" of %s", get_rel_name(origin.table)) : "";

    return psprintf("The row is at ctid (%u,%u)%s.", ItemPointerGetBlockNumberNoCheck(&origin.ctid),
                    ItemPointerGetOffsetNumberNoCheck(&origin.ctid), of);
}

static const char *fault_text(const PgkmReduced *reduced, const ReduceProgram *program, int *sqlstate)
{
    const PgkmExpression *const expression = &program->expressions[Max(reduced->expression, 0)];
    const double number = reduced->number;

    *sqlstate = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
    switch (reduced->fault) {
    case PGKM_FAULT_DIVISION:
        *sqlstate = ERRCODE_DIVISION_BY_ZERO;
        return "division by zero";
    case PGKM_FAULT_SUBSCRIPT:
        return psprintf("subscript %.17g is out of range", number);
    case PGKM_FAULT_CELL:
        return psprintf("cell %.17g is out of range", number);
    case PGKM_FAULT_TOTAL:
        return "a total is out of range";
    default:
        return expression->operation == PGKM_SQRT ? "square root of a negative number"
               : expression->operation == PGKM_LN ? "logarithm of a number that is not positive"
               : std::isnan(number)               ? "value is not a number"
                                                  : "value is out of range";
    }
}

void reduce_raise_fault(const PgkmReduced *reduced, const ReduceProgram *program, const ReduceText *text,
                        const char *place)
{
    int sqlstate;
    const char *const message = fault_text(reduced, program, &sqlstate);
    ReduceErrors errors;

    reduce_errors_begin(&errors, text);
    ereport(ERROR,
            (errcode(sqlstate), errmsg("%s", message), place == NULL ? 0 : errdetail("%s", place),
             reduced->expression < 0 ? 0 : reduce_position(text, program->expressions[reduced->expression].place)));
}

const PgkmReduced *reduce_call_run(ReduceCall *call, const ReduceProgram *program, MemoryContext context,
                                   PgkmJobHolder **holder)
{
    PgkmRequest *const request = &call->call->request;

    table_call_request(call->call, call->rows);
    request->copies = call->reduction.copies;
    reduce_request(request, program, call->exact);

    const PgkmReduced *const reduced = pgkm_run_job(request, context, holder, NULL)->reduced;

    if (reduced->fault != PGKM_FAULT_NONE) {
        const int32 place = reduced->expression < 0 ? 0 : program->expressions[reduced->expression].place;
        const PgkmReduced fault = *reduced;

        pgkm_release_job(*holder);
        reduce_raise_fault(&fault, program, reduce_objects_find(call->objects, place), place_of_row(call, fault.row));
    }
    return reduced;
}

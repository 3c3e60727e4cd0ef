/*
 * call.cpp - finds a reduction's columns, reads its rows, runs it, and says which row failed.
 */
#include "pg/reduce/call.h"

#include "pg/query/decoder.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

/* --- columns --- */

static bool is_let(const ReduceSource *source, const char *name)
{
    for (int i = 0; i < source->n_lets; ++i)
        if (strcmp(source->lets[i].name, name) == 0)
            return true;
    return false;
}

static bool is_column(const ReduceCall *call, const char *name)
{
    return OidIsValid(table_column_type(&call->call->relation, name));
}

static const char *both(const char *name, const char *a, const char *b)
{
    return psprintf("\"%s\" is both a %s and a %s", name, a, b);
}

static const char *column_of(const ReduceCall *call)
{
    return psprintf("column of relation \"%s\"", call->call->relation.name);
}

/* Adds the column that a text names, unless it is another thing, or there. */
static void find_column(ReduceCall *call, const PgkmTerm *term)
{
    TableCall *const table = call->call;
    const bool known = reduce_parameters_find(call->parameters, term->name) != NULL;
    const bool exists = is_column(call, term->name);

    if (exists && known)
        reduce_raise_at(&call->source.texts, ERRCODE_AMBIGUOUS_COLUMN, term->place,
                        both(term->name, "parameter", column_of(call)));
    if (known || is_let(&call->source, term->name))
        return;
    for (int i = 0; i < table->n_features; ++i)
        if (strcmp(table->features[i].name, term->name) == 0)
            return;
    if (!exists)
        reduce_raise_at(&call->source.texts, ERRCODE_UNDEFINED_COLUMN, term->place,
                        psprintf("\"%s\" is no parameter, no index of a loop and no %s", term->name, column_of(call)));
    table_feature_find(&table->features[table->n_features++], &table->relation, term->name);
    if (table->features[table->n_features - 1].kind == COLUMN_CATEGORY)
        reduce_raise_at(&call->source.texts, ERRCODE_DATATYPE_MISMATCH, term->place,
                        psprintf("\"%s\" is a %s of text, no number", term->name, column_of(call)));
}

[[noreturn]] static void raise_ambiguous(const char *message)
{
    ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN), errmsg("%s", message)));
    pg_unreachable();
}

void reduce_call_check_parameter(const ReduceCall *call, const char *name)
{
    if (is_let(&call->source, name))
        raise_ambiguous(both(name, "parameter", "name of let"));
    for (int i = 0; i < call->call->n_features; ++i)
        if (strcmp(call->call->features[i].name, name) == 0)
            raise_ambiguous(both(name, "parameter", column_of(call)));
}

static void find_columns(ReduceCall *call)
{
    const List *const names = call->source.texts.names;
    ListCell *cell;

    for (int i = 0; i < call->source.n_lets; ++i) {
        const char *const name = call->source.lets[i].name;

        if (reduce_parameters_find(call->parameters, name) != NULL)
            raise_ambiguous(both(name, "parameter", "name of let"));
        if (is_column(call, name))
            raise_ambiguous(both(name, "name of let", column_of(call)));
    }
    call->call->features = (TableColumn *)palloc((list_length(names) + 1) * sizeof(TableColumn));
    foreach (cell, names)
        find_column(call, (const PgkmTerm *)lfirst(cell));
    if (call->call->n_features == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a reduction must name a column"),
                        errdetail("Its columns say which rows take part: those where one is not null.")));
}

/* --- rows --- */

static void place_columns(ReduceCall *call, const TableRows *rows)
{
    const TableCall *const table = call->call;
    int64 next = 0;

    call->columns = (PgkmNamed *)palloc(table->n_features * sizeof(PgkmNamed));
    for (int i = 0; i < table->n_features; ++i) {
        const TableColumn *const column = &table->features[i];
        const bool is_number = column->kind == COLUMN_NUMBER;
        const int32 width = rows->widths[i];

        call->columns[i] = {column->name, is_number ? 0 : 1, {width, 1}, next, column->type == BOOLOID, NULL};
        next += width;
    }
}

/* TableWish.on_first. The program, with the errors that it may have, is made before most rows are read. It lives as
 * long as the call. */
static void make_program(void *arg, const TableRows *first)
{
    ReduceCall *const call = (ReduceCall *)arg;
    MemoryContext caller = MemoryContextSwitchTo(call->call->context);
    PgkmRequest request;

    place_columns(call, first);
    call->program = reduce_call_program(call);
    memset(&request, 0, sizeof request);
    request.points.d = first->used->d;
    reduce_request(&request, &call->program);
    MemoryContextSwitchTo(caller);
}

bool reduce_call_read(ReduceCall *call, FunctionCallInfo fcinfo)
{
    call->call = table_call_create();
    table_relation_find(&call->call->relation, table_call_relation(fcinfo), TABLE_READ, true);
    find_columns(call);
    call->rows = table_call_read(call->call, call->function,
                                 {.on_first = call->once ? make_program : NULL, .on_first_arg = call});
    if (table_rows_used(call->rows) == 0)
        return false;
    if (call->once && call->program.n_objects == 0)
        make_program(call, call->rows);
    else if (!call->once)
        place_columns(call, call->rows);
    return true;
}

/* --- programs --- */

static void free_program(void *program)
{
    pgkm_program_free((PgkmProgram *)program);
}

PgkmReduction reduce_program(const ReduceTexts *texts, const PgkmObjectTree *trees, int n_trees, PgkmNames names,
                             const List *parameters, bool exact, PgkmValueShape *shapes)
{
    MemoryContextCallback *const callback = (MemoryContextCallback *)palloc0(sizeof(MemoryContextCallback));
    PgkmNamed *const all = (PgkmNamed *)palloc((list_length(parameters) + 1) * sizeof(PgkmNamed));
    PgkmTextError error;
    ListCell *cell;

    names.parameters = all;
    foreach (cell, parameters)
        all[names.n_parameters++] = *(const PgkmNamed *)lfirst(cell);
    callback->func = free_program;
    callback->arg = pgkm_program_lower(trees, n_trees, &names, pgkm_interrupted, shapes, &error);
    if (callback->arg == NULL)
        reduce_raise(texts, &error);
    MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
    return pgkm_program_reduction((const PgkmProgram *)callback->arg, exact);
}

PgkmReduction reduce_call_program(const ReduceCall *call)
{
    const ReduceSource *const source = &call->source;
    PgkmNames names;

    memset(&names, 0, sizeof names);
    names.columns = call->columns;
    names.n_columns = call->call->n_features;
    names.lets = source->lets;
    names.n_lets = source->n_lets;
    return reduce_program(&source->texts, source->objects, source->n_objects, names, call->parameters, source->exact,
                          NULL);
}

/* --- running --- */

void reduce_request(PgkmRequest *request, const PgkmReduction *program)
{
    PgkmError error;

    request->algorithm = PGKM_REDUCTION;
    request->reduction = *program;
    if (pgkm_reduction_check(request, &error) != PGKM_OK)
        pgkm_raise(&error);
}

/* Where a row is, which was not kept, by another read of the same snapshot. */
static ReduceRow find_row(ReduceCall *call, int64 row)
{
    TableCall *const table = call->call;
    TableCursor cursor;

    if (!table_may_read_ctid(&table->relation))
        return {NULL, row + 1};
    table_rows_clear(call->rows);

    const TableRows *const rows = table_call_read(table, call->function, {.need_ctid = true}, table->context);

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows))
        if (cursor.used == row) {
            const TableOrigin origin = {rows->ctids[cursor.position], table_rows_table(rows, cursor.position), 0};

            return {table_origin_name(&origin, table->relation.has_rows_of_others), 0};
        }
    return {NULL, 0};
}

void reduce_check(const ReduceTexts *texts, const PgkmReduction *program, const PgkmReduced *reduced,
                  PgkmJobHolder *holder, ReduceCall *call)
{
    const int64 row = reduced->row;
    PgkmTextError error;

    if (reduced->fault == PGKM_FAULT_NONE)
        return;
    pgkm_reduction_fault(program, reduced, &error);
    pgkm_release_job(holder);
    reduce_raise(texts, &error, call == NULL || row < 0 ? ReduceRow{NULL, 0} : find_row(call, row));
}

const PgkmReduced *reduce_call_run(ReduceCall *call, const PgkmReduction *program, MemoryContext context,
                                   PgkmJobHolder **holder)
{
    PgkmRequest *const request = &call->call->request;

    reduce_request(request, program);

    const PgkmReduced *const reduced = pgkm_run_job(request, context, holder, NULL)->reduced;

    reduce_check(&call->source.texts, program, reduced, *holder, call);
    return reduced;
}

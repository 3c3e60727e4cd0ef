/*
 * iterate.cpp - kmeans_reduce_iterate: a reduction in a loop whose parameters come from its last result.
 */
#include "pg/reduce/call.h"

#include <cmath>

extern "C" {
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_reduction_iterate);
}

/* Behind the relation. */
enum IterateArgument {
    ITERATE_VALUE = TABLE_RELATION + 1,
    ITERATE_START,
    ITERATE_UPDATE,
    ITERATE_UNTIL,
    ITERATE_MAX_ITER
};

/* Names of the last result: the matrix of cells and values, and the rows of each cell. */
static const char result_name[] = "r";
static const char counts_name[] = "counts";

/* Parameters that are made of the same parameters: their names, and a tree of one value for each. */
struct Update {
    List *names; /* of char * */
    PgkmObjectTree *trees;
};

struct Iteration {
    ReduceCall reduction;
    ReduceTexts texts;    /* of updates and until */
    List *updates;        /* of Update, one after the other */
    PgkmObjectTree until; /* without a value: none */
    int32 max_iter;
    int32 n_iter;
    bool converged;
};

/* --- arguments --- */

[[noreturn]] static void raise_update(void)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("update must be a JSON object of expressions, or a list of such objects")));
    pg_unreachable();
}

static void check_name(const char *name)
{
    const char *detail;

    if (strcmp(name, result_name) == 0 || strcmp(name, counts_name) == 0)
        detail = "In update and until \"r\" is the last result, \"counts\" are the rows of its cells.";
    else if (strncmp(name, "old.", 4) == 0)
        detail = "In until names with \"old.\" are the parameters before the update.";
    else
        return;
    ereport(ERROR,
            (errcode(ERRCODE_RESERVED_NAME),
             errmsg("a parameter of kmeans_reduce_iterate must not be called \"%s\"", name), errdetail("%s", detail)));
}

/* An expression as a reduction of one row. */
static PgkmObjectTree parse_formula(Iteration *iteration, const char *name, const char *text)
{
    static const PgkmCombine sum = PGKM_COMBINE_SUM;
    const PgkmTerm **const value = (const PgkmTerm **)palloc(sizeof(PgkmTerm *));

    *value = reduce_parse(&iteration->texts, name, text);
    return {NULL, NULL, NULL, NULL, value, &sum, 1};
}

static void read_update(Iteration *iteration, const JsonbContainer *container)
{
    Update *const update = (Update *)palloc0(sizeof(Update));

    if (!JsonContainerIsObject(container))
        raise_update();
    update->trees = (PgkmObjectTree *)palloc((JsonContainerSize(container) + 1) * sizeof(PgkmObjectTree));
    reduce_each_field((JsonbContainer *)container, [=](const char *name, const JsonbValue *value) {
        if (value->type != jbvString)
            raise_update();
        check_name(name);

        update->trees[list_length(update->names)] =
            parse_formula(iteration, name, pnstrdup(value->val.string.val, value->val.string.len));
        update->names = lappend(update->names, (void *)name);
    });
    if (update->names != NIL)
        iteration->updates = lappend(iteration->updates, update);
}

static void read_updates(Iteration *iteration, Jsonb *updates)
{
    if (JB_ROOT_IS_ARRAY(updates) && !JB_ROOT_IS_SCALAR(updates)) {
        for (uint32 i = 0; i < JB_ROOT_COUNT(updates); ++i) {
            const JsonbValue *const value = getIthJsonbValueFromContainer(&updates->root, i);

            if (value->type != jbvBinary)
                raise_update();
            read_update(iteration, value->val.binary.data);
        }
    } else {
        read_update(iteration, &updates->root);
    }
    if (iteration->updates == NIL)
        raise_update();
}

static void read_arguments(Iteration *iteration, FunctionCallInfo fcinfo)
{
    static const char *const names[] = {"relation", "reduction", "start", "update"};
    ListCell *cell;

    for (int i = 0; i < (int)lengthof(names); ++i)
        pgkm_required(&fcinfo->args[i], names[i]);
    memset(iteration, 0, sizeof *iteration);
    iteration->max_iter = PG_ARGISNULL(ITERATE_MAX_ITER) ? 100 : PG_GETARG_INT32(ITERATE_MAX_ITER);
    if (iteration->max_iter < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_iter must be at least 1")));
    iteration->reduction.parameters = reduce_parameters_read(PG_GETARG_JSONB_P(ITERATE_START));
    foreach (cell, iteration->reduction.parameters)
        check_name(((const PgkmNamed *)lfirst(cell))->name);
    read_updates(iteration, PG_GETARG_JSONB_P(ITERATE_UPDATE));
    if (!PG_ARGISNULL(ITERATE_UNTIL))
        iteration->until = parse_formula(iteration, "until", text_to_cstring(PG_GETARG_TEXT_PP(ITERATE_UNTIL)));
    iteration->reduction.function = "kmeans_reduce_iterate";
    reduce_read_value(&iteration->reduction.source, PG_GETARG_JSONB_P(ITERATE_VALUE));
}

static bool is_among(const List *names, const char *name)
{
    ListCell *cell;

    foreach (cell, names)
        if (strcmp(((const PgkmTerm *)lfirst(cell))->name, name) == 0)
            return true;
    return false;
}

/* 42703 where the update makes a parameter that nothing knows: start does not have it, and no expression reads it. */
static void check_parameter(const Iteration *iteration, const char *name)
{
    const ReduceCall *const call = &iteration->reduction;

    reduce_call_check_parameter(call, name);
    if (reduce_parameters_find(call->parameters, name) == NULL && !is_among(iteration->texts.names, name) &&
        !is_among(call->source.texts.names, name))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN),
                 errmsg("update sets \"%s\", which is no parameter of start and which no expression reads", name),
                 errhint("If it is to be returned alone, give it a value in start.")));
}

/* --- expressions of parameters --- */

/* Numbers made one by one. */
template <typename Number>
static const double *make_numbers(int64 count, Number number)
{
    double *const numbers = reduce_numbers(count);

    for (int64 i = 0; i < count; ++i) {
        if (i % 65536 == 0)
            CHECK_FOR_INTERRUPTS();
        numbers[i] = number(i);
    }
    return numbers;
}

/* The values of formulas, one behind the other, matrices in row-major order, in the memory context `keep`. */
static const double *evaluate(const Iteration *iteration, const PgkmObjectTree *formulas, int n, const List *parameters,
                              PgkmValueShape *shapes, MemoryContext keep)
{
    static const double row = 0;
    PgkmJobHolder *holder = NULL;
    PgkmNames names;
    PgkmRequest request;

    memset(&names, 0, sizeof names);
    memset(&request, 0, sizeof request);
    request.points = {&row, PGKM_FLOAT64, 1, 1, NULL};

    const PgkmReduction program = reduce_program(&iteration->texts, formulas, n, names, parameters, false, shapes);

    reduce_request(&request, &program);

    const PgkmReduced *const reduced = pgkm_run_aside(&request, keep, &holder)->reduced;

    reduce_check(&iteration->texts, &program, reduced, holder, NULL);
    return reduced->values;
}

/* The last result as parameters beside the others. What no row came to is 0. */
static List *with_result(const List *parameters, const PgkmReduction *program, const PgkmReduced *reduced)
{
    const int64 cells = program->objects[0].cells;
    const int64 shape[] = {cells, pgkm_object_width(program, 0)};
    const int64 length[] = {cells, 1};
    const double *const values = make_numbers(
        cells * shape[1], [reduced](int64 i) { return std::isnan(reduced->values[i]) ? 0 : reduced->values[i]; });
    const double *const counts = make_numbers(cells, [reduced](int64 i) { return (double)reduced->counts[i]; });

    return reduce_parameters_add(reduce_parameters_add(list_copy(parameters), result_name, 2, shape, values),
                                 counts_name, 1, length, counts);
}

/* `parameters` with what the update makes of `with` in place of those of the same names, in the memory context `keep`.
 * What start alone has stays where it is. */
static List *apply_update(const Iteration *iteration, const Update *update, const List *parameters, const List *with,
                          MemoryContext keep)
{
    const int n = list_length(update->names);
    PgkmValueShape *const shapes = (PgkmValueShape *)palloc(n * sizeof(PgkmValueShape));
    const double *values = evaluate(iteration, update->trees, n, with, shapes, keep);
    const MemoryContext own = MemoryContextSwitchTo(keep);
    List *next = list_copy(parameters);

    for (int i = 0; i < n; ++i) {
        const char *const name = (const char *)list_nth(update->names, i);

        if (shapes[i].truth)
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("parameter \"%s\" must be numbers, not a condition", name)));
        next = list_delete_ptr(next, (void *)reduce_parameters_find(parameters, name));
        next = reduce_parameters_add(next, name, shapes[i].dimensions, shapes[i].extent, values);
        values += shapes[i].extent[0] * shapes[i].extent[1];
    }
    MemoryContextSwitchTo(own);
    return next;
}

static bool is_done(const Iteration *iteration, const List *next, const PgkmReduction *program,
                    const PgkmReduced *reduced)
{
    List *with = with_result(next, program, reduced);
    PgkmValueShape shape;
    ListCell *cell;

    if (iteration->until.n_values == 0)
        return false;
    foreach (cell, iteration->reduction.parameters) {
        const PgkmNamed *const old = (const PgkmNamed *)lfirst(cell);

        with = reduce_parameters_add(with, psprintf("old.%s", old->name), old->dimensions, old->extent, old->values);
    }

    const double *const value = evaluate(iteration, &iteration->until, 1, with, &shape, CurrentMemoryContext);

    if (!shape.truth || shape.dimensions > 0)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("until must be a condition")));
    return *value != 0;
}

/* --- the loop --- */

/* Of a result that is to become parameters: before it is made. */
static void check_size(const PgkmReduction *program)
{
    const int64 cells = program->objects[0].cells;
    const int64 width = pgkm_object_width(program, 0);

    if (cells > PG_INT32_MAX || width > PG_INT32_MAX)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the result of a reduction in a loop is too large: %lld cells of %lld values",
                               (long long)cells, (long long)width)));
}

/* One iteration in a memory context of its own, which holds the job; the next parameters go to `keep`. */
static const List *iterate(Iteration *iteration, MemoryContext keep)
{
    ReduceCall *const call = &iteration->reduction;
    const PgkmReduction program = reduce_call_program(call);
    PgkmJobHolder *holder = NULL;
    ListCell *cell;

    check_size(&program);

    const PgkmReduced *const reduced = reduce_call_run(call, &program, CurrentMemoryContext, &holder);
    const List *next = call->parameters;

    foreach (cell, iteration->updates)
        next = apply_update(iteration, (const Update *)lfirst(cell), next, with_result(next, &program, reduced), keep);
    iteration->converged = is_done(iteration, next, &program, reduced);
    ++iteration->n_iter;
    return next;
}

static void run_loop(Iteration *iteration)
{
    MemoryContext caller = CurrentMemoryContext;
    TableCall *const table = iteration->reduction.call;
    MemoryContext own[2]; /* of parameters: each holds the last ones while the next are made */

    table_call_keep_rows(table);
    for (int i = 0; i < 2; ++i)
        own[i] = AllocSetContextCreate(table->context, "kmeans parameters", ALLOCSET_DEFAULT_SIZES);
    while (!iteration->converged && iteration->n_iter < iteration->max_iter) {
        MemoryContext kept = own[iteration->n_iter % 2];
        MemoryContext work = AllocSetContextCreate(table->context, "kmeans iteration", ALLOCSET_DEFAULT_SIZES);

        MemoryContextReset(kept);
        MemoryContextSwitchTo(work);
        iteration->reduction.parameters = iterate(iteration, kept);
        MemoryContextSwitchTo(caller);
        MemoryContextDelete(work);
    }
}

/*
 * kmeans_reduce_iterate(relation, reduction, start, update, until, max_iter) -> (params, n_iter, converged)
 *
 *   rows := SELECT the columns that the reduction names FROM relation, as the caller
 *   params := start
 *   repeat: r := kmeans_reduce(rows, params); params := update(r, params), until that is true, or max_iter times
 */
Datum pgkm_reduction_iterate(PG_FUNCTION_ARGS)
{
    Iteration iteration;
    TupleDesc tupdesc;
    ListCell *cell, *name;

    if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "kmeans_reduce_iterate must return a row");
    read_arguments(&iteration, fcinfo);

    const bool any = reduce_call_read(&iteration.reduction, fcinfo);

    foreach (cell, iteration.updates)
        foreach (name, ((const Update *)lfirst(cell))->names)
            check_parameter(&iteration, (const char *)lfirst(name));
    if (any)
        run_loop(&iteration);

    const Datum result = pgkm_composite_make(BlessTupleDesc(tupdesc),
                                             {PointerGetDatum(reduce_parameters_jsonb(iteration.reduction.parameters)),
                                              iteration.n_iter, iteration.converged});

    table_call_destroy(iteration.reduction.call);
    PG_RETURN_DATUM(result);
}

/*
 * iterate.cpp - reduction_iterate: a reduction in a loop whose parameters come from its last result.
 */
#include "pg/reduce/call.h"
#include "pg/reduce/definition.h"

#include <cmath>

extern "C" {
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_reduction_iterate);
}

/* Behind the relation. */
enum IterateArgument {
    ITERATE_NAME = TABLE_RELATION + 1,
    ITERATE_START,
    ITERATE_UPDATE,
    ITERATE_UNTIL,
    ITERATE_MAX_ITER
};

/* Names of the last result: the matrix of cells and values, and the rows of each cell. */
static const char result_name[] = "r";
static const char counts_name[] = "counts";

struct Iteration {
    ReduceCall reduction;
    ReduceFormula *updates; /* of parameters that each iteration makes anew; text.what is the name */
    int n_updates;
    int *first; /* of those that are made of the same parameters; with the end of all */
    int n_first;
    ReduceFormula until; /* term NULL: none */
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

/* Texts have places one behind the other, so that a place tells the text. */
static void add_update(Iteration *iteration, const char *name, const JsonbValue *value)
{
    const int n = iteration->n_updates++;

    if (value->type != jbvString)
        raise_update();
    iteration->updates = n == 0 ? (ReduceFormula *)palloc(sizeof(ReduceFormula))
                                : (ReduceFormula *)repalloc(iteration->updates, (n + 1) * sizeof(ReduceFormula));

    ReduceFormula *const update = &iteration->updates[n];
    const ReduceText *const before = n == 0 ? NULL : &update[-1].text;

    update->text = {name, pnstrdup(value->val.string.val, value->val.string.len),
                    before == NULL ? 0 : before->start + (int32)strlen(before->text) + 1};
    update->term = reduce_parse(&update->text);
}

/* At the beginning and end of an object. */
static void begin_updates(Iteration *iteration)
{
    const int n = iteration->n_first;

    iteration->first = n == 0 ? (int *)palloc(sizeof(int)) : (int *)repalloc(iteration->first, (n + 1) * sizeof(int));
    if (n == 0 || iteration->first[n - 1] < iteration->n_updates)
        iteration->first[iteration->n_first++] = iteration->n_updates;
}

static void read_updates(Iteration *iteration, Jsonb *updates)
{
    JsonbIterator *iterator = JsonbIteratorInit(&updates->root);
    JsonbIteratorToken token;
    JsonbValue value;
    const char *name = NULL;
    bool inside = false;

    while ((token = JsonbIteratorNext(&iterator, &value, inside)) != WJB_DONE) {
        if (token == WJB_BEGIN_OBJECT || token == WJB_END_OBJECT) {
            inside = token == WJB_BEGIN_OBJECT;
            begin_updates(iteration);
        } else if (token == WJB_KEY) {
            name = pnstrdup(value.val.string.val, value.val.string.len);
        } else if (token == WJB_VALUE) {
            add_update(iteration, name, &value);
        } else if (token == WJB_ELEM) {
            raise_update();
        }
    }
    if (iteration->n_updates == 0)
        raise_update();
}

static void check_name(const char *name)
{
    if (strcmp(name, result_name) == 0 || strcmp(name, counts_name) == 0)
        ereport(ERROR, (errcode(ERRCODE_RESERVED_NAME),
                        errmsg("a parameter of reduction_iterate must not be called \"%s\"", name),
                        errdetail("In update and until \"%s\" is the last result, \"%s\" are the rows of its cells.",
                                  result_name, counts_name)));
    if (strncmp(name, "old.", 4) == 0)
        ereport(ERROR, (errcode(ERRCODE_RESERVED_NAME),
                        errmsg("a parameter of reduction_iterate must not be called \"%s\"", name),
                        errdetail("In until names with \"old.\" are the parameters before the update.")));
}

static void read_arguments(Iteration *iteration, FunctionCallInfo fcinfo)
{
    static const char *const names[] = {"relation", "name", "start", "update"};

    for (int i = 0; i < (int)lengthof(names); ++i)
        if (PG_ARGISNULL(i))
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", names[i])));
    iteration->max_iter = PG_ARGISNULL(ITERATE_MAX_ITER) ? 100 : PG_GETARG_INT32(ITERATE_MAX_ITER);
    if (iteration->max_iter < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_iter must be at least 1")));
    iteration->reduction.function = "reduction_iterate";
    iteration->reduction.parameters = reduce_parameters_read(PG_GETARG_JSONB_P(ITERATE_START));
    for (int i = 0; i < iteration->reduction.parameters->n_names; ++i)
        check_name(iteration->reduction.parameters->names[i].name);
    read_updates(iteration, PG_GETARG_JSONB_P(ITERATE_UPDATE));
    for (int i = 0; i < iteration->n_updates; ++i)
        check_name(iteration->updates[i].text.what);
    if (!PG_ARGISNULL(ITERATE_UNTIL)) {
        iteration->until.text = {"until", text_to_cstring(PG_GETARG_TEXT_PP(ITERATE_UNTIL)), 0};
        iteration->until.term = reduce_parse(&iteration->until.text);
    }
    iteration->reduction.objects = reduction_find(fcinfo, PG_GETARG_TEXT_PP(ITERATE_NAME), &iteration->reduction.exact);
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

/* The values of expressions, one behind the other, matrices in row-major order, in the current memory context. */
static const double *evaluate(ReduceFormula *formulas, int n, const ReduceParameters *parameters)
{
    int64 n_rows;
    const ReduceProgram *const program = reduce_lower_formulas(formulas, n, parameters, &n_rows);
    const double *const numbers = make_numbers(n_rows, [](int64 i) { return (double)i; });
    PgkmJobHolder *holder = NULL;
    PgkmRequest request;

    memset(&request, 0, sizeof request);
    request.points = {numbers, PGKM_FLOAT64, n_rows, 1, NULL};
    reduce_request(&request, program, false);

    const PgkmReduced *const reduced = pgkm_run_aside(&request, CurrentMemoryContext, &holder)->reduced;

    if (reduced->fault != PGKM_FAULT_NONE) {
        const int32 place = reduced->expression < 0 ? 0 : program->expressions[reduced->expression].place;
        int i = n - 1;

        while (i > 0 && formulas[i].text.start > place)
            --i;
        reduce_raise_fault(reduced, program, &formulas[i].text, NULL);
    }
    return reduced->values;
}

/* The last result as parameters beside the others. What no row came to is 0. */
static const ReduceParameters *with_result(const ReduceParameters *parameters, const ReduceProgram *program,
                                           const PgkmReduced *reduced)
{
    const int64 cells = program->objects[0].cells;
    const int64 shape[] = {cells, reduce_object_width(program, 0)};
    const int64 length[] = {cells, 1};
    const double *const counts = make_numbers(cells, [reduced](int64 i) { return (double)reduced->counts[i]; });
    const double *const values = make_numbers(
        cells * shape[1], [reduced](int64 i) { return std::isnan(reduced->values[i]) ? 0 : reduced->values[i]; });

    return reduce_parameters_with(reduce_parameters_with(parameters, result_name, 2, shape, values), counts_name, 1,
                                  length, counts);
}

/* Those of one JSON object are made of the same parameters, those of the next one of what came of it. */
static const ReduceParameters *update_all(const Iteration *iteration, const ReduceProgram *program,
                                          const PgkmReduced *reduced)
{
    const ReduceParameters *next = iteration->reduction.parameters;

    for (int object = 0; object + 1 < iteration->n_first; ++object) {
        ReduceFormula *const updates = iteration->updates + iteration->first[object];
        const int n = iteration->first[object + 1] - iteration->first[object];
        const double *values = evaluate(updates, n, with_result(next, program, reduced));

        for (int i = 0; i < n; ++i) {
            const ReduceShape *const shape = &updates[i].shape;

            if (shape->truth)
                ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                                errmsg("parameter \"%s\" must be numbers, not a condition", updates[i].text.what)));
            next = reduce_parameters_with(next, updates[i].text.what, shape->dimensions, shape->extent, values);
            values += shape->extent[0] * shape->extent[1];
        }
    }
    return next;
}

static bool is_done(Iteration *iteration, const ReduceParameters *next, const ReduceProgram *program,
                    const PgkmReduced *reduced)
{
    const ReduceShape *const shape = &iteration->until.shape;

    if (iteration->until.term == NULL)
        return false;

    const ReduceParameters *const with =
        reduce_parameters_with_old(with_result(next, program, reduced), iteration->reduction.parameters);
    const double *const value = evaluate(&iteration->until, 1, with);

    if (!shape->truth || shape->dimensions > 0)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("until must be a condition")));
    return *value != 0;
}

/* --- the loop --- */

/* Of a result that is to become parameters: before it is made. */
static void check_size(const ReduceProgram *program)
{
    const int64 cells = program->objects[0].cells;
    const int64 width = reduce_object_width(program, 0);

    if (cells > PG_INT32_MAX || width > PG_INT32_MAX)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the result of a reduction in a loop is too large: %lld cells of %lld values",
                               (long long)cells, (long long)width)));
}

/* One iteration in a memory context of its own, which holds the job; the next parameters go to `keep`. */
static const ReduceParameters *iterate(Iteration *iteration, MemoryContext keep)
{
    ReduceCall *const call = &iteration->reduction;
    const ReduceProgram *const program = reduce_call_lower(call);
    PgkmJobHolder *holder = NULL;

    check_size(program);

    const PgkmReduced *const reduced = reduce_call_run(call, program, CurrentMemoryContext, &holder);
    const ReduceParameters *const next = update_all(iteration, program, reduced);

    iteration->converged = is_done(iteration, next, program, reduced);
    ++iteration->n_iter;

    MemoryContext own = MemoryContextSwitchTo(keep);
    const ReduceParameters *const kept = reduce_parameters_copy(next);

    MemoryContextSwitchTo(own);
    return kept;
}

static void run_loop(Iteration *iteration)
{
    MemoryContext caller = CurrentMemoryContext;
    TableCall *const table = iteration->reduction.call;
    MemoryContext own[2]; /* of an iteration, and of parameters: each holds the last ones while the next are made */

    table_call_keep_rows(table);
    for (int i = 0; i < 2; ++i)
        own[i] = AllocSetContextCreate(table->context, "kmeans iteration", ALLOCSET_DEFAULT_SIZES);
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
 * reduction_iterate(relation, name, start, update, until, max_iter) -> (params, n_iter, converged)
 *
 *   rows := SELECT the columns that the reduction names FROM relation, as the caller
 *   params := start
 *   repeat: r := reduce(rows, params); params := update(r, params), until that is true, or max_iter times
 */
Datum pgkm_reduction_iterate(PG_FUNCTION_ARGS)
{
    Iteration iteration;
    TupleDesc tupdesc;

    if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "reduction_iterate must return a row");
    memset(&iteration, 0, sizeof iteration);
    read_arguments(&iteration, fcinfo);
    iteration.reduction.call = table_call_create();

    const bool any = reduce_call_read(&iteration.reduction, fcinfo);

    for (int i = 0; i < iteration.n_updates; ++i)
        reduce_call_check_parameter(&iteration.reduction, iteration.updates[i].text.what);
    if (any)
        run_loop(&iteration);

    const Datum result = pgkm_composite_make(BlessTupleDesc(tupdesc),
                                             {PointerGetDatum(reduce_parameters_jsonb(iteration.reduction.parameters)),
                                              iteration.n_iter, iteration.converged});

    table_call_destroy(iteration.reduction.call);
    PG_RETURN_DATUM(result);
}

/*
 * row.cpp - finds the columns of a model in a row, and makes features of their values.
 */
#include "pg/model/row.h"

#include <algorithm>

#include "pg/columns/levels.h"
#include "pg/model/origin.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

/* Where the row has a source, and what it is there. */
struct RowSource {
    int place; /* -1: it is computed */
    TableColumn column;
    PgkmCast *cast;         /* of a vector */
    ExpressionState *state; /* of an expression */
};

struct RowMap {
    MemoryContext context;
    uint64 identifier; /* of the type of a composite value */
    TupleDesc desc;    /* of it, a copy */
    RowSource *list;   /* of each source */
    Levels *levels;    /* NULL: none is a category */
    bool is_real;
    int marker;    /* the column that is NULL where there is no row; -1: none */
    Datum *values; /* of the row */
    bool *nulls;
};

[[noreturn]] static void raise_nameless(const PgkmCompositeType *type)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the model does not know its columns"),
                    errdetail("The origin of this %s names no columns, or not as many as it has features.", type->name),
                    errhint("Pass the features as an array, ARRAY[x, y], or name them by jsonb_populate_record(model, "
                            "'{\"origin\": {\"features\": [\"x\", \"y\"]}}').")));
    pg_unreachable();
}

static void read_sources(ModelColumns *columns, Datum composite, int32 d)
{
    MemoryContext caller = MemoryContextSwitchTo(columns->context);
    PgkmModelFields from;

    pgkm_model_open(composite, columns->type, CurrentMemoryContext, &from);

    const Sources *const sources = origin_read(&from, d).sources;

    MemoryContextSwitchTo(caller);
    if (sources == NULL)
        raise_nameless(columns->type);
    columns->sources = sources;
}

/* The place of the column of this name; -1: there is none. */
static int find_place(const ExpressionColumns *shape, const char *name)
{
    int place = -1;

    for (int i = 0; i < shape->count; ++i) {
        if (!OidIsValid(shape->columns[i].type) || strcmp(shape->columns[i].name, name) != 0)
            continue;
        if (place >= 0)
            ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN), errmsg("the row has two columns \"%s\"", name),
                            errhint("Give one of them another name in a subquery.")));
        place = i;
    }
    return place;
}

[[noreturn]] static void raise_missing(const char *name)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("the row has no column \"%s\"", name),
                    errdetail("The model has features of it."),
                    errhint("Where the row has it under another name, rename it in a subquery: FROM (SELECT "
                            "another AS %s, ... FROM ...) AS t.",
                            quote_identifier(name))));
    pg_unreachable();
}

/* Has the source computed, and returns its type. */
static Oid begin_expression(const ExpressionColumns *shape, const Source *source, RowSource *found)
{
    const Expression *const expression = expression_parse(source->name, shape, EXPRESSION_FEATURE);

    found->state = expression_begin(expression, shape->columns);
    return getBaseType(expression->type);
}

static void find_source(const ExpressionColumns *shape, const Source *source, RowSource *found)
{
    found->place = find_place(shape, source->name);
    if (found->place < 0 && !source->is_expression)
        raise_missing(source->name);

    const Oid type =
        found->place < 0 ? begin_expression(shape, source, found) : getBaseType(shape->columns[found->place].type);

    if (!column_classify(&found->column, source->name, type) || encoding_of(&found->column) != source->encoding)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg(source->is_expression ? "\"%s\" has type %s, which is not what the model was fitted to"
                                              : "column \"%s\" has type %s, which is not what the model was fitted to",
                        source->name, format_type_be(type)),
                 errdetail("Its encoding in the model is %s.", pgkm_word_of(&encoding_words, source->encoding)),
                 source->is_expression ? errhint("Cast the columns that it reads, in a subquery.")
                                       : errhint("Cast it in a subquery: FROM (SELECT %s::%s, ... FROM ...) AS t.",
                                                 quote_identifier(source->name), encoding_type(source->encoding))));
    found->cast = source->encoding == ENCODING_VECTOR ? pgkm_cast_make(CurrentMemoryContext, type) : NULL;
}

static RowMap *make_map(ModelColumns *columns, const ExpressionColumns *shape)
{
    const Sources *const sources = columns->sources;
    const MemoryContext context = AllocSetContextCreate(columns->context, "kmeans row", ALLOCSET_SMALL_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(context);
    RowMap *const map = (RowMap *)palloc0(sizeof(RowMap));
    TableColumn *const all = (TableColumn *)palloc(sources->count * sizeof(TableColumn));
    Datum *const levels = (Datum *)palloc(sources->count * sizeof(Datum));

    map->context = context;
    map->list = (RowSource *)palloc0(sources->count * sizeof(RowSource));
    map->values = (Datum *)palloc((shape->count + 1) * sizeof(Datum)); /* a marker's too */
    map->nulls = (bool *)palloc(shape->count + 1);
    for (int i = 0; i < sources->count; ++i) {
        find_source(shape, &sources->list[i], &map->list[i]);
        all[i] = map->list[i].column;
        levels[i] = sources->list[i].levels;
    }
    map->is_real = sources->is_real && table_columns_element(all, sources->count) == PGKM_FLOAT32;
    if (table_columns_have_categories(all, sources->count))
        map->levels = levels_create(all, sources->count, levels);
    MemoryContextSwitchTo(caller);
    return map;
}

/* --- the two forms of a row --- */

/* NULL where there is no row. The first call says which names there are: in a plan they are a constant. */
static const RowMap *open_columns(FunctionCallInfo fcinfo, int number, ModelColumns *columns)
{
    const int count = PG_NARGS() - number - 1;

    if (unlikely(columns->map == NULL)) {
        ExpressionColumn *const list = (ExpressionColumn *)palloc(count * sizeof(ExpressionColumn));
        Datum *texts;
        int n;

        if (PG_ARGISNULL(number)) /* of a call that no plan has made */
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("names must not be null")));
        deconstruct_array(PG_GETARG_ARRAYTYPE_P(number), TEXTOID, -1, false, TYPALIGN_INT, &texts, NULL, &n);
        if (n != count || fcinfo->flinfo->fn_expr == NULL || !IsA(fcinfo->flinfo->fn_expr, FuncExpr))
            elog(ERROR, "%d names for %d columns", n, count);
        for (int i = 0; i < n; ++i) {
            Node *const column = (Node *)list_nth(((const FuncExpr *)fcinfo->flinfo->fn_expr)->args, number + 1 + i);

            list[i] = {TextDatumGetCString(texts[i]), exprType(column), exprTypmod(column), exprCollation(column)};
        }

        const bool is_marked = list[n - 1].name[0] == '\0';
        const ExpressionColumns shape = {list, n - is_marked, "the row"};

        columns->map = make_map(columns, &shape);
        columns->map->marker = is_marked ? n - 1 : -1;
    }
    if (columns->map->marker >= 0 && fcinfo->args[number + 1 + columns->map->marker].isnull)
        return NULL;
    for (int i = 0; i < count; ++i) {
        columns->map->values[i] = fcinfo->args[number + 1 + i].value;
        columns->map->nulls[i] = fcinfo->args[number + 1 + i].isnull;
    }
    return columns->map;
}

static RowMap *map_of_type(ModelColumns *columns, Oid type, int32 typmod, uint64 identifier)
{
    const TupleDesc desc = lookup_rowtype_tupdesc(type, typmod);
    ExpressionColumn *const list = (ExpressionColumn *)palloc0((desc->natts + 1) * sizeof(ExpressionColumn));

    for (int i = 0; i < desc->natts; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(desc, i);

        if (!attribute->attisdropped)
            list[i] = {NameStr(attribute->attname), attribute->atttypid, attribute->atttypmod, attribute->attcollation};
    }

    const ExpressionColumns shape = {list, desc->natts, "the row"};
    RowMap *const map = make_map(columns, &shape);
    MemoryContext caller = MemoryContextSwitchTo(map->context);

    map->desc = CreateTupleDescCopy(desc);
    map->identifier = identifier;
    MemoryContextSwitchTo(caller);
    ReleaseTupleDesc(desc);
    pfree(list);
    return map;
}

/* Its type can change from row to row, and behind a prepared plan. */
static const RowMap *open_composite(Datum composite, ModelColumns *columns)
{
    const HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
    const Oid type = HeapTupleHeaderGetTypeId(header);
    const int32 typmod = HeapTupleHeaderGetTypMod(header);
    const uint64 identifier = assign_record_type_identifier(type, typmod);
    HeapTupleData tuple;

    if (unlikely(columns->map == NULL || columns->map->identifier != identifier)) {
        RowMap *const before = columns->map;

        columns->map = NULL;
        if (before != NULL)
            MemoryContextDelete(before->context);
        columns->map = map_of_type(columns, type, typmod, identifier);
    }
    tuple.t_len = HeapTupleHeaderGetDatumLength(header);
    ItemPointerSetInvalid(&tuple.t_self);
    tuple.t_tableOid = InvalidOid;
    tuple.t_data = header;
    heap_deform_tuple(&tuple, columns->map->desc, columns->map->values, columns->map->nulls);
    return columns->map;
}

/* --- features --- */

[[noreturn]] static void raise_null(const Source *source)
{
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
             errmsg(source->is_expression ? "\"%s\" must not be null" : "column \"%s\" must not be null", source->name),
             errhint("A model that was fitted with nulls => 'mean' has a value for it.")));
    pg_unreachable();
}

/* The value of a source. */
static NullableDatum value_of(const RowMap *map, const RowSource *source)
{
    return likely(source->place >= 0) ? NullableDatum{map->values[source->place], map->nulls[source->place]}
                                      : expression_value(source->state, map->values, map->nulls, NULL);
}

static void write_number(const RowSource *from, const Source *source, Datum value, double *to)
{
    PgkmRowFault fault;

    if (unlikely(!pgkm_read_number(value, from->column.type, 1, to, &fault)))
        pgkm_raise_value_fault(fault.kind, psprintf(source->is_expression ? "\"%s\"" : "column \"%s\"", source->name),
                               NULL);
}

/* Numbers and categories. */
static double *read_values(const RowMap *map, const Sources *sources, int32 d, const double *fills)
{
    double *const row = (double *)palloc(d * sizeof(double));
    const Source *lacking = NULL;
    bool any = false;
    int32 f = 0;

    for (int i = 0; i < sources->count; f += sources->list[i++].width) {
        const Source *const source = &sources->list[i];
        const NullableDatum value = value_of(map, &map->list[i]);

        any = any || !value.isnull;
        if (source->encoding == ENCODING_CATEGORY) {
            const double code = levels_code(map->levels, i, value);

            std::fill_n(row + f, source->width, 0.0);
            if (code >= 0)
                row[f + (int32)code] = 1.0;
        } else if (!value.isnull) {
            write_number(&map->list[i], source, value.value, &row[f]);
        } else if (fills != NULL) {
            row[f] = fills[f];
        } else if (lacking == NULL) {
            lacking = source;
        }
    }
    if (!any)
        return NULL;
    if (lacking != NULL)
        raise_null(lacking);
    return row;
}

double *model_row(FunctionCallInfo fcinfo, int number, int32 d, const double *fills, ModelColumns *columns,
                  PgkmElement *element, int behind)
{
    /* Of a transition function, whose state comes first, what follows are other arguments. */
    const bool is_columns = number == 1 && PG_NARGS() > number + 1 + behind;

    if (!is_columns && !pgkm_argument_is_row(fcinfo->flinfo, number))
        return pgkm_read_row(fcinfo, number, d, "feature", element, fills);
    if (!is_columns && PG_ARGISNULL(number))
        return NULL;
    if (columns->sources == NULL)
        read_sources(columns, fcinfo->args[number - 1].value, d);

    const Sources *const sources = columns->sources;
    const RowMap *const map =
        is_columns ? open_columns(fcinfo, number, columns) : open_composite(fcinfo->args[number].value, columns);

    if (map == NULL)
        return NULL;
    if (sources->list[0].encoding == ENCODING_VECTOR)
        return pgkm_read_array(pgkm_cast_value(map->list[0].cast, value_of(map, &map->list[0])), d, "feature", element,
                               fills);
    *element = map->is_real ? PGKM_FLOAT32 : PGKM_FLOAT64;
    return read_values(map, sources, d, fills);
}

/*
 * definition.cpp - reduction_define, reduction_drop, and finding a reduction by its name.
 */
#include "pg/reduce/definition.h"

extern "C" {
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(pgkm_reduction_define);
PG_FUNCTION_INFO_V1(pgkm_reduction_drop);
PG_FUNCTION_INFO_V1(pgkm_reduction_check_owner);
}

/* Of reduction_define, behind the name: the texts, then these. */
enum DefineArgument {
    DEFINE_NAME,
    DEFINE_INDEX,
    DEFINE_LET = DEFINE_INDEX + REDUCE_TEXTS,
    DEFINE_EXACT,
    DEFINE_RUNNERS
};

static text *name_argument(FunctionCallInfo fcinfo)
{
    if (PG_ARGISNULL(DEFINE_NAME))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("name must not be null")));

    text *const name = PG_GETARG_TEXT_PP(DEFINE_NAME);

    if (VARSIZE_ANY_EXHDR(name) == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("name must not be empty")));
    return name;
}

/* A statement about the table, which is in the schema of the function. Types and operators are named in full: the
 * search path may be anything. */
static char *statement(FunctionCallInfo fcinfo, const char *format)
{
    return psprintf(format, quote_qualified_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)),
                                                       "reduction_definitions"));
}

/* The definition, copied to the caller's context; NULL when there is none that the caller may run. */
static Jsonb *find(FunctionCallInfo fcinfo, text *name)
{
    MemoryContext caller = CurrentMemoryContext;
    Oid types[] = {TEXTOID};
    Datum values[] = {PointerGetDatum(name)};
    char *const query = statement(
        fcinfo, "SELECT definition FROM %s WHERE name OPERATOR(pg_catalog.=) $1 AND "
                "(runners IS NULL OR pg_catalog.pg_has_role(owner, 'USAGE') OR "
                "EXISTS (SELECT FROM pg_catalog.unnest(runners) AS r WHERE pg_catalog.pg_has_role(r, 'USAGE')))");
    Jsonb *definition = NULL;

    SPI_connect();
    if (SPI_execute_with_args(query, 1, types, values, NULL, true, 1) != SPI_OK_SELECT)
        elog(ERROR, "reading reduction_definitions failed");
    if (SPI_processed > 0) {
        bool isnull;
        const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);

        MemoryContextSwitchTo(caller);
        definition = DatumGetJsonbPCopy(value);
    }
    SPI_finish();
    return definition;
}

ReduceObjects *reduction_find(FunctionCallInfo fcinfo, text *name, bool *exact)
{
    Jsonb *const definition = find(fcinfo, name);

    if (definition == NULL)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("there is no reduction \"%s\" that you may run", text_to_cstring(name))));
    return reduce_objects_of_definition(definition, exact);
}

static Datum make_definition(const ReduceObjects *objects, Jsonb *lets, bool exact)
{
    StringInfoData json;

    initStringInfo(&json);
    appendStringInfo(&json, "{\"exact\": %s", exact ? "true" : "false");
    for (int i = 0; i < REDUCE_TEXTS; ++i) {
        const ReduceText *const text = reduce_object_text(&objects->objects[0], i);

        if (text->text != NULL) {
            appendStringInfo(&json, ", \"%s\": ", text->what);
            escape_json(&json, text->text);
        }
    }
    if (lets != NULL)
        appendStringInfo(&json, ", \"let\": %s", JsonbToCString(NULL, &lets->root, VARSIZE(lets)));
    appendStringInfoChar(&json, '}');
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/*
 * reduction_define(name, index, value, cells, op, filter, key, let, exact, runners) -> void
 *
 * Checks the texts as far as that goes without columns, and keeps them.
 */
Datum pgkm_reduction_define(PG_FUNCTION_ARGS)
{
    text *const name = name_argument(fcinfo);
    ReduceObjects *const objects = reduce_objects_of_arguments(fcinfo, DEFINE_INDEX);
    Oid types[] = {TEXTOID, JSONBOID, REGROLEARRAYOID};
    const bool exact = !PG_ARGISNULL(DEFINE_EXACT) && PG_GETARG_BOOL(DEFINE_EXACT);

    PreventCommandIfReadOnly("reduction_define()");
    reduce_objects_parse(objects);

    Datum values[] = {PointerGetDatum(name),
                      make_definition(objects, PG_ARGISNULL(DEFINE_LET) ? NULL : PG_GETARG_JSONB_P(DEFINE_LET), exact),
                      PG_GETARG_DATUM(DEFINE_RUNNERS)};
    const char nulls[] = {' ', ' ', PG_ARGISNULL(DEFINE_RUNNERS) ? 'n' : ' '};
    char *const insert = statement(fcinfo, "INSERT INTO %s (name, definition, runners) VALUES ($1, $2, $3) "
                                           "ON CONFLICT DO NOTHING");

    SPI_connect();
    if (SPI_execute_with_args(insert, lengthof(types), types, values, nulls, false, 0) != SPI_OK_INSERT)
        elog(ERROR, "writing reduction_definitions failed");
    if (SPI_processed == 0)
        ereport(ERROR,
                (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("reduction \"%s\" already exists", text_to_cstring(name))));
    SPI_finish();
    PG_RETURN_VOID();
}

static void check_owner(const TriggerData *trigger, HeapTuple row)
{
    const TupleDesc columns = RelationGetDescr(trigger->tg_relation);
    bool isnull;
    const Datum owner = heap_getattr(row, SPI_fnumber(columns, "owner"), columns, &isnull);

    if (isnull || !has_privs_of_role(GetUserId(), DatumGetObjectId(owner)))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("must be owner of reduction \"%s\"",
                               SPI_getvalue(row, columns, SPI_fnumber(columns, "name")))));
}

/*
 * pgkm_reduction_check_owner() -> trigger
 *
 * Before a row is written or deleted: 42501 unless the user has the rights of its owner. A policy would do the same,
 * but pg_dump stops at tables with row security.
 */
Datum pgkm_reduction_check_owner(PG_FUNCTION_ARGS)
{
    const TriggerData *const trigger = (TriggerData *)fcinfo->context;

    if (!CALLED_AS_TRIGGER(fcinfo) || trigger->tg_trigtuple == NULL ||
        SPI_fnumber(RelationGetDescr(trigger->tg_relation), "owner") <= 0 ||
        SPI_fnumber(RelationGetDescr(trigger->tg_relation), "name") <= 0)
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("pgkm_reduction_check_owner is a trigger of reduction_definitions")));
    check_owner(trigger, trigger->tg_trigtuple);
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        return PointerGetDatum(trigger->tg_trigtuple);
    check_owner(trigger, trigger->tg_newtuple);
    return PointerGetDatum(trigger->tg_newtuple);
}

/* reduction_drop(name) -> void */
Datum pgkm_reduction_drop(PG_FUNCTION_ARGS)
{
    text *const name = name_argument(fcinfo);
    Oid types[] = {TEXTOID};
    Datum values[] = {PointerGetDatum(name)};

    PreventCommandIfReadOnly("reduction_drop()");

    char *const query = statement(fcinfo, "DELETE FROM %s WHERE name OPERATOR(pg_catalog.=) $1");

    SPI_connect();
    if (SPI_execute_with_args(query, lengthof(types), types, values, NULL, false, 0) != SPI_OK_DELETE)
        elog(ERROR, "writing reduction_definitions failed");
    if (SPI_processed == 0)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no reduction \"%s\"", text_to_cstring(name))));
    SPI_finish();
    PG_RETURN_VOID();
}

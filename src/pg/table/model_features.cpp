/*
 * model_features.cpp - whether a model that a call is given is one of the columns that it names.
 */
#include "pg/table/call.h"

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
}

Datum table_feature_names(const TableColumns *columns)
{
    const int count = columns->n_features;
    Datum *const names = (Datum *)palloc(count * sizeof(Datum));

    for (int i = 0; i < count; ++i)
        names[i] = CStringGetTextDatum(columns->features[i].name);
    return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* An array of names as a literal: '{x,y}'. */
static char *literal_of(Datum names)
{
    return quote_literal_cstr(OidOutputFunctionCall(F_ARRAY_OUT, names));
}

/* What makes a model one of these features, for the hint. */
static char *renaming_of(const TableCall *call)
{
    StringInfoData json;

    initStringInfo(&json);
    appendStringInfoString(&json, "{\"origin\": {\"features\": [");
    for (int i = 0; i < call->n_features; ++i) {
        appendStringInfoString(&json, i == 0 ? "" : ", ");
        escape_json(&json, call->features[i].name);
    }
    appendStringInfoString(&json, "]}}");
    return psprintf("jsonb_populate_record(model, %s)", quote_literal_cstr(json.data));
}

void table_call_check_model(const TableCall *call)
{
    Datum *names;
    int count;
    bool same;
    bool are_there = true;

    if (call->model_features == (Datum)0)
        return;
    deconstruct_array(DatumGetArrayTypeP(call->model_features), TEXTOID, -1, false, TYPALIGN_INT, &names, NULL, &count);
    same = count == call->n_features;
    for (int i = 0; i < count; ++i) {
        const char *const name = TextDatumGetCString(names[i]);

        same = same && strcmp(name, call->features[i].name) == 0;
        are_there = are_there && get_attnum(call->relation.id, name) != InvalidAttrNumber;
    }
    if (same)
        return;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the model is one of other features"),
             errdetail("The features of the model are %s, those of the call are %s.", literal_of(call->model_features),
                       literal_of(table_feature_names(call))),
             are_there ? errhint("Write features => %s.", literal_of(call->model_features))
                       : errhint("If the columns hold the features of the model under other names, write %s in the "
                                 "place of the model.",
                                 renaming_of(call))));
}

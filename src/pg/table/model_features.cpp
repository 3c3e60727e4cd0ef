/*
 * model_features.cpp - whether a model that a call is given is one of the columns that it names; names of features.
 */
#include "pg/table/call.h"

#include <algorithm>

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
}

/* An array of names as a literal: '{x,y}'. */
static char *literal_of(Datum names)
{
    return quote_literal_cstr(OidOutputFunctionCall(F_ARRAY_OUT, names));
}

static Datum names_of(const Sources *model)
{
    return pgkm_text_array(model->count, [model](int i) { return model->list[i].name; });
}

/* What makes a model one of these features, for the hint. What it knows of its own does not count where there are more
 * or fewer. */
static char *renaming_of(const TableCall *call)
{
    StringInfoData json;

    initStringInfo(&json);
    appendStringInfoString(&json, "{\"origin\": {\"features\": [");
    for (int i = 0; i < call->n_features; ++i) {
        appendStringInfoString(&json, i == 0 ? "" : ", ");
        escape_json(&json, call->features[i].name);
    }
    appendStringInfo(&json, "]%s}}", call->n_features == call->model->count ? "" : ", \"sources\": null");
    return psprintf("jsonb_populate_record(model, %s)", quote_literal_cstr(json.data));
}

void table_call_take_model(TableCall *call, const Sources *model)
{
    call->model = model;
    if (model != NULL && call->arguments.features.isnull)
        call->arguments.features = {names_of(model), false};
}

/* Whether the relation has a column of this name, or the call names it, be it an expression. */
static bool is_there(const TableCall *call, const char *name)
{
    const auto is_it = [name](const TableColumn &feature) { return strcmp(feature.name, name) == 0; };

    return get_attnum(call->relation.id, name) != InvalidAttrNumber ||
           std::any_of(call->features, call->features + call->n_features, is_it);
}

static void check_names(const TableCall *call)
{
    const Sources *const model = call->model;
    bool same = model->count == call->n_features;
    bool are_there = true;

    for (int i = 0; i < model->count; ++i) {
        same = same && strcmp(model->list[i].name, call->features[i].name) == 0;
        are_there = are_there && is_there(call, model->list[i].name);
    }
    if (same)
        return;

    const char *const theirs = literal_of(names_of(model));

    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the model is one of other features"),
             errdetail("The features of the model are %s, those of the call are %s.", theirs,
                       literal_of(sources_names(call->features, call->n_features))),
             are_there ? errhint("Write features => %s.", theirs)
                       : errhint("If the columns hold the features of the model under other names, write %s in the "
                                 "place of the model.",
                                 renaming_of(call))));
}

void table_call_check_model(TableCall *call)
{
    const Sources *const model = call->model;

    if (model == NULL)
        return;
    check_names(call);

    Datum *const levels = (Datum *)palloc0(model->count * sizeof(Datum));

    for (int i = 0; i < model->count; ++i) {
        const Encoding encoding = encoding_of(&call->features[i]);

        levels[i] = model->list[i].levels;
        if (encoding != model->list[i].encoding)
            ereport(ERROR,
                    (errcode(ERRCODE_DATATYPE_MISMATCH),
                     errmsg("column \"%s\" has other values than in the fit of the model", call->features[i].name),
                     errdetail("Its encoding is %s, that of the model is %s.", pgkm_word_of(&encoding_words, encoding),
                               pgkm_word_of(&encoding_words, model->list[i].encoding)),
                     model->list[i].encoding == ENCODING_VECTOR
                         ? errhint("Name a column that holds an array of numbers, or a vector.")
                         : errhint("Cast it in a view, as %s::%s, and name the view.",
                                   quote_identifier(call->features[i].name), encoding_type(model->list[i].encoding))));
    }
    call->levels = levels;
}

const char *table_feature_name(const TableCall *call, int32 f)
{
    Source *const list = (Source *)palloc0(call->n_features * sizeof(Source));
    const Sources sources = {call->n_features, list, false};

    for (int i = 0; i < call->n_features; ++i)
        list[i] = {.name = call->features[i].name,
                   .is_expression = call->features[i].expression != NULL,
                   .encoding = encoding_of(&call->features[i]),
                   .width = call->rows->widths[i],
                   .levels = call->levels == NULL ? (Datum)0 : call->levels[i],
                   .type = NULL};
    return sources_feature_name(&sources, f);
}

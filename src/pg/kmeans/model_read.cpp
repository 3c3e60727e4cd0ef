/*
 * model_read.cpp - kmeans_model unpacked and checked.
 */
#include "pg/kmeans/model.h"

#include "pg/compat.h"
#include "pg/values/composite_read.h"
#include "pg/kmeans/model_fields.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

static const Oid field_types[MODEL_COUNT] = {INT4OID, INT4OID, FLOAT8ARRAYOID, INT8ARRAYOID, FLOAT8ARRAYOID,
                                             FLOAT8OID, INT4OID, BOOLOID, INT8OID, TEXTOID,
                                             INT8OID, FLOAT8ARRAYOID, FLOAT8ARRAYOID};

const PgkmCompositeType pgkm_model_type = {"kmeans_model", field_types, MODEL_COUNT};

/* Whether (value - center) / scale is the value. */
static bool is_identity(const PgkmModel *model)
{
    bool same = true;

    for (int32 f = 0; f < model->d; ++f)
        same = same && model->center[f] == 0 && model->scale[f] == 1;
    return same;
}

static void read_standardization(const PgkmFields *fields, PgkmModel *model)
{
    model->center = NULL;
    model->scale = NULL;
    if (fields->nulls[MODEL_CENTER] && fields->nulls[MODEL_SCALE])
        return;
    model->center = pgkm_field_numbers(
        fields, MODEL_CENTER, "Field center must hold d finite values, or be null like scale.", 0, model->d, 0);
    model->scale = pgkm_field_numbers(
        fields, MODEL_SCALE, "Field scale must hold d finite values, or be null like center.", 0, model->d, 0);
    for (int32 f = 0; f < model->d; ++f)
        if (!(model->scale[f] > 0))
            pgkm_raise_fields(fields, "Field scale must hold positive values.");
    if (is_identity(model))
        model->center = model->scale = NULL;
}

static int32 read_extent(const PgkmFields *fields, ModelField field)
{
    const int32 extent = fields->nulls[field] ? 0 : DatumGetInt32(fields->values[field]);

    if (extent < 1)
        pgkm_raise_fields(fields, "Fields k and d must be at least 1.");
    return extent;
}

static void read_fields(const PgkmFields *fields, PgkmModel *model)
{
    model->k = read_extent(fields, MODEL_K);
    model->d = read_extent(fields, MODEL_D);
    if (fields->nulls[MODEL_METRIC] ||
        !pgkm_metric_from_name(TextDatumGetCString(fields->values[MODEL_METRIC]), &model->metric))
        pgkm_raise_fields(fields, "Field metric must be 'l2' or 'cosine'.");
    model->centroids = pgkm_field_numbers(fields, MODEL_CENTROIDS, "Field centroids must hold k x d finite values.",
                                          0, model->k, model->d);
    model->sizes =
        (const int64 *) pgkm_field_array(fields, MODEL_SIZE, "Field size must hold k values.", 0, model->k, 0);
    model->within_ss =
        pgkm_field_numbers(fields, MODEL_WITHIN_SS, "Field within_ss must hold k finite values.", 0, model->k, 0);
    read_standardization(fields, model);
}

void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model)
{
    Datum            values[MODEL_COUNT];
    bool             nulls[MODEL_COUNT];
    const PgkmFields fields = {pgkm_model_type.name, values, nulls, context};

    pgkm_read_composite(composite, &pgkm_model_type, values, nulls);
    read_fields(&fields, model);
}

static void read_model(Datum composite, MemoryContext context, void *model)
{
    pgkm_model_read(composite, context, (PgkmModel *) model);
}

const PgkmModel *pgkm_model_cached(FunctionCallInfo fcinfo, int number)
{
    return (const PgkmModel *) pgkm_cached_model(fcinfo, number, sizeof(PgkmModel), read_model);
}

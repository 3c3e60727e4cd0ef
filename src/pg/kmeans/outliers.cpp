/*
 * outliers.cpp - kmeans_outliers: the rows of a table that lie far from every centroid of a model.
 */
#include "pg/compat.h"

#include <cmath>

#include "pg/kmeans/model.h"

extern "C" {
#include "miscadmin.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_outliers);
}

/* Behind relation and features. */
enum OutlierArgument { OUTLIER_MODEL = TABLE_FEATURES + 1, OUTLIER_THRESHOLD, OUTLIER_NULLS, OUTLIER_FILTER };

struct Outlier {
    int64 position; /* among all rows */
    int32 cluster;
    double square; /* the distance to its centroid */
    double score;
};

struct Outliers {
    Outlier *list;
    int64 count;
    int64 capacity;
};

static void add(Outliers *outliers, const Outlier *one)
{
    if (outliers->count == outliers->capacity) {
        outliers->capacity *= 2;
        outliers->list = (Outlier *)repalloc_huge(outliers->list, outliers->capacity * sizeof(Outlier));
    }
    outliers->list[outliers->count++] = *one;
}

/* The highest score first. */
static int compare(const void *a, const void *b)
{
    const Outlier *const one = (const Outlier *)a;
    const Outlier *const other = (const Outlier *)b;

    CHECK_FOR_INTERRUPTS();
    if (one->score != other->score)
        return one->score > other->score ? -1 : 1;
    return one->position < other->position ? -1 : 1;
}

/* The row in the model's space. What it lacks is NaN until now. */
static void read_row(const PgkmRows *used, int64 i, const PgkmModel *model, double *row)
{
    const char *const values = used->values + i * used->row_bytes;

    for (int32 f = 0; f < model->d; ++f)
        row[f] = used->element == PGKM_BIT       ? (double)pgkm_bit_is_set(values, f)
                 : used->element == PGKM_FLOAT32 ? ((const float *)values)[f]
                                                 : ((const double *)values)[f];
    for (int32 f = 0; model->fills != NULL && f < model->d; ++f)
        if (std::isnan(row[f]))
            row[f] = model->fills[f];
    pgkm_model_place(model, used->element, row, i + 1);
}

/* How many times the root mean square distance of its cluster, or the mean Hamming distance, a row lies away. */
static double score_of(const PgkmModel *model, int32 cluster, double square)
{
    const double mass = pgkm_model_mass(model, cluster);
    const double typical = mass > 0 ? model->within_ss[cluster] / mass : 0.0;

    if (square == 0)
        return 0;
    if (typical > 0)
        return model->metric == PGKM_HAMMING ? square / typical : std::sqrt(square / typical);
    return get_float8_infinity();
}

static void find(const TableRows *rows, const PgkmModel *model, double threshold, Outliers *outliers)
{
    double *const row = (double *)palloc(model->d * sizeof(double));
    double *const octets =
        (double *)palloc_extended(pgkm_octets_size(model->k, model->d) * sizeof(double), MCXT_ALLOC_HUGE);
    TableCursor cursor;
    Outlier one;

    pgkm_octets(model->centroids, model->k, model->d, octets);
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        if (cursor.used < 0)
            continue;
        CHECK_FOR_INTERRUPTS();
        read_row(rows->used, cursor.used, model, row);
        pgkm_nearest_of_octets(row, octets, model->k, model->d, &one.cluster, &one.square);
        one.position = cursor.position;
        one.score = score_of(model, one.cluster, one.square);
        if (one.score > threshold)
            add(outliers, &one);
    }
    pfree(octets);
    pfree(row);
}

static double threshold_argument(FunctionCallInfo fcinfo)
{
    const double threshold = PG_ARGISNULL(OUTLIER_THRESHOLD) ? 3.0 : PG_GETARG_FLOAT8(OUTLIER_THRESHOLD);

    if (!(threshold >= 0))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("threshold must be at least 0")));
    return threshold;
}

static TableRows *read_rows(TableCall *call, FunctionCallInfo fcinfo, const PgkmModel *model, const Origin *origin)
{
    call->need_direction = model->metric == PGKM_COSINE && model->center == NULL;
    call->takes_bits = model->metric == PGKM_HAMMING;
    call->arguments = {.relation = table_call_relation(fcinfo),
                       .features = fcinfo->args[TABLE_FEATURES],
                       .nulls = fcinfo->args[OUTLIER_NULLS],
                       .filter = fcinfo->args[OUTLIER_FILTER]};
    table_call_take_model(call, origin->sources);
    table_call_find(call, TABLE_LOCATE);
    call->keeps_missing = model->fills != NULL;
    if (call->keeps_missing && PG_ARGISNULL(OUTLIER_NULLS))
        call->nulls = TABLE_NULLS_MEAN;

    TableRows *const rows = table_call_read(call, "kmeans_outliers", {.need_ctid = true});

    if (rows->used != NULL && rows->used->d != model->d)
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("the model has %s, not %d", pgkm_counted(model->d, "feature"), rows->used->d)));
    return rows;
}

/*
 * kmeans_outliers(relation, features, model, threshold, nulls, filter)
 *     -> setof (row_ctid, cluster_id, distance, score, row_table)
 *
 *   rows := SELECT features, ctid, tableoid FROM relation, as the caller
 *   score := distance to the nearest centroid / root mean square (hamming: mean) distance of that cluster
 *   return the rows whose score is above the threshold, the highest first
 */
Datum pgkm_kmeans_outliers(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    const double threshold = threshold_argument(fcinfo);
    TableCall *const call = table_call_create();
    PgkmModel model;
    Outliers outliers = {(Outlier *)palloc(64 * sizeof(Outlier)), 0, 64};

    const Datum given = pgkm_required(&fcinfo->args[OUTLIER_MODEL], "model");

    pgkm_model_read(given, call->context, &model);

    const Origin origin = pgkm_model_origin(given);

    const TableRows *const rows = read_rows(call, fcinfo, &model, &origin);

    find(rows, &model, threshold, &outliers);
    qsort(outliers.list, outliers.count, sizeof(Outlier), compare);
    for (int64 i = 0; i < outliers.count; ++i) {
        const Outlier *const one = &outliers.list[i];
        const Oid table = table_rows_table(rows, one->position);
        const double distance = fit_distance(one->square, model.metric);

        CHECK_FOR_INTERRUPTS();
        pgkm_result_put(result,
                        {PointerGetDatum(&rows->ctids[one->position]), one->cluster, distance, one->score, table});
    }
    table_call_destroy(call);
    return (Datum)0;
}

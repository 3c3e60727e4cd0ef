/*
 * plane.cpp - rows as points of a plane, with the cluster of each.
 */
#include "pg/plot/plane.h"

#include <cmath>

#include "pg/plot/svg.h"

/* Labels that are gathered before repeated ones are left out. */
#define LABELS_AT_FIRST 1024

template <typename Value>
static void place_row(const Plane *plane, const Value *row, double *at)
{
    if (plane->mean == NULL) {
        at[0] = (double)row[0];
        at[1] = plane->n_axes > 1 ? (double)row[1] : 0;
        return;
    }
    at[0] = 0;
    at[1] = 0;
    for (int32 j = 0; j < plane->points.d; ++j) {
        const double value = ((double)row[j] - plane->mean[j]) / (plane->scale == NULL ? 1 : plane->scale[j]);

        at[0] += value * plane->directions[0][j];
        at[1] += value * plane->directions[1][j];
    }
}

void plane_place(const Plane *plane, int64 i, double *at)
{
    const int64 first = i * plane->points.d;

    if (plane->points.element == PGKM_FLOAT32)
        place_row(plane, (const float *)plane->points.values + first, at);
    else
        place_row(plane, (const double *)plane->points.values + first, at);
}

/* The share in per cent; of a component that is not there, none. */
static const char *component_name(const PgkmResult *result, int32 i)
{
    const double share = i < result->k ? result->explained_variance_ratio[i] : 0;

    return psprintf("component %d (%.1f %% of the variance)", i + 1, 100 * share);
}

/* Components of the same rows in another order differ in their last digits. Places on the card shall not. */
static double *copy_direction(const PgkmResult *result, int32 i)
{
    double *const copy = (double *)palloc0(result->d * sizeof(double));

    for (int32 j = 0; i < result->k && j < result->d; ++j)
        copy[j] = rint(result->components[(Size)i * result->d + j] * 0x1p36) * 0x1p-36;
    return copy;
}

static const double *copy_numbers(const double *from, int32 count)
{
    double *const copy = (double *)palloc(count * sizeof(double));

    memcpy(copy, from, count * sizeof(double));
    return copy;
}

static void use_components(Plane *plane, TableCall *call, bool standardize)
{
    PgkmRequest request = call->request;
    PgkmJobHolder *job = NULL;

    request.algorithm = PGKM_PCA;
    request.points.weights = NULL;
    memset(&request.pca, 0, sizeof request.pca);
    request.pca.n_components = 2;
    request.pca.standardize = standardize;

    const PgkmResult *const result = pgkm_run_job(&request, call->context, &job, NULL);

    plane->mean = copy_numbers(result->mean, result->d);
    plane->scale = standardize ? copy_numbers(result->scale, result->d) : NULL;
    for (int i = 0; i < 2; ++i) {
        plane->directions[i] = copy_direction(result, i);
        plane->names[i] = component_name(result, i);
    }
    pgkm_release_job(job);
}

void plane_axes(Plane *plane, TableCall *call, const TableRows *rows, bool standardize)
{
    const int32 d = rows->used->d;

    memset(plane, 0, sizeof *plane);
    plane->points = call->request.points;
    plane->rows = rows;
    plane->n_axes = Min(d, 2);
    if (d > 2)
        use_components(plane, call, standardize);
    else
        for (int i = 0; i < d; ++i)
            plane->names[i] = plot_user_text(call->n_features == d ? call->features[i].name
                                                                   : psprintf("%s[%d]", call->features[0].name, i + 1));
}

static int compare_clusters(const void *a, const void *b)
{
    const int32 left = ((const PlaneCluster *)a)->label;
    const int32 right = ((const PlaneCluster *)b)->label;

    return (left > right) - (left < right);
}

int32 plane_cluster_of(const Plane *plane, int32 label)
{
    const PlaneCluster key = {label, 0, 0};

    if (label < 0)
        return PLANE_NO_CLUSTER;

    const void *const found = bsearch(&key, plane->clusters, plane->n_clusters, sizeof key, compare_clusters);

    return found == NULL ? PLANE_NO_CLUSTER : (int32)((const PlaneCluster *)found - plane->clusters);
}

/* Sorts the labels and leaves repeated ones out. */
static void unite_labels(Plane *plane)
{
    int32 n = 0;

    qsort(plane->clusters, plane->n_clusters, sizeof(PlaneCluster), compare_clusters);
    for (int32 i = 0; i < plane->n_clusters; ++i)
        if (i == 0 || plane->clusters[i].label != plane->clusters[n - 1].label)
            plane->clusters[n++] = plane->clusters[i];
    plane->n_clusters = n;
}

void plane_check_clusters(int64 clusters)
{
    if (clusters > PLANE_MOST_CLUSTERS)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("kmeans_plot draws at most %d clusters", PLANE_MOST_CLUSTERS)));
}

/* The clusters are the labels of the table that used rows have. */
static void find_labels(Plane *plane)
{
    int64 capacity = LABELS_AT_FIRST;
    TableCursor cursor;
    int32 last = TABLE_LABEL_NULL;

    plane->clusters = (PlaneCluster *)palloc0(capacity * sizeof(PlaneCluster));
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, plane->rows)) {
        const int32 label = plane->rows->labels[cursor.position];

        CHECK_FOR_INTERRUPTS();
        if (cursor.used < 0 || label < 0 || label == last)
            continue;
        if (plane->n_clusters == capacity) {
            unite_labels(plane);
            plane_check_clusters(plane->n_clusters);
            if (plane->n_clusters > capacity / 2) {
                capacity *= 2;
                plane->clusters = (PlaneCluster *)repalloc_huge(plane->clusters, capacity * sizeof(PlaneCluster));
            }
        }
        plane->clusters[plane->n_clusters++] = {label, 0, 0};
        last = label;
    }
    unite_labels(plane);
    plane_check_clusters(plane->n_clusters);
}

void plane_survey(Plane *plane, int32 k)
{
    if (plane->fitted == NULL)
        find_labels(plane);
    else {
        plane->n_clusters = k;
        plane->clusters = (PlaneCluster *)palloc_extended(k * sizeof(PlaneCluster), MCXT_ALLOC_HUGE);
        for (int32 j = 0; j < k; ++j)
            plane->clusters[j] = {j, 0, 0};
    }
    for (int i = 0; i < 2; ++i) {
        plane->low[i] = INFINITY;
        plane->high[i] = -INFINITY;
    }
    plane_each(plane, [plane](const PlaneRow &row) {
        for (int i = 0; i < 2; ++i) {
            plane->low[i] = Min(plane->low[i], row.at[i]);
            plane->high[i] = Max(plane->high[i], row.at[i]);
        }
        if (row.cluster < 0)
            ++plane->no_cluster;
        else
            ++plane->clusters[row.cluster].rows;
    });
}

/*
 * plane.h - rows as points of a plane, with the cluster of each.
 *
 * One feature or two are the coordinates themselves. Of more, the coordinates are the first two principal components.
 * Nothing is stored: each pass over the rows computes them anew.
 */
#ifndef PGKM_PG_PLOT_PLANE_H
#define PGKM_PG_PLOT_PLANE_H

#include "pg/table/call.h"

extern "C" {
#include "miscadmin.h"
}

/* The cluster of rows whose label is no cluster id. */
#define PLANE_NO_CLUSTER (-1)

/* More clusters are error 54000: no picture shows them. */
#define PLANE_MOST_CLUSTERS 100000

/* Rows that belong together: a cluster of a fit, or rows of one label in the table. */
struct PlaneCluster {
    int32 label;
    int32 style; /* what svg_dots_begin takes: colour and shape */
    int64 rows;
};

struct Plane {
    PgkmPoints points;
    const TableRows *rows;
    const int32 *fitted; /* of a fit: the cluster of each used row; or NULL: the table's label counts */
    int n_axes;          /* 1 or 2 */
    const char *names[2];
    const double *mean;          /* d; NULL: the features themselves */
    const double *scale;         /* d, or NULL */
    const double *directions[2]; /* d each */
    double low[2];
    double high[2];
    int32 n_clusters;
    PlaneCluster *clusters; /* by label, ascending */
    int64 no_cluster;       /* rows without a cluster */
};

struct PlaneRow {
    double at[2];  /* the second one is 0 where there is one axis */
    int32 cluster; /* a place in Plane.clusters, or PLANE_NO_CLUSTER */
    double weight;
    const char *content; /* its features as they are stored */
};

/* Chooses the axes for the call's rows, of which at least one is used. The request of the call is complete. With
 * `standardize` components are those of standardized features. Errors as of pgkm_run_job. */
void plane_axes(Plane *plane, TableCall *call, const TableRows *rows, bool standardize);

/* 54000 for more clusters than PLANE_MOST_CLUSTERS. */
void plane_check_clusters(int64 clusters);

/* Finds ranges and clusters; plane->fitted is set where there is a fit. `k` is the number of its clusters. */
void plane_survey(Plane *plane, int32 k);

/* The cluster of a label. */
int32 plane_cluster_of(const Plane *plane, int32 label);

/* The coordinates of used row `i`. */
void plane_place(const Plane *plane, int64 i, double *at);

/* Calls visit(const PlaneRow &) for each used row. */
template <typename Visit>
static inline void plane_each(const Plane *plane, Visit visit)
{
    const Size row_bytes =
        (Size)plane->points.d * (plane->points.element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double));
    TableCursor cursor;
    PlaneRow row;

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, plane->rows)) {
        CHECK_FOR_INTERRUPTS();
        if (cursor.used < 0)
            continue;
        row.content = (const char *)plane->points.values + cursor.used * row_bytes;
        row.weight = plane->points.weights == NULL ? 1 : plane->points.weights[cursor.used];
        row.cluster = plane->fitted != NULL ? plane->fitted[cursor.used]
                                            : plane_cluster_of(plane, plane->rows->labels[cursor.position]);
        plane_place(plane, cursor.used, row.at);
        visit(row);
    }
}

#endif

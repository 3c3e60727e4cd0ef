/*
 * sums.h - the state of the aggregate pca: options, moments, and a few rows that still wait to be added to them.
 *
 * Its size depends on d alone, so the transition function updates it in place. Rows are added some at a time, as a
 * product of matrices.
 */
#ifndef PGKM_PG_PCA_SUMS_H
#define PGKM_PG_PCA_SUMS_H

#include "pg/aggregate/flat_state.h"
#include "pg/values/options.h"

struct PcaSums {
    int32 vl_len_; /* varlena header, never touched directly */
    uint16 version;
    uint8 whiten;      /* 0 or 1 */
    uint8 standardize; /* 0 or 1 */
    int32 d;
    int32 pending;                        /* rows that wait */
    int64 n;                              /* rows in the moments */
    double mass;                          /* their weights' sum */
    double n_components;                  /* as in PgkmPcaOptions */
    double values[FLEXIBLE_ARRAY_MEMBER]; /* mean, cross, place for pending rows and their weights */

    static constexpr char aggregate[] = "pca";
    static constexpr uint16 current_version = 1;

    bool is_whole() const;
    int64 rows() const { return n + pending; }
    PgkmPcaOptions options() const { return {n_components, whiten, standardize}; }

    /* Elements of the lower triangle of products. */
    static int64 triangle(int32 d) { return (int64)d * ((int64)d + 1) / 2; }

    /* Rows that wait together: enough that adding them costs little beside their products, few enough that they take no
     * more memory than those. */
    static int32 capacity(int32 d) { return Min(Max(d / 2, 8), 128); }

    double *mean() { return values; }
    double *cross() { return values + d; }
    double *waiting() { return cross() + triangle(d); }
    double *weights() { return waiting() + (Size)capacity(d) * d; }
};

/* An empty state; 54000 when it would pass 1 GB. */
PcaSums *pca_sums_create(MemoryContext context, int32 d, const PgkmPcaOptions *options);

/* Adds the waiting rows to the moments; 22003 when their squares leave the range of float64. */
void pca_sums_flush(PcaSums *sums);

/* 22023 unless the options are those of the state. */
void pca_sums_check_options(const PcaSums *sums, const PgkmPcaOptions *options);

/* 22P03 for numbers that no rows have, of a state that may have come from outside and has no rows that wait. */
void pca_sums_check(PcaSums *sums);

#endif

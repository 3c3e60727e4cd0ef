/*
 * calculations.h - what the engine computes in the caller's thread: single rows, moments, texts. A part of api.h, whose
 * rules hold.
 */
#ifndef PGKM_ENGINE_CALCULATIONS_H
#define PGKM_ENGINE_CALCULATIONS_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row (d) against a model's centroids (k x d): the exact distances of the contract. Writes the lowest
 * index of the nearest to *label and its squared distance to *distance. */
void pgkm_nearest(const double *row, const double *centroids, int32_t k, int32_t d, int32_t *label, double *distance);

/* The same for many rows, from centroids that lie feature by feature in eights: pgkm_octets writes them there, as
 * pgkm_octets_size(k, d) values. */
int64_t pgkm_octets_size(int32_t k, int32_t d);
void pgkm_octets(const double *centroids, int32_t k, int32_t d, double *octets);
void pgkm_nearest_of_octets(const double *row, const double *octets, int32_t k, int32_t d, int32_t *label,
                            double *distance);
/* Squared distances to all k centroids. */
void pgkm_distances(const double *row, const double *centroids, int32_t k, int32_t d, double *distances);
/* Brings a row into the model's space, in place: standardizes (center, scale: d values; NULL: not) and
 * normalises (cosine), rounding to `element` as a fit does. Returns 0 when a zero vector has no direction. */
int pgkm_transform_row(double *row, int32_t d, const double *center, const double *scale, PgkmMetric metric,
                       PgkmElement element);

/* Of a matrix rows x columns: products[i] = its row i times x (columns values); and the sum of
 * its rows, each times factors[i] (rows values), added to sum (columns values). */
void pgkm_dot_products(const double *matrix, int32_t rows, int32_t columns, const double *x, double *products);
void pgkm_weighted_sum(const double *matrix, int32_t rows, int32_t columns, const double *factors, double *sum);

/* Functions that can take long in the caller's thread ask this now and then: when it returns another value
 * than 0 they end with PGKM_CANCELLED, and what they write means nothing. May be NULL. */
typedef int (*PgkmInterrupted)(void);

/* Runs task(arg, i) for each i from 0 to tasks - 1 in any order, by several threads, this one among them. A task calls
 * nothing of the caller's that is for one thread alone. */
PgkmStatus pgkm_run_tasks(int64_t tasks, int32_t threads, void (*task)(void *arg, int64_t i), void *arg,
                          PgkmInterrupted interrupted, PgkmError *error);

/* A segment of so many bytes, with room for them by pgkm_segment_fill alone. */
PgkmStatus pgkm_segment_create(uint64_t bytes, PgkmSegment *segment, PgkmError *error);
void pgkm_segment_free(PgkmSegment *segment); /* one of file 0 is allowed */

/* Before bytes from an offset on are written: gives the segment memory for them. 0 when there is none. From any thread.
 */
int pgkm_segment_fill(const PgkmSegment *segment, uint64_t offset, uint64_t bytes);

/* Of n rows of d values: puts the mean of a feature's other values in the place of each NaN. A row of weight w counts
 * like w rows (weights: n values, or NULL). means: d values, what stands in the place of a NaN, also of a feature that
 * has none. *feature is 0, or the number (from 1) of a feature that has no value. */
PgkmStatus pgkm_fill_missing(void *values, PgkmElement element, int64_t n, int32_t d, const double *weights,
                             double *means, int32_t *feature, PgkmInterrupted interrupted, PgkmError *error);

/* Moments of rows, in a form that merges. An infinity in cross tells that squares left the range of float64. */
typedef struct PgkmRowMoments {
    int64_t n;
    double mass; /* the sum of the weights, n without */
    int32_t d;
    double *mean;  /* d */
    double *cross; /* d (d + 1) / 2: sums of weighted products of deviations from the mean, a lower triangle by rows:
                    * element (a, b), b <= a, at a (a + 1) / 2 + b */
} PgkmRowMoments;

/* Adds rows (count x d; weights: count values above 0, or NULL), or those of other moments. PGKM_LIMIT beyond
 * PGKM_MAX_ROWS rows. */
#define PGKM_MAX_ROWS (INT64_C(1) << 53)
PgkmStatus pgkm_moments_add(PgkmRowMoments *moments, const double *rows, const double *weights, int64_t count,
                            PgkmInterrupted interrupted, PgkmError *error);
PgkmStatus pgkm_moments_merge(PgkmRowMoments *moments, const PgkmRowMoments *other, PgkmError *error);

/* The assignment problem: pairs rows and columns of a matrix of finite costs one to one at the least total.
 * partners[i], of rows, becomes the column of row i, or -1; all of the shorter side have a partner. Of several such
 * pairings it is the one whose partners come first, no partner being the last; sums are exact (engine/pairing). Where
 * there are more rows than columns, the costs are copied. */
PgkmStatus pgkm_pair(const double *costs, int32_t rows, int32_t columns, int32_t *partners, PgkmInterrupted interrupted,
                     PgkmError *error);

/* n rows, at least 1, with label a in one labelling and b in another. */
typedef struct PgkmLabelPair {
    int64_t a, b, n;
} PgkmLabelPair;

typedef struct PgkmAgreement {
    double adjusted_rand; /* Hubert, Arabie 1985; 1 where both labellings divide the rows in the same way */
    double moved;         /* share of the rows whose labels are no pair, under the one-to-one pairing that has fewest */
    int64_t n;
} PgkmAgreement;

/* Compares two labellings by their pairs (at least 1, some maybe more than once). PGKM_LIMIT where the table of all
 * labels of both takes more than most_bytes, or beyond PGKM_MAX_ROWS rows. */
PgkmStatus pgkm_agreement(const PgkmLabelPair *pairs, int64_t count, uint64_t most_bytes, PgkmAgreement *agreement,
                          PgkmInterrupted interrupted, PgkmError *error);

/* "full", "tied", "diag", "spherical", in the order of PgkmCovariance. */
const char *pgkm_covariance_name(PgkmCovariance type);

/* Float64 values of the covariances: k d d, d d, k d or k. */
int64_t pgkm_covariance_size(PgkmCovariance type, int64_t k, int32_t d);
/* The extents of the array of them, three at most, go to *extents. Returns how many there are. */
int32_t pgkm_covariance_shape(PgkmCovariance type, int32_t k, int32_t d, int32_t *extents);

/* Fills factors (as many as covariances) and log_determinants (k) for PgkmMixture. */
PgkmStatus pgkm_mixture_factors(PgkmCovariance type, int32_t k, int32_t d, const double *covariances, double *factors,
                                double *log_determinants, PgkmInterrupted interrupted, PgkmError *error);

/* One row under a mixture: the responsibilities of its k components go to *posterior, the lowest
 * index of the largest to *label. Returns the logarithm of the density; -infinity or NaN where
 * the row is too far from all components for float64, and posterior means nothing. */
double pgkm_mixture_row(const PgkmMixture *mixture, int32_t d, const double *row, double *posterior, int32_t *label);

/* The same of a row whose NaN are missing values, under the marginal density of the others; a mixture of type full or
 * diag, with its covariances. The logarithm goes to *log_density. */
PgkmStatus pgkm_mixture_incomplete_row(const PgkmMixture *mixture, const double *covariances, int32_t d,
                                       const double *row, double *posterior, int32_t *label, double *log_density,
                                       PgkmError *error);

/* The CUDA C++ that a reduction of rows of d values becomes in a layout (a name of
 * pg_kmeans.reduction_layout; NULL: the one that is chosen) for devices of a compute capability (90: 9.0).
 * pgkm_text_free() takes it back. NULL with *error: PGKM_INVALID for a program that is not valid, PGKM_UNSUPPORTED for
 * a layout that there is not. */
char *pgkm_reduction_source(const PgkmReduction *reduction, PgkmElement element, int32_t d, const char *layout,
                            int32_t capability, PgkmError *error);
void pgkm_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif

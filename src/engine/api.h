/*
 * api.h - the engine as PostgreSQL's side sees it: plain data and C functions.
 *
 * src/pg includes this and nothing else of the engine, so that a longjmp of ereport can
 * never cross a frame that owns a C++ object. No function here throws; each returns a
 * status and leaves a text in PgkmError.
 *
 * Work of any length is a job: it runs in threads of its own that never call the server,
 * while the caller waits in slices (pgkm_job_wait) and keeps serving its interrupts.
 */
#ifndef PGKM_ENGINE_API_H
#define PGKM_ENGINE_API_H

#include "backend/backend.h"
#include "numeric/copy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PgkmBackendChoice { PGKM_BACKEND_AUTO = 0, PGKM_BACKEND_CPU = 1, PGKM_BACKEND_CUDA = 2 } PgkmBackendChoice;

/* The settings pg_kmeans.*, read by the caller before any job starts. */
typedef struct PgkmSettings {
    PgkmBackendChoice backend;
    int32_t           device;           /* -1: any */
    int32_t           cpu_threads;      /* 0: all */
    uint64_t          memory_limit;     /* bytes; 0: none */
    uint64_t          gpu_memory_limit; /* bytes; 0: none */
    PgkmTuning        tuning;           /* strings stay valid until the job is freed */
    const char       *plugin;           /* path of the CUDA plugin */
    int32_t           channel;          /* a connection to the GPU service, of pgkm_service_connect; 0: none */
    const char       *no_device;        /* why there is no device, where that is known; or NULL */
    int32_t           device_ready;     /* 1: the service runs, so that a device is reached at once */
} PgkmSettings;

/* Threads that a fit may have: cpu_threads, or one for each usable processor. */
int32_t pgkm_cpu_threads(const PgkmSettings *settings);

/* kmeans_options(...); validated by pgkm_options_check. */
typedef struct PgkmOptions {
    PgkmInit      init;
    const double *init_centroids; /* k x d, row-major, or NULL */
    int32_t       init_rows;
    int32_t       init_columns;
    int32_t       n_init;
    int32_t       max_iter;
    double        tol;
    uint64_t      seed;
    PgkmMetric    metric;
    int32_t       standardize;
} PgkmOptions;

/* The defaults: k-means++, n_init 1, max_iter 300, tol 1e-4, seed 0, l2, not standardized. */
void pgkm_options_default(PgkmOptions *options);

/* What a backend made of rows that are fitted again and again: its context and the rows as
 * loaded there (for a GPU: in its memory), with their statistics. */
typedef struct PgkmResident PgkmResident;

/* Rows that are clustered by themselves. */
typedef struct PgkmGroup {
    const void   *values;  /* n x d of the request's element type */
    const double *weights; /* n, or NULL like the request's */
    int64_t       n;       /* >= 1 */
    int64_t       k;       /* as PgkmFitRequest.k */
} PgkmGroup;

/* All memory that it points to is the caller's, and unchanged until the job is freed. */
typedef struct PgkmFitRequest {
    PgkmPoints   points;
    int64_t      k; /* 1 .. 2^31 - 1; more than the distinct rows gives fewer clusters */
    /* Many fits at once, with the same results as one by one: n_groups > 0 groups, which need
     * not lie together. Of `points` only element and d are read then, `k` is not, and there are
     * no labels and distances. */
    const PgkmGroup *groups;
    int64_t          n_groups; /* 0: points and k are the one group */
    /* A sweep: k, k + 1, ... k_last, each with its quality; no groups, and no arrays in the results.
     * It ends at the number of rows, or at k where that is more (pgkm_sweep_last). 0: k alone. */
    int64_t          k_last;
    PgkmResident    *resident; /* of these very points, used by one job at a time; or NULL */
    PgkmOptions  options;
    PgkmSettings settings;
    int32_t      want_labels;    /* fill PgkmFitResult.labels */
    int32_t      want_distances; /* fill PgkmFitResult.distances */
    PgkmSegment  segment;        /* of the server, when the points lie in one */
} PgkmFitRequest;

/* How well separated clusters are, in the space of the distance; a row of weight w counts as w
 * rows. NaN where it is not defined (fewer than 2 clusters, or as many as rows). */
typedef struct PgkmQuality {
    double davies_bouldin;        /* Davies, Bouldin 1979: lower is better */
    double calinski_harabasz;     /* Calinski, Harabasz 1974: higher is better */
    double simplified_silhouette; /* Vendramin, Campello, Hruschka 2010: mean of 1 - a / b */
} PgkmQuality;

/* A fitted model. With standardize, centroids are in standardized units (value - center) /
 * scale; with cosine they have unit length. Arrays belong to the job. */
typedef struct PgkmFitResult {
    int32_t        k; /* clusters found; fewer than asked when rows repeat */
    int32_t        d;
    int64_t        n;
    const double  *centroids; /* k x d */
    const int64_t *sizes;     /* k */
    const double  *within_ss; /* k: (weighted) sum of squared distances */
    double         inertia;   /* sum of within_ss */
    int32_t        n_iter;
    int32_t        converged;
    const double  *center;    /* d, or NULL unless standardized */
    const double  *scale;     /* d, or NULL unless standardized */
    const int32_t *labels;    /* n, or NULL */
    const double  *distances; /* n squared distances, or NULL */
    PgkmQuality    quality;   /* of a sweep, else NaN */
    const char    *backend;   /* "cpu" or "cuda": what computed it */
    char           notice[512]; /* not empty: a WARNING to pass on (a GPU fault survived) */
} PgkmFitResult;

typedef struct PgkmJob PgkmJob;

/* What a job is doing. */
typedef enum PgkmPhase {
    PGKM_STARTING = 0, /* choosing and opening a backend */
    PGKM_LOADING,      /* handing the rows over, transforming them, taking their statistics */
    PGKM_SEEDING,
    PGKM_ITERATING,
    PGKM_LABELLING, /* the assignment to the final centroids */
    PGKM_PHASES
} PgkmPhase;

/* How far a job is; after its end, how it went. */
typedef struct PgkmJobProgress {
    PgkmPhase   phase;
    int32_t     restart;     /* 0 .. n_init - 1 */
    int32_t     iteration;   /* of that restart */
    double      shift;       /* summed squared centroid shift of its last iteration */
    uint64_t    bytes_moved; /* to and from the device */
    const char *backend;     /* "cpu" or "cuda"; NULL before one is chosen */
    PgkmTuning  chosen;      /* the strategies at work; NULL: no such stage, or not known */
    double      seconds[PGKM_PHASES]; /* in each phase that has ended, all restarts together */
} PgkmJobProgress;

/* The last k that a sweep fits: k_last, or the number of rows, but at least k. */
int64_t pgkm_sweep_last(const PgkmFitRequest *request);

/* Bytes of host memory that a fit of this shape needs beside its points; UINT64_MAX on overflow. */
uint64_t pgkm_fit_estimate(int64_t n, int32_t d, int64_t k, PgkmElement element, const PgkmOptions *options,
                           int32_t has_weights);
/* The same of a request, with its groups, which are copied together; and what one group adds. */
uint64_t pgkm_request_estimate(const PgkmFitRequest *request);
uint64_t pgkm_group_estimate(const PgkmFitRequest *request, const PgkmGroup *group);

/* Keeps what a backend makes of rows from the first fit that uses it on, until it is freed: before
 * the rows, and after the jobs. NULL when there is no memory; free allows NULL. */
PgkmResident *pgkm_resident_create(void);
void pgkm_resident_free(PgkmResident *resident);
/* What it has made is forgotten; the next fit makes it anew. */
void pgkm_resident_drop(PgkmResident *resident);
/* The connection to the GPU service that its fits go through, kept here for its owner; 0: none. */
int32_t pgkm_resident_channel(const PgkmResident *resident);
void pgkm_resident_set_channel(PgkmResident *resident, int32_t channel);

/* 1 when a device would be tried first for this request, if there is one. */
int pgkm_wants_device(const PgkmFitRequest *request);

/* Starts a fit; *job is never NULL on PGKM_OK. The request is copied, its arrays are not. */
PgkmStatus pgkm_fit_start(const PgkmFitRequest *request, PgkmJob **job, PgkmError *error);
/* Waits up to `milliseconds` for the job's end; 1 when it has ended. */
int pgkm_job_wait(PgkmJob *job, int milliseconds);
/* A snapshot of how far the job is, at any time until it is freed. */
void pgkm_job_progress(PgkmJob *job, PgkmJobProgress *progress);
/* After the end: the result, or the error that ended it. The result lives until pgkm_job_free. */
PgkmStatus pgkm_job_result(PgkmJob *job, PgkmFitResult *result, PgkmError *error);
/* The same of group 0 .. n_groups - 1, or, of a sweep, of k + group. */
PgkmStatus pgkm_job_group_result(PgkmJob *job, int64_t group, PgkmFitResult *result, PgkmError *error);
/* Cancels if still running, and joins its threads. */
void pgkm_job_stop(PgkmJob *job);
/* The same, and frees everything. NULL is allowed. */
void pgkm_job_free(PgkmJob *job);
/* Cancels and joins every job of the process, for an exit hook; their owners may still free them. */
void pgkm_stop_all_jobs(void);
/* Bytes that the work of jobs that were stopped still holds: a call of a library, which nothing can stop. */
uint64_t pgkm_bytes_left_behind(void);


/* One row against a model's centroids (k x d float64): the exact distances of the contract.
 * Writes the lowest index of the nearest to *label and its squared distance to *distance. */
void pgkm_nearest(const double *row, const double *centroids, int32_t k, int32_t d, int32_t *label, double *distance);
/* Squared distances to all k centroids. */
void pgkm_distances(const double *row, const double *centroids, int32_t k, int32_t d, double *distances);
/* Brings a row into the model's space: standardizes (center, scale; NULL: not) and normalises
 * (cosine), rounding to `element` as fit does. Returns 0 when a zero vector has no direction. */
int pgkm_transform_row(double *row, int32_t d, const double *center, const double *scale, PgkmMetric metric,
                       PgkmElement element);

/* Asked now and then by functions that can take long in the caller's own thread: when it returns
 * another value than 0 they end with PGKM_CANCELLED, and what they write means nothing. May be NULL. */
typedef int (*PgkmInterrupted)(void);

/* --- PCA --- */

/* pca_options(...). */
typedef struct PgkmPcaOptions {
    double  n_components; /* 0: all; at least 1: so many; between 0 and 1: that share of the variance */
    int32_t whiten;       /* transformed rows get unit variance */
    int32_t standardize;  /* features are scaled to unit variance first */
} PgkmPcaOptions;

/* Moments of rows, in a form that merges: n, the mean (d values) and the sums of products of
 * deviations from it, a lower triangle by rows (d (d + 1) / 2 values: element (a, b), b <= a,
 * at a (a + 1) / 2 + b). Both functions change n, mean and cross in place; an infinity in
 * cross tells that squares left the range of float64. PGKM_LIMIT beyond PGKM_MAX_ROWS rows. */
#define PGKM_MAX_ROWS (INT64_C(1) << 53)
PgkmStatus pgkm_moments_add(int64_t *n, int32_t d, double *mean, double *cross, const double *rows, int64_t count,
                            PgkmInterrupted interrupted, PgkmError *error);
PgkmStatus pgkm_moments_merge(int64_t *n, int32_t d, double *mean, double *cross, int64_t other_n,
                              const double *other_mean, const double *other_cross, PgkmError *error);

/* PCA of rows, or of their moments where points.values is NULL: then points has n and d alone. */
typedef struct PgkmPcaRequest {
    PgkmPoints     points;
    const double  *mean;  /* d; the caller's memory, unchanged until the job is freed, as are all */
    const double  *cross; /* as above */
    PgkmPcaOptions options;
    PgkmSettings   settings;
    PgkmSegment    segment; /* as in PgkmFitRequest */
} PgkmPcaRequest;

/* Names as in scikit-learn. Arrays belong to the job. */
typedef struct PgkmPcaResult {
    int32_t       n_components; /* at most min(n, d) */
    int32_t       d;
    int64_t       n;
    const double *mean;               /* d */
    const double *scale;              /* d, or NULL unless standardized */
    const double *components;         /* n_components x d; the largest coordinate is positive */
    const double *explained_variance; /* n_components, descending; divided by n - 1, 0 where n = 1 */
    const double *explained_variance_ratio; /* n_components; 0 where there is no variance at all */
    const double *singular_values;          /* n_components: sqrt((n - 1) explained_variance) */
    char          notice[512];              /* not empty: a WARNING to pass on */
} PgkmPcaResult;

/* Bytes of host memory that PCA needs beside its rows or moments. */
uint64_t pgkm_pca_estimate(const PgkmPcaRequest *request);
/* As pgkm_wants_device: 0 without rows. */
int pgkm_pca_wants_device(const PgkmPcaRequest *request);
PgkmStatus pgkm_pca_start(const PgkmPcaRequest *request, PgkmJob **job, PgkmError *error);
PgkmStatus pgkm_pca_result(PgkmJob *job, PgkmPcaResult *result, PgkmError *error);

/* Of a matrix rows x columns: products[i] = its row i times x (columns values); and the sum of
 * its rows, each times factors[i] (rows values), added to sum (columns values). */
void pgkm_dot_products(const double *matrix, int32_t rows, int32_t columns, const double *x, double *products);
void pgkm_weighted_sum(const double *matrix, int32_t rows, int32_t columns, const double *factors, double *sum);

/* --- Gaussian mixtures --- */

/* An array given as an option: values in row-major order, or NULL for none. */
typedef struct PgkmGiven {
    const double *values;
    int32_t       dimensions; /* 1 .. 3 */
    int32_t       extent[3];
} PgkmGiven;

/* gmm_options(...): names and meanings as in scikit-learn's GaussianMixture. */
typedef struct PgkmMixtureOptions {
    PgkmCovariance covariance_type;
    double         tol;       /* stop when the mean log-likelihood of a row grows by less */
    double         reg_covar; /* added to the variances */
    int32_t        max_iter;
    int32_t        n_init;
    uint64_t       seed;
    PgkmGiven      weights_init;    /* k */
    PgkmGiven      means_init;      /* k x d */
    PgkmGiven      precisions_init; /* full: k x d x d, tied: d x d, diag: k x d, spherical: k */
} PgkmMixtureOptions;

/* The defaults: full, tol 1e-3, reg_covar 1e-6, max_iter 100, n_init 1, seed 0, by k-means. */
void pgkm_mixture_options_default(PgkmMixtureOptions *options);

/* "full", "tied", "diag", "spherical", in the order of PgkmCovariance. */
const char *pgkm_covariance_name(PgkmCovariance type);

/* Float64 values of the covariances: k d d, d d, k d or k. */
int64_t pgkm_covariance_size(PgkmCovariance type, int64_t k, int32_t d);

typedef struct PgkmMixtureRequest {
    PgkmPoints         points; /* without weights; the caller's memory, unchanged until the job is freed */
    int64_t            k;      /* 1 .. 2^31 - 1 */
    const PgkmGroup   *groups; /* as in PgkmFitRequest: many fits at once */
    int64_t            n_groups;
    PgkmMixtureOptions options;
    PgkmSettings       settings;
    int32_t            want_labels;
    PgkmSegment        segment; /* as in PgkmFitRequest */
} PgkmMixtureRequest;

/* A fitted mixture. Arrays belong to the job. */
typedef struct PgkmMixtureResult {
    int32_t        k; /* components; fewer than asked when there are fewer distinct rows */
    int32_t        d;
    int64_t        n;
    const double  *weights;     /* k */
    const double  *means;       /* k x d */
    const double  *covariances; /* as pgkm_covariance_size says */
    double         log_likelihood; /* of the rows under this very mixture, in total */
    const double  *trace;          /* n_iter: the total before each M step */
    int32_t        n_iter;
    int32_t        converged;
    double         aic;
    double         bic;
    const int32_t *labels; /* n, or NULL */
    char           notice[512];
} PgkmMixtureResult;

/* The last k that a sweep fits: k_last, or the number of rows, but at least k. */
int64_t pgkm_sweep_last(const PgkmFitRequest *request);

/* Bytes of host memory that a fit of this shape needs beside its points; and what one group adds. */
uint64_t pgkm_mixture_estimate(const PgkmMixtureRequest *request);
uint64_t pgkm_mixture_group_estimate(const PgkmMixtureRequest *request, const PgkmGroup *group);
/* As pgkm_wants_device. */
int pgkm_mixture_wants_device(const PgkmMixtureRequest *request);
PgkmStatus pgkm_mixture_start(const PgkmMixtureRequest *request, PgkmJob **job, PgkmError *error);
PgkmStatus pgkm_mixture_result(PgkmJob *job, PgkmMixtureResult *result, PgkmError *error);
/* The same of group 0 .. n_groups - 1. */
PgkmStatus pgkm_mixture_group_result(PgkmJob *job, int64_t group, PgkmMixtureResult *result, PgkmError *error);

/* Fills factors (as many as covariances) and log_determinants (k) for PgkmMixture. */
PgkmStatus pgkm_mixture_factors(PgkmCovariance type, int32_t k, int32_t d, const double *covariances, double *factors,
                                double *log_determinants, PgkmInterrupted interrupted, PgkmError *error);

/* One row under a mixture: the responsibilities of its k components go to *posterior, the lowest
 * index of the largest to *label. Returns the logarithm of the density; -infinity or NaN where
 * the row is too far from all components for float64, and posterior means nothing. */
double pgkm_mixture_row(const PgkmMixture *mixture, int32_t d, const double *row, double *posterior, int32_t *label);

/* One line of kmeans_status(). */
typedef struct PgkmBackendStatus {
    char       backend[32];
    int32_t    available;
    PgkmDevice device;      /* its reason says why a backend is not available */
    int32_t    served;      /* 1: by the GPU service, whose state follows */
    int32_t    jobs;
    int32_t    jobs_waiting;
    uint64_t   memory_held; /* bytes of device memory that those jobs hold */
} PgkmBackendStatus;

/* Lists up to `capacity` backends and devices; returns how many there are. */
int32_t pgkm_status(const PgkmSettings *settings, PgkmBackendStatus *lines, int32_t capacity);

#ifdef __cplusplus
}
#endif
#endif

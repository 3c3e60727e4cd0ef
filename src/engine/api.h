/*
 * api.h - the engine as PostgreSQL's side sees it: plain data and C functions.
 *
 * src/pg includes this and nothing else of the engine, so that a longjmp of ereport never
 * crosses a frame that owns a C++ object. No function here throws. One that can fail returns
 * a status and leaves a text in *error.
 *
 * A request (PgkmRequest) says what to fit: k-means, a mixture or PCA; or what to reduce rows to. A job works on it in
 * threads of its own, which never call the server. The caller waits in short steps and serves interrupts in between.
 *
 * Matrices are row-major: a x b values are a rows of b.
 */
#ifndef PGKM_ENGINE_API_H
#define PGKM_ENGINE_API_H

#include "backend/backend.h"
#include "engine/calculations.h"
#include "engine/stream.h"
#include "numeric/copy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PgkmBackendChoice { PGKM_BACKEND_AUTO = 0, PGKM_BACKEND_CPU = 1, PGKM_BACKEND_CUDA = 2 } PgkmBackendChoice;

/* The settings pg_kmeans.*, read by the caller before any job starts. */
typedef struct PgkmSettings {
    PgkmBackendChoice backend;
    int32_t device;                     /* -1: any */
    int32_t devices[PGKM_MOST_DEVICES]; /* those over which a fit is spread, unless `device` names one */
    int32_t n_devices;                  /* 0: as many of one kind as the fit is worth */
    int32_t cpu_threads;                /* 0: all */
    uint64_t memory_limit;              /* bytes; 0: none */
    uint64_t gpu_memory_limit;          /* bytes; 0: none */
    PgkmTuning tuning;                  /* strings stay valid until the job is freed */
    const char *plugin;                 /* path of the CUDA plugin */
    int32_t channel;                    /* a connection to the GPU service, of pgkm_service_connect; 0: none */
    const char *no_device;              /* why there is no device, where that is known; or NULL */
    int32_t device_ready;               /* 1: the service runs, so that a device is reached at once */
} PgkmSettings;

/* Threads that a job may have: cpu_threads, or one for each usable processor; within the limit of this process. */
int32_t pgkm_cpu_threads(const PgkmSettings *settings);

/* The limit, for all that computes in this process by several threads; 0: one for each usable processor. */
void pgkm_limit_threads(int32_t most);

/* --- What is asked for --- */

/* An array given as an option: values in row-major order, or NULL for none. */
typedef struct PgkmGiven {
    const double *values;
    int32_t dimensions; /* 1 .. 3, or 0 for none */
    int32_t extent[3];
} PgkmGiven;

/* A model given as an option, whose centroids are a mixture's means. Arrays without dimensions are not given. */
typedef struct PgkmGivenModel {
    PgkmGiven centroids; /* k x d, in the space of the distance: of (value - center) / scale, of length 1 for cosine */
    PgkmGiven center;    /* d, with scale, where values are standardized */
    PgkmGiven scale;
    PgkmMetric metric;
    /* Of a mixture: k weights, and covariances in the shape of the type, in units of (value - center) / scale. */
    PgkmGiven weights;
    PgkmGiven covariances;
    PgkmCovariance covariance_type;
} PgkmGivenModel;

/* kmeans_options(...). */
typedef struct PgkmOptions {
    PgkmInit init;
    PgkmGiven init_centroids; /* k x d, which go before init */
    int32_t n_init;
    int32_t max_iter;
    double tol; /* relative to the mean variance of the features */
    uint64_t seed;
    PgkmMetric metric;
    int32_t standardize;
    int32_t refine; /* 1: each run goes on to look for a better optimum (engine/kmeans/refine.hpp) */
    /* Bounds of the rows of each cluster (cpu/sizes): whole numbers, below 1 shares of all rows; 0: none. Not with
     * weights, mini-batches and other servers. Either the same for all clusters, or k, one for each. */
    double min_size;
    double max_size;
    PgkmGiven min_sizes;
    PgkmGiven max_sizes;
    /* The same of the sums of weights, which rows must have then; instead of bounds of rows. 0: none. */
    double min_weight;
    double max_weight;
    PgkmGiven min_weights;
    PgkmGiven max_weights;
    double max_radius;  /* no row is farther from its centroid (engine/kmeans/radius.hpp); 0: no limit */
    int32_t batch_size; /* rows of a mini-batch (engine/kmeans/batches.hpp); 0: iterations over all rows */
    /* Where the fit goes on: centroids, of any number, and units. Metric and standardize are the model's,
     * init_centroids not given. */
    PgkmGivenModel init_model;
} PgkmOptions;

/* The defaults: init auto, n_init 1, max_iter 300, tol 1e-4, seed 0, l2, not standardized, not refined, sizes
 * unbounded, no radius, no batches, no model. */
void pgkm_options_default(PgkmOptions *options);

/* The name of an option that bounds clusters, of those that are given; NULL: none is. */
const char *pgkm_bound_given(const PgkmOptions *options);

/* gmm_options(...): names and meanings as in scikit-learn's GaussianMixture. */
typedef struct PgkmMixtureOptions {
    PgkmCovariance covariance_type;
    double tol;       /* stop when the mean log-likelihood of a row grows by less */
    double reg_covar; /* added to the variances */
    int32_t max_iter;
    int32_t n_init;
    uint64_t seed;
    int32_t standardize;
    PgkmGiven weights_init;    /* k */
    PgkmGiven means_init;      /* k x d, in units of the data */
    PgkmGiven precisions_init; /* full: k x d x d, tied: d x d, diag: k x d, spherical: k; not with standardize */
    /* Where the fit goes on. Type and standardize are the model's, nothing else is given. */
    PgkmGivenModel init_model;
} PgkmMixtureOptions;

/* The defaults: full, tol 1e-3, reg_covar 1e-6, max_iter 100, n_init 1, seed 0, not standardized, begun by k-means. */
void pgkm_mixture_options_default(PgkmMixtureOptions *options);

/* pca_options(...). */
typedef struct PgkmPcaOptions {
    double n_components; /* 0: all; at least 1: so many; between 0 and 1: that share of the variance */
    int32_t whiten;      /* transformed rows get unit variance: not the engine's affair */
    int32_t standardize; /* features are scaled to unit variance first */
} PgkmPcaOptions;

/* A request of another server that runs a fit, about the rows of this one (engine/nodes). */
typedef struct PgkmShare PgkmShare;
typedef struct PgkmShareRequest {
    const void *request;
    size_t bytes;
    PgkmShare *share;
} PgkmShareRequest;

typedef enum PgkmAlgorithm {
    PGKM_KMEANS = 0,
    PGKM_MIXTURE = 1,
    PGKM_PCA = 2,
    PGKM_SHARE = 3,
    PGKM_REDUCTION = 4,
    PGKM_TREE = 5,
    PGKM_JUDGEMENT = 6 /* of labels that are given */
} PgkmAlgorithm;

/* Rows that are fitted by themselves: those of one GROUP BY group. */
typedef struct PgkmGroup {
    const void *values;    /* n x d of the request's element type */
    const double *weights; /* n, or NULL like the request's */
    int64_t n;             /* >= 1 */
    int64_t k;             /* as PgkmRequest.k */
} PgkmGroup;

/* What a backend keeps of rows from job to job: its context, the rows as loaded there (for a GPU: in
 * its memory), and the statistics of k-means. They serve requests of the same points: the same arrays of values and
 * weights, whose contents have not changed. Others load theirs instead. */
typedef struct PgkmResident PgkmResident;

/* Another server that holds rows of the fit. Its functions are called by one thread of the job at a time. They never
 * throw, and wait no longer than they are told. What they ask the server is pgkm_share_* there. */
typedef struct PgkmNode {
    const char *name; /* for errors */
    int64_t n;        /* rows that it holds */
    void *arg;
    /* Begins to send a request. 0, or -1 with the reason, and maybe an SQLSTATE, in *error. */
    int (*call)(void *arg, const void *request, size_t bytes, PgkmError *error);
    /* Waits up to `milliseconds` for the answer: 1 with it, valid until the next call; 0 not yet; -1 failed. */
    int (*reply)(void *arg, int milliseconds, const void **reply, size_t *bytes, PgkmError *error);
    /* Tells the server to stop, if it is at work. */
    void (*cancel)(void *arg);
} PgkmNode;

/* All memory that it points to is the caller's, and unchanged until the job is freed. */
typedef struct PgkmRequest {
    PgkmAlgorithm algorithm;
    PgkmPoints points; /* weights: not of a reduction */
    int64_t k;         /* clusters or components, 1 .. 2^31 - 1; fewer are found when rows repeat. Not PCA */
    /* Many fits at once, with the same results as one by one: n_groups > 0 groups, which need not lie
     * together. Of `points` only element and d are read then, k is not, and there are no labels and
     * distances. Not PCA. */
    const PgkmGroup *groups;
    int64_t n_groups;       /* 0: points and k are the one fit */
    PgkmSegment segment;    /* when the points lie in one */
    PgkmResident *resident; /* used by one job at a time; or NULL. Not with groups */
    PgkmSettings settings;
    int32_t may_lack_values; /* a mixture of type full or diag, on the CPU: NaN stands for a value that a row lacks
                              * (engine/mixture/missing.hpp). No groups, nodes and stream */
    int32_t want_labels;     /* fill PgkmResult.labels. Not PCA */
    int32_t want_distances;  /* k-means: fill PgkmResult.distances */
    /* A sweep of k-means: k, k + 1, ... k_last, each with its quality; groups with `suggest` alone, and no arrays in
     * the results. It ends at the number of rows, or at k where that is more (pgkm_sweep_last). 0: k alone. */
    int64_t k_last;
    int32_t suggest; /* 1: a sweep's one result is the fit of the suggested k, with its arrays; of each group one */
    const int64_t
        *sweep_k; /* or these k, from k to k_last, each above the one before; NULL: all of the range. Not of groups */
    int64_t n_sweep;
    int64_t silhouette_rows; /* of a sweep of k-means: rows that silhouettes are of; 0: none; -1: as many as pay.
                              * Of a judgement at least 2 of each cluster that has so many */
    /* Of a judgement: each row's cluster, 0 .. k - 1; each has rows. Of `kmeans` metric, standardize and seed are read,
     * without given centroids and mini-batches; no groups, nodes and stream. */
    const int32_t *labels;
    /* Of a tree: into how many clusters a node of each level is divided, from the root on. n_branches 0: the leaf of
     * the most inertia is divided in two until there are k leaves. Its options are `kmeans`, without given centroids,
     * mini-batches, bounds and radius; no groups, nodes and stream. */
    const int32_t *branches;
    int32_t n_branches;
    /* Other servers that hold rows of the fit; without groups, labels and distances. `points` are this server's rows
     * then, maybe none; weights and values are not NULL all the same, where the others' rows have them. */
    const PgkmNode *nodes;
    int64_t n_nodes;     /* 0: none */
    PgkmStream *stream;  /* all rows come by it, and `points` has none; else as with nodes. NULL: they do not */
    const double *mean;  /* d; of PCA: with cross, moments as of pgkm_moments_add instead of rows. Then */
    const double *cross; /* points.values is NULL, and points has n and d alone */
    double mass;         /* of these moments */
    union {
        PgkmOptions kmeans;
        PgkmMixtureOptions mixture;
        PgkmPcaOptions pca;
        PgkmShareRequest share;  /* of PGKM_SHARE: the rows stay in `resident` */
        PgkmReduction reduction; /* no weights, groups and nodes; points.n may be 0 */
    };                           /* options */
    int32_t is_checked;          /* pgkm_reduction_check() has accepted `reduction` */
} PgkmRequest;

/* --- What comes of it --- */

/* How well separated clusters are, in the space of the distance; a row of weight w counts as w
 * rows. NaN where it is not defined: fewer than 2 clusters, or as many as rows, which is the sum of the weights. Those
 * that count no rows are defined with as many clusters as that, but fewer than rows. */
typedef struct PgkmQuality {
    double davies_bouldin;        /* Davies, Bouldin 1979: lower is better; counts no rows */
    double calinski_harabasz;     /* Calinski, Harabasz 1974: higher is better */
    double simplified_silhouette; /* Vendramin, Campello, Hruschka 2010: mean of 1 - a / b; counts no rows */
    double silhouette;            /* Rousseeuw 1987, unless PgkmRequest.silhouette_rows is 0; NaN with nodes */
    double silhouette_error;      /* its standard error, of a sample; else 0 */
    double bic;                   /* lower is better; defined for one cluster, too */
} PgkmQuality;

/* Of a cluster whose labels are judged. */
typedef struct PgkmClusterQuality {
    double mass;             /* what its rows count for */
    double davies_bouldin;   /* the worst ratio with another cluster, R_i of the paper; the index is their mean */
    double silhouette;       /* the mean of its rows */
    double silhouette_error; /* as in PgkmQuality */
} PgkmClusterQuality;

/* Of a row: (b - a) / max(a, b). a is the mean distance to the other rows of the own cluster, b the least mean distance
 * to the rows of another one. */
typedef struct PgkmRowSilhouette {
    double value;    /* 0 of a row alone in its cluster */
    int32_t nearest; /* the cluster that b is of; -1: there is none */
} PgkmRowSilhouette;

/* A fitted model. Arrays belong to the job; those of the other algorithms are NULL, and numbers 0. */
typedef struct PgkmResult {
    int32_t k; /* clusters, components of a mixture, principal components: may be fewer than asked */
    int32_t d;
    int64_t n;
    int32_t n_iter;
    int32_t converged;
    const int32_t *labels; /* n, or NULL */
    const char *backend;   /* "cpu" or "cuda": what computed it */
    const char *notice;    /* not empty: a WARNING to pass on (a GPU fault survived) */

    /* k-means. With standardize, centroids are in standardized units (value - center) / scale; with
     * cosine they have unit length. */
    const double *centroids; /* k x d */
    const int64_t *sizes;    /* k */
    const double *within_ss; /* k: (weighted) sums of squared distances */
    double inertia;          /* sum of within_ss */
    PgkmInit init;           /* how first centroids were chosen, unless they were given: not PGKM_INIT_AUTO */
    const double *center;    /* d, or NULL unless standardized; of mixtures, too */
    const double *scale;     /* d, or NULL unless standardized; of mixtures and PCA, too */
    const double *distances; /* n squared distances, or NULL */
    /* d: mean and standard deviation of each feature of the rows, in the space of the distance. NULL where center and
     * scale are these, and for tol 0. */
    const double *feature_means;
    const double *feature_deviations;
    PgkmQuality quality;    /* of a sweep, and of a judgement all but bic and simplified_silhouette; else NaN */
    const char *suggestion; /* of a sweep: beside the k to take, why: a static string; else NULL */
    /* Of a judgement. */
    const PgkmClusterQuality *clusters;   /* k */
    const PgkmRowSilhouette *silhouettes; /* n, NaN and -1 where a row was not drawn or has none; NULL: none wanted */
    /* k, of a tree, whose k clusters are its nodes: the root first, each behind its parent. */
    const int32_t *parents; /* -1 of the root */
    const int32_t *levels;  /* 0 of the root */

    /* Mixtures. With standardize, means and covariances are in standardized units; log-likelihoods are always those of
     * the data. */
    const double *weights;     /* k */
    const double *means;       /* k x d */
    const double *covariances; /* pgkm_covariance_size() values */
    double log_likelihood;     /* of the rows under this very mixture, in total */
    const double *trace;       /* n_iter: the total before each M step */
    double aic;
    double bic;

    /* PCA. Names as in scikit-learn. */
    const double *mean;                     /* d */
    const double *components;               /* k x d; the largest coordinate is positive */
    const double *explained_variance;       /* k, descending; divided by the mass - 1, 0 where n = 1 */
    const double *explained_variance_ratio; /* k; 0 where there is no variance at all */
    const double *singular_values;          /* k: sqrt((mass - 1) explained_variance) */

    /* Reductions. Where its fault is not PGKM_FAULT_NONE a row or a total failed, and values and counts mean nothing.
     */
    const PgkmReduced *reduced;

    /* The answer to the request of another server. */
    const void *reply;
    size_t reply_bytes;
} PgkmResult;

/* --- Jobs --- */

typedef struct PgkmJob PgkmJob;

/* What a job is doing. */
typedef enum PgkmPhase {
    PGKM_STARTING = 0, /* choosing and opening a backend */
    PGKM_LOADING,      /* handing the rows over, transforming them, taking their statistics */
    PGKM_SEEDING,
    PGKM_ITERATING,
    PGKM_REFINING,
    PGKM_LABELLING, /* the assignment to the final centroids */
    PGKM_PHASES
} PgkmPhase;

/* How far a job is; after its end, how it went. */
typedef struct PgkmJobProgress {
    PgkmPhase phase;
    int32_t restart;             /* 0 .. n_init - 1 */
    int32_t seeded;              /* first centroids that it has chosen so far; 0: not known */
    int32_t iteration;           /* of that restart */
    double shift;                /* summed squared centroid shift of its last iteration */
    uint64_t bytes_moved;        /* to and from the device */
    uint64_t devices;            /* bit i: the device of ordinal i has a part of it; 0: none, or not known */
    const char *backend;         /* "cpu" or "cuda"; NULL before one is chosen */
    PgkmTuning chosen;           /* the strategies at work; NULL: no such stage, or not known */
    double seconds[PGKM_PHASES]; /* in each phase that has ended, all restarts together */
} PgkmJobProgress;

/* How many k a sweep fits: up to k_last, or the number of rows, but k at least. The i-th of them, from 0; the last. */
int64_t pgkm_sweep_count(const PgkmRequest *request);
int64_t pgkm_sweep_k(const PgkmRequest *request, int64_t i);
int64_t pgkm_sweep_last(const PgkmRequest *request);

/* Bytes of host memory that a request needs beside its points; groups are copied together. UINT64_MAX
 * on overflow. */
uint64_t pgkm_request_estimate(const PgkmRequest *request);
/* What one more group adds to those of a request with groups. */
uint64_t pgkm_group_estimate(const PgkmRequest *request, const PgkmGroup *group);

/* Whether the options suit a group of a request: PGKM_OK, or as the job would fail. */
PgkmStatus pgkm_request_accepts(const PgkmRequest *request, const PgkmGroup *group, PgkmError *error);

/* 1 when a device would be tried first for this request, if there is one. */
int pgkm_wants_device(const PgkmRequest *request);

/* The CPU threads that a job of this request would use. */
int32_t pgkm_request_threads(const PgkmRequest *request);

/* Made before the rows are first fitted, freed before the rows and after the jobs. NULL when there is no
 * memory; free allows NULL. */
PgkmResident *pgkm_resident_create(void);
void pgkm_resident_free(PgkmResident *resident);
/* Forgets what the backends made; the next job makes it anew. */
void pgkm_resident_drop(PgkmResident *resident);
/* Unloads the rows alone: the backends stay open, and the next job loads the rows again. */
void pgkm_resident_unload(PgkmResident *resident);
/* The connection to the GPU service that its jobs use, kept here for its owner; 0: none, as for NULL. */
int32_t pgkm_resident_channel(const PgkmResident *resident);
void pgkm_resident_set_channel(PgkmResident *resident, int32_t channel);

/* Starts a job; *job is NULL unless the status is PGKM_OK. Copies the request, not what it points to.
 * What is short (some 20 ms) runs in the caller's thread, and has ended when this returns. */
PgkmStatus pgkm_job_start(const PgkmRequest *request, PgkmJob **job, PgkmError *error);
/* Waits up to `milliseconds` for the job's end; 1 when it has ended. */
int pgkm_job_wait(PgkmJob *job, int milliseconds);
/* A snapshot of how far the job is, at any time until it is freed. */
void pgkm_job_progress(PgkmJob *job, PgkmJobProgress *progress);
/* After the end: result `i`, or the error that ended the job. Of groups i is 0 .. n_groups - 1, of a sweep
 * pgkm_sweep_k(request, i) is the number of clusters, else i is 0. PGKM_INTERNAL where there is no such result, and
 * before the end. Arrays of *result live until pgkm_job_free. */
PgkmStatus pgkm_job_result(PgkmJob *job, int64_t i, PgkmResult *result, PgkmError *error);
/* Cancels if still running, and joins its threads. */
void pgkm_job_stop(PgkmJob *job);
/* The same, and frees everything. NULL is allowed. */
void pgkm_job_free(PgkmJob *job);
/* Cancels and joins every job of the process, for an exit hook; their owners may still free them. */
void pgkm_stop_all_jobs(void);
/* Bytes that jobs which were stopped still hold: a call of a library, which nothing can stop. */
uint64_t pgkm_bytes_left_behind(void);

/* --- Rows of this server in a fit that another one runs --- */

/* What is kept between two requests. NULL when there is no memory; free allows NULL. Freed after the jobs. */
PgkmShare *pgkm_share_create(void);
void pgkm_share_free(PgkmShare *share);

/* Checks the program of a PGKM_REDUCTION, and notes in *request that later calls need not: PGKM_INVALID, PGKM_LIMIT. */
PgkmStatus pgkm_reduction_check(PgkmRequest *request, PgkmError *error);

/* One line of kmeans_status(). */
typedef struct PgkmBackendStatus {
    char backend[32];
    int32_t available;
    PgkmDevice device; /* its reason says why a backend is not available, or what it cannot do */
    int32_t served;    /* 1: by the GPU service, whose state follows */
    int32_t jobs;
    int32_t jobs_waiting;
    uint64_t memory_held; /* bytes of device memory that those jobs hold */
} PgkmBackendStatus;

/* Lists up to `capacity` backends and devices; returns how many there are. */
int32_t pgkm_status(const PgkmSettings *settings, PgkmBackendStatus *lines, int32_t capacity);

#ifdef __cplusplus
}
#endif
#endif

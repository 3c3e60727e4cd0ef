/*
 * backend.h - the one C function table that every backend implements.
 *
 * The CPU backend, the CUDA plugin and the GPU service are three implementations
 * of PgkmBackend; the engine never knows which one it has. Only plain data crosses
 * this boundary: no exception, no C++ object, no PostgreSQL type and no CUDA type.
 * What the numbers mean (labels, integer sums, seeding) is fixed, bit for bit, by
 * src/numeric/contract.hpp and by the reference in test/reference/reference.cpp.
 *
 * Threads: a context is used by one thread at a time. A backend may start threads
 * of its own; they never call back into the host, PgkmHost.cancelled excepted.
 */
#ifndef PGKM_BACKEND_H
#define PGKM_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "backend/reduction.h"
#include "numeric/feature_scale.h"
#include "numeric/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever anything in this file changes its meaning or layout. */
#define PGKM_BACKEND_ABI 12

/* The plugin's only exported symbol: const PgkmBackend *pgkm_backend_entry(uint32_t abi);
 * it returns NULL when it cannot serve that version. */
#define PGKM_BACKEND_ENTRY "pgkm_backend_entry"

/* Devices of one context. */
#define PGKM_MOST_DEVICES 16

/* Rows of bits are for summarise(), seed(), fit() and assign() of the CPU backend. */
typedef enum PgkmElement { PGKM_FLOAT32 = 0, PGKM_FLOAT64 = 1, PGKM_BIT = 2 } PgkmElement;
typedef enum PgkmMetric { PGKM_L2 = 0, PGKM_COSINE = 1, PGKM_HAMMING = 2 } PgkmMetric;

/* Bytes of a row of d elements. Of bits, feature f (from 0) is bit 7 - f % 8 of byte f / 8; a row has whole words of 64
 * bits, and what is behind the last feature is 0. */
static inline size_t pgkm_row_bytes(PgkmElement element, int32_t d)
{
    if (element == PGKM_BIT)
        return ((size_t)d + 63) / 64 * 8;
    return (size_t)d * (element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double));
}

typedef enum PgkmInit {
    PGKM_INIT_KMEANS_PLUS_PLUS = 0, /* greedy k-means++ (Arthur, Vassilvitskii 2007; trials as in scikit-learn) */
    PGKM_INIT_KMEANS_PARALLEL = 1,  /* k-means|| (Bahmani et al. 2012) */
    PGKM_INIT_RANDOM = 2,           /* k rows without replacement; those of weights that differ by weight */
    PGKM_INIT_FIRST = 3,            /* the first k rows: the only way that depends on their order */
    PGKM_INIT_AUTO = 4,             /* of options, never of a call: the first or the second of these */
    PGKM_INIT_OPTIMAL = 5           /* the means of the optimum, of one feature; by the CPU alone */
} PgkmInit;

/* A signed 128-bit integer in two halves: value = hi * 2^64 + lo. */
typedef struct PgkmInt128 {
    uint64_t lo;
    int64_t hi;
} PgkmInt128;

/* One device as probe() found it. */
typedef struct PgkmDevice {
    int32_t ordinal;
    int32_t usable;           /* 0: reason says why not; else what it cannot do, or nothing */
    int32_t capability_major; /* CUDA compute capability; 0 for the CPU */
    int32_t capability_minor;
    int32_t units;          /* multiprocessors, or logical processors */
    int32_t driver_version; /* CUDA: 13000 for 13.0; 0 for the CPU */
    uint64_t memory_total;  /* bytes */
    uint64_t memory_free;   /* bytes */
    char name[128];         /* "NVIDIA H200", or the CPU's instruction set */
    char reason[256];
} PgkmDevice;

/* Forced strategies by name; NULL or "auto" lets the backend choose. A name that the
 * backend does not have makes open() fail with PGKM_UNSUPPORTED. */
typedef struct PgkmTuning {
    const char *assignment;
    const char *execution;
    const char *feature_sum;
    const char *mass_sum;
    const char *reduction_layout; /* of reduce() */
    const char *instruction_set;  /* CPU: "scalar", "sse4", "avx2", "avx512", "neon"; for tests */
} PgkmTuning;

typedef struct PgkmProgress {
    const char *phase; /* static string: "loading", "seeding", "iterating", "labelling" */
    int32_t problem;
    int32_t iteration;
    double shift;         /* summed squared centroid shift of the last iteration */
    PgkmTuning chosen;    /* the strategies at work, static strings; NULL: no such stage, or not known */
    uint64_t bytes_moved; /* to and from the device since open(); 0 where nothing is moved, or not known */
    uint64_t devices;     /* bit i: the device of ordinal i is at work; 0: none, or not known */
} PgkmProgress;

/* What the host lends to a context. cancelled() is safe to call from any thread, costs
 * an atomic load, and once non-zero stays so; every call returns PGKM_CANCELLED within
 * 100 ms of that. progress() may be NULL; it is called from the calling thread alone. */
typedef struct PgkmHost {
    int (*cancelled)(void *arg);
    void (*progress)(void *arg, const PgkmProgress *progress);
    void *arg;
} PgkmHost;

/* Anonymous shared memory, which another process can map when it is handed the file. It never shrinks. */
typedef struct PgkmSegment {
    int32_t file; /* descriptor; 0: none */
    void *base;   /* where this process has mapped all of it */
    uint64_t bytes;
} PgkmSegment;

typedef struct PgkmOpen {
    uint32_t struct_size;         /* sizeof(PgkmOpen) */
    int32_t device;               /* ordinal; -1: the backend's choice */
    int32_t threads;              /* CPU threads that the work is worth; 0: all that the process may use */
    int32_t most_threads;         /* CPU threads that the devices may have besides, for copies; 0 as above */
    uint64_t memory_limit;        /* bytes of host memory that the context may allocate; 0: no limit */
    uint64_t device_memory_limit; /* bytes of device memory; 0: no limit */
    PgkmTuning tuning;
    PgkmHost host;
    /* For a backend in another process; others ignore both. */
    int32_t channel;     /* a connected socket; 0: none */
    PgkmSegment segment; /* points that lie in it are handed over without a copy */
    /* Several devices for one context, in place of `device`: for backend/spread and for the service, others ignore
     * them. */
    const int32_t
        *devices;      /* ordinals, where the same one may come again; -1 to the service: its choice, all of one kind */
    int32_t n_devices; /* 0: `device`; at most PGKM_MOST_DEVICES */
} PgkmOpen;

/* n rows of d values, row-major, dense; every value finite and |value| <= 2^500, bits aligned as words. The
 * memory is the caller's and stays valid and unchanged until unload(). */
typedef struct PgkmPoints {
    const void *values;
    PgkmElement element;
    int64_t n;
    int32_t d;
    const double *weights; /* NULL (every row weighs 1) or n finite values > 0 */
} PgkmPoints;

/* Statistics of one problem's rows, per feature; exact and order-free (contract.hpp). */
typedef struct PgkmSummary {
    double *min;       /* d: smallest value */
    double *max;       /* d: largest value */
    double *mean;      /* d: unweighted mean; only with want_moments, else untouched */
    double *variance;  /* d: unweighted population variance; likewise */
    double max_weight; /* 1 without weights */
} PgkmSummary;

/* What one peer gives to the others. */
typedef struct PgkmPiece {
    const void *data;
    uint64_t bytes;
} PgkmPiece;

/* A problem whose rows several contexts share: each is a peer and takes its own rows in a thread of its own. */
typedef struct PgkmPeers {
    int32_t share; /* this one's: 0 .. shares - 1 */
    int32_t shares;
    int64_t n_rows; /* of all shares */
    /* Gives `own` to all peers, and waits until each has called this as often. Returns the pieces of all, in the same
     * order for each, which stay until the next call; NULL when the call is cancelled or another peer has failed. */
    const PgkmPiece *(*exchange)(void *arg, const void *own, uint64_t bytes);
    void *arg; /* of this peer */
} PgkmPeers;

/* One set of rows with its own centroids. A call takes one or many problems over the
 * same loaded points (groups); problems do not overlap. A context that was opened for several devices also takes
 * problems that all have the same rows: restarts, and each k of a sweep. */
typedef struct PgkmProblem {
    int64_t first_row;
    int64_t n_rows;  /* >= 1 */
    int32_t k;       /* clusters; seed() lowers it to the number of distinct rows it could find */
    void *centroids; /* k x d of the points' element type, float32 of bits; seed() writes, fit() reads and writes,
                      * assign() reads */
    const PgkmFeatureScale *feature_scales; /* d: contract.hpp's sum_scale() */
    int32_t weight_exponent;                /* scale_exponent(max_weight); ignored without weights */
    int32_t distance_exponent;              /* for `within`: contract.hpp's square_exponent() */
    double tol;                             /* absolute: fit() stops when the summed squared shift is at most this */
    const PgkmPeers *peers;                 /* of summarise(), seed(), fit(): who has its other rows; NULL: nobody */
    /* written by fit() */
    int32_t n_iter;    /* iterations run */
    int32_t converged; /* 1: stopped by tol or by unchanged labels */
    double shift;      /* summed squared centroid shift of the last iteration */
    uint32_t restart;  /* of seed(), of problems of the same rows: by how much its restart is above the call's */
} PgkmProblem;

typedef struct PgkmSeedParams {
    PgkmInit init;
    uint64_t seed;
    uint32_t restart; /* 0 .. n_init - 1 */
    /* The first so many centroids are there and stay: k-means++ goes on from them. By the CPU, and over servers. */
    int32_t kept;
} PgkmSeedParams;

typedef struct PgkmFitParams {
    PgkmMetric metric; /* PGKM_COSINE: rows have unit length already; new centroids are normalised. Of bits it is
                        * PGKM_HAMMING: a centroid has the majority of each bit, by weight, 0 on a tie */
    int32_t max_iter;
} PgkmFitParams;

/* What a cluster has of rows, or with weights of units of weight (size_units.hpp): at least 1. */
typedef struct PgkmSizeBounds {
    int64_t least;
    int64_t most;
} PgkmSizeBounds;

/* What assign() shall return, for one problem; a NULL pointer is not wanted. With weights totals
 * and masses have 46 bits more than the problem's exponents say (contract.hpp, quantise_weighted()). */
typedef struct PgkmAssignment {
    int32_t *labels;    /* n_rows */
    double *distances;  /* n_rows: D(x, its centroid), squared */
    PgkmInt128 *totals; /* k x d: integer feature sums */
    PgkmInt128 *masses; /* k: integer mass sums (row counts without weights) */
    PgkmInt128 *within; /* k: sums of weight * D scaled to 92 bits */
    int64_t *sizes;     /* k: row counts */
} PgkmAssignment;

/* Sums of one problem's rows about a shift, for the covariance of PCA; in float64. A row counts by its weight w. The
 * lower triangle of a symmetric matrix is stored by rows: element (a, b), b <= a, at a (a + 1) / 2 + b. */
typedef struct PgkmMoments {
    const double *shift; /* d: near the mean, so that wide offsets do not cancel */
    double *sums;        /* d: of w (x - shift); written */
    double *cross;       /* d (d + 1) / 2: of w (x - shift) (x - shift)', lower triangle; written */
    double mass;         /* the sum of the weights, n_rows without; written */
} PgkmMoments;

/* What the components of a mixture share of their covariances (names as in scikit-learn). */
typedef enum PgkmCovariance {
    PGKM_COVARIANCE_FULL = 0,     /* each component its own matrix */
    PGKM_COVARIANCE_TIED = 1,     /* one matrix for all */
    PGKM_COVARIANCE_DIAG = 2,     /* each component its own variances */
    PGKM_COVARIANCE_SPHERICAL = 3 /* each component one variance */
} PgkmCovariance;

/* A mixture of k Gaussian densities, as em_step() needs it. */
typedef struct PgkmMixture {
    int32_t k;
    PgkmCovariance covariance_type;
    const double *log_weights; /* k */
    const double *means;       /* k x d; also what the sums are taken about */
    /* W with W'W the inverse covariance, so that |W (x - mean)|^2 is the squared Mahalanobis
     * distance. Full: k lower triangular matrices d x d by rows, zeros above the diagonal; tied:
     * one such; diag: k x d, the diagonals; spherical: k. */
    const double *factors;
    const double *log_determinants; /* k: sums of the logarithms of the diagonal of W */
    const int32_t *labels;          /* NULL, or n_rows: each row belongs wholly to that component, and only
                                     * sums are taken; log_weights, factors, log_determinants are unused */
} PgkmMixture;

/* What em_step() returns, for one problem, in float64. r is the responsibility of component j
 * for row x, its share of the mixture's density at x, times the row's weight. */
typedef struct PgkmMixtureSums {
    double log_likelihood; /* sum over the rows of the weight times the logarithm of the density; 0 with labels given */
    double *masses;        /* k: sums of r; NULL: neither these nor the next two are wanted */
    double *first;         /* k x d: sums of r (x - mean) */
    double *second;        /* full: k lower triangles, d (d + 1) / 2 each, of sums of r (x - mean) (x - mean)';
                            * diag: k x d sums of r (x - mean)^2; spherical: k x d values, of which those of a
                            * component add up to the sum of r |x - mean|^2; tied: untouched; their sum over the
                            * components follows from moments(), unless these lie far apart */
    int32_t *labels;       /* n_rows, or NULL: the component of the largest r, the lowest on a tie */
} PgkmMixtureSums;

typedef struct PgkmContext PgkmContext;
typedef struct PgkmData PgkmData;

/* Every function returns the status it left in *error (PGKM_OK with an empty text when
 * all is well). None throws, aborts, exits or prints. */
typedef struct PgkmBackend {
    uint32_t abi;         /* PGKM_BACKEND_ABI */
    uint32_t struct_size; /* sizeof(PgkmBackend) */
    const char *name;     /* "cpu", "cuda" */

    /* Lists up to `capacity` devices and sets *count to how many there are. */
    PgkmStatus (*probe)(PgkmDevice *devices, int32_t capacity, int32_t *count, PgkmError *error);

    /* Names of the strategies of one kind ("assignment", "execution", "feature_sum", "mass_sum",
     * "reduction_layout", "instruction_set") that can run on this machine: a static NULL-ended list without "auto".
     * They come from backend/strategies.hpp. */
    const char *const *(*strategies)(const char *kind);

    PgkmStatus (*open)(const PgkmOpen *options, PgkmContext **context, PgkmError *error);
    void (*close)(PgkmContext *context); /* NULL is allowed; all data must be unloaded before */

    PgkmStatus (*load)(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error);
    void (*unload)(PgkmData *data); /* NULL is allowed */

    /* summaries[i] receives the statistics of problems[i]; of a problem only first_row, n_rows and peers are read. */
    PgkmStatus (*summarise)(PgkmData *data, const PgkmProblem *problems, int64_t n_problems, int32_t want_moments,
                            PgkmSummary *summaries, PgkmError *error);

    /* Chooses initial centroids: sets centroids, with +0 for -0, and may lower k. Rows are drawn in canonical order
     * (numeric/row_key.hpp), so that their own order does not matter. With peers: PGKM_UNSUPPORTED or PGKM_LIMIT
     * where it wants all rows in one context. */
    PgkmStatus (*seed)(PgkmData *data, PgkmProblem *problems, int64_t n_problems, const PgkmSeedParams *params,
                       PgkmError *error);

    /* Lloyd's iterations from the given centroids until convergence or max_iter. */
    PgkmStatus (*fit)(PgkmData *data, PgkmProblem *problems, int64_t n_problems, const PgkmFitParams *params,
                      PgkmError *error);

    /* One assignment to fixed centroids with the sums over it. */
    PgkmStatus (*assign)(PgkmData *data, const PgkmProblem *problems, int64_t n_problems, PgkmAssignment *assignments,
                         PgkmError *error);

    /* The last three are generalised reductions in float64 (numeric/reduction.hpp): the same bits from
     * run to run of one backend and instruction set, whatever the number of threads; float64 sums of
     * reduce() by a GPU's atomics (cuda/reduce) aside. Those of reduce() have no weights. Of a problem only first_row
     * and n_rows are read. With data NULL and n_problems 0 reduce() says whether the backend has it: PGKM_OK or
     * PGKM_UNSUPPORTED. */

    /* moments[i] receives the sums of problems[i]. */
    PgkmStatus (*moments)(PgkmData *data, const PgkmProblem *problems, int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error);

    /* The E step under mixtures[i] and the sums of the M step over problems[i]. */
    PgkmStatus (*em_step)(PgkmData *data, const PgkmProblem *problems, int64_t n_problems, const PgkmMixture *mixtures,
                          PgkmMixtureSums *sums, PgkmError *error);

    /* Reduces the rows of each problem, at least one, by a program that check_program() accepts. Where a
     * row fails: PGKM_INVALID with reduced[i].fault, or, of a device, PGKM_UNSUPPORTED: the CPU names what failed. */
    PgkmStatus (*reduce)(PgkmData *data, const PgkmProblem *problems, int64_t n_problems,
                         const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error);

    /* fit() with a bound for each cluster, problem after problem; then assignments[i].labels, not NULL, are the
     * cheapest within the bounds under the last centroids, or with weights cheap ones (cpu/sizes). Without params: what
     * else assignments[i] wants, over rows with these labels. NULL: left to the CPU. */
    PgkmStatus (*fit_sizes)(PgkmData *data, PgkmProblem *problems, int64_t n_problems, const PgkmFitParams *params,
                            const PgkmSizeBounds *bounds, PgkmAssignment *assignments, PgkmError *error);
} PgkmBackend;

#ifdef __cplusplus
}
#endif
#endif

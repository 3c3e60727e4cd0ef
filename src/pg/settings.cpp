/*
 * settings.cpp - defines the settings pg_kmeans.* and reads their values.
 */
#include "pg/settings.h"

#include <climits>

extern "C" {
#include "miscadmin.h"
#include "utils/guc.h"
}

/* Strategies are lists of names; the value of a name is its place in the list, 0 is auto. */
static const config_enum_entry backends[] = {{"auto", PGKM_BACKEND_AUTO, false},
                                             {"cpu", PGKM_BACKEND_CPU, false},
                                             {"cuda", PGKM_BACKEND_CUDA, false},
                                             {NULL, 0, false}};

static const config_enum_entry assignments[] = {{"auto", 0, false},
                                                {"direct", 1, false},
                                                {"tiled", 2, false},
                                                {"hamerly", 3, false},
                                                {"register", 4, false},
                                                {"generic", 5, false},
                                                {"tensor_core", 6, false},
                                                {"register_constant", 7, false},
                                                {"register_shared", 8, false},
                                                {"register_global", 9, false},
                                                {"generic_constant", 10, false},
                                                {NULL, 0, false}};

static const config_enum_entry executions[] = {{"auto", 0, false},
                                               {"cross_processing", 1, false},
                                               {"multi_pass", 2, false},
                                               {"single_pass", 3, false},
                                               {NULL, 0, false}};

static const config_enum_entry feature_sums[] = {{"auto", 0, false},
                                                 {"cluster_merge", 1, false},
                                                 {"partitioned_features", 2, false},
                                                 {"ballot", 3, false},
                                                 {"divide_and_conquer", 4, false},
                                                 {"atomic", 5, false},
                                                 {"sorted", 6, false},
                                                 {NULL, 0, false}};

static const config_enum_entry mass_sums[] = {{"auto", 0, false},
                                              {"global_atomic", 1, false},
                                              {"partitioned_global", 2, false},
                                              {"partitioned_local", 3, false},
                                              {"partitioned_private", 4, false},
                                              {NULL, 0, false}};

static const config_enum_entry scans[] = {
    {"auto", SCAN_AUTO, false}, {"direct", SCAN_DIRECT, false}, {"executor", SCAN_EXECUTOR, false}, {NULL, 0, false}};

static int backend = PGKM_BACKEND_AUTO;
static int device = -1;
static int cpu_threads = 0;
static int memory_limit_kb = 4 * 1024 * 1024;
static int gpu_memory_limit_kb = 0;
static int assignment = 0;
static int execution = 0;
static int feature_sum = 0;
static int mass_sum = 0;
static int scan = SCAN_AUTO;
static bool service = true;
static int max_gpu_jobs = 4;
static int gpu_idle_timeout_s = 300;
static char *cuda_plugin = NULL;

static void define_enum(const char *name, const char *text, int *value, const config_enum_entry *entries)
{
    DefineCustomEnumVariable(name, text, NULL, value, *value, entries, PGC_USERSET, 0, NULL, NULL, NULL);
}

static void define_int(const char *name, const char *text, const char *more, int *value, int low, int high,
                       GucContext context, int flags)
{
    DefineCustomIntVariable(name, text, more, value, *value, low, high, context, flags, NULL, NULL, NULL);
}

/* Settings on which the service and all sessions must agree are set in the configuration alone. */
static void define_service(void)
{
    DefineCustomBoolVariable("pg_kmeans.service", "Reaches CUDA devices through one process for all sessions.",
                             "Off: every session opens the device itself.", &service, service, PGC_SUSET, 0, NULL, NULL,
                             NULL);
    define_int("pg_kmeans.max_gpu_jobs", "Calls that the GPU service has at work on a device at once.", NULL,
               &max_gpu_jobs, 1, 1024, PGC_SIGHUP, 0);
    define_int("pg_kmeans.gpu_idle_timeout", "Time without any job after which the GPU service ends.",
               "0 means never. One that was started with the server stays.", &gpu_idle_timeout_s, 0, INT_MAX / 1000,
               PGC_SIGHUP, GUC_UNIT_S);
    DefineCustomStringVariable("pg_kmeans.cuda_plugin", "Path of the CUDA plugin.",
                               "Empty: pg_kmeans_cuda.so in the library directory.", &cuda_plugin, "", PGC_SIGHUP,
                               GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
}

void pgkm_settings_define(void)
{
    define_enum("pg_kmeans.backend", "Chooses what computes: the CPU, a CUDA device, or the faster one that is there.",
                &backend, backends);
    define_int("pg_kmeans.device", "Ordinal of the device to use.", "-1: the one with most room.", &device, -1, 1023,
               PGC_USERSET, 0);
    define_int("pg_kmeans.cpu_threads", "Threads of a fit on the CPU.",
               "0 uses all processors that the server may run on.", &cpu_threads, 0, 4096, PGC_USERSET, 0);
    define_int("pg_kmeans.memory_limit", "Memory that a session may use for rows and their clustering.",
               "0 means no limit.", &memory_limit_kb, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB);
    define_int("pg_kmeans.gpu_memory_limit", "Device memory that a fit may use.", "0 means no limit.",
               &gpu_memory_limit_kb, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB);
    define_enum("pg_kmeans.assignment", "Forces how rows are assigned to centroids.", &assignment, assignments);
    define_enum("pg_kmeans.execution", "Forces how assignment and sums share the passes over the rows.", &execution,
                executions);
    define_enum("pg_kmeans.feature_sum", "Forces how features are summed.", &feature_sum, feature_sums);
    define_enum("pg_kmeans.mass_sum", "Forces how cluster masses are summed.", &mass_sum, mass_sums);
    define_enum("pg_kmeans.scan", "Forces how table functions read rows: from the pages themselves, or by a query.",
                &scan, scans);
    define_service();
    MarkGUCPrefixReserved("pg_kmeans");
}

static const char *forced(const config_enum_entry *entries, int value)
{
    return value == 0 ? NULL : entries[value].name;
}

uint64 pgkm_memory_limit(void)
{
    return (uint64)memory_limit_kb * 1024;
}

bool pgkm_service_enabled(void)
{
    return service;
}

int pgkm_max_gpu_jobs(void)
{
    return max_gpu_jobs;
}

int pgkm_gpu_idle_timeout(void)
{
    return gpu_idle_timeout_s;
}

ScanChoice pgkm_scan_choice(void)
{
    return (ScanChoice)scan;
}

static const char *plugin_path(void)
{
    static char path[MAXPGPATH];

    if (cuda_plugin[0] != '\0')
        return cuda_plugin;
    snprintf(path, sizeof path, "%s/pg_kmeans_cuda.so", pkglib_path);
    return path;
}

void pgkm_settings_fill(PgkmSettings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->backend = (PgkmBackendChoice)backend;
    settings->device = device;
    settings->cpu_threads = cpu_threads;
    settings->memory_limit = pgkm_memory_limit();
    settings->gpu_memory_limit = (uint64)gpu_memory_limit_kb * 1024;
    settings->tuning.assignment = forced(assignments, assignment);
    settings->tuning.execution = forced(executions, execution);
    settings->tuning.feature_sum = forced(feature_sums, feature_sum);
    settings->tuning.mass_sum = forced(mass_sums, mass_sum);
    settings->plugin = plugin_path();
}

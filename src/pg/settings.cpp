/*
 * settings.cpp - defines the settings pg_kmeans.* and reads their values.
 */
#include "pg/settings.h"

#include <dlfcn.h>

#include <array>
#include <climits>

#include "backend/strategies.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/guc.h"
#include "utils/memutils.h"
}

static const config_enum_entry backends[] = {{"auto", PGKM_BACKEND_AUTO, false},
                                             {"cpu", PGKM_BACKEND_CPU, false},
                                             {"cuda", PGKM_BACKEND_CUDA, false},
                                             {NULL, 0, false}};

/* The settings that force a strategy, in the order of StrategyKind. */
static struct {
    const char *name;
    const char *text;
    int value; /* a strategy's id; 0: auto */
} forced[pgkm::strategy_kinds] = {
    {"pg_kmeans.assignment", "Forces how rows are assigned to centroids.", 0},
    {"pg_kmeans.execution", "Forces how assignment and sums share the passes over the rows.", 0},
    {"pg_kmeans.feature_sum", "Forces how features are summed.", 0},
    {"pg_kmeans.mass_sum", "Forces how cluster masses are summed.", 0},
    {"pg_kmeans.reduction_layout", "Forces where the variables of a reduction of your own lie.", 0}};

using StrategyEntries = std::array<config_enum_entry, std::size(pgkm::strategies) + 2>;

/* For each kind "auto" and its strategies; the value of a name is its place in the list. */
static constexpr auto strategy_entries = [] {
    std::array<StrategyEntries, pgkm::strategy_kinds> lists = {};
    for (StrategyEntries &list : lists)
        list[0].name = "auto";
    for (const pgkm::Strategy &strategy : pgkm::strategies)
        lists[static_cast<int>(strategy.kind)][strategy.id] = {strategy.name, strategy.id, false};
    return lists;
}();

#define MAX_DEVICE 1023 /* the largest ordinal */
#define MAX_LEVELS 32768

static const config_enum_entry scans[] = {
    {"auto", SCAN_AUTO, false}, {"direct", SCAN_DIRECT, false}, {"executor", SCAN_EXECUTOR, false}, {NULL, 0, false}};

static int backend = PGKM_BACKEND_AUTO;
static int device = -1;
static char *devices = NULL;
static int cpu_threads = 0;
static int max_threads = 0;
static int memory_limit_kb = 4 * 1024 * 1024;
static int max_memory_kb = 0;
static int gpu_memory_limit_kb = 0;
static int node_timeout_s = 10;
static char *cuda_plugin = NULL;

int pgkm_scan_choice = SCAN_AUTO;
int pgkm_queue_timeout = 60000;
bool pgkm_service_enabled = true;
int pgkm_max_levels = 100;
int pgkm_max_gpu_jobs = 4;
int pgkm_gpu_idle_timeout = 300;
bool pgkm_distributed = true;

static void define_enum(const char *name, const char *text, const char *more, int *value,
                        const config_enum_entry *entries, GucContext context)
{
    DefineCustomEnumVariable(name, text, more, value, *value, entries, context, 0, NULL, NULL, NULL);
}

/* Its long description has a line for each strategy: NAME (BACKENDS; needs ...): what it does. */
static void define_strategy(int kind)
{
    StringInfoData more;

    initStringInfo(&more);
    appendStringInfoString(&more, "auto: the backend chooses.");
    for (const pgkm::Strategy &strategy : pgkm::strategies) {
        const bool cpu = strategy.backends & pgkm::on_cpu, cuda = strategy.backends & pgkm::on_cuda;

        if (static_cast<int>(strategy.kind) != kind)
            continue;
        appendStringInfo(&more, "\n%s (%s", strategy.name, cpu && cuda ? "CPU, CUDA" : cpu ? "CPU" : "CUDA");
        if (strategy.requirement[0] != '\0')
            appendStringInfo(&more, "; needs %s", strategy.requirement);
        appendStringInfo(&more, "): %s.", strategy.description);
    }
    define_enum(forced[kind].name, forced[kind].text, MemoryContextStrdup(TopMemoryContext, more.data),
                &forced[kind].value, strategy_entries[kind].data(), PGC_SUSET);
    pfree(more.data);
}

static void define_int(const char *name, const char *text, const char *more, int *value, int low, int high,
                       GucContext context, int flags)
{
    DefineCustomIntVariable(name, text, more, value, *value, low, high, context, flags, NULL, NULL, NULL);
}

/* The most that pg_kmeans.cpu_threads can ask for, too. */
#define MOST_THREADS 4096

static void limit_threads(int most, void *)
{
    pgkm_limit_threads(most);
}

static void define_threads(void)
{
    define_int("pg_kmeans.cpu_threads", "Threads of a fit on the CPU.",
               "0 uses all processors that the server may run on. pg_kmeans.max_threads is the limit.", &cpu_threads, 0,
               MOST_THREADS, PGC_USERSET, 0);
    DefineCustomIntVariable("pg_kmeans.max_threads", "Most threads that compute for all sessions at once.",
                            "0: for each session as many as the processors that the server may run on.", &max_threads,
                            max_threads, 0, MOST_THREADS, PGC_SUSET, 0, NULL, limit_threads, NULL);
}

static void define_memory(void)
{
    define_int("pg_kmeans.memory_limit", "Memory that a session may use for rows and their clustering.",
               "0 means no limit.", &memory_limit_kb, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB);
    define_int("pg_kmeans.max_memory", "Memory that all sessions together may use for rows and their clustering.",
               "0 means no limit.", &max_memory_kb, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB);
    define_int("pg_kmeans.queue_timeout", "Time that a call waits for memory that other sessions hold.",
               "0 means without end.", &pgkm_queue_timeout, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS);
    define_int("pg_kmeans.gpu_memory_limit", "Device memory that a fit may use.", "0 means no limit.",
               &gpu_memory_limit_kb, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB);
}

static void define_nodes(void)
{
    DefineCustomBoolVariable("pg_kmeans.distributed", "Has other servers work on the rows that they hold.",
                             "Off: the rows of foreign tables are read by this server.", &pgkm_distributed,
                             pgkm_distributed, PGC_USERSET, 0, NULL, NULL, NULL);
    define_int("pg_kmeans.node_timeout", "Time after which another server that says nothing is given up.", NULL,
               &node_timeout_s, 3, 3600, PGC_USERSET, GUC_UNIT_S);
}

/* Reads a list of ordinals, 'N, N, ...', to `ordinals`; how many there are, or -1 for another text. */
static int read_devices(const char *text, int32_t *ordinals)
{
    char digits[10];
    int count = 0;
    int used = 0;

    for (text += strspn(text, " "); *text != '\0'; text += used) {
        const char *const next = count == 0 ? "%9[0-9] %n" : ", %9[0-9] %n";

        if (count == PGKM_MOST_DEVICES || sscanf(text, next, digits, &used) != 1 || atoi(digits) > MAX_DEVICE)
            return -1;
        ordinals[count++] = atoi(digits);
    }
    return count;
}

static bool check_devices(char **text, void **, GucSource)
{
    int32_t ordinals[PGKM_MOST_DEVICES];

    if (read_devices(*text, ordinals) >= 0)
        return true;
    GUC_check_errdetail("It is a list of up to %d ordinals of devices, as in \"0,1,2\", or empty.", PGKM_MOST_DEVICES);
    return false;
}

/* Settings on which the service and all sessions must agree are set in the configuration alone. */
static void define_service(void)
{
    DefineCustomBoolVariable("pg_kmeans.service", "Reaches CUDA devices through one process for all sessions.",
                             "Off: every session opens the device itself.", &pgkm_service_enabled, pgkm_service_enabled,
                             PGC_SUSET, 0, NULL, NULL, NULL);
    define_int("pg_kmeans.max_gpu_jobs", "Calls that the GPU service has at work on a device at once.", NULL,
               &pgkm_max_gpu_jobs, 1, 1024, PGC_SIGHUP, 0);
    define_int("pg_kmeans.gpu_idle_timeout", "Time without any job after which the GPU service ends.",
               "0 means never. One that was started with the server stays.", &pgkm_gpu_idle_timeout, 0, INT_MAX / 1000,
               PGC_SIGHUP, GUC_UNIT_S);
    DefineCustomStringVariable("pg_kmeans.cuda_plugin", "Path of the CUDA plugin.",
                               "Empty: pg_kmeans_cuda.so beside this library.", &cuda_plugin, "", PGC_SIGHUP,
                               GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
}

void pgkm_settings_define(void)
{
    define_enum("pg_kmeans.backend", "Chooses what computes: the CPU, a CUDA device, or the faster one that is there.",
                NULL, &backend, backends, PGC_USERSET);
    define_int("pg_kmeans.device", "Ordinal of the device to use.", "-1: what pg_kmeans.devices says.", &device, -1,
               MAX_DEVICE, PGC_USERSET, 0);
    DefineCustomStringVariable("pg_kmeans.devices", "Ordinals of the devices over which a fit is spread.",
                               "Empty: as many of one kind as the fit is worth.", &devices, "", PGC_USERSET, 0,
                               check_devices, NULL, NULL);
    define_threads();
    define_memory();
    for (int kind = 0; kind < pgkm::strategy_kinds; ++kind)
        define_strategy(kind);
    define_enum("pg_kmeans.scan", "Forces how table functions read rows: from the pages themselves, or by a query.",
                NULL, &pgkm_scan_choice, scans, PGC_SUSET);
    define_int("pg_kmeans.max_levels", "Levels that a column of text may have as a feature.",
               "Each level is a feature of its own, 0 or 1.", &pgkm_max_levels, 1, MAX_LEVELS, PGC_USERSET, 0);
    define_nodes();
    define_service();
    MarkGUCPrefixReserved("pg_kmeans");
}

/* The name of the strategy that is forced; NULL: none. */
static const char *forced_name(pgkm::StrategyKind kind)
{
    const int i = static_cast<int>(kind);

    return forced[i].value == 0 ? NULL : strategy_entries[i][forced[i].value].name;
}

/* Whether a session alone may not have what its own limit allows. */
static bool max_memory_is_less(void)
{
    return max_memory_kb != 0 && (memory_limit_kb == 0 || max_memory_kb < memory_limit_kb);
}

uint64 pgkm_memory_limit(void)
{
    return (uint64)(max_memory_is_less() ? max_memory_kb : memory_limit_kb) * 1024;
}

const char *pgkm_memory_limit_name(void)
{
    return max_memory_is_less() ? "pg_kmeans.max_memory" : "pg_kmeans.memory_limit";
}

uint64 pgkm_max_memory(void)
{
    return (uint64)max_memory_kb * 1024;
}

int pgkm_max_threads(void)
{
    return max_threads;
}

int pgkm_node_timeout_ms(void)
{
    return node_timeout_s * 1000;
}

/* Empty: the one beside this library, wherever dynamic_library_path has it. */
static const char *plugin_path(void)
{
    static char path[MAXPGPATH];
    Dl_info library;

    if (cuda_plugin[0] != '\0')
        return cuda_plugin;
    if (dladdr((void *)pgkm_settings_fill, &library) == 0 || library.dli_fname == NULL)
        library.dli_fname = "";
    strlcpy(path, library.dli_fname, sizeof path);
    get_parent_directory(path);
    strlcat(path, "/pg_kmeans_cuda.so", sizeof path);
    return path;
}

void pgkm_settings_fill(PgkmSettings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->backend = (PgkmBackendChoice)backend;
    settings->device = device;
    settings->n_devices = read_devices(devices, settings->devices);
    settings->cpu_threads = cpu_threads;
    settings->memory_limit = pgkm_memory_limit();
    settings->gpu_memory_limit = (uint64)gpu_memory_limit_kb * 1024;
    settings->tuning.assignment = forced_name(pgkm::StrategyKind::assignment);
    settings->tuning.execution = forced_name(pgkm::StrategyKind::execution);
    settings->tuning.feature_sum = forced_name(pgkm::StrategyKind::feature_sum);
    settings->tuning.mass_sum = forced_name(pgkm::StrategyKind::mass_sum);
    settings->tuning.reduction_layout = forced_name(pgkm::StrategyKind::reduction_layout);
    settings->plugin = plugin_path();
}

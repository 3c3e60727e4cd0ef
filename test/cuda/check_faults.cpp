#include "check_faults.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check_answer.hpp"
#include "reference/reference.hpp"

namespace plugin_check {
namespace {

struct Job {
    Case shape;
    Setting setting;
    Rows rows;
    Answer want;
    int step; // of its calls, every how many are tried
};

Job make_job(Case shape, const PgkmTuning &tuning, std::uint64_t device_limit, int step = 1)
{
    Setting setting = {tuning, device_limit, 4, -1};
    Rows rows = make_rows(shape, 7);
    Answer want = run(pgkm::reference_backend(), shape, rows, {{}, 0, setting.max_iter, -1});
    return {std::move(shape), setting, std::move(rows), std::move(want), step};
}

// Jobs that between them pass through every file of the plugin.
std::vector<Job> make_jobs()
{
    const auto tuned = [](const char *assignment, const char *execution, const char *feature_sum,
                          const char *mass_sum) {
        PgkmTuning tuning{};
        tuning.assignment = assignment;
        tuning.execution = execution;
        tuning.feature_sum = feature_sum;
        tuning.mass_sum = mass_sum;
        return tuning;
    };
    std::vector<Job> jobs;
    jobs.push_back(make_job({.name = "plain", .n = 700, .d = 4, .k = 5, .init = PGKM_INIT_KMEANS_PLUS_PLUS}, {}, 0));
    jobs.push_back(make_job(
        {.name = "wide", .n = 900, .d = 40, .k = 7, .weighted = true, .init = PGKM_INIT_KMEANS_PARALLEL}, {}, 0));
    jobs.push_back(
        make_job({.name = "emptied", .n = 600, .d = 5, .k = 8, .init = PGKM_INIT_RANDOM, .far_start = true}, {}, 0));
    jobs.push_back(make_job(
        {.name = "grouped", .n = 900, .d = 3, .k = 4, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 9}, {}, 0));
    jobs.push_back(make_job({.name = "sorted", .n = 600, .d = 24, .k = 9, .init = PGKM_INIT_RANDOM},
                            tuned("tensor_core", nullptr, "sorted", "partitioned_global"), 0));
    jobs.push_back(make_job({.name = "divided", .n = 900, .d = 3, .k = 6, .init = PGKM_INIT_FIRST},
                            tuned("generic", "multi_pass", "divide_and_conquer", "partitioned_private"), 0));
    jobs.push_back(make_job({.name = "in columns", .n = 900, .d = 20, .k = 6, .init = PGKM_INIT_FIRST},
                            tuned("register_constant", "multi_pass", "ballot", "partitioned_local"), 0));
    jobs.push_back(make_job({.name = "in tables", .n = 900, .d = 5, .k = 6, .init = PGKM_INIT_FIRST},
                            tuned("distance_matrix", "multi_pass", "cluster_merge", nullptr), 0));
    jobs.push_back(make_job({.name = "staged", .n = 900, .d = 5, .k = 6, .init = PGKM_INIT_FIRST},
                            tuned("generic", "multi_pass", "staged_rows", nullptr), 0));
    jobs.push_back(make_job({.name = "to and fro", .n = 600, .d = 3, .k = 6, .init = PGKM_INIT_KMEANS_PLUS_PLUS},
                            tuned(nullptr, "round_trip", nullptr, nullptr), 0));
    jobs.push_back(make_job({.name = "shared", .n = 9000, .d = 20, .k = 6, .init = PGKM_INIT_RANDOM},
                            tuned(nullptr, "co_processing", nullptr, nullptr), 500000, 7));
    jobs.push_back(make_job({.name = "crossed", .n = 600, .d = 3, .k = 6, .init = PGKM_INIT_RANDOM},
                            tuned(nullptr, "cross_processing", nullptr, nullptr), 0));
    jobs.push_back(
        make_job({.name = "streamed", .n = 9000, .d = 20, .k = 6, .weighted = true, .init = PGKM_INIT_KMEANS_PLUS_PLUS},
                 {}, 500000, 7));
    jobs.push_back(make_job({.name = "repeated",
                             .n = 17000,
                             .d = 3,
                             .k = 12,
                             .distinct = 40,
                             .init = PGKM_INIT_KMEANS_PARALLEL,
                             .far_start = true},
                            {}, 0, 31));
    // Seeded and labelled by entries, fitted by rows beside them.
    jobs.push_back(
        make_job({.name = "repeated a few times", .n = 17000, .d = 3, .k = 12, .distinct = 2500}, {}, 0, 31));
    jobs.push_back(make_job({.name = "repeated in groups",
                             .n = 50000,
                             .d = 3,
                             .k = 12,
                             .distinct = 40,
                             .init = PGKM_INIT_KMEANS_PLUS_PLUS,
                             .groups = 3},
                            {}, 0, 31));
    jobs.push_back(make_job({.name = "equal keys",
                             .n = 5200,
                             .d = 20,
                             .k = 8,
                             .element = PGKM_FLOAT64,
                             .init = PGKM_INIT_KMEANS_PLUS_PLUS,
                             .same_keys = true},
                            {}, 0, 31));
    return jobs;
}

// Jobs whose faster ways keep something beside the rows, or hand it to the host where there is no room.
std::vector<Job> make_optional_jobs()
{
    PgkmTuning by_column{}, by_label{}, in_passes{};
    by_column.assignment = "register_constant";
    by_label.feature_sum = "sorted";
    in_passes.execution = "multi_pass";
    std::vector<Job> jobs;
    jobs.push_back(make_job({.name = "lists of leaves", .n = 66000, .d = 2, .k = 300}, {}, 0));
    jobs.push_back(make_job({.name = "strips", .n = 3000, .d = 40, .k = 30}, {}, 0));
    jobs.push_back(make_job({.name = "ordered rows", .n = 6000, .d = 100, .k = 200}, {}, 0));
    jobs.push_back(
        make_job({.name = "ordered float64", .n = 6000, .d = 100, .k = 200, .element = PGKM_FLOAT64}, {}, 0));
    jobs.push_back(make_job({.name = "few features", .n = 6000, .d = 24, .k = 300}, {}, 0));
    jobs.push_back(make_job({.name = "bounds of rows", .n = 33000, .d = 70, .k = 5}, {}, 0));
    jobs.push_back(make_job({.name = "columns", .n = 900, .d = 20, .k = 6}, by_column, 0));
    jobs.push_back(make_job({.name = "entries", .n = 900, .d = 20, .k = 6}, by_label, 0));
    jobs.push_back(
        make_job({.name = "candidates", .n = 9000, .d = 20, .k = 40, .init = PGKM_INIT_KMEANS_PARALLEL}, {}, 0));
    jobs.push_back(
        make_job({.name = "repeated", .n = 17000, .d = 20, .k = 12, .distinct = 90, .init = PGKM_INIT_RANDOM}, {}, 0));
    jobs.push_back(
        make_job({.name = "repeated in groups", .n = 50000, .d = 3, .k = 12, .distinct = 90, .groups = 3}, {}, 0));
    jobs.push_back(make_job({.name = "equal keys",
                             .n = 17000,
                             .d = 20,
                             .k = 12,
                             .element = PGKM_FLOAT64,
                             .distinct = 90,
                             .init = PGKM_INIT_KMEANS_PLUS_PLUS,
                             .same_keys = true},
                            {}, 0));
    jobs.push_back( // not by rows that blocks hold
        make_job({.name = "trials", .n = 9000, .d = 100, .k = 10, .init = PGKM_INIT_KMEANS_PLUS_PLUS}, in_passes, 0));
    jobs.push_back(make_job(
        {.name = "ordered groups", .n = 900, .d = 3, .k = 4, .init = PGKM_INIT_KMEANS_PLUS_PLUS, .groups = 9}, {}, 0));
    return jobs;
}

bool is_fault(const Answer &answer)
{
    const bool known =
        answer.status == PGKM_DEVICE_ERROR || answer.status == PGKM_OUT_OF_MEMORY || answer.status == PGKM_UNAVAILABLE;
    return known && !answer.text.empty();
}

PgkmDevice first_device(const PgkmBackend *backend)
{
    PgkmDevice device{};
    std::int32_t count = 0;
    PgkmError error{};
    backend->probe(&device, 1, &count, &error);
    return device;
}

std::uint64_t free_memory(const PgkmBackend *backend)
{
    return first_device(backend).memory_free;
}

bool expect_right(const PgkmBackend *backend, const Job &job, const char *when)
{
    const std::vector<std::string> wrong = differences(job.want, run(backend, job.shape, job.rows, job.setting));
    for (const std::string &what : wrong)
        std::printf("FAIL %s %s: %s\n", job.shape.name.c_str(), when, what.c_str());
    return wrong.empty();
}

// Every call up to `calls`, or every `step`th, fails once in the way that `kind` says. Returns how many did, or -1
// after a failure. Several devices get over lack of memory where one of them may have all rows.
int fail_in_turn(const PgkmBackend *backend, const Job &job, const char *kind, int step, int calls)
{
    int reached = 0;
    for (int call = 1; call <= calls; call += step) {
        setenv("PGKM_CUDA_FAULT", (std::to_string(call) + kind).c_str(), 1);
        const Answer got = run(backend, job.shape, job.rows, job.setting);
        unsetenv("PGKM_CUDA_FAULT");
        if (got.status == PGKM_OK && differences(job.want, got).empty()) {
            if (kind[0] == '\0' || std::strcmp(kind, ":optional") == 0)
                return reached; // the job makes fewer calls
            continue;
        }
        if (!is_fault(got)) {
            std::printf("FAIL %s call %d%s: status %d \"%s\"\n", job.shape.name.c_str(), call, kind, got.status,
                        got.text.c_str());
            return -1;
        }
        ++reached;
        if (reached % 16 == 0 && !expect_right(backend, job, "after a fault"))
            return -1;
    }
    return reached;
}

} // namespace

int check_faults(const PgkmBackend *backend, int first, int last)
{
    int failures = 0, faults = 0, number = -1;
    std::uint64_t before = 0;
    for (const Job &job : make_jobs()) {
        if (++number < first || number > last)
            continue;
        failures += !expect_right(backend, job, "without a fault");
        if (before == 0)
            before = free_memory(backend); // what the context itself takes has been taken
        const struct {
            const char *kind;
            int step;
        } kinds[] = {{"", 1}, {":oom", 5}, {":timeout", 7}, {":gone", 11}};
        int calls = 100000;
        for (const auto &[kind, step] : kinds) {
            const int reached = fail_in_turn(backend, job, kind, step * job.step, calls);
            if (kind[0] == '\0')
                calls = reached * job.step;
            if (reached < 1) {
                std::printf("FAIL %s%s: %d faults\n", job.shape.name.c_str(), kind, reached);
                ++failures;
            }
            faults += reached;
        }
        failures += !expect_right(backend, job, "after all faults");
    }
    const bool alone = first < last; // else other processes take memory meanwhile
    const std::uint64_t after = alone ? free_memory(backend) : before;
    // The driver keeps some: modules loaded late, freed blocks.
    if (after + (std::uint64_t{256} << 20) < before) {
        std::printf("FAIL device memory: %llu bytes free before the faults, %llu after\n",
                    static_cast<unsigned long long>(before), static_cast<unsigned long long>(after));
        ++failures;
    }
    std::printf("faults: %d injected, %d failures\n", faults, failures);
    return failures;
}

int check_lean(const PgkmBackend *backend)
{
    int failures = 0, faults = 0;
    for (const Job &job : make_optional_jobs()) {
        const int calls = fail_in_turn(backend, job, ":optional", 1, 100000);
        if (calls < 1) {
            std::printf("FAIL %s: %d optional calls\n", job.shape.name.c_str(), calls);
            ++failures;
        }
        for (int call = 1; call <= calls; call += 1 + calls / 40) {
            const std::string fault = std::to_string(call) + ":optional:oom";
            setenv("PGKM_CUDA_FAULT", fault.c_str(), 1);
            failures += !expect_right(backend, job, fault.c_str());
            unsetenv("PGKM_CUDA_FAULT");
            ++faults;
        }
    }
    std::printf("lean: %d injected, %d failures\n", faults, failures);
    return failures;
}

int check_poisoned(const PgkmBackend *backend)
{
    const std::vector<Job> jobs = make_jobs();
    const Job &job = jobs.front();
    int failures = !expect_right(backend, job, "without a fault");
    setenv("PGKM_CUDA_FAULT", "40:trap", 1);
    const Answer first = run(backend, job.shape, job.rows, job.setting);
    unsetenv("PGKM_CUDA_FAULT");
    const Answer second = run(backend, job.shape, job.rows, job.setting);
    failures += !is_fault(first) + !is_fault(second);
    std::printf("poisoned: \"%s\", then \"%s\", %d failures\n", first.text.c_str(), second.text.c_str(), failures);
    return failures;
}

int check_products(const PgkmBackend *backend)
{
    const bool hopper = first_device(backend).capability_major == 9;
    // The second has rows too long for a tile of the filter without wgmma.
    const Job narrow = make_job({.name = "products", .n = 5000, .d = 100, .k = 40}, {}, 0);
    const Job wide = make_job({.name = "products of long rows", .n = 4200, .d = 3200, .k = 20}, {}, 0);
    const struct {
        const Job &job;
        const char *off, *assignment;
    } expected[] = {{narrow, "none", "tensor_core"},  {narrow, "mma", "tiled"},
                    {narrow, "wgmma", "tensor_core"}, {wide, "none", hopper ? "tensor_core" : "tiled"},
                    {wide, "wgmma128", "tiled"},      {wide, "wgmma256", "tiled"}};
    int failures = 0;
    for (const auto &[job, off, assignment] : expected) {
        setenv("PGKM_CUDA_PRODUCTS", off, 1);
        const Answer got = run(backend, job.shape, job.rows, job.setting);
        unsetenv("PGKM_CUDA_PRODUCTS");
        const bool right = got.assignment == assignment && differences(job.want, got).empty();
        std::printf("%s%s, %s off: %s, status %d %s\n", right ? "" : "FAIL ", job.shape.name.c_str(), off,
                    got.assignment.c_str(), got.status, got.text.c_str());
        failures += !right;
    }
    std::printf("products: %d failures\n", failures);
    return failures;
}

int check_entries(const PgkmBackend *backend)
{
    const Job repeated = make_job({.name = "rows that repeat", .n = 20000, .d = 3, .k = 20, .distinct = 100}, {}, 0),
              single = make_job({.name = "rows that differ", .n = 20000, .d = 3, .k = 20}, {}, 0),
              few = make_job({.name = "rows that repeat a few times", .n = 20000, .d = 3, .k = 20, .distinct = 3000},
                             {}, 0),
              some =
                  make_job({.name = "rows of which few repeat", .n = 20000, .d = 3, .k = 20, .distinct = 9000}, {}, 0),
              groups = make_job(
                  {.name = "groups of rows that repeat", .n = 100000, .d = 3, .k = 20, .distinct = 100, .groups = 3},
                  {}, 0);
    const struct {
        const Job &job;
        const char *without, *execution;
    } expected[] = {{repeated, "none", "multi_pass"},  {repeated, "entries", "single_pass"},
                    {few, "none", "single_pass"},      {single, "none", "single_pass"},
                    {some, "none", "single_pass"},     {groups, "none", "multi_pass"},
                    {groups, "entries", "single_pass"}};
    int failures = 0;
    for (const auto &[job, without, execution] : expected) {
        const LeftOut left_out(without);
        const Answer got = run(backend, job.shape, job.rows, job.setting);
        const bool right = got.execution == execution && differences(job.want, got).empty();
        std::printf("%s%s, without %s: %s, status %d %s\n", right ? "" : "FAIL ", job.shape.name.c_str(), without,
                    got.execution.c_str(), got.status, got.text.c_str());
        failures += !right;
    }
    std::printf("entries: %d failures\n", failures);
    return failures;
}

int check_absent(const PgkmBackend *backend)
{
    std::vector<Job> jobs = make_jobs();
    Job &job = jobs.front();
    job.setting.device = 4095;
    const Answer got = run(backend, job.shape, job.rows, job.setting);
    const int failures = !(got.status == PGKM_UNAVAILABLE && !got.text.empty());
    std::printf("absent: status %d \"%s\", %d failures\n", got.status, got.text.c_str(), failures);
    return failures;
}

} // namespace plugin_check

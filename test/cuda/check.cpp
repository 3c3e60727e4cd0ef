// check.cpp - a small driver of a backend plugin against the reference, without a test
// framework, so that it runs on a bare GPU host and under compute-sanitizer.
//
//   check PLUGIN [tiny|quick|full] [seed] [first-last]    the cases by number; all without it
//   check count                                           how many cases `full` has
//   check                                                 the reference beside itself, in a moment
//   check PLUGIN lean|poisoned|products|entries|absent    check_faults.hpp
//   check PLUGIN faults [seed] [first-last]          likewise; its jobs by number
//   check PLUGIN reductions                          check_reductions.hpp alone
//
// With PGKM_DEVICES=0,0,0 each fit is spread over these devices, of which the same one may come again.
//
// Every case is compared bit for bit. Prints one line per failure and a summary.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check_answer.hpp"
#include "check_faults.hpp"
#include "check_reductions.hpp"
#include "reference/reference.hpp"
#include "support/spread_over.hpp"

namespace {

using namespace plugin_check;

int failures = 0;
int comparisons = 0;

void compare(const std::string &name, const Answer &want, const Answer &got)
{
    ++comparisons;
    for (const std::string &what : differences(want, got)) {
        if (++failures <= 40)
            std::printf("FAIL %s: %s\n", name.c_str(), what.c_str());
    }
}

// First centroids alone.
void compare_seeds(const std::string &name, const Answer &want, const Answer &got)
{
    ++comparisons;
    if (got.status != PGKM_OK || want.seeds != got.seeds)
        if (++failures <= 40)
            std::printf("FAIL %s: seeds, status %d %s\n", name.c_str(), got.status, got.text.c_str());
}

// Each strategy of each stage by itself.
void check_strategies(const PgkmBackend *backend, const Case &c, const Rows &rows, const Answer &want, int max_iter)
{
    const struct {
        const char *name;
        const char *PgkmTuning::*member;
    } stages[] = {{"assignment", &PgkmTuning::assignment},
                  {"execution", &PgkmTuning::execution},
                  {"feature_sum", &PgkmTuning::feature_sum},
                  {"mass_sum", &PgkmTuning::mass_sum}};
    for (const auto &stage : stages)
        for (const char *const *name = backend->strategies(stage.name); *name != nullptr; ++name) {
            Setting setting;
            setting.max_iter = max_iter;
            setting.tuning.*stage.member = *name;
            compare(c.name + " d=" + std::to_string(c.d) + " " + stage.name + "=" + *name, want,
                    run(backend, c, rows, setting));
        }
}

void check_case(const PgkmBackend *backend, const Case &c, int index, Extent extent, unsigned seed)
{
    const Rows rows = make_rows(c, seed * 1000 + static_cast<unsigned>(index));
    const int max_iter = c.max_iter != 0 ? c.max_iter : extent == Extent::tiny ? 3 : c.n > 20000 ? 4 : 12;
    const Answer want = run(pgkm::reference_backend(), c, rows, {{}, 0, max_iter, -1});
    const char *type = c.element == PGKM_FLOAT32 ? " f32" : " f64";
    const std::string name =
        c.name + type + " n=" + std::to_string(c.n) + " d=" + std::to_string(c.d) + " k=" + std::to_string(c.k);
    compare(name, want, run(backend, c, rows, {{}, 0, max_iter, -1}));
    if ((c.distinct != 0 || c.step > 0.0) && c.n >= 1 << 14) {
        const LeftOut left_out("entries");
        compare(name + " by rows", want, run(backend, c, rows, {{}, 0, max_iter, -1}));
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(c.n) * static_cast<std::uint64_t>(c.d) * 4;
    if (c.max_iter == 0 && bytes > 2000000 && c.d >= 4) // the rows do not fit: streamed
        compare(name + " streamed", want, run(backend, c, rows, {{}, bytes * 3 / 4, max_iter, -1}));
    if (c.any_order) {
        compare_seeds(name + " in another order", want, run(backend, c, reversed(c, rows), {{}, 0, 1, -1}));
        PgkmTuning passes = {};
        passes.execution = "multi_pass";
        compare_seeds(name + " by passes", want, run(backend, c, rows, {passes, 0, 1, -1}));
    }
    if (c.far_start && c.max_iter == 0) { // the rows fit, and labels for some of them
        const std::uint64_t values = c.element == PGKM_FLOAT32 ? bytes : 2 * bytes;
        const std::uint64_t others = static_cast<std::uint64_t>(c.n) * (c.weighted ? 24 : 16);
        // What does not grow with the rows; k-means|| keeps more of it.
        const std::uint64_t fixed = c.init == PGKM_INIT_KMEANS_PARALLEL ? 12288 : 4096;
        compare(name + " in slices", want,
                run(backend, c, rows, {{}, (values + others) * 8 / 7 + fixed, max_iter, -1}));
    }
    // All strategies where time allows; tiny cases: of plain, wide and weighted rows.
    const bool some = extent == Extent::tiny ? index % 2 == 0 && index < 8 : index % 5 == 0 || c.far_start;
    if (c.max_iter == 0 && (extent == Extent::full || some))
        check_strategies(backend, c, rows, want, max_iter);
}

const PgkmBackend *open_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::printf("%s\n", dlerror());
        return nullptr;
    }
    using Entry = const PgkmBackend *(*)(std::uint32_t);
    return reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY))(PGKM_BACKEND_ABI);
}

std::vector<std::int32_t> read_list(const char *text)
{
    std::vector<std::int32_t> list;
    for (char *end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end)
        list.push_back(static_cast<std::int32_t>(std::strtol(text, &end, 10)));
    return list;
}

void print_probe(const PgkmBackend *backend)
{
    PgkmDevice device{};
    std::int32_t devices = 0;
    PgkmError error{};
    if (backend->probe(&device, 1, &devices, &error) != PGKM_OK)
        std::printf("probe: %s\n", error.text);
    else
        std::printf("probe: %d device(s), %s usable %d %s\n", devices, device.name, device.usable, device.reason);
}

} // namespace

int main(int argc, char **argv)
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    if (argc == 2 && std::strcmp(argv[1], "count") == 0)
        return std::printf("%zu\n", make_cases(Extent::full).size()) > 0 ? 0 : 1;
    const std::string mode = argc > 2 ? argv[2] : argc > 1 ? "quick" : "tiny"; // without a plugin the driver alone
    const Extent extent = mode == "full" ? Extent::full : mode == "tiny" ? Extent::tiny : Extent::quick;
    const unsigned seed = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
    const PgkmBackend *backend = pgkm::reference_backend();
    if (argc > 1 && std::strcmp(argv[1], "reference") != 0)
        backend = open_plugin(argv[1]);
    if (backend == nullptr)
        return 2;
    if (const char *list = std::getenv("PGKM_DEVICES"))
        backend = pgkm::test::spread_over<0>(backend, read_list(list));
    int from = 0, to = 1 << 30, index = -1;
    if (argc > 4)
        std::sscanf(argv[4], "%d-%d", &from, &to);
    if (mode == "faults")
        return check_faults(backend, from, to) != 0;
    if (mode == "lean")
        return check_lean(backend) != 0;
    if (mode == "poisoned")
        return check_poisoned(backend) != 0;
    if (mode == "products")
        return check_products(backend) != 0;
    if (mode == "entries")
        return check_entries(backend) != 0;
    if (mode == "absent")
        return check_absent(backend) != 0;
    print_probe(backend);
    const bool fits = mode != "reductions";
    for (const Case &c : fits ? make_cases(extent) : std::vector<Case>()) {
        if (++index < from || index > to)
            continue;
        check_case(backend, c, index, extent, seed);
        if (failures > 40)
            break;
    }
    if (argc <= 4) // all cases, and not those of one process of many
        failures += check_reductions(backend, &comparisons);
    std::printf("check: %d comparisons, %d failures\n", comparisons, failures);
    return failures == 0 ? 0 : 1;
}

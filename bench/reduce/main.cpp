// reduce - users' reductions beside the kernels written for them by hand.
//
//   reduce [--backend cpu|cuda] [--threads N] [--repeats N] [--only NAME]
//
// PGKM_PLUGIN in the environment names the plugin of the backend cuda. Rows are loaded before anything is measured.
//
// histogram: 16,777,216 numbers into 100 cells; mean: count, sum and sum of squares of y by 100 cells of x; k-means:
// one step of 4,000,000 x 8, k = 100, beside one assignment with its sums (on the CPU by `direct`: exact distances to
// all centroids); moments: sums of products of 262,144 x 80 as a full matrix, beside moments(), which takes a triangle
// (the work's figure 13); softmax: sums of responsibilities of 1,000,000 x 8 for 16 centres; figure-7: a step of
// k-means of 33,554,432 x 3, k = 10; figure-10-e: the E phase of EM with a tied covariance, 1,048,576 x 3 (12 MB), k =
// 8, beside em_step(); figure-10-m: its M phase, which reads the rows again, beside moments(). plain, on the CPU alone:
// the loop that a user would write in C++, one thread.
//
// Output: CSV. by: `reduce` and `exact` (integer sums) in the layout that is chosen, `forced` in a layout by its name,
// or what they stand beside. first_ms: wall-clock time of the first call, which on a GPU compiles the kernels; cpu_ms
// and wall_ms: medians of processor and wall-clock time over the repeats; off: the greatest relative difference of a
// value from that of the case's first line. Runs alternate. What cannot run says so on stderr.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <dlfcn.h>

#include "cases.hpp"
#include "cpu/cpu_backend.hpp"
#include "measure.hpp"

namespace {

const PgkmBackend *open_plugin()
{
    const char *const path = std::getenv("PGKM_PLUGIN");
    void *const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "reduce: %s\n", path == nullptr ? "PGKM_PLUGIN is not set" : dlerror());
        return nullptr;
    }
    using Entry = const PgkmBackend *(*)(std::uint32_t);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY));
    return entry == nullptr ? nullptr : entry(PGKM_BACKEND_ABI);
}

} // namespace

int main(int argc, char **argv)
{
    std::string only, backend = "cpu";
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--threads")
            bench::options.threads = std::atoi(argv[i + 1]);
        else if (name == "--repeats")
            bench::options.repeats = std::atoi(argv[i + 1]);
        else if (name == "--only")
            only = argv[i + 1];
        else if (name == "--backend")
            backend = argv[i + 1];
    }
    bench::options.backend = backend == "cuda" ? open_plugin() : pgkm::cpu_backend();
    if (bench::options.backend == nullptr)
        return 2;
    std::printf("case,by,layout,first_ms,cpu_ms,wall_ms,off\n");
    const std::pair<const char *, void (*)()> cases[] = {
        {"histogram", bench::histogram},    {"mean", bench::mean},
        {"k-means", bench::kmeans},         {"moments", bench::moments},
        {"softmax", bench::softmax},        {"figure-7", bench::figure7},
        {"figure-10-e", bench::figure10_e}, {"figure-10-m", bench::figure10_m}};
    int failed = 0;
    for (const auto &[name, run] : cases)
        if (only.empty() || only == name)
            try {
                run();
            } catch (const std::exception &error) {
                std::fprintf(stderr, "reduce: %s: %s\n", name, error.what());
                failed = 1;
            }
    return failed;
}

// assign_check.cu - the tensor-core assignment against the generic one, label for label, and its
// times; with rows converted on every call, and with rows prepared once as in a fit. Needs a GPU.
// Build: nvcc -std=c++20 --fmad=false -O3 -DPGKM_CUDA_PLUGIN -Isrc -Icuda -arch=native
//   cuda/{plugin/check,plugin/context,assign/generic,assign/tensor}.cu src/backend/strategies.cpp
//   test/cuda/assign_check.cu -o assign_check assign_check check         every case; exit status 1 if a label differs
//   assign_check quick         a few small ones, for compute-sanitizer
//   assign_check time [rows]   milliseconds over the shapes of the design, by CUDA events
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "assign/tensor_layout.cuh"
#include "assign_data.cuh"

namespace {

using namespace pgkm::cuda;
using namespace assign_check;

template <typename T>
struct Case {
    Context &context;
    DeviceArray<T> values, centroids;
    DeviceArray<std::int32_t> expected, labels;
    View<T> view{};
    mutable PreparedRows prepared;
    bool prepares = false; // as in a fit: rows are prepared once
    DeviceArray<Control> control;

    Case(Context &owner, Kind kind, std::int64_t n, int d, int k)
        : context(owner), values(owner.budget, static_cast<std::size_t>(n * d)),
          centroids(owner.budget, static_cast<std::size_t>(k) * static_cast<std::size_t>(d)),
          expected(owner.budget, static_cast<std::size_t>(n)), labels(owner.budget, static_cast<std::size_t>(n))
    {
        make_rows<<<2048, 256, 0, stream()>>>(values.get(), n, d, kind);
        draw_centroids<<<256, 128, 0, stream()>>>(values.get(), n, d, k, centroids.get());
        launched("make_rows");
        view = {values.get(), nullptr, n, d, k, centroids.get(), nullptr, 0};
        control = DeviceArray<Control>(owner.budget, 1);
        control.fill_zero(stream());
        context.wait(stream());
    }
    cudaStream_t stream() const { return context.compute.get(); }
    Stage<T> stage() const
    {
        Stage<T> made = {context, stream(), prepares ? control.get() : nullptr, {}, {}};
        made.prepared = prepares ? &prepared : nullptr;
        return made;
    }

    using Function = const Both<Assign> &;

    // Rows of the first `rows` whose label is not the generic kernel's.
    unsigned long long differences(Function function, std::int64_t rows)
    {
        const View<T> part = slice(view, 0, rows);
        DeviceArray<unsigned long long> count(context.budget, 1);
        count.fill_zero(stream());
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(labels.get(), 0xff, labels.bytes(), stream()); });
        function(stage(), part, labels.get());
        assign_generic(stage(), part, expected.get());
        count_differences<<<512, 256, 0, stream()>>>(labels.get(), expected.get(), rows, count.get());
        unsigned long long result = 0;
        count.download(&result, 1, stream());
        context.wait(stream());
        return result;
    }

    void lloyd_step()
    {
        const std::size_t cells = static_cast<std::size_t>(view.k) * static_cast<std::size_t>(view.d);
        DeviceArray<float> sums(context.budget, cells), counts(context.budget, static_cast<std::size_t>(view.k));
        sums.fill_zero(stream());
        counts.fill_zero(stream());
        assign_tensor(stage(), view, labels.get());
        add_rows<<<4096, 256, 0, stream()>>>(values.get(), labels.get(), view.n, view.d, sums.get(), counts.get());
        take_means<<<512, 256, 0, stream()>>>(sums.get(), counts.get(), view.d, view.k, centroids.get());
        context.wait(stream());
    }

    // Median milliseconds.
    float time(Function function, int repeats)
    {
        std::vector<float> times;
        cudaEvent_t begin, end;
        cudaEventCreate(&begin);
        cudaEventCreate(&end);
        for (int i = 0; i <= repeats; ++i) {
            cudaEventRecord(begin, stream());
            function(stage(), view, labels.get());
            cudaEventRecord(end, stream());
            context.wait(stream());
            float elapsed = 0;
            cudaEventElapsedTime(&elapsed, begin, end);
            if (i > 0)
                times.push_back(elapsed);
        }
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }

    // What the last slice of assign_tensor left to its second pass and to the exact kernel.
    void print_leftovers() const
    {
        if (!prepares || prepared.parts.empty())
            return;
        static tensor::Head head;
        cudaMemcpy(&head, context.workspace.get(), sizeof head, cudaMemcpyDeviceToHost);
        long long ambiguous = 0;
        for (const std::int32_t count : head.ambiguous)
            ambiguous += count;
        std::printf("  ambiguous %lld, settled %d of %lld", ambiguous, head.settle,
                    static_cast<long long>(prepared.parts.back().n));
    }
};

int failures = 0;

template <typename T>
void check_case(Context &context, const char *name, Kind kind, std::int64_t n, int d, int k)
{
    Case<T> c(context, kind, n, d, k);
    // The plain Lloyd step sums in float32, which huge and tiny values do not fit. Later steps are for what the
    // prepared rows' bounds leave out.
    const int steps = kind == Kind::huge || kind == Kind::tiny ? 1 : 7;
    for (int step = 0; step < steps; ++step) {
        const unsigned long long tensor = step < 2 ? c.differences(assign_tensor, n) : 0;
        c.prepares = true;
        const unsigned long long kept = c.differences(assign_tensor, n);
        const bool wrong = tensor != 0 || kept != 0;
        failures += wrong;
        if (wrong || step == 0) {
            std::printf("%-8s %-7s n=%-7lld d=%-5d k=%-5d step %d: tensor %llu, prepared %llu wrong", name,
                        sizeof(T) == 4 ? "float32" : "float64", static_cast<long long>(n), d, k, step, tensor, kept);
            c.print_leftovers();
            std::printf("\n");
        }
        if (step + 1 < steps)
            c.lloyd_step();
        c.prepares = false;
    }
}

void check_all(Context &context, bool quick)
{
    const struct {
        const char *name;
        Kind kind;
    } kinds[] = {{"blobs", Kind::blobs}, {"uniform", Kind::uniform}, {"grid", Kind::grid}, {"offset", Kind::offset},
                 {"mixed", Kind::mixed}, {"huge", Kind::huge},       {"tiny", Kind::tiny}, {"far", Kind::far}};
    const int shapes[][3] = {
        {1, 1, 1},         {33, 1, 5},       {5000, 1, 257},    {20011, 2, 400},   {70001, 3, 64},     {30000, 41, 64},
        {30000, 54, 64},   {4099, 63, 129},  {20000, 64, 1000}, {9000, 100, 4096}, {50021, 128, 1024}, {5000, 130, 77},
        {3001, 768, 1024}, {2000, 800, 300}, {1500, 1536, 513}, {700, 2500, 65},   {300, 4000, 33}};
    for (const auto &[name, kind] : kinds)
        for (const auto &[n, d, k] : shapes) {
            if (quick && ((kind != Kind::blobs && kind != Kind::grid) || n > 5000 || d > 1600 || n * k > 800000))
                continue;
            check_case<float>(context, name, kind, n, d, k);
            check_case<double>(context, name, kind, n, d, k);
        }
    std::printf("%s: %d cases differ\n", failures == 0 ? "ok" : "FAILED", failures);
}

void time_all(Context &context, int only)
{
    const struct {
        std::int64_t n;
        int d, k, steps;
    } shapes[] = {{1000000, 128, 1024, 6}, {10000000, 128, 4096, 3}, {1000000, 768, 1024, 6}, {4500000, 41, 64, 6},
                  {580000, 54, 64, 6},     {8388608, 64, 64, 4},     {1000000, 128, 1024, 6}};
    int index = 0;
    for (const auto &[n, d, k, steps] : shapes) {
        if (only >= 0 && index++ != only)
            continue;
        // The last entry repeats the first on data without clusters.
        const Kind kind = &n == &shapes[6].n ? Kind::uniform : Kind::blobs;
        Case<float> c(context, kind, n, d, k);
        const std::int64_t checked_rows = std::min<std::int64_t>(n, 30000000000LL / (std::int64_t{d} * k));
        for (int step = 0; step <= steps; ++step) {
            if (step == 0 || step == 1 || step == steps) {
                c.prepares = false;
                const float once = c.time(assign_tensor, only >= 0 ? 1 : 10);
                c.prepares = true;
                const float tensor = c.time(assign_tensor, only >= 0 ? 1 : 10);
                std::printf("%s %lld x %d, k = %d, step %d: tensor %.3f ms, on prepared rows %.3f ms",
                            kind == Kind::blobs ? "blobs" : "uniform", static_cast<long long>(n), d, k, step,
                            static_cast<double>(once), static_cast<double>(tensor));
                c.print_leftovers();
                std::printf("  wrong: %llu of %lld\n", c.differences(assign_tensor, checked_rows),
                            static_cast<long long>(checked_rows));
                std::fflush(stdout);
            }
            if (step < steps)
                c.lloyd_step();
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    try {
        PgkmOpen options = {};
        options.struct_size = sizeof options;
        options.device = -1;
        Context context(options);
        if (argc > 1 && std::strcmp(argv[1], "time") == 0)
            time_all(context, argc > 2 ? std::atoi(argv[2]) : -1);
        else
            check_all(context, argc > 1 && std::strcmp(argv[1], "quick") == 0);
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
        return 2;
    }
    return failures == 0 ? 0 : 1;
}

// assign_check.cu - the tensor-core assignment against the generic one, label for label; with rows converted on every
// call, and with rows prepared once as in a fit. Needs a GPU; exit status 1 if a label differs. scripts/gpu-test builds
// it.
#include <cstdio>
#include <utility>

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
        enqueue(make_rows<T>, 2048, 256, 0, stream(), values.get(), n, d, kind);
        enqueue(draw_centroids<T>, 256, 128, 0, stream(), values.get(), n, d, k, kind, centroids.get());
        view = {values.get(), nullptr, n, d, k, centroids.get(), nullptr, 0};
        control = DeviceArray<Control>(owner.budget, 1);
        control.fill_zero(stream());
        context.wait(stream());
    }
    // The next case's rows may lie at the same address.
    ~Case()
    {
        prepared = {};
        context.budget.drop_aside(values.get(), values.bytes());
    }
    cudaStream_t stream() const { return context.compute.get(); }
    Stage<T> stage() const
    {
        Stage<T> made = {context, stream(), prepares ? control.get() : nullptr, {}, {}};
        made.prepared = prepares ? &prepared : nullptr;
        return made;
    }

    // Rows whose label is not the generic kernel's.
    unsigned long long differences()
    {
        DeviceArray<unsigned long long> count(context.budget, 1);
        count.fill_zero(stream());
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(labels.get(), 0xff, labels.bytes(), stream()); });
        assign_tensor(stage(), view, labels.get());
        assign_generic(stage(), view, expected.get());
        count_differences<<<512, 256, 0, stream()>>>(labels.get(), expected.get(), view.n, count.get());
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
        const unsigned long long tensor = step < 2 ? c.differences() : 0;
        c.prepares = true;
        const unsigned long long kept = c.differences();
        const bool wrong = tensor != 0 || kept != 0;
        failures += wrong;
        if (wrong || step == 0)
            std::printf("%-8s %-7s n=%-7lld d=%-5d k=%-5d step %d: tensor %llu, prepared %llu wrong\n", name,
                        sizeof(T) == 4 ? "float32" : "float64", static_cast<long long>(n), d, k, step, tensor, kept);
        if (step + 1 < steps)
            c.lloyd_step();
        c.prepares = false;
    }
}

// Two fits that read the rows in one order, so that neither may order them by its labels, and columns have other places
// each time. Every clump has a centroid, which leaves most columns far behind: what gaps would leave out.
template <typename T>
void check_shared_order(Context &context, int d)
{
    constexpr int clumps = 1000;
    Case<T> c(context, Kind::clumps, clumps * clump_rows, d, clumps);
    c.prepares = true;
    PreparedRows other;
    for (int step = 0; step < 5; ++step) {
        const unsigned long long first = c.differences();
        std::swap(c.prepared, other);
        const unsigned long long second = c.differences();
        std::swap(c.prepared, other);
        failures += first != 0 || second != 0;
        std::printf("one order of two fits, %s d=%d step %d: %llu and %llu wrong\n",
                    sizeof(T) == 4 ? "float32" : "float64", d, step, first, second);
        c.lloyd_step();
    }
}

void check_all(Context &context)
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
            check_case<float>(context, name, kind, n, d, k);
            check_case<double>(context, name, kind, n, d, k);
        }
    check_shared_order<float>(context, 100);
    check_shared_order<float>(context, 300);
    check_shared_order<double>(context, 100);
    std::printf("%s: %d cases differ\n", failures == 0 ? "ok" : "FAILED", failures);
}

} // namespace

int main()
{
    try {
        PgkmOpen options = {};
        options.struct_size = sizeof options;
        options.device = -1;
        Context context(options);
        check_all(context);
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
        return 2;
    }
    return failures == 0 ? 0 : 1;
}

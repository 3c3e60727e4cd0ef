// reduce.cu - the host's side of users' reductions: host_reduc() of Ma and Agrawal (ICS 2009), step 5.
//
// The kernels are generated (src/backend/generate), compiled by NVRTC, once in the life of the process, and run over
// the rows: init, then for each chunk of rows reduc and, where blocks have copies of R, combine. Sums of integers take
// a first pass over the rows for their ranges. Each kernel looks at a flag of the context, so that a cancel ends it.
//
// Kernels only note that a row fails. Which one, and what fails there, the CPU finds, which gets the job then.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/generate/compiler.hpp"
#include "backend/generate/kernel.hpp"
#include "backend/generate/results.hpp"
#include "numeric/contract.hpp"
#include "plugin/operations.hpp"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
namespace {

using generate::Layout;
using Word = unsigned long long;

constexpr Word no_row = ~Word{0};

generate::Device device_of(const Context &context)
{
    return {context.facts.multiprocessors, context.facts.shared_bytes_per_block};
}

// The kernels of one text (src/backend/generate/kernel.hpp); magnitudes may be null.
struct Module {
    cudaLibrary_t library = nullptr;
    cudaKernel_t init = nullptr, reduc = nullptr, combine = nullptr, magnitudes = nullptr;

    Module() = default;
    Module(const Module &) = delete;
    Module &operator=(const Module &) = delete;
    ~Module()
    {
        if (library != nullptr)
            cudaLibraryUnload(library);
    }
};

// Of the last texts; parameters are no part of them, so that the steps of an iteration share one.
struct Cache {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const Module>> modules;
};

Cache &cache()
{
    static Cache *const lasting = new Cache; // the runtime may be gone before static objects are
    return *lasting;
}

cudaKernel_t find_kernel(cudaLibrary_t library, const char *name)
{
    cudaKernel_t found = nullptr;
    checked("cudaLibraryGetKernel", [&] { return cudaLibraryGetKernel(&found, library, name); });
    return found;
}

std::shared_ptr<const Module> load(const std::vector<char> &code, bool measures)
{
    auto made = std::make_shared<Module>();
    checked("cudaLibraryLoadData",
            [&] { return cudaLibraryLoadData(&made->library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0); });
    made->init = find_kernel(made->library, "init");
    made->reduc = find_kernel(made->library, "reduc");
    made->combine = find_kernel(made->library, "combine");
    if (measures)
        made->magnitudes = find_kernel(made->library, "magnitudes");
    return made;
}

// Finds the text among those compiled before, or compiles it for the context's device. `measures`: it has magnitudes.
// Heeds the host's cancel.
std::shared_ptr<const Module> module_of(Context &context, const std::string &text, bool measures)
{
    constexpr std::size_t most = 64;
    const std::string key = std::to_string(context.facts.capability) + "\n" + text;
    {
        const std::lock_guard lock(cache().mutex);
        if (const auto known = cache().modules.find(key); known != cache().modules.end())
            return known->second;
    }
    std::shared_ptr<const Module> made =
        load(generate::compile(text, context.facts.capability, [&] { return context.is_cancelled(); }), measures);
    const std::lock_guard lock(cache().mutex);
    if (cache().modules.size() >= most)
        cache().modules.clear(); // who runs one holds it
    cache().modules[key] = made;
    return made;
}

template <typename T>
class Reducer {
  public:
    Reducer(Data &data, const PgkmProblem &problem, const generate::Program &program, PgkmReduced &out)
        : data_(data), context_(data.context), problem_(problem), program_(program), out_(out)
    {
    }

    void run()
    {
        choose_plan();
        module_ =
            module_of(context_, kernel_source(program_, plan_, {sizeof(T) == 4, data_.host.d}), plan_.words.scales > 0);
        allocate();
        if (plan_.words.scales > 0)
            take_ranges();
        launch_words(module_->init, {&total_address_});
        data_.each_chunk<T>(problem_.first_row, problem_.n_rows,
                            [&](const T *values, const double *, std::int64_t first, std::int64_t rows) {
                                reduce_chunk(values, first, rows);
                            });
        context_.wait(stream(), stop_.get());
        look_for_fault();
        read();
    }

  private:
    cudaStream_t stream() const { return context_.compute.get(); }

    // One that the free memory holds: of layouts that were not forced, the one without copies needs least.
    void choose_plan()
    {
        const Layout forced = context_.forced.reduction_layout;
        plan_ = make_plan(program_, forced, device_of(context_));
        blocks_ = blocks();
        if (blocks_ == 0 && forced == Layout::automatic) {
            plan_ = make_plan(program_, Layout::global, device_of(context_));
            blocks_ = blocks();
        }
        if (blocks_ == 0)
            throw Error(PGKM_LIMIT, "the device has no memory for a copy of the reduction's result");
        context_.chosen = {};
        context_.chosen.reduction_layout = name_of(plan_.layout);
        context_.report("iterating", 0, 0, 0.0);
    }

    // As many as what is left beside R itself holds.
    std::int64_t blocks() const
    {
        const std::uint64_t fixed =
            static_cast<std::uint64_t>(plan_.words.count + program_.source().n_parameters + 4096) * sizeof(Word);
        const auto within = [&](std::uint64_t room) {
            return room < fixed ? 0 : choose_blocks(plan_, problem_.n_rows, device_of(context_), room - fixed);
        };
        const std::int64_t wanted = within(context_.budget.room() / 8 * 7);
        const std::uint64_t bytes = fixed + static_cast<std::uint64_t>(wanted) * block_bytes(plan_);
        return std::min(wanted, within(context_.budget.available(bytes)));
    }

    template <typename V>
    DeviceArray<V> array(std::int64_t count)
    {
        return DeviceArray<V>(context_.budget, static_cast<std::size_t>(count));
    }

    void allocate()
    {
        const PgkmReduction &source = program_.source();
        total_ = array<Word>(plan_.words.count);
        if (plan_.has_copies())
            copies_ = array<Word>(plan_.words.count * blocks_);
        own_ = array<Word>(plan_.own_words * plan_.threads * blocks_);
        parameters_ = array<double>(source.n_parameters);
        parameters_.upload(source.parameters, parameters_.count(), stream());
        fault_ = array<Word>(1);
        fault_.upload(&no_row, 1, stream());
        stop_ = array<std::int32_t>(1);
        stop_.fill_zero(stream());
        stop_flag_.emplace(context_, stop_.get());
        total_address_ = total_.get();
        if (plan_.shared_words * 8 > 48 * 1024)
            checked("cudaKernelSetAttributeForDevice", [&] {
                return cudaKernelSetAttributeForDevice(module_->reduc, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       static_cast<int>(plan_.shared_words * 8), context_.device);
            });
    }

    void launch(cudaKernel_t kernel, const char *name, dim3 grid, int threads, std::int64_t shared_words,
                std::vector<void *> arguments)
    {
        checked(name, [&] {
            return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, dim3(static_cast<unsigned>(threads)),
                                    arguments.data(), static_cast<std::size_t>(shared_words) * 8, stream());
        });
    }

    // A thread a word of R.
    void launch_words(cudaKernel_t kernel, std::vector<void *> arguments)
    {
        launch(kernel, "a kernel of a reduction", dim3(static_cast<unsigned>((plan_.words.count + 255) / 256)), 256, 0,
               std::move(arguments));
    }

    // The largest magnitudes that each integer sum takes up, and from them its scale.
    void take_ranges()
    {
        const std::int64_t count = plan_.words.scales;
        DeviceArray<Word> largest = array<Word>(count);
        largest.fill_zero(stream());
        data_.each_chunk<T>(problem_.first_row, problem_.n_rows,
                            [&](const T *values, const double *, std::int64_t first, std::int64_t rows) {
                                long long from = first, n = rows;
                                const double *parameters = parameters_.get();
                                Word *to = largest.get(), *fault = fault_.get();
                                const int *stop = stop_.get();
                                launch(module_->magnitudes, "magnitudes", dim3(static_cast<unsigned>(row_blocks(rows))),
                                       plan_.threads, 0, {&values, &from, &n, &parameters, &to, &fault, &stop});
                            });
        context_.wait(stream(), stop_.get());
        look_for_fault();
        std::vector<std::uint64_t> found(static_cast<std::size_t>(count));
        cuda::download(context_, found.data(), largest.get(), found.size() * sizeof found[0]);
        exponents_ = generate::scale_exponents(found);
        std::vector<double> scales;
        for (const int exponent : exponents_)
            scales.push_back(power_of_two(exponent));
        scales_ = array<double>(count);
        scales_.upload(scales.data(), scales.size(), stream());
    }

    std::int64_t row_blocks(std::int64_t rows) const
    {
        return std::clamp<std::int64_t>((rows + plan_.threads - 1) / plan_.threads, 1,
                                        std::int64_t{context_.facts.multiprocessors} * 2048 / plan_.threads);
    }

    void reduce_chunk(const T *values, std::int64_t first, std::int64_t rows)
    {
        long long from = first, n = rows, copies = blocks_;
        const double *parameters = parameters_.get(), *scales = scales_.get();
        Word *own = own_.get(), *to = plan_.has_copies() ? copies_.get() : total_.get(), *fault = fault_.get();
        const int *stop = stop_.get();
        launch(module_->reduc, "reduc", dim3(static_cast<unsigned>(blocks_)), plan_.threads, plan_.shared_words,
               {&values, &from, &n, &parameters, &scales, &own, &to, &fault, &stop});
        if (plan_.has_copies())
            launch_words(module_->combine, {&to, &copies, &total_address_});
    }

    void look_for_fault()
    {
        Word row = no_row;
        cuda::download(context_, &row, fault_.get(), sizeof row);
        if (row != no_row)
            throw Error(PGKM_UNSUPPORTED, "a row of the reduction failed");
    }

    void read()
    {
        const std::size_t bytes = total_.bytes();
        const Claim claim(context_.host_budget, bytes);
        std::vector<std::uint64_t> words(total_.count());
        cuda::download(context_, words.data(), total_.get(), bytes);
        generate::read_results(program_.source(), plan_.words, words, exponents_, out_);
    }

    Data &data_;
    Context &context_;
    const PgkmProblem &problem_;
    const generate::Program &program_;
    PgkmReduced &out_;
    generate::Plan plan_ = {};
    std::int64_t blocks_ = 0;
    std::shared_ptr<const Module> module_;
    DeviceArray<Word> total_, copies_, own_, fault_;
    DeviceArray<double> parameters_, scales_;
    DeviceArray<std::int32_t> stop_;
    std::optional<StopFlag> stop_flag_;
    Word *total_address_ = nullptr;
    std::vector<int> exponents_;
};

} // namespace

template <typename T>
void reduce_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction &reduction,
                     PgkmReduced *reduced)
{
    if (data.host.weights != nullptr)
        throw Error(PGKM_INVALID, "a reduction takes unweighted rows only");
    const generate::Program program(reduction);
    for (std::int64_t p = 0; p < n_problems; ++p) {
        data.context.poll();
        reduced[p].fault = PGKM_FAULT_NONE;
        reduced[p].row = -1;
        Reducer<T>(data, problems[p], program, reduced[p]).run();
    }
}

template void reduce_problems<float>(Data &, const PgkmProblem *, std::int64_t, const PgkmReduction &, PgkmReduced *);
template void reduce_problems<double>(Data &, const PgkmProblem *, std::int64_t, const PgkmReduction &, PgkmReduced *);

} // namespace pgkm::cuda

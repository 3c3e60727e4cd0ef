// context.cu - a device opened for a caller: its facts, what the caller forces, waits that see a cancel.
#include "plugin/context.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "backend/host.hpp"
#include "numeric/processors.hpp"
#include "plugin/products.hpp"

namespace pgkm::cuda {
namespace {

// The driver is asked once for each device.
int float64_ratio(int device)
{
    constexpr int most_devices = 64;
    static std::atomic<int> ratios[most_devices];
    std::atomic<int> &ratio = ratios[device % most_devices];
    if (ratio == 0) {
        int value = 0;
        checked("cudaDeviceGetAttribute",
                [&] { return cudaDeviceGetAttribute(&value, cudaDevAttrSingleToDoublePrecisionPerfRatio, device); });
        ratio = value;
    }
    return ratio;
}

} // namespace

Context::Context(const PgkmOpen &options) : device(options.device < 0 ? 0 : options.device), host(options.host)
{
    const PgkmTuning &tuning = options.tuning;
    forced.assignment = parse_strategy<Assignment>(on_cuda, tuning.assignment);
    forced.execution = parse_strategy<Execution>(on_cuda, tuning.execution);
    forced.feature_sum = parse_strategy<FeatureSum>(on_cuda, tuning.feature_sum);
    forced.mass_sum = parse_strategy<MassSum>(on_cuda, tuning.mass_sum);
    forced.reduction_layout = parse_strategy<ReductionLayout>(on_cuda, tuning.reduction_layout);
    if (tuning.instruction_set != nullptr && std::strcmp(tuning.instruction_set, "auto") != 0)
        throw_no_strategy(on_cuda, "instruction_set", tuning.instruction_set,
                          strategy_names(on_cuda, "instruction_set"));
    arm_fault_injection();
    int count = 0;
    checked("cudaGetDeviceCount", [&] { return cudaGetDeviceCount(&count); });
    if (device >= count)
        throw Error(PGKM_UNAVAILABLE,
                    "device " + std::to_string(device) + " does not exist: there are " + std::to_string(count));
    make_current();
    cudaDeviceProp properties;
    checked("cudaGetDeviceProperties", [&] { return cudaGetDeviceProperties(&properties, device); });
    facts = {properties.multiProcessorCount, properties.major * 10 + properties.minor,
             static_cast<std::int32_t>(properties.sharedMemPerBlockOptin), float64_ratio(device)};
    if (const char *names = std::getenv("PGKM_CUDA_WITHOUT"))
        facts.left_out = Mechanisms(names);
    budget.limit = options.device_memory_limit;
    host_budget.limit = options.memory_limit;
    cpu_threads = options.threads > 0 ? options.threads : usable_processors();
    most_threads = options.most_threads > 0 ? options.most_threads : usable_processors();
    const char *spare = std::getenv("PGKM_CUDA_SPARE");
    budget.keep_spare(spare == nullptr || spare[0] != '0', properties.totalGlobalMem);
    compute = make_stream();
    copy = make_stream();
    signal = make_stream();
    check_products(*this);
}

void Context::make_current() const
{
    checked("cudaSetDevice", [&] { return cudaSetDevice(device); });
}

bool Context::is_cancelled() const
{
    return pgkm::is_cancelled(host);
}

void Context::poll() const
{
    pgkm::poll(host);
}

void Context::wait(cudaStream_t stream, std::int32_t *stop, const std::function<void()> &tick)
{
    wait_for([stream] { return cudaStreamQuery(stream); }, stop, tick);
}

void Context::wait(cudaEvent_t event)
{
    wait_for([event] { return cudaEventQuery(event); }, stop_flag, {});
}

void Context::wait_for(const std::function<cudaError_t()> &query, std::int32_t *stop, const std::function<void()> &tick)
{
    static const std::int32_t flag = 4; // StopReason::cancelled
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    bool told = false;
    const auto tell = [&] {
        told = true;
        enqueue_copy(stop, &flag, 1, signal.get(), cudaMemcpyHostToDevice);
    };
    for (;;) {
        const cudaError_t fault = injected_fault();
        const cudaError_t state = fault != cudaSuccess ? fault : query();
        if (state == cudaSuccess)
            break;
        if (state != cudaErrorNotReady)
            check(state, "cudaStreamQuery");
        if (!told && stop != nullptr && is_cancelled())
            tell();
        if (tick)
            tick();
        // Short calls are waited for without a sleep, which may take twice its time; others may have the processor.
        const Clock::duration waited = Clock::now() - start;
        if (waited > std::chrono::milliseconds(10))
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        else if (waited > std::chrono::milliseconds(1))
            std::this_thread::yield();
    }
    const bool cancelled = is_cancelled(); // one answer: what is thrown has been told
    if (!told && stop != nullptr && cancelled)
        tell();
    if (told) { // nothing may write the flag, or what kernels write, after its memory has been given away again
        for (const cudaStream_t stream : {signal.get(), compute.get()})
            synchronise(stream);
    }
    if (told || cancelled)
        throw Error(PGKM_CANCELLED, "cancelled");
}

std::int64_t *Context::scratch(std::size_t bytes)
{
    if (workspace.bytes() < bytes) {
        synchronise(compute.get());
        workspace = DeviceArray<char>(); // first give back, so that the budget holds one
        workspace = DeviceArray<char>(budget, bytes);
    }
    return reinterpret_cast<std::int64_t *>(workspace.get());
}

std::uint64_t Context::scratch_room(std::uint64_t bytes) const
{
    const std::uint64_t held = workspace.bytes();
    return bytes <= held ? bytes : budget.available(bytes, held);
}

std::uint64_t Context::scratch_limit() const
{
    const std::uint64_t room = budget.room(), held = workspace.bytes();
    return room > std::numeric_limits<std::uint64_t>::max() - held ? room : room + held;
}

bool Context::make_room(std::uint64_t bytes)
{
    if (budget.has(bytes))
        return true;
    synchronise(compute.get());
    workspace = DeviceArray<char>();
    return budget.has(bytes);
}

void Context::use(const Plan &plan)
{
    chosen = {};
    chosen.assignment = name_of(plan.assignment);
    chosen.execution = name_of(plan.execution);
    if (plan.execution == Execution::single_pass || plan.execution == Execution::cross_processing)
        return; // no stages of their own for sums
    chosen.feature_sum = name_of(plan.feature_sum);
    chosen.mass_sum = name_of(plan.mass_sum);
}

void Context::report(const char *phase, int problem, int iteration, double shift) const
{
    if (host.progress == nullptr)
        return;
    PgkmProgress progress = {};
    progress.phase = phase;
    progress.problem = problem;
    progress.iteration = iteration;
    progress.shift = shift;
    progress.chosen = chosen;
    progress.bytes_moved = bytes_moved;
    progress.devices = std::uint64_t{1} << (device % 64);
    host.progress(host.arg, &progress);
}

} // namespace pgkm::cuda

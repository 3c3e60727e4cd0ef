// context.hpp - what hides behind PgkmContext and PgkmData in the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backend/calls.hpp"
#include "backend/host.hpp"
#include "backend/strategies.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "cpu/memory.hpp"
#include "numeric/thread_pool.hpp"
#include "numeric/error.hpp"

namespace pgkm::cpu {

struct Context {
    PgkmHost host;
    Assignment forced; // automatic: choose_assignment() decides
    InstructionSet instruction_set;
    Budget budget;
    ThreadPool pool;
    std::atomic<Assignment> assignment{Assignment::automatic}; // the last that was chosen to iterate with

    // Throws Error(PGKM_UNSUPPORTED) for a strategy that is forced and not there: none is ignored in silence.
    Context(const PgkmOpen &options, int threads)
        : host(options.host), forced(parse_strategy<Assignment>(on_cpu, options.tuning.assignment)),
          instruction_set(parse_instruction_set(options.tuning.instruction_set)), budget(options.memory_limit),
          pool(threads)
    {
        parse_strategy<Execution>(on_cpu, options.tuning.execution);
        parse_strategy<FeatureSum>(on_cpu, options.tuning.feature_sum);
        parse_strategy<MassSum>(on_cpu, options.tuning.mass_sum);
        parse_strategy<ReductionLayout>(on_cpu, options.tuning.reduction_layout);
    }

    // From any thread; call it every few milliseconds of work.
    void poll() const { pgkm::poll(host); }
    // From the calling thread only.
    void report(const char *phase, std::int64_t problem, std::int32_t iteration, double shift) const
    {
        if (host.progress == nullptr)
            return;
        PgkmProgress progress = {};
        progress.phase = phase;
        progress.problem = static_cast<std::int32_t>(problem);
        progress.iteration = iteration;
        progress.shift = shift;
        progress.chosen.instruction_set = name_of(instruction_set);
        progress.chosen.assignment = name_of(assignment.load(std::memory_order_relaxed));
        host.progress(host.arg, &progress);
    }
};

struct Entries;

struct Data {
    Context &context;
    PgkmPoints points;
    // How many equal rows each of the points stands for; NULL: itself alone. Sums count them after rounding.
    const std::uint16_t *counts = nullptr;
    // Those of the points that differ, as soon as a call has made them, and whether it is worth trying (cpu/entries).
    std::shared_ptr<Entries> entries = {};
    bool may_repeat = true;
    // The rows of problems, by first row and number, in canonical order, as soon as seeding has made it (cpu/seed).
    std::map<std::pair<std::int64_t, std::int64_t>, Buffer<std::uint32_t>> row_orders = {};
    // What is made of the same rows for filters, once for all calls (cpu/encode). Guarded by the mutex.
    mutable std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<void>> encoded = {};
    mutable std::mutex encoded_mutex = {};
    // What a caller keeps from one iteration to the next who has them made one at a time (engine/nodes).
    std::shared_ptr<void> iteration = {};
};

inline Context *self(PgkmContext *context)
{
    return reinterpret_cast<Context *>(context);
}
inline Data *self(PgkmData *data)
{
    return reinterpret_cast<Data *>(data);
}

} // namespace pgkm::cpu

// context.hpp - what hides behind PgkmContext and PgkmData in the plugin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "plugin/memory.hpp"
#include "plugin/tuning.hpp"

namespace pgkm::cuda {

// One device, the streams on it, and what the caller asked for.
struct Context {
    int device = 0;
    DeviceFacts facts{};
    Forced forced;
    PgkmHost host{};
    int cpu_threads = 1;  // that the caller allows for its work
    int most_threads = 1; // that it may have at all
    DeviceMemory budget;
    Budget host_budget{"memory"}; // arrays that grow with rows, clusters or problems
    CudaStream compute;
    DeviceArray<char> workspace; // of scratch()
    // What other contexts read and wait for (fit/peer_sums.hpp): their threads may be late, so it stays as long as
    // this.
    DeviceArray<std::int64_t> for_peers;
    Event written_for_peers[2];
    PgkmTuning chosen{};               // names of the strategies at work, for progress
    std::uint64_t bytes_moved = 0;     // rows and labels, to and from the device
    CudaStream copy;                   // chunks of streamed data
    CudaStream signal;                 // the cancel flag while kernels run: behind chunks it would come too late
    std::int32_t *stop_flag = nullptr; // on the device, of the work at hand (StopFlag)

    explicit Context(const PgkmOpen &options);

    // Page-locked memory for what the device tells the host of a fit, one fit at a time.
    template <typename V>
    V *mailbox(std::size_t offset)
    {
        if (page.get() == nullptr)
            page = PinnedArray<char>(page_bytes);
        return new (page.get() + offset) V{};
    }
    static constexpr std::size_t page_bytes = 4096;
    PinnedArray<char> page;

    // Every entry point: CUDA's current device belongs to the calling thread.
    void make_current() const;
    bool is_cancelled() const;
    void poll() const; // throws PGKM_CANCELLED
    // Waits for all work in `stream`, polling for cancel; on cancel it writes `stop` (a device
    // address, or nullptr) so that enqueued kernels return at once, waits, and throws.
    // `tick` is called now and then, for progress.
    void wait(cudaStream_t stream, std::int32_t *stop = nullptr, const std::function<void()> &tick = {});
    // The same for an event, with stop_flag: for waits while more is still to be enqueued.
    void wait(cudaEvent_t event);
    // Values on the device, once the compute stream has made them: a copy alone would wait without a look at the cancel
    // flag.
    template <typename T>
    std::vector<T> fetch(const T *from, std::size_t count)
    {
        wait(compute.get());
        std::vector<T> values(count);
        enqueue_copy(values.data(), from, count, compute.get(), cudaMemcpyDeviceToHost);
        wait(compute.get());
        return values;
    }
    template <typename T>
    std::vector<T> fetch(const DeviceArray<T> &array)
    {
        return fetch(array.get(), array.count());
    }
    // Device memory for a stage, valid until the next call; work enqueued before in the compute
    // stream may still use it, so it only ever grows between waits.
    std::int64_t *scratch(std::size_t bytes);
    // So many bytes, or as many of them as scratch() has room for.
    std::uint64_t scratch_room(std::uint64_t bytes) const;
    bool scratch_holds(std::uint64_t bytes) const { return scratch_room(bytes) == bytes; }
    // The most that the limit alone allows of it, whatever is free: where sums' bits depend on that.
    std::uint64_t scratch_limit() const;
    // Gives the workspace back, unless there is room for `bytes` beside it; whether there is room then.
    bool make_room(std::uint64_t bytes);
    // Names a plan in `chosen`.
    void use(const Plan &plan);
    void report(const char *phase, int problem, int iteration, double shift) const;

  private:
    void wait_for(const std::function<cudaError_t()> &query, std::int32_t *stop, const std::function<void()> &tick);
};

// While it lives, waits inside of Data know the flag that stops the kernels enqueued so far.
class StopFlag {
  public:
    StopFlag(Context &context, std::int32_t *flag) : context_(context), before_(std::exchange(context.stop_flag, flag))
    {
    }
    ~StopFlag() { context_.stop_flag = before_; }
    StopFlag(const StopFlag &) = delete;
    StopFlag &operator=(const StopFlag &) = delete;

  private:
    Context &context_;
    std::int32_t *before_;
};

// Per feature range of one problem's rows: what summarise() saw last.
struct Box {
    std::vector<double> min;
    std::vector<double> max;
};

// Loaded rows: all on the device, or in the caller's memory and streamed through it.
struct Data {
    Context &context;
    PgkmPoints host;
    bool resident = false;
    DeviceArray<char> values;
    DeviceArray<double> weights;
    std::map<std::pair<std::int64_t, std::int64_t>, Box> boxes; // by (first_row, n_rows)

    // Of rows that stand for those that equal them (entries/). They are resident and in canonical order; `host` has
    // their number, and the memory of all that they stand for.
    struct Copies {
        std::int64_t rows = 0;               // for which they stand; 0: each one stands for itself
        DeviceArray<std::uint16_t> counts;   // of each entry: how many, 1 to most_copies
        DeviceArray<std::uint32_t> entry_of; // of each row
        std::vector<std::uint32_t> host_row; // of each entry: one of its rows
        std::vector<char> values;            // what `host` shows of entries of several devices
        std::vector<double> weights;         // likewise
        Claim claim;                         // on the host's limit, for them
    } copies;
    // Of a range of these rows.
    struct Range {
        double guessed_copies = 0.0; // of a row, by a sample; 0: there was none
        std::unique_ptr<Data> entries;
        std::unique_ptr<Data> of_all; // those of all peers, beside whose rows these are
        std::uint64_t number = 0;     // of these, which all peers have from one making of them
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Range> ranges; // by (first_row, n_rows); no two share a row
    bool may_repeat = true;                                        // false: memory was too short for entries

    Data(Context &owner, const PgkmPoints &points);
    // Entries.
    Data(Context &owner, const PgkmPoints &points, DeviceArray<char> own_values, DeviceArray<double> own_weights,
         Copies own);
    ~Data();

    bool has_entries() const
    {
        return std::any_of(ranges.begin(), ranges.end(), [](const auto &range) {
            return range.second.entries != nullptr || range.second.of_all != nullptr;
        });
    }

    // Where a row is in the host's memory.
    std::int64_t host_row(std::int64_t row) const
    {
        return copies.rows == 0 ? row : copies.host_row[static_cast<std::size_t>(row)];
    }

    // Gives the device's copy of the rows up: from now on they come in chunks.
    void stream();

    std::size_t element_bytes() const { return host.element == PGKM_FLOAT32 ? 4 : 8; }
    std::size_t row_bytes() const { return element_bytes() * static_cast<std::size_t>(host.d); }

    // Two chunk buffers, made when the data is streamed.
    struct Chunks {
        std::int64_t rows = 0;     // per chunk
        Registration registration; // of the caller's rows; empty: they go through staging
        DeviceArray<char> values[2];
        DeviceArray<double> weights[2];
        Event filled[2];
        Event used[2];
        PinnedArray<char> staging[2];
        Claim claim; // on the host's limit, for them

        bool registered() const { return registration.get() != nullptr; }
    } chunks;

    // Calls body(values, weights, first, rows) for the rows [first_row, first_row + n_rows): once where they are
    // resident, else for each chunk. `first` counts from first_row. What the body enqueues in the compute stream may
    // use the addresses until it is done.
    template <typename T, typename Body>
    void each_chunk(std::int64_t first_row, std::int64_t n_rows, Body &&body)
    {
        if (resident) {
            body(reinterpret_cast<const T *>(values.get()) + first_row * host.d,
                 host.weights == nullptr ? nullptr : weights.get() + first_row, std::int64_t{0}, n_rows);
            return;
        }
        std::int64_t done = 0;
        each_streamed<T>(
            first_row, n_rows, [&](std::int64_t rows) { return std::exchange(done, done + rows); }, body);
    }

    // The same of rows that are streamed, from next(chunks.rows) on a chunk at a time until that is n_rows or more.
    template <typename T, typename Next, typename Body>
    void each_streamed(std::int64_t first_row, std::int64_t n_rows, Next &&next, Body &&body)
    {
        if (chunks.rows < 1)
            throw Error(PGKM_LIMIT, "the device memory limit holds no chunk of rows");
        std::int64_t first = next(chunks.rows);
        for (int slot = 0; first < n_rows; slot ^= 1, first = next(chunks.rows)) {
            const std::int64_t rows = n_rows - first < chunks.rows ? n_rows - first : chunks.rows;
            fill_chunk(slot, first_row + first, rows);
            body(reinterpret_cast<const T *>(chunks.values[slot].get()),
                 host.weights == nullptr ? nullptr : chunks.weights[slot].get(), first, rows);
            release_chunk(slot);
        }
    }

  private:
    void make_chunks();
    void fill_chunk(int slot, std::int64_t row, std::int64_t rows);
    void release_chunk(int slot);
};

} // namespace pgkm::cuda

// data.cu - loading rows: all of them when they fit, else in chunks through two buffers.
//
// A chunk is copied in the copy stream while the kernels of the one before it run in the
// compute stream (Li et al. 2010, Algorithm 7; Lutz et al. 2018, section 5). The caller's
// memory is page-locked in place where the system allows it; otherwise chunks go through
// page-locked staging buffers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/context.hpp"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
namespace {

// Chunks hold a multiple of so many rows, the first that fits: sums in floating point take rows in
// stages of one of these lengths (moments/plan.hpp), and their bits shall not depend on the chunks.
constexpr std::int64_t chunk_multiples[] = {128, 32};

// Page-locked where it lies. Failing is no error: shared memory of another owner, or a limit.
Registration lock_pages(void *memory, std::size_t bytes)
{
    for (const unsigned flags : {cudaHostRegisterReadOnly, cudaHostRegisterDefault}) {
        if (cudaHostRegister(memory, bytes, flags) == cudaSuccess)
            return Registration(memory);
        cudaGetLastError();
    }
    return {};
}

} // namespace

Data::Data(Context &owner, const PgkmPoints &points) : context(owner), host(points)
{
    if (points.n < 0 || points.d < 1 || (points.n > 0 && points.values == nullptr))
        throw Error(PGKM_INVALID, "points need n >= 0 and d >= 1");
    const std::size_t rows = static_cast<std::size_t>(points.n);
    const std::size_t weight_bytes = points.weights == nullptr ? 0 : rows * sizeof(double);
    const std::size_t bytes = rows * row_bytes() + weight_bytes;
    context.for_peers = {}; // of calls that have ended
    // An eighth is left to labels, sums and seeding.
    const std::size_t free_bytes = free_memory();
    const std::uint64_t limit = context.budget.limit;
    std::uint64_t room = free_bytes - free_bytes / 8;
    if (limit != 0)
        room = std::min(room, (limit - limit / 8) - std::min(limit - limit / 8, context.budget.used));
    // 16 bytes a row for what a seeding or a fit keeps: distances, labels, an order.
    resident = bytes + 16 * rows <= room;
    if (!resident) {
        make_chunks();
        return;
    }
    values = DeviceArray<char>(context.budget, rows * row_bytes());
    context.report("loading", 0, 0, 0.0);
    upload(context, values.get(), points.values, rows * row_bytes());
    if (points.weights != nullptr) {
        weights = DeviceArray<double>(context.budget, rows);
        upload(context, weights.get(), points.weights, weight_bytes);
    }
}

Data::Data(Context &owner, const PgkmPoints &points, DeviceArray<char> own_values, DeviceArray<double> own_weights,
           Copies own)
    : context(owner), host(points), resident(true), values(std::move(own_values)), weights(std::move(own_weights)),
      copies(std::move(own))
{
}

Data::~Data()
{
    ranges.clear();
    // Chunks may still be on their way when a call was cancelled.
    if (context.copy.get() != nullptr)
        cudaStreamSynchronize(context.copy.get());
    if (context.compute.get() != nullptr)
        cudaStreamSynchronize(context.compute.get());
    context.budget.drop_aside(values.get(), values.bytes());
    values = DeviceArray<char>();
    weights = DeviceArray<double>();
    chunks = {};
    if (copies.rows == 0)
        context.budget.drop_spare(context.budget.lasting_spare());
}

void Data::stream()
{
    if (!resident)
        return;
    if (copies.rows != 0)
        throw Error(PGKM_LIMIT, "a device has no room for centroids and sums beside the entries");
    if (has_entries()) // they go first (entries/)
        throw Error(PGKM_LIMIT, "a device has no room for centroids and sums beside rows and entries");
    synchronise(context.compute.get());
    resident = false;
    context.budget.drop_aside(values.get(), values.bytes());
    values = DeviceArray<char>();
    weights = DeviceArray<double>();
    make_chunks();
}

void Data::make_chunks()
{
    const std::size_t per_row = row_bytes() + (host.weights == nullptr ? 0 : sizeof(double));
    // What is used at the moment must not decide it: bits of mixtures depend on the rows of a chunk.
    const std::size_t free_bytes = free_memory();
    const std::size_t limit = context.budget.limit, room = limit == 0 ? free_bytes : std::min(limit, free_bytes);
    const std::size_t chunk_bytes = std::min<std::size_t>(room / 8, std::size_t{256} << 20);
    auto rows = static_cast<std::int64_t>(chunk_bytes / per_row);
    for (const std::int64_t multiple : chunk_multiples)
        if (rows >= multiple) {
            rows -= rows % multiple;
            break;
        }
    if (rows < 1)
        throw Error(PGKM_LIMIT, "the device memory limit does not hold two chunks of one row");
    chunks.registration = lock_pages(const_cast<void *>(host.values), static_cast<std::size_t>(host.n) * row_bytes());
    if (!chunks.registered())
        chunks.claim = Claim(context.host_budget, 2 * static_cast<std::uint64_t>(rows) * row_bytes());
    // A block that was in use before may still be read by kernels: copies come in another stream.
    synchronise(context.compute.get());
    for (int slot = 0; slot < 2; ++slot) {
        chunks.values[slot] = DeviceArray<char>(context.budget, static_cast<std::size_t>(rows) * row_bytes());
        if (host.weights != nullptr)
            chunks.weights[slot] = DeviceArray<double>(context.budget, static_cast<std::size_t>(rows));
        if (!chunks.registered())
            chunks.staging[slot] = PinnedArray<char>(static_cast<std::size_t>(rows) * row_bytes());
        chunks.filled[slot] = make_event();
        chunks.used[slot] = make_event();
    }
    chunks.rows = rows;
}

void Data::fill_chunk(int slot, std::int64_t row, std::int64_t rows)
{
    const cudaStream_t stream = context.copy.get();
    const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes();
    // Not before the kernels of two chunks ago have read this buffer (an event never recorded passes). The host
    // waits, not the stream: what is enqueued far ahead, a cancel has to wait for.
    context.wait(chunks.used[slot].get());
    const char *from = static_cast<const char *>(host.values) + static_cast<std::size_t>(row) * row_bytes();
    if (!chunks.registered()) {
        std::memcpy(chunks.staging[slot].get(), from, bytes);
        from = chunks.staging[slot].get();
    }
    enqueue_copy(chunks.values[slot].get(), from, bytes, stream, cudaMemcpyHostToDevice);
    context.bytes_moved += bytes;
    if (host.weights != nullptr)
        chunks.weights[slot].upload(host.weights + row, static_cast<std::size_t>(rows), stream);
    record(chunks.filled[slot].get(), stream);
    enqueue_wait(chunks.filled[slot].get(), context.compute.get());
}

void Data::release_chunk(int slot)
{
    record(chunks.used[slot].get(), context.compute.get());
}

} // namespace pgkm::cuda

// handover.cpp - copies rows into memory that the service can map.
#include "service/client/handover.hpp"

#include <algorithm>
#include <cstring>

#include "numeric/error.hpp"
#include "numeric/thread_pool.hpp"
#include "service/wire/mapping.hpp"

namespace pgkm::service {
namespace {

constexpr std::uint64_t copy_chunk_bytes = std::uint64_t{8} << 20; // between two looks at the cancel flag
constexpr std::int64_t most_threads = 4;

// `bytes` bytes into the file at `to`, which memory backs first: what is not there becomes an error and not a signal.
void copy_chunk(const File &file, std::uint64_t to, const char *from, std::uint64_t bytes)
{
    const std::uint64_t begin = to / control_bytes * control_bytes; // a mapping begins with a page
    extend_file(file.get(), begin, to + bytes);
    const Mapping mapped = map_file(file.get(), begin, to + bytes - begin);
    std::memcpy(mapped.get() + (to - begin), from, bytes);
}

// Several threads: most of the time goes into pages that are touched for the first time.
void copy(const Link &link, const File &file, std::uint64_t to, const void *from, std::uint64_t bytes)
{
    const std::uint64_t chunks = (bytes + copy_chunk_bytes - 1) / copy_chunk_bytes;
    parallel_for(chunks, most_threads, [&](std::int64_t i, int) {
        link.check_cancelled();
        const std::uint64_t done = i * copy_chunk_bytes;
        copy_chunk(file, to + done, static_cast<const char *>(from) + done, std::min(copy_chunk_bytes, bytes - done));
    });
}

} // namespace

HandedOver hand_over(const Link &link, const PgkmPoints &points)
{
    const bool weighted = points.weights != nullptr;
    const std::uint64_t bytes = shape_of(points).value_bytes(),
                        weight_bytes = weighted ? static_cast<std::uint64_t>(points.n) * sizeof(double) : 0;
    const PgkmSegment &segment = link.segment();
    const auto offset = [&](const void *address) {
        return static_cast<std::uint64_t>(static_cast<const char *>(address) - static_cast<const char *>(segment.base));
    };
    const auto inside = [&](const void *address, std::uint64_t length) {
        return address >= segment.base && offset(address) + length <= segment.bytes;
    };
    LoadRequest place = {points.element, points.n, points.d, weighted ? 1 : 0, 0, 0, 0};
    if (segment.file != 0 && inside(points.values, bytes) && (!weighted || inside(points.weights, weight_bytes))) {
        place.values = offset(points.values);
        place.weights = weighted ? offset(points.weights) : 0;
        place.bytes = segment.bytes;
        return {place, {}, segment.file};
    }
    place.weights = (bytes + 63) / 64 * 64; // values, then weights
    place.bytes = weighted ? place.weights + weight_bytes : bytes;
    link.check_memory(place.bytes);
    File file = new_shared_file();
    copy(link, file, place.values, points.values, bytes);
    if (weighted)
        copy(link, file, place.weights, points.weights, weight_bytes);
    const int fd = file.get();
    return {place, std::move(file), fd};
}

} // namespace pgkm::service

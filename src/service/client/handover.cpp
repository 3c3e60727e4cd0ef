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
    const Mapping mapped(file.get(), begin, to + bytes - begin);
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

File copy_rows(const Link &link, const PgkmPoints &points, const LoadRequest &place)
{
    link.check_memory(place.bytes);
    File file = new_shared_file();
    copy(link, file, place.values, points.values, shape_of(points).value_bytes());
    if (points.weights != nullptr)
        copy(link, file, place.weights, points.weights, points.n * sizeof(double));
    return file;
}

LoadRequest place_rows(const Link &link, const PgkmPoints &points, int *file)
{
    *file = -1;
    LoadRequest place = {};
    place.element = points.element;
    place.n = points.n;
    place.d = points.d;
    place.weighted = points.weights != nullptr ? 1 : 0;
    const std::uint64_t bytes = shape_of(points).value_bytes(),
                        weight_bytes = place.weighted * points.n * sizeof(double);
    const PgkmSegment &segment = link.segment();
    const auto offset = [&](const void *address) {
        return static_cast<std::uint64_t>(static_cast<const char *>(address) - static_cast<const char *>(segment.base));
    };
    const auto inside = [&](const void *address, std::uint64_t length) {
        return address >= segment.base && offset(address) + length <= segment.bytes;
    };
    if (segment.file != 0 && inside(points.values, bytes) &&
        (place.weighted == 0 || inside(points.weights, weight_bytes))) {
        *file = segment.file;
        place.values = offset(points.values);
        place.weights = place.weighted != 0 ? offset(points.weights) : 0;
        place.bytes = segment.bytes;
    } else {
        place.weights = (bytes + 63) / 64 * 64;
        place.bytes = place.weighted != 0 ? place.weights + weight_bytes : bytes;
    }
    return place;
}

} // namespace pgkm::service

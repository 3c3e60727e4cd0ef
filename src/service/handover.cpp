#include "service/handover.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "numeric/error.hpp"
#include "service/memory.hpp"

namespace pgkm::service {
namespace {

constexpr std::uint64_t copy_piece = std::uint64_t{8} << 20; // between two looks at the cancel flag
constexpr unsigned most_threads = 4;

// One array on its way into a file.
struct Part {
    std::uint64_t to;
    const char *from;
    std::uint64_t bytes;
};

// A piece of it, backed by memory first: what is not there becomes an error and not a signal.
void copy_one(const File &file, const Part &part, std::uint64_t done)
{
    const std::uint64_t bytes = std::min(copy_piece, part.bytes - done), to = part.to + done;
    const std::uint64_t begin = to / control_bytes * control_bytes; // a mapping begins with a page
    extend_file(file.get(), begin, to + bytes);
    const Mapping mapped(file.get(), begin, static_cast<std::size_t>(to + bytes - begin));
    std::memcpy(mapped.get() + (to - begin), part.from + done, static_cast<std::size_t>(bytes));
}

// Pieces until there are none left, somebody has failed, or the host has cancelled.
void copy_pieces(const Link &link, const File &file, const Part &part, std::atomic<std::uint64_t> &next)
{
    for (std::uint64_t done; (done = next.fetch_add(copy_piece)) < part.bytes;) {
        link.check_cancelled();
        copy_one(file, part, done);
    }
}

// Several threads: most of the time goes into pages that are touched for the first time.
void copy(const Link &link, const File &file, const Part &part)
{
    std::atomic<std::uint64_t> next{0};
    std::array<PgkmError, most_threads> errors = {};
    std::vector<std::thread> threads;
    const auto work = [&](unsigned i) {
        if (guarded(&errors[i], [&] { copy_pieces(link, file, part, next); }) != PGKM_OK)
            next.store(part.bytes);
    };
    const std::uint64_t pieces = part.bytes / copy_piece;
    for (unsigned i = 1; i < std::min<std::uint64_t>(most_threads, pieces); ++i)
        if (guarded(nullptr, [&] { threads.emplace_back(work, i); }) != PGKM_OK)
            break; // fewer do it too
    work(0);
    for (std::thread &thread : threads)
        thread.join();
    for (const PgkmError &error : errors)
        if (error.status != PGKM_OK)
            throw Error(error.status, error.text);
}

} // namespace

File copy_rows(const Link &link, const PgkmPoints &points, const LoadRequest &place)
{
    link.check_memory(place.bytes);
    File file = new_shared_file();
    const std::uint64_t values = static_cast<std::uint64_t>(points.n) * static_cast<std::uint64_t>(points.d) *
                                 (points.element == PGKM_FLOAT32 ? 4 : 8);
    copy(link, file, {place.values, static_cast<const char *>(points.values), values});
    if (points.weights != nullptr)
        copy(link, file,
             {place.weights, reinterpret_cast<const char *>(points.weights),
              static_cast<std::uint64_t>(points.n) * sizeof(double)});
    return file;
}

LoadRequest place_rows(const Link &link, const PgkmPoints &points)
{
    LoadRequest place = {};
    place.element = points.element;
    place.n = points.n;
    place.d = points.d;
    place.weighted = points.weights != nullptr ? 1 : 0;
    const std::uint64_t bytes = static_cast<std::uint64_t>(points.n) * static_cast<std::uint64_t>(points.d) *
                                (points.element == PGKM_FLOAT32 ? 4 : 8);
    const std::uint64_t weight_bytes =
        static_cast<std::uint64_t>(place.weighted) * static_cast<std::uint64_t>(points.n) * sizeof(double);
    const PgkmSegment &segment = link.segment();
    const auto offset = [&](const void *address) {
        return static_cast<std::uint64_t>(static_cast<const char *>(address) - static_cast<const char *>(segment.base));
    };
    const auto inside = [&](const void *address, std::uint64_t length) {
        return address >= segment.base && offset(address) + length <= segment.bytes;
    };
    if (segment.handle != 0 && inside(points.values, bytes) &&
        (place.weighted == 0 || inside(points.weights, weight_bytes))) {
        place.segment = segment.handle;
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

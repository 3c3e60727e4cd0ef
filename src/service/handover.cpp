#include "service/handover.hpp"

#include <algorithm>
#include <cstring>

#include "engine/error.hpp"
#include "service/memory.hpp"

namespace pgkm::service {
namespace {

constexpr std::size_t copy_piece = std::size_t{16} << 20; // between two looks at the cancel flag

} // namespace

File copy_rows(const Link &link, const PgkmPoints &points, const LoadRequest &place)
{
    link.check_memory(place.bytes);
    File file = new_shared_file();
    const std::uint64_t values = static_cast<std::uint64_t>(points.n) * static_cast<std::uint64_t>(points.d) *
                                 (points.element == PGKM_FLOAT32 ? 4 : 8);
    const std::uint64_t weights = points.weights == nullptr ? 0 : static_cast<std::uint64_t>(points.n) * sizeof(double);
    const auto copy = [&](std::uint64_t to, const void *from, std::uint64_t bytes) {
        for (std::uint64_t done = 0; done < bytes; done += copy_piece) {
            link.check_cancelled();
            const std::size_t piece = static_cast<std::size_t>(std::min<std::uint64_t>(copy_piece, bytes - done));
            const std::uint64_t begin = (to + done) / control_bytes * control_bytes;
            extend_file(file.get(), begin, to + done + piece);
            const Mapping part(file.get(), begin, static_cast<std::size_t>(to + done + piece - begin));
            std::memcpy(part.get() + (to + done - begin), static_cast<const char *>(from) + done, piece);
        }
    };
    copy(place.values, points.values, values);
    copy(place.weights, points.weights, weights);
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

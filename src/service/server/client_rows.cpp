// client_rows.cpp - maps a client's rows after it has checked where they lie.
#include "service/server/client_rows.hpp"

#include "numeric/error.hpp"
#include "service/server/problems.hpp"

namespace pgkm::service {
namespace {

// Bytes of the values of n x d elements; refuses what does not fit into an address space.
std::uint64_t value_bytes(const LoadRequest &request, std::size_t element_bytes)
{
    std::uint64_t n_values = 0, bytes = 0;
    if (request.n < 1 || request.d < 1 ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(request.n), static_cast<std::uint64_t>(request.d),
                               &n_values) ||
        __builtin_mul_overflow(n_values, element_bytes, &bytes) || bytes > INT64_MAX / 2)
        refuse("rows that cannot be");
    return bytes;
}

void check_inside(const LoadRequest &request, std::uint64_t begin, std::uint64_t bytes)
{
    if (begin % sizeof(double) != 0 || begin > request.bytes || bytes > request.bytes - begin)
        refuse("rows that lie outside their memory");
}

} // namespace

ClientRows::ClientRows(const LoadRequest &request, File passed)
{
    if (request.element != PGKM_FLOAT32 && request.element != PGKM_FLOAT64)
        refuse("rows of no known type");
    points_.element = request.element == PGKM_FLOAT32 ? PGKM_FLOAT32 : PGKM_FLOAT64;
    points_.n = request.n;
    points_.d = request.d;
    check_inside(request, request.values, value_bytes(request, shape_of(points_).element_bytes()));
    if (request.weighted != 0)
        check_inside(request, request.weights, static_cast<std::uint64_t>(request.n) * sizeof(double));
    if (!passed.is_open() || !is_safe(passed.get(), request.bytes))
        refuse("no rows");
    memory_ = map_file(passed.get(), 0, request.bytes);
    const char *base = memory_.get();
    points_.values = base + request.values;
    points_.weights = request.weighted == 0 ? nullptr : reinterpret_cast<const double *>(base + request.weights);
}

std::uint64_t ClientRows::bytes() const
{
    const std::uint64_t weights =
        points_.weights == nullptr ? 0 : static_cast<std::uint64_t>(points_.n) * sizeof(double);
    return shape_of(points_).value_bytes() + weights;
}

} // namespace pgkm::service

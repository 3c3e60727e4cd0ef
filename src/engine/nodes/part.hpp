// part.hpp - the rows of one server, and what it does with them when it is asked (message.hpp).
//
// The node's own backend does the work: its CPU, or its GPU. What has to last from one request to the next is a
// PartState; its arrays have one element a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/session.hpp"
#include "engine/nodes/message.hpp"
#include "numeric/large_array.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// A row in canonical order: its key and its number.
using KeyedRow = std::pair<std::uint64_t, std::uint64_t>;

struct PartState {
    std::unique_ptr<std::byte[]> transformed; // rows, where they are not clustered as they are
    // Of the last iteration.
    std::int32_t k = 0;
    Bytes centroids;
    LargeArray<std::int32_t> labels;
    // Of seeding: rows by key, then content; per row the squared distance to the nearest chosen row, and which.
    LargeArray<KeyedRow> order;
    LargeArray<double> nearest;
    LargeArray<std::int32_t> chosen;
    std::int32_t n_chosen = 0;
    std::vector<std::int64_t> given; // masses of rows that are candidates of k-means||, whose order is their own
};

// What comes over the network decides where memory is read and written, and anybody may send it. So shapes, and values
// that would leave no nearest centroid, are checked. Throws Error(PGKM_INVALID).
[[noreturn]] void raise_shape();
template <typename T>
void check_values(const T *values, std::size_t count);
// One or more rows of d values.
template <typename T>
std::vector<T> read_rows(Reader &request, std::size_t count, std::int32_t d)
{
    std::vector<T> values = request.get_all<T>();
    if (count < 1 || count > INT32_MAX || values.size() != count * static_cast<std::size_t>(d))
        raise_shape();
    check_values(values.data(), values.size());
    return values;
}
// As many as there are.
template <typename T>
std::vector<T> read_rows(Reader &request, std::int32_t d)
{
    std::vector<T> values = request.get_all<T>();
    if (values.empty() || values.size() % static_cast<std::size_t>(d) != 0)
        raise_shape();
    check_values(values.data(), values.size());
    return values;
}

// Bytes of a row in all arrays of a state, beside its transformed values.
inline constexpr std::uint64_t state_bytes_per_row = 4 + 4 + 16 + 8 + 4 + 8 + 16;

class Part {
  public:
    // points: of the request that loaded them, as they are; they stay the caller's.
    Part(Session &session, const PgkmPoints &points, PartState &state, std::int32_t threads, const PgkmHost &host);

    // Answers one request. Throws Error.
    void serve(Reader &request, Writer &reply);

  private:
    template <typename T>
    void serve_as(Operation operation, Reader &request, Writer &reply);
    template <typename T>
    void ranges(Writer &reply);
    template <typename T>
    void moments(Reader &request, Writer &reply);
    template <typename T>
    void transform(Reader &request);
    template <typename T>
    void iterate(Reader &request, Writer &reply);
    template <typename T>
    void farthest(Reader &request, Writer &reply);
    template <typename T>
    void assign(Reader &request, Writer &reply);
    void cross(Reader &request, Writer &reply);
    template <typename T>
    void em_step(Reader &request, Writer &reply);
    PgkmProblem whole() const;
    void poll() const;

    Session &session_;
    PgkmPoints points_; // as they are clustered
    const PgkmPoints raw_;
    PartState &state_;
    std::int32_t threads_;
    PgkmHost host_;
};

} // namespace pgkm::nodes

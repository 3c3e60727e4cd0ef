// stream_source.hpp - rows that come chunk by chunk, and fits of them.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/stream.h"
#include "nodes_fixture.hpp"

namespace in_process {

// Gives the rows in chunks of these sizes, over and over. A chunk is overwritten when its time is over.
class Source {
  public:
    Source(const RowSet &rows, std::vector<std::int64_t> sizes)
        : rows_(rows), sizes_(std::move(sizes)),
          stream_(pgkm_stream_create(rows.n(), *std::max_element(sizes_.begin(), sizes_.end())))
    {
    }
    ~Source() { pgkm_stream_free(stream_); }
    Source(const Source &) = delete;
    Source &operator=(const Source &) = delete;

    void add_to(PgkmRequest &request) const
    {
        static const double none = 0.0;
        request.points = {&none, rows_.element, 0, rows_.d, rows_.weights.empty() ? nullptr : &none};
        request.stream = stream_;
    }

    void feed()
    {
        if (pgkm_stream_wait(stream_, 1) == 0)
            return;
        const std::int64_t size = std::min(sizes_[next_++ % sizes_.size()], rows_.n() - begin_);
        const PgkmPoints from = rows_.points(begin_, size);
        RowSet &chunk = chunks_[next_ % 2];
        std::fill(chunk.values.begin(), chunk.values.end(), std::byte{0xff});
        const auto *values = static_cast<const std::byte *>(from.values);
        chunk = {from.element, from.d, {values, values + static_cast<std::size_t>(size) * rows_.row_bytes()}, {}};
        if (from.weights != nullptr)
            chunk.weights.assign(from.weights, from.weights + size);
        const PgkmPoints points = chunk.points(0, size);
        pgkm_stream_give(stream_, &points);
        passes += size == 0 ? 1 : 0;
        begin_ = size == 0 ? 0 : begin_ + size;
    }
    int passes = 0;

  private:
    const RowSet &rows_;
    const std::vector<std::int64_t> sizes_;
    PgkmStream *const stream_;
    std::size_t next_ = 0;
    std::int64_t begin_ = 0;
    RowSet chunks_[2];
};

inline Said run_in_chunks(const RowSet &rows, PgkmRequest request, const std::vector<std::int64_t> &sizes)
{
    Source source(rows, sizes);
    source.add_to(request);
    return run(request, [&] { source.feed(); });
}

} // namespace in_process

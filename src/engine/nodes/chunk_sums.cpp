// chunk_sums.cpp - chunks cut into blocks, and their sums in the order of all rows.
#include "engine/nodes/chunk_sums.hpp"

#include <algorithm>

#include "numeric/reduction.hpp"
#include "engine/backends/moments.hpp"
#include "engine/nodes/share.hpp"

namespace pgkm::nodes {
namespace {

template <typename T>
void add_sampled(MeanOfSample &mean, const PgkmPoints &chunk, std::int64_t first, const Standardization &units)
{
    const bool standardized = !units.center.empty();
    mean.add(first, chunk.n, [&](std::int64_t i, double *row) {
        std::vector<T> own(static_cast<const T *>(chunk.values) + i * chunk.d,
                           static_cast<const T *>(chunk.values) + (i + 1) * chunk.d);
        if (standardized)
            transform_row(own.data(), chunk.d, units.center.data(), units.scale.data(), PGKM_L2);
        std::copy(own.begin(), own.end(), row);
    });
}

} // namespace

std::vector<double> mean_of_sample(PgkmStream &source, std::int32_t d, const Standardization &units,
                                   const PgkmHost &host)
{
    MeanOfSample mean(source.n, d);
    PgkmPoints chunk;
    std::int64_t first = 0;
    source.begin_pass(host);
    for (; source.take(host, chunk); first += chunk.n)
        with_element(chunk, [&](auto element) { add_sampled<decltype(element)>(mean, chunk, first, units); });
    return mean.mean();
}

void RowBlocks::keep(const PgkmPoints &rows)
{
    const auto *values = static_cast<const std::byte *>(rows.values);
    values_.insert(values_.end(), values, values + static_cast<std::size_t>(rows.n) * shape_of(rows).row_bytes());
    if (rows.weights != nullptr)
        weights_.insert(weights_.end(), rows.weights, rows.weights + rows.n);
    kept_ += rows.n;
}

void RowBlocks::give_kept(const Body &body)
{
    PgkmPoints rows = shape_;
    rows.values = values_.data();
    rows.weights = shape_.weights == nullptr ? nullptr : weights_.data();
    rows.n = kept_;
    body(given_, rows);
    given_ += kept_;
    kept_ = 0;
    values_.clear();
    weights_.clear();
}

void RowBlocks::add(const PgkmPoints &chunk, const Body &body)
{
    shape_ = chunk;
    std::int64_t begin = 0;
    if (kept_ > 0) {
        begin = std::min(chunk.n, block_rows - kept_);
        keep(part_of(chunk, 0, begin));
        if (kept_ < block_rows)
            return;
        give_kept(body);
    }
    const std::int64_t whole = (chunk.n - begin) / block_rows * block_rows;
    if (whole > 0)
        body(given_, part_of(chunk, begin, whole));
    given_ += whole;
    keep(part_of(chunk, begin + whole, chunk.n - begin - whole));
}

void RowBlocks::finish(const Body &body)
{
    if (kept_ > 0)
        give_kept(body);
}

ChunkSums::ChunkSums(Session &session, const Call &call, const PgkmPoints &shape)
    : session_(session), context_(*cpu::self(session.cpu().get())), shape_(shape), call_(call),
      sums_(is_mixture() ? cpu::begin_em_step(context_, shape.n, shape.d, *call.mixtures, wants_sums())
                         : cpu::begin_moments(context_, shape.n, shape.d, shape.weights != nullptr))
{
}

void ChunkSums::add(const PgkmPoints &chunk)
{
    blocks_.add(chunk, [&](std::int64_t first, const PgkmPoints &piece) { add_piece(first, piece); });
}

void ChunkSums::add_piece(std::int64_t first, const PgkmPoints &piece)
{
    session_.load(piece);
    cpu::Data &data = *cpu_data(session_);
    if (!is_mixture())
        return cpu::add_moments(data, first, *call_.moments, sums_);
    PgkmMixture mixture = *call_.mixtures;
    LargeArray<std::int32_t> labels;
    if (mixture.factors == nullptr) {
        labels = nearest_labels(session_, piece, mixture.k, mixture.means);
        mixture.labels = labels.data();
    }
    cpu::add_em_step(data, first, mixture, wants_sums(), sums_);
}

void ChunkSums::finish()
{
    blocks_.finish([&](std::int64_t first, const PgkmPoints &piece) { add_piece(first, piece); });
    session_.unload(); // what was kept
    if (is_mixture())
        cpu::finish_em_step(context_, sums_, shape_.d, *call_.mixtures, *call_.sums);
    else
        cpu::finish_moments(context_, sums_, shape_.d, shape_.weights != nullptr, *call_.moments);
}

} // namespace pgkm::nodes

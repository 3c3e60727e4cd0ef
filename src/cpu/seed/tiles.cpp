// tiles.cpp - groups rows into tiles, and the proof that no row is passed over which a candidate wins.
//
// Let x be a row, z its group's parent, c a candidate, N the computed squared distance of x to its nearest chosen row.
// c wins x if D(x, c) < N. D is float64: of the true square it is off by at most (d + 3) 2^-53 of it, and by d 2^-1074
// where squares underflow. below() and above() of DistanceBounds turn a computed square into bounds of the length.
//
// Triangle inequality. |x - c| >= |z - c| - |x - z|, and >= |x - z| - |z - c|. Where one of these, from bounds, is at
// least above(N), D(x, c) >= N. above() steps out by far more than D's own error, so that this holds for the computed
// D, too.
//
// Projections. Where x, z and c are projections of rows, N is of the rows themselves. c wins only if they lie within
// above(N) and the error of two projections, which is added to each above(N) here and below. D is that of images in |x
// - z|, |z - c|.
//
// Filter (int16.hpp). c wins x only if |x - c|^2 <= above(N)^2, so that its score
// is at most what score_above() says. A score also bounds the square of the distance, and so what c takes from N.
// D, of which that is the difference, is off by (d + 3) 2^-53 of itself: bounds step out by (d + 8) 2^-51.
#include "cpu/seed/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/kernels/exact_kernels.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Below this a computed square may have lost bits to underflow.
constexpr double smallest_trusted = 0x1p-900;

// Levels of distance from the parent by which the rows of a group are put together.
constexpr std::int32_t levels = 16;
constexpr std::int64_t steps_per_poll = 1 << 16;
// Parts of the rows that threads deal out at once, and rows that make one worth its counters.
constexpr std::int64_t most_parts = 64;
constexpr std::int64_t least_in_part = 1 << 15;

} // namespace

DistanceBounds::DistanceBounds(std::int32_t d) : share_((d + 64.0) * 0x1p-50) {}

double DistanceBounds::below(double square) const
{
    return square < smallest_trusted ? 0.0 : std::sqrt(square) * (1.0 - share_);
}

double DistanceBounds::above(double square) const
{
    return std::max(std::sqrt(square) * (1.0 + share_), 0x1p-449);
}

template <typename T>
SeedTiles<T>::SeedTiles(const BlockRunner &runner, const SeedRows<T> &rows, std::int32_t d, double error)
    : runner_(runner), kernels_(int16_kernels(runner.instruction_set())), rows_(rows), bounds_(d), error_(error),
      filters_(rows.d <= Int16Code<T>::most_features)
{
}

// Gives every row its place: by group, then by distance from the parent, then by number.
template <typename T>
void SeedTiles<T>::deal(std::int32_t n_chosen, const std::int32_t *labels, const double *own, const double *nearest)
{
    // The first groups are made before anything is known but distances, and rows are faster to read as they come.
    const std::int32_t depth = n_chosen == 1 ? 1 : levels;
    const std::int64_t n_levels = std::int64_t{n_chosen} * depth;
    const std::int64_t room = (n_levels + 15) / 8 * 8; // of a part, which shares no cache line with another
    const std::int64_t parts = std::clamp<std::int64_t>(rows_.n / (least_in_part + 4 * room), 1, most_parts);
    const auto for_rows = [&](const auto &body) {
        runner_.run(parts, [&](std::int64_t part) {
            for (std::int64_t row = rows_.n * part / parts; row < rows_.n * (part + 1) / parts; ++row) {
                if (row % steps_per_poll == 0)
                    runner_.poll();
                body(part, row);
            }
        });
    };
    std::vector<double> farthest(parts * room, 0.0); // of each part, then of all in the first one's room
    for_rows([&](std::int64_t part, std::int64_t row) {
        double &most = farthest[part * room + labels[row]];
        most = std::max({most, own[row], nearest[row]});
    });
    for (std::int64_t part = 1; part < parts; ++part)
        for (std::int32_t g = 0; g < n_chosen; ++g)
            farthest[g] = std::max(farthest[g], farthest[part * room + g]);
    const auto level_of = [&](std::int64_t row) {
        const double share = depth == 1 || own[row] == 0.0 ? 0.0 : std::sqrt(own[row] / farthest[labels[row]]);
        return std::int64_t{labels[row]} * depth + std::min(depth - 1, static_cast<std::int32_t>(share * depth));
    };
    std::vector<std::int64_t> next(parts * room, 0); // rows of a part and a level, then the place of the next one
    for_rows([&](std::int64_t part, std::int64_t row) { ++next[part * room + level_of(row)]; });
    count_ = 0;
    std::vector<std::int64_t> rows_of(n_chosen, 0);
    for (std::int32_t g = 0; g < n_chosen; ++g) {
        std::int64_t place = count_ * seed_tile_rows;
        for (std::int64_t level = std::int64_t{g} * depth; level < std::int64_t{g + 1} * depth; ++level)
            for (std::int64_t part = 0; part < parts; ++part) {
                std::int64_t &here = next[part * room + level];
                rows_of[g] += here;
                here = std::exchange(place, place + here);
            }
        count_ += (rows_of[g] + seed_tile_rows - 1) / seed_tile_rows;
    }
    places_ = Buffer<RowNumber>();
    places_ = Buffer<RowNumber>(runner_.budget(), count_ * seed_tile_rows);
    for_rows([&](std::int64_t part, std::int64_t row) {
        places_[next[part * room + level_of(row)]++] = static_cast<RowNumber>(row);
    });
    tiles_ = Buffer<SeedTile>();
    tiles_ = Buffer<SeedTile>(runner_.budget(), count_);
    std::int64_t tile = 0;
    for (std::int32_t g = 0; g < n_chosen; ++g) {
        for (std::int64_t left = rows_of[g]; left > 0; left -= seed_tile_rows) {
            tiles_[tile] = SeedTile();
            tiles_[tile].group = g;
            tiles_[tile++].count = static_cast<std::int32_t>(std::min<std::int64_t>(left, seed_tile_rows));
        }
        groups_[g].unit = Int16Code<T>::unit_near(bounds_.above(farthest[g]) + error_);
    }
}

template <typename T>
void SeedTiles<T>::group(const T *const *chosen, std::int32_t n_chosen, const std::int32_t *labels, const double *own,
                         const double *nearest)
{
    groups_.clear();
    for (std::int32_t g = 0; g < n_chosen; ++g)
        groups_.push_back({chosen[g], rows_.d, 1.0});
    values_ = Buffer<std::int32_t>(); // what stood there, before there is more
    deal(n_chosen, labels, own, nearest);
    const std::int64_t places = count_ * seed_tile_rows;
    nearest_ = Buffer<double>();
    nearest_ = Buffer<double>(runner_.budget(), places);
    for (Buffer<float> *each : {&limits_, &units_, &squares_}) {
        *each = Buffer<float>();
        *each = Buffer<float>(runner_.budget(), places);
    }
    if (filters_)
        values_ = Buffer<std::int32_t>::if_room(runner_.budget(), places * pairs(),
                                                places * sizeof(std::uint32_t) + bytes_beside());
    const std::int64_t per_task = std::max<std::int64_t>(1, (1 << 18) / (std::int64_t{rows_.d} * seed_tile_rows));
    runner_.run((count_ + per_task - 1) / per_task, [&](std::int64_t task) {
        Int16Room room(runner_.budget(), filters_ ? rows_.d : 0);
        for (std::int64_t tile = task * per_task; tile < std::min(count_, (task + 1) * per_task); ++tile)
            fill(tile, own, nearest, room);
    });
    for (const SeedTile &tile : tiles_) {
        Int16Code<T> &group = groups_[tile.group];
        group.row_residual = std::max(group.row_residual, group.residual_above(static_cast<double>(tile.residual)));
    }
}

template <typename T>
std::uint64_t SeedTiles<T>::bytes_beside() const
{
    constexpr std::uint64_t padding = 8192; // of all buffers of a worker, or of all others
    const std::uint64_t of_task = 2 * sizeof(double) + max_seed_candidates * (sizeof(GainBounds) + sizeof(UInt128));
    const std::uint64_t of_room = (sizeof(float) * rows_.d + sizeof(std::int32_t) * int16_words(rows_.d)) * tiled_width;
    const std::uint64_t of_worker =
        of_room + sizeof(float) * max_seed_candidates * (seed_tile_rows + pairs()) + padding;
    return (count_ / seed_task_tiles + 1) * of_task + runner_.workers() * of_worker + padding;
}

// The words of a tile's rows; returns the largest residual.
template <typename T>
float SeedTiles<T>::encode(std::int64_t tile, Int16Room &room) const
{
    const SeedTile &one = tiles_[tile];
    const Int16Code<T> &code = groups_[one.group];
    const T *points[seed_tile_rows];
    for (int i = 0; i < one.count; ++i)
        points[i] = rows_.row(row(tile, i));
    return kernels_.encode(points, one.count, rows_.d, code.middle, 1.0 / code.unit, room.block.data(),
                           room.words.data());
}

template <typename T>
void SeedTiles<T>::fill(std::int64_t tile, const double *own, const double *nearest, Int16Room &room)
{
    SeedTile &one = tiles_[tile];
    const std::int64_t first = tile * seed_tile_rows;
    std::fill_n(limits_.data() + first, seed_tile_rows, -std::numeric_limits<float>::infinity());
    if (filters_) {
        one.residual = encode(tile, room);
        const Int16Block encoded(room.words.data());
        std::copy_n(encoded.unit, seed_tile_rows, units_.data() + first);
        std::copy_n(encoded.square, seed_tile_rows, squares_.data() + first);
        if (values_.size() != 0)
            std::copy_n(encoded.values, pairs() * seed_tile_rows, values_.data() + first * pairs());
        one.is_open = *std::min_element(encoded.unit, encoded.unit + one.count) == 0.0f;
    }
    double near = std::numeric_limits<double>::infinity(), far = 0.0;
    for (int i = 0; i < one.count; ++i) {
        const double square = own[row(tile, i)];
        near = std::min(near, square);
        far = std::max(far, square);
        lower(tile, i, nearest[row(tile, i)]);
    }
    one.nearest_row = bounds_.below(near);
    one.farthest_row = bounds_.above(far);
    refresh(tile);
}

template <typename T>
void SeedTiles<T>::lower(std::int64_t tile, int i, double square)
{
    const std::int64_t place = tile * seed_tile_rows + i;
    nearest_[place] = square;
    const SeedTile &one = tiles_[tile];
    float limit = -std::numeric_limits<float>::infinity(); // where nothing is nearer
    if (square > 0.0 && can_compare(one)) {
        const double far = bounds_.above(square) + error_;
        limit = float_above(groups_[one.group].score_above(static_cast<double>(squares_[place]),
                                                           static_cast<double>(units_[place]), far * far));
    }
    limits_[place] = limit;
}

template <typename T>
void SeedTiles<T>::refresh(std::int64_t tile)
{
    SeedTile &one = tiles_[tile];
    const double *squares = nearest_.data() + tile * seed_tile_rows;
    const double worst = *std::max_element(squares, squares + one.count);
    one.worst = worst == 0.0 ? 0.0 : bounds_.above(worst) + error_;
    one.largest = worst;
    if (rows_.weights == nullptr)
        return;
    one.largest = 0.0;
    for (int i = 0; i < one.count; ++i)
        one.largest = std::max(one.largest, rows_.weight(row(tile, i)) * squares[i]);
}

template <typename T>
SeedTiles<T>::View::View(const SeedTiles &tiles, int most)
    : tiles_(tiles), below_(most), above_(most), squares_(most), about_(most),
      panels_(tiles.runner_.budget(), panels_for(most) * tiled_panel, tiles.rows_.d),
      scores_(tiles.runner_.budget(), panels_for(most) * tiled_panel * seed_tile_rows),
      room_(tiles.runner_.budget(), tiles.filters_ ? tiles.rows_.d : 0)
{
}

template <typename T>
void SeedTiles<T>::View::look_at(const T *const *candidates, int count)
{
    candidates_ = candidates;
    count_ = count;
    group_ = -1;
}

// Candidates are at these distances from the group's parent.
template <typename T>
void SeedTiles<T>::View::enter(std::int32_t group)
{
    group_ = group;
    std::vector<const T *> parents(count_, tiles_.groups_[group].middle);
    exact_kernels(tiles_.runner_.instruction_set())
        .pairs(candidates_, parents.data(), count_, tiles_.rows_.d, squares_.data());
    for (int c = 0; c < count_; ++c) {
        below_[c] = tiles_.bounds_.below(squares_[c]);
        above_[c] = tiles_.bounds_.above(squares_[c]);
    }
    is_encoded_ = false;
    filled_.clear();
}

// The candidates' integers about the group's parent.
template <typename T>
void SeedTiles<T>::View::encode()
{
    is_encoded_ = true;
    encode_centroids(tiles_.kernels_, tiles_.groups_[group_], candidates_, count_, room_, about_.data());
}

// Brings these candidates into panels.
template <typename T>
void SeedTiles<T>::View::fill_panels(const int *near, int count)
{
    if (std::equal(filled_.begin(), filled_.end(), near, near + count))
        return;
    filled_.assign(near, near + count);
    for (int j = 0; j < count; ++j)
        panels_.put(j, room_, near[j], about_[near[j]]);
}

template <typename T>
Int16Distance SeedTiles<T>::View::distance_to(int candidate) const
{
    const Int16Code<T> &code = tiles_.groups_[group_];
    const double square = code.unit * code.unit, away = (tiles_.rows_.d + 8.0) * 0x1p-51 + 0x1p-49;
    const double lost = code.least_square(), error = code.sum_error();
    // A score may be too low by 2^-18 of start / unit, too: 2 unit times that.
    const double more = lost + static_cast<double>(about_[candidate].start) * (0x1p-17 * (1.0 + 0x1p-20));
    return {
        1.0 - error,           1.0 + error,          lost, more, 2.0 * static_cast<double>(about_[candidate].margin),
        square * (1.0 - away), square * (1.0 + away)};
}

template <typename T>
GainBounds SeedTiles<T>::View::weigh(std::int64_t tile, std::uint64_t bits, const double *gains) const
{
    GainBounds sum = {0.0, 0.0};
    for (; bits != 0; bits &= bits - 1) {
        const int i = __builtin_ctzll(bits);
        const double weight = tiles_.rows_.weight_of_copies(tiles_.row(tile, i));
        sum.least += weight * gains[i];
        sum.most += weight * gains[seed_tile_rows + i];
    }
    return sum;
}

template <typename T>
const std::int32_t *SeedTiles<T>::View::values_of(std::int64_t tile)
{
    if (tiles_.values_.size() != 0)
        return tiles_.values_.data() + tile * seed_tile_rows * tiles_.pairs();
    if (!unkept_)
        unkept_ = std::make_unique<Int16Room>(tiles_.runner_.budget(), tiles_.rows_.d);
    tiles_.encode(tile, *unkept_);
    return Int16Block(unkept_->words.data()).values;
}

template class SeedTiles<float>;
template class SeedTiles<double>;

} // namespace pgkm::cpu

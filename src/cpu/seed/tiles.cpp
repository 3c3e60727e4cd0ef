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
// Images. Where x, z and c are images of rows, N is of the rows themselves. c wins only if the images lie within
// above(N) and the error of two images, which is added to each above(N) here and below. D is that of images in |x - z|,
// |z - c|.
//
// Filter. Lengths are taken in the group's unit: y = (x - z) inverse, w = (c - z) inverse; the largest |y| is 32,760.
// q is y in whole numbers, e a bound of |y - q|, v is w in whole multiples of a scale, g a bound of |w - v|, r =
// above(N) inverse. If c wins x, then |y - w| <= r, so |q - v| <= r + e + g, which is the same as
//      q.v >= (|q|^2 - (r + e)^2) / 2 + |v|^2 / 2 - g^2 / 2 - (r + e) g.
// The first term is the row's limit, the second and third are the candidate's start; r + e comes back from the limit.
// Integers of a row are no longer than 2^15 + 2^7, those of a candidate than 64,000 + 2^7, so that products stay below
// 2^31. With u = 2^-24 the computed q.v is off by at most 2.01 u |q| |v| <= 2.01 u (|q|^2 + |v|^2) / 2, half of which
// each side bears. |q|^2 itself is a float32 sum, off by 1.01 d u of it. Limit, start and the last term are rounded to
// float32 and added: 2^-21 of limit and start covers that, and 2^-20 of |q|^2 what r + e may have lost. All numbers are
// below 2^33, and whole ones of that unit are what they are made of: a slack of 2^-8 covers what vanishes beside them.
//
// Estimates. c takes r^2 - |y - w|^2 from the square of x, if that is positive. With a = e + g, |y - w|^2 is within
// 2 |q - v| a + a^2 of |q - v|^2 = |q|^2 + |v|^2 - 2 q.v. What is computed of these in float32 is off by the chain's
// error, 2 d u, and by less than 68 roundings of |q|^2 + |v|^2 + (r + e)^2.
#include "cpu/seed/tiles.hpp"

#include <cmath>
#include <limits>

#include "cpu/kernels/pair_kernels.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// The largest |y|: below 2^15, so that 16 bits hold it after rounding.
constexpr double reach = 32760.0;
// The least unit. Squares of lengths that are small beside it may underflow; they count as 0 then, and are in the
// slack.
constexpr double smallest_unit = 0x1p-400;
// Below this a computed square may have lost bits to underflow.
constexpr double smallest_trusted = 0x1p-900;
constexpr double slack = 0x1p-8;
constexpr double rounded_share = 0x1p-21;
constexpr double unit = 0x1p-24;                // of float32 rounding
constexpr std::int32_t most_filtered = 1 << 16; // features
constexpr double product_share = 6.0 * unit;    // of the error of products, in terms of the squares of lengths
// Candidates in whole numbers: the longest, and the largest of its values.
constexpr double candidate_length = 64000.0, candidate_value = 32760.0;

// Levels of distance from the parent by which the rows of a group are put together.
constexpr std::int32_t levels = 16;
constexpr std::int64_t steps_per_poll = 1 << 16;

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
    : runner_(runner), kernels_(tile_kernels(runner.instruction_set())), rows_(rows), bounds_(d), error_(error),
      filters_(rows.d <= most_filtered)
{
    const double roundings = (kernels_.fused ? 1.0 : 2.0) * rows.d; // of a sum of squares
    square_share_ = product_share + 1.01 * unit * (roundings + 4.0);
    gain_share_ = static_cast<float>(1.02 * unit * (2.0 * roundings + 68.0));
}

// Gives every row its place: by group, then by distance from the parent, then by number.
template <typename T>
void SeedTiles<T>::deal(std::int32_t n_chosen, const std::int32_t *labels, const double *own, const double *nearest)
{
    std::vector<double> farthest(n_chosen, 0.0);
    for (std::int64_t row = 0; row < rows_.n; ++row) {
        if (row % steps_per_poll == 0)
            runner_.poll();
        farthest[labels[row]] = std::max({farthest[labels[row]], own[row], nearest[row]});
    }
    // The first groups are made before anything is known but distances, and rows are faster to read as they come.
    const std::int32_t depth = n_chosen == 1 ? 1 : levels;
    const auto level_of = [&](std::int64_t row) {
        const double share = depth == 1 || own[row] == 0.0 ? 0.0 : std::sqrt(own[row] / farthest[labels[row]]);
        return std::int64_t{labels[row]} * depth + std::min(depth - 1, static_cast<std::int32_t>(share * depth));
    };
    std::vector<std::int64_t> next(std::int64_t{n_chosen} * depth, 0);
    for (std::int64_t row = 0; row < rows_.n; ++row) {
        if (row % steps_per_poll == 0)
            runner_.poll();
        ++next[level_of(row)];
    }
    count_ = 0;
    std::vector<std::int64_t> rows_of(n_chosen, 0);
    for (std::int32_t g = 0; g < n_chosen; ++g) {
        std::int64_t place = count_ * seed_tile_rows;
        for (std::int64_t level = std::int64_t{g} * depth; level < std::int64_t{g + 1} * depth; ++level) {
            rows_of[g] += next[level];
            next[level] = std::exchange(place, place + next[level]);
        }
        count_ += (rows_of[g] + seed_tile_rows - 1) / seed_tile_rows;
    }
    places_ = Buffer<RowNumber>();
    places_ = Buffer<RowNumber>(runner_.budget(), count_ * seed_tile_rows);
    for (std::int64_t row = 0; row < rows_.n; ++row) {
        if (row % steps_per_poll == 0)
            runner_.poll();
        places_[next[level_of(row)]++] = static_cast<RowNumber>(row);
    }
    tiles_ = Buffer<SeedTile>(runner_.budget(), count_);
    std::int64_t tile = 0;
    for (std::int32_t g = 0; g < n_chosen; ++g) {
        for (std::int64_t left = rows_of[g]; left > 0; left -= seed_tile_rows)
            tiles_[tile++] = {g, static_cast<std::int32_t>(std::min<std::int64_t>(left, seed_tile_rows)), 0, 0, 0, 0};
        double inverse = 1.0 / std::max((bounds_.above(farthest[g]) + error_) / reach, smallest_unit);
        const bool narrow = sizeof(T) == 4 && inverse > 0x1p-100 && inverse < 0x1p100;
        if (narrow)
            inverse = static_cast<double>(static_cast<float>(inverse * (1.0 - 2.0 * unit)));
        groups_[g].inverse = inverse;
        groups_[g].narrow = narrow;
    }
}

template <typename T>
void SeedTiles<T>::group(const T *const *chosen, std::int32_t n_chosen, const std::int32_t *labels, const double *own,
                         const double *nearest)
{
    groups_.assign(n_chosen, {});
    for (std::int32_t g = 0; g < n_chosen; ++g)
        groups_[g].parent = chosen[g];
    values_ = Buffer<std::int32_t>(); // what stood there, before there is more
    deal(n_chosen, labels, own, nearest);
    const std::int64_t places = count_ * seed_tile_rows;
    nearest_ = Buffer<double>();
    squares_ = Buffer<float>();
    lost_ = Buffer<float>();
    limits_ = Buffer<float>();
    nearest_ = Buffer<double>(runner_.budget(), places);
    squares_ = Buffer<float>(runner_.budget(), places);
    lost_ = Buffer<float>(runner_.budget(), places);
    limits_ = Buffer<float>(runner_.budget(), places);
    if (filters_ && runner_.budget().allows(bytes_with_copies()))
        values_ = Buffer<std::int32_t>(runner_.budget(), places * tile_pairs(rows_.d));
    const std::int64_t per_task = std::max<std::int64_t>(1, (1 << 18) / (std::int64_t{rows_.d} * seed_tile_rows));
    runner_.run((count_ + per_task - 1) / per_task, [&](std::int64_t task) {
        for (std::int64_t tile = task * per_task; tile < std::min(count_, (task + 1) * per_task); ++tile)
            fill(tile, own, nearest);
    });
}

// What the copies take, and what is allocated after them: a block for each worker here; the rows that trials win, their
// gains by task and each worker's view in SeedTrials.
template <typename T>
std::uint64_t SeedTiles<T>::bytes_with_copies() const
{
    constexpr std::uint64_t padding = 4096; // of all buffers of a worker, or of all others
    const std::uint64_t places = static_cast<std::uint64_t>(count_) * seed_tile_rows, d = rows_.d;
    const std::uint64_t of_place = tile_pairs(d) * sizeof(std::int32_t) + sizeof(std::uint32_t);
    const std::uint64_t of_task = 2 * sizeof(double) + max_seed_candidates * (sizeof(GainBounds) + sizeof(double));
    const std::uint64_t of_worker = d * sizeof(float) * (seed_tile_rows + max_seed_candidates + 2) + padding;
    return places * of_place + (count_ / seed_task_tiles + 1) * of_task + runner_.workers() * of_worker + padding;
}

// The copies of a tile's rows.
template <typename T>
void SeedTiles<T>::pack(std::int64_t tile, float *block, std::int32_t *values, float *squares, float *lost) const
{
    const SeedTile &one = tiles_[tile];
    const SeedGroup<T> &group = groups_[one.group];
    const T *rows[seed_tile_rows];
    for (int i = 0; i < one.count; ++i)
        rows[i] = rows_.row(row(tile, i));
    kernels_.centre(rows, one.count, rows_.d, group.parent, group.inverse, group.narrow, block);
    kernels_.round(block, rows_.d, values, squares, lost);
}

template <typename T>
void SeedTiles<T>::fill(std::int64_t tile, const double *own, const double *nearest)
{
    SeedTile &one = tiles_[tile];
    const std::int64_t first = tile * seed_tile_rows;
    std::fill_n(limits_.data() + first, seed_tile_rows, std::numeric_limits<float>::infinity());
    if (filters_) {
        Buffer<float> block(runner_.budget(), std::int64_t{rows_.d} * seed_tile_rows);
        const std::int64_t pairs = tile_pairs(rows_.d);
        Buffer<std::int32_t> unkept(runner_.budget(), values_.size() == 0 ? pairs * seed_tile_rows : 0);
        pack(tile, block.data(), values_.size() == 0 ? unkept.data() : values_.data() + first * pairs,
             squares_.data() + first, lost_.data() + first);
        // Centring by float32 is off by four roundings of |y| at most, sums of d terms by d roundings.
        for (std::int64_t i = first; i < first + seed_tile_rows; ++i)
            lost_[i] = std::sqrt(lost_[i]) * 1.01f + 0.02f;
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
    float &to = limits_[tile * seed_tile_rows + i];
    nearest_[tile * seed_tile_rows + i] = square;
    if (square == 0.0) {
        to = std::numeric_limits<float>::infinity(); // nothing is nearer
        return;
    }
    if (!filters_) {
        to = -std::numeric_limits<float>::infinity();
        return;
    }
    const std::int64_t place = tile * seed_tile_rows + i;
    const double own = static_cast<double>(squares_[place]);
    const double far =
        (bounds_.above(square) + error_) * groups_[tiles_[tile].group].inverse + static_cast<double>(lost_[place]);
    const double limit = (own - far * far - square_share_ * own) / 2.0;
    to = static_cast<float>(limit - std::fabs(limit) * rounded_share - slack);
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
GainBounds SeedTiles<T>::estimate(std::int64_t tile, std::uint64_t bits, const ScreenedCandidate &candidate) const
{
    const ScreenedTile screened = about(tile);
    float gains[2 * seed_tile_rows];
    GainBounds bounds = kernels_.estimate(screened, candidate, rows_.weights == nullptr ? nullptr : gains);
    if (rows_.weights != nullptr) {
        bounds = {0.0, 0.0};
        for (; bits != 0; bits &= bits - 1) {
            const int i = __builtin_ctzll(bits);
            const double weight = rows_.weight(row(tile, i));
            bounds.least += weight * static_cast<double>(gains[i]);
            bounds.most += weight * static_cast<double>(gains[seed_tile_rows + i]);
        }
    }
    const double length = 1.0 / groups_[tiles_[tile].group].inverse;
    // Sums of few terms in float32.
    return {bounds.least * (1.0 - 0x1p-18) * length * length, bounds.most * (1.0 + 0x1p-18) * length * length};
}

template <typename T>
SeedTiles<T>::View::View(const SeedTiles &tiles, int most)
    : tiles_(tiles), turned_(tiles.runner_.budget(), most * tile_pairs(tiles.rows_.d)),
      centred_(tiles.runner_.budget(), tiles.rows_.d), below_(most), above_(most), squares_(most), screened_(most),
      is_turned_(most)
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
    std::vector<const T *> parents(count_, tiles_.groups_[group].parent);
    pair_kernels(tiles_.runner_.instruction_set())
        .distances(candidates_, parents.data(), count_, tiles_.rows_.d, squares_.data());
    for (int c = 0; c < count_; ++c) {
        below_[c] = tiles_.bounds_.below(squares_[c]);
        above_[c] = tiles_.bounds_.above(squares_[c]);
    }
    std::fill(is_turned_.begin(), is_turned_.end(), 0);
}

// The candidate about the group's parent, in whole multiples of a scale, and its start.
template <typename T>
void SeedTiles<T>::View::turn(int candidate)
{
    if (is_turned_[candidate] != 0)
        return;
    is_turned_[candidate] = 1;
    const SeedGroup<T> &group = tiles_.groups_[group_];
    const std::int64_t d = tiles_.rows_.d;
    const T *from = candidates_[candidate];
    double whole = 0.0, largest = 0.0;
    for (std::int64_t f = 0; f < d; ++f) {
        const double value = (static_cast<double>(from[f]) - static_cast<double>(group.parent[f])) * group.inverse;
        centred_[f] = value;
        whole += value * value;
        largest = std::max(largest, std::fabs(value));
    }
    const double least = std::max({std::sqrt(whole) / candidate_length, largest / candidate_value, 0x1p-20});
    const auto scale = static_cast<double>(static_cast<float>(least * (1.0 + 0x1p-20)));
    std::int32_t *to = turned_.data() + candidate * tile_pairs(d);
    std::fill_n(to, tile_pairs(d), 0);
    double square = 0.0, less = 0.0;
    constexpr double rounder = 0x1.8p52; // added and taken away, it leaves a whole number
    const double inverse = 1.0 / scale;
    for (std::int64_t f = 0; f < d; ++f) {
        const double rounded = centred_[f] * inverse + rounder - rounder, kept = rounded * scale;
        const auto bits = static_cast<std::uint16_t>(static_cast<std::int32_t>(rounded));
        to[f / 2] |= static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) << (f % 2 * 16));
        square += kept * kept;
        less += (centred_[f] - kept) * (centred_[f] - kept);
    }
    const double g = std::sqrt(less) * 1.01 + 0x1p-20;
    const double start = (square - product_share * square) / 2.0 - g * g / 2.0;
    screened_[candidate] = {to,
                            static_cast<float>(scale),
                            nullptr,
                            static_cast<float>(start - std::fabs(start) * rounded_share - slack),
                            static_cast<float>(square),
                            static_cast<float>(g * (1.0 + rounded_share)),
                            tiles_.gain_share_};
}

template <typename T>
const std::int32_t *SeedTiles<T>::View::values_of(std::int64_t tile)
{
    if (tiles_.values_.size() != 0)
        return tiles_.values_.data() + tile * seed_tile_rows * tile_pairs(tiles_.rows_.d);
    if (packed_.size() == 0) {
        packed_ = Buffer<std::int32_t>(tiles_.runner_.budget(), tile_pairs(tiles_.rows_.d) * seed_tile_rows);
        block_ = Buffer<float>(tiles_.runner_.budget(), std::int64_t{tiles_.rows_.d} * seed_tile_rows);
    }
    float squares[seed_tile_rows], lost[seed_tile_rows];
    tiles_.pack(tile, block_.data(), packed_.data(), squares, lost);
    return packed_.data();
}

template class SeedTiles<float>;
template class SeedTiles<double>;

} // namespace pgkm::cpu

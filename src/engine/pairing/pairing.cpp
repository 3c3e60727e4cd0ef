// pairing.cpp - the assignment problem: shortest augmenting paths, and the first of several optima.
#include "engine/pairing/pairing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/job/poll.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr std::int32_t none = -1;
// Costs stay below 2^100, so sums of 2^26 of them fit.
constexpr int cost_bits = 100;
constexpr Int128 unreached = static_cast<Int128>((UInt128{1} << 127) - 1);

// value * 2^shift, towards 0.
Int128 fixed_point(double value, int shift)
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const std::uint64_t digits = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{exponent > 0} << 52;
    const int power = std::max(exponent, 1) - 1075 + shift;
    const Int128 magnitude = power >= 0    ? static_cast<Int128>(digits) << power
                             : power > -64 ? static_cast<Int128>(digits >> -power)
                                           : 0;
    return std::signbit(value) ? -magnitude : magnitude;
}

// An optimum with its prices: no cost is less than the prices of its row and column together, and those of a pair are
// equal. Where there are more rows than columns, both are made up to the same number, by columns that cost nothing and
// whose price is 0; and the other way round. So each row has a partner, and all optima have the same equal costs.
class Pairing {
  public:
    Pairing(const double *costs, std::int32_t rows, std::int32_t columns, PgkmInterrupted interrupted);

    void solve();
    void prefer_first();
    std::vector<std::int32_t> partners() const;

  private:
    Int128 cost(std::int32_t row, std::int32_t column) const
    {
        return row < rows_ && column < columns_ ? fixed_point(costs_[std::int64_t{row} * columns_ + column], shift_)
                                                : 0;
    }
    bool is_tight(std::int32_t row, std::int32_t column) const
    {
        return cost(row, column) == row_prices_[at(row)] + column_prices_[at(column)];
    }
    template <typename CostOf>
    void add(std::int32_t member, const CostOf &cost_of);
    template <typename CostOf>
    void pair_all(const CostOf &cost_of);
    bool can_yield(std::int32_t row, std::int32_t column);

    const double *const costs_;
    const std::int32_t rows_, columns_, size_;
    const Poll poll_;
    int shift_ = 0;
    std::vector<Int128> row_prices_, column_prices_;             // size
    std::vector<std::int32_t> partner_of_row_, owner_of_column_; // size

    // While pairs are made: of the shorter side, whose members are added, and of the longer one.
    std::vector<Int128> prices_, other_prices_, least_;
    std::vector<std::int32_t> owners_, from_;
    std::vector<char> reached_;
};

Pairing::Pairing(const double *costs, std::int32_t rows, std::int32_t columns, PgkmInterrupted interrupted)
    : costs_(costs), rows_(rows), columns_(columns), size_(std::max(rows, columns)), poll_(poll_for(interrupted)),
      row_prices_(at(size_)), column_prices_(at(size_)), partner_of_row_(at(size_), none),
      owner_of_column_(at(size_), none)
{
    double greatest = 0;
    for (std::int64_t i = 0; i < std::int64_t{rows} * columns; ++i)
        greatest = std::max(greatest, std::abs(costs[i]));
    int exponent;
    std::frexp(greatest, &exponent);
    shift_ = cost_bits - exponent;
}

// Finds the cheapest path from a member without a partner to one of the other side that has none, by Dijkstra's
// algorithm over costs less prices; ties go to one without a partner, then to the lowest.
template <typename CostOf>
void Pairing::add(std::int32_t member, const CostOf &cost_of)
{
    const auto others = static_cast<std::int32_t>(owners_.size());
    std::fill(least_.begin(), least_.end(), unreached);
    std::fill(reached_.begin(), reached_.end(), char{0});

    Int128 length = 0;
    std::int32_t last = none; // of the other side, on the way
    std::int32_t at_member = member;
    for (;;) {
        poll_();
        const Int128 base = length - prices_[at(at_member)];
        std::int32_t next = none;
        for (std::int32_t j = 0; j < others; ++j) {
            if (reached_[at(j)] != 0)
                continue;
            const Int128 by_here = base + cost_of(at_member, j) - other_prices_[at(j)];
            if (by_here < least_[at(j)]) {
                least_[at(j)] = by_here;
                from_[at(j)] = last;
            }
            if (next == none || least_[at(j)] < least_[at(next)] ||
                (least_[at(j)] == least_[at(next)] && owners_[at(j)] == none && owners_[at(next)] != none))
                next = j;
        }
        length = least_[at(next)];
        last = next;
        if (owners_[at(last)] == none)
            break;
        reached_[at(last)] = 1;
        at_member = owners_[at(last)];
    }

    prices_[at(member)] += length;
    for (std::int32_t j = 0; j < others; ++j)
        if (reached_[at(j)] != 0) {
            prices_[at(owners_[at(j)])] += length - least_[at(j)];
            other_prices_[at(j)] -= length - least_[at(j)];
        }
    for (; from_[at(last)] != none; last = from_[at(last)])
        owners_[at(last)] = owners_[at(from_[at(last)])];
    owners_[at(last)] = member;
}

template <typename CostOf>
void Pairing::pair_all(const CostOf &cost_of)
{
    const std::int32_t members = std::min(rows_, columns_);
    prices_.assign(at(members), 0);
    other_prices_.assign(at(size_), 0);
    least_.resize(at(size_));
    owners_.assign(at(size_), none);
    from_.resize(at(size_));
    reached_.resize(at(size_));
    for (std::int32_t member = 0; member < members; ++member)
        add(member, cost_of);

    // Those that are made up go to whom nobody has taken.
    for (std::int32_t j = 0, made_up = members; j < size_; ++j)
        if (owners_[at(j)] == none)
            owners_[at(j)] = made_up++;
    prices_.resize(at(size_), 0);
}

void Pairing::solve()
{
    if (rows_ <= columns_) {
        pair_all([this](std::int32_t row, std::int32_t column) { return cost(row, column); });
        row_prices_ = prices_;
        column_prices_ = other_prices_;
        owner_of_column_ = owners_;
        for (std::int32_t j = 0; j < size_; ++j)
            partner_of_row_[at(owner_of_column_[at(j)])] = j;
        return;
    }
    std::vector<double> turned(at(std::int64_t{rows_} * columns_));
    for (std::int32_t i = 0; i < rows_; ++i)
        for (std::int32_t j = 0; j < columns_; ++j)
            turned[at(std::int64_t{j} * rows_ + i)] = costs_[std::int64_t{i} * columns_ + j];
    pair_all([&](std::int32_t column, std::int32_t row) {
        return fixed_point(turned[at(std::int64_t{column} * rows_ + row)], shift_);
    });
    column_prices_ = prices_;
    row_prices_ = other_prices_;
    partner_of_row_ = owners_;
    for (std::int32_t i = 0; i < size_; ++i)
        owner_of_column_[at(partner_of_row_[at(i)])] = i;
}

// Whether `row` can have `column` and each row behind it another partner, at the same total. If so, they get them.
// What has been reached for a row in vain is of no use to it later.
bool Pairing::can_yield(std::int32_t row, std::int32_t column)
{
    const std::int32_t target = partner_of_row_[at(row)];
    std::vector<std::int32_t> waiting = {column};
    reached_[at(column)] = 1;
    for (std::size_t i = 0; i < waiting.size() && reached_[at(target)] == 0; ++i) {
        poll_();
        const std::int32_t owner = owner_of_column_[at(waiting[i])];
        for (std::int32_t j = 0; j < size_; ++j)
            if (reached_[at(j)] == 0 && owner_of_column_[at(j)] >= row && is_tight(owner, j)) {
                reached_[at(j)] = 1;
                from_[at(j)] = waiting[i];
                waiting.push_back(j);
            }
    }
    if (reached_[at(target)] == 0)
        return false;
    for (std::int32_t j = target; j != column; j = from_[at(j)])
        owner_of_column_[at(j)] = owner_of_column_[at(from_[at(j)])];
    owner_of_column_[at(column)] = row;
    for (std::int32_t j = 0; j < size_; ++j)
        partner_of_row_[at(owner_of_column_[at(j)])] = j;
    return true;
}

void Pairing::prefer_first()
{
    for (std::int32_t i = 0; i < rows_; ++i) {
        poll_();
        std::fill(reached_.begin(), reached_.end(), char{0});
        const std::int32_t end = std::min(partner_of_row_[at(i)], columns_);
        for (std::int32_t j = 0; j < end; ++j)
            if (owner_of_column_[at(j)] > i && reached_[at(j)] == 0 && is_tight(i, j) && can_yield(i, j))
                break;
    }
}

std::vector<std::int32_t> Pairing::partners() const
{
    std::vector<std::int32_t> partners(partner_of_row_.begin(), partner_of_row_.begin() + rows_);
    for (std::int32_t &partner : partners)
        if (partner >= columns_)
            partner = none;
    return partners;
}

} // namespace

std::vector<std::int32_t> cheapest_pairing(const double *costs, std::int32_t rows, std::int32_t columns,
                                           PgkmInterrupted interrupted)
{
    Pairing pairing(costs, rows, columns, interrupted);
    pairing.solve();
    return pairing.partners();
}

std::vector<std::int32_t> first_cheapest_pairing(const double *costs, std::int32_t rows, std::int32_t columns,
                                                 PgkmInterrupted interrupted)
{
    Pairing pairing(costs, rows, columns, interrupted);
    pairing.solve();
    pairing.prefer_first();
    return pairing.partners();
}

} // namespace pgkm

PgkmStatus pgkm_pair(const double *costs, int32_t rows, int32_t columns, int32_t *partners, PgkmInterrupted interrupted,
                     PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        const std::vector<int32_t> found = pgkm::first_cheapest_pairing(costs, rows, columns, interrupted);
        std::copy(found.begin(), found.end(), partners);
    });
}

// host_order.cu - sorts rows by key and content on the host: where the device has no room to sort them, and where it
// found rows of equal keys that are not known to be equal.
//
// Keys are sorted by a radix sort, six digits of 11 bits, the lowest first. All loops poll for a cancel.
#include "seed/host_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "numeric/row_key.hpp"

namespace pgkm::cuda {
namespace {

// Counts work and looks for a cancel now and then.
class Steps {
  public:
    explicit Steps(const Context &context) : context_(context) {}
    void take(std::int64_t count)
    {
        done_ += count;
        if (done_ < steps_per_poll)
            return;
        done_ = 0;
        context_.poll();
    }

  private:
    static constexpr std::int64_t steps_per_poll = 1 << 22;
    const Context &context_;
    std::int64_t done_ = 0;
};

constexpr std::int64_t steps_per_row = 64; // what it takes to come to any row, in steps of one value

void sort_keys(Steps &steps, HostOrder &order)
{
    constexpr int digit_bits = 11;
    constexpr std::size_t digits = std::size_t{1} << digit_bits;
    const std::size_t n = order.keys.size();
    HostOrder sorted = {std::vector<std::uint64_t>(n), std::vector<std::uint32_t>(n)};
    for (int shift = 0; shift < 64; shift += digit_bits) {
        const auto digit = [&](std::size_t i) { return order.keys[i] >> shift & (digits - 1); };
        std::vector<std::size_t> places(digits + 1, 0);
        for (std::size_t i = 0; i < n; ++i) {
            ++places[digit(i) + 1];
            steps.take(1);
        }
        std::partial_sum(places.begin(), places.end(), places.begin());
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t to = places[digit(i)]++;
            sorted.keys[to] = order.keys[i];
            sorted.rows[to] = order.rows[i];
            steps.take(4);
        }
        std::swap(order, sorted);
    }
}

} // namespace

template <typename T>
void order_equal_keys(const Context &context, const T *values, std::int32_t d, HostOrder &order)
{
    Steps steps(context);
    const auto compare = [&](std::uint32_t a, std::uint32_t b) {
        steps.take(steps_per_row + d);
        return compare_content(values + std::int64_t{a} * d, values + std::int64_t{b} * d, d);
    };
    const auto begin = order.rows.begin();
    for (std::size_t first = 0, end = 0; first < order.rows.size(); first = end) {
        bool same = true;
        for (end = first + 1; end < order.rows.size() && order.keys[end] == order.keys[first]; ++end)
            same = same && compare(order.rows[first], order.rows[end]) == 0;
        steps.take(static_cast<std::int64_t>(end - first));
        if (!same)
            std::sort(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end),
                      [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) < 0; });
    }
}

template <typename T>
HostOrder order_on_host(const Context &context, const T *values, std::int64_t n, std::int32_t d)
{
    Steps steps(context);
    HostOrder order = {std::vector<std::uint64_t>(static_cast<std::size_t>(n)),
                       std::vector<std::uint32_t>(static_cast<std::size_t>(n))};
    for (std::int64_t row = 0; row < n; ++row) {
        order.keys[static_cast<std::size_t>(row)] = row_key(values + row * d, d);
        order.rows[static_cast<std::size_t>(row)] = static_cast<std::uint32_t>(row);
        steps.take(d);
    }
    sort_keys(steps, order);
    order_equal_keys(context, values, d, order);
    return order;
}

template void order_equal_keys<float>(const Context &, const float *, std::int32_t, HostOrder &);
template void order_equal_keys<double>(const Context &, const double *, std::int32_t, HostOrder &);
template HostOrder order_on_host<float>(const Context &, const float *, std::int64_t, std::int32_t);
template HostOrder order_on_host<double>(const Context &, const double *, std::int64_t, std::int32_t);

} // namespace pgkm::cuda

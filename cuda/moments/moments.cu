// moments.cu - sums and products of deviations of many problems: which segments there are, where their sums lie,
// chunks.
//
// Shape: problems of unweighted rows, many small ones in one launch, or one that comes in chunks (those of weighted
// rows go to mixture/). Results are the sums of deviations from the caller's shift (d) and the lower triangle of their
// products (d (d + 1) / 2), float64. Reference: test/reference/moments.hpp; the kernels are in products.cu.
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "backend/weighted_moments.hpp"
#include "plugin/operations.hpp"
#include "plugin/upload.hpp"
#include "moments/plan.hpp"
#include "moments/products.hpp"

namespace pgkm::cuda {
namespace {

using namespace moments;

// float64 values of one slot.
std::int64_t slot_values(std::int64_t d)
{
    return 4 * d + triangle(d);
}

// Segments of a problem, and their slots.
struct Cut {
    std::int64_t segments, slots;
};

Cut cut(const Data &data, std::int64_t rows)
{
    const std::int64_t count = segments(rows, data.host.d, data.context.facts.multiprocessors);
    return {count, count * row_shares(columns(data.host.d))};
}

// Moments of problems that are on their way together: of all in a batch of resident rows, of one
// where rows come in chunks.
template <typename T>
class Summation {
  public:
    Summation(Data &data, const PgkmProblem *problems, std::size_t count, PgkmMoments *out)
        : data_(data), problems_(problems), count_(count), out_(out), d_(data.host.d)
    {
        for (std::size_t p = 0; p < count; ++p) {
            const Cut parts = cut(data, problems[p].n_rows);
            for (std::int64_t s = 0; s < parts.segments; ++s)
                segments_.push_back({problems[p].first_row, problems[p].n_rows, s, parts.segments,
                                     static_cast<std::int64_t>(p) * d_, slots_ + s * (parts.slots / parts.segments)});
            totals_.push_back({slots_, parts.slots, nullptr, nullptr});
            slots_ += parts.slots;
        }
    }

    void run()
    {
        allocate();
        if (data_.resident)
            add(reinterpret_cast<const T *>(data_.values.get()), {});
        else
            add_chunks();
        add_slots(data_.context, d_, totals_memory_.get(), static_cast<std::int64_t>(count_), sums_);
        data_.context.wait(stream(), stop_.get());
        download();
    }

  private:
    cudaStream_t stream() const { return data_.context.compute.get(); }
    std::size_t values() const { return static_cast<std::size_t>(d_ + triangle(d_)); }

    // Partial results go where there is room for them.
    void allocate()
    {
        Context &context = data_.context;
        const auto near = [&](auto &array, std::int64_t count) {
            array = std::remove_reference_t<decltype(array)>(context.budget, context.host_budget,
                                                             static_cast<std::size_t>(count));
        };
        near(shift_, static_cast<std::int64_t>(count_) * d_);
        near(segments_memory_, static_cast<std::int64_t>(segments_.size()));
        near(totals_memory_, static_cast<std::int64_t>(count_));
        near(results_, static_cast<std::int64_t>(count_ * values()));
        const auto bytes = static_cast<std::uint64_t>(slots_ * slot_values(d_)) * sizeof(double);
        double *slots;
        if (context.scratch_holds(bytes)) {
            slots = reinterpret_cast<double *>(context.scratch(bytes));
        } else {
            near(slots_memory_, slots_ * slot_values(d_));
            slots = slots_memory_.get();
        }
        stop_ = zeros<std::int32_t>(context.budget, 1, stream());
        stop_flag_.emplace(context, stop_.get());
        std::vector<double> shift;
        for (std::size_t p = 0; p < count_; ++p) {
            shift.insert(shift.end(), out_[p].shift, out_[p].shift + d_);
            totals_[p].sums = results_.get() + p * values();
            totals_[p].cross = totals_[p].sums + d_;
        }
        shift_.upload(shift.data(), shift.size(), stream());
        segments_memory_.upload(segments_.data(), segments_.size(), stream());
        totals_memory_.upload(totals_.data(), totals_.size(), stream());
        sums_ = {shift_.get(), slots, slots + slots_ * 4 * d_, stop_.get()};
    }

    void add(const T *values, const Chunk &chunk)
    {
        add_products(data_.context, values, d_, segments_memory_.get(), static_cast<std::int64_t>(segments_.size()),
                     chunk, sums_);
    }

    // Each segment adds up the same rows in the same order as without chunks. No more than one chunk
    // is on its way while another is summed, so that a cancel finds little left to wait for.
    void add_chunks()
    {
        Event done[2] = {make_event(), make_event()};
        int slot = 0;
        data_.each_chunk<T>(problems_[0].first_row, problems_[0].n_rows,
                            [&](const T *values, const double *, std::int64_t first, std::int64_t rows) {
                                add(values, {first, rows});
                                record(done[slot].get(), stream());
                                slot ^= 1;
                                data_.context.wait(done[slot].get()); // an event never recorded is done
                            });
    }

    // Those of small problems come many in one copy.
    void download()
    {
        constexpr std::size_t most = std::size_t{4} << 20; // values of a copy
        Context &context = data_.context;
        const auto d = static_cast<std::size_t>(d_);
        const std::size_t together = std::min(most / values(), count_);
        if (together < 2) {
            for (std::size_t p = 0; p < count_; ++p) {
                const double *const from = results_.get() + p * values();
                cuda::download(context, out_[p].sums, from, d * sizeof(double));
                cuda::download(context, out_[p].cross, from + d, (values() - d) * sizeof(double));
            }
            return;
        }
        const Claim claim(context.host_budget, together * values() * sizeof(double));
        const auto copied = std::make_unique_for_overwrite<double[]>(together * values());
        for (std::size_t first = 0; first < count_; first += together) {
            const std::size_t last = std::min(first + together, count_);
            cuda::download(context, copied.get(), results_.get() + first * values(),
                           (last - first) * values() * sizeof(double));
            for (std::size_t p = first; p < last; ++p) {
                const double *const from = copied.get() + (p - first) * values();
                std::copy_n(from, d, out_[p].sums);
                std::copy_n(from + d, values() - d, out_[p].cross);
            }
        }
    }

    Data &data_;
    const PgkmProblem *problems_;
    std::size_t count_;
    PgkmMoments *out_;
    int d_;
    std::vector<Segment> segments_;
    std::vector<Total> totals_;
    std::int64_t slots_ = 0;
    NearArray<double> shift_, results_, slots_memory_;
    NearArray<Segment> segments_memory_;
    NearArray<Total> totals_memory_;
    DeviceArray<std::int32_t> stop_;
    std::optional<StopFlag> stop_flag_; // for chunks
    Sums sums_{};
};

// How many problems from `first` on are summed together: a grid has room for 65,535 of them, and their
// partial results take 256 MB at most, or what one needs.
std::int64_t batch(const Data &data, const PgkmProblem *problems, std::int64_t first, std::int64_t n_problems)
{
    constexpr std::int64_t most_values = (std::int64_t{256} << 20) / 8;
    std::int64_t count = 0, values = 0;
    for (; data.resident && first + count < n_problems && count < 32768; ++count) {
        values += (cut(data, problems[first + count].n_rows).slots + 1) * slot_values(data.host.d);
        if (values > most_values)
            break;
    }
    return std::max<std::int64_t>(count, 1);
}

} // namespace

template <typename T>
void sum_moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments)
{
    if (data.host.weights != nullptr)
        return weighted_moments(
            problems, n_problems, moments, [](std::size_t n) { return std::vector<std::int32_t>(n); },
            [&](const PgkmMixture *mixtures, PgkmMixtureSums *sums) {
                em_step_problems<T>(data, problems, n_problems, mixtures, sums);
            });
    for (std::int64_t first = 0; first < n_problems;) {
        data.context.poll();
        data.context.report("summing", static_cast<int>(first), 0, 0.0);
        const std::int64_t count = batch(data, problems, first, n_problems);
        for (std::int64_t p = first; p < first + count; ++p)
            moments[p].mass = static_cast<double>(problems[p].n_rows);
        Summation<T>(data, problems + first, static_cast<std::size_t>(count), moments + first).run();
        first += count;
    }
}

template void sum_moments<float>(Data &, const PgkmProblem *, std::int64_t, PgkmMoments *);
template void sum_moments<double>(Data &, const PgkmProblem *, std::int64_t, PgkmMoments *);

} // namespace pgkm::cuda

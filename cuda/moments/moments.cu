// moments.cu - the moments of many problems: which segments there are, where their sums lie, chunks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugin/upload.hpp"
#include "moments/moments.hpp"
#include "moments/plan.hpp"
#include "moments/products.hpp"

namespace pgkm::cuda {
namespace {

using namespace moments;

// float64 values of one slot.
std::int64_t slot_values(std::int64_t d) { return 4 * d + triangle(d); }

// What sums the products: float64, or pairs of fp16 values.
enum class Arithmetic { wide, halves };

// Of float32 rows up to 128 features wide the products would take longer than the reading by float64.
template <typename T>
Arithmetic arithmetic_for(int d)
{
    return sizeof(T) == 4 && columns(d) == 4 && d <= tile ? Arithmetic::halves : Arithmetic::wide;
}

// Segments of a problem, and slots of a segment.
struct Cut {
    std::int64_t segments;
    int          slots;
};

Cut cut(const Data &data, Arithmetic arithmetic, std::int64_t rows)
{
    const int d = data.host.d, multiprocessors = data.context.facts.multiprocessors;
    if (arithmetic == Arithmetic::halves)
        return {segments(rows, d, half_stage_rows, multiprocessors), 1};
    return {segments(rows, d, stage_rows(columns(d)), multiprocessors), row_groups(columns(d))};
}

// Moments of problems that are on their way together: of all in a batch of resident rows, of one
// where rows come in chunks.
template <typename T>
class Summation {
  public:
    Summation(Data &data, const PgkmProblem *problems, std::size_t count, PgkmMoments *out, Arithmetic arithmetic)
        : data_(data), problems_(problems), count_(count), out_(out), arithmetic_(arithmetic), d_(data.host.d)
    {
        for (std::size_t p = 0; p < count; ++p) {
            const Cut parts = cut(data, arithmetic, problems[p].n_rows);
            for (std::int64_t s = 0; s < parts.segments; ++s)
                segments_.push_back({problems[p].first_row, problems[p].n_rows, s, parts.segments,
                                     static_cast<std::int64_t>(p), static_cast<std::int64_t>(p) * d_, slots_ + s * parts.slots});
            totals_.push_back({slots_, parts.segments * parts.slots, nullptr, nullptr});
            slots_ += totals_.back().count;
        }
    }

    // The problems, by number, with a row that was too far out for this arithmetic.
    std::vector<std::size_t> run()
    {
        allocate();
        if (arithmetic_ == Arithmetic::halves)
            find_scales();
        if (data_.resident)
            add(reinterpret_cast<const T *>(data_.values.get()), {});
        else
            add_chunks();
        add_slots(data_.context, d_, totals_memory_.get(), static_cast<std::int64_t>(count_), sums_);
        data_.context.wait(stream(), stop_.get());
        download();
        return arithmetic_ == Arithmetic::halves ? finish_halves() : std::vector<std::size_t>();
    }

  private:
    cudaStream_t stream() const { return data_.context.compute.get(); }
    std::size_t values() const { return static_cast<std::size_t>(d_ + triangle(d_)); }

    // Partial results go where there is room for them.
    void allocate()
    {
        Context &context = data_.context;
        const auto near = [&](auto &array, std::int64_t count) {
            array = std::remove_reference_t<decltype(array)>(context.budget, context.host_budget, static_cast<std::size_t>(count));
        };
        near(shift_, static_cast<std::int64_t>(count_) * d_);
        near(segments_memory_, static_cast<std::int64_t>(segments_.size()));
        near(totals_memory_, static_cast<std::int64_t>(count_));
        near(results_, static_cast<std::int64_t>(count_ * values()));
        const auto bytes = static_cast<std::uint64_t>(slots_ * slot_values(d_)) * sizeof(double);
        double *slots;
        if (bytes <= context.scratch_room()) {
            slots = reinterpret_cast<double *>(context.scratch(bytes));
        } else {
            near(slots_memory_, slots_ * slot_values(d_));
            slots = slots_memory_.get();
        }
        stop_ = DeviceArray<std::int32_t>(context.budget, 1);
        stop_.fill_zero(stream());
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

    // Deviations in float32 are from the shift as a float32.
    void find_scales()
    {
        Context &context = data_.context;
        const std::size_t size = count_ * static_cast<std::size_t>(d_);
        for (std::size_t p = 0; p < count_; ++p)
            shift32_.insert(shift32_.end(), out_[p].shift, out_[p].shift + d_);
        std::vector<float> largest(size);
        if (!data_.resident)
            for (std::int64_t i = 0; i < std::min(problems_[0].n_rows, most_sample_rows); ++i) {
                const float *const row = static_cast<const float *>(data_.host.values) +
                                         (problems_[0].first_row + sample_row(problems_[0].n_rows, i)) * d_;
                for (std::size_t f = 0; f < size; ++f)
                    largest[f] = std::max(largest[f], std::fabs(row[f] - shift32_[f]));
            }
        for (auto [array, values] : {std::pair{&shift32_memory_, &shift32_}, {&largest_, &largest}}) {
            *array = NearArray<float>(context.budget, context.host_budget, size);
            array->upload(values->data(), size, stream());
        }
        overflow_ = DeviceArray<std::int32_t>(context.budget, count_);
        overflow_.fill_zero(stream());
        scales_ = {shift32_memory_.get(), largest_.get(), overflow_.get()};
        if constexpr (sizeof(T) == 4)
            if (data_.resident)
                find_largest(context, reinterpret_cast<const T *>(data_.values.get()), d_, segments_memory_.get(),
                             static_cast<std::int64_t>(segments_.size()), scales_);
    }

    // Sums about `from` become sums about out.shift.
    void move_shift(std::int64_t rows, const float *from, PgkmMoments &out) const
    {
        const double n = static_cast<double>(rows);
        std::vector<double> way;
        for (int f = 0; f < d_; ++f)
            way.push_back(static_cast<double>(from[f]) - out.shift[f]);
        double *cross = out.cross;
        for (int a = 0; a < d_; ++a)
            for (int b = 0; b <= a; ++b)
                *cross++ += way[a] * out.sums[b] + way[b] * out.sums[a] + n * way[a] * way[b];
        for (int f = 0; f < d_; ++f)
            out.sums[f] += n * way[f];
    }

    void add(const T *values, const Chunk &chunk)
    {
        const auto n = static_cast<std::int64_t>(segments_.size());
        if constexpr (sizeof(T) == 4)
            if (arithmetic_ == Arithmetic::halves)
                return add_half_products(data_.context, values, d_, segments_memory_.get(), n, chunk, sums_, scales_);
        add_products(data_.context, values, d_, segments_memory_.get(), n, chunk, sums_);
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
                                checked("cudaEventRecord", [&] { return cudaEventRecord(done[slot].get(), stream()); });
                                slot ^= 1;
                                wait_for(done[slot]); // an event never recorded is done
                            });
    }

    void wait_for(const Event &event) const
    {
        for (;; std::this_thread::sleep_for(std::chrono::microseconds(50))) {
            const cudaError_t state = cudaEventQuery(event.get());
            if (state != cudaErrorNotReady)
                return check(state, "cudaEventQuery");
            data_.context.poll();
        }
    }

    std::vector<std::size_t> finish_halves()
    {
        std::vector<std::int32_t> overflow(count_);
        overflow_.download(overflow.data(), count_, stream());
        data_.context.wait(stream());
        std::vector<std::size_t> too_far;
        for (std::size_t p = 0; p < count_; ++p)
            if (overflow[p] != 0)
                too_far.push_back(p);
            else
                move_shift(problems_[p].n_rows, shift32_.data() + p * static_cast<std::size_t>(d_), out_[p]);
        return too_far;
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

    Data                     &data_;
    const PgkmProblem        *problems_;
    std::size_t               count_;
    PgkmMoments              *out_;
    Arithmetic                arithmetic_;
    int                       d_;
    std::vector<Segment>      segments_;
    std::vector<Total>        totals_;
    std::int64_t              slots_ = 0;
    NearArray<double>         shift_, results_, slots_memory_;
    NearArray<Segment>        segments_memory_;
    NearArray<Total>          totals_memory_;
    DeviceArray<std::int32_t> stop_;
    std::optional<StopFlag>   stop_flag_; // for chunks
    Sums                      sums_{};
    std::vector<float>        shift32_;
    NearArray<float>          shift32_memory_, largest_;
    DeviceArray<std::int32_t> overflow_;
    HalfScales                scales_{};
};

// How many problems from `first` on are summed together: a grid has room for 65,535 of them, and their
// partial results take 256 MB at most, or what one needs.
std::int64_t batch(const Data &data, const PgkmProblem *problems, std::int64_t first, std::int64_t n_problems,
                   Arithmetic arithmetic)
{
    constexpr std::int64_t most_values = (std::int64_t{256} << 20) / 8;
    const int d = data.host.d;
    std::int64_t count = 0, values = 0;
    for (; data.resident && first + count < n_problems && count < 32768; ++count) {
        const Cut parts = cut(data, arithmetic, problems[first + count].n_rows);
        values += (parts.segments * parts.slots + 1) * slot_values(d);
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
        throw Error(PGKM_INVALID, "moments are taken of unweighted rows only");
    for (std::int64_t first = 0; first < n_problems;) {
        data.context.poll();
        data.context.report("summing", static_cast<int>(first), 0, 0.0);
        const Arithmetic fast = arithmetic_for<T>(data.host.d);
        const std::int64_t count = batch(data, problems, first, n_problems, fast);
        const auto run = [&](std::int64_t from, std::int64_t n, Arithmetic arithmetic) {
            return Summation<T>(data, problems + from, static_cast<std::size_t>(n), moments + from, arithmetic).run();
        };
        for (const std::size_t p : run(first, count, fast))
            run(first + static_cast<std::int64_t>(p), 1, Arithmetic::wide);
        first += count;
    }
}

template void sum_moments<float>(Data &, const PgkmProblem *, std::int64_t, PgkmMoments *);
template void sum_moments<double>(Data &, const PgkmProblem *, std::int64_t, PgkmMoments *);

} // namespace pgkm::cuda

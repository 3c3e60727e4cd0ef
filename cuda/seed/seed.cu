// seed.cu - initial centroids: reference_seed.cpp's definition, run on the device.
//
// k-means++ enqueues all its steps without waiting for any (streamed rows excepted, whose
// picks are fetched from the caller's memory). k-means|| comes back to the host once a round.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "../job.hpp"
#include "engine/update.hpp"
#include "kernels.hpp"

namespace pgkm::cuda {
namespace {

// Rows and distances on the device, for a problem or for candidates.
template <typename T>
class Seeder {
  public:
    Seeder(Context &context, SeedRows<T> rows, const PgkmSeedParams &params, Stream first, Stream trial,
           std::int32_t most)
        : context_(context), rows_(rows), tiles_(context.budget, static_cast<std::size_t>((rows.n + seed_tile - 1) / seed_tile)),
          state_(context.budget, 1), chosen_(context.budget, static_cast<std::size_t>(most)),
          candidates_(context.budget, static_cast<std::size_t>(most_trials) * static_cast<std::size_t>(rows.d))
    {
        nearest_ = NearArray<double>(context.budget, context.host_budget, static_cast<std::size_t>(rows.n),
                                     context.budget.limit / 8);
        rows_.nearest = nearest_.get();
        state_.fill_zero(context.compute.get());
        kernels_ = {state_.get(), tiles_.get(), {params.seed, params.restart, first, trial},
                    context.facts.multiprocessors, context.compute.get()};
    }

    // Where the rows' values are when they are not on the device.
    void stream_from(Data &data, std::int64_t first_row)
    {
        data_ = &data;
        first_row_ = first_row;
    }

    void add_first()
    {
        // The first draw is by weight and needs all of them at once; those of streamed rows lie
        // for that moment where the distances will be.
        if (data_ != nullptr && data_->host.weights != nullptr) {
            checked("cudaMemcpyAsync", [&] {
                return cudaMemcpyAsync(rows_.nearest, data_->host.weights + first_row_,
                                       static_cast<std::size_t>(rows_.n) * sizeof(double), cudaMemcpyDefault, stream());
            });
            rows_.weights = rows_.nearest;
        }
        step(true, 1);
    }

    void extend(std::int32_t k, std::int32_t known)
    {
        const int trials = greedy_trials(k);
        // So many steps are enqueued at a time as take some 10 ms: a cancel is seen between them.
        const double terms = static_cast<double>(rows_.n) * rows_.d * (trials + 1);
        const auto at_once = static_cast<std::int32_t>(std::clamp(3e10 / terms, 1.0, 32.0));
        for (std::int32_t i = known; i < k; ++i) {
            if ((i - known) % at_once == 0 && fetch().done != 0)
                return;
            step(false, trials);
        }
    }

    SeedState fetch()
    {
        SeedState state;
        state_.download(&state, 1, stream());
        context_.wait(stream());
        return state;
    }

    std::vector<std::int64_t> chosen()
    {
        std::vector<std::int64_t> rows(static_cast<std::size_t>(fetch().count));
        chosen_.download(rows.data(), rows.size(), stream());
        context_.wait(stream());
        return rows;
    }

    // One round of k-means||: the rows taken, in order. `ended` when no row lies apart.
    std::vector<std::int64_t> oversample(std::uint32_t round, std::int32_t k, bool &ended)
    {
        ended = fetch().largest == 0;
        if (ended)
            return {};
        std::size_t capacity = static_cast<std::size_t>(k) * 4 + 1024;
        for (;;) {
            DeviceArray<std::int64_t> taken(context_.budget, capacity);
            checked("cudaMemsetAsync", [&] {
                return cudaMemsetAsync(&state_.get()->sampled, 0, sizeof(std::int32_t), stream());
            });
            kernels_.oversample(rows_, round, k, taken.get(), static_cast<std::int32_t>(capacity));
            const auto count = static_cast<std::size_t>(fetch().sampled);
            if (count > capacity) {
                capacity = count;
                continue;
            }
            std::vector<std::int64_t> rows(count);
            taken.download(rows.data(), count, stream());
            context_.wait(stream());
            std::sort(rows.begin(), rows.end());
            return rows;
        }
    }

    // Adds rows whose values are given, as many at a time as half of the device's limit holds.
    void add(const std::vector<T> &values, std::int32_t count)
    {
        const auto d = static_cast<std::size_t>(rows_.d);
        std::uint64_t room = context_.budget.room() / 2 / (d * sizeof(T));
        // So many that a launch of some 10 ms has rows for all multiprocessors; streamed rows come
        // over the bus for each batch, and shall not for more than need be.
        if (data_ == nullptr)
            room = std::min<std::uint64_t>(room, std::max<std::uint64_t>((std::uint64_t{1} << 18) / d, 64));
        const auto most = static_cast<std::int32_t>(std::clamp<std::uint64_t>(room, 1, static_cast<std::uint64_t>(std::max(count, 1))));
        DeviceArray<T> added(context_.budget, count == 0 ? 0 : static_cast<std::size_t>(most) * d);
        for (std::int32_t first = 0; first < count; first += most) {
            const std::int32_t some = std::min(most, count - first);
            added.upload(values.data() + static_cast<std::size_t>(first) * d, static_cast<std::size_t>(some) * d, stream());
            // The largest of all v_i is found anew by each walk over the rows.
            checked("cudaMemsetAsync",
                    [&] { return cudaMemsetAsync(&state_.get()->largest, 0, sizeof(unsigned long long), stream()); });
            each([&](const SeedRows<T> &part) { add_to(part, added.get(), some); });
        }
    }

    // Makes `rows` the chosen ones, all of them already added.
    void set_chosen(const std::vector<std::int64_t> &rows)
    {
        const auto count = static_cast<std::int32_t>(rows.size());
        chosen_.upload(rows.data(), rows.size(), stream());
        checked("cudaMemcpyAsync", [&] {
            return cudaMemcpyAsync(&state_.get()->count, &count, sizeof count, cudaMemcpyHostToDevice, stream());
        });
        context_.wait(stream());
    }

  private:
    cudaStream_t stream() const { return context_.compute.get(); }

    // In launches of some 10 ms, since a cancel is seen between them.
    void add_to(const SeedRows<T> &rows, const T *added, std::int32_t count)
    {
        const double terms = static_cast<double>(count) * rows.d;
        const auto most = static_cast<std::int64_t>(std::max(3e10 / terms, 1024.0));
        for (std::int64_t first = 0; first < rows.n; first += most) {
            SeedRows<T> part = rows;
            part.values += first * rows.d;
            if (part.weights != nullptr)
                part.weights += first;
            part.nearest += first;
            part.n = std::min(most, rows.n - first);
            kernels_.update_nearest(part, added, count, false, false);
            context_.wait(stream());
        }
    }

    template <typename Body>
    void each(Body &&body)
    {
        if (data_ == nullptr)
            return body(rows_);
        data_->each_chunk<T>(first_row_, rows_.n, [&](const T *values, const double *weights, std::int64_t first, std::int64_t n) {
            SeedRows<T> part = rows_;
            part.values = values;
            part.weights = weights;
            part.nearest += first;
            part.n = n;
            body(part);
        });
    }

    void step(bool first, int trials)
    {
        kernels_.weigh_and_pick(rows_, first, trials);
        if (data_ != nullptr)
            rows_.weights = nullptr; // from here on each chunk brings its own
        if (data_ == nullptr)
            kernels_.gather(rows_, trials, candidates_.get());
        else
            gather_from_host(trials);
        if (!first)
            each([&](const SeedRows<T> &part) { kernels_.potentials(part, candidates_.get(), trials); });
        kernels_.choose(trials, chosen_.get());
        each([&](const SeedRows<T> &part) { kernels_.update_nearest(part, candidates_.get(), 1, true, first); });
    }

    void gather_from_host(int trials)
    {
        const SeedState state = fetch();
        if (state.done != 0)
            return;
        const auto d = static_cast<std::size_t>(rows_.d);
        std::vector<T> values(static_cast<std::size_t>(trials) * d);
        const T *from = static_cast<const T *>(data_->host.values);
        for (std::size_t t = 0; t < static_cast<std::size_t>(trials); ++t)
            std::copy_n(from + static_cast<std::size_t>(first_row_ + state.picks[t]) * d, d, values.data() + t * d);
        candidates_.upload(values.data(), values.size(), stream());
    }

    Context                        &context_;
    SeedRows<T>                     rows_;
    NearArray<double>               nearest_; // v_i of every row
    DeviceArray<unsigned long long> tiles_;
    DeviceArray<SeedState>          state_;
    DeviceArray<std::int64_t>       chosen_;
    DeviceArray<T>                  candidates_;
    SeedKernels<T>                  kernels_{};
    Data                           *data_ = nullptr;
    std::int64_t                    first_row_ = 0;
};

// On the host's limit, for rows that are drawn: their numbers and values.
Claim claim_rows(const Data &data, std::int64_t count)
{
    return Claim(data.context.host_budget, static_cast<std::uint64_t>(count) * (data.row_bytes() + 24));
}

template <typename T>
std::vector<T> rows_of(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows)
{
    const auto d = static_cast<std::size_t>(data.host.d);
    const T *from = static_cast<const T *>(data.host.values) + static_cast<std::size_t>(problem.first_row) * d;
    std::vector<T> values;
    values.reserve(rows.size() * d);
    for (const std::int64_t row : rows)
        values.insert(values.end(), from + static_cast<std::size_t>(row) * d, from + static_cast<std::size_t>(row + 1) * d);
    return values;
}

std::vector<Int128> join_masses(const std::vector<std::int64_t> &limbs)
{
    std::vector<Int128> masses;
    for (std::size_t c = 0; c < limbs.size() / 2; ++c)
        masses.push_back(join_limb_sums(limbs[2 * c], limbs[2 * c + 1]));
    return masses;
}

// Masses of the rows nearest to each candidate, by the stages of a pass.
template <typename T>
std::vector<Int128> candidate_masses(Data &data, const PgkmProblem &problem, std::vector<T> &values, std::int32_t count)
{
    PgkmProblem around = problem;
    around.k = count;
    around.centroids = values.data();
    Job<T> job(data, around);
    job.iterates = false;
    job.upload_centroids(values.data(), nullptr);
    job.each_slice(0, [&](const View<T> &rows, std::int64_t) {
        data.context.poll();
        job.assign_rows(rows, job.control.get(), job.labels.get());
        job.sum_masses(rows, job.control.get(), job.labels.get());
        job.wait();
    });
    std::vector<std::int64_t> limbs(job.masses.count());
    job.masses.download(limbs.data(), limbs.size(), job.stream());
    data.context.wait(job.stream());
    return join_masses(limbs);
}

// The same with little device memory: the candidates stay where they are, and labels are held
// for few rows at a time.
template <typename T>
std::vector<Int128> candidate_masses_within_limit(Data &data, const PgkmProblem &problem, const T *candidates,
                                                  std::int32_t count)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    constexpr std::int64_t some = 4096;
    DeviceArray<std::int32_t> labels(context.budget, some);
    DeviceArray<std::int64_t> masses(context.budget, 2 * static_cast<std::size_t>(count));
    masses.fill_zero(stream);
    const Stage<T> stage = {context, stream, nullptr, {}, {}};
    data.template each_chunk<T>(problem.first_row, problem.n_rows,
                                [&](const T *values, const double *weights, std::int64_t, std::int64_t n) {
        const View<T> all = {values, weights, n, data.host.d, count, candidates, nullptr, problem.weight_exponent};
        for (std::int64_t done = 0; done < n; done += some) {
            context.poll();
            const View<T> part = slice(all, done, std::min(some, n - done));
            assign_generic(stage, part, labels.get());
            sum_masses_global_atomic(stage, part, labels.get(), masses.get());
            context.wait(stream);
        }
    });
    std::vector<std::int64_t> limbs(masses.count());
    masses.download(limbs.data(), limbs.size(), stream);
    context.wait(stream);
    return join_masses(limbs);
}

// Weighted greedy k-means++ among the candidates of k-means||.
template <typename T>
std::vector<std::int64_t> among_candidates(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params,
                                           const std::vector<std::int64_t> &rows)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const Claim claim = claim_rows(data, static_cast<std::int64_t>(rows.size()));
    std::vector<T> values = rows_of<T>(data, problem, rows);
    const auto count = static_cast<std::int32_t>(rows.size());
    // What a job around so many centroids takes; the candidates alone may lie on the host.
    const std::uint64_t cells = values.size();
    const bool roomy = cells * (4 * sizeof(T) + 32) + (std::uint64_t{1} << 20) <= context.budget.room();
    std::vector<Int128> masses;
    if (roomy)
        masses = candidate_masses(data, problem, values, count);
    NearArray<T> device_values(context.budget, context.host_budget, cells, context.budget.limit / 4);
    device_values.upload(values.data(), values.size(), stream);
    if (!roomy)
        masses = candidate_masses_within_limit(data, problem, device_values.get(), count);
    Int128 total = 0;
    for (const Int128 mass : masses)
        total += mass;
    const int shift = mass_shift(static_cast<UInt128>(total));
    std::vector<double> weights;
    std::vector<std::int64_t> integers;
    for (const Int128 mass : masses) {
        weights.push_back(to_double(mass));
        integers.push_back(static_cast<std::int64_t>(mass >> shift));
    }
    DeviceArray<double> device_weights(context.budget, weights.size());
    device_weights.upload(weights.data(), weights.size(), stream);
    DeviceArray<std::int64_t> device_masses(context.budget, integers.size());
    device_masses.upload(integers.data(), integers.size(), stream);
    Seeder<T> seeder(context,
                     {device_values.get(), device_weights.get(), device_masses.get(), count, data.host.d, 0, nullptr},
                     params, Stream::candidate_first, Stream::candidate_trial, problem.k);
    seeder.add_first();
    seeder.extend(problem.k, 1);
    std::vector<std::int64_t> result;
    for (const std::int64_t candidate : seeder.chosen())
        result.push_back(rows[static_cast<std::size_t>(candidate)]);
    return result;
}

template <typename T>
std::vector<std::int64_t> draw_rows(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    Context &context = data.context;
    SeedRows<T> rows = {nullptr, nullptr, nullptr, problem.n_rows, data.host.d, problem.weight_exponent, nullptr};
    if (data.resident) {
        rows.values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * data.host.d;
        rows.weights = data.host.weights == nullptr ? nullptr : data.weights.get() + problem.first_row;
    }
    const std::int64_t most = std::min<std::int64_t>(problem.k, problem.n_rows) + 1;
    std::optional<Seeder<T>> owner(std::in_place, context, rows, params, Stream::first_centroid, Stream::trial,
                                   static_cast<std::int32_t>(most));
    Seeder<T> &seeder = *owner;
    if (!data.resident)
        seeder.stream_from(data, problem.first_row);
    seeder.add_first();
    if (params.init != PGKM_INIT_KMEANS_PARALLEL) {
        seeder.extend(problem.k, 1);
        return seeder.chosen();
    }
    std::vector<std::int64_t> chosen = seeder.chosen();
    for (std::uint32_t round = 0; round < oversampling_rounds; ++round) {
        bool ended = false;
        const std::vector<std::int64_t> taken = seeder.oversample(round, problem.k, ended);
        if (ended)
            break;
        seeder.add(rows_of<T>(data, problem, taken), static_cast<std::int32_t>(taken.size()));
        chosen.insert(chosen.end(), taken.begin(), taken.end());
    }
    if (static_cast<std::int64_t>(chosen.size()) > problem.k) {
        owner.reset(); // its memory may be what the candidates' masses need
        return among_candidates<T>(data, problem, params, chosen);
    }
    seeder.set_chosen(chosen);
    seeder.extend(problem.k, static_cast<std::int32_t>(chosen.size()));
    return seeder.chosen();
}

// Floyd's sampling of k out of n without replacement, in the order of insertion.
std::vector<std::int64_t> random_rows(std::int64_t n, std::int32_t k, const PgkmSeedParams &params)
{
    std::vector<std::int64_t> chosen;
    std::unordered_set<std::int64_t> taken;
    for (std::int64_t j = n - k; j < n; ++j) {
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto row = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        chosen.push_back(taken.count(row) != 0 ? j : row);
        taken.insert(chosen.back());
    }
    return chosen;
}

} // namespace

template <typename T>
void seed_problem(Data &data, PgkmProblem &problem, const PgkmSeedParams &params)
{
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, problem.n_rows));
    const Claim claim = claim_rows(data, at_most_n);
    std::vector<std::int64_t> rows;
    if (params.init == PGKM_INIT_RANDOM) {
        rows = random_rows(problem.n_rows, at_most_n, params);
    } else if (params.init == PGKM_INIT_FIRST) {
        for (std::int64_t i = 0; i < at_most_n; ++i)
            rows.push_back(i);
    } else if (params.init == PGKM_INIT_KMEANS_PLUS_PLUS || params.init == PGKM_INIT_KMEANS_PARALLEL) {
        rows = draw_rows<T>(data, problem, params);
    } else {
        throw Error(PGKM_INVALID, "seed() does not take given centroids");
    }
    const std::vector<T> values = rows_of<T>(data, problem, rows);
    std::copy(values.begin(), values.end(), static_cast<T *>(problem.centroids));
    problem.k = static_cast<std::int32_t>(rows.size());
}

template void seed_problem<float>(Data &, PgkmProblem &, const PgkmSeedParams &);
template void seed_problem<double>(Data &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm::cuda

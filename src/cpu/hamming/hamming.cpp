// hamming.cpp - fit(), assign() and summarise() of rows of bits.
//
// Few centroids move in a later iteration: a majority stays the same while some rows come and go. Each row knows its
// distance to its own centroid and a bound of those to all others. So it meets those that have moved, and all only
// where its own has moved away.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "backend/update.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/kernels/bit_kernels.hpp"
#include "cpu/operations.hpp"
#include "cpu/rows.hpp"
#include "numeric/bit_rows.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

// Words of a task of counts: a cache line.
constexpr std::int64_t piece_words = 8;
constexpr std::int64_t rows_per_poll = 1 << 12;

Rows<BitWord> rows_of_bits(const Data &data, ThreadPool &pool, const PgkmProblem &problem)
{
    const auto words = static_cast<std::int32_t>(bit_words(data.points.d));
    Rows<BitWord> rows(data.context, pool, static_cast<const BitWord *>(data.points.values) + problem.first_row * words,
                       problem.n_rows, words, problem.k);
    if (data.points.weights != nullptr)
        rows.weights = data.points.weights + problem.first_row;
    return rows;
}

// The rows of a problem, with its centroids as words.
struct BitProblem {
    // Of the problem its centroids are read here and by store().
    BitProblem(const Data &data, ThreadPool &pool, const PgkmProblem &of)
        : problem(of), d(data.points.d), rows(rows_of_bits(data, pool, of)),
          kernels(bit_kernels(data.context.instruction_set)), centroids(data.context.budget, std::size_t(of.k) * rows.d)
    {
        for (std::int32_t j = 0; j < rows.k; ++j)
            bits_of_values(static_cast<const float *>(of.centroids) + std::int64_t{j} * d, d, centroid(j));
    }
    void store() const
    {
        for (std::int32_t j = 0; j < rows.k; ++j)
            values_of_bits(centroid(j), d, static_cast<float *>(problem.centroids) + std::int64_t{j} * d);
    }

    BitWord *centroid(std::int64_t j) { return centroids.data() + j * rows.d; }
    const BitWord *centroid(std::int64_t j) const { return centroids.data() + j * rows.d; }
    std::int32_t distance(std::int64_t row, std::int32_t j) const
    {
        return kernels.different(rows.row(row), centroid(j), rows.d);
    }
    // Rows between two looks at the cancel flag.
    std::int64_t block() const
    {
        return std::clamp<std::int64_t>(4 * work_per_poll / (std::int64_t{rows.d} * rows.k), 1, cached_rows(rows));
    }

    const PgkmProblem &problem;
    const std::int32_t d;
    const Rows<BitWord> rows; // whose d is words
    const BitKernels &kernels;
    Buffer<BitWord> centroids; // k x words
};

class BitFit {
  public:
    BitFit(const Data &data, ThreadPool &pool, PgkmProblem &problem)
        : of_(data, pool, problem), rows_(of_.rows), budget_(data.context.budget), problem_(problem),
          labels_(budget_, rows_.n, -1), before_(budget_, rows_.n), own_(budget_, rows_.n, 0),
          others_(budget_, rows_.n, 0), moves_(budget_, rows_.k, 0),
          counts_(Buffer<Int128>::zeros(budget_, at(width() * rows_.k))), masses_(at(rows_.k), 0)
    {
        problem_.n_iter = problem_.converged = 0;
        problem_.shift = 0.0;
    }

    void run(std::int64_t index, const PgkmFitParams &params)
    {
        while (problem_.n_iter < params.max_iter && problem_.converged == 0) {
            rows_.context.poll();
            std::copy(labels_.begin(), labels_.end(), before_.begin());
            assign();
            const bool changed = count_moved();
            problem_.shift = update();
            ++problem_.n_iter;
            problem_.converged = !changed || problem_.shift <= problem_.tol ? 1 : 0;
            if (&rows_.pool == &rows_.context.pool)
                rows_.context.report("iterating", index, problem_.n_iter, problem_.shift);
        }
        of_.store();
    }

  private:
    std::int64_t width() const { return std::int64_t{rows_.d} * word_bits; } // places of a row
    Int128 mass_of(std::int64_t row) const { return row_mass(points(), problem_, row); }
    // The rows of the problem, with as many features as words.
    PgkmPoints points() const { return {rows_.values, PGKM_BIT, rows_.n, rows_.d, rows_.weights}; }

    // Rows meet the centroids that have moved. Those that rest are no nearer than before.
    void assign()
    {
        std::vector<std::int32_t> movers;
        for (std::int32_t j = 0; j < rows_.k; ++j)
            if (moves_[j] != 0)
                movers.push_back(j);
        Buffer<BitWord> moved(budget_, movers.size() * rows_.d);
        for (std::size_t i = 0; i < movers.size(); ++i)
            std::copy_n(of_.centroid(movers[i]), rows_.d, moved.data() + i * rows_.d);
        const auto count = static_cast<std::int32_t>(movers.size());
        for_blocks(rows_, of_.block(), [&](int, std::int64_t first, int rows) {
            for (std::int64_t i = first; i < first + rows; ++i)
                if (labels_[i] < 0 || !meet(i, moved.data(), count, movers.data()))
                    labels_[i] = of_.kernels.nearest(rows_.row(i), rows_.d, of_.centroids.data(), rows_.k, &own_[i],
                                                     &others_[i]);
        });
    }
    // False where a centroid that rests may be the nearest instead of the row's own.
    bool meet(std::int64_t i, const BitWord *moved, std::int32_t count, const std::int32_t *movers)
    {
        std::int32_t best, second;
        const std::int32_t which = of_.kernels.nearest(rows_.row(i), rows_.d, moved, count, &best, &second);
        const std::int32_t rest = std::max(own_[i], others_[i]), j = movers[which]; // all that rest, but its own
        if (moves_[labels_[i]] == 0 && (best > own_[i] || (best == own_[i] && j > labels_[i]))) {
            others_[i] = std::min(rest, best);
            return true;
        }
        if (moves_[labels_[i]] != 0 && best >= rest)
            return false;
        others_[i] = std::min(second, moves_[labels_[i]] == 0 ? own_[i] : rest);
        own_[i] = best;
        labels_[i] = j;
        return true;
    }

    // Brings counts and masses to the labels. Whether one has changed.
    bool count_moved()
    {
        std::vector<std::int64_t> ends(at(rows_.k), 0); // of each cluster's rows that have come or gone
        std::int64_t n = 0;
        for_moved([&](std::int64_t, std::int32_t label, bool) { ++ends[label], ++n; });
        if (n == 0)
            return false;
        std::int64_t end = 0;
        for (std::int64_t &each : ends)
            each = std::exchange(end, end + each);
        Buffer<std::int64_t> moved(budget_, n); // 2 x row + (1: it has gone)
        for_moved([&](std::int64_t row, std::int32_t label, bool gone) {
            moved[ends[label]++] = 2 * row + (gone ? 1 : 0);
            masses_[label] += gone ? -mass_of(row) : mass_of(row);
        });
        const std::int64_t pieces = (rows_.d - 1) / piece_words + 1;
        rows_.for_ranges(rows_.k * pieces, 1, [&](std::int64_t task, std::int64_t, int) {
            const std::int64_t cluster = task / pieces, word = task % pieces * piece_words;
            const std::int64_t *const first = moved.data() + (cluster == 0 ? 0 : ends[cluster - 1]);
            const std::int64_t words = std::min(piece_words, rows_.d - word);
            Int128 *const counts = counts_.data() + cluster * width() + word * word_bits;
            if (rows_.weights == nullptr)
                count_rows(first, moved.data() + ends[cluster], word, words, counts);
            else
                for (const std::int64_t *each = first; each != moved.data() + ends[cluster]; ++each) {
                    poll(each - first);
                    add(*each / 2, word, words, *each % 2 == 0 ? mass_of(*each / 2) : -mass_of(*each / 2), counts);
                }
        });
        return true;
    }
    template <typename Body>
    void for_moved(Body &&body) const
    {
        for (std::int64_t i = 0; i < rows_.n; ++i) {
            poll(i);
            if (before_[i] == labels_[i])
                continue;
            if (before_[i] >= 0)
                body(i, before_[i], true);
            body(i, labels_[i], false);
        }
    }
    void poll(std::int64_t step) const
    {
        if (step % rows_per_poll == 0)
            rows_.context.poll();
    }
    // Some words of rows that have come or gone, each of mass 1.
    void count_rows(const std::int64_t *first, const std::int64_t *last, std::int64_t word, std::int64_t words,
                    Int128 *counts) const
    {
        std::int32_t own[piece_words * word_bits];
        while (first != last) {
            std::fill_n(own, words * word_bits, 0);
            const std::int64_t *const end = first + std::min<std::int64_t>(last - first, rows_per_poll);
            for (rows_.context.poll(); first != end; ++first)
                of_.kernels.count(rows_.row(*first / 2) + word, words, *first % 2 == 0 ? 1 : -1, own);
            for (std::int64_t p = 0; p < words * word_bits; ++p)
                counts[p] += own[p];
        }
    }
    // Some words of a row to the counts of their bits.
    void add(std::int64_t row, std::int64_t word, std::int64_t words, Int128 mass, Int128 *counts) const
    {
        for (std::int64_t w = 0; w < words; ++w, counts += word_bits)
            for (BitWord bits = rows_.row(row)[word + w]; bits != 0; bits &= bits - 1)
                counts[std::countr_zero(bits)] += mass;
    }

    // Moves the centroids, and returns their summed shift.
    double update()
    {
        const std::vector<Int128> masses = masses_;
        const std::vector<MovedRow> moved = fill_empty();
        move(moved, 1);
        double shift = 0.0;
        for (std::int32_t j = 0; j < rows_.k; ++j) {
            rows_.context.poll();
            moves_[j] = masses_[j] == 0 ? 0 : update(j);
            shift += moves_[j];
        }
        move(moved, -1); // their labels are the old ones
        masses_ = masses;
        return shift;
    }
    std::int32_t update(std::int32_t j)
    {
        std::vector<BitWord> fresh(at(rows_.d), 0);
        for (std::int64_t p = 0; p < width(); ++p)
            fresh[p / word_bits] |= BitWord{2 * counts_[j * width() + p] > masses_[j]} << p % word_bits;
        const std::int32_t move = of_.kernels.different(fresh.data(), of_.centroid(j), rows_.d);
        std::copy(fresh.begin(), fresh.end(), of_.centroid(j));
        return move;
    }
    void move(const std::vector<MovedRow> &moved, int sign)
    {
        for (const MovedRow &each : moved) {
            add(each.row, 0, rows_.d, -sign * mass_of(each.row), counts_.data() + each.from * width());
            add(each.row, 0, rows_.d, sign * mass_of(each.row), counts_.data() + each.to * width());
        }
    }
    // Gives every empty cluster its row.
    std::vector<MovedRow> fill_empty()
    {
        std::vector<MovedRow> result;
        if (std::find(masses_.begin(), masses_.end(), Int128{0}) == masses_.end())
            return result;
        PgkmProblem local = problem_;
        local.first_row = 0;
        const PgkmPoints points = this->points();
        const auto farthest = [&](std::size_t most) {
            const Reservation for_rows(budget_, most * sizeof(FarRow));
            FirstFarRows<BitWord> first(FarOrder<BitWord>{points, 0}, most);
            for (std::int64_t i = 0; i < rows_.n; ++i) {
                poll(i);
                first.add({static_cast<double>(of_.distance(i, labels_[i])), i, labels_[i]});
            }
            return first.rows();
        };
        relocate_by_farthest<BitWord>(
            points, local, masses_, farthest,
            [&](const PgkmPoints &, const PgkmProblem &, const std::vector<MovedRow> &moved) { result = moved; });
        return result;
    }

    BitProblem of_;
    const Rows<BitWord> &rows_;
    Budget &budget_;
    PgkmProblem &problem_;
    Buffer<std::int32_t> labels_, before_;
    Buffer<std::int32_t> own_, others_; // distances: to the own centroid, and to all others at least
    Buffer<std::int32_t> moves_;        // of the centroids, in bits
    Buffer<Int128> counts_;             // k x places: masses of the rows whose bit is set
    std::vector<Int128> masses_;        // k
};

void assign_problem(const Data &data, ThreadPool &pool, const PgkmProblem &problem, const PgkmAssignment &out)
{
    if (out.totals != nullptr || out.masses != nullptr)
        throw Error(PGKM_UNSUPPORTED, "rows of bits are not summed up");
    const BitProblem of(data, pool, problem);
    const Rows<BitWord> &rows = of.rows;
    const double scale = out.within == nullptr ? 1.0 : power_of_two(problem.distance_exponent);
    std::vector<Buffer<Int128>> within; // of each worker
    std::vector<Buffer<std::int64_t>> sizes;
    for (int worker = 0; worker < pool.size(); ++worker) {
        within.emplace_back(data.context.budget, rows.k, 0);
        sizes.emplace_back(data.context.budget, rows.k, 0);
    }
    for_blocks(rows, of.block(), [&](int worker, std::int64_t first, int count) {
        for (std::int64_t i = first; i < first + count; ++i) {
            std::int32_t own, next;
            const std::int32_t label =
                of.kernels.nearest(rows.row(i), rows.d, of.centroids.data(), rows.k, &own, &next);
            const Limbs limbs = quantise_square(rows.weights == nullptr ? own : rows.weights[i] * own, scale);
            within[worker][label] += join_limbs(limbs.hi, limbs.lo);
            ++sizes[worker][label];
            if (out.labels != nullptr)
                out.labels[i] = label;
            if (out.distances != nullptr)
                out.distances[i] = own;
        }
    });
    for (std::int32_t j = 0; j < rows.k; ++j) {
        Int128 total = 0;
        std::int64_t size = 0;
        for (int worker = 0; worker < pool.size(); ++worker) {
            total += within[worker][j];
            size += sizes[worker][j];
        }
        if (out.within != nullptr)
            out.within[j] = split(total);
        if (out.sizes != nullptr)
            out.sizes[j] = size;
    }
}

} // namespace

void fit_bits(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params)
{
    for_problems(data, problems, n_problems,
                 [&](std::int64_t p, ThreadPool &pool) { BitFit(data, pool, problems[p]).run(p, *params); });
}

void assign_bits(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments)
{
    for_problems(data, problems, n_problems,
                 [&](std::int64_t p, ThreadPool &pool) { assign_problem(data, pool, problems[p], assignments[p]); });
}

void summarise_bits(Data &data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
                    PgkmSummary *summaries)
{
    const std::int32_t d = data.points.d;
    const BitKernels &kernels = bit_kernels(data.context.instruction_set);
    const auto work = [&](std::int64_t p) { return static_cast<double>(problems[p].n_rows) * d; };
    for_problems(data, n_problems, work, [&](std::int64_t p, ThreadPool &pool) {
        const Rows<BitWord> rows = rows_of_bits(data, pool, problems[p]);
        PgkmSummary &summary = summaries[p];
        const std::size_t places = std::size_t(rows.d) * word_bits;
        std::vector<Buffer<std::int32_t>> own; // of each worker, of a block
        std::vector<Buffer<std::int64_t>> all;
        for (int worker = 0; worker < pool.size(); ++worker) {
            own.emplace_back(data.context.budget, places);
            all.emplace_back(data.context.budget, places, 0);
        }
        for_blocks(rows, rows_per_poll, [&](int worker, std::int64_t first, int count) {
            std::fill(own[worker].begin(), own[worker].end(), 0);
            for (std::int64_t i = first; i < first + count; ++i)
                kernels.count(rows.row(i), rows.d, 1, own[worker].data());
            for (std::size_t place = 0; place < places; ++place)
                all[worker][place] += own[worker][place];
        });
        for (std::int32_t f = 0; f < d; ++f) {
            std::int64_t ones = 0;
            for (const Buffer<std::int64_t> &each : all)
                ones += each[f / word_bits * word_bits + in_word(f % word_bits)];
            summary.min[f] = ones == rows.n ? 1.0 : 0.0;
            summary.max[f] = ones > 0 ? 1.0 : 0.0;
            if (want_moments == 0)
                continue;
            summary.mean[f] = static_cast<double>(ones) / static_cast<double>(rows.n);
            summary.variance[f] = summary.mean[f] * (1.0 - summary.mean[f]);
        }
        summary.max_weight = rows.weights == nullptr ? 1.0 : *std::max_element(rows.weights, rows.weights + rows.n);
    });
}

} // namespace pgkm::cpu

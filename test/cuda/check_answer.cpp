#include "check_answer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "numeric/contract.hpp"

namespace plugin_check {
namespace {

// One group's statistics, scales and centroids.
struct Group {
    std::vector<double> stats;
    std::vector<PgkmFeatureScale> scales;
    std::vector<char> centroids;
};

// The calls of one run, each of which needs those before it.
class Run {
  public:
    Run(const PgkmBackend *backend, const Case &c, const Rows &rows, const Setting &setting)
        : backend_(backend), case_(c), rows_(rows), setting_(setting), width_(c.element == PGKM_FLOAT32 ? 4 : 8),
          d_(static_cast<std::size_t>(c.d)), groups_(static_cast<std::size_t>(c.groups)), problems_(groups_.size())
    {
    }
    ~Run()
    {
        backend_->unload(data_);
        backend_->close(context_);
    }
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    Answer all()
    {
        share_rows();
        if (start() && summarise() && seed() && fit())
            assign();
        return std::move(answer_);
    }

  private:
    bool good(PgkmStatus status)
    {
        answer_.status = status;
        answer_.text = error_.text;
        return status == PGKM_OK;
    }
    std::int64_t count() const { return static_cast<std::int64_t>(groups_.size()); }
    std::size_t centroid_bytes(std::size_t g) const { return static_cast<std::size_t>(problems_[g].k) * d_ * width_; }

    // Groups of unequal sizes; many of them get equal shares.
    void share_rows()
    {
        std::int64_t first = 0;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            Group &group = groups_[g];
            group.stats.resize(4 * d_);
            group.scales.resize(d_);
            group.centroids.resize(static_cast<std::size_t>(case_.k) * d_ * width_);
            const std::int64_t left = case_.n - first, after = count() - static_cast<std::int64_t>(g);
            const std::int64_t part = case_.groups > 20 ? left / after : left / (2 + static_cast<std::int64_t>(g) % 3);
            const std::int64_t rows = after == 1 ? left : std::max<std::int64_t>(1, part);
            PgkmProblem &problem = problems_[g];
            problem.first_row = first;
            problem.n_rows = rows;
            problem.k = case_.k;
            problem.centroids = group.centroids.data();
            problem.feature_scales = group.scales.data();
            problem.tol = case_.tol;
            first += rows;
        }
    }

    bool start()
    {
        PgkmOpen open{};
        open.struct_size = sizeof open;
        open.device = setting_.device;
        open.device_memory_limit = setting_.device_limit;
        open.tuning = setting_.tuning;
        open.host.progress = note_progress;
        open.host.arg = this;
        return good(backend_->open(&open, &context_, &error_)) &&
               good(backend_->load(context_, &rows_.points, &data_, &error_));
    }

    // What is told before rows get labels is of the fit.
    static void note_progress(void *run, const PgkmProgress *progress)
    {
        if (progress->chosen.assignment != nullptr)
            static_cast<Run *>(run)->answer_.assignment = progress->chosen.assignment;
        if (progress->chosen.execution != nullptr)
            static_cast<Run *>(run)->answer_.execution = progress->chosen.execution;
    }

    bool summarise()
    {
        std::vector<PgkmSummary> summaries;
        for (Group &group : groups_) {
            double *s = group.stats.data();
            summaries.push_back({s, s + d_, s + 2 * d_, s + 3 * d_, 0.0});
        }
        if (!good(backend_->summarise(data_, problems_.data(), count(), 1, summaries.data(), &error_)))
            return false;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            double bound = 0.0;
            for (std::size_t f = 0; f < d_; ++f) {
                groups_[g].scales[f] =
                    pgkm::sum_scale(summaries[g].min[f], summaries[g].max[f], summaries[g].max_weight);
                const double range = summaries[g].max[f] - summaries[g].min[f];
                bound += 4 * range * range;
            }
            problems_[g].weight_exponent = case_.weighted ? pgkm::scale_exponent(summaries[g].max_weight) : 0;
            problems_[g].distance_exponent = pgkm::square_exponent(bound * summaries[g].max_weight * 1.01);
            answer_.summary.insert(answer_.summary.end(), groups_[g].stats.begin(), groups_[g].stats.end());
            answer_.summary.push_back(summaries[g].max_weight);
        }
        return true;
    }

    bool seed()
    {
        // The CPU alone draws rows by weight.
        const bool by_weight = case_.weighted && case_.init == PGKM_INIT_RANDOM;
        const PgkmSeedParams params = {by_weight ? PGKM_INIT_KMEANS_PLUS_PLUS : case_.init, 17, 1, 0};
        if (!good(backend_->seed(data_, problems_.data(), count(), &params, &error_)))
            return false;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            answer_.integers.push_back(problems_[g].k);
            const std::vector<char> &from = groups_[g].centroids;
            answer_.seeds.insert(answer_.seeds.end(), from.begin(),
                                 from.begin() + static_cast<long>(centroid_bytes(g)));
            if (case_.far_start)
                leave_half_empty(g);
        }
        return true;
    }

    // Moves half of the centroids to where no row is.
    void leave_half_empty(std::size_t g)
    {
        char *values = groups_[g].centroids.data();
        const std::size_t bytes = centroid_bytes(g);
        for (std::size_t j = bytes / 2 / width_; j < bytes / width_; ++j) {
            if (case_.element == PGKM_FLOAT32)
                reinterpret_cast<float *>(values)[j] += 1e4f;
            else
                reinterpret_cast<double *>(values)[j] += 1e4;
        }
    }

    bool fit()
    {
        const PgkmFitParams params = {case_.metric, setting_.max_iter};
        const std::vector<char> before = groups_.back().centroids;
        if (!good(backend_->fit(data_, problems_.data(), count(), &params, &error_))) {
            // One device works on a copy where rows repeat, of groups one after the other.
            if (case_.distinct != 0 && std::getenv("PGKM_DEVICES") == nullptr &&
                (groups_.back().centroids != before || problems_.back().n_iter != 0)) {
                answer_.status = PGKM_INTERNAL;
                answer_.text = "a fit that failed has changed its problem";
            }
            return false;
        }
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            answer_.integers.push_back(problems_[g].n_iter);
            answer_.integers.push_back(problems_[g].converged);
            answer_.shifts.push_back(problems_[g].shift);
            const std::vector<char> &from = groups_[g].centroids;
            answer_.centroids.insert(answer_.centroids.end(), from.begin(),
                                     from.begin() + static_cast<long>(centroid_bytes(g)));
        }
        return true;
    }

    void assign()
    {
        std::vector<PgkmAssignment> out(groups_.size());
        std::vector<std::vector<PgkmInt128>> sums(groups_.size());
        std::vector<std::vector<std::int64_t>> sizes(groups_.size());
        answer_.labels.resize(static_cast<std::size_t>(case_.n));
        answer_.distances.resize(static_cast<std::size_t>(case_.n));
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const auto k = static_cast<std::size_t>(problems_[g].k);
            sums[g].resize(k * (d_ + 2));
            sizes[g].resize(k);
            out[g] = {answer_.labels.data() + problems_[g].first_row,
                      answer_.distances.data() + problems_[g].first_row,
                      sums[g].data(),
                      sums[g].data() + k * d_,
                      sums[g].data() + k * (d_ + 1),
                      sizes[g].data()};
        }
        good(backend_->assign(data_, problems_.data(), count(), out.data(), &error_));
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            answer_.sums.insert(answer_.sums.end(), sums[g].begin(), sums[g].end());
            answer_.sizes.insert(answer_.sizes.end(), sizes[g].begin(), sizes[g].end());
        }
    }

    const PgkmBackend *backend_;
    const Case &case_;
    const Rows &rows_;
    const Setting &setting_;
    std::size_t width_;
    std::size_t d_;
    std::vector<Group> groups_;
    std::vector<PgkmProblem> problems_;
    PgkmContext *context_ = nullptr;
    PgkmData *data_ = nullptr;
    PgkmError error_{};
    Answer answer_;
};

template <typename V>
bool same(const std::vector<V> &a, const std::vector<V> &b)
{
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}

} // namespace

LeftOut::LeftOut(const std::string &mechanism)
{
    if (const char *names = std::getenv("PGKM_CUDA_WITHOUT"))
        before_ = names;
    setenv("PGKM_CUDA_WITHOUT", (before_ ? *before_ + "," + mechanism : mechanism).c_str(), 1);
}

LeftOut::~LeftOut()
{
    if (before_)
        setenv("PGKM_CUDA_WITHOUT", before_->c_str(), 1);
    else
        unsetenv("PGKM_CUDA_WITHOUT");
}

Answer run(const PgkmBackend *backend, const Case &c, const Rows &rows, const Setting &setting)
{
    return Run(backend, c, rows, setting).all();
}

std::vector<std::string> differences(const Answer &want, const Answer &got)
{
    if (got.status != PGKM_OK)
        return {"status " + std::to_string(got.status) + " " + got.text};
    std::vector<std::string> found;
    const auto compare = [&](bool equal, const char *what) {
        if (!equal)
            found.push_back(what);
    };
    compare(want.summary == got.summary, "summary");
    compare(want.integers == got.integers, "k, n_iter, converged");
    compare(same(want.seeds, got.seeds), "seeds");
    compare(same(want.shifts, got.shifts), "shift");
    compare(same(want.centroids, got.centroids), "centroids");
    compare(same(want.labels, got.labels), "labels");
    compare(same(want.distances, got.distances), "distances");
    compare(same(want.sums, got.sums), "sums");
    compare(same(want.sizes, got.sizes), "sizes");
    return found;
}

} // namespace plugin_check

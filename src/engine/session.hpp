// session.hpp - RAII around one open backend: context, loaded points, errors as exceptions.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/registry.hpp"
#include "engine/error.hpp"
#include "engine/platform.hpp"

namespace pgkm {

// Statistics of one problem with the memory they stand in.
struct Summary {
    explicit Summary(std::int32_t d)
    {
        for (std::vector<double> *part : {&min, &max, &max_abs, &mean, &variance})
            part->resize(static_cast<std::size_t>(d));
    }
    std::vector<double> min, max, max_abs, mean, variance;
    double              max_weight = 1.0;
};

class Session {
  public:
    Session(const BackendChoice &choice, const PgkmOpen &options);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    // Replaces what was loaded before.
    void load(const PgkmPoints &points);
    // One problem or many, as the table has it.
    std::vector<Summary> summarise(const std::vector<PgkmProblem> &problems, bool want_moments);
    void seed(std::vector<PgkmProblem> &problems, const PgkmSeedParams &params);
    void fit(std::vector<PgkmProblem> &problems, const PgkmFitParams &params);
    void assign(const std::vector<PgkmProblem> &problems, std::vector<PgkmAssignment> &assignments);

    const char *name() const { return table_->name; }

  private:
    const PgkmBackend *table_;
    PgkmContext       *context_ = nullptr;
    PgkmData          *data_ = nullptr;
    PgkmPoints         points_ = {};
};

} // namespace pgkm

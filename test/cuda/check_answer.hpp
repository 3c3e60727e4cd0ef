// check_answer.hpp - everything a backend answers for one case, to be compared byte for byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check_cases.hpp"

namespace plugin_check {

struct Answer {
    PgkmStatus status = PGKM_OK;
    std::string text;
    std::vector<double> summary;
    std::vector<int> integers; // k found, n_iter, converged per group
    std::vector<double> shifts;
    std::vector<char> seeds, centroids;
    std::vector<std::int32_t> labels;
    std::vector<double> distances;
    std::vector<PgkmInt128> sums;
    std::vector<std::int64_t> sizes;
    std::string assignment, execution; // the strategies that the fit told of; not compared
};

// How a case is run: forced strategies, and limits in bytes.
struct Setting {
    PgkmTuning tuning{};
    std::uint64_t device_limit = 0;
    int max_iter = 12;
    std::int32_t device = -1;
};

// While it lives, contexts are opened without a mechanism (cuda/plugin/tuning.hpp), beside those that are left out
// already.
class LeftOut {
  public:
    explicit LeftOut(const std::string &mechanism);
    ~LeftOut();
    LeftOut(const LeftOut &) = delete;
    LeftOut &operator=(const LeftOut &) = delete;

  private:
    std::optional<std::string> before_;
};

// open, load, summarise, seed, fit and assign; what follows a call that failed is left out.
Answer run(const PgkmBackend *backend, const Case &c, const Rows &rows, const Setting &setting);

// Names what differs; empty when nothing does.
std::vector<std::string> differences(const Answer &want, const Answer &got);

} // namespace plugin_check

// pca.hpp - principal component analysis: from rows, or from moments that were merged.
#pragma once

#include <string>
#include <vector>

#include "engine/api.h"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct PcaModel {
    std::int32_t n_components = 0;
    std::int32_t d = 0;
    std::int64_t n = 0;
    std::vector<double> mean, scale; // d; scale empty unless standardized
    std::vector<double> components;  // n_components x d
    std::vector<double> explained_variance, explained_variance_ratio, singular_values;
    std::string notice;
};

// Throws Error.
PcaModel fit_pca(const PgkmPcaRequest &request, Monitor &monitor);

} // namespace pgkm

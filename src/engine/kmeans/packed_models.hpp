// packed_models.hpp - the models of many groups side by side: the result of a million small fits is a
// few arrays, which are freed at once, and not some millions of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kmeans/fit.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

class PackedModels {
  public:
    // All of the model but labels and distances, which groups have not.
    void add(const Model &model);

    std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
    // Model i into the fields that add() took; pointers last until the next add().
    void get(std::int64_t i, PgkmResult *result) const;

  private:
    struct Entry {
        Figures figures;
        std::size_t values; // where centroids, within_ss, center, scale, mean and deviation begin
        std::size_t sizes;
        bool standardized;
        bool described;
    };
    std::vector<Entry> entries_;
    std::vector<double> values_;
    std::vector<std::int64_t> sizes_;
};

// The model's fields, arrays included.
void describe(const Model &model, PgkmResult *result);

} // namespace pgkm

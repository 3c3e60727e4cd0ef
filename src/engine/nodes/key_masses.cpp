// key_masses.cpp - which rows a bucket of keys has.
#include "engine/nodes/key_masses.hpp"

namespace pgkm::nodes {

KeyMasses::KeyMasses(const cpu::BlockRunner &runner, const cpu::Buffer<cpu::RowNumber> &order,
                     const cpu::Buffer<std::uint64_t> &keys, std::int32_t bits)
    : runner_(runner), order_(order), bits_(bits), buckets_(runner.budget(), keys.size()),
      starts_(runner.budget(), (std::size_t{1} << bits) + 1, 0), sums_(runner.budget(), std::size_t{1} << bits),
      taken_(runner.budget(), std::size_t{1} << bits)
{
    for (std::size_t row = 0; row < keys.size(); ++row) {
        if (row % task_rows == 0)
            runner.poll();
        buckets_[row] = static_cast<std::uint32_t>(bucket_of(keys[row], bits));
        ++starts_[buckets_[row] + 1];
    }
    for (std::size_t bucket = 1; bucket < starts_.size(); ++bucket)
        starts_[bucket] += starts_[bucket - 1];
}

} // namespace pgkm::nodes

// budget.hpp - how much memory a context may hold, on the device and on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "plugin/check.hpp"

namespace pgkm::cuda {

// Memory that a context may hold, on the device or on the host; a limit of 0 means none.
struct Budget {
    const char *what;
    std::uint64_t limit = 0;
    std::uint64_t used = 0;

    std::uint64_t room() const
    {
        if (limit == 0)
            return std::numeric_limits<std::uint64_t>::max();
        return limit - std::min(limit, used);
    }
    bool fits(std::uint64_t bytes) const { return bytes <= room(); }
    void take(std::uint64_t bytes)
    {
        if (!fits(bytes))
            throw Error(PGKM_LIMIT, std::string(what) + " limit of " + std::to_string(limit) +
                                        " bytes: " + std::to_string(used + bytes) + " bytes are needed");
        used += bytes;
    }
    void give(std::uint64_t bytes) { used -= bytes; }
};

// A share of a budget for memory that something else allocates, such as vectors.
class Claim {
  public:
    Claim() = default;
    Claim(Budget &budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) { budget.take(bytes); }
    Claim(Claim &&other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Claim &operator=(Claim &&other) noexcept
    {
        std::swap(budget_, other.budget_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Claim()
    {
        if (bytes_ != 0)
            budget_->give(bytes_);
    }

  private:
    Budget *budget_ = nullptr;
    std::uint64_t bytes_ = 0;
};

// Device memory within a budget. Small blocks that are given back are kept for the next request of
// the same size: a problem takes some twenty arrays, and problems of one call tend to be of one shape.
// A block may still be in use by kernels when it is given away again, which is right as long as
// all work on it is in one stream (the chunks' copies wait for the stream of the kernels).
class DeviceMemory : public Budget {
  public:
    DeviceMemory() : Budget{"device memory"} {}
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;
    ~DeviceMemory() { flush(); }

    void *allocate(std::size_t bytes)
    {
        take(bytes);
        const auto found = spare_.find(bytes);
        if (found != spare_.end()) {
            void *block = found->second;
            spare_.erase(found);
            spare_bytes_ -= bytes;
            return block;
        }
        if (limit != 0 && used + spare_bytes_ > limit)
            flush();
        void *block = nullptr;
        try {
            checked("cudaMalloc", [&] {
                cudaError_t state = cudaMalloc(&block, bytes);
                if (state == cudaErrorMemoryAllocation && !spare_.empty()) {
                    cudaGetLastError();
                    flush();
                    state = cudaMalloc(&block, bytes);
                }
                return state;
            });
        } catch (...) {
            give(bytes);
            throw;
        }
        return block;
    }
    void release(void *block, std::size_t bytes) noexcept
    {
        give(bytes);
        if (keeps_ && bytes <= largest_spare && spare_bytes_ + bytes <= most_spare) {
            try {
                spare_.emplace(bytes, block);
                spare_bytes_ += bytes;
                return;
            } catch (...) { // no memory to remember it
            }
        }
        cudaFree(block);
    }
    // Whether blocks are kept; tools that look for unwritten memory want fresh ones.
    void keep_spare(bool keeps) { keeps_ = keeps; }

  private:
    static constexpr std::size_t largest_spare = std::size_t{1} << 20, most_spare = std::size_t{16} << 20;

    void flush() noexcept
    {
        for (const auto &[bytes, block] : spare_)
            cudaFree(block);
        spare_.clear();
        spare_bytes_ = 0;
    }
    std::multimap<std::size_t, void *> spare_;
    std::size_t spare_bytes_ = 0;
    bool keeps_ = true;
};

} // namespace pgkm::cuda

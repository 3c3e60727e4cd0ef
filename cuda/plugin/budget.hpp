// budget.hpp - how much memory a context may hold, on the device and on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
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

// What was made of loaded rows and may serve once more.
struct Kept {
    virtual ~Kept() = default;
    virtual std::uint64_t bytes() const = 0; // of device memory
};

// Device memory within a budget. Blocks that are given back are kept for the next request of the same size: a problem
// takes some twenty arrays, and problems of one call tend to be of one shape. A block may still be in use by kernels
// when it is given away again, which is right as long as all work on it is in one stream (the chunks' copies wait for
// the stream of the kernels).
//
// What was made of loaded rows is put aside under their address when nobody uses it any more. Then it is no part of
// what is used, and goes, as kept blocks do, when memory is short.
class DeviceMemory : public Budget {
  public:
    DeviceMemory() : Budget{"device memory"} {}
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;
    ~DeviceMemory() { flush(); }

    // So many bytes, or as many of them as there is room for: within the limit, and on the device, of which an eighth
    // is left to others. What is kept makes room where it has to, and so do `held` bytes, less than these, that are
    // given back first. The driver is slow to say what is free, and a little is where a kernel can run.
    std::uint64_t available(std::uint64_t bytes, std::uint64_t held = 0) const
    {
        constexpr std::uint64_t little = std::uint64_t{4} << 20;
        const std::uint64_t own = held + spare_bytes_ + aside_bytes_;
        bytes = held + std::min(bytes - held, room());
        if (bytes <= own + little)
            return bytes;
        const std::uint64_t all = own + free_memory();
        return std::min(bytes, std::max(held, all - all / 8));
    }
    bool has(std::uint64_t bytes) const { return available(bytes) == bytes; }

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
        if (limit != 0 && used + spare_bytes_ + aside_bytes_ > limit)
            flush();
        void *block = nullptr;
        try {
            checked("cudaMalloc", [&] {
                cudaError_t state = cudaMalloc(&block, bytes);
                if (state == cudaErrorMemoryAllocation && !(spare_.empty() && aside_.empty())) {
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
        if (keeps_ && bytes <= most_spare_ / 2 && spare_bytes_ + bytes <= most_spare_) {
            try {
                spare_.emplace(bytes, block);
                spare_bytes_ += bytes;
                return;
            } catch (...) { // no memory to remember it
            }
        }
        cudaFree(block);
    }
    // Whether blocks are kept, of a device with so much memory; tools that look for unwritten memory want fresh ones.
    void keep_spare(bool keeps, std::uint64_t device_bytes)
    {
        keeps_ = keeps;
        most_spare_ = std::max<std::uint64_t>(device_bytes / 128, std::uint64_t{16} << 20);
    }

    // Loaded rows on the device: where they lie, and how many.
    using RowsKey = std::pair<const void *, std::int64_t>;

    // What was made of these rows, used by somebody or put aside; nullptr: nothing of that type.
    template <typename What>
    std::shared_ptr<What> find_kept(const RowsKey &rows)
    {
        if (const auto used_by = in_use_.find(rows); used_by != in_use_.end())
            return std::dynamic_pointer_cast<What>(used_by->second.lock());
        const auto found = aside_.find(rows);
        if (found == aside_.end())
            return nullptr;
        std::shared_ptr<What> what = std::dynamic_pointer_cast<What>(unlist(found));
        return what != nullptr && (used <= limit || limit == 0) ? keep(rows, std::move(what)) : nullptr;
    }
    // A pointer to `what` that puts it aside when its last copy goes.
    template <typename What>
    std::shared_ptr<What> keep(const RowsKey &rows, std::shared_ptr<What> what)
    {
        What *address = what.get();
        std::shared_ptr<What> kept(address, [this, rows, owner = std::move(what)](What *) mutable noexcept {
            in_use_.erase(rows);
            put_aside(rows, std::move(owner));
        });
        in_use_[rows] = kept;
        return kept;
    }
    // Before loaded rows go: nothing may be found under addresses in their memory.
    void drop_aside(const void *rows, std::size_t bytes) noexcept
    {
        const void *const end = static_cast<const char *>(rows) + bytes;
        for (auto next = aside_.lower_bound({rows, 0}); next != aside_.end() && next->first.first < end;)
            unlist(next++);
    }
    // Gives kept blocks back to the device, the largest first, until at most so many bytes are kept.
    void drop_spare(std::uint64_t most) noexcept
    {
        while (spare_bytes_ > most) {
            const auto largest = std::prev(spare_.end());
            cudaFree(largest->second);
            spare_bytes_ -= largest->first;
            spare_.erase(largest);
        }
    }
    // What stays where loaded rows go: a fit of moderate size would have to ask the driver for it again.
    std::uint64_t lasting_spare() const { return most_spare_ / 8; }

  private:
    static constexpr std::size_t most_aside = 256;

    struct Aside {
        std::shared_ptr<Kept> what;
        std::uint64_t bytes;
    };

    void put_aside(const RowsKey &rows, std::shared_ptr<Kept> &&what) noexcept
    {
        const auto found = aside_.find(rows);
        if (found != aside_.end())
            unlist(found);
        if (aside_.size() >= most_aside)
            return;
        const std::uint64_t bytes = what->bytes();
        try {
            aside_.insert({rows, Aside{std::move(what), bytes}});
        } catch (...) { // no memory to remember it
            return;
        }
        give(bytes);
        aside_bytes_ += bytes;
    }
    std::shared_ptr<Kept> unlist(std::map<RowsKey, Aside>::iterator entry) noexcept
    {
        used += entry->second.bytes; // what its arrays give back when they go
        aside_bytes_ -= entry->second.bytes;
        std::shared_ptr<Kept> what = std::move(entry->second.what);
        aside_.erase(entry);
        return what;
    }
    void flush() noexcept
    {
        while (!aside_.empty())
            unlist(aside_.begin());
        drop_spare(0);
    }
    std::multimap<std::size_t, void *> spare_;
    std::size_t spare_bytes_ = 0, most_spare_ = std::size_t{16} << 20;
    bool keeps_ = true;
    std::map<RowsKey, Aside> aside_;
    std::map<RowsKey, std::weak_ptr<Kept>> in_use_;
    std::uint64_t aside_bytes_ = 0;
};

} // namespace pgkm::cuda

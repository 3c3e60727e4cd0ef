// transfer.hpp (groups) - values of many problems' rows to where each problem wants them. Faults and cancels throw
// Error.
#pragma once

#include <algorithm>
#include <vector>

#include "plugin/upload.hpp"

namespace pgkm::cuda {

// Rows [first, first + n) of an array on the device, wanted at `to`.
template <typename V>
struct Rows {
    std::int64_t first;
    std::int64_t n;
    V *to;
};

// Neighbours that are neighbours at their destination too travel together; where they are
// scattered in many pieces, all come in one copy and are handed out on the host.
template <typename V>
void download_rows(Context &context, const DeviceArray<V> &from, const std::vector<Rows<V>> &wanted)
{
    constexpr std::size_t most_copies = 256;
    std::vector<Rows<V>> runs;
    for (const Rows<V> &rows : wanted) {
        if (!runs.empty() && runs.back().first + runs.back().n == rows.first &&
            runs.back().to + runs.back().n == rows.to)
            runs.back().n += rows.n;
        else
            runs.push_back(rows);
    }
    if (runs.size() == 1)
        return cuda::download(context, runs[0].to, from.get() + runs[0].first,
                              static_cast<std::size_t>(runs[0].n) * sizeof(V));
    const cudaStream_t stream = context.compute.get();
    for (const Rows<V> &run : runs)
        context.bytes_moved += static_cast<std::uint64_t>(run.n) * sizeof(V);
    if (runs.size() <= most_copies) {
        for (const Rows<V> &run : runs)
            from.download(run.to, static_cast<std::size_t>(run.n), stream, static_cast<std::size_t>(run.first));
        context.wait(stream);
        return;
    }
    std::int64_t first = runs.front().first, last = 0;
    for (const Rows<V> &run : runs) {
        first = std::min(first, run.first);
        last = std::max(last, run.first + run.n);
    }
    const Claim claim(context.host_budget, static_cast<std::uint64_t>(last - first) * sizeof(V));
    std::vector<V> all(static_cast<std::size_t>(last - first));
    from.download(all.data(), all.size(), stream, static_cast<std::size_t>(first));
    context.wait(stream);
    for (const Rows<V> &run : runs)
        std::copy_n(all.begin() + (run.first - first), run.n, run.to);
}

} // namespace pgkm::cuda

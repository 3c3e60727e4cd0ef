// node_set.hpp - what holds the rows of one fit: asks all servers the same, or all chunks, and gathers the answers.
//
// Servers are asked by messages. Rows that are here are a Share, whose functions are called: chunk by chunk, or in a
// thread while the other servers work, so that one that fails is noticed however long that takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/api.h"
#include "engine/nodes/chunks.hpp"
#include "engine/nodes/operations.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

class NodeSet {
  public:
    // The request's nodes and stream stay the caller's. The rows of this server, if there are any, and chunks are
    // served by the backend of `choice`.
    NodeSet(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open);

    // The CPU's context of the job: that of the session for the rows that are here, or of one without rows.
    std::shared_ptr<PgkmContext> cpu();

    // The rows of this server, which stay the caller's. Their element and d are those of all nodes.
    void load(const PgkmPoints &points);

    // Asks all that have rows for an operation with these values, and merges what each answers by merge(result), in
    // the same order each time. Throws Error: PGKM_NODE_FAILED where a node failed, PGKM_CANCELLED when all nodes have
    // been told to stop.
    template <Operation operation, typename T, typename Merge, typename... Given>
    void ask(Merge &&merge, Given &&...given);
    // The same for a call of the table: what is found is added up. Whether an iteration has changed a label.
    bool call(Call call, Iteration iteration);

    const PgkmPoints &points() const { return points_; } // of this server
    bool has_rows() const { return points_.n > 0; }
    std::int64_t n() const; // of all servers, or chunks
    Chunks *chunks() { return chunks_ ? &*chunks_ : nullptr; }
    const PgkmOpen &open() const { return open_; }
    RowShape shape() const { return {n(), points_.d, points_.element}; }
    void report(const char *phase, std::int32_t iteration, double shift) const;

  private:
    using MergeReply = std::function<void(Reader &)>;

    PgkmOpen own_open();
    // Sends all servers the request, and calls here(share) for the rows of this one meanwhile. The servers' answers.
    std::vector<Bytes> ask_servers(const Writer &request, const Chunks::Step &here);
    void serve_own(const Chunks::Step &here);
    std::vector<Bytes> gather(std::future<void> &own);
    void cancel();
    void merge_replies(const std::vector<Bytes> &replies, const MergeReply &merge) const;

    std::vector<const PgkmNode *> nodes_; // those with rows
    PgkmOpen open_;
    BackendChoice choice_;
    PgkmPoints points_ = {};
    std::optional<Session> session_; // of the rows here, or for cpu() alone
    std::optional<Chunks> chunks_;
    std::atomic<bool> stop_{false}; // what is served here
    // That failed, in a way that ends the job. A fault of a device does not: the others' answers come first.
    std::atomic<bool> own_failed_{false};
    ShareState state_;
    mutable std::uint64_t bytes_moved_ = 0;
};

template <Operation operation, typename T, typename Merge, typename... Given>
void NodeSet::ask(Merge &&merge, Given &&...given)
{
    using Function = FunctionOf<operation, T>;
    const typename Function::Values all(std::forward<Given>(given)...);
    if (chunks_) {
        const auto ask_and_merge = [&](Share &share) { merge(Function::call(share, all)); };
        if constexpr (operation == Operation::seed_runs)
            return chunks_->draw(std::get<0>(all), std::get<2>(all), ask_and_merge);
        else
            return chunks_->ask(
                operation, [all](Share &share) { Function::call(share, all); }, ask_and_merge);
    }
    const Writer request = std::apply([](const auto &...each) { return Writer(operation, each...); }, all);
    std::optional<typename Function::Result> own;
    const std::vector<Bytes> replies = ask_servers(request, [&](Share &share) { own = Function::call(share, all); });
    if (own)
        merge(*own);
    merge_replies(replies, [&](Reader &reply) { merge(reply.get<typename Function::Result>()); });
}

} // namespace pgkm::nodes

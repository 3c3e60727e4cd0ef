// node_set.hpp - what holds the rows of one fit: asks all servers the same, or all chunks, and gathers the answers.
//
// An answer that is long stays with its server until those before it are merged, and long messages travel in parts. So
// the memory of one is enough, however many servers there are. It counts against the limit of the job.
//
// Servers are asked by messages. Rows that are here are a Share, whose functions are called: chunk by chunk, or in a
// thread while the other servers work, so that one that fails is noticed however long that takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
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
    // The same for a call of the table: what is found is added up in the order of the servers. Whether an iteration has
    // changed a label.
    bool call(Call call, Iteration iteration);

    const PgkmPoints &points() const { return points_; } // of this server
    bool has_rows() const { return points_.n > 0; }
    std::int64_t n() const; // of all servers, or chunks
    Chunks *chunks() { return chunks_ ? &*chunks_ : nullptr; }
    const PgkmOpen &open() const { return open_; }
    RowShape shape() const { return {n(), points_.d, points_.element}; }
    void report(const char *phase, std::int32_t iteration, double shift) const;

  private:
    // Merges the answer of a server.
    using MergeReply = std::function<void(Reader &)>;
    struct Reply { // of a node, until it is called again
        const void *bytes = nullptr;
        std::size_t size = 0;
    };

    PgkmOpen own_open();
    // Sends all servers the request, and calls here(share) for the rows of this one meanwhile, which merges what it
    // finds. Then merges the answers.
    void ask_servers(Writer request, const Chunks::Step &here, const MergeReply &merge);
    void serve_own(const Chunks::Step &here);
    // Bytes of messages. The entries of the rows here go first.
    cpu::HeldMemory hold(std::uint64_t bytes);
    void call_node(std::size_t i, const Writer &request);
    void call_all(Writer request, std::vector<Reply> &replies);
    std::vector<std::size_t> every_node() const
    {
        std::vector<std::size_t> all(nodes_.size());
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    void gather(std::vector<std::size_t> waiting, std::vector<Reply> &replies, std::future<void> *own);
    Bytes fetch(std::size_t i, std::uint64_t size, std::vector<Reply> &replies);
    void merge_reply(std::size_t i, std::vector<Reply> &replies, const MergeReply &merge);
    void cancel();

    std::vector<const PgkmNode *> nodes_; // those with rows
    std::uint64_t most_at_once_ = 0;      // bytes of an answer
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
    const auto here = [&](Share &share) { merge(Function::call(share, all)); };
    if (chunks_) {
        if constexpr (operation == Operation::seed_runs)
            return chunks_->draw(std::get<0>(all), std::get<2>(all), here);
        else
            return chunks_->ask(
                operation, [all](Share &share) { Function::call(share, all); }, here);
    }
    ask_servers(std::apply([](const auto &...each) { return Writer(operation, each...); }, all), here,
                [&](Reader &reply) { merge(reply.get<typename Function::Result>()); });
}

} // namespace pgkm::nodes

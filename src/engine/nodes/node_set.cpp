// node_set.cpp - one question to all nodes, and their answers.
#include "engine/nodes/node_set.hpp"

#include <numeric>
#include <string>

#include "backend/host.hpp"
#include "backend/shares.hpp"
#include "engine/nodes/fields.hpp"

namespace pgkm::nodes {
namespace {

// How long one node is waited for before the others, and the cancel flag, are looked at.
constexpr int slice_ms = 5;

[[noreturn]] void raise(const PgkmNode &node, const PgkmError &error)
{
    throw Error(PGKM_NODE_FAILED, std::string(node.name) + ": " + error.text, error.sqlstate);
}

} // namespace

NodeSet::NodeSet(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open)
    : open_(open), choice_(choice)
{
    for (std::int64_t i = 0; i < request.n_nodes; ++i)
        if (request.nodes[i].n > 0)
            nodes_.push_back(request.nodes + i);
    if (request.stream != nullptr)
        chunks_.emplace(*request.stream, request.points, choice, own_open());
}

void NodeSet::load(const PgkmPoints &points)
{
    points_ = points;
    if (points.n > 0 && !session_)
        session_.emplace(choice_, own_open());
}

std::shared_ptr<PgkmContext> NodeSet::cpu()
{
    if (chunks_)
        return chunks_->session().cpu();
    if (!session_) {
        PgkmOpen open = own_open();
        open.tuning = {}; // what is forced may be a strategy of a device
        session_.emplace(cpu_choice(), open);
    }
    return session_->cpu();
}

// Of the backend here, which also stops when another server has failed.
PgkmOpen NodeSet::own_open()
{
    PgkmOpen open = open_;
    open.host.arg = this;
    open.host.progress = nullptr;
    open.host.cancelled = [](void *arg) {
        const auto *self = static_cast<const NodeSet *>(arg);
        return self->stop_.load() || is_cancelled(self->open_.host) ? 1 : 0;
    };
    return open;
}

std::int64_t NodeSet::n() const
{
    if (chunks_)
        return chunks_->n();
    return std::accumulate(nodes_.begin(), nodes_.end(), points_.n,
                           [](std::int64_t n, const PgkmNode *node) { return n + node->n; });
}

void NodeSet::report(const char *phase, std::int32_t iteration, double shift) const
{
    if (open_.host.progress == nullptr)
        return;
    PgkmProgress progress = {};
    progress.phase = phase;
    progress.iteration = iteration;
    progress.shift = shift;
    progress.bytes_moved = bytes_moved_;
    open_.host.progress(open_.host.arg, &progress);
}

void NodeSet::cancel()
{
    for (const PgkmNode *node : nodes_)
        node->cancel(node->arg);
}

std::vector<Bytes> NodeSet::gather(std::future<void> &own)
{
    std::vector<Bytes> replies(nodes_.size());
    PgkmError error = {};
    // A node that fails is found while others work, whichever is waited for.
    std::vector<std::size_t> waiting(nodes_.size());
    std::iota(waiting.begin(), waiting.end(), 0);
    while (!waiting.empty()) {
        poll(open_.host);
        if (own_failed_.load())
            own.get();
        for (std::size_t i = 0; i < waiting.size();) {
            const PgkmNode &node = *nodes_[waiting[i]];
            const void *bytes = nullptr;
            std::size_t size = 0;
            const int state = node.reply(node.arg, i == 0 ? slice_ms : 0, &bytes, &size, &error);
            if (state < 0)
                raise(node, error);
            if (state == 0) {
                ++i;
                continue;
            }
            const auto *begin = static_cast<const std::byte *>(bytes);
            replies[waiting[i]].assign(begin, begin + size);
            bytes_moved_ += size;
            waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return replies;
}

void NodeSet::merge_replies(const std::vector<Bytes> &replies, const MergeReply &merge) const
{
    for (std::size_t i = 0; i < replies.size(); ++i) {
        try {
            Reader reply(replies[i]);
            merge(reply);
            reply.finish();
        } catch (const Error &refused) {
            throw Error(refused.status(), std::string(nodes_[i]->name) + ": " + refused.what());
        }
    }
}

void NodeSet::serve_own(const Chunks::Step &here)
{
    try {
        Share share(*session_, points_, state_, own_open());
        here(share);
    } catch (const Error &error) {
        own_failed_.store(!is_fault_of_device(error.status()));
        throw;
    } catch (...) {
        own_failed_.store(true);
        throw;
    }
}

std::vector<Bytes> NodeSet::ask_servers(const Writer &request, const Chunks::Step &here)
{
    std::vector<Bytes> replies;
    std::future<void> own;
    PgkmError error = {};
    stop_.store(false);
    own_failed_.store(false);
    try {
        for (const PgkmNode *node : nodes_) {
            poll(open_.host); // a server that takes its time makes the others wait
            if (node->call(node->arg, request.bytes().data(), request.bytes().size(), &error) != 0)
                raise(*node, error);
            bytes_moved_ += request.bytes().size();
        }
        if (has_rows())
            own = std::async(std::launch::async, [&] { serve_own(here); });
        replies = gather(own);
    } catch (...) {
        cancel();
        stop_.store(true); // and `own` is waited for
        throw;
    }
    if (own.valid()) // what it throws may be tried again on another device: no answer is under way now
        own.get();
    return replies;
}

bool NodeSet::call(Call call, Iteration iteration)
{
    if (chunks_) {
        chunks_->call(call, iteration);
        return true;
    }
    const RowShape rows = shape();
    ShareCall own(call, rows, 0, false);
    own.problem().n_rows = points_.n;
    Writer request(Operation::call, call.function);
    MessageFields writer(Leg::write_call, rows, request);
    fields(writer, call);
    request.put(iteration);
    bool changed = false;
    const std::vector<Bytes> replies =
        ask_servers(request, [&](Share &share) { changed = share.call(own.room.call, iteration); });
    Results results(rows);
    if (has_rows())
        results.give(own, call, true);
    bool first = !has_rows();
    merge_replies(replies, [&](Reader &reply) {
        changed = reply.get<std::uint8_t>() != 0 || changed;
        ShareCall found(call, rows, 0, false);
        MessageFields reader(Leg::read_results, rows, reply);
        fields(reader, found.room.call);
        results.give(found, call, std::exchange(first, false));
    });
    return changed;
}

} // namespace pgkm::nodes

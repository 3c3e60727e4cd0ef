// node_set.cpp - one question to all nodes, and their answers.
#include "engine/nodes/node_set.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "backend/host.hpp"
#include "backend/shares.hpp"
#include "engine/nodes/fields.hpp"
#include "engine/nodes/nodes.hpp"

namespace pgkm::nodes {
namespace {

// How long one node is waited for before the others, and the cancel flag, are looked at.
constexpr int slice_ms = 5;

// How much of an answer each of n servers may send at once: few need a second trip, and all together take no more than
// a small part of the memory.
std::uint64_t most_bytes_at_once(std::uint64_t memory_limit, std::int64_t n)
{
    constexpr std::uint64_t least = 1 << 14, most = 1 << 24;
    const auto servers = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1));
    return memory_limit == 0 ? most : std::clamp(memory_limit / (16 * servers), least, most);
}

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
    most_at_once_ = most_bytes_at_once(open.memory_limit, std::ssize(nodes_));
    if (request.stream != nullptr) {
        PgkmOpen own = own_open();
        own.host.progress = [](void *arg, const PgkmProgress *progress) { // of calls by entries
            static_cast<const NodeSet *>(arg)->report(progress->phase, progress->iteration, progress->shift);
        };
        chunks_.emplace(*request.stream, request.points, choice, own, request.algorithm != PGKM_PCA);
    }
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

void NodeSet::call_node(std::size_t i, const Writer &request)
{
    const PgkmNode &node = *nodes_[i];
    PgkmError error = {};
    poll(open_.host); // a server that takes its time makes the others wait
    if (node.call(node.arg, request.bytes().data(), request.bytes().size(), &error) != 0)
        raise(node, error);
    bytes_moved_ += request.bytes().size();
}

// A request that is long goes in parts, which all nodes take side by side.
void NodeSet::call_all(Writer request, std::vector<Reply> &replies)
{
    const Bytes &bytes = request.bytes();
    const std::uint64_t size = bytes.size();
    const bool in_parts = size > most_at_once_;
    for (std::uint64_t first = 0; in_parts && first < size; first += most_at_once_) {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(first);
        const Bytes some(begin, begin + static_cast<std::ptrdiff_t>(std::min(most_at_once_, size - first)));
        const Writer part(Operation::part, size, first, some);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            call_node(i, part);
        gather(every_node(), replies, nullptr);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            merge_reply(i, replies, [](Reader &) {});
    }
    Writer last = in_parts ? Writer(Operation::whole) : std::move(request);
    last.limit_answer(most_at_once_);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        call_node(i, last);
}

// Waits for these nodes. One that fails is found while others work, whichever is waited for.
void NodeSet::gather(std::vector<std::size_t> waiting, std::vector<Reply> &replies, std::future<void> *own)
{
    PgkmError error = {};
    while (!waiting.empty()) {
        poll(open_.host);
        if (own != nullptr && own_failed_.load())
            own->get();
        for (std::size_t i = 0; i < waiting.size();) {
            const PgkmNode &node = *nodes_[waiting[i]];
            Reply &reply = replies[waiting[i]];
            const int state = node.reply(node.arg, i == 0 ? slice_ms : 0, &reply.bytes, &reply.size, &error);
            if (state < 0)
                raise(node, error);
            if (state == 0) {
                ++i;
                continue;
            }
            bytes_moved_ += reply.size;
            waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
}

// The answer that a server holds, in parts that may come at once.
Bytes NodeSet::fetch(std::size_t i, std::uint64_t size, std::vector<Reply> &replies)
{
    Bytes whole;
    whole.reserve(size);
    while (whole.size() < size) {
        const std::uint64_t count = std::min(most_at_once_, size - whole.size());
        call_node(i, Writer(Operation::held, std::uint64_t{whole.size()}, count));
        gather({i}, replies, nullptr);
        Reader part(replies[i].bytes, replies[i].size);
        require_shape(part.get<std::uint64_t>() == 0 && part.get<std::uint64_t>() == count);
        part.append_to(whole, count);
        part.finish();
    }
    return whole;
}

// With room for what it is read to.
void NodeSet::merge_reply(std::size_t i, std::vector<Reply> &replies, const MergeReply &merge)
{
    try {
        Reader begun(replies[i].bytes, replies[i].size);
        const auto held = begun.get<std::uint64_t>();
        require_shape(held == 0 || (held > most_at_once_ && held <= most_message_bytes));
        const cpu::HeldMemory room = hold(held == 0 ? replies[i].size : 2 * held);
        Bytes whole;
        if (held != 0) {
            begun.finish();
            whole = fetch(i, held, replies);
            begun = Reader(whole);
            require_shape(begun.get<std::uint64_t>() == 0);
        }
        merge(begun);
        begun.finish();
    } catch (const Error &refused) {
        if (refused.status() == PGKM_CANCELLED || refused.status() == PGKM_NODE_FAILED)
            throw;
        // The limit is the one here: that of another server comes as its own error.
        const char *const where =
            refused.status() == PGKM_LIMIT ? ": where you call, its answer finds no room: " : ": ";
        throw Error(refused.status(), nodes_[i]->name + std::string(where) + refused.what(), refused.sqlstate());
    }
}

cpu::HeldMemory NodeSet::hold(std::uint64_t bytes)
{
    const std::shared_ptr<PgkmContext> context = cpu();
    make_room(state_, points_, context.get(), bytes);
    return {context.get(), bytes};
}

void NodeSet::serve_own(const Chunks::Step &here)
{
    try {
        serve_rows(*session_, points_, state_, own_open(), here);
    } catch (const Error &error) {
        own_failed_.store(!is_fault_of_device(error));
        throw;
    } catch (...) {
        own_failed_.store(true);
        throw;
    }
}

void NodeSet::ask_servers(Writer request, const Chunks::Step &here, const MergeReply &merge)
{
    // Each connection has the request once more, or a part.
    const std::uint64_t size = request.bytes().size();
    const cpu::HeldMemory requests = hold(size + std::min(size, most_at_once_) * nodes_.size());
    std::vector<Reply> replies(nodes_.size());
    std::future<void> own;
    stop_.store(false);
    own_failed_.store(false);
    try {
        call_all(std::move(request), replies);
        if (has_rows())
            own = std::async(std::launch::async, [&] { serve_own(here); });
        gather(every_node(), replies, &own);
        if (own.valid()) // what it throws may be tried again on another device: no answer is under way now
            own.get();
        std::uint64_t at_once = 0;
        for (const Reply &reply : replies)
            at_once += reply.size;
        const cpu::HeldMemory answers = hold(at_once);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            merge_reply(i, replies, merge);
    } catch (...) {
        cancel();
        stop_.store(true); // and `own` is waited for
        throw;
    }
}

bool NodeSet::call(Call call, Iteration iteration)
{
    const RowShape rows = shape();
    bool changed = false, first = true;
    Results results(rows);
    const auto give = [&](ShareCall &found) { results.give(found, call, std::exchange(first, false)); };
    const auto here = [&](Share &share) {
        ShareCall own(call, shape_of(share.points()), 0, false);
        own.problem().n_rows = share.points().n;
        changed = share.call(own.room.call, iteration) || changed;
        give(own);
    };
    if (chunks_) {
        chunks_->call(call, iteration, here);
        return changed;
    }
    Writer request(Operation::call, call.function);
    MessageFields writer(Leg::write_call, rows, request);
    fields(writer, call);
    request.put(iteration);
    ask_servers(std::move(request), here, [&](Reader &reply) {
        changed = reply.get<std::uint8_t>() != 0 || changed;
        ShareCall found(call, rows, 0, false);
        MessageFields reader(Leg::read_results, rows, reply);
        fields(reader, found.room.call);
        give(found);
    });
    return changed;
}

double bytes_of_calls(const PgkmRequest &request, double asked, double answered)
{
    const auto n = static_cast<double>(request.n_nodes);
    const auto most = static_cast<double>(most_bytes_at_once(request.settings.memory_limit, request.n_nodes));
    // The request; what connections have of messages; an answer, its arrays, and what is found here.
    return n == 0.0 ? 0.0 : asked + n * (std::min(asked, most) + std::min(answered, most)) + 3.0 * answered;
}

} // namespace pgkm::nodes

// protocol.hpp - what a session and the GPU service say to each other.
//
// One connection is one context of the backend table: the client sends a Request, waits for its
// Reply, and sends the next; both are plain structs of fixed size over a SOCK_SEQPACKET socket
// of the local machine, so that each end learns at once when the other one dies. Arrays never
// travel through the socket: they lie in the client's arena, anonymous shared memory that comes
// as a file descriptor with Op::open, and whose first page is the Control block. Rows lie in
// anonymous shared memory that comes with Op::load.
//
// Both ends are processes of one server, built from one source: a version tells whether that
// holds. The service believes nothing else: it reads each number of a call once, checks it, and derives every address
// from such numbers.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/calls.hpp"
#include "numeric/platform.hpp"

namespace pgkm::service {

// Raised whenever a struct of this file changes; a library of another version of pg_kmeans that
// meets a running service says so instead of misreading it.
constexpr std::uint32_t protocol_version = 8;
constexpr std::uint32_t magic = 0x706b736d ^ (PGKM_BACKEND_ABI << 8) ^ protocol_version;

enum class Op : std::uint32_t {
    hello = 1, // answered when the connection is served
    probe,     // the devices, into the arena that comes with it
    open,
    load,
    unload,
    call, // of one of the functions over problems
    close // the context; the connection may open another
};

// PgkmTuning by value: a name of each member, in their order. An empty one is NULL.
using Name = char[32];
struct StrategyNames {
    Name names[6];
};

// False when a name is too long to be one.
bool pack_names(const PgkmTuning &from, StrategyNames *to);
// The strings live in `from`.
PgkmTuning view_names(StrategyNames *from);
// The strings live as long as the process.
PgkmTuning static_names(StrategyNames *from);
const char *static_name(const char *name);

struct OpenRequest {
    std::int32_t device;
    std::int32_t n_devices; // 0: `device`
    std::int32_t devices[PGKM_MOST_DEVICES];
    std::int32_t threads;
    std::int32_t most_threads;
    std::uint64_t memory_limit;
    std::uint64_t device_memory_limit;
    StrategyNames tuning;
};

struct LoadRequest {
    std::int32_t element;
    std::int64_t n;
    std::int32_t d;
    std::int32_t weighted;
    std::uint64_t values; // offsets in the file that comes along
    std::uint64_t weights;
    std::uint64_t bytes; // its length
};

// Its fields lie in the arena (fields.hpp).
struct CallRequest {
    Function function;
    std::int64_t n_problems;
    std::uint64_t numbers; // among the fields
};

struct Request {
    std::uint32_t magic;
    Op op;
    std::uint64_t serial;      // the reply's too; 0: of hello
    std::uint64_t arena_bytes; // length of the arena, the Control block not counted
    union {
        OpenRequest open;
        LoadRequest load;
        CallRequest call;
    };
};

struct Reply {
    std::uint32_t magic;
    std::int32_t count;       // probe: devices
    std::uint32_t has_reduce; // hello: which not every plugin has; so no rows travel for nothing
    std::uint32_t unused;
    std::uint64_t serial;
    PgkmError error;
};
static_assert(sizeof(Reply) == 552, "told by test/service/changes.sh too");

// PgkmProgress by value.
struct Progress {
    double shift;
    std::int32_t problem;
    std::int32_t iteration;
    std::uint64_t bytes_moved;
    std::uint64_t devices;
    Name phase; // empty: nothing to tell
    StrategyNames chosen;
};
constexpr std::size_t progress_words = sizeof(Progress) / sizeof(std::uint64_t);

// What one side tells the other while a call runs. Progress is guarded by a sequence number,
// odd while it is written (Lamport 1977).
struct Control {
    std::atomic<std::uint32_t> cancelled;
    std::atomic<std::uint32_t> sequence;
    std::atomic<std::uint64_t> progress[progress_words];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "atomics in shared memory must be free of locks");

constexpr std::size_t control_bytes = 4096; // of the arena's file, before the arena

} // namespace pgkm::service

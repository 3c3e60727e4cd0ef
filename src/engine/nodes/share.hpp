// share.hpp - the rows of one server, and what it does with them when it is asked (message.hpp).
//
// The node's own backend does the work: its CPU, or its GPU. What has to last from one request to the next is a
// ShareState. Beside that a CPU backend keeps bounds and sums of iterations, as long as the rows are loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "cpu/entries/entries.hpp"
#include "cpu/operations.hpp"
#include "cpu/seed/seeding.hpp"
#include "engine/backends/session.hpp"
#include "engine/nodes/message.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Whether a call is an iteration, the first of a fit or one that goes on from that before.
enum class Iteration : std::uint8_t { none, first, next };

// Centroids, k x d as bytes of the rows' element type.
struct Centroids {
    std::int32_t k = 0;
    Bytes values;
};
Centroids centroids_of(const PgkmProblem &problem, const RowShape &rows);

struct ShareState {
    std::unique_ptr<std::byte[]> transformed; // rows, where they are not clustered as they are
    std::vector<double> ranges;               // of these rows, as soon as they were asked for
    // Those of the rows that differ, where they repeat, with the context that holds them: as soon as the CPU seeds or
    // iterates. They are seeded, and labelled, in place of the rows.
    std::shared_ptr<PgkmContext> context;
    std::shared_ptr<cpu::Entries> entries;
    bool may_repeat = true;
    // Of a chunk, whose rows go after the request.
    bool passing = false;    // labels are not kept
    bool unordered = false;  // rows are seeded without their order: nobody draws
    std::int64_t drawn = -1; // so many rows are left in `transformed`, with their weights; -1: all
    std::vector<double> weights;
    // Of the last iteration.
    Centroids centroids;
    cpu::KeptLabels labels;
    std::shared_ptr<void> seeding; // a cpu::Seeding of the element
    Bytes held;                    // the last answer, where it was too long to come at once
    std::uint64_t parts_bytes = 0; // of a request that comes in parts
    Bytes parts;                   // those of it that have come
};

// Goes back to the rows. What was told of a seeding is told to it again, and labels are found anew.
void give_up_entries(ShareState &state, const PgkmPoints &like);

// The same where so many bytes find no room beside them.
void make_room(ShareState &state, const PgkmPoints &like, PgkmContext *context, std::uint64_t bytes);

// The rows as they are clustered.
PgkmPoints clustered(PgkmPoints points, const ShareState &state);

// The rows as the CPU backend has loaded them; NULL where that is not the session's.
cpu::Data *cpu_data(Session &session);

// Refuses a message of so many bytes before it takes the memory: as arrays, and once more as they travel. context: of
// the CPU. Throws Error(PGKM_LIMIT).
void check_message(PgkmContext *context, std::uint64_t bytes);

// The number of the nearest of k centroids (in float64: those of float32 rows are the same there) for each row that the
// session has loaded.
LargeArray<std::int32_t> nearest_labels(Session &session, const PgkmPoints &points, std::int32_t k,
                                        const double *centroids);

// Bytes of a row beside its values: while it is seeded, or its label and bounds.
inline constexpr std::uint64_t state_bytes_per_row = 56;

// All functions throw Error.
class Share {
  public:
    // Loads the rows, unless they are loaded.
    // points: of the request that loaded them, as they are; they stay the caller's.
    // open: how the session's backend was opened, with a host that lasts as long as the state.
    Share(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open);

    const PgkmPoints &points() const { return points_; } // as they are clustered

    // Answers one request (operations.cpp).
    void serve(Reader &request, Writer &reply);

    // assign, moments or em_step. Whether an iteration has changed a label; where they are not kept, true.
    bool call(Call &call, Iteration iteration);
    std::vector<double> ranges();
    std::vector<PgkmInt128> moments(const std::vector<double> &ranges);
    template <typename T>
    void transform(const std::vector<double> &center, const std::vector<double> &scale, std::int32_t metric);
    template <typename T>
    std::vector<char> farthest(std::int64_t most);
    std::vector<double> cluster_sums(std::int32_t k, const std::vector<double> &centroids,
                                     const std::vector<double> &means);
    template <typename T>
    void seed_begin(std::int32_t bits);
    // That was begun.
    template <typename T>
    cpu::Seeding<T> &seeding();

    // Bytes of the answer that is held, which goes with the last of them.
    Bytes held(std::uint64_t first, std::uint64_t count);
    // Some of so many bytes of a request.
    void part(std::uint64_t all, std::uint64_t first, const Bytes &bytes);

    LargeArray<std::int32_t> labels(Centroids of) const;

  private:
    void find_entries();
    // assign() of the rows, or of their entries: no more than sums, or what is asked of each of these.
    void assign(std::int32_t k, void *centroids, PgkmAssignment &wanted);
    void assign_entries(PgkmProblem problem, PgkmAssignment &wanted);
    template <typename T>
    std::shared_ptr<cpu::Seeding<T>> make_seeding(std::int32_t bits);
    template <typename T>
    void serve_by(cpu::Seeding<T> &seeding);
    bool iterate(Call &call, bool first);
    bool assign_rows(Call &call, bool first);
    PgkmProblem whole() const;

    Session &session_;
    const PgkmPoints points_;
    const PgkmPoints raw_;
    ShareState &state_;
    const PgkmOpen open_;
};

// body(share) of these rows; and once more without entries, where these leave too little memory.
void serve_rows(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open,
                const std::function<void(Share &)> &body);

} // namespace pgkm::nodes

// chunks.hpp - rows that come chunk by chunk: what is asked of rows is a pass over them.
//
// Where rows repeat, the first pass gathers those that differ, with the number of their copies (cpu/entries). If memory
// holds them, the CPU seeds and fits by them without another pass.
//
// Else nothing of a row lasts from one pass to the next. What has been told before is told to each chunk anew: its
// chosen rows, say, whose distances are found again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cpu/entries/gathered.hpp"
#include "engine/backends/session.hpp"
#include "engine/nodes/share.hpp"
#include "engine/nodes/stream.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

class Chunks {
  public:
    using Step = std::function<void(Share &)>;

    // shape: as the chunks'. gather: whether rows that repeat are of use.
    Chunks(PgkmStream &source, const PgkmPoints &shape, const BackendChoice &choice, const PgkmOpen &open, bool gather);

    // Asks each chunk, in the order of their rows, and merges what it answers. step: asks, and merges nothing; it may
    // be done again. Throws Error.
    void ask(Operation operation, const Step &step, const Step &ask_and_merge);
    // The same for the contents of buckets, of so many bits, in canonical order. Other rows are left out: their
    // distances are not asked for.
    void draw(std::int32_t bits, const std::vector<std::uint64_t> &buckets, const Step &ask_and_merge);
    // A call of the table: of each chunk, whose results the step merges, or of all rows at once.
    void call(const Call &call, Iteration iteration, const Step &call_and_merge);
    // seed(), fit() or assign() by rows that were gathered; false: they were not, or it has to be done by passes.
    bool call_by_entries(const Call &call);

    // The step that brings the chosen rows of all steps before.
    void set_chosen(const Step &add)
    {
        told_[Operation::seed_add] = add;
        told_.erase(Operation::seed_gains);
    }

    // Whether the last iteration gave any row another label than the one before.
    bool labels_have_changed();

    std::int64_t n() const { return source_.n; }
    Session &session() { return session_; }

  private:
    using Prepare = std::function<void(const PgkmPoints &, ShareState &)>;
    // Calls body(share) for each chunk of a pass, its rows brought into the space of the distance.
    void for_chunks(const Step &body, const Prepare &prepare = nullptr);
    void gather(const PgkmPoints &chunk);
    cpu::Entries *entries();
    bool transform_entries(cpu::Entries &entries);
    // What was told of the seeding, up to this operation.
    void tell(Share &share, Operation last) const;

    PgkmStream &source_;
    PgkmPoints shape_; // all rows, without their values
    const PgkmOpen open_;
    Session session_;
    std::map<Operation, Step> told_;
    Centroids centroids_, centroids_before_;         // of the last two iterations
    bool gathers_;                                   // the first pass is not over, and rows have repeated so far
    std::unique_ptr<cpu::GatheredEntries> gathered_; // until entries are made of it
    std::shared_ptr<cpu::Entries> entries_;          // in the space of the distance
};

} // namespace pgkm::nodes

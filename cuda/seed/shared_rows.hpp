// shared_rows.hpp - the rows of a problem that lie on the devices of several peers, as each of them needs them while
// they are seeded. They are numbered in the order of the shares.
//
// Rows stay where they are. What draws look at, 8 bytes a row, is brought to every device, so that each of them makes
// all draws by itself. Errors throw Error: PGKM_UNSUPPORTED where devices do not read one another's memory or rows are
// streamed, PGKM_LIMIT, PGKM_CANCELLED, or a fault of the device. All peers call all functions at the same time.
#pragma once

#include <vector>

#include "plugin/peer_link.hpp"
#include "seed/row_table.cuh"

namespace pgkm::cuda {

template <typename T>
class SharedRows {
  public:
    // lent_bytes: of memory for the others, beside 8 for each row of this peer.
    SharedRows(Data &data, const PgkmProblem &problem, std::size_t lent_bytes);

    Data &data() const { return data_; }
    Context &context() const { return data_.context; }
    PeerLink &link() { return link_; }
    const RowTable<T> &table() const { return table_; }
    std::int64_t n() const { return table_.first[table_.shares]; } // of all peers
    std::int64_t first() const { return table_.first[share()]; }   // number of this one's first row
    std::int64_t own() const { return problem_.n_rows; }
    const T *own_values() const { return table_.of[share()]; }
    int share() const { return link_.peers().share; }
    int shares() const { return table_.shares; }

    // Memory that the others may read, and where each peer has it.
    std::int64_t *lent() const { return lent_[static_cast<std::size_t>(share())]; }
    const std::vector<std::int64_t *> &all_lent() const { return lent_; }

    // 8 bytes of every row, of which each peer has those of its own: brings the others' parts. Only enqueued.
    void complete(std::int64_t *of_all);
    // The values of rows by number, with +0 for -0.
    std::vector<T> values_of(const std::vector<std::int64_t> &rows) const;
    // The weights of all rows; none where rows have none.
    DeviceArray<double> weights();

  private:
    Data &data_;
    const PgkmProblem &problem_;
    PeerLink link_;
    RowTable<T> table_{};
    std::vector<std::int64_t *> lent_;
};

} // namespace pgkm::cuda

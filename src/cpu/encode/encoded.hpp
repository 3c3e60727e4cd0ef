// encoded.hpp - what is made of a problem's rows for filters, once for all calls on loaded rows.
//
// Fits, assignments and seeding take it from here. It is the first thing to be given up where memory is short: what
// nobody uses goes before another claim fails, and what finds no room is not made.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "cpu/encode/bits.hpp"
#include "cpu/encode/centre.hpp"
#include "cpu/encode/int16.hpp"
#include "cpu/encode/projection.hpp"

namespace pgkm::cpu {

template <typename T>
class EncodedRows final : private Spare {
  public:
    explicit EncodedRows(Context &context) : context_(context) { context.budget.add(*this); }
    ~EncodedRows() { context_.budget.remove(*this); }
    EncodedRows(const EncodedRows &) = delete;
    EncodedRows &operator=(const EncodedRows &) = delete;

    // Those of `rows`: kept beside them as long as somebody has them or there is an encoding, or of the caller alone
    // where the rows are not loaded. It is let go of before the rows, and not in a give_up().
    static std::shared_ptr<EncodedRows> of(const Rows<T> &rows);

    // NULL where the rows have no such form, or it does not pay, or memory does not allow it.
    std::shared_ptr<const BitRows<T>> bits(const Rows<T> &rows);
    std::shared_ptr<const Projection<T>> projection(const Rows<T> &rows, const ProjectionUse<T> &use);
    // keep: for many passes, so that they are worth their memory; otherwise rows that are there are used.
    std::shared_ptr<const Int16Rows<T>> int16(const Rows<T> &rows, bool keep);

  private:
    void give_up() override;
    bool is_empty();
    // The caller holds it while it asks for memory: that may have this one given up.
    std::shared_ptr<const Centre<T>> centre(const Rows<T> &rows);

    Context &context_;
    std::recursive_mutex mutex_; // also taken by give_up(), for memory that is asked for here
    bool has_bits_ = true;       // as far as it is known
    std::shared_ptr<const Centre<T>> centre_;
    std::shared_ptr<const BitRows<T>> bits_;
    std::shared_ptr<const Directions> directions_;
    std::shared_ptr<const Projection<T>> projection_;
    std::shared_ptr<const Int16Rows<T>> int16_;
};

} // namespace pgkm::cpu

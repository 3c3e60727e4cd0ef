// fields.hpp - a call's fields (backend/calls.hpp) in messages: a call of one problem, whose rows are all that a server
// has.
//
// Nothing goes both ways: of the table's calls these are assign, moments and em_step. A request has what the call is
// given and which arrays are wanted, an answer what was found. Before the values of an array comes their number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "backend/call_table.hpp"
#include "engine/nodes/message.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

class MessageFields : public FieldArchive<MessageFields> {
  public:
    MessageFields(Leg leg, const RowShape &rows, Writer &to) : FieldArchive(leg, rows), to_(&to) {}
    // read_call: has the memory of all arrays, those that the call is given and those that it fills.
    MessageFields(Leg leg, const RowShape &rows, Reader &from) : FieldArchive(leg, rows), from_(&from) {}

    void range(PgkmProblem &problem) { problem.n_rows = rows().n; }
    template <typename T>
    void value(Way way, T &value)
    {
        if (writes(way))
            to_->put(value);
        if (reads(way))
            value = from_->get<T>();
        if (leg() == Leg::read_results && reads(way))
            check_found(&value, 1);
    }
    template <typename T>
    void array(Way way, T *&values, std::int64_t n)
    {
        const auto size = static_cast<std::size_t>(n);
        if (leg() == Leg::read_call)
            values = n == 0 ? nullptr : make<std::remove_const_t<T>>(way, size);
        else if (n != 0 && leg() == Leg::write_call)
            write(way, values, may_be_null(way) && values == nullptr ? 0 : size);
        else if (n != 0 && values != nullptr && writes(way))
            to_->put(values, size);
        else if (n != 0 && values != nullptr && reads(way))
            if constexpr (!std::is_const_v<T>) {
                const auto own = from_->get<std::vector<T>>();
                require_shape(own.size() == size);
                check_found(own.data(), size);
                std::copy(own.begin(), own.end(), values);
            }
    }
    void elements(Way way, void *&values, std::int64_t n)
    {
        if (rows().element == PGKM_FLOAT32)
            elements_as<float>(way, values, n);
        else
            elements_as<double>(way, values, n);
    }
    [[noreturn]] static void refuse() { raise_shape(); }

  private:
    template <typename T>
    void elements_as(Way way, void *&values, std::int64_t n)
    {
        T *own = static_cast<T *>(values);
        array(way, own, n);
        if (leg() == Leg::read_call)
            values = own;
        // What sums that do not go together have led to ends where they were added, and no server is blamed for it.
        if (leg() == Leg::read_call || leg() == Leg::write_call)
            check_values(own, own == nullptr ? 0 : static_cast<std::size_t>(n));
    }

    // Sums that a server has found.
    template <typename T>
    static void check_found(const T *values, std::size_t n)
    {
        if constexpr (std::is_floating_point_v<T>)
            check_sums(values, n);
        else if constexpr (std::is_same_v<T, PgkmInt128>)
            std::for_each(values, values + n, check_sum);
    }

    template <typename T>
    void write(Way way, const T *values, std::size_t n)
    {
        if (writes(way))
            put(values, n);
        else if (way == Way::wanted)
            to_->put(static_cast<std::uint8_t>(n != 0));
    }

    template <typename T>
    void put(const T *values, std::size_t n)
    {
        to_->put(values, n);
    }
    void put(const PgkmFeatureScale *values, std::size_t n)
    {
        to_->put(static_cast<std::uint64_t>(n));
        for (std::size_t f = 0; f < n; ++f) { // without the bytes behind the exponents
            to_->put(values[f].origin);
            to_->put(values[f].exponent);
        }
    }

    // The memory of an array, with its values where the call is given these.
    template <typename T>
    T *make(Way way, std::size_t n)
    {
        if (way == Way::wanted && from_->get<std::uint8_t>() == 0)
            return nullptr;
        if (reads(way)) {
            const auto told = from_->get<std::uint64_t>();
            require(told == n || (told == 0 && may_be_null(way)));
            if (told == 0)
                return nullptr;
        }
        auto memory = std::make_shared<std::vector<T>>();
        memory_.push_back(memory);
        if (reads(way))
            take(*memory, n);
        else
            memory->resize(n);
        return memory->data();
    }
    template <typename T>
    void take(std::vector<T> &values, std::size_t n)
    {
        values = from_->take_all<T>(n);
    }
    void take(std::vector<PgkmFeatureScale> &scales, std::size_t n)
    {
        for (std::size_t f = 0; f < n; ++f) {
            const auto origin = from_->get<double>();
            scales.push_back({origin, clamp_exponent(from_->get<std::int32_t>())});
        }
    }

    Writer *to_ = nullptr;
    Reader *from_ = nullptr;
    std::vector<std::shared_ptr<void>> memory_;
};

} // namespace pgkm::nodes

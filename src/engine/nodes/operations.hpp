// operations.hpp - which function of Share, or of its Seeding, an operation is (message.hpp).
//
// It is called where the rows are, with values: those of the caller, or those of a message.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>

#include "engine/nodes/share.hpp"

namespace pgkm::nodes {

using cpu::Seeding;

// In the order of Operation, but for a call of the table, which comes first and has fields of its own (fields.hpp).
template <typename T>
inline constexpr std::tuple functions = {
    &Share::ranges,       &Share::moments,       &Share::transform<T>, &Share::farthest<T>,
    &Share::cluster_sums, &Share::seed_begin<T>, &Seeding<T>::add,     &Seeding<T>::masses_of_chosen,
    &Seeding<T>::weigh,   &Seeding<T>::runs,     &Seeding<T>::gains,   &Seeding<T>::exact_gains,
    &Seeding<T>::choose,  &Share::held,          &Share::part};

// What a function takes, as values, and what it returns.
template <typename Function>
struct Signature;
template <typename Object, typename Returned, typename... Arguments>
struct Signature<Returned (Object::*)(Arguments...)> {
    static constexpr bool is_of_share = std::is_same_v<Object, Share>;
    using Values = std::tuple<std::decay_t<Arguments>...>;
    using Result = std::conditional_t<std::is_void_v<Returned>, Nothing, Returned>;
    static Values read(Reader &request) { return Values{request.get<std::decay_t<Arguments>>()...}; }
};

template <typename T, std::size_t number>
struct NumberedFunction : Signature<std::decay_t<std::tuple_element_t<number, decltype(functions<T>)>>> {
    static auto call(Share &share, const typename NumberedFunction::Values &values) -> typename NumberedFunction::Result
    {
        const auto on = [&](auto &object) -> typename NumberedFunction::Result {
            const auto run = [&](const auto &...each) { return (object.*std::get<number>(functions<T>))(each...); };
            if constexpr (std::is_same_v<typename NumberedFunction::Result, Nothing>) {
                std::apply(run, values);
                return {};
            } else {
                return std::apply(run, values);
            }
        };
        if constexpr (NumberedFunction::is_of_share)
            return on(share);
        else
            return on(share.seeding<T>());
    }
};

template <Operation operation, typename T>
using FunctionOf = NumberedFunction<T, static_cast<std::size_t>(operation) - 1>;

} // namespace pgkm::nodes

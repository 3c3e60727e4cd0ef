// spread_over.hpp - a table whose contexts spread over a list of devices of another one; what it says of itself is the
// other's.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/spread/spread.hpp"

namespace pgkm::test {

// Tag: a table has no memory of its own, so each is another function.
template <int Tag>
const PgkmBackend *spread_over(const PgkmBackend *over, std::vector<std::int32_t> list)
{
    static const PgkmBackend *inner;
    static std::vector<std::int32_t> devices;
    static PgkmBackend table;
    inner = over;
    devices = std::move(list);
    table = *spread::table();
    table.name = over->name;
    table.probe = over->probe;
    table.strategies = over->strategies;
    table.open = [](const PgkmOpen *options, PgkmContext **context, PgkmError *error) {
        PgkmOpen open = *options;
        open.devices = devices.data();
        open.n_devices = static_cast<std::int32_t>(devices.size());
        return spread::open(*inner, open, context, error);
    };
    return &table;
}

} // namespace pgkm::test

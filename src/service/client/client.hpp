// client.hpp - the GPU service as a backend table: every call goes to another process.
#pragma once

#include <chrono>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"
#include "service/service.h"

namespace pgkm::service {

// The table; its name is "cuda", like that of the plugin behind the service. open() takes the
// connection from PgkmOpen.channel, which pgkm_service_ready() must have found and stays the caller's.
// probe() and strategies() have none and know nothing: ask by devices(), and by open(). Whether there
// are moments() and em_step() is known from the last answer of a service.
//
// A service that ends during a call is PGKM_DEVICE_ERROR. A cancelled call whose service does
// not answer within 50 ms gives the connection up: its owner closes it, and the service frees
// what it held as soon as it can.
const PgkmBackend *client_backend();

// The service's devices, as probe() of its plugin finds them, and its counts. Throws Error: PGKM_CANCELLED when it has
// not answered for so long, and then the channel is of no more use.
std::vector<PgkmDevice> devices(int channel, std::chrono::milliseconds limit, PgkmServiceCounts *counts);

} // namespace pgkm::service

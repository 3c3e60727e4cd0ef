// service_subject.hpp - the CPU backend behind the service: every call goes through its protocol.
#pragma once

#include "backend/backend.h"

namespace conformance {

// A table whose open() connects to a service that this process runs over the CPU backend.
const PgkmBackend *service_table();

} // namespace conformance

// sanitized.hpp - whether a test program looks for what sanitizers find, and not for other answers: the plain run has
// compared all of them (test/backend/README.md).
#pragma once

namespace pgkm::test {

#ifdef PGKM_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace pgkm::test

// unstoppable.hpp - work that nothing can stop, such as a call of a library. Its caller can leave it behind.
#pragma once

#include <cstdint>
#include <functional>

#include "numeric/platform.hpp"
#include "engine/job/poll.hpp"

namespace pgkm {

// Runs `work` in a thread of its own, in which all signals are blocked, and returns at its end. What `work`
// throws, this throws. It asks poll() every few milliseconds: what that throws, this throws at once and
// leaves the thread behind. So `work` owns all that it touches, some `bytes` (pgkm_bytes_left_behind());
// it is freed when it returns.
// `work` gets a poll of its own, which throws once nobody waits any more.
//
// A process has one such thread. Who comes while one that was left behind still runs waits for its end. The
// process may exit meanwhile: from then on nothing is destroyed, and the thread ends with the process.
void run_unstoppable(std::uint64_t bytes, std::function<void(const Poll &poll)> work, const Poll &poll);

} // namespace pgkm

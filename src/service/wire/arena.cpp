// arena.cpp - makes, grows and checks an arena; passes progress through its first page.
#include "service/wire/arena.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

constexpr std::uint64_t first_bytes = std::uint64_t{1} << 16;
constexpr std::uint64_t page = 4096;

std::uint32_t phase_number(const char *name)
{
    for (std::uint32_t i = 0; i < std::size(phase_names); ++i)
        if (name != nullptr && std::strcmp(phase_names[i], name) == 0)
            return i;
    return 0;
}

} // namespace

Arena::Arena() : file_(new_shared_file())
{
    extend_file(file_.get(), 0, control_bytes);
    control_ = Mapping(file_.get(), 0, control_bytes);
    new (control_.get()) Control{};
}

Arena::Arena(File file) : file_(std::move(file))
{
    if (!file_.is_open() || !is_safe(file_.get(), control_bytes))
        throw Error(PGKM_INVALID, "the client sent no arena");
    control_ = Mapping(file_.get(), 0, control_bytes);
}

void Arena::grow(std::uint64_t bytes)
{
    if (bytes <= arena_.bytes())
        return;
    // Doubled, so that a sequence of calls seldom maps anew.
    const std::uint64_t wanted = std::max({bytes, 2 * arena_.bytes(), first_bytes});
    const std::uint64_t total = (wanted + page - 1) / page * page;
    extend_file(file_.get(), control_bytes + arena_.bytes(), control_bytes + total);
    arena_ = Mapping();
    arena_ = Mapping(file_.get(), control_bytes, total);
}

void Arena::follow(std::uint64_t bytes)
{
    if (bytes == arena_.bytes())
        return;
    if (bytes > INT64_MAX - control_bytes || !is_safe(file_.get(), control_bytes + bytes))
        throw Error(PGKM_INVALID, "the arena is shorter than the client says");
    arena_ = Mapping();
    arena_ = Mapping(file_.get(), control_bytes, bytes);
}

void Arena::write_progress(const PgkmProgress &progress) const
{
    Control &to = control();
    const std::uint32_t sequence = to.sequence.load(std::memory_order_relaxed);
    to.sequence.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    to.phase.store(phase_number(progress.phase), std::memory_order_relaxed);
    to.problem.store(progress.problem, std::memory_order_relaxed);
    to.iteration.store(progress.iteration, std::memory_order_relaxed);
    to.shift.store(std::bit_cast<std::uint64_t>(progress.shift), std::memory_order_relaxed);
    to.bytes_moved.store(progress.bytes_moved, std::memory_order_relaxed);
    to.devices.store(progress.devices, std::memory_order_relaxed);
    StrategyNames names;
    std::uint64_t words[name_words];
    pack_names(progress.chosen, &names);
    std::memcpy(words, &names, sizeof words);
    for (std::size_t i = 0; i < name_words; ++i)
        to.chosen[i].store(words[i], std::memory_order_relaxed);
    to.sequence.store(sequence + 2, std::memory_order_release);
}

bool Arena::read_progress(PgkmProgress *progress, std::uint32_t *last_sequence) const
{
    const Control &from = control();
    const std::uint32_t before = from.sequence.load(std::memory_order_acquire);
    if (before == *last_sequence || before % 2 != 0)
        return false;
    const std::uint32_t phase = from.phase.load(std::memory_order_relaxed);
    *progress = {};
    progress->phase = phase_names[phase < std::size(phase_names) ? phase : 0];
    progress->problem = from.problem.load(std::memory_order_relaxed);
    progress->iteration = from.iteration.load(std::memory_order_relaxed);
    progress->shift = std::bit_cast<double>(from.shift.load(std::memory_order_relaxed));
    progress->bytes_moved = from.bytes_moved.load(std::memory_order_relaxed);
    progress->devices = from.devices.load(std::memory_order_relaxed);
    std::uint64_t words[name_words];
    for (std::size_t i = 0; i < name_words; ++i)
        words[i] = from.chosen[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (from.sequence.load(std::memory_order_relaxed) != before)
        return false;
    *last_sequence = before;
    StrategyNames names;
    std::memcpy(&names, words, sizeof names);
    progress->chosen = static_names(&names);
    return phase != 0;
}

} // namespace pgkm::service

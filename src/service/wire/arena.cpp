// arena.cpp - makes, grows and checks an arena; passes progress through its first page.
#include "service/wire/arena.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

constexpr std::uint64_t first_bytes = std::uint64_t{1} << 16;
constexpr std::uint64_t page = 4096;

using Words = std::array<std::uint64_t, progress_words>;

} // namespace

Arena::Arena() : file_(new_shared_file())
{
    extend_file(file_.get(), 0, control_bytes);
    control_ = map_file(file_.get(), 0, control_bytes);
    new (control_.get()) Control{};
}

Arena::Arena(File file) : file_(std::move(file))
{
    if (!file_.is_open() || !is_safe(file_.get(), control_bytes))
        throw Error(PGKM_INVALID, "the client sent no arena");
    control_ = map_file(file_.get(), 0, control_bytes);
}

void Arena::grow(std::uint64_t bytes)
{
    if (bytes <= this->bytes())
        return;
    // Doubled, so that a sequence of calls seldom maps anew.
    const std::uint64_t wanted = std::max({bytes, 2 * this->bytes(), first_bytes});
    const std::uint64_t total = (wanted + page - 1) / page * page;
    extend_file(file_.get(), control_bytes + this->bytes(), control_bytes + total);
    arena_ = Mapping(); // before the next one is mapped; with its size, which = {} would leave
    arena_ = map_file(file_.get(), control_bytes, total);
}

void Arena::follow(std::uint64_t bytes)
{
    if (bytes == this->bytes())
        return;
    if (bytes > INT64_MAX - control_bytes || !is_safe(file_.get(), control_bytes + bytes))
        throw Error(PGKM_INVALID, "the arena is shorter than the client says");
    arena_ = Mapping();
    arena_ = map_file(file_.get(), control_bytes, bytes);
}

void Arena::write_progress(const PgkmProgress &progress) const
{
    Progress told = {
        progress.shift, progress.problem, progress.iteration, progress.bytes_moved, progress.devices, {}, {}};
    std::strncpy(told.phase, progress.phase == nullptr ? "" : progress.phase, sizeof told.phase - 1);
    pack_names(progress.chosen, &told.chosen);
    const auto words = std::bit_cast<Words>(told);
    Control &to = control();
    const std::uint32_t sequence = to.sequence.load(std::memory_order_relaxed);
    to.sequence.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < progress_words; ++i)
        to.progress[i].store(words[i], std::memory_order_relaxed);
    to.sequence.store(sequence + 2, std::memory_order_release);
}

bool Arena::read_progress(PgkmProgress *progress, std::uint32_t *last_sequence) const
{
    const Control &from = control();
    const std::uint32_t before = from.sequence.load(std::memory_order_acquire);
    if (before == *last_sequence || before % 2 != 0)
        return false;
    Words words;
    for (std::size_t i = 0; i < progress_words; ++i)
        words[i] = from.progress[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (from.sequence.load(std::memory_order_relaxed) != before)
        return false;
    *last_sequence = before;
    auto told = std::bit_cast<Progress>(words);
    told.phase[sizeof told.phase - 1] = '\0';
    *progress = {static_name(told.phase),    told.problem,     told.iteration, told.shift,
                 static_names(&told.chosen), told.bytes_moved, told.devices};
    return told.phase[0] != '\0';
}

} // namespace pgkm::service

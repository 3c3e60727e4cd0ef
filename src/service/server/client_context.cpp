// client_context.cpp - brings a client's rows to a device and runs its calls there, in turn with others.
#include "service/server/client_context.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "backend/spread/spread.hpp"
#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

// Calls of fewer terms than this (rows x features x clusters x passes), about a millisecond of a device, never wait for
// a long one's end.
constexpr double small_work = 1e9;

// A client that has waited so long for device memory takes it from rows that no call came for.
constexpr auto pressure_after = std::chrono::milliseconds(100);
constexpr auto idle_rows = std::chrono::milliseconds(1000);

// Beside the rows a fit keeps distances, labels, an order of the rows, and copies of rows and
// centroids in the layout of its kernels.
std::uint64_t memory_for(const ClientRows &rows)
{
    constexpr std::uint64_t per_row = 48, per_job = std::uint64_t{64} << 20;
    return 4 * rows.bytes() + per_row * static_cast<std::uint64_t>(rows.points().n) + per_job;
}

int cancelled_callback(void *client)
{
    return static_cast<const ClientContext *>(client)->is_cancelled() ? 1 : 0;
}

void progress_callback(void *client, const PgkmProgress *progress)
{
    static_cast<const ClientContext *>(client)->arena().write_progress(*progress);
}

} // namespace

ClientContext::ClientContext(ServerState &state, const std::atomic<bool> &hung_up, const OpenRequest &request,
                             File arena)
    : state_(state), hung_up_(hung_up), options_(request), arena_(std::move(arena)), table_(&state.table)
{
    find_places();
    // Strategies that the backend does not have are told at once; otherwise it is opened with the
    // memory that its rows get.
    static constexpr StrategyNames automatic = {};
    if (std::memcmp(&request.tuning, &automatic, sizeof automatic) != 0)
        open_backend(request.device_memory_limit);
    state_.add(this);
}

ClientContext::~ClientContext()
{
    state_.remove(this);
    unload();
    table_->close(context_);
}

void ClientContext::find_places()
{
    const std::int32_t count = std::clamp(options_.n_devices, 0, PGKM_MOST_DEVICES);
    ordinals_ =
        count == 0 ? std::vector<std::int32_t>() : state_.devices.resolve({options_.devices, options_.devices + count});
    const bool any = count > 0 && options_.devices[0] < 0;
    if (ordinals_.size() == 1) {
        options_.device = any ? -1 : ordinals_[0];
        ordinals_.clear();
    }
    std::map<std::int32_t, std::uint64_t> parts;
    for (const std::int32_t ordinal : ordinals_)
        ++parts[ordinal];
    for (const auto &[ordinal, own] : parts)
        places_.push_back({ordinal, own});
    if (places_.empty())
        places_.push_back({options_.device, 1});
    std::uint64_t on = 0;
    for (const Place &place : places_)
        on |= std::uint64_t{1} << state_.devices.choose(place.ordinal, 0).index;
    on_.store(on);
}

bool ClientContext::is_cancelled() const
{
    return hung_up_.load(std::memory_order_relaxed) || state_.has_failed() || client_cancelled();
}

void ClientContext::raise(PgkmStatus status, const PgkmError &error)
{
    if (status == PGKM_DEVICE_ERROR)
        state_.fail(error.text);
    throw Error(status, error.text);
}

void ClientContext::open_backend(std::uint64_t device_memory)
{
    table_->close(context_);
    context_ = nullptr;
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.device = grants_.empty() ? state_.devices.choose(options_.device, 0).ordinal : grants_[0].device->ordinal;
    const bool several = options_.n_devices > 1; // whose calls may be of the same rows, though one device was found
    const std::vector<std::int32_t> list = ordinals_.empty() ? std::vector{open.device} : ordinals_;
    open.devices = list.data();
    open.n_devices = static_cast<std::int32_t>(list.size());
    open.threads = options_.threads;
    open.most_threads = options_.most_threads;
    open.memory_limit = options_.memory_limit;
    open.device_memory_limit = device_memory;
    open.tuning = view_names(&options_.tuning);
    open.host = {cancelled_callback, progress_callback, this};
    PgkmError error = {};
    table_ = several ? spread::table() : &state_.table;
    const PgkmStatus status =
        several ? spread::open(state_.table, open, &context_, &error) : state_.table.open(&open, &context_, &error);
    if (status != PGKM_OK)
        raise(status, error);
}

// Runs a call of the table when it is this client's turn on all its devices.
template <typename Body>
PgkmStatus ClientContext::in_turn(double work, PgkmError *error, Body &&body)
{
    const bool small = work < small_work;
    std::size_t turns = 0;
    PgkmStatus status = guarded(error, [&] {
        for (; turns < grants_.size(); ++turns)
            grants_[turns].device->scheduler.begin(small, [this] { return is_cancelled(); });
    });
    if (status == PGKM_OK)
        status = body();
    while (turns-- > 0)
        grants_[turns].device->scheduler.end(small);
    return status;
}

std::uint64_t ClientContext::most_memory() const
{
    std::uint64_t largest = UINT64_MAX;
    for (const Place &place : places_)
        largest = std::min(largest, state_.devices.largest_reservation(place.ordinal) / place.parts);
    return options_.device_memory_limit == 0 ? largest : std::min(largest, options_.device_memory_limit);
}

// Of each part. A fair share is in nobody's way; the limit of this client's own context holds.
std::uint64_t ClientContext::wanted_memory() const
{
    std::uint64_t wanted = memory_for(*rows_);
    if (!ordinals_.empty()) // some calls bring all rows to the first one
        wanted = wanted / ordinals_.size() + rows_->bytes();
    for (const Place &place : places_)
        wanted = std::max(wanted, state_.devices.fair_share(place.ordinal) / place.parts);
    return std::min(wanted, most_memory());
}

// The rows onto their devices, with so much memory for each part and its fits, or what can be had.
void ClientContext::bring_rows(std::uint64_t device_memory)
{
    drop_rows();
    try {
        const Clock::time_point begin = Clock::now();
        std::uint64_t on = 0;
        memory_ = UINT64_MAX;
        for (const Place &place : places_) {
            grants_.push_back(state_.devices.reserve(place.ordinal, device_memory * place.parts, [&](Device &device) {
                if (Clock::now() - begin > pressure_after)
                    state_.drop_idle_rows(device, idle_rows, this);
                return is_cancelled();
            }));
            memory_ = std::min(memory_, grants_.back().reservation.bytes / place.parts);
            on |= std::uint64_t{1} << grants_.back().device->index;
        }
        on_.store(on);
        open_backend(memory_);
        PgkmError error = {};
        const PgkmStatus status = in_turn(static_cast<double>(rows_->bytes()), &error,
                                          [&] { return table_->load(context_, &rows_->points(), &data_, &error); });
        if (status != PGKM_OK)
            raise(status, error);
    } catch (...) {
        drop_rows(); // what is reserved so far, which nobody else could take
        throw;
    }
}

// The rows were brought with too little memory for what is to be done with them: once more with
// more, if there is more to be had. Another client may have to end first.
bool ClientContext::bring_again()
{
    const std::uint64_t had = memory_;
    if (had >= most_memory())
        return false;
    drop_rows();
    bring_rows(std::min(std::min(had, UINT64_MAX / 4) * 4, most_memory()));
    return memory_ > had;
}

void ClientContext::drop_rows()
{
    table_->unload(data_);
    data_ = nullptr;
    for (const Devices::Grant &grant : grants_)
        grant.device->scheduler.give_back(grant.reservation);
    grants_.clear();
    memory_ = 0;
}

void ClientContext::drop_if_idle(const Device &device, std::chrono::milliseconds idle)
{
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && is_on(device) && data_ != nullptr && Clock::now() - last_used_ > idle)
        drop_rows();
}

void ClientContext::load(const LoadRequest &request, File passed)
{
    unload();
    const std::lock_guard<std::mutex> lock(mutex_);
    rows_ = std::make_unique<ClientRows>(request, std::move(passed));
    try {
        bring_rows(wanted_memory());
    } catch (...) {
        rows_.reset();
        throw;
    }
    last_used_ = Clock::now();
}

void ClientContext::unload()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_rows();
    rows_.reset();
}

void ClientContext::call(const CallRequest &request, std::uint64_t arena_bytes)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (rows_ == nullptr)
        refuse("a call before any rows");
    arena_.follow(arena_bytes);
    std::optional<Problems> problems(std::in_place, request, rows_->points(), arena_);
    if (data_ == nullptr)
        bring_rows(wanted_memory());
    PgkmError error = {};
    const auto run = [&] {
        return in_turn(problems->work(), &error, [&] { return problems->run(*table_, data_, &error); });
    };
    PgkmStatus status = run();
    while (status == PGKM_LIMIT && bring_again()) {
        problems.emplace(request, rows_->points(), arena_); // as they were
        status = run();
    }
    last_used_ = Clock::now();
    if (status == PGKM_OK || request.function == Function::reduce) // a reduction that fails says where
        problems->write_back();
    if (status != PGKM_OK)
        raise(status, error);
}

} // namespace pgkm::service

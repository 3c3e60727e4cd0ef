// arena.hpp - the anonymous shared memory of one connection: a Control block, then the arena.
#pragma once

#include "service/wire/mapping.hpp"
#include "service/wire/protocol.hpp"

namespace pgkm::service {

// One end's view of it.
class Arena {
  public:
    // The client's end: makes it.
    Arena();
    // The service's end: takes what came with Op::open. Throws Error(PGKM_INVALID).
    explicit Arena(File file);

    Control &control() const { return *reinterpret_cast<Control *>(control_.get()); }
    char *get() const { return arena_.get(); }
    std::uint64_t bytes() const { return arena_.get_deleter().bytes; }
    int fd() const { return file_.get(); }

    // The client's end: room for so many bytes.
    void grow(std::uint64_t bytes);
    // The service's end: as large as the client says that it is. Throws Error(PGKM_INVALID).
    void follow(std::uint64_t bytes);

    // One writer; readers get a whole line or, while one is being written, the one before.
    void write_progress(const PgkmProgress &progress) const;
    bool read_progress(PgkmProgress *progress, std::uint32_t *last_sequence) const;

  private:
    File file_;
    Mapping control_;
    Mapping arena_;
};

} // namespace pgkm::service

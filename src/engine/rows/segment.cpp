// segment.cpp - memory of this process that the service can map, too.
#include <sys/mman.h>
#include <unistd.h>

#include "engine/calculations.h"
#include "numeric/error.hpp"
#include "service/wire/mapping.hpp"

PgkmStatus pgkm_segment_create(uint64_t bytes, PgkmSegment *segment, PgkmError *error)
{
    *segment = {};
    return pgkm::guarded(error, [&] {
        pgkm::service::File file = pgkm::service::new_shared_file();
        if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
            throw pgkm::Error(PGKM_OUT_OF_MEMORY, "shared memory for rows could not be made");
        void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (base == MAP_FAILED)
            throw pgkm::Error(PGKM_OUT_OF_MEMORY, "shared memory for rows could not be mapped");
        *segment = {file.release(), base, bytes};
    });
}

void pgkm_segment_free(PgkmSegment *segment)
{
    if (segment->file == 0)
        return;
    munmap(segment->base, segment->bytes);
    close(segment->file);
    *segment = {};
}

int pgkm_segment_fill(const PgkmSegment *segment, uint64_t offset, uint64_t bytes)
{
    return pgkm::guarded(nullptr, [&] { pgkm::service::extend_file(segment->file, offset, offset + bytes); }) ==
           PGKM_OK;
}

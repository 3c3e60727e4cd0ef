/*
 * area.cpp - memory for rows in an area of dynamic shared memory (dsa).
 */
#include "pg/shared/area.h"

#include "pg/compat.h"
#include "pg/shared/pages.h"

/* An area grows by segments, each at most as large as all before. Other processes may make one at the same moment. */
bool shared_area_has_room(dsa_area *area, dsa_pointer last, Size bytes)
{
    return pgkm_fits_shared_memory((double)bytes + 2 * (double)pgkm_area_bytes(area, last));
}

dsa_pointer shared_area_allocate(dsa_area *area, Size bytes)
{
    const dsa_pointer place =
        dsa_allocate_extended(area, bytes, DSA_ALLOC_NO_OOM | (bytes >= MaxAllocSize ? DSA_ALLOC_HUGE : 0));

    /* The first touch of memory costs more than filling it. */
    if (DsaPointerIsValid(place))
        shared_populate((char *)dsa_get_address(area, place), bytes);
    return place;
}

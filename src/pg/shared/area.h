/*
 * area.h - memory for rows in an area of dynamic shared memory (dsa).
 */
#ifndef PGKM_PG_SHARED_AREA_H
#define PGKM_PG_SHARED_AREA_H

extern "C" {
#include "postgres.h"
#include "utils/dsa.h"
}

/* Whether the system has room for so many bytes more in an area. `last`: something that lies in the area's last
 * segment, as far as this process knows. */
bool shared_area_has_room(dsa_area *area, dsa_pointer last, Size bytes);

/* Memory whose pages are there already; InvalidDsaPointer where the area gets none. */
dsa_pointer shared_area_allocate(dsa_area *area, Size bytes);

#endif

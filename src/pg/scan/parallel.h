/*
 * parallel.h - a direct scan by several processes.
 */
#ifndef PGKM_PG_SCAN_PARALLEL_H
#define PGKM_PG_SCAN_PARALLEL_H

#include "pg/scan/reader.h"

/*
 * Reads what is left of the scan together with up to n_workers workers. Returns all rows in `context`, with
 * those that the leader's reader had read before. The reader takes notes, and plan->d is known.
 * *launched: how many workers came. Where some did, the rows lie in shared memory and have a crew for
 * scan_dismiss; otherwise they lie where the reader collects them. Errors as of table_select; 55000 when
 * shared memory is gone.
 */
TableRows *scan_parallel(ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context, int32 *launched);

#endif

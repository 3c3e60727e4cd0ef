/*
 * parallel.h - a direct scan by several processes.
 */
#ifndef PGKM_PG_SCAN_PARALLEL_H
#define PGKM_PG_SCAN_PARALLEL_H

#include "pg/scan/reader.h"

/*
 * Reads what is left of the scan together with up to n_workers workers and returns all
 * rows, those that the leader's reader had read before included. The reader takes notes,
 * and plan->d is known. When no worker is free the rows stay where the reader collects them.
 * *launched: how many workers came. Where some did, the rows have a crew, for scan_dismiss.
 */
TableRows *scan_parallel(ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context, int32 *launched);

#endif

/*
 * batch.h - fits the groups of a hash aggregate together.
 *
 * A hash aggregate has all groups of its table complete before it asks for the first result. So the first
 * final call fits them all, up to some thousand, in one job. Its threads, or a GPU, share out groups each of
 * which is too small for them. The calls that follow find their results. Each result is the same bits as in
 * a fit of that group alone.
 *
 * Groups of a sorted or plain aggregate, of the sorted phases of GROUPING SETS and of a window are not all
 * complete when the first result is asked for. They are fitted one by one.
 */
#ifndef PGKM_PG_AGGREGATE_BATCH_H
#define PGKM_PG_AGGREGATE_BATCH_H

#include "pg/aggregate/aggregate.h"

/* Takes note of a state that the transition or combine function called with `fcinfo` made in `context`. */
void pgkm_batch_enlist(FunctionCallInfo fcinfo, MemoryContext context, AggregateState *state);

/* Fits the state together with others that are complete, unless an earlier call did; for the final function
 * called with `fcinfo`. False when it has to be fitted alone. Errors as of pgkm_run_job. */
bool pgkm_batch_fit(FunctionCallInfo fcinfo, AggregateState *state);

#endif

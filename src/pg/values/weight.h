/*
 * weight.h - the weight of a row among the arguments of a transition function.
 */
#ifndef PGKM_PG_VALUES_WEIGHT_H
#define PGKM_PG_VALUES_WEIGHT_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

/* 1 where the call has no such argument, 0 for NULL. 22023 for a weight that is negative or not finite, 22003 for one
 * that is too large. */
double pgkm_weight_argument(FunctionCallInfo fcinfo, int number);

#endif

/*
 * object.h - reduction objects as the user gives them: arguments of a function, or JSON objects.
 */
#ifndef PGKM_PG_REDUCE_OBJECT_H
#define PGKM_PG_REDUCE_OBJECT_H

#include "pg/reduce/lower.h"

extern "C" {
#include "utils/jsonb.h"
}

struct ReduceObjects {
    ReduceObject *objects;
    int n_objects;
    ReduceLets lets;
    int32 end; /* of the places of all texts */
};

/* The texts of an object: index, value, cells, op, filter, key. */
#define REDUCE_TEXTS 6
ReduceText *reduce_object_text(ReduceObject *object, int i);

/* One object, of arguments from there on, in that order; behind them its lets. */
ReduceObjects *reduce_objects_of_arguments(FunctionCallInfo fcinfo, int first);

/* One of a JSON object with those keys and "let"; *exact is the value of its key "exact", where it has one. */
ReduceObjects *reduce_objects_of_definition(Jsonb *definition, bool *exact);

/* Those of a JSON object of such objects. */
ReduceObjects *reduce_objects_of_jsonb(Jsonb *objects);

/* Adds the expressions of a JSON object. */
void reduce_objects_let(ReduceObjects *objects, Jsonb *lets);

/* Parses the texts, and checks what goes with what: 22023. */
void reduce_objects_parse(ReduceObjects *objects);

/* The text that holds the place. */
const ReduceText *reduce_objects_find(const ReduceObjects *objects, int32 place);

#endif

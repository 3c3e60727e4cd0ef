/*
 * object.h - a reduction as the user gives it: by arguments of a function, or as a JSON value.
 */
#ifndef PGKM_PG_REDUCE_OBJECT_H
#define PGKM_PG_REDUCE_OBJECT_H

#include "pg/reduce/parse.h"

extern "C" {
#include "fmgr.h"
#include "utils/jsonb.h"
}

/* The texts of an object: index, value, cells, op, filter, key. */
#define REDUCE_TEXTS 6

/* A reduction of one object or several, and the trees of its texts. */
struct ReduceSource {
    PgkmObjectTree *objects;
    const char **object_names; /* NULL: there is one, without a name */
    int n_objects;
    PgkmLet *lets;
    int n_lets;
    bool exact;
    ReduceTexts texts;
};

/* Calls visit(name, value) for each field of a JSON object. */
template <typename Visit>
static void reduce_each_field(JsonbContainer *object, Visit visit)
{
    JsonbIterator *iterator = JsonbIteratorInit(object);
    JsonbIteratorToken token;
    JsonbValue value;
    const char *name = NULL;

    while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE) {
        if (token == WJB_KEY)
            name = pnstrdup(value.val.string.val, value.val.string.len);
        else if (token == WJB_VALUE)
            visit(name, &value);
    }
}

/* Texts are parsed as they are read. What does not go with what is 22023. */

/* One object, of a JSON object with the texts, let and exact. */
void reduce_read_value(ReduceSource *source, Jsonb *value);

/* Such a value, of arguments from there on. */
Datum reduce_value_of_arguments(FunctionCallInfo fcinfo, int first);

/* Those of a JSON object of objects, each with its texts. */
void reduce_read_objects(ReduceSource *source, Jsonb *objects);

/* NULL is no object. */
void reduce_read_let(ReduceSource *source, JsonbContainer *let);

#endif

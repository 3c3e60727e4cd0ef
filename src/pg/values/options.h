/*
 * options.h - options of an algorithm as tables: kmeans_options, gmm_options and pca_options.
 *
 * A table says of each field what it takes and where it lies in the engine's struct. From that the
 * same few functions read options, check them, return them and compare them.
 */
#ifndef PGKM_PG_OPTIONS_H
#define PGKM_PG_OPTIONS_H

#include "pg/values/composite.h"

#include "engine/api.h"

/* Words for the values of an enumeration, the default first. Of several words for a value the last is its name. */
struct PgkmWord {
    const char *word;
    int32 value;
};

struct PgkmWords {
    const PgkmWord *words;
    int count;
    const char *takes; /* for messages: "must be ..." */
    const char *hint;
};

/* What a field takes, and the C type that holds it. */
enum PgkmTakes {
    PGKM_TAKES_WORD,    /* one of its words: int32 */
    PGKM_TAKES_COUNT,   /* at least 1: int32 */
    PGKM_TAKES_AMOUNT,  /* finite, at least 0: double */
    PGKM_TAKES_SHARE,   /* above 0 and whole, or below 1: double, 0 for NULL */
    PGKM_TAKES_SEED,    /* any: uint64 */
    PGKM_TAKES_SWITCH,  /* true or false: int32 */
    PGKM_TAKES_MATRIX,  /* an array of two dimensions: PgkmGiven */
    PGKM_TAKES_ARRAY,   /* an array of one to three dimensions: PgkmGiven */
    PGKM_TAKES_SHARES,  /* an array of one dimension: of each value as a share, or 0: PgkmGiven */
    PGKM_TAKES_WEIGHT,  /* above 0: double, 0 for NULL */
    PGKM_TAKES_WEIGHTS, /* an array of one dimension, values of at least 0: PgkmGiven */
    PGKM_TAKES_SIZE,    /* at least 1: int32, 0 for NULL */
    PGKM_TAKES_MODEL    /* a model, by the field's function `read`: PgkmGivenModel */
};

struct PgkmOptionsType {
    PgkmCompositeType composite;
    void (*set_default)(void *options);
    /* What options say about each other: 22023, or the values that follow; or NULL. */
    void (*settle)(void *options) = NULL;
};

/* The options of any algorithm; plain data but for pointers to arrays. */
union PgkmAnyOptions {
    PgkmOptions kmeans;
    PgkmMixtureOptions mixture;
    PgkmPcaOptions pca;
};

/* Functions below take the engine's struct of the type as `options`. */

/* Reads the fields, in their order, which may also be arguments of a function; NULL means the
 * default. Arrays are copied into `context`; NULL: they stay where they are. 22023 naming the option and what it takes.
 * An array's shape against k and d is checked by the fit. */
void pgkm_options_fields(const PgkmOptionsType *type, const NullableDatum *fields, MemoryContext context,
                         void *options);

/* The fields of a composite, for pgkm_options_fields; NULLs from SQL's NULL. */
void pgkm_options_open(const PgkmOptionsType *type, const NullableDatum *composite, NullableDatum *fields);

/* 22023 where this option is not the default: the function cannot use it. */
void pgkm_options_refuse(const PgkmOptionsType *type, const void *options, const char *option, const char *function);

/* The same from a composite, or the defaults from SQL's NULL. Checks values, too: a ROW(...) that is
 * cast to the type does not pass through the type's function. */
void pgkm_options_read(const PgkmOptionsType *type, const NullableDatum *composite, MemoryContext context,
                       void *options);

/* The function of the type's name: checks its arguments and returns them as a row, with defaults in
 * place of NULLs. */
Datum pgkm_options_make(FunctionCallInfo fcinfo, const PgkmOptionsType *type);

/* Appends the options as members of a JSON object. Of an array and a model it says that it was given. */
void pgkm_options_put_json(const PgkmOptionsType *type, const void *options, StringInfo json);

bool pgkm_options_same(const PgkmOptionsType *type, const void *a, const void *b);

/* The word for a value, and the value for a word; false when there is none. */
const char *pgkm_word_of(const PgkmWords *words, int32 value);
bool pgkm_word_find(const PgkmWords *words, const char *word, int32 *value);

/* The value of an argument that is such a word, or what NULL stands for. 22023 for another word. */
int32 pgkm_word_argument(const NullableDatum *argument, const char *name, const PgkmWords *words, int32 if_null);

/* 22023: the option must be what it takes; the hint says what the values mean. */
[[noreturn]] void pgkm_raise_option(const char *name, const char *takes, const char *hint = NULL);

#endif

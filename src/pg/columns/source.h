/*
 * source.h - what a model knows of the columns, or expressions, that its features come from: type kmeans_source.
 */
#ifndef PGKM_PG_COLUMNS_SOURCE_H
#define PGKM_PG_COLUMNS_SOURCE_H

#include "pg/columns/column.h"
#include "pg/values/composite_read.h"

/* How features are made of the values of a source. Types of one encoding may stand for one another. */
enum Encoding {
    ENCODING_NUMBER,
    ENCODING_DATE,     /* a point in time: date, timestamp, timestamptz; days since 1970 */
    ENCODING_INTERVAL, /* a length of time: interval, time; days */
    ENCODING_CATEGORY, /* a feature for each level */
    ENCODING_VECTOR    /* an array or vector; it is the only source */
};

extern const PgkmWords encoding_words;

/* That of a column, and a type that has it. */
Encoding encoding_of(const TableColumn *column);
const char *encoding_type(Encoding encoding);

struct Source {
    const char *name; /* of the column, or the expression */
    bool is_expression;
    Encoding encoding;
    int32 width;  /* features */
    Datum levels; /* of a category: text[], in the order of their bytes, NULL behind them if it is one; else 0 */
    const char *type = NULL; /* of its values; NULL: not known */
};

struct Sources {
    int count;
    Source *list;
    bool is_real; /* the fit has rounded rows to float32 */
};

/* The fields `features` (text[]) and `sources` (kmeans_source[]) of an origin: an element for each column. In the
 * current memory context. */
Datum sources_names(const TableColumn *columns, int count);
void sources_check_type(Oid type);
Datum sources_build(const TableColumn *columns, int count, const Datum *levels, Oid type);

/* The sources of a model of d features from these fields, in the current memory context; NULL where it has no names of
 * all. A model from before the field `sources`, or made by hand without it, has numbers, or one vector. 22023 for
 * fields that do not fit, of `of`. */
const Sources *sources_read(const PgkmModelFields *of, const NullableDatum *names, const NullableDatum *sources,
                            int32 d);

/* The source of feature f, from 0, which becomes its number in it. */
const Source *sources_of_feature(const Sources *sources, int32 *f);

/* The name of feature f, from 0: that of its source, with the element of an array, or the level of a category. */
const char *sources_feature_name(const Sources *sources, int32 f);

/* A mean of a feature of this source (NULL: not known) as people read it: a share of a level or a boolean, a date, a
 * time, a length of time, or a number. A number has so many digits of `spread`, how far its values lie apart; 0: not
 * known. Settings do not matter: dates are ISO's, times with a zone in UTC. */
const char *source_value_text(const Source *source, double value, double spread, int digits);

#endif

/*
 * source.cpp - the sources of a model's features: made of columns, read and checked.
 */
#include "pg/columns/source.h"

#include "pg/compat.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

static const PgkmWord words[] = {{"number", ENCODING_NUMBER},
                                 {"date", ENCODING_DATE},
                                 {"interval", ENCODING_INTERVAL},
                                 {"category", ENCODING_CATEGORY},
                                 {"vector", ENCODING_VECTOR}};

const PgkmWords encoding_words = {words, lengthof(words), "'number', 'date', 'interval', 'category' or 'vector'", NULL};

enum SourceField { SOURCE_TYPE, SOURCE_ENCODING, SOURCE_LEVELS, SOURCE_EXPRESSION };

static const PgkmField fields[] = {
    {"type", TEXTOID}, {"encoding", TEXTOID}, {"levels", TEXTARRAYOID}, {"expression", BOOLOID}};
static const PgkmCompositeType source_type = {"kmeans_source", fields, lengthof(fields)};

Encoding encoding_of(const TableColumn *column)
{
    if (column->kind == COLUMN_CATEGORY)
        return ENCODING_CATEGORY;
    if (column->kind != COLUMN_NUMBER)
        return ENCODING_VECTOR;
    switch (column->type) {
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return ENCODING_DATE;
    case TIMEOID:
    case INTERVALOID:
        return ENCODING_INTERVAL;
    default:
        return ENCODING_NUMBER;
    }
}

const char *encoding_type(Encoding encoding)
{
    static const char *const types[] = {"double precision", "timestamp", "interval", "text", "real[]"};

    return types[encoding];
}

/* --- made --- */

Datum sources_names(const TableColumn *columns, int count)
{
    return pgkm_text_array(count, [columns](int i) { return columns[i].name; });
}

static const char *type_name(const TableColumn *column)
{
    switch (column->kind) {
    case COLUMN_ARRAY:
        return format_type_be(get_array_type(column->type));
    case COLUMN_VECTOR:
        return "vector";
    case COLUMN_HALFVEC:
        return "halfvec";
    case COLUMN_CAST:
        return "real[]";
    case COLUMN_BITS:
        return "bit varying";
    default:
        return format_type_be(column->type);
    }
}

void sources_check_type(Oid type)
{
    const TupleDesc desc = lookup_rowtype_tupdesc(type, -1);

    pgkm_check_type(desc, &source_type);
    ReleaseTupleDesc(desc);
}

Datum sources_build(const TableColumn *columns, int count, const Datum *levels, Oid type)
{
    const TupleDesc desc = lookup_rowtype_tupdesc(type, -1);
    Datum *const made = (Datum *)palloc(count * sizeof(Datum));

    for (int i = 0; i < count; ++i) {
        const bool is_category = columns[i].kind == COLUMN_CATEGORY;

        made[i] =
            pgkm_composite_make(desc, {type_name(&columns[i]), pgkm_word_of(&encoding_words, encoding_of(&columns[i])),
                                       is_category ? levels[i] : PointerGetDatum(construct_empty_array(TEXTOID)),
                                       columns[i].expression != NULL});
    }
    ReleaseTupleDesc(desc);
    return PointerGetDatum(construct_array(made, count, type, -1, false, TYPALIGN_DOUBLE));
}

/* --- read --- */

[[noreturn]] static void raise_sources(const PgkmModelFields *of, const char *must)
{
    pgkm_raise_field(of, "origin", must);
}

/* Its levels, or else where they are not in the order of their bytes, each once. */
static int32 check_levels(const PgkmModelFields *of, ArrayType *levels)
{
    static const char must[] = "have levels of categories, at least one, in the order of their bytes, each once";
    Datum *texts;
    bool *nulls;
    int n;

    if (ARR_NDIM(levels) != 1 || ARR_LBOUND(levels)[0] != 1)
        raise_sources(of, must);
    deconstruct_array(levels, TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls, &n);
    for (int i = 0; i < n; ++i) {
        if (nulls[i] && i != n - 1)
            raise_sources(of, must);
        if (i > 0 && !nulls[i] &&
            !category_is_before(category_key(TEXTOID, texts[i - 1], NULL), category_key(TEXTOID, texts[i], NULL)))
            raise_sources(of, must);
    }
    return n;
}

/* One of them, but for its name. */
static void read_source(const PgkmModelFields *of, Datum composite, int32 d, Source *source, bool *is_real)
{
    NullableDatum values[PGKM_MOST_FIELDS];
    int32 encoding;

    pgkm_read_fields(composite, &source_type, values);
    if (values[SOURCE_ENCODING].isnull || values[SOURCE_TYPE].isnull ||
        !pgkm_word_find(&encoding_words, TextDatumGetCString(values[SOURCE_ENCODING].value), &encoding))
        raise_sources(of, psprintf("have sources of a type whose encoding is %s", encoding_words.takes));

    const char *const type = TextDatumGetCString(values[SOURCE_TYPE].value);

    source->type = type;
    source->is_expression = !values[SOURCE_EXPRESSION].isnull && DatumGetBool(values[SOURCE_EXPRESSION].value);
    source->encoding = (Encoding)encoding;
    source->width = encoding == ENCODING_VECTOR ? d : 1;
    if (encoding == ENCODING_CATEGORY) {
        ArrayType *const levels = values[SOURCE_LEVELS].isnull ? construct_empty_array(TEXTOID)
                                                               : DatumGetArrayTypePCopy(values[SOURCE_LEVELS].value);

        source->levels = PointerGetDatum(levels);
        source->width = check_levels(of, levels);
    }
    *is_real = *is_real && (strcmp(type, "real") == 0 || strcmp(type, "real[]") == 0 ||
                            (encoding == ENCODING_VECTOR && strstr(type, "[]") == NULL));
}

const Sources *sources_read(const PgkmModelFields *of, const NullableDatum *names, const NullableDatum *sources,
                            int32 d)
{
    Datum *texts;
    Datum *composites = NULL;
    bool *nulls;
    int n;
    int n_sources = 0;
    int64 width = 0;

    if (names->isnull || ARR_NDIM(DatumGetArrayTypeP(names->value)) == 0)
        return NULL;
    if (ARR_NDIM(DatumGetArrayTypeP(names->value)) != 1)
        raise_sources(of, "name its features");
    deconstruct_array(DatumGetArrayTypeP(names->value), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls, &n);

    Sources *const read = (Sources *)palloc(sizeof(Sources));

    *read = {n, (Source *)palloc0(n * sizeof(Source)), false};
    for (int i = 0; i < n; ++i) {
        if (nulls[i])
            raise_sources(of, "name its features");
        read->list[i].name = TextDatumGetCString(texts[i]);
    }
    if (!sources->isnull) {
        ArrayType *const array = DatumGetArrayTypeP(sources->value);

        if (ARR_NDIM(array) > 1)
            raise_sources(of, "have as many sources as names of features");
        deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &composites, &nulls, &n_sources);
    }
    if (n_sources != 0 && n_sources != n)
        raise_sources(of, "have as many sources as names of features");
    read->is_real = n_sources > 0;
    for (int i = 0; i < n; ++i) {
        Source *const source = &read->list[i];

        if (n_sources == 0) {
            source->encoding = n == 1 && d > 1 ? ENCODING_VECTOR : ENCODING_NUMBER;
            source->width = n == 1 ? d : 1;
        } else if (nulls[i]) {
            raise_sources(of, "have sources that are not null");
        } else {
            read_source(of, composites[i], d, source, &read->is_real);
            if (source->encoding == ENCODING_VECTOR && n > 1)
                raise_sources(of, "have a vector as their only source");
        }
        width += source->width;
    }
    if (width != d)
        raise_sources(of, psprintf(n_sources > 0 ? "have sources of %d features, not of %lld"
                                                 : "name %d features, or one array of them, not %lld",
                                   d, (long long)width));
    return read;
}

static const char *level_name(const Source *source, int32 place)
{
    bool isnull;
    const Datum level =
        array_ref(DatumGetArrayTypeP(source->levels), 1, &(int &)(++place), -1, -1, false, TYPALIGN_INT, &isnull);

    return isnull ? psprintf("%s IS NULL", source->name)
                  : psprintf("%s = %s", source->name, TextDatumGetCString(level));
}

const Source *sources_of_feature(const Sources *sources, int32 *f)
{
    const Source *source = sources->list;

    for (; *f >= source->width; ++source)
        *f -= source->width;
    return source;
}

const char *sources_feature_name(const Sources *sources, int32 f)
{
    const Source *const source = sources_of_feature(sources, &f);

    if (source->encoding == ENCODING_CATEGORY)
        return level_name(source, f);
    return source->encoding == ENCODING_VECTOR ? psprintf("%s[%d]", source->name, f + 1) : source->name;
}

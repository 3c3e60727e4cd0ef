/*
 * levels.cpp - sets of levels, and rows of features instead of codes.
 */
#include "pg/columns/levels.h"

#include <algorithm>
#include <functional>

#include "pg/compat.h"
#include "pg/settings.h"

extern "C" {
#include "common/hashfn.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

/* So many levels of a column are counted for the error. */
#define COUNTED_LEVELS 1000

/* The levels of a column take at most so many bytes, which are no part of pg_kmeans.memory_limit. */
#define MOST_BYTES ((Size)4 * 1024 * 1024)

struct Level {
    CategoryKey key;
    CategoryKey text;
    uint32 hash;
};

/* The levels of one column: a list, and a table of their numbers by the hash of the key. */
struct LevelSet {
    Oid type;
    const char *name;
    bool is_given;   /* there are no others */
    int32 null_code; /* -1: NULL is no level */
    Size bytes;      /* of all levels */
    int32 n;         /* codes: levels, and NULL if it is one */
    int32 capacity;
    Level *list;
    int32 *table; /* twice as many slots; -1: empty */
};

struct Levels {
    MemoryContext context;
    int count;
    LevelSet *sets;
};

/* Of a value that is none of the levels that are given. */
#define NO_LEVEL (-1)

static CategoryKey copy_of(MemoryContext context, const CategoryKey &key)
{
    return {(const char *)memcpy(MemoryContextAlloc(context, key.length + 1), key.bytes, key.length), key.length};
}

/* --- one set --- */

static int32 *slot_of(const LevelSet *set, const CategoryKey &key, uint32 hash)
{
    const uint32 mask = 2 * set->capacity - 1;

    for (uint32 at = hash & mask;; at = (at + 1) & mask) {
        const int32 code = set->table[at];

        if (code < 0)
            return &set->table[at];

        const Level *const level = &set->list[code];

        if (level->hash == hash && level->key.length == key.length &&
            memcmp(level->key.bytes, key.bytes, key.length) == 0)
            return &set->table[at];
    }
}

static void make_room(Levels *levels, LevelSet *set)
{
    if (set->n < set->capacity)
        return;

    MemoryContext caller = MemoryContextSwitchTo(levels->context);

    set->capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
    set->list = (Level *)(set->list == NULL ? palloc(set->capacity * sizeof(Level))
                                            : repalloc(set->list, set->capacity * sizeof(Level)));
    set->table = (int32 *)palloc(2 * set->capacity * sizeof(int32));
    std::fill_n(set->table, 2 * set->capacity, -1);
    for (int32 i = 0; i < set->n; ++i)
        if (i != set->null_code)
            *slot_of(set, set->list[i].key, set->list[i].hash) = i;
    MemoryContextSwitchTo(caller);
}

/* The most levels that are counted, where more are too many. */
static int32 most_levels(void)
{
    return Max(pgkm_max_levels, COUNTED_LEVELS);
}

[[noreturn]] static void raise_too_many(const LevelSet *set, int32 n)
{
    const char *const found = n > most_levels() ? psprintf("more than %d", most_levels()) : psprintf("%d", n);

    ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
                    errmsg("\"%s\" has %s levels, of at most %d", set->name, found, pgkm_max_levels),
                    errhint("Each level becomes a feature. Name other columns, put rare levels together in a view, or "
                            "raise \"pg_kmeans.max_levels\".")));
    pg_unreachable();
}

[[noreturn]] static void raise_too_long(const LevelSet *set)
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("the levels of \"%s\" take more than %d MB", set->name, (int)(MOST_BYTES >> 20)),
                    errhint("Name another column, or an expression that shortens the texts, as 'left(%s, 100)'.",
                            quote_identifier(set->name))));
    pg_unreachable();
}

/* A new code, of a level with this key, or of NULL. */
static int32 add(Levels *levels, LevelSet *set, const CategoryKey *key, const CategoryKey *text, uint32 hash)
{
    const int32 code = set->n;

    if (code >= most_levels() && !set->is_given)
        raise_too_many(set, code + 1);
    make_room(levels, set);
    if (key == NULL) {
        set->list[code] = {};
        set->null_code = code;
    } else {
        set->bytes += text->length;
        if (set->bytes > MOST_BYTES && !set->is_given)
            raise_too_long(set);

        const CategoryKey own = copy_of(levels->context, *key);

        set->list[code] = {own, key == text ? own : copy_of(levels->context, *text), hash};
        *slot_of(set, own, hash) = code;
    }
    ++set->n;
    return code;
}

static uint32 hash_of(const CategoryKey &key)
{
    return hash_bytes((const unsigned char *)key.bytes, key.length);
}

/* A given level is found by its text, and others there are none. */
static int32 code_of_given(const LevelSet *set, const CategoryKey &text)
{
    if (set->capacity == 0)
        return NO_LEVEL;
    return *slot_of(set, text, hash_of(text));
}

static int32 code_of(Levels *levels, LevelSet *set, Datum value)
{
    char room[CATEGORY_ROOM];
    const CategoryKey key = category_key(set->type, value, room);

    if (set->is_given)
        return code_of_given(set, category_text(set->type, value, &key));

    const uint32 hash = hash_of(key);
    const int32 known = set->capacity == 0 ? -1 : *slot_of(set, key, hash);

    if (likely(known >= 0))
        return known;

    const CategoryKey text = category_text(set->type, value, &key);

    return add(levels, set, &key, text.bytes == key.bytes ? &key : &text, hash);
}

double levels_code(Levels *levels, int i, NullableDatum value)
{
    LevelSet *const set = &levels->sets[i];

    if (likely(!value.isnull))
        return code_of(levels, set, value.value);
    if (set->null_code < 0 && !set->is_given)
        return add(levels, set, NULL, NULL, 0);
    return set->null_code < 0 ? NO_LEVEL : set->null_code;
}

/* --- all of them --- */

static Levels *create(const TableColumn *columns, int count)
{
    Levels *const levels = (Levels *)palloc0(sizeof(Levels));

    levels->context = CurrentMemoryContext;
    levels->count = count;
    levels->sets = (LevelSet *)palloc0(count * sizeof(LevelSet));
    for (int i = 0; i < count; ++i) {
        levels->sets[i].type = columns[i].kind == COLUMN_CATEGORY ? columns[i].type : InvalidOid;
        levels->sets[i].name = columns[i].name;
        levels->sets[i].null_code = -1;
    }
    return levels;
}

static void add_text(Levels *levels, LevelSet *set, const char *bytes, int32 length)
{
    const CategoryKey text = {bytes, length};

    (void)add(levels, set, &text, &text, hash_of(text));
}

Levels *levels_create(const TableColumn *columns, int count, const Datum *given)
{
    Levels *const levels = create(columns, count);

    for (int i = 0; given != NULL && i < count; ++i) {
        Datum *texts;
        bool *nulls;
        int n;

        if (columns[i].kind != COLUMN_CATEGORY)
            continue;
        levels->sets[i].is_given = true;
        deconstruct_array(DatumGetArrayTypeP(given[i]), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls, &n);
        for (int j = 0; j < n; ++j)
            if (nulls[j])
                (void)add(levels, &levels->sets[i], NULL, NULL, 0);
            else
                add_text(levels, &levels->sets[i], VARDATA_ANY(texts[j]), (int32)VARSIZE_ANY_EXHDR(texts[j]));
    }
    return levels;
}

/* What stands before the levels of a set, each of which is a length and so many bytes of its text. */
struct SetHead {
    int32 n;
    int32 null_code;
    int32 is_given;
};

template <typename Put>
static void put_all(const Levels *levels, Put put)
{
    for (int i = 0; i < levels->count; ++i) {
        const LevelSet *const set = &levels->sets[i];
        const SetHead head = {set->n, set->null_code, set->is_given};

        put(&head, sizeof head);
        for (int32 j = 0; j < set->n; ++j) {
            const CategoryKey *const text = &set->list[j].text;

            put(&text->length, sizeof text->length);
            put(text->bytes, text->length);
        }
    }
}

Size levels_bytes(const Levels *levels)
{
    Size bytes = 0;

    put_all(levels, [&bytes](const void *, Size size) { bytes += size; });
    return bytes;
}

void levels_write(const Levels *levels, char *to)
{
    put_all(levels, [&to](const void *from, Size size) {
        if (size > 0)
            memcpy(to, from, size);
        to += size;
    });
}

Levels *levels_read(const TableColumn *columns, int count, const char *from)
{
    Levels *const levels = create(columns, count);

    for (int i = 0; i < count; ++i) {
        LevelSet *const set = &levels->sets[i];
        SetHead head;

        memcpy(&head, from, sizeof head);
        from += sizeof head;
        set->is_given = true; /* their number has been checked */
        for (int32 j = 0; j < head.n; ++j) {
            int32 length;

            memcpy(&length, from, sizeof length);
            from += sizeof length;
            if (j == head.null_code)
                (void)add(levels, set, NULL, NULL, 0);
            else
                add_text(levels, set, from, length);
            from += length;
        }
        set->is_given = head.is_given != 0;
    }
    return levels;
}

/* --- found --- */

/* The levels of column i of all processes, in the order of their bytes, NULL last. */
static Datum join_column(LevelsFound *found, Levels *const *of_processes, int n_processes, int i, int32 *width)
{
    const LevelSet *const first = &of_processes[0]->sets[i];
    int32 all = 0;
    bool has_null = false;

    for (int p = 0; p < n_processes; ++p)
        all += of_processes[p]->sets[i].n;

    CategoryKey *const texts = (CategoryKey *)palloc((all + 1) * sizeof(CategoryKey));
    CategoryKey *end = texts;

    for (int p = 0; p < n_processes; ++p) {
        const LevelSet *const set = &of_processes[p]->sets[i];

        has_null = has_null || set->null_code >= 0;
        for (int32 j = 0; j < set->n; ++j)
            if (j != set->null_code)
                *end++ = set->list[j].text;
    }
    std::sort(texts, end, category_is_before);
    end = std::unique(texts, end, std::not_fn(category_is_before));

    const int32 n_texts = (int32)(end - texts);

    *width = n_texts + has_null;
    if (*width > pgkm_max_levels && !first->is_given)
        raise_too_many(first, *width);
    for (int p = 0; p < n_processes; ++p) {
        const LevelSet *const set = &of_processes[p]->sets[i];
        int32 *const places = (int32 *)palloc((set->n + 1) * sizeof(int32));

        for (int32 j = 0; j < set->n; ++j)
            places[j] = j == set->null_code
                            ? n_texts
                            : (int32)(std::lower_bound(texts, end, set->list[j].text, category_is_before) - texts);
        found->places[p * found->count + i] = places;
    }

    Datum *const values = (Datum *)palloc0((*width + 1) * sizeof(Datum));
    bool *const nulls = (bool *)palloc0(*width + 1);
    int extent = *width;
    int bound = 1;

    for (int32 j = 0; j < n_texts; ++j)
        values[j] = PointerGetDatum(cstring_to_text_with_len(texts[j].bytes, texts[j].length));
    nulls[n_texts] = true;
    if (extent == 0)
        return PointerGetDatum(construct_empty_array(TEXTOID));
    return PointerGetDatum(construct_md_array(values, nulls, 1, &extent, &bound, TEXTOID, -1, false, TYPALIGN_INT));
}

LevelsFound *levels_join(const TableColumn *columns, Levels *const *of_processes, int n_processes)
{
    const int count = of_processes[0]->count;
    LevelsFound *const found = (LevelsFound *)palloc(sizeof(LevelsFound));
    int32 *const widths = (int32 *)palloc(count * sizeof(int32));
    Datum *const levels = (Datum *)palloc0(count * sizeof(Datum));

    *found = {count, 0, widths, levels, (int32 **)palloc0(n_processes * count * sizeof(int32 *))};
    for (int i = 0; i < count; ++i) {
        widths[i] = 1;
        if (columns[i].kind == COLUMN_CATEGORY)
            levels[i] = join_column(found, of_processes, n_processes, i, &widths[i]);
        found->d += widths[i];
    }
    return found;
}

void levels_expand(const LevelsFound *found, int process, const double *codes, int64 n, double *features)
{
    int32 *const *const places = found->places + (Size)process * found->count;

    for (int64 row = 0; row < n; ++row, codes += found->count)
        for (int i = 0; i < found->count; ++i) {
            if (places[i] == NULL) {
                *features++ = codes[i];
                continue;
            }
            std::fill_n(features, found->widths[i], 0.0);
            if (codes[i] >= 0)
                features[places[i][(int32)codes[i]]] = 1.0;
            features += found->widths[i];
        }
}

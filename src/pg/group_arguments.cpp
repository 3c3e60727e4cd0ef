/*
 * group_arguments.cpp - k and the options of a group of rows.
 */
#include "pg/group_arguments.h"

#include "pg/compat.h"
#include "pg/options.h"

/* The options as plain bytes; a value out of line, compressed or in memory is flattened. */
static const struct varlena *flat_options(Datum options)
{
    return pg_detoast_datum_packed((struct varlena *) DatumGetPointer(options));
}

void pgkm_group_begin(PgkmGroupArguments *group, MemoryContext context, const NullableDatum *k,
                      const NullableDatum *options, bool constant_options)
{
    memset(group, 0, sizeof *group);
    group->k = pgkm_check_k(k->isnull, k->isnull ? 0 : DatumGetInt64(k->value));
    group->constant_options = constant_options;
    if (options->isnull) {
        pgkm_options_default(&group->options);
        return;
    }
    pgkm_options_read(options->value, context, &group->options);
    if (constant_options)
        return;

    const struct varlena *const value = flat_options(options->value);

    group->key_size = VARSIZE_ANY(value);
    group->key = (char *) MemoryContextAlloc(context, group->key_size);
    memcpy(group->key, value, group->key_size);
}

static bool same_init_centroids(const PgkmOptions *a, const PgkmOptions *b)
{
    if (a->init != PGKM_INIT_GIVEN)
        return true;
    return a->init_rows == b->init_rows && a->init_columns == b->init_columns &&
           memcmp(a->init_centroids, b->init_centroids,
                  (Size) a->init_rows * a->init_columns * sizeof(double)) == 0;
}

static bool same_options(const PgkmOptions *a, const PgkmOptions *b)
{
    return a->init == b->init && a->n_init == b->n_init && a->max_iter == b->max_iter && a->tol == b->tol &&
           a->seed == b->seed && a->metric == b->metric && a->standardize == b->standardize &&
           same_init_centroids(a, b);
}

static void check_k(int64 a, int64 b)
{
    if (a != b)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be the same for all rows of a group, not %lld and %lld", (long long) a,
                               (long long) b)));
}

static void check_options(const PgkmOptions *a, const PgkmOptions *b)
{
    if (!same_options(a, b))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("options must be the same for all rows of a group")));
}

/* The options of a later row: equal bytes nearly always, else equal values, else an error. */
static void compare_options(const PgkmGroupArguments *group, const NullableDatum *options)
{
    PgkmOptions other;

    if (options->isnull) {
        if (group->key == NULL)
            return;
        pgkm_options_default(&other);
    } else {
        const struct varlena *const value = flat_options(options->value);

        if (group->key != NULL && VARSIZE_ANY(value) == group->key_size &&
            memcmp(group->key, value, group->key_size) == 0)
            return;
        pgkm_options_read(PointerGetDatum(value), CurrentMemoryContext, &other);
    }
    check_options(&group->options, &other);
}

void pgkm_group_check(const PgkmGroupArguments *group, const NullableDatum *k, const NullableDatum *options)
{
    if (unlikely(k->isnull || DatumGetInt64(k->value) != group->k))
        check_k(group->k, pgkm_check_k(k->isnull, k->isnull ? 0 : DatumGetInt64(k->value)));
    if (!group->constant_options)
        compare_options(group, options);
}

bool pgkm_group_same_options(const PgkmGroupArguments *a, const PgkmGroupArguments *b)
{
    return same_options(&a->options, &b->options);
}

void pgkm_group_check_equal(const PgkmGroupArguments *a, const PgkmGroupArguments *b)
{
    check_k(a->k, b->k);
    check_options(&a->options, &b->options);
}

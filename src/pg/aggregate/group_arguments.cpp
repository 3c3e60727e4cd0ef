/*
 * group_arguments.cpp - k and the options of a group of rows.
 */
#include "pg/aggregate/group_arguments.h"

extern "C" {
#include "nodes/primnodes.h"
#include "utils/datum.h"
}

/* The options as plain bytes; a value out of line, compressed or in memory is flattened. */
static struct varlena *flat_options(Datum options)
{
    return pg_detoast_datum_packed((struct varlena *)DatumGetPointer(options));
}

const char *pgkm_group_function(const PgkmGroupArguments *group)
{
    return group->k_last != 0 ? "kmeans_auto" : group->kind->name;
}

void pgkm_group_begin(PgkmGroupArguments *group, const FitKind *kind, MemoryContext context, const NullableDatum *k,
                      const NullableDatum *k_max, const NullableDatum *options, bool constant_options)
{
    const MemoryContext caller = MemoryContextSwitchTo(context);

    memset(group, 0, sizeof *group);
    group->kind = kind;
    if (k_max != NULL)
        pgkm_check_range(k, k_max, &group->k, &group->k_last);
    else
        group->k = pgkm_check_k(k);
    group->constant_options = constant_options;
    group->given = *options;
    if (!options->isnull) {
        const Datum flat = PointerGetDatum(flat_options(options->value));

        /* A constant lives as long as the query: all groups have one copy. Arrays stay in it. */
        group->given.value = constant_options ? flat : datumCopy(flat, false, -1);
    }
    pgkm_options_read(kind->options, &group->given, NULL, &group->options);
    for (const char *const *option = kind->of_one_k; k_max != NULL && *option != NULL; ++option)
        pgkm_options_refuse(kind->options, &group->options, *option, pgkm_group_function(group));
    MemoryContextSwitchTo(caller);
}

static void check_same_k(const char *name, int64 a, int64 b)
{
    if (a != b)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be the same for all rows of a group, not %lld and %lld", name, (long long)a,
                               (long long)b)));
}

static void check_k(const PgkmGroupArguments *group, int64 k, int64 k_last)
{
    check_same_k(group->k_last != 0 ? "k_min" : "k", group->k, k);
    check_same_k("k_max", group->k_last, k_last);
}

void pgkm_check_options(const FitKind *kind, const void *options, const void *other)
{
    if (!pgkm_options_same(kind->options, options, other))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("options must be the same for all rows of a group")));
}

/* The options of a later row: equal bytes nearly always, else equal values, else an error. */
static void compare_options(const PgkmGroupArguments *group, const NullableDatum *options)
{
    PgkmAnyOptions other;
    NullableDatum flat = *options;

    if (options->isnull && group->given.isnull)
        return;
    if (!options->isnull) {
        flat.value = PointerGetDatum(flat_options(options->value));
        if (!group->given.isnull && datum_image_eq(flat.value, group->given.value, false, -1))
            return;
    }
    pgkm_options_read(group->kind->options, &flat, CurrentMemoryContext, &other);
    pgkm_check_options(group->kind, &group->options, &other);
}

void pgkm_group_check(const PgkmGroupArguments *group, const NullableDatum *k, const NullableDatum *k_max,
                      const NullableDatum *options)
{
    const auto same = [](const NullableDatum *a, int64 b) { return !a->isnull && DatumGetInt64(a->value) == b; };

    if (unlikely(!same(k, group->k) || (k_max != NULL && !same(k_max, group->k_last)))) {
        PgkmGroupArguments other = {};

        if (k_max != NULL)
            pgkm_check_range(k, k_max, &other.k, &other.k_last);
        else
            other.k = pgkm_check_k(k);
        check_k(group, other.k, other.k_last);
    }
    if (!group->constant_options)
        compare_options(group, options);
}

bool pgkm_group_same_options(const PgkmGroupArguments *a, const PgkmGroupArguments *b)
{
    return a->kind == b->kind && pgkm_options_same(a->kind->options, &a->options, &b->options);
}

void pgkm_group_check_equal(const PgkmGroupArguments *a, const PgkmGroupArguments *b)
{
    check_k(a, b->k, b->k_last);
    pgkm_check_options(a->kind, &a->options, &b->options);
}

/* A parameter keeps its value while one scan lasts, and a group belongs to one scan. */
bool pgkm_is_constant_in_group(FunctionCallInfo fcinfo, int number)
{
    if (PG_NARGS() <= number)
        return true;

    const Aggref *call = AggGetAggref(fcinfo);

    /* NULL for a window function; a distributed planner's aggregate has arguments of its own. */
    if (call == NULL || list_length(call->args) != PG_NARGS() - 1)
        return false;

    const TargetEntry *entry = list_nth_node(TargetEntry, call->args, number - 1);

    return IsA(entry->expr, Const) || IsA(entry->expr, Param);
}

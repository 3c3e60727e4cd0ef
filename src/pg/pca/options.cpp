/*
 * options.cpp - pca_options: made by a function of that name, read from a composite.
 */
#include "pg/pca/pca.h"

#include <cmath>

#include "pg/compat.h"
#include "pg/values/composite.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_pca_options);
}

/* The fields of pca_options, which are the arguments of pca_options() too. */
enum PcaOptionField { OPTION_N_COMPONENTS, OPTION_WHITEN, OPTION_STANDARDIZE, OPTION_COUNT };

static const Oid field_types[OPTION_COUNT] = {FLOAT8OID, BOOLOID, BOOLOID};
static const PgkmCompositeType options_type = {"pca_options", field_types, OPTION_COUNT};

static double read_n_components(double value)
{
    const bool share = value > 0 && value < 1;
    const bool count = value >= 1 && value <= PG_INT32_MAX && value == std::floor(value);

    if (!share && !count)
        pgkm_raise_option("n_components",
                          "a whole number of at least 1, or a share of the variance between 0 and 1");
    return value;
}

void pgkm_pca_options_fields(const NullableDatum *fields, PgkmPcaOptions *options)
{
    memset(options, 0, sizeof *options);
    if (!fields[OPTION_N_COMPONENTS].isnull)
        options->n_components = read_n_components(DatumGetFloat8(fields[OPTION_N_COMPONENTS].value));
    if (!fields[OPTION_WHITEN].isnull)
        options->whiten = DatumGetBool(fields[OPTION_WHITEN].value) ? 1 : 0;
    if (!fields[OPTION_STANDARDIZE].isnull)
        options->standardize = DatumGetBool(fields[OPTION_STANDARDIZE].value) ? 1 : 0;
}

/* pca_options(n_components, whiten, standardize): checks the values and returns them as a row. */
Datum pgkm_pca_options(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_result_tupdesc(fcinfo, &options_type);
    PgkmPcaOptions  options;
    Datum           values[OPTION_COUNT];
    bool            nulls[OPTION_COUNT] = {false};

    pgkm_pca_options_fields(fcinfo->args, &options);
    nulls[OPTION_N_COMPONENTS] = PG_ARGISNULL(OPTION_N_COMPONENTS);
    values[OPTION_N_COMPONENTS] = Float8GetDatum(options.n_components);
    values[OPTION_WHITEN] = BoolGetDatum(options.whiten != 0);
    values[OPTION_STANDARDIZE] = BoolGetDatum(options.standardize != 0);
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

void pgkm_pca_options_read(const NullableDatum *composite, PgkmPcaOptions *options)
{
    NullableDatum fields[OPTION_COUNT];

    if (composite->isnull) {
        memset(options, 0, sizeof *options);
        return;
    }
    pgkm_read_fields(composite->value, &options_type, fields);
    pgkm_pca_options_fields(fields, options);
}

/*
 * composite.cpp - the extension's composite types, and the rows of set-returning functions.
 */
#include "pg/values/composite.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
}

/* Values as the server takes them. */
struct Columns {
    Datum values[PGKM_MOST_FIELDS];
    bool nulls[PGKM_MOST_FIELDS];

    explicit Columns(PgkmValues row)
    {
        int count = 0;

        for (const PgkmValue &value : row) {
            values[count] = value.datum;
            nulls[count++] = value.isnull;
        }
    }
};

ReturnSetInfo *pgkm_result_begin(FunctionCallInfo fcinfo)
{
    InitMaterializedSRF(fcinfo, 0);
    return (ReturnSetInfo *)fcinfo->resultinfo;
}

void pgkm_result_put(ReturnSetInfo *result, PgkmValues values)
{
    Columns columns(values);

    Assert((int)values.size() == result->setDesc->natts);
    tuplestore_putvalues(result->setResult, result->setDesc, columns.values, columns.nulls);
}

/* Whether the row type is older than field i. */
static bool lacks_field(TupleDesc tupdesc, int i)
{
    return i >= tupdesc->natts || TupleDescAttr(tupdesc, i)->attisdropped;
}

Datum pgkm_composite_make(TupleDesc tupdesc, PgkmValues values)
{
    Columns columns(values);

    Assert((int)values.size() >= tupdesc->natts);
    for (int i = 0; i < tupdesc->natts; ++i)
        columns.nulls[i] = columns.nulls[i] || lacks_field(tupdesc, i);
    return HeapTupleGetDatum(heap_form_tuple(tupdesc, columns.values, columns.nulls));
}

void pgkm_check_type(TupleDesc tupdesc, const PgkmCompositeType *type)
{
    bool same = tupdesc->natts <= type->count;

    for (int i = 0; same && i < type->count; ++i) {
        const Oid wanted = type->fields[i].type;

        if (lacks_field(tupdesc, i)) {
            same = i >= type->count - type->later;
            continue;
        }

        const Oid found = TupleDescAttr(tupdesc, i)->atttypid;

        same =
            OidIsValid(wanted) ? found == wanted : type_is_rowtype(found) || type_is_rowtype(get_element_type(found));
    }
    if (!same)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("type %s has been altered", type->name)));
}

TupleDesc pgkm_result_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type)
{
    TupleDesc tupdesc;

    if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "function must return %s", type->name);
    if (tupdesc->tdtypeid == RECORDOID)
        tupdesc = lookup_rowtype_tupdesc_copy(TupleDescAttr(tupdesc, 0)->atttypid, -1);
    pgkm_check_type(tupdesc, type);
    return BlessTupleDesc(tupdesc);
}

void pgkm_read_fields(Datum composite, const PgkmCompositeType *type, NullableDatum *fields)
{
    HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
    TupleDesc tupdesc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    HeapTupleData tuple;
    Datum values[PGKM_MOST_FIELDS];
    bool nulls[PGKM_MOST_FIELDS];

    pgkm_check_type(tupdesc, type);
    tuple.t_len = HeapTupleHeaderGetDatumLength(header);
    ItemPointerSetInvalid(&tuple.t_self);
    tuple.t_tableOid = InvalidOid;
    tuple.t_data = header;
    heap_deform_tuple(&tuple, tupdesc, values, nulls);
    for (int i = 0; i < type->count; ++i)
        fields[i] = lacks_field(tupdesc, i) ? NullableDatum{0, true} : NullableDatum{values[i], nulls[i]};
    ReleaseTupleDesc(tupdesc);
}

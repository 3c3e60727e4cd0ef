/*
 * composite.cpp - reading values of the extension's composite types.
 */
#include "pg/values/composite.h"

#include "pg/compat.h"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/typcache.h"
}

void pgkm_check_composite_type(TupleDesc tupdesc, const PgkmCompositeType *type)
{
    bool same = tupdesc->natts == type->count;

    for (int i = 0; same && i < type->count; ++i)
        same = TupleDescAttr(tupdesc, i)->atttypid == type->fields[i];
    if (!same)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("type %s has been altered", type->name)));
}

TupleDesc pgkm_result_tupdesc(FunctionCallInfo fcinfo, const PgkmCompositeType *type)
{
    TupleDesc tupdesc;

    if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "function must return %s", type->name);
    pgkm_check_composite_type(tupdesc, type);
    return BlessTupleDesc(tupdesc);
}

void pgkm_read_composite(Datum composite, const PgkmCompositeType *type, Datum *values, bool *nulls)
{
    HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
    TupleDesc tupdesc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    HeapTupleData tuple;

    pgkm_check_composite_type(tupdesc, type);
    tuple.t_len = HeapTupleHeaderGetDatumLength(header);
    ItemPointerSetInvalid(&tuple.t_self);
    tuple.t_tableOid = InvalidOid;
    tuple.t_data = header;
    heap_deform_tuple(&tuple, tupdesc, values, nulls);
    ReleaseTupleDesc(tupdesc);
}

void pgkm_read_fields(Datum composite, const PgkmCompositeType *type, NullableDatum *fields)
{
    Datum *const values = (Datum *) palloc(type->count * sizeof(Datum));
    bool *const  nulls = (bool *) palloc(type->count * sizeof(bool));

    pgkm_read_composite(composite, type, values, nulls);
    for (int i = 0; i < type->count; ++i)
        fields[i] = {values[i], nulls[i]};
    pfree(values);
    pfree(nulls);
}

/*
 * slow.cpp - reads any column of any tuple: values become Datums, and rows are appended like the executor's.
 */
#include "pg/scan/access.h"

#include "pg/compat.h"
#include "pg/values/toast.h"

extern "C" {
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
}

/* Attributes 1 to access->last. A tuple older than a column has that column's default. */
static void fetch_attributes(ScanAccess *access, HeapTupleHeader tuple)
{
    const int present = Min(HeapTupleHeaderGetNatts(tuple), (int)access->last);
    const uint8 *bits = (tuple->t_infomask & HEAP_HASNULL) != 0 ? tuple->t_bits : NULL;
    char *const data = (char *)tuple + tuple->t_hoff;
    uint32 offset = 0;

    for (int i = 0; i < present; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(access->desc, i);

        access->absent[i] = bits != NULL && att_isnull(i, bits);
        if (access->absent[i])
            continue;
        offset = att_align_pointer(offset, attribute->attalign, attribute->attlen, data + offset);
        access->attributes[i] = fetchatt(attribute, data + offset);
        offset = att_addlength_pointer(offset, attribute->attlen, data + offset);
    }
    for (int i = present; i < access->last; ++i)
        access->attributes[i] = getmissingattr(access->desc, i + 1, &access->absent[i]);
}

/* What pgvector's casts to real[] return. */
static Datum array_of_pgvector(ScanLayout layout, Datum value, const char *column)
{
    struct varlena *const packed = pgkm_detoast((struct varlena *)DatumGetPointer(value));
    const char *const values = VARDATA_ANY(packed) + sizeof(ScanVectorHead);
    ScanVectorHead head;

    if (!scan_vector_fits(layout, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), &head))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a value of column \"%s\" is damaged", column),
                        errdetail("Its length does not match its number of dimensions.")));

    const int count = head.count;
    const Size bytes = ARR_OVERHEAD_NONULLS(1) + count * sizeof(float);
    ArrayType *const array = (ArrayType *)palloc0(bytes);

    SET_VARSIZE(array, bytes);
    array->ndim = 1;
    array->elemtype = FLOAT4OID;
    ARR_DIMS(array)[0] = count;
    ARR_LBOUND(array)[0] = 1;
    if (layout == SCAN_VECTOR)
        memcpy(ARR_DATA_PTR(array), values, count * sizeof(float));
    else
        (void)scan_halves_to_floats(values, count, (float *)ARR_DATA_PTR(array));
    return PointerGetDatum(array);
}

void scan_read_slow(ScanAccess *access, HeapTupleHeader tuple, ItemPointer ctid, TableRows *rows)
{
    const ScanColumn *columns = scan_plan_columns(access->plan);
    const TableRowShape *const shape = &access->shape;
    TableOrigin origin;

    fetch_attributes(access, tuple);
    for (int i = 0; i < access->plan->n_columns; ++i) {
        const int attribute = access->numbers[i] - 1;

        access->values[i] = access->attributes[attribute];
        access->nulls[i] = access->absent[attribute];
        if (access->nulls[i])
            continue;
        if (columns[i].layout == SCAN_VECTOR || columns[i].layout == SCAN_HALFVEC)
            access->values[i] = array_of_pgvector(columns[i].layout, access->values[i], NameStr(columns[i].name));
        else if (i == shape->label)
            access->values[i] = Int64GetDatum(scan_int8(access->values[i], columns[i].column.type));
    }
    if (shape->ctid >= 0)
        access->values[shape->ctid] = PointerGetDatum(ctid);
    if (shape->table >= 0)
        access->values[shape->table] = ObjectIdGetDatum(RelationGetRelid(access->relation));
    table_row_origin(shape, access->values, access->nulls, &origin);
    table_rows_add(rows, &origin, table_row_append(shape, access->values, access->nulls, &origin, rows));
}

/*
 * vector.cpp - recognises pgvector's types, and reads their values.
 */
#include "pg/columns/vector.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

static TableColumnKind kind_by_name(const char *name)
{
    if (strcmp(name, "vector") == 0)
        return COLUMN_VECTOR;
    return strcmp(name, "halfvec") == 0 ? COLUMN_HALFVEC : COLUMN_CAST;
}

/* The owner of an extension may add types of any name to it. But only a superuser makes base types, and the input
 * functions of the extension's own types belong to it as well. */
static bool made_by_extension(Form_pg_type type, Oid extension)
{
    return type->typtype == TYPTYPE_BASE && type->typlen == -1 &&
           getExtensionOfObject(ProcedureRelationId, type->typinput) == extension;
}

/* By the name of type and extension: another type called vector may be anything. */
TableColumnKind table_vector_kind(Oid type)
{
    const Oid extension = getExtensionOfObject(TypeRelationId, type);
    const char *owner = OidIsValid(extension) ? get_extension_name(extension) : NULL;
    TableColumnKind kind = COLUMN_CAST;

    if (owner == NULL || strcmp(owner, "vector") != 0)
        return COLUMN_CAST;

    const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

    if (!HeapTupleIsValid(tuple))
        return COLUMN_CAST;

    const Form_pg_type form = (Form_pg_type)GETSTRUCT(tuple);

    if (made_by_extension(form, extension))
        kind = kind_by_name(NameStr(form->typname));
    ReleaseSysCache(tuple);
    return kind;
}

/* What a value has behind its varlena header, before its elements. */
struct VectorHead {
    int16 count;
    int16 unused;
};

/* Halves of IEEE from unaligned memory as floats, exactly. What is infinite or NaN stays that. */
static const float *floats_of_halves(const char *halves, int32 count)
{
    float *const out = (float *)palloc(count * sizeof(float));

    for (int32 i = 0; i < count; ++i) {
        uint16 half;

        memcpy(&half, halves + i * sizeof(uint16), sizeof half);

        const uint32 sign = (uint32)(half & 0x8000) << 16;
        const uint32 exponent = (half >> 10) & 0x1f;
        const uint32 fraction = half & 0x3ff;
        const uint32 bits = sign | (exponent == 0x1f ? 0xff : exponent + 112) << 23 | fraction << 13;

        memcpy(&out[i], &bits, sizeof bits);
        if (exponent == 0) /* zero or subnormal: so many times 2^-24 */
            out[i] = (sign != 0 ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    }
    return out;
}

void table_vector_open(const TableColumn *column, Datum value, PgkmVector *vector)
{
    const struct varlena *const packed = pg_detoast_datum_packed((struct varlena *)DatumGetPointer(value));
    const Size size = VARSIZE_ANY_EXHDR(packed);
    const Size element = column->kind == COLUMN_VECTOR ? sizeof(float) : sizeof(uint16);
    VectorHead head = {0, 0};

    memcpy(&head, VARDATA_ANY(packed), Min(size, sizeof head));
    if (head.count < 1 || size != sizeof head + head.count * element)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a value of column \"%s\" is damaged", column->name),
                        errdetail("Its length does not match its number of dimensions.")));

    const char *const elements = VARDATA_ANY(packed) + sizeof head;

    vector->element_type = FLOAT4OID;
    vector->length = head.count;
    vector->data = column->kind == COLUMN_VECTOR ? elements : (const char *)floats_of_halves(elements, head.count);
}

/*
 * column.cpp - which types are features, and the values of categories.
 */
#include "pg/columns/column.h"

#include "pg/compat.h"
#include "pg/columns/vector.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/uuid.h"
}

/* Only a cast by a function counts: any text can be cast to real[] through its input function. */
static bool has_cast_to_real_array(Oid type)
{
    Oid function;

    return find_coercion_pathway(FLOAT4ARRAYOID, type, COERCION_EXPLICIT, &function) == COERCION_PATH_FUNC;
}

static bool is_number(Oid type)
{
    switch (type) {
    case BOOLOID:
    case MONEYOID:
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case TIMEOID:
    case INTERVALOID:
        return true;
    default:
        return pgkm_is_feature_type(type);
    }
}

static bool is_category(Oid type)
{
    switch (type) {
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
    case NAMEOID:
    case UUIDOID:
        return true;
    default:
        return get_typtype(type) == TYPTYPE_ENUM;
    }
}

bool column_classify(TableColumn *column, const char *name, Oid type)
{
    const Oid element = get_element_type(type);

    *column = {name, COLUMN_NUMBER, type};
    if (is_number(type))
        return true;
    if (type == BITOID || type == VARBITOID) {
        column->kind = COLUMN_BITS;
        column->type = BITOID;
        return true;
    }
    if (OidIsValid(element) && pgkm_is_feature_type(element)) {
        column->kind = COLUMN_ARRAY;
        column->type = element;
        return true;
    }
    if (has_cast_to_real_array(type)) {
        column->kind = table_vector_kind(type);
        column->type = FLOAT4OID;
        return true;
    }
    column->kind = COLUMN_CATEGORY;
    return is_category(type);
}

/* What makes a feature of a value of this type: SQL around the column's name; NULL where nothing is known. */
static const char *feature_of(Oid type)
{
    HeapTuple tuple;

    switch (type) {
    case JSONOID:
    case JSONBOID:
        return "(%s ->> 'key')::double precision";
    case POINTOID:
        return "%s[0]";
    case TIMETZOID:
        return "%s::time";
    case BYTEAOID:
        return NULL;
    default:
        break;
    }
    tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
    if (!HeapTupleIsValid(tuple))
        return NULL;

    const Form_pg_type entry = (Form_pg_type)GETSTRUCT(tuple);
    const char category = entry->typcategory;
    const bool is_geometry = strcmp(NameStr(entry->typname), "geometry") == 0;

    ReleaseSysCache(tuple);
    if (is_geometry) /* of PostGIS */
        return "ST_X(%s)";
    return category == TYPCATEGORY_STRING ? "%s::text" : NULL;
}

int column_detail_of_types(void)
{
    return errdetail(
        "Features are numbers, booleans, text, enumerations, uuids, dates and times, or an array of numbers "
        "or a vector.");
}

int column_hint_of_type(const char *name, Oid type)
{
    const char *const format = feature_of(type);

    if (format == NULL)
        return 0;

    const char *const quoted = quote_identifier(name);
    const char *const place = strstr(format, "%s");

    return errhint("Make a feature of it in a view, as %.*s%s%s, and name the view's column.", (int)(place - format),
                   format, quoted, place + 2);
}

PgkmElement table_columns_element(const TableColumn *columns, int count)
{
    if (table_columns_are_bits(columns, count))
        return PGKM_BIT;
    for (int i = 0; i < count; ++i)
        if (pgkm_element_of(columns[i].type) != PGKM_FLOAT32)
            return PGKM_FLOAT64;
    return PGKM_FLOAT32;
}

bool table_columns_are_bits(const TableColumn *columns, int count)
{
    return count == 1 && columns[0].kind == COLUMN_BITS;
}

bool table_columns_are_single(const TableColumn *columns, int count)
{
    for (int i = 0; i < count; ++i)
        if (!column_is_single(&columns[i]))
            return false;
    return true;
}

bool table_columns_have_categories(const TableColumn *columns, int count)
{
    for (int i = 0; i < count; ++i)
        if (columns[i].kind == COLUMN_CATEGORY)
            return true;
    return false;
}

CategoryKey category_key(Oid type, Datum value, char room[CATEGORY_ROOM])
{
    const struct varlena *text;

    switch (type) {
    case TEXTOID:
    case VARCHAROID:
        text = pg_detoast_datum_packed((struct varlena *)DatumGetPointer(value));
        return {VARDATA_ANY(text), (int32)VARSIZE_ANY_EXHDR(text)};
    case BPCHAROID: /* blanks at its end do not count */
        text = pg_detoast_datum_packed((struct varlena *)DatumGetPointer(value));
        return {VARDATA_ANY(text), bpchartruelen(VARDATA_ANY(text), (int)VARSIZE_ANY_EXHDR(text))};
    case NAMEOID:
        return {NameStr(*DatumGetName(value)), (int32)strlen(NameStr(*DatumGetName(value)))};
    case UUIDOID:
        return {(const char *)DatumGetUUIDP(value)->data, UUID_LEN};
    default: { /* an enumeration */
        const Oid oid = DatumGetObjectId(value);

        memcpy(room, &oid, sizeof oid);
        return {room, sizeof oid};
    }
    }
}

bool category_is_before(const CategoryKey &a, const CategoryKey &b)
{
    const int order = memcmp(a.bytes, b.bytes, Min(a.length, b.length));

    return order < 0 || (order == 0 && a.length < b.length);
}

CategoryKey category_text(Oid type, Datum value, const CategoryKey *key)
{
    Oid output;
    bool varlena;

    if (type != UUIDOID && get_typtype(type) != TYPTYPE_ENUM)
        return *key;
    getTypeOutputInfo(type, &output, &varlena);

    const char *const text = OidOutputFunctionCall(output, value);

    return {text, (int32)strlen(text)};
}

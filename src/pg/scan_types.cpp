/*
 * scan_types.cpp - what the catalogs say about the columns of a direct scan.
 */
#include "pg/scan_plan.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

/* By the name of type and extension: another type called vector may be anything. */
ScanLayout scan_vector_layout(Oid type)
{
    const Oid   extension = getExtensionOfObject(TypeRelationId, type);
    const char *owner = OidIsValid(extension) ? get_extension_name(extension) : NULL;
    ScanLayout  layout = SCAN_UNKNOWN;

    if (owner == NULL || strcmp(owner, "vector") != 0)
        return SCAN_UNKNOWN;

    const HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

    if (!HeapTupleIsValid(tuple))
        return SCAN_UNKNOWN;

    const char *const name = NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname);

    if (strcmp(name, "vector") == 0)
        layout = SCAN_VECTOR;
    else if (strcmp(name, "halfvec") == 0)
        layout = SCAN_HALFVEC;
    ReleaseSysCache(tuple);
    return layout;
}

bool scan_may_read_column(Oid table, const char *name, Oid user)
{
    const AttrNumber number = get_attnum(table, name);

    return number != InvalidAttrNumber && pg_attribute_aclcheck(table, number, user, ACL_SELECT) == ACLCHECK_OK;
}

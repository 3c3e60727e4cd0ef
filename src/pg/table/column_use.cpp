/*
 * column_use.cpp - finds what else depends on a column: its own properties, and objects that use it.
 */
#include "pg/table/update.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

/* From version 18 on a NOT NULL column has a constraint as well. That is no use: pgkm_column_use looks at the column
 * itself. */
static bool is_not_null_constraint(Oid constraint)
{
    const HeapTuple tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));

    if (!HeapTupleIsValid(tuple))
        return false;

    const bool is_not_null = ((Form_pg_constraint)GETSTRUCT(tuple))->contype == 'n';

    ReleaseSysCache(tuple);
    return is_not_null;
}

static bool is_unique_index(Oid relation)
{
    const HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(relation));

    if (!HeapTupleIsValid(tuple))
        return false;

    const Form_pg_index index = (Form_pg_index)GETSTRUCT(tuple);
    const bool is_unique = index->indisunique || index->indisexclusion;

    ReleaseSysCache(tuple);
    return is_unique;
}

/* Whether this dependency on a column is a use of it. A default depends on its own column automatically, and
 * normally on columns that it is computed from. */
static bool counts(const FormData_pg_depend *dependency)
{
    switch (dependency->classid) {
    case ConstraintRelationId:
        return !is_not_null_constraint(dependency->objid);
    case RelationRelationId:
        return is_unique_index(dependency->objid);
    case AttrDefaultRelationId:
        return dependency->deptype == DEPENDENCY_NORMAL;
    default:
        return false;
    }
}

/* What the first object that uses the column uses it for, or NULL. */
static const char *find_use(Oid table, AttrNumber column)
{
    const Relation depend = table_open(DependRelationId, AccessShareLock);
    const char *use = NULL;
    ScanKeyData key[3];
    HeapTuple tuple;

    ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(RelationRelationId));
    ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
    ScanKeyInit(&key[2], Anum_pg_depend_refobjsubid, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(column));

    const SysScanDesc scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, lengthof(key), key);

    while (use == NULL && HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const FormData_pg_depend *const dependency = (const FormData_pg_depend *)GETSTRUCT(tuple);
        const ObjectAddress object = {dependency->classid, dependency->objid, dependency->objsubid};

        if (counts(dependency))
            use = dependency->classid == AttrDefaultRelationId
                      ? "A generated column is computed from it."
                      : psprintf("It is used by %s.", getObjectDescription(&object, false));
    }
    systable_endscan(scan);
    table_close(depend, AccessShareLock);
    return use;
}

static bool has_constraints(Oid type)
{
    return lookup_type_cache(type, TYPECACHE_DOMAIN_CONSTR_INFO)->domainData != NULL;
}

const char *pgkm_column_use(Oid table, AttrNumber column)
{
    const HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(column));
    const char *use = find_use(table, column);

    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for attribute %d of relation %u", column, table);

    const Form_pg_attribute attribute = (Form_pg_attribute)GETSTRUCT(tuple);

    if (attribute->attgenerated != '\0' || attribute->attidentity != '\0')
        use = "It is a generated column or an identity column.";
    else if (use == NULL && attribute->attnotnull)
        use = "It is NOT NULL, and a row that takes no part in the fit gets the label NULL.";
    else if (use == NULL && has_constraints(attribute->atttypid))
        use = "Its type is a domain with constraints.";
    ReleaseSysCache(tuple);
    return use;
}

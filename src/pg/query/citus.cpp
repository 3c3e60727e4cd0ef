/*
 * citus.cpp - which tables are Citus's.
 *
 * Citus lists them in pg_catalog.pg_dist_partition.
 */
#include "pg/query/citus.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

bool citus_owns_table(Oid relation)
{
    /* There is none where the extension is not created in this database. */
    const Oid list = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
    const AttrNumber column = OidIsValid(list) ? get_attnum(list, "logicalrelid") : InvalidAttrNumber;
    ScanKeyData key;

    if (column == InvalidAttrNumber)
        return false;
    ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));

    const Relation partitions = table_open(list, AccessShareLock);
    const SysScanDesc scan = systable_beginscan(partitions, InvalidOid, false, NULL, 1, &key);
    const bool found = HeapTupleIsValid(systable_getnext(scan));

    systable_endscan(scan);
    table_close(partitions, AccessShareLock);
    return found;
}

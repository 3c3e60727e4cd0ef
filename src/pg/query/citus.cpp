/*
 * citus.cpp - which tables are Citus's.
 *
 * Citus lists them in pg_catalog.pg_dist_partition. It hooks the choice of paths for all tables, and takes no
 * other library's hook before its own. Then it loads citus_columnar, whose hook minds tables of that access method
 * alone.
 */
#include "pg/query/citus.h"

#include <dlfcn.h>

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

static bool is_loaded(void)
{
    const int flags = GetConfigOptionFlags("citus.node_conninfo", true);

    return flags != 0 && (flags & GUC_CUSTOM_PLACEHOLDER) == 0;
}

bool citus_owns_hook(void *hook)
{
    Dl_info where;
    const char *name;

    if (dladdr(hook, &where) == 0 || where.dli_fname == NULL)
        return false;
    name = strrchr(where.dli_fname, '/');
    name = name == NULL ? where.dli_fname : name + 1;
    return strcmp(name, "citus.so") == 0 || (strcmp(name, "citus_columnar.so") == 0 && is_loaded());
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

/*
 * column_use.cpp - finds what else depends on a column: its own properties, and objects that use it.
 */
#include "pg/table/update.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "executor/spi.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

/* What the oldest object that uses the column uses it for. A default depends on its own column automatically, and
 * normally on columns that it is computed from. From version 18 on a NOT NULL column has a constraint as well, which is
 * no use: the column itself is looked at. */
#define USE_OF_COLUMN                                                                                         \
    "SELECT CASE WHEN d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass"          \
    " THEN 'A generated column is computed from it.'"                                                         \
    " ELSE pg_catalog.format('It is used by %%s.', pg_catalog.pg_describe_object(d.classid, d.objid, 0)) END" \
    " FROM pg_catalog.pg_depend AS d"                                                                         \
    " LEFT JOIN pg_catalog.pg_constraint AS c ON c.oid OPERATOR(pg_catalog.=) d.objid"                        \
    " AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass"                   \
    " LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid OPERATOR(pg_catalog.=) d.objid"                      \
    " AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass"                        \
    " WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass"                   \
    " AND d.refobjid OPERATOR(pg_catalog.=) %u::pg_catalog.oid AND d.refobjsubid OPERATOR(pg_catalog.=) %d"   \
    " AND (c.contype OPERATOR(pg_catalog.<>) 'n' OR i.indisunique OR i.indisexclusion"                        \
    " OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass"                       \
    " AND d.deptype OPERATOR(pg_catalog.=) 'n') ORDER BY d.objid LIMIT 1"

/* NULL where no object uses it. As the catalogs are now, whatever the transaction sees. */
static const char *find_use(Oid table, AttrNumber column)
{
    const MemoryContext caller = CurrentMemoryContext;
    const char *use = NULL;

    PushActiveSnapshot(GetLatestSnapshot());
    SPI_connect();
    if (SPI_execute(psprintf(USE_OF_COLUMN, table, column), true, 1) != SPI_OK_SELECT)
        elog(ERROR, "looking for what uses a column failed");
    if (SPI_processed > 0)
        use = MemoryContextStrdup(caller, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
    SPI_finish();
    PopActiveSnapshot();
    return use;
}

static bool has_constraints(Oid type)
{
    return lookup_type_cache(type, TYPECACHE_DOMAIN_CONSTR_INFO)->domainData != NULL;
}

const char *pgkm_column_use(Oid table, AttrNumber column)
{
    const char *use = find_use(table, column);
    const HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(column));

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

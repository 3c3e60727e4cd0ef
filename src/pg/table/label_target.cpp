/*
 * label_target.cpp - checks, and adds, the column that kmeans_cluster and gmm_cluster write.
 *
 * All that stands against writing it is found before the fit, so that nobody waits for labels that cannot
 * be written, and no column that holds something else is overwritten by accident. The table and all below
 * it are locked, so nobody else can change the answers meanwhile.
 */
#include "pg/table/update.h"
#include "pg/compat.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/tablecmds.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "parser/scansup.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

void label_target_arguments(LabelTarget *target, FunctionCallInfo fcinfo, int number, const char *usual)
{
    memset(target, 0, sizeof *target);
    target->named = !PG_ARGISNULL(number);
    target->overwrite = !PG_ARGISNULL(number + 1) && PG_GETARG_BOOL(number + 1);

    char *const name = target->named ? TextDatumGetCString(PG_GETARG_DATUM(number)) : pstrdup(usual);

    if (name[0] == '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("label_column must not be empty")));
    truncate_identifier(name, strlen(name), true);
    target->name = name;
}

[[noreturn]] static void raise_occupied(const LabelTarget *target, const char *relation, const char *why,
                                        bool replaceable)
{
    ereport(ERROR, (errcode(ERRCODE_DUPLICATE_COLUMN),
                    errmsg("cannot write labels into column \"%s\" of relation \"%s\"", target->name, relation),
                    errdetail_internal("%s", why),
                    replaceable ? errhint("Name another column with label_column, or replace what this one holds: "
                                          "label_column => %s, overwrite => true.",
                                          quote_literal_cstr(target->name))
                                : errhint("Name another column with label_column.")));
    pg_unreachable();
}

static void check_type(const LabelTarget *target, const TableRelation *relation, int64 k)
{
    const Oid type = table_column_type(relation, target->name);

    if (type != INT4OID && type != INT2OID && type != INT8OID)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("label column \"%s\" of relation \"%s\" has type %s, not an integer type", target->name,
                               relation->name, format_type_be(type)),
                        errhint("Name another column with label_column.")));
    if (type == INT2OID && k - 1 > PG_INT16_MAX)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("label column \"%s\" of relation \"%s\" has type smallint, which cannot hold %lld "
                               "labels",
                               target->name, relation->name, (long long)k)));
}

static void check_may_update(const LabelTarget *target, const TableRelation *relation)
{
    const AttrNumber column = get_attnum(relation->id, target->name);

    if (pg_class_aclcheck(relation->id, GetUserId(), ACL_UPDATE) != ACLCHECK_OK &&
        (column == InvalidAttrNumber ||
         pg_attribute_aclcheck(relation->id, column, GetUserId(), ACL_UPDATE) != ACLCHECK_OK))
        table_raise_denied(relation, TABLE_LABEL_PRIVILEGES);
}

/* --- what else depends on a column: its own properties, and objects that use it --- */

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

/* Why this column, which is no system column, must not get values of another meaning: a sentence for a
 * DETAIL; or NULL. It counts that the column is generated, an identity, NOT NULL or of a domain with
 * constraints, and that a key (primary, unique, or foreign on either side), a constraint or a generated
 * column uses it. Other indexes, views and partition keys do not count. */
static const char *column_use(Oid table, AttrNumber column)
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

/* --- checks --- */

/* Children may have keys and constraints of their own. */
static void check_uses(const LabelTarget *target)
{
    ListCell *cell;

    foreach (cell, target->tables) {
        const Oid table = lfirst_oid(cell);
        const char *const why = column_use(table, get_attnum(table, target->name));

        if (why != NULL)
            raise_occupied(target, get_rel_name(table), why, false);
    }
}

static bool is_ours(Oid table, const char *column)
{
    const char *const comment = GetComment(table, RelationRelationId, get_attnum(table, column));

    return comment != NULL && strncmp(comment, TABLE_LABEL_COMMENT, strlen(TABLE_LABEL_COMMENT)) == 0;
}

/* Reads the table directly: the caller may have no right to read a partition by itself. */
static bool holds_values(Oid table, const char *column)
{
    const Relation relation = table_open(table, NoLock);
    const AttrNumber number = get_attnum(table, column);
    bool found = false;

    if (RELKIND_HAS_STORAGE(relation->rd_rel->relkind)) {
        const Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
        const TableScanDesc scan = pgkm_table_beginscan(relation, snapshot);
        TupleTableSlot *const slot = table_slot_create(relation, NULL);

        while (!found && table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
            CHECK_FOR_INTERRUPTS();
            found = !slot_attisnull(slot, number);
        }
        ExecDropSingleTupleTableSlot(slot);
        table_endscan(scan);
        UnregisterSnapshot(snapshot);
    }
    table_close(relation, NoLock);
    return found;
}

/* A partition or child that joined later has a column of its own. Labels may replace nothing but NULLs there. */
static void check_ownership(LabelTarget *target, const TableRelation *relation)
{
    ListCell *cell;

    target->ours = is_ours(relation->id, target->name);
    if (target->named && target->overwrite)
        return;
    foreach (cell, target->tables) {
        const Oid table = lfirst_oid(cell);

        if (!is_ours(table, target->name) &&
            (table == relation->id || get_rel_relkind(table) == RELKIND_FOREIGN_TABLE ||
             holds_values(table, target->name)))
            raise_occupied(target, get_rel_name(table),
                           "It exists, and its comment does not begin with \"" TABLE_LABEL_COMMENT "\".", true);
    }
}

/* What ALTER TABLE asks of a table and of each of its children. */
static void check_can_grow(Relation table)
{
    const char *const name = RelationGetRelationName(table);

    CheckTableNotInUse(table, "ALTER TABLE");
    if (!pgkm_class_ownercheck(RelationGetRelid(table), GetUserId()))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("must be owner of table %s", name),
                        errhint(TABLE_LABEL_PRIVILEGES)));
    if (!allowSystemTableMods && IsSystemRelation(table))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied: \"%s\" is a system catalog", name)));
    if (RelationGetNumberOfAttributes(table) >= MaxHeapAttributeNumber)
        ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
                        errmsg("tables can have at most %d columns", MaxHeapAttributeNumber)));
}

static void check_has_own_columns(const LabelTarget *target, Relation table)
{
    const char *const kind = table->rd_rel->relispartition          ? "partition"
                             : OidIsValid(table->rd_rel->reloftype) ? "typed table"
                                                                    : NULL;

    if (kind != NULL)
        ereport(ERROR,
                (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                 errmsg("cannot add column \"%s\" to %s \"%s\"", target->name, kind, RelationGetRelationName(table)),
                 errhint("Name a column that exists: label_column => ..., overwrite => true.")));
}

/* A name is taken as it is, which surprises who quotes it as in SQL. */
static void check_no_quotes(const char *name)
{
    const size_t length = strlen(name);

    if (length > 2 && name[0] == '"' && name[length - 1] == '"')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("label_column must not be quoted: %s", name),
                        errhint("Write label_column => %s. Case is kept.",
                                quote_literal_cstr(pnstrdup(name + 1, length - 2)))));
}

static void check_can_be_added(const LabelTarget *target, const TableRelation *relation)
{
    ListCell *cell;

    check_no_quotes(target->name);
    PreventCommandIfReadOnly("ALTER TABLE");
    foreach (cell, target->tables) {
        const Relation table = table_open(lfirst_oid(cell), NoLock);

        check_can_grow(table);
        if (RelationGetRelid(table) == relation->id)
            check_has_own_columns(target, table);
        else if (get_attnum(RelationGetRelid(table), target->name) != InvalidAttrNumber)
            /* ALTER TABLE would make it the new column of its parent, with all that it holds. */
            raise_occupied(target, RelationGetRelationName(table),
                           psprintf("It exists, and its parent \"%s\" lacks it.", relation->name), false);
        table_close(table, NoLock);
    }
}

void label_target_check(LabelTarget *target, const TableRelation *relation, int64 k)
{
    target->tables = find_all_inheritors(relation->id, AccessShareLock, NULL);
    target->missing = get_attnum(relation->id, target->name) == InvalidAttrNumber;
    if (target->missing) {
        check_can_be_added(target, relation);
        check_may_update(target, relation);
    } else {
        check_type(target, relation, k);
        check_may_update(target, relation);
        check_uses(target);
        check_ownership(target, relation);
    }
}

/* Marks the column of partitions and children as well, which may be the relation of a later call. Comments of users
 * stay. */
static void mark(const LabelTarget *target)
{
    ListCell *cell;

    foreach (cell, target->tables) {
        const Oid table = lfirst_oid(cell);
        const AttrNumber column = get_attnum(table, target->name);

        if (GetComment(table, RelationRelationId, column) == NULL)
            CreateComments(table, RelationRelationId, column, TABLE_LABEL_COMMENT ", which may replace its values");
    }
}

void label_target_prepare(const LabelTarget *target, const TableRelation *relation, int64 k)
{
    if (!target->missing)
        check_type(target, relation, k);
    if (target->missing)
        table_run_utility(psprintf("ALTER TABLE %s ADD COLUMN %s pg_catalog.int4", relation->sql_name,
                                   quote_identifier(target->name)));
    if (target->missing || target->ours)
        mark(target);
}

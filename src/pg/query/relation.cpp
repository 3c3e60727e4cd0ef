/*
 * relation.cpp - looks up the relation and the columns of a table function.
 */
#include "pg/query/relation.h"

#include "pg/compat.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

static bool kind_serves(char relkind, TableUse use)
{
    switch (relkind) {
    case RELKIND_RELATION:
    case RELKIND_PARTITIONED_TABLE:
        return true;
    case RELKIND_MATVIEW:
        return use != TABLE_UPDATE && use != TABLE_WRITE;
    case RELKIND_VIEW:
    case RELKIND_FOREIGN_TABLE:
        return use == TABLE_READ || (use == TABLE_WRITE && relkind == RELKIND_FOREIGN_TABLE);
    default:
        return false;
    }
}

/* A partition may be a foreign table. A ctid means nothing there. */
static bool has_foreign_part(Oid relation_id)
{
    List *parts = find_all_inheritors(relation_id, NoLock, NULL);
    ListCell *cell;
    bool found = false;

    foreach (cell, parts)
        found = found || get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE;
    list_free(parts);
    return found;
}

static int label_otherwise(void)
{
    return errhint("Use kmeans_fit with kmeans_predict, gmm_fit with gmm_predict, or kmeans_label or gmm_label.");
}

[[noreturn]] static void raise_wrong_kind(const char *name, char relkind, TableUse use)
{
    const bool readable = kind_serves(relkind, TABLE_READ);
    const char *message = !readable             ? "relation \"%s\" is not a table or view"
                          : use == TABLE_UPDATE ? "\"%s\" is not a table whose rows can be updated in place"
                                                : "\"%s\" is not a table: its rows have no ctid";

    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg(message, name), readable ? label_otherwise() : 0));
    pg_unreachable();
}

[[noreturn]] static void raise_dropped(Oid id)
{
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", id)));
    pg_unreachable();
}

/* An OID may come from anywhere, so USAGE of its schema is checked. */
static void check_schema(Oid id)
{
    const Oid schema = get_rel_namespace(id);

    if (!OidIsValid(schema))
        raise_dropped(id);

    const AclResult result = pgkm_schema_aclcheck(schema, GetUserId());

    if (result != ACLCHECK_OK)
        aclcheck_error(result, OBJECT_SCHEMA, get_namespace_name(schema));
}

void table_relation_find(TableRelation *relation, Oid id, TableUse use, bool lock)
{
    check_schema(id);
    if (lock)
        LockRelationOid(id, AccessShareLock);

    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(id));

    if (!HeapTupleIsValid(tuple))
        raise_dropped(id);

    const Form_pg_class entry = (Form_pg_class)GETSTRUCT(tuple);
    const char relkind = entry->relkind;

    relation->id = id;
    relation->name = pstrdup(NameStr(entry->relname));
    relation->sql_name = quote_qualified_identifier(get_namespace_name(entry->relnamespace), relation->name);
    ReleaseSysCache(tuple);
    if (!kind_serves(relkind, use))
        raise_wrong_kind(relation->name, relkind, use);

    relation->has_rows_of_others = has_subclass(id);
    relation->has_ctid = kind_serves(relkind, TABLE_LOCATE) && !(relation->has_rows_of_others && has_foreign_part(id));
    if (use != TABLE_READ && use != TABLE_WRITE && !relation->has_ctid)
        ereport(ERROR,
                (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                 errmsg("\"%s\" has foreign tables among its partitions: their rows have no ctid", relation->name),
                 label_otherwise()));
}

void table_raise_denied(const TableRelation *relation, const char *hint)
{
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for table %s", relation->name),
                    errhint("%s", hint)));
    pg_unreachable();
}

/* Column grants do not reach ctid: a SELECT of it needs the privilege on the whole table. */
bool table_may_read_ctid(const TableRelation *relation)
{
    return relation->has_ctid && pg_class_aclcheck(relation->id, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

Oid table_column_type(const TableRelation *relation, const char *name)
{
    const AttrNumber number = get_attnum(relation->id, name);

    return number == InvalidAttrNumber ? InvalidOid : getBaseType(get_atttype(relation->id, number));
}

/* The name without quotes and blanks, as the catalog would have it. */
static char *without_quotes(const char *name)
{
    char *const bare = pstrdup(name);
    char *end = bare;

    for (; *name != '\0'; ++name)
        if (*name != '"' && *name != ' ')
            *end++ = *name;
    *end = '\0';
    return bare;
}

/* The column whose name differs in case, quotes or blanks alone; or NULL. */
static const char *similar_column(Oid relation, const char *name)
{
    const char *const bare = without_quotes(name);
    const char *found = NULL;
    HeapTuple tuple;

    for (AttrNumber i = 1; found == NULL && HeapTupleIsValid(tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation),
                                                                                     Int16GetDatum(i)));
         ++i) {
        const Form_pg_attribute attribute = (Form_pg_attribute)GETSTRUCT(tuple);

        if (!attribute->attisdropped && pg_strcasecmp(without_quotes(NameStr(attribute->attname)), bare) == 0)
            found = pstrdup(NameStr(attribute->attname));
        ReleaseSysCache(tuple);
    }
    return found;
}

bool table_is_expression(const TableRelation *relation, const char *text)
{
    /* Blanks alone are a name's, which may be meant for another. */
    const bool is_plain = strpbrk(text, ",()[]+-*/%<>=|:'^~@#&!?") == NULL;

    return get_attnum(relation->id, text) == InvalidAttrNumber && text_is_expression(text) &&
           !(is_plain && similar_column(relation->id, text) != NULL);
}

/* What to write instead of a name that no column has. */
static int hint_of_name(Oid relation, const char *name)
{
    const char *const similar = similar_column(relation, name);

    if (similar != NULL)
        return errhint(
            "Perhaps you meant the column \"%s\": names of columns are taken as they are, with their case and "
            "without quotes.",
            similar);
    if (strchr(name, '.') != NULL && !text_is_expression(name))
        return errhint("Columns are named without their table.");
    if (!text_is_expression(name))
        return 0;
    return errhint("A name is taken here, and no expression: put it into a view or a generated column and name that.");
}

/* The type of a column that must be there, domains resolved. */
static Oid column_type(const TableRelation *relation, const char *name)
{
    const Oid type = table_column_type(relation, name);

    if (OidIsValid(type))
        return type;

    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                    errmsg("column \"%s\" of relation \"%s\" does not exist", name, relation->name),
                    hint_of_name(relation->id, name)));
    pg_unreachable();
}

void table_feature_find(TableColumn *column, const TableRelation *relation, const char *name)
{
    const Oid type = column_type(relation, name);

    if (!column_classify(column, name, type))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of relation \"%s\" has type %s, which cannot be a feature", name,
                               relation->name, format_type_be(type)),
                        column_detail_of_types(), column_hint_of_type(name, type)));
}

/* What a column that holds one value is for, and what it must be. */
struct ColumnRole {
    const char *name;
    const char *takes;
    const char *hint; /* or NULL */
    bool (*is_of)(Oid type);
};

static const ColumnRole roles[] = {
    {"weight", "a number",
     "A weight is a number of at least 0: smallint, integer, bigint, real, double precision or numeric.",
     pgkm_is_feature_type},
    {"filter", "boolean", "Write a condition, as 'x > 0'.", [](Oid type) { return type == BOOLOID; }},
    {"label", "smallint, integer or bigint", NULL,
     [](Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }}};

TableColumn *table_column_find(const TableRelation *relation, TableColumnRole role, const char *name)
{
    const ColumnRole *const of = &roles[role];
    const Oid type = column_type(relation, name);

    if (!of->is_of(type))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("%s column \"%s\" of relation \"%s\" has type %s, not %s", of->name, name,
                               relation->name, format_type_be(type), of->takes),
                        of->hint == NULL ? 0 : errhint("%s", of->hint)));

    TableColumn *const column = (TableColumn *)palloc(sizeof(TableColumn));

    *column = {name, COLUMN_NUMBER, type};
    return column;
}

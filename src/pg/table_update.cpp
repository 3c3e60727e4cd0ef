/*
 * table_update.cpp - locking a table and writing labels into it, all through SPI as the
 * caller, so that privileges, row security, triggers and constraints hold.
 */
#include "pg/table_update.h"

#include "pg/label_lookup.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

static void run_utility(const char *sql)
{
    const int code = SPI_execute(sql, false, 0);

    if (code != SPI_OK_UTILITY)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
}

void table_lock_for_update(TableRelation *relation, const char *name)
{
    /* Without a lock of our own before: two sessions that both hold one and both want the
     * stronger one for the new column would wait for each other. */
    table_relation_find(relation, name, TABLE_UPDATE, false);
    const char *locked = relation->sql_name;

    SPI_connect();
    run_utility(psprintf("LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", locked));
    SPI_finish();
    /* The name that was locked, for the relation may have been replaced before the lock. */
    table_relation_find(relation, locked, TABLE_UPDATE, false);
}

void table_ensure_label(const TableRelation *relation, const char *label)
{
    const Oid type = table_column_type(relation, label);

    if (!OidIsValid(type)) {
        SPI_connect();
        run_utility(psprintf("ALTER TABLE %s ADD COLUMN %s pg_catalog.int4", relation->sql_name,
                             quote_identifier(label)));
        SPI_finish();
    } else if (type != INT4OID && type != INT2OID && type != INT8OID) {
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("label column \"%s\" of relation \"%s\" has type %s, not an integer type", label,
                               relation->name, format_type_be(type))));
    }
}

static void set_for_now(const char *name, const char *value)
{
    (void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* The schema of our functions: that of the one that was called. The search path is the caller's. */
static char *build_update(const TableRelation *relation, const char *label, Oid function)
{
    const char *const schema = quote_identifier(get_namespace_name(get_func_namespace(function)));

    return psprintf("UPDATE %s AS kmeans_table SET %s = %s.kmeans_new_label(kmeans_table.tableoid, kmeans_table.ctid) "
                    "WHERE %s.kmeans_label_changes(kmeans_table.tableoid, kmeans_table.ctid)",
                    relation->sql_name, quote_identifier(label), schema, schema);
}

static void run_update(const char *sql)
{
    const int nest_level = NewGUCNestLevel();

    /* Rows in their order are found without a search. */
    set_for_now("synchronize_seqscans", "off");

    const int code = SPI_execute(sql, false, 0);

    if (code != SPI_OK_UPDATE)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
}

void table_write_labels(const TableCall *call, const TableRows *rows, const int32 *labels, const char *label,
                        Oid function)
{
    LabelLookup lookup;

    if (!label_lookup_start(&lookup, rows, labels))
        return;
    PG_TRY();
    {
        SPI_connect();
        run_update(build_update(&call->relation, label, function));
        SPI_finish();
    }
    PG_FINALLY();
    {
        label_lookup_end(&lookup);
    }
    PG_END_TRY();
}

/*
 * select.cpp - rows through the executor: one SELECT, whose receiver appends to the row buffer without a
 * tuple store in between.
 */
#include "pg/query/query.h"

#include "pg/progress.h"
#include "pg/query/order.h"
#include "pg/query/row.h"

extern "C" {
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
}

#define ROWS_BETWEEN_REPORTS 4096

struct Receiver {
    DestReceiver base;
    TableRowShape shape;
    TableRows *rows;
    TableOrder order;
    MemoryContext scratch; /* of one row */
};

static bool receive(TupleTableSlot *slot, DestReceiver *self)
{
    Receiver *const receiver = (Receiver *)self;
    MemoryContext caller = MemoryContextSwitchTo(receiver->scratch);
    TableOrigin origin;

    slot_getallattrs(slot);
    table_row_origin(&receiver->shape, slot->tts_values, slot->tts_isnull, &origin);

    const bool used = table_row_append(&receiver->shape, slot->tts_values, slot->tts_isnull, &origin, receiver->rows);

    table_rows_add(receiver->rows, &origin, used);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(receiver->scratch);
    if (receiver->shape.ctid >= 0)
        table_order_watch(&receiver->order, &origin);
    if (receiver->rows->n % ROWS_BETWEEN_REPORTS == 0)
        pgkm_progress_scan(receiver->rows->n, 0);
    return true;
}

static void start_nothing(DestReceiver *, int, TupleDesc) {}

static void end_nothing(DestReceiver *) {}

/* Appends one more column to the list and returns its place. */
static int add_column(StringInfo sql, int *count, const char *name, const char *cast)
{
    appendStringInfo(sql, "%s%s%s", *count == 0 ? "SELECT " : ", ", quote_identifier(name), cast);
    return (*count)++;
}

static char *build_select(const TableQuery *query, TableRowShape *shape)
{
    const bool with_ctid = query->need_ctid || table_may_read_ctid(query->relation);
    int count = 0;
    StringInfoData sql;

    initStringInfo(&sql);
    for (int i = 0; i < query->n_features; ++i)
        add_column(&sql, &count, query->features[i].name,
                   query->features[i].kind == COLUMN_VECTOR ? "::pg_catalog.float4[]" : "");
    /* bigint: whatever integer type the label has, it is read as one. */
    shape->weight = query->weight == NULL ? -1 : add_column(&sql, &count, query->weight->name, "");
    shape->label = query->label == NULL ? -1 : add_column(&sql, &count, query->label, "::pg_catalog.int8");
    shape->filter = query->filter == NULL ? -1 : add_column(&sql, &count, query->filter->name, "");
    shape->ctid = with_ctid ? add_column(&sql, &count, "ctid", "") : -1;
    shape->table = with_ctid && query->relation->has_rows_of_others ? add_column(&sql, &count, "tableoid", "") : -1;
    appendStringInfo(&sql, " FROM %s", query->relation->sql_name);
    return sql.data;
}

void table_set_for_now(const char *name, const char *value)
{
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* Runs the SELECT with settings under which a scan starts at the first block and one process reads. */
static void run_select(const char *sql, bool new_snapshot, Receiver *receiver)
{
    SPIExecuteOptions options;
    const int nest_level = NewGUCNestLevel();

    table_set_for_now("synchronize_seqscans", "off");
    table_set_for_now("max_parallel_workers_per_gather", "0");

    memset(&options, 0, sizeof options);
    options.read_only = !new_snapshot;
    options.dest = &receiver->base;

    const int code = SPI_execute_extended(sql, &options);

    if (code != SPI_OK_SELECT)
        elog(ERROR, "reading rows failed: %s", SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
}

TableRows *table_select(const TableQuery *query, MemoryContext context)
{
    Receiver receiver;
    TableWants wants;

    memset(&receiver, 0, sizeof receiver);
    receiver.base.receiveSlot = receive;
    receiver.base.rStartup = start_nothing;
    receiver.base.rShutdown = end_nothing;
    receiver.base.rDestroy = end_nothing;
    receiver.base.mydest = DestTuplestore; /* SPI reports DestNone as no SELECT at all */
    receiver.shape.query = query;
    receiver.scratch = AllocSetContextCreate(context, "kmeans row", ALLOCSET_DEFAULT_SIZES);

    SPI_connect();
    const char *sql = build_select(query, &receiver.shape);

    /* Kept even where the caller does not need them: the rows may have to be sorted. */
    wants.ctid = receiver.shape.ctid >= 0;
    wants.table = receiver.shape.table >= 0;
    wants.label = query->label != NULL;
    receiver.rows = table_rows_create(context, wants);
    table_order_start(&receiver.order);
    run_select(sql, query->new_snapshot, &receiver);
    if (receiver.order.broken)
        receiver.rows = table_order_restore(&receiver.order, receiver.rows);
    SPI_finish();
    MemoryContextDelete(receiver.scratch);
    return receiver.rows;
}

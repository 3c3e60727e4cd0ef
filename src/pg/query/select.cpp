/*
 * select.cpp - rows through the executor: one SELECT, whose receiver appends to the row buffer without a
 * tuple store in between.
 */
#include "pg/query/query.h"

#include "pg/progress.h"
#include "pg/query/decoder.h"
#include "pg/query/order.h"

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
    TableDecoder decoder;
    TableRows *rows;
    TableOrder order;
    MemoryContext scratch; /* of one row */
};

static bool receive(TupleTableSlot *slot, DestReceiver *self)
{
    Receiver *const receiver = (Receiver *)self;
    MemoryContext caller = MemoryContextSwitchTo(receiver->scratch);
    TableOrigin origin;

    table_decode(&receiver->decoder, slot, receiver->rows, &origin);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(receiver->scratch);
    if (receiver->decoder.ctid >= 0)
        table_order_watch(&receiver->order, &origin);
    if (receiver->rows->n % ROWS_BETWEEN_REPORTS == 0)
        pgkm_progress_scan(receiver->rows->n, 0);
    return true;
}

static void start_nothing(DestReceiver *, int, TupleDesc) {}

static void end_nothing(DestReceiver *) {}

char *table_select_text(const TableQuery *query, TableDecoder *decoder)
{
    const char *name;
    int count = 0;
    StringInfoData sql;

    table_decoder_init(decoder, query);
    initStringInfo(&sql);
    for (; (name = table_query_column(query, count)) != NULL; ++count)
        appendStringInfo(
            &sql, "%s%s%s", count == 0 ? "SELECT " : ", ", quote_identifier(name),
            count < query->n_features && query->features[count].kind == COLUMN_CAST ? "::pg_catalog.float4[]" : "");

    AttrNumber *const places = (AttrNumber *)palloc(count * sizeof(AttrNumber));

    for (int i = 0; i < count; ++i)
        places[i] = (AttrNumber)i;
    decoder->places = places;
    if (decoder->with_ctid) {
        appendStringInfoString(&sql, ", ctid");
        decoder->ctid = (AttrNumber)count++;
    }
    if (decoder->with_table) {
        appendStringInfoString(&sql, ", tableoid");
        decoder->table = (AttrNumber)count++;
    }
    decoder->last = (AttrNumber)count;
    appendStringInfo(&sql, " FROM %s", query->relation->sql_name);
    return sql.data;
}

void table_set_for_now(const char *name, const char *value)
{
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void table_select_settings(void)
{
    table_set_for_now("synchronize_seqscans", "off");
    table_set_for_now("max_parallel_workers_per_gather", "0");
    table_set_for_now("enable_indexonlyscan", "off");
}

static void run_select(const char *sql, bool new_snapshot, Receiver *receiver)
{
    SPIExecuteOptions options;
    const int nest_level = NewGUCNestLevel();

    table_select_settings();
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
    receiver.scratch = AllocSetContextCreate(context, "kmeans row", TABLE_ROW_SIZES);

    SPI_connect();
    const char *sql = table_select_text(query, &receiver.decoder);

    /* Kept even where the caller does not need them: the rows may have to be sorted. */
    wants.ctid = receiver.decoder.ctid >= 0;
    wants.table = receiver.decoder.table >= 0;
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

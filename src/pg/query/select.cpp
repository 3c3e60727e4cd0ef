/*
 * select.cpp - rows through the executor: one SELECT, whose receiver appends to the row buffer without a
 * tuple store in between.
 */
#include "pg/query/query.h"

#include "pg/progress.h"
#include "pg/query/decoder.h"
#include "pg/run/memory_account.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
}

#define ROWS_BETWEEN_REPORTS 4096

/* About what a fit takes beside each row. */
#define WORK_PER_ROW 40

struct Receiver {
    DestReceiver base;
    TableDecoder decoder;
    TableRows *rows;
    MemoryContext scratch; /* of one row */
    MemoryContext caller;
    MemoryContext context; /* of the list */
    List *tables;          /* OIDs, in the order in which they appear */
    ItemPointerData last;
    bool disordered; /* a row came before one that it belongs behind */
    bool sorted;     /* by the SELECT: rows of several servers may have the same place, and come one by one then */
};

/* A sequential scan delivers rows by table and ctid. Other plans may not: an index scan that a row security policy
 * allows, or the scan of another extension. */
static void watch_order(Receiver *receiver, const TableOrigin *origin)
{
    if (receiver->tables != NIL && llast_oid(receiver->tables) == origin->table) {
        receiver->disordered |= ItemPointerCompare(&receiver->last, (ItemPointer)&origin->ctid) > 0;
    } else if (list_member_oid(receiver->tables, origin->table)) {
        receiver->disordered = true;
    } else {
        MemoryContext caller = MemoryContextSwitchTo(receiver->context);

        receiver->tables = lappend_oid(receiver->tables, origin->table);
        MemoryContextSwitchTo(caller);
    }
    receiver->last = origin->ctid;
}

static bool receive(TupleTableSlot *slot, DestReceiver *self)
{
    Receiver *const receiver = (Receiver *)self;
    TableOrigin origin;

    table_decode_origin(&receiver->decoder, slot, &origin);
    if (receiver->decoder.ctid >= 0 && !receiver->sorted)
        watch_order(receiver, &origin);
    /* They will be read again; until then it is the order of the tables that is looked for. */
    if (receiver->disordered)
        return receiver->decoder.table >= 0;

    MemoryContext caller = MemoryContextSwitchTo(receiver->scratch);

    table_decode(&receiver->decoder, slot, &origin, receiver->rows);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(receiver->scratch);
    if (receiver->rows->n % ROWS_BETWEEN_REPORTS == 0)
        pgkm_progress_scan(receiver->rows->n, 0);
    return true;
}

static void start_nothing(DestReceiver *, int, TupleDesc) {}

static void end_nothing(DestReceiver *) {}

char *table_select_text(const TableQuery *query, TableDecoder *decoder)
{
    const int n_names = table_query_names(query);
    const int n_columns = table_query_columns(query);
    AttrNumber *const places = (AttrNumber *)palloc(n_names * sizeof(AttrNumber));
    int count = 0;
    StringInfoData sql;

    table_decoder_init(decoder, query);
    initStringInfo(&sql);
    appendStringInfoString(&sql, "SELECT ");
    for (int i = 0; i < n_names; ++i) {
        const char *const name = table_query_name(query, i);
        const bool is_cast = i < n_columns && table_query_column(query, i)->kind == COLUMN_CAST;

        places[i] = -1;
        if (name == NULL)
            continue;
        appendStringInfo(&sql, "%s%s%s", count == 0 ? "" : ", ", quote_identifier(name),
                         is_cast ? "::pg_catalog.float4[]" : "");
        places[i] = (AttrNumber)count++;
    }
    decoder->places = places;
    if (decoder->with_ctid) {
        appendStringInfo(&sql, "%sctid", count == 0 ? "" : ", ");
        decoder->ctid = (AttrNumber)count++;
    }
    decoder->relation = query->relation->id;
    if (decoder->with_table) {
        appendStringInfoString(&sql, ", tableoid"); /* behind ctid */
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

/* What puts rows into their order: by table, as these have appeared, and ctid. */
static char *order_clause(const Receiver *receiver)
{
    const int count = list_length(receiver->tables);
    Datum *const tables = (Datum *)palloc((count + 1) * sizeof(Datum));

    if (receiver->decoder.table < 0)
        return pstrdup(" ORDER BY ctid");
    for (int i = 0; i < count; ++i)
        tables[i] = ObjectIdGetDatum(list_nth_oid(receiver->tables, i));

    ArrayType *const array = construct_array(tables, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT);

    return psprintf(" ORDER BY pg_catalog.array_position('%s'::pg_catalog.oid[], tableoid), ctid",
                    OidOutputFunctionCall(F_ARRAY_OUT, PointerGetDatum(array)));
}

/* By the planner's estimates. */
static void expect_rows(SPIPlanPtr plan, MemoryContext context)
{
    CachedPlan *const cached = SPI_plan_get_cached_plan(plan);

    if (cached == NULL)
        return;

    const Plan *const top = linitial_node(PlannedStmt, cached->stmt_list)->planTree;
    const double bytes = top->plan_rows * (top->plan_width + WORK_PER_ROW);

    ReleaseCachedPlan(cached, NULL);
    pgkm_memory_expect(bytes, context);
}

static void run_select(const char *sql, Receiver *receiver)
{
    SPIExecuteOptions options;
    const int nest_level = NewGUCNestLevel();

    table_select_settings();
    memset(&options, 0, sizeof options);
    options.read_only = true;
    options.dest = &receiver->base;

    const SPIPlanPtr plan = SPI_prepare(sql, 0, NULL);

    if (plan != NULL)
        expect_rows(plan, receiver->caller);

    const int code = plan == NULL ? SPI_result : SPI_execute_plan_extended(plan, &options);

    if (code != SPI_OK_SELECT)
        elog(ERROR, "reading rows failed: %s", SPI_result_code_string(code));
    AtEOXact_GUC(false, nest_level);
}

TableRows *table_select(const TableQuery *query, MemoryContext context)
{
    Receiver receiver;

    memset(&receiver, 0, sizeof receiver);
    receiver.base.receiveSlot = receive;
    receiver.base.rStartup = start_nothing;
    receiver.base.rShutdown = end_nothing;
    receiver.base.rDestroy = end_nothing;
    receiver.base.mydest = DestTuplestore; /* SPI reports DestNone as no SELECT at all */
    receiver.scratch = AllocSetContextCreate(context, "kmeans row", TABLE_ROW_SIZES);
    receiver.rows = table_rows_create(context, table_query_wants(query));

    receiver.caller = CurrentMemoryContext;
    SPI_connect();
    receiver.context = CurrentMemoryContext;

    const char *const sql = table_select_text(query, &receiver.decoder);

    table_decoder_begin(&receiver.decoder, NULL);
    run_select(sql, &receiver);
    if (receiver.disordered) {
        const char *const order = order_clause(&receiver);

        table_rows_clear(receiver.rows);
        receiver.disordered = false;
        receiver.sorted = true;
        table_decoder_begin(&receiver.decoder, NULL);
        run_select(psprintf("%s%s", sql, order), &receiver);
    }
    table_decoder_end_levels(&receiver.decoder, receiver.rows);
    SPI_finish();
    MemoryContextDelete(receiver.scratch);
    return receiver.rows;
}

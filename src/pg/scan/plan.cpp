/*
 * plan.cpp - makes the flat plan of a query's scan.
 */
#include "pg/scan/plan.h"

#include "pg/scan/scan.h"

#include <algorithm>
#include <type_traits>

extern "C" {
#include "access/table.h"
#include "lib/stringinfo.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
}

/* Enough for an even end of the scan, few enough to forget about. */
#define CHUNKS 256
#define SMALLEST_CHUNK 4

/* Statistics are samples. */
#define ESTIMATE_SLACK 1.02

/* --- one allocation --- */

/* Lets the pointers point to what lies behind the struct, and returns the bytes of all. */
static Size set_pointers(ScanPlan *plan)
{
    char *next = (char *)plan + MAXALIGN(sizeof(ScanPlan));
    const auto place = [&next](auto *&array, Size count) {
        array = (std::remove_reference_t<decltype(array)>)next;
        next += MAXALIGN(count * sizeof *array);
    };

    place(plan->relations, plan->n_relations);
    place(plan->columns, plan->n_columns);
    place(plan->inputs, plan->n_names - plan->n_columns);
    place(plan->texts, plan->texts_bytes);
    place(plan->widths, plan->query.n_features);
    place(plan->places, (Size)plan->n_relations * plan->n_names);
    place(plan->given, plan->given_bytes);
    return next - (char *)plan;
}

/* The texts, one behind the other. */
static void append_text(StringInfo texts, const char *text)
{
    appendBinaryStringInfo(texts, text, (int)strlen(text) + 1);
}

static void list_texts(const TableQuery *query, StringInfo texts)
{
    initStringInfo(texts);
    for (int i = 0; i < table_query_columns(query); ++i) {
        const TableColumn *const column = table_query_column(query, i);

        append_text(texts, column->name);
        if (column->expression != NULL)
            append_text(texts, expression_write(column->expression));
    }
    for (int i = 0; i < query->n_inputs; ++i)
        append_text(texts, query->inputs[i].name);
}

static const char *next_text(const char **at)
{
    const char *const text = *at;

    *at += strlen(text) + 1;
    return text;
}

static void set_texts(ScanPlan *plan)
{
    const char *at = plan->texts;

    for (int i = 0; i < plan->n_columns; ++i) {
        plan->columns[i].name = next_text(&at);
        if (plan->columns[i].expression != NULL)
            plan->columns[i].expression = expression_read(next_text(&at));
    }
    for (int i = 0; i < plan->n_names - plan->n_columns; ++i)
        plan->inputs[i].name = next_text(&at);
}

/* The query and its decoder use what the plan has. */
static void set_query(ScanPlan *plan)
{
    TableQuery *const query = &plan->query;

    set_texts(plan);
    query->inputs = plan->inputs;
    query->features = plan->columns;
    query->weight = plan->decoder.weight < 0 ? NULL : &plan->columns[plan->decoder.weight];
    query->label = plan->decoder.label < 0 ? NULL : &plan->columns[plan->decoder.label];
    query->filter = plan->decoder.filter < 0 ? NULL : &plan->columns[plan->decoder.filter];
    query->levels = NULL; /* they are in `given` */
    plan->decoder.query = query;
}

ScanPlan *scan_plan_copy(const ScanPlan *plan)
{
    ScanPlan *const copy = (ScanPlan *)palloc(plan->bytes);

    memcpy(copy, plan, plan->bytes);
    (void)set_pointers(copy);
    set_query(copy);
    return copy;
}

/* --- columns and chunks --- */

static void set_columns(ScanPlan *plan, const TableQuery *query)
{
    for (int i = 0; i < plan->n_columns; ++i)
        plan->columns[i] = *table_query_column(query, i);
    std::copy_n(query->inputs, query->n_inputs, plan->inputs);
    if (!table_columns_are_single(query->features, query->n_features))
        return;
    plan->d = query->n_features;
    std::fill_n(plan->widths, plan->d, 1);
}

static BlockNumber toast_blocks(const Relation relation)
{
    const Oid id = relation->rd_rel->reltoastrelid;

    if (!OidIsValid(id))
        return 0;

    const Relation toast = table_open(id, AccessShareLock);
    const BlockNumber blocks = RelationGetNumberOfBlocks(toast);

    table_close(toast, AccessShareLock);
    return blocks;
}

static void set_relation(ScanPlan *plan, int i, const ScanTable *table)
{
    ScanRelation *const target = &plan->relations[i];
    const Relation relation = table_open(table->id, NoLock);
    BlockNumber blocks;
    double all_visible;

    target->id = table->id;
    /* What is added behind them from now on the snapshot does not see. */
    target->n_blocks = RelationGetNumberOfBlocks(relation);
    target->toast_blocks = column_is_single(&plan->columns[0]) ? 0 : toast_blocks(relation);
    estimate_rel_size(relation, NULL, &blocks, &target->rows, &all_visible);
    plan->expected_rows += (int64)(target->rows * ESTIMATE_SLACK);
    plan->fixed_workers = Max(plan->fixed_workers, RelationGetParallelWorkers(relation, -1));
    /* Its pages lie in the memory of this process. */
    plan->temporary = plan->temporary || RelationUsesLocalBuffers(relation);
    table_close(relation, NoLock);
    memcpy(&plan->places[i * plan->n_names], table->places, plan->n_names * sizeof(AttrNumber));
}

uint64 scan_plan_blocks(const ScanPlan *plan)
{
    uint64 blocks = 0;

    for (int i = 0; i < plan->n_relations; ++i)
        blocks += plan->relations[i].n_blocks;
    return blocks;
}

void scan_plan_set_chunks(ScanPlan *plan, BlockNumber blocks)
{
    plan->chunk_blocks = blocks;
    plan->n_chunks = 0;
    for (int i = 0; i < plan->n_relations; ++i) {
        ScanRelation *const relation = &plan->relations[i];

        relation->first_chunk = plan->n_chunks;
        plan->n_chunks += relation->n_blocks / blocks + (relation->n_blocks % blocks != 0);
    }
}

static bool is_for_one_process(const TableQuery *query)
{
    for (int i = 0; i < table_query_columns(query); ++i) {
        const Expression *const expression = table_query_column(query, i)->expression;

        if (expression != NULL && !expression->is_parallel_safe)
            return true;
    }
    return false;
}

ScanPlan *scan_plan_make(const TableQuery *query, List *tables)
{
    Levels *const given =
        query->levels == NULL ? NULL : levels_create(query->features, query->n_features, query->levels);
    StringInfoData texts;
    ScanPlan head = {};

    list_texts(query, &texts);
    head.query = *query;
    table_decoder_init(&head.decoder, query);
    head.n_columns = table_query_columns(query);
    head.n_names = table_query_names(query);
    head.texts_bytes = texts.len;
    head.alone = is_for_one_process(query);
    head.n_relations = list_length(tables);
    head.wants = table_query_wants(query);
    head.fixed_workers = -1;
    head.given_bytes = given == NULL ? 0 : levels_bytes(given);
    head.bytes = set_pointers(&head);

    ScanPlan *const plan = (ScanPlan *)palloc0(head.bytes);

    *plan = head;
    (void)set_pointers(plan);
    set_columns(plan, query);
    memcpy(plan->texts, texts.data, texts.len);
    set_query(plan);
    if (given != NULL)
        levels_write(given, plan->given);
    for (int i = 0; i < plan->n_relations; ++i)
        set_relation(plan, i, (const ScanTable *)list_nth(tables, i));
    scan_plan_set_chunks(plan, (BlockNumber)Max(scan_plan_blocks(plan) / CHUNKS, (uint64)SMALLEST_CHUNK));
    return plan;
}

void scan_plan_open_rows(const ScanPlan *plan, TableRows *rows)
{
    const Size bytes = plan->query.n_features * sizeof(int32);

    rows->widths = (int32 *)memcpy(MemoryContextAlloc(rows->context, bytes), plan->widths, bytes);
    rows->used = pgkm_rows_create(rows->context, plan->decoder.element, plan->d, plan->query.weight != NULL);
}

ScanChunk scan_plan_chunk(const ScanPlan *plan, uint32 chunk)
{
    /* The next table's first chunk is this one's end; an empty table has none. */
    const ScanRelation *const relation =
        std::upper_bound(plan->relations, plan->relations + plan->n_relations, chunk,
                         [](uint32 at, const ScanRelation &next) { return at < next.first_chunk; }) -
        1;
    const BlockNumber begin = (chunk - relation->first_chunk) * plan->chunk_blocks;

    /* Near the largest table the sum would not fit. */
    return {(int32)(relation - plan->relations), begin,
            relation->n_blocks - begin <= plan->chunk_blocks ? MaxBlockNumber : begin + plan->chunk_blocks};
}

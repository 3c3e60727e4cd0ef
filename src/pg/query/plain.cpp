/*
 * plain.cpp - decodes most rows at once: those whose features are all there, in line and finite.
 */
#include <cmath>

#include "pg/query/decoder.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
}

/* The features of a row whose columns are fetched. */
struct SlotFeatures : TableSlotRow {
    float real(int i) const { return DatumGetFloat4(value(i)); }
};

/* Those of a tuple that has no NULLs, where they lie. */
struct TupleFeatures {
    const TableField *fields;
    const char *data;

    static bool is_null(int) { return false; }
    Datum value(int i) const { return fetch_att(data + fields[i].offset, fields[i].by_value, fields[i].length); }
    float real(int i) const { return *(const float *)(data + fields[i].offset); }
};

/* Columns of reals none of which is NULL, infinite or NaN. */
template <typename Features>
static inline bool write_reals(const Features &features, int count, float *out)
{
    bool bad = false;

    for (int i = 0; i < count; ++i) {
        out[i] = features.real(i);
        bad |= features.is_null(i) | !std::isfinite(out[i]);
    }
    return !bad;
}

/* Columns of other numbers none of which is NULL or too large, NaN, or of type numeric; and of categories, of whose
 * levels those of rows that take part count. */
template <typename Features>
static inline bool write_numbers(const Features &features, const TableColumn *columns, int count, Levels *levels,
                                 double *out)
{
    for (int i = 0; i < count; ++i)
        if (features.is_null(i))
            return false;
    for (int i = 0; i < count; ++i) {
        if (columns[i].kind == COLUMN_CATEGORY)
            out[i] = levels_code(levels, i, {features.value(i), false});
        else if (!pgkm_plain_number(features.value(i), columns[i].type, &out[i]) ||
                 !(std::fabs(out[i]) <= PGKM_MAX_MAGNITUDE))
            return false;
    }
    return true;
}

/* False for a row that is none of these. What has been written of it does not count. */
template <typename Features>
static inline bool write_plain(const TableDecoder *decoder, const Features &features, PgkmRows *used)
{
    const TableQuery *const query = decoder->query;

    if ((decoder->levels != NULL || decoder->computed != NULL) && !decoder->is_simple)
        return false;
    switch (decoder->plain) {
    case DECODE_REALS:
        return write_reals(features, query->n_features, (float *)pgkm_rows_next(used));
    case DECODE_NUMBERS:
        return write_numbers(features, query->features, query->n_features, decoder->levels,
                             (double *)pgkm_rows_next(used));
    case DECODE_REAL_ARRAY:
        return !features.is_null(0) && pgkm_copy_plain(features.value(0), used->d, (float *)pgkm_rows_next(used));
    default:
        return false;
    }
}

void table_decode(const TableDecoder *decoder, const TupleTableSlot *slot, TableOrigin *origin, TableRows *rows)
{
    if (decoder->computed != NULL && decoder->is_simple)
        table_compute_features(decoder, slot, origin);

    const bool written = rows->used != NULL && write_plain(decoder, SlotFeatures{{decoder, slot}}, rows->used);

    if (unlikely(!written || !decoder->is_simple)) {
        table_decode_with_care(decoder, slot, origin, rows, written);
        return;
    }
    ++rows->used->n;
    table_rows_add(rows, origin, true);
}

/* --- of tables that are scanned --- */

void table_find_fields(TableDecoder *decoder, TupleDesc tupdesc, int count, TableField *fields)
{
    int32 end = 0; /* of the attributes before; -1: it differs from tuple to tuple */
    int found = 0;

    for (AttrNumber at = 0; at < decoder->last && end >= 0; ++at) {
        const Form_pg_attribute attribute = TupleDescAttr(tupdesc, at);
        const int32 begin = (int32)att_align_nominal(end, attribute->attalign);

        /* A short value of any length is not aligned. */
        if (attribute->attlen < 0 && begin != end)
            break;
        for (int i = 0; i < count; ++i)
            if (decoder->places[i] == at) {
                fields[i] = {begin, attribute->attlen, attribute->attbyval};
                ++found;
            }
        end = attribute->attlen < 0 ? -1 : begin + attribute->attlen;
    }
    decoder->fields = found == count ? fields : NULL;
    decoder->n_fields = count;
}

/* Whether the tuple has each column at its field. */
static inline bool has_fields(const TableDecoder *decoder, const HeapTupleHeader header)
{
    return decoder->fields != NULL && (header->t_infomask & HEAP_HASNULL) == 0 &&
           HeapTupleHeaderGetNatts(header) >= decoder->last;
}

/* Fetches the columns without those before them. */
static void fetch_fields(const TableDecoder *decoder, const TupleFeatures &columns, TupleTableSlot *slot)
{
    for (int i = 0; i < decoder->n_fields; ++i) {
        slot->tts_values[decoder->places[i]] = columns.value(i);
        slot->tts_isnull[decoder->places[i]] = false;
    }
}

void table_decode_scanned(const TableDecoder *decoder, TupleTableSlot *slot, TableRows *rows)
{
    TableOrigin origin = {slot->tts_tid, slot->tts_tableOid, 0};

    if (!TTS_IS_BUFFERTUPLE(slot)) {
        slot_getsomeattrs(slot, decoder->last);
        table_decode(decoder, slot, &origin, rows);
        return;
    }

    const HeapTuple tuple = ((const HeapTupleTableSlot *)slot)->tuple;
    const HeapTupleHeader header = tuple->t_data;
    const TupleFeatures columns = {decoder->fields, (const char *)header + header->t_hoff};
    const bool fixed = has_fields(decoder, header);

    /* The rows of a page lie one below the other: a later one is asked for while this one is read. */
    __builtin_prefetch((const char *)header - 8 * tuple->t_len);
    /* The features of most rows are all that is wanted of them. */
    if (likely(fixed && decoder->is_simple && rows->used != NULL) && write_plain(decoder, columns, rows->used)) {
        ++rows->used->n;
        table_rows_add(rows, &origin, true);
        return;
    }
    if (fixed)
        fetch_fields(decoder, columns, slot);
    else
        slot_getsomeattrs(slot, decoder->last);
    table_decode(decoder, slot, &origin, rows);
}

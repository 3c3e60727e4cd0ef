/*
 * row_fault.cpp - the errors about single rows.
 */
#include "pg/values/datum.h"

/* The SQLSTATE and the text of a fault; `noun` says what an element is. */
static int describe(const PgkmRowFault *fault, const char *noun, char *text, size_t size)
{
    switch (fault->kind) {
    case PGKM_ROW_NULL_ELEMENT:
        snprintf(text, size, "%s %d must not be null", noun, fault->position);
        return ERRCODE_NULL_VALUE_NOT_ALLOWED;
    case PGKM_ROW_NAN:
        snprintf(text, size, "%s %d must not be NaN", noun, fault->position);
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PGKM_ROW_INFINITE:
        snprintf(text, size, "%s %d must be finite", noun, fault->position);
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PGKM_ROW_TOO_LARGE:
        snprintf(text, size, "%s %d is out of range: its magnitude exceeds 2^500", noun, fault->position);
        return ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
    case PGKM_ROW_EMPTY:
        snprintf(text, size, "%ss must not be empty", noun);
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_MULTIDIMENSIONAL:
        snprintf(text, size, "%ss must be a one-dimensional array", noun);
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_LENGTH:
        snprintf(text, size, "expected %d %ss, not %d", fault->expected, noun, fault->found);
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_NULL:
    case PGKM_ROW_TYPE:
        break;
    }
    snprintf(text, size, "%ss must be numbers of one type", noun);
    return ERRCODE_DATATYPE_MISMATCH;
}

void pgkm_raise_row_fault(const PgkmRowFault *fault, const char *ctid)
{
    char      text[128];
    const int sqlstate = describe(fault, "feature", text, sizeof text);

    ereport(ERROR,
            (errcode(sqlstate), errmsg("%s", text), ctid != NULL ? errdetail("The row is at ctid %s.", ctid) : 0));
    pg_unreachable();
}

void pgkm_raise_score_fault(const PgkmRowFault *fault)
{
    char      text[128];
    const int sqlstate = describe(fault, "score", text, sizeof text);

    ereport(ERROR, (errcode(sqlstate), errmsg("%s", text)));
    pg_unreachable();
}

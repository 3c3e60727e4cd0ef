/*
 * row_fault.cpp - the errors about single rows.
 */
#include "pg/datum.h"

/* The SQLSTATE and the text of a fault. */
static int describe(const PgkmRowFault *fault, char *text, size_t size)
{
    switch (fault->kind) {
    case PGKM_ROW_NULL_ELEMENT:
        snprintf(text, size, "feature %d must not be null", fault->position);
        return ERRCODE_NULL_VALUE_NOT_ALLOWED;
    case PGKM_ROW_NAN:
        snprintf(text, size, "feature %d must not be NaN", fault->position);
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PGKM_ROW_INFINITE:
        snprintf(text, size, "feature %d must be finite", fault->position);
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PGKM_ROW_TOO_LARGE:
        snprintf(text, size, "feature %d is out of range: its magnitude exceeds 2^500", fault->position);
        return ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
    case PGKM_ROW_EMPTY:
        snprintf(text, size, "features must not be empty");
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_MULTIDIMENSIONAL:
        snprintf(text, size, "features must be a one-dimensional array");
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_LENGTH:
        snprintf(text, size, "expected %d features, not %d", fault->expected, fault->found);
        return ERRCODE_ARRAY_SUBSCRIPT_ERROR;
    case PGKM_ROW_TYPE:
        break;
    }
    snprintf(text, size, "features must be numbers of one type");
    return ERRCODE_DATATYPE_MISMATCH;
}

void pgkm_raise_row_fault(const PgkmRowFault *fault, const char *ctid)
{
    char      text[128];
    const int sqlstate = describe(fault, text, sizeof text);

    ereport(ERROR,
            (errcode(sqlstate), errmsg("%s", text), ctid != NULL ? errdetail("The row is at ctid %s.", ctid) : 0));
    pg_unreachable();
}

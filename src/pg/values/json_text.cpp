/*
 * json_text.cpp - writing and reading the text forms of the extension's own types.
 */
#include "pg/values/json_text.h"

#include <cmath>

extern "C" {
#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
}

void pgkm_append_double(StringInfo out, double value)
{
    char buffer[DOUBLE_SHORTEST_DECIMAL_LEN];

    double_to_shortest_decimal_buf(value, buffer);
    appendStringInfoString(out, buffer);
}

void pgkm_append_list(StringInfo out, const double *values, int64 count)
{
    appendStringInfoChar(out, '[');
    for (int64 i = 0; i < count; ++i) {
        if (i > 0)
            appendStringInfoChar(out, ',');
        pgkm_append_double(out, values[i]);
    }
    appendStringInfoChar(out, ']');
}

void pgkm_malformed(const char *type, const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid input syntax for type %s", type),
                    errdetail("%s", detail)));
    pg_unreachable();
}

void pgkm_malformed_binary(const char *type, const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid binary format of type %s", type),
                    errdetail("%s", detail)));
    pg_unreachable();
}

[[noreturn]] static void malformed_key(const PgkmJson *json, const char *key, const char *must)
{
    pgkm_malformed(json->type, psprintf("Key \"%s\" must be %s.", key, must));
}

/* NULL where the key is missing. */
static char *find_text(const PgkmJson *json, const char *key)
{
    LOCAL_FCINFO(call, 2);

    InitFunctionCallInfoData(*call, NULL, 2, InvalidOid, NULL, NULL);
    call->args[0] = {json->object, false};
    call->args[1] = {CStringGetTextDatum(key), false};

    const Datum value = json_object_field_text(call);

    return call->isnull ? NULL : TextDatumGetCString(value);
}

char *pgkm_json_text(const PgkmJson *json, const char *key)
{
    char *const text = find_text(json, key);

    if (text == NULL)
        malformed_key(json, key, "given");
    return text;
}

double pgkm_json_number(const PgkmJson *json, const char *key)
{
    const double value = DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(pgkm_json_text(json, key))));

    if (!std::isfinite(value))
        malformed_key(json, key, "a finite number");
    return value;
}

PgkmJson pgkm_json_open(const char *type, const char *text, int32 version)
{
    const PgkmJson json = {type, DirectFunctionCall1(json_in, CStringGetDatum(text))};

    if (pgkm_json_number(&json, "version") != version)
        pgkm_malformed(type, "Unknown version.");
    return json;
}

int64 pgkm_json_integer(const PgkmJson *json, const char *key, int64 least, int64 most)
{
    const double value = pgkm_json_number(json, key);

    if (value < (double)least || value > (double)most || value != std::floor(value))
        malformed_key(json, key, psprintf("an integer from %lld to %lld", (long long)least, (long long)most));
    return (int64)value;
}

const double *pgkm_json_numbers(const PgkmJson *json, const char *key, const PgkmShape &shape, bool may_be_missing)
{
    static const char must[] = "a list of as many finite numbers as the other keys call for";
    char *const text = may_be_missing ? find_text(json, key) : pgkm_json_text(json, key);
    int depth = 0;

    if (text == NULL)
        return NULL;
    /* JSON's lists become the text of an array. What is no list of numbers is no array of numbers either. */
    for (char *at = text; *at != '\0'; ++at)
        if (*at == '[' || *at == ']') {
            depth += *at == '[' ? 1 : -1;
            if (depth > shape.dimensions)
                malformed_key(json, key, must);
            *at = *at == '[' ? '{' : '}';
        }

    const Datum array = OidInputFunctionCall(F_ARRAY_IN, text, FLOAT8OID, -1);
    const double *const numbers = pgkm_array_numbers(array, shape);

    if (numbers == NULL)
        malformed_key(json, key, must);
    return numbers;
}

/*
 * object.cpp - reads reductions, and makes their trees.
 */
#include "pg/reduce/object.h"

extern "C" {
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
}

/* More objects are hardly wanted. */
#define MAX_OBJECTS 64

enum TextNumber { TEXT_INDEX, TEXT_VALUE, TEXT_CELLS, TEXT_OP, TEXT_FILTER, TEXT_KEY };

static const char *const text_names[REDUCE_TEXTS] = {"index", "value", "cells", "op", "filter", "key"};

[[noreturn]] static void raise_invalid(const char *message, const char *object)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message),
                    object == NULL ? 0 : errdetail("The object is \"%s\".", object)));
    pg_unreachable();
}

/* --- trees --- */

static PgkmCombine combine_of(const char *object, const char *word)
{
    static const char *const names[] = {"sum", "min", "max", "count", "argmin"};

    for (int i = 0; i < (int)lengthof(names); ++i)
        if (pg_strcasecmp(word, names[i]) == 0)
            return (PgkmCombine)i;
    raise_invalid(psprintf("op must be sum, min, max, count or argmin, or a list of these in braces, not \"%s\"", word),
                  object);
}

/* One for each value, from one word for all or a list of as many. Returns how many are given. */
static int read_combines(const char *object, const char *op, PgkmCombine *combines, int capacity)
{
    char *const copy = pstrdup(op == NULL ? "sum" : op);
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(copy, "{}, \t\n", &rest); word != NULL; word = strtok_r(NULL, "{}, \t\n", &rest))
        if (count++ < capacity)
            combines[count - 1] = combine_of(object, word);
    for (; count == 1 && capacity > 1; --capacity)
        combines[capacity - 1] = combines[0];
    return count;
}

/* What stands for the value where rows are only counted. */
static List *one_for_each_row(ReduceTexts *texts, const char *op)
{
    PgkmTerm *const one = (PgkmTerm *)palloc0(sizeof(PgkmTerm));

    one->kind = PGKM_TERM_NUMBER;
    one->number = 1;
    one->place = reduce_add_text(texts, text_names[TEXT_OP], op);
    return list_make1(one);
}

static void parse_values(ReduceSource *source, const char *object, const char *const *given, PgkmObjectTree *tree)
{
    const char *const value = given[TEXT_VALUE];
    const char *const op = given[TEXT_OP];
    List *const terms = value != NULL ? reduce_parse_list(&source->texts, text_names[TEXT_VALUE], value)
                                      : one_for_each_row(&source->texts, op == NULL ? "" : op);
    const int count = list_length(terms);
    PgkmCombine *const combines = (PgkmCombine *)palloc(count * sizeof(PgkmCombine));
    const int n_words = read_combines(object, op, combines, count);
    bool all_counted = true;
    bool any_argmin = false;

    if (n_words != 1 && n_words != count)
        raise_invalid(psprintf("op must be one word, or %d of them for as many values, not %d", count, n_words),
                      object);
    tree->values = (const PgkmTerm **)palloc(count * sizeof(PgkmTerm *));
    for (int i = 0; i < count; ++i) {
        tree->values[i] = (const PgkmTerm *)list_nth(terms, i);
        all_counted = all_counted && combines[i] == PGKM_COMBINE_COUNT;
        any_argmin = any_argmin || combines[i] == PGKM_COMBINE_ARGMIN;
    }
    if (value == NULL && !all_counted)
        raise_invalid("value must be given unless op is count", object);
    if (any_argmin != (given[TEXT_KEY] != NULL))
        raise_invalid(any_argmin ? "op argmin needs a key" : "a key is for op argmin alone", object);
    tree->combines = combines;
    tree->n_values = count;
}

/* Adds an object of the texts that are given, others are NULL. */
static void add_object(ReduceSource *source, const char *name, const char *const *given)
{
    PgkmObjectTree *const tree = &source->objects[source->n_objects];
    const auto parse = [=](TextNumber i) { return reduce_parse(&source->texts, text_names[i], given[i]); };

    if ((given[TEXT_INDEX] == NULL) != (given[TEXT_CELLS] == NULL))
        raise_invalid(given[TEXT_INDEX] == NULL ? "cells need an index" : "an index needs cells", name);
    source->object_names[source->n_objects++] = name;
    tree->filter = parse(TEXT_FILTER);
    tree->cells = parse(TEXT_CELLS);
    tree->index = parse(TEXT_INDEX);
    parse_values(source, name, given, tree);
    tree->key = parse(TEXT_KEY);
}

/* --- reading --- */

static void make_source(ReduceSource *source, int n_objects)
{
    if (n_objects < 1 || n_objects > MAX_OBJECTS)
        raise_invalid(psprintf("a reduction has 1 to %d objects, not %d", MAX_OBJECTS, n_objects), NULL);
    memset(source, 0, sizeof *source);
    source->objects = (PgkmObjectTree *)palloc0(n_objects * sizeof(PgkmObjectTree));
    source->object_names = (const char **)palloc(n_objects * sizeof(char *));
}

static const char *copy_text(const JsonbValue *value)
{
    return pnstrdup(value->val.string.val, value->val.string.len);
}

void reduce_read_let(ReduceSource *source, JsonbContainer *let)
{
    const char *const message = "let must be a JSON object of expressions";

    if (let == NULL || !JsonContainerIsObject(let))
        raise_invalid(message, NULL);
    source->lets = (PgkmLet *)palloc((JsonContainerSize(let) + 1) * sizeof(PgkmLet));
    reduce_each_field(let, [=](const char *name, const JsonbValue *value) {
        if (value->type != jbvString)
            raise_invalid(message, NULL);
        source->lets[source->n_lets++] = {name, reduce_parse(&source->texts, name, copy_text(value))};
    });
}

Datum reduce_value_of_arguments(FunctionCallInfo fcinfo, int first)
{
    const int let = first + REDUCE_TEXTS;
    StringInfoData json;

    initStringInfo(&json);
    for (int i = 0; i < REDUCE_TEXTS; ++i)
        if (!PG_ARGISNULL(first + i)) {
            appendStringInfo(&json, ", \"%s\": ", text_names[i]);
            escape_json(&json, text_to_cstring(PG_GETARG_TEXT_PP(first + i)));
        }
    if (!PG_ARGISNULL(let))
        appendStringInfo(&json, ", \"let\": %s", JsonbToCString(NULL, &PG_GETARG_JSONB_P(let)->root, 0));
    if (!PG_ARGISNULL(let + 1))
        appendStringInfo(&json, ", \"exact\": %s", PG_GETARG_BOOL(let + 1) ? "true" : "false");
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(psprintf("{%s}", json.len == 0 ? "" : json.data + 2)));
}

/* The number of the text of that name; REDUCE_TEXTS for none. */
static int find_text(const char *name)
{
    int i = 0;

    while (i < REDUCE_TEXTS && strcmp(name, text_names[i]) != 0)
        ++i;
    return i;
}

/* `let` and `exact` are for a reduction as a whole, which has no name. */
static void read_object(ReduceSource *source, JsonbContainer *container, const char *name)
{
    const char *texts[REDUCE_TEXTS] = {NULL};

    if (container == NULL || !JsonContainerIsObject(container))
        raise_invalid("a reduction object must be a JSON object of texts", name);
    reduce_each_field(container, [=, &texts](const char *key, const JsonbValue *value) {
        const int text = find_text(key);

        if (text < REDUCE_TEXTS && (value->type == jbvNull || value->type == jbvString))
            texts[text] = value->type == jbvNull ? NULL : copy_text(value);
        else if (name == NULL && strcmp(key, "exact") == 0 && value->type == jbvBool)
            source->exact = value->val.boolean;
        else if (name == NULL && strcmp(key, "let") == 0)
            reduce_read_let(source, value->type == jbvBinary ? value->val.binary.data : NULL);
        else
            raise_invalid(psprintf("a reduction object has no text \"%s\"", key), name);
    });
    add_object(source, name, texts);
}

void reduce_read_value(ReduceSource *source, Jsonb *value)
{
    make_source(source, 1);
    read_object(source, &value->root, NULL);
}

void reduce_read_objects(ReduceSource *source, Jsonb *objects)
{
    if (!JB_ROOT_IS_OBJECT(objects))
        raise_invalid("objects must be a JSON object", NULL);
    make_source(source, JB_ROOT_COUNT(objects));
    reduce_each_field(&objects->root, [source](const char *name, const JsonbValue *value) {
        read_object(source, value->type == jbvBinary ? value->val.binary.data : NULL, name);
    });
}

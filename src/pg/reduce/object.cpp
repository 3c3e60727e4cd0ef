/*
 * object.cpp - reads reduction objects, and checks them.
 */
#include "pg/reduce/object.h"

#include "pg/reduce/parameters.h"

extern "C" {
#include "utils/builtins.h"
}

/* More of them are hardly wanted. */
#define MAX_OBJECTS 64

struct TextField {
    const char *name;
    Size offset;
};

static const TextField text_fields[REDUCE_TEXTS] = {
    {"index", offsetof(ReduceObject, index)},   {"value", offsetof(ReduceObject, value)},
    {"cells", offsetof(ReduceObject, cells)},   {"op", offsetof(ReduceObject, op)},
    {"filter", offsetof(ReduceObject, filter)}, {"key", offsetof(ReduceObject, key)}};

ReduceText *reduce_object_text(ReduceObject *object, int i)
{
    return (ReduceText *)((char *)object + text_fields[i].offset);
}

[[noreturn]] static void raise_object(const ReduceObject *object, const char *message)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message),
                    object->name == NULL ? 0 : errdetail("The object is \"%s\".", object->name)));
    pg_unreachable();
}

/* --- reading --- */

static ReduceObjects *make_objects(int count)
{
    ReduceObjects *const objects = (ReduceObjects *)palloc0(sizeof(ReduceObjects));

    if (count < 1 || count > MAX_OBJECTS)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a reduction has 1 to %d objects, not %d", MAX_OBJECTS, count)));
    objects->objects = (ReduceObject *)palloc0(count * sizeof(ReduceObject));
    for (int i = 0; i < count * REDUCE_TEXTS; ++i)
        reduce_object_text(&objects->objects[i / REDUCE_TEXTS], i % REDUCE_TEXTS)->what =
            text_fields[i % REDUCE_TEXTS].name;
    return objects;
}

static void set_text(ReduceObjects *objects, ReduceObject *object, int i, const char *text)
{
    *reduce_object_text(object, i) = {text_fields[i].name, text, objects->end};
    objects->end += (int32)Min(strlen(text), (size_t)REDUCE_MAX_TEXT) + 1;
}

[[noreturn]] static void raise_let(void)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("let must be a JSON object of expressions")));
    pg_unreachable();
}

static void read_lets(ReduceObjects *objects, JsonbContainer *container)
{
    if (!JsonContainerIsObject(container))
        raise_let();
    objects->lets.lets = (ReduceLet *)palloc0(Max(JsonContainerSize(container), 1) * sizeof(ReduceLet));
    reduce_each_field(container, [objects](const char *name, const JsonbValue *value) {
        if (value->type != jbvString)
            raise_let();
        objects->lets.lets[objects->lets.n_lets++].text = {name, pnstrdup(value->val.string.val, value->val.string.len),
                                                           objects->end};
        objects->end += Min(value->val.string.len, REDUCE_MAX_TEXT) + 1;
    });
}

void reduce_objects_let(ReduceObjects *objects, Jsonb *lets)
{
    read_lets(objects, &lets->root);
}

ReduceObjects *reduce_objects_of_arguments(FunctionCallInfo fcinfo, int first)
{
    ReduceObjects *const objects = make_objects(1);

    objects->n_objects = 1;
    for (int i = 0; i < REDUCE_TEXTS; ++i)
        if (!PG_ARGISNULL(first + i))
            set_text(objects, &objects->objects[0], i, text_to_cstring(PG_GETARG_TEXT_PP(first + i)));
    if (!PG_ARGISNULL(first + REDUCE_TEXTS))
        reduce_objects_let(objects, PG_GETARG_JSONB_P(first + REDUCE_TEXTS));
    return objects;
}

static void set_field(ReduceObjects *objects, ReduceObject *object, const char *key, const JsonbValue *value,
                      bool *exact)
{
    if (exact != NULL && strcmp(key, "exact") == 0 && value->type == jbvBool) {
        *exact = value->val.boolean;
        return;
    }
    if (exact != NULL && strcmp(key, "let") == 0 && value->type == jbvBinary) {
        read_lets(objects, value->val.binary.data);
        return;
    }
    for (int i = 0; i < REDUCE_TEXTS; ++i)
        if (strcmp(key, text_fields[i].name) == 0 && value->type == jbvNull)
            return;
        else if (strcmp(key, text_fields[i].name) == 0 && value->type == jbvString) {
            set_text(objects, object, i, pnstrdup(value->val.string.val, value->val.string.len));
            return;
        }
    raise_object(object, psprintf("a reduction object has no text \"%s\"", key));
}

static void read_object(ReduceObjects *objects, JsonbContainer *container, const char *name, bool *exact)
{
    ReduceObject *const object = &objects->objects[objects->n_objects++];

    object->name = name;
    if (!JsonContainerIsObject(container))
        raise_object(object, "a reduction object must be a JSON object of texts");
    reduce_each_field(container,
                      [=](const char *key, const JsonbValue *value) { set_field(objects, object, key, value, exact); });
}

ReduceObjects *reduce_objects_of_definition(Jsonb *definition, bool *exact)
{
    ReduceObjects *const objects = make_objects(1);

    read_object(objects, &definition->root, NULL, exact);
    return objects;
}

ReduceObjects *reduce_objects_of_jsonb(Jsonb *jsonb)
{
    if (!JB_ROOT_IS_OBJECT(jsonb))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("objects must be a JSON object")));

    ReduceObjects *const objects = make_objects(JB_ROOT_COUNT(jsonb));

    reduce_each_field(&jsonb->root, [objects](const char *name, const JsonbValue *value) {
        if (value->type != jbvBinary)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("a reduction object must be a JSON object of texts"),
                            errdetail("The object is \"%s\".", name)));
        read_object(objects, value->val.binary.data, name, NULL);
    });
    return objects;
}

/* --- checks --- */

static const char *const combine_names[] = {"sum", "min", "max", "count", "argmin"};

static PgkmCombine combine_of(const ReduceObject *object, const char *word)
{
    for (int i = 0; i < (int)lengthof(combine_names); ++i)
        if (pg_strcasecmp(word, combine_names[i]) == 0)
            return (PgkmCombine)i;
    raise_object(object,
                 psprintf("op must be sum, min, max, count or argmin, or a list of these in braces, not \"%s\"", word));
}

/* One for each value, from one word for all or a list of as many. */
static int read_combines(ReduceObject *object, PgkmCombine *combines, int capacity)
{
    char *const copy = pstrdup(object->op.text == NULL ? "sum" : object->op.text);
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(copy, "{}, \t\n", &rest); word != NULL; word = strtok_r(NULL, "{}, \t\n", &rest))
        if (count++ < capacity)
            combines[count - 1] = combine_of(object, word);
    for (; count == 1 && capacity > 1; --capacity)
        combines[capacity - 1] = combines[0];
    return count;
}

static void set_values(ReduceObject *object)
{
    ReduceTerm *const one = (ReduceTerm *)palloc0(sizeof(ReduceTerm));
    bool all_counted = true;
    bool any_argmin = false;

    one->kind = TERM_NUMBER;
    one->number = 1;
    one->place = object->op.start;
    object->values = object->value.text == NULL ? list_make1(one) : reduce_parse_list(&object->value);

    const int count = list_length(object->values);

    object->combines = (PgkmCombine *)palloc(count * sizeof(PgkmCombine));

    const int given = read_combines(object, object->combines, count);

    if (given != 1 && given != count)
        raise_object(object, psprintf("op must be one word, or %d of them for as many values, not %d", count, given));
    for (int i = 0; i < count; ++i) {
        all_counted = all_counted && object->combines[i] == PGKM_COMBINE_COUNT;
        any_argmin = any_argmin || object->combines[i] == PGKM_COMBINE_ARGMIN;
    }
    if (object->value.text == NULL && !all_counted)
        raise_object(object, "value must be given unless op is count");
    if (any_argmin != (object->key.text != NULL))
        raise_object(object, any_argmin ? "op argmin needs a key" : "a key is for op argmin alone");
}

static ReduceTerm *parse_if_given(const ReduceText *text)
{
    return text->text == NULL ? NULL : reduce_parse(text);
}

void reduce_objects_parse(ReduceObjects *objects)
{
    for (int i = 0; i < objects->lets.n_lets; ++i)
        objects->lets.lets[i].term = reduce_parse(&objects->lets.lets[i].text);
    for (int i = 0; i < objects->n_objects; ++i) {
        ReduceObject *const object = &objects->objects[i];

        if (object->index.text == NULL && object->cells.text != NULL)
            raise_object(object, "cells need an index");
        if (object->cells.text == NULL && object->index.text != NULL)
            raise_object(object, "an index needs cells");
        object->index_term = parse_if_given(&object->index);
        object->cells_term = parse_if_given(&object->cells);
        object->filter_term = parse_if_given(&object->filter);
        object->key_term = parse_if_given(&object->key);
        set_values(object);
    }
}

const ReduceText *reduce_objects_find(const ReduceObjects *objects, int32 place)
{
    const ReduceText *found = NULL;
    const auto look_at = [&found, place](const ReduceText *text) {
        if (text->text != NULL && text->start <= place && (found == NULL || text->start >= found->start))
            found = text;
    };

    for (int i = 0; i < objects->lets.n_lets; ++i)
        look_at(&objects->lets.lets[i].text);

    for (int i = 0; i < objects->n_objects; ++i)
        for (int j = 0; j < REDUCE_TEXTS; ++j)
            look_at(reduce_object_text(&objects->objects[i], j));
    return found;
}

/*
 * features.cpp - looks up the features and the filter of a table function: columns, expressions over them, and '{*}'.
 */
#include "pg/query/query.h"

#include <algorithm>

extern "C" {
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

/* --- expressions --- */

/* All columns of the relation, as an expression may name them. */
static ExpressionColumns columns_of(const TableRelation *of)
{
    const Relation relation = relation_open(of->id, AccessShareLock);
    const TupleDesc desc = RelationGetDescr(relation);
    ExpressionColumn *const columns = (ExpressionColumn *)palloc0((desc->natts + 1) * sizeof(ExpressionColumn));

    for (int i = 0; i < desc->natts; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(desc, i);

        if (!attribute->attisdropped)
            columns[i] = {pstrdup(NameStr(attribute->attname)), attribute->atttypid, attribute->atttypmod,
                          attribute->attcollation};
    }

    const ExpressionColumns all = {columns, desc->natts, psprintf("relation \"%s\"", of->name)};

    relation_close(relation, NoLock);
    return all;
}

/* The number of a column among the inputs. */
static int input_of(TableColumns *columns, const ExpressionColumn *column)
{
    for (int i = 0; i < columns->n_inputs; ++i)
        if (strcmp(columns->inputs[i].name, column->name) == 0)
            return i;

    columns->inputs[columns->n_inputs] = *column;
    return columns->n_inputs++;
}

static const Expression *parse(TableColumns *columns, const TableRelation *relation, const char *text,
                               ExpressionUse use)
{
    if (columns->all.columns == NULL) {
        columns->all = columns_of(relation);
        columns->inputs = (ExpressionColumn *)palloc((columns->all.count + 1) * sizeof(ExpressionColumn));
    }

    Expression *const expression = expression_parse(text, &columns->all, use);
    List *inputs = NIL;
    ListCell *cell;

    foreach (cell, expression->inputs)
        inputs = lappend_int(inputs, input_of(columns, &columns->all.columns[lfirst_int(cell)]));
    expression->inputs = inputs;
    return expression;
}

static void find_feature(TableColumns *columns, TableColumn *feature, const TableRelation *relation, const char *text)
{
    if (strcmp(text, "*") == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"*\" must be the only feature"),
                        errdetail("It stands for every column that can be one."),
                        errhint("Leave it out, or leave the others out.")));
    if (!table_is_expression(relation, text)) {
        table_feature_find(feature, relation, text);
        return;
    }

    const Expression *const expression = parse(columns, relation, text, EXPRESSION_FEATURE);

    if (!column_classify(feature, text, expression->type) || feature->kind == COLUMN_CAST)
        ereport(
            ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("expression \"%s\" has type %s, which cannot be a feature", text, format_type_be(expression->type)),
             column_detail_of_types(), errhint("Cast it, as (%s)::double precision or (%s)::text.", text, text)));
    feature->expression = expression;
}

void table_filter_find(TableColumns *columns, const TableRelation *relation, const char *condition)
{
    if (!table_is_expression(relation, condition)) {
        columns->filter = table_column_find(relation, TABLE_FILTER, condition);
        return;
    }
    columns->filter = (TableColumn *)palloc0(sizeof(TableColumn));
    columns->filter->name = condition;
    columns->filter->type = BOOLOID;
    columns->filter->expression = parse(columns, relation, condition, EXPRESSION_CONDITION);
}

/* --- all columns --- */

/* Columns of primary keys, unique constraints and indexes, and foreign keys. */
static Bitmapset *keys_of(Relation relation)
{
    Bitmapset *keys = NULL;
    ListCell *cell;

    if (relation->rd_rel->relhasindex)
        keys = RelationGetIndexAttrBitmap(relation, INDEX_ATTR_BITMAP_KEY);
    if (!RELKIND_HAS_STORAGE(relation->rd_rel->relkind) && relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
        return keys;
    foreach (cell, RelationGetFKeyList(relation)) {
        const ForeignKeyCacheInfo *const key = (const ForeignKeyCacheInfo *)lfirst(cell);

        for (int i = 0; i < key->nkeys; ++i)
            keys = bms_add_member(keys, key->conkey[i] - FirstLowInvalidHeapAttributeNumber);
    }
    return keys;
}

static bool holds_labels(Oid relation, AttrNumber number)
{
    const char *const comment = GetComment(relation, RelationRelationId, number);

    return comment != NULL && strncmp(comment, TABLE_LABEL_COMMENT, strlen(TABLE_LABEL_COMMENT)) == 0;
}

/* Every column that can be a feature beside others, in their order; with a NOTICE. */
static int find_all(TableColumn **features, const TableRelation *of, const List *except)
{
    const Relation relation = relation_open(of->id, AccessShareLock);
    const TupleDesc desc = RelationGetDescr(relation);
    const Bitmapset *const keys = keys_of(relation);
    StringInfoData names;
    int count = 0;

    initStringInfo(&names);
    *features = (TableColumn *)palloc0((desc->natts + 1) * sizeof(TableColumn));
    for (int i = 0; i < desc->natts; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(desc, i);
        TableColumn *const feature = &(*features)[count];
        const char *const name = pstrdup(NameStr(attribute->attname));

        if (attribute->attisdropped || bms_is_member(attribute->attnum - FirstLowInvalidHeapAttributeNumber, keys) ||
            list_member(except, makeString((char *)name)) || holds_labels(of->id, attribute->attnum) ||
            !column_classify(feature, name, getBaseType(attribute->atttypid)) || !column_is_single(feature))
            continue;
        appendStringInfo(&names, "%s%s", count++ == 0 ? "" : ", ", quote_identifier(name));
    }
    relation_close(relation, NoLock);
    if (count == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("relation \"%s\" has no columns that can be features", of->name),
                        errdetail("Keys, labels, and arrays are left out."), errhint("Name the columns.")));
    ereport(NOTICE, (errmsg("the features are %s", names.data)));
    return count;
}

static void check_feature(const TableColumn *features, int i, int count)
{
    for (int j = 0; j < i; ++j)
        if (strcmp(features[j].name, features[i].name) == 0)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("feature \"%s\" is named more than once", features[i].name)));
    if (count > 1 && !column_is_single(&features[i]))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("%s \"%s\" holds whole rows of features and cannot stand beside other columns",
                               features[i].expression == NULL ? "column" : "expression", features[i].name)));
}

void table_features_find(TableColumns *columns, const TableRelation *relation, ArrayType *names, const List *except)
{
    Datum *values;
    bool *nulls;
    int count;

    if (ARR_NDIM(names) != 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("features must be a list of one or more column names")));
    deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    if (count == 1 && !nulls[0] && strcmp(TextDatumGetCString(values[0]), "*") == 0) {
        columns->n_features = find_all(&columns->features, relation, except);
        return;
    }
    columns->n_features = count;
    columns->features = (TableColumn *)palloc0(count * sizeof(TableColumn));
    for (int i = 0; i < count; ++i) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("features must not contain a null")));
        find_feature(columns, &columns->features[i], relation, TextDatumGetCString(values[i]));
        check_feature(columns->features, i, count);
    }
}

bool table_columns_have_expressions(const TableColumns *columns)
{
    const auto is_expression = [](const TableColumn &column) { return column.expression != NULL; };

    return std::any_of(columns->features, columns->features + columns->n_features, is_expression);
}

/*
 * expression_check.h - whether an expression may be a model's: it must run nothing of its author's and mean the same
 * always and everywhere, since others apply the model to their rows, with their rights and settings.
 */
#ifndef PGKM_PG_COLUMNS_EXPRESSION_CHECK_H
#define PGKM_PG_COLUMNS_EXPRESSION_CHECK_H

extern "C" {
#include "postgres.h"
#include "parser/parse_node.h"
}

/* What to do with an expression that a model cannot have. */
#define EXPRESSION_VIEW_HINT "Put the expression into a view and name the view's column."

/* Whether columns of this type can be named: one that is built in, an enum, a domain over one, an array of one. */
bool expression_type_serves(Oid type);

/* Before the text is analysed, which may call functions to read literals: all names are those of pg_catalog. 0A000. */
void expression_check_names(ParseState *state, Node *raw, bool is_feature);

/* After that: all nodes are known, all functions built in and immutable, all literals of constant meaning. 0A000 and
 * 42P17. */
void expression_check_tree(ParseState *state, Node *tree);

#endif

/*
 * parsing.h - what the files that make terms of a text share.
 */
#ifndef PGKM_PG_REDUCE_PARSING_H
#define PGKM_PG_REDUCE_PARSING_H

#include "pg/reduce/term.h"

extern "C" {
#include "nodes/nodes.h"
}

struct Parsing {
    const ReduceText *text;
    int n_terms;
};

/* 0A000 at that place of the text. */
[[noreturn]] void parsing_refuse(const Parsing *parsing, int32 place, const char *message);

/* 54000 */
[[noreturn]] void parsing_raise_too_long(void);

/* A location in the text as a place. */
int32 parsing_place(const Parsing *parsing, int location);

/* The term of a node of the grammar. */
ReduceTerm *parsing_convert(Parsing *parsing, Node *node);

#endif

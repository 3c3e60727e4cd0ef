/*
 * lowering.h - what the files that type and lower terms share.
 *
 * A program knows numbers alone. A vector or a matrix is lowered at one place of it: `At` holds the expressions of
 * that place's subscripts. Who wants all elements lowers it at the index of a loop.
 */
#ifndef PGKM_PG_REDUCE_LOWERING_H
#define PGKM_PG_REDUCE_LOWERING_H

#include "pg/reduce/lower.h"

/* Terms that are lowered, loops unrolled: an end to texts that would take for ever. */
#define MAX_LOWERED 2000000

/* Of a loop. */
#define MAX_COUNT ((int64)PG_INT32_MAX)

/* The index of a loop around the term, and the expression of its value. */
struct Scope {
    const char *name;
    int32 index;
    Scope *outer;
};

/* Loops of a program that are known to `Lowering`. */
#define MAX_LOOPS 1024

struct Lowering {
    ReduceProgram *program;
    const ReduceColumns *columns;
    const ReduceLets *lets;
    bool *meant;            /* of each: its expression is being lowered */
    const ReduceText *text; /* the one that is lowered */
    ReduceErrors errors;
    Scope *scope;
    bool running[MAX_LOOPS]; /* loops around the term */
    bool of_items[MAX_LOOPS];
    double steps; /* of them all */
    int lowered;
};

struct At {
    int n;
    int32 index[2];
};

static const At nowhere = {0, {-1, -1}};

struct Value {
    int32 expression;
    bool truth;
};

/* What a name stands for: an index of a loop, another expression, a parameter or a column. */
struct Found {
    const Scope *scope;
    const ReduceLet *let;
    const ReduceName *name;
    PgkmOperation operation;
};

/* --- shape.cpp: names, counts, loops, shapes --- */

[[noreturn]] void lowering_raise(const Lowering *lowering, int sqlstate, int32 place, const char *message);
[[noreturn]] void lowering_raise_shape(const Lowering *lowering, const ReduceTerm *term, int dimensions);

/* Errors are about this text from now on. */
void lowering_switch_text(Lowering *lowering, const ReduceText *text);

/* Counts one term more; 54000 for too many. */
void lowering_count(Lowering *lowering, const ReduceTerm *term);

Found find_name(const Lowering *lowering, const ReduceTerm *term);
const char *name_of_shape(int dimensions);
/* Rows as long as each other, or 22023. Of a `vector` whose rows are lowered one by one (`by_rows`) they may differ:
 * the shape is that of the first. */
ReduceShape shape_of(Lowering *lowering, const ReduceTerm *term, bool by_rows = false);

/* Of what has subscripts or lengths, two dimensions at most. */
ReduceShape shape_of_base(Lowering *lowering, const ReduceTerm *base);

/* A whole number made of parameters and numbers. Its expressions do not stay in the program. */
int64 count_of(Lowering *lowering, const ReduceTerm *term, int64 least, int64 most);
/* A loop of so many steps that does not run around the term: the same ones again, so that equal bodies are equal
 * expressions. Loops over the elements of items are others than those within. */
int32 enter_loop(Lowering *lowering, int64 count, bool of_item, int32 place);
void leave_loop(Lowering *lowering, int32 loop);
int32 index_of(Lowering *lowering, int32 loop, int32 place);

/* Where its expression is lowered no index of the place where the name stands is known. */
template <typename Work>
static auto within_let(Lowering *lowering, const ReduceLet *let, const ReduceTerm *term, Work work)
{
    bool *const meant = &lowering->meant[let - lowering->lets->lets];
    const ReduceText *const text = lowering->text;
    Scope *const scope = lowering->scope;

    if (*meant)
        lowering_raise(lowering, ERRCODE_INVALID_RECURSION, term->place, psprintf("\"%s\" means itself", term->name));
    *meant = true;
    lowering_switch_text(lowering, &let->text);
    lowering->scope = NULL;
    const auto result = work(let->term);
    lowering->scope = scope;
    lowering_switch_text(lowering, text);
    *meant = false;
    return result;
}

/* --- lower.cpp: terms at a place --- */

Value lower(Lowering *lowering, const ReduceTerm *term, const At *at);
int32 lower_number(Lowering *lowering, const ReduceTerm *term, const At *at);
int32 lower_truth(Lowering *lowering, const ReduceTerm *term, const At *at);

#endif

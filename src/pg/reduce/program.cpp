/*
 * program.cpp - grows a program, and evaluates what does not depend on rows.
 */
#include "pg/reduce/program.h"

#include <cmath>

#include "engine/api.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
}

#define CHAINS 4096

ReduceProgram *reduce_program_create(const ReduceParameters *parameters, int n_objects)
{
    ReduceProgram *const program = (ReduceProgram *)palloc0(sizeof(ReduceProgram));

    program->parameters = parameters;
    program->capacity = 64;
    program->expressions = (PgkmExpression *)palloc(program->capacity * sizeof(PgkmExpression));
    program->next = (int32 *)palloc(program->capacity * sizeof(int32));
    program->chains = (int32 *)palloc(CHAINS * sizeof(int32));
    memset(program->chains, -1, CHAINS * sizeof(int32));
    program->loops = (int64 *)palloc(sizeof(int64));
    program->items_capacity = 8;
    program->items = (PgkmItem *)palloc(program->items_capacity * sizeof(PgkmItem));
    program->objects = (PgkmObject *)palloc0(n_objects * sizeof(PgkmObject));
    return program;
}

[[noreturn]] static void raise_too_large(void)
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("reduction is too large"),
                    errdetail("A reduction has at most %d different expressions.", REDUCE_MAX_EXPRESSIONS)));
    pg_unreachable();
}

/* --- evaluation --- */

/* An operation without loops and names. What is not finite has failed. */
static double apply(PgkmOperation operation, double x, double y, double z)
{
    return operation == PGKM_POWER && y == 2 ? x * x : pgkm_operation_value(operation, x, y, z);
}

/* The element of a parameter; NaN outside. */
static double element(const ReduceProgram *program, const PgkmExpression *expression, const double *subscripts)
{
    int64 place = expression->first;

    for (int i = 0; i < 2; ++i) {
        if (expression->a[i] < 0)
            continue;
        if (!(subscripts[i] >= 0 && subscripts[i] < expression->extent[i] &&
              subscripts[i] == std::floor(subscripts[i])))
            return NAN;
        place += (int64)subscripts[i] * (i == 0 && expression->a[1] >= 0 ? expression->extent[1] : 1);
    }
    return program->parameters->values[place];
}

bool reduce_evaluate(const ReduceProgram *program, int32 place, double *value)
{
    const PgkmExpression *const expression = &program->expressions[place];
    double arguments[3] = {0, 0, 0};

    check_stack_depth();
    CHECK_FOR_INTERRUPTS();
    if (expression->operation == PGKM_CONSTANT) {
        *value = expression->number;
        return true;
    }
    if (expression->operation == PGKM_CASE)
        return reduce_evaluate(program, expression->a[0], value) &&
               reduce_evaluate(program, expression->a[*value != 0 ? 1 : 2], value);
    for (int i = 0; i < 3; ++i)
        if (expression->a[i] >= 0 && !reduce_evaluate(program, expression->a[i], &arguments[i]))
            return false;
    *value = expression->operation == PGKM_PARAMETER
                 ? element(program, expression, arguments)
                 : apply(expression->operation, arguments[0], arguments[1], arguments[2]);
    return std::isfinite(*value);
}

/* --- growth --- */

static uint32 hash_of(const PgkmExpression *expression)
{
    return hash_bytes((const unsigned char *)expression, offsetof(PgkmExpression, place)) % CHAINS;
}

/* Places do not count, so that the same expression in two texts is one. `key` has no bytes that are not set. */
static int32 add(ReduceProgram *program, const PgkmExpression *key)
{
    int32 *const chain = &program->chains[hash_of(key)];

    for (int32 i = *chain; i >= 0; i = program->next[i])
        if (memcmp(&program->expressions[i], key, offsetof(PgkmExpression, place)) == 0)
            return i;
    if (program->n == REDUCE_MAX_EXPRESSIONS)
        raise_too_large();
    if (program->n == program->capacity) {
        program->capacity *= 2;
        program->expressions =
            (PgkmExpression *)repalloc(program->expressions, program->capacity * sizeof(PgkmExpression));
        program->next = (int32 *)repalloc(program->next, program->capacity * sizeof(int32));
    }
    memcpy(&program->expressions[program->n], key, sizeof *key);
    program->next[program->n] = *chain;
    *chain = program->n;
    return program->n++;
}

static void start_key(PgkmExpression *key, PgkmOperation operation, int32 place)
{
    memset(key, 0, sizeof *key);
    key->operation = operation;
    key->a[0] = key->a[1] = key->a[2] = -1;
    key->loop = -1;
    key->extent[0] = key->extent[1] = 1;
    key->place = place;
}

int32 reduce_emit_constant(ReduceProgram *program, int32 place, double number)
{
    PgkmExpression key;

    start_key(&key, PGKM_CONSTANT, place);
    key.number = number;
    return add(program, &key);
}

static bool is_constant(const ReduceProgram *program, int32 expression)
{
    return expression < 0 || program->expressions[expression].operation == PGKM_CONSTANT;
}

int32 reduce_emit(ReduceProgram *program, PgkmOperation operation, int32 place, int32 a, int32 b, int32 c)
{
    PgkmExpression key;

    if (operation == PGKM_CASE && is_constant(program, a))
        return program->expressions[a].number != 0 ? b : c;
    if (is_constant(program, a) && is_constant(program, b) && is_constant(program, c)) {
        const auto number = [program](int32 i) { return i < 0 ? 0 : program->expressions[i].number; };
        const double value = apply(operation, number(a), number(b), number(c));

        if (std::isfinite(value))
            return reduce_emit_constant(program, place, value);
    }
    start_key(&key, operation, place);
    key.a[0] = a;
    key.a[1] = b;
    key.a[2] = c;
    return add(program, &key);
}

int32 reduce_emit_loop(ReduceProgram *program, PgkmOperation operation, int32 place, int32 loop, int32 body)
{
    PgkmExpression key;

    start_key(&key, operation, place);
    key.a[0] = body;
    key.loop = loop;
    return add(program, &key);
}

int32 reduce_emit_value(ReduceProgram *program, PgkmOperation operation, int32 place, const ReduceName *name,
                        int32 first, int32 second)
{
    PgkmExpression key;

    start_key(&key, operation, place);
    key.a[0] = first;
    key.a[1] = second;
    key.first = name->first;
    memcpy(key.extent, name->extent, sizeof key.extent);
    return add(program, &key);
}

void reduce_program_cut(ReduceProgram *program, int32 n)
{
    while (program->n > n) {
        --program->n;
        program->chains[hash_of(&program->expressions[program->n])] = program->next[program->n];
    }
}

int32 reduce_add_loop(ReduceProgram *program, int64 count)
{
    program->loops = (int64 *)repalloc(program->loops, (program->n_loops + 1) * sizeof(int64));
    program->loops[program->n_loops] = count;
    return program->n_loops++;
}

void reduce_add_item(ReduceProgram *program, const PgkmItem *item)
{
    if (program->n_items == REDUCE_MAX_EXPRESSIONS)
        raise_too_large();
    if (program->n_items == program->items_capacity) {
        program->items_capacity *= 2;
        program->items = (PgkmItem *)repalloc(program->items, program->items_capacity * sizeof(PgkmItem));
    }
    program->items[program->n_items++] = *item;
}

#!/usr/bin/python3
"""Random reductions; run by hand beside a throw-away server, a short run is part of make test:

    scripts/with-postgres test/fuzz/fuzz_reduce.py [--seconds 600] [--seed 1]

Each tree of expressions is written twice: as the texts of a reduction, and as SQL in double precision, with loops written
out. The values of each row, and figures of cells, must be the executor's: exactly where nothing is rounded, else to 1e-9.
Where one of them fails the other must fail, too. Figures of cells of many rows are the same bits, or the same error, with and
without parallel workers. Random text, and texts that are damaged, must be refused with an SQLSTATE
that is documented. Prints the statement that did not; the same seed repeats the same statements. Needs psql.
"""
import argparse
import json
import math
import random
import re
import sys
import time

from common import Session

ALLOWED = {"42601", "0A000", "42703", "42702", "42804", "42P19", "22023", "22003", "22012", "54000", "54001", "22P02", "57014", "22004",
           "2201E", "2201F", "22019", "22025"}
ROWS = 24
PARAMETERS = {"p": 3, "q": -0.5, "v": [1, 2.5, -3], "m": [[1, 0, 2], [0.25, -1, 4]]}


class Term:
    """ours: the text of the reduction. sql: a function of the indexes' values that gives the executor's text.
    exact: nothing is rounded; bound: its magnitude is no more."""

    def __init__(self, ours, sql, exact=True, bound=64.0):
        self.ours, self.sql, self.exact, self.bound = ours, sql, exact, bound


def number(value):
    text = f"({value})" if value < 0 else str(value)
    return Term(text, lambda _: f"({value}::float8)", bound=abs(value))


def binary(symbol, a, b, exact, bound):
    return Term(f"({a.ours} {symbol} {b.ours})", lambda e: f"({a.sql(e)} {symbol} {b.sql(e)})", exact, bound)


def call(name, *terms, exact=True, bound=1.0):
    return Term(f"{name}({', '.join(t.ours for t in terms)})", lambda e: f"{name}({', '.join(t.sql(e) for t in terms)})", exact, bound)


class Trees:
    def __init__(self, dice):
        self.dice = dice
        self.lets = {}
        self.fresh = 0

    def index(self):
        self.fresh += 1
        return f"i{self.fresh}"

    def leaf(self, scope):
        d = self.dice
        kind = d.randint(0, 9)
        if kind < 4:
            name = d.choice(["x", "y", "g", "n"])
            return Term(name, lambda _: f"{name}::float8")
        if kind == 4:
            return number(d.choice([0, 1, 2, 3, 0.5, -1, 7, 0.25]))
        if kind == 5:
            name = d.choice(["p", "q"])
            return Term(name, lambda _: f"({PARAMETERS[name]}::float8)", bound=3)
        if scope and kind < 8:
            i, _ = d.choice(scope)
            return Term(i, lambda e: f"({e[i]}::float8)", bound=4)
        place, value = self.subscript(scope, 3)
        if kind < 9:
            return Term(f"f[{place}]", lambda e: f"f[{value(e)} + 1]")
        row, row_value = self.subscript(scope, 2)
        return Term(f"m[{row}][{place}]", lambda e: f"({PARAMETERS['m'][row_value(e)][value(e)]}::float8)", bound=4)

    def subscript(self, scope, extent):
        """A text, and its value by the indexes' values."""
        fit = [i for i, count in scope if count <= extent]
        if fit and self.dice.random() < 0.7:
            i = self.dice.choice(fit)
            return i, lambda e: e[i]
        constant = self.dice.randrange(extent)
        return str(constant), lambda _: constant

    def exact(self, depth, scope=()):
        """A term in which nothing is rounded, so that floor and comparisons of it are the same everywhere."""
        d = self.dice
        if depth == 0:
            return self.leaf(scope)
        kind = d.randint(0, 13)
        if kind < 3:
            a, b = self.exact(depth - 1, scope), self.exact(depth - 1, scope)
            if a.bound + b.bound < 2.0 ** 30:
                return binary(d.choice("+-"), a, b, True, a.bound + b.bound)
            return a
        if kind == 3:
            a, b = self.exact(depth - 1, scope), self.exact(depth - 1, scope)
            return binary("*", a, b, True, a.bound * b.bound) if a.bound * b.bound < 2.0 ** 20 else a
        if kind < 6:
            a = self.exact(depth - 1, scope)
            return call(d.choice(["abs", "floor", "ceil", "trunc", "sign", "round"]), a, bound=a.bound + 1)
        if kind == 6:
            a, b = self.exact(depth - 1, scope), self.exact(depth - 1, scope)
            return call(d.choice(["least", "greatest"]), a, b, bound=max(a.bound, b.bound))
        if kind == 7:
            a, divisor = self.exact(depth - 1, scope), d.choice([1, 2, 3, 5, 0.5, 0.75])
            return Term(f"({a.ours} % {divisor})", lambda e: f"mod(({a.sql(e)})::numeric, {divisor})::float8", bound=8)
        if kind == 8:
            a = self.exact(depth - 1, scope)
            return Term(f"(-{a.ours})", lambda e: f"(-({a.sql(e)}))", bound=a.bound)
        if kind == 9:
            condition, a, b = self.condition(depth - 1, scope), self.exact(depth - 1, scope), self.exact(depth - 1, scope)
            return Term(f"CASE WHEN {condition.ours} THEN {a.ours} ELSE {b.ours} END",
                        lambda e: f"(CASE WHEN {condition.sql(e)} THEN {a.sql(e)} ELSE {b.sql(e)} END)", bound=max(a.bound, b.bound))
        if kind == 10 and not scope:
            a, name = self.exact(depth - 1), f"l{len(self.lets)}"
            self.lets[name] = a.ours
            return Term(name, a.sql, bound=a.bound)
        if kind == 11:
            a = self.exact(depth - 1, scope)
            return Term(f"power({a.ours}, 2)", lambda e: f"power({a.sql(e)}, 2)", bound=a.bound ** 2) if a.bound < 2.0 ** 10 else a
        if len(scope) < 2:
            return self.loop(depth, scope)
        return self.leaf(scope)

    def loop(self, depth, scope):
        d = self.dice
        i, count = self.index(), d.choice([1, 2, 3, 3, 4])
        name = d.choice(["sum", "min", "max", "argmin", "argmax", "count"])
        inner = (*scope, (i, count))
        body = self.condition(depth - 1, inner) if name == "count" else self.exact(depth - 1, inner)
        if name == "sum" and body.bound > 2.0 ** 28:
            return self.leaf(scope)
        text = {1: "1", 2: "array_length(m, 1)", 3: d.choice(["3", "cardinality(f)", "p", "array_length(m, 2)"]), 4: "p + 1"}[count]

        def sql(e):
            parts = [f"({body.sql({**e, i: j})})" for j in range(count)]
            if name == "count":
                return "(" + " + ".join(f"({p})::int" for p in parts) + ")::float8"
            if name == "sum":
                return f"(0::float8 + {' + '.join(parts)})"
            if name in ("min", "max"):
                return f"{'least' if name == 'min' else 'greatest'}({', '.join(parts)})"
            best = f"{'least' if name == 'argmin' else 'greatest'}({', '.join(parts)})"
            return f"(array_position(ARRAY[{', '.join(parts)}], {best}) - 1)::float8"

        bound = 4 if name in ("argmin", "argmax", "count") else body.bound * (count if name == "sum" else 1)
        return Term(f"{name}({i}, {text}, {body.ours})", sql, bound=bound)

    def condition(self, depth, scope=()):
        d = self.dice
        kind = d.randint(0, 7) if depth > 0 else d.randint(0, 3)
        if kind < 4:
            a, b, symbol = self.exact(max(depth - 1, 0), scope), self.exact(max(depth - 1, 0), scope), d.choice(["=", "<>", "<", "<=", ">", ">=", "!="])
            return binary(symbol, a, b, True, 1)
        if kind == 4:
            a = self.condition(depth - 1, scope)
            return Term(f"(NOT {a.ours})", lambda e: f"(NOT {a.sql(e)})")
        if kind == 5:
            a, b, c, no = self.exact(depth - 1, scope), self.exact(depth - 1, scope), self.exact(depth - 1, scope), d.choice(["", "NOT "])
            return Term(f"({a.ours} {no}BETWEEN {b.ours} AND {c.ours})", lambda e: f"({a.sql(e)} {no}BETWEEN {b.sql(e)} AND {c.sql(e)})")
        a, b, word = self.condition(depth - 1, scope), self.condition(depth - 1, scope), d.choice(["AND", "OR"])
        return Term(f"({a.ours} {word} {b.ours})", lambda e: f"({a.sql(e)} {word} {b.sql(e)})")

    def rounded(self, depth):
        """A term of functions that round; some fail for some rows."""
        d = self.dice
        a = self.exact(depth)
        small = Term(f"least(9, greatest(-9, {a.ours}))", lambda e: f"least(9, greatest(-9, {a.sql(e)}))", bound=9)
        kind = d.randint(0, 7)
        if kind < 3:
            term = call(d.choice(["exp", "sin", "cos", "atan", "tanh"]), small, exact=False)
        elif kind == 3:
            term = call(d.choice(["sqrt", "ln"]), call("abs", a) if d.random() < 0.8 else a, exact=False)
        elif kind == 4:
            term = call(d.choice(["asin", "acos"]), Term(f"({small.ours} / 9)", lambda e: f"({small.sql(e)} / 9)"), exact=False)
        elif kind == 5:
            b = self.exact(1)
            term = binary("/", a, b, False, 1)
        elif kind == 6:
            zero = number(0) # atan2 tells -0 from 0, and numeric has no -0
            term = call("atan2", binary("+", a, zero, True, 1), binary("+", self.exact(1), zero, True, 1), exact=False)
        else:
            term = call("power", call("abs", small), number(d.choice([0.5, 3, 1.5])), exact=False)
        return term if d.random() < 0.5 else binary(d.choice("+*-"), term, number(d.choice([1, 0.5, 3])), False, 1)

    def values(self):
        """Of a row: a text, and the executor's for each element."""
        d = self.dice
        if d.random() < 0.8:
            return self.exact(d.randint(1, 5)) if d.random() < 0.7 else self.rounded(d.randint(0, 2)), [{}]
        i, j, lines, columns = self.index(), self.index(), d.randint(1, 3), d.randint(1, 3)
        body = self.exact(d.randint(0, 3), ((i, lines), (j, columns)))
        return (Term(f"vector({i}, {lines}, vector({j}, {columns}, {body.ours}))", body.sql),
                [{i: a, j: b} for a in range(lines) for b in range(columns)])


def quoted(value):
    return "'" + value.replace("'", "''") + "'"


def arguments(lets):
    return f"params => {quoted(json.dumps(PARAMETERS))}, let => {quoted(json.dumps(lets))}"


def reduction(dice, texts, lets, exact="false"):
    """The arguments of reduce: the texts themselves, or the value that kmeans_reduction makes of them."""
    if dice.random() < 0.5:
        return f"{texts}, exact => {exact}, {arguments(lets)}"
    return f"kmeans_reduction({texts}, exact => {exact}, let => {quoted(json.dumps(lets))})::text::jsonb, {quoted(json.dumps(PARAMETERS))}"


def numbers(line):
    """Of the text of an array."""
    return [None if n == "NULL" else float(n) for n in line.strip("{}").split(",")]


def same(a, b, exact):
    if a is None or b is None:
        return a is b
    return a == b if exact else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def compare(session, ours, theirs, exact):
    """Whether it failed. Both must, or neither."""
    got, failed = session.run(ours)
    wanted, executor_failed = session.run(theirs)
    if (failed is None) != (executor_failed is None):
        raise AssertionError(f"{failed} but {executor_failed} of {theirs}")
    if failed is not None:
        return True
    if len(got) != len(wanted):
        raise AssertionError(f"{len(got)} rows, not {len(wanted)}, of {theirs}")
    for mine, other in zip(got, wanted):
        for a, b, is_exact in zip(numbers(mine), numbers(other), exact):
            if not same(a, b, is_exact):
                raise AssertionError(f"{mine} is not {other} of {theirs}")
    return False


def workers_case(dice, session):
    """Figures of cells, with no worker and with three."""
    trees = Trees(dice)
    terms = [dice.choice([trees.exact, trees.rounded])(dice.randint(0, 2)) for _ in range(3)]
    operations = [dice.choice(["sum", "min", "max", "count", "argmin"]) for _ in terms]
    cells = dice.choice([1, 1, 3, 20])
    key = f"key => {quoted(trees.exact(1).ours)}, " if "argmin" in operations else ""
    statement = (f"SELECT * FROM kmeans_reduce('fuzz_many', index => 'abs(floor(g)) % {cells}', cells => '{cells}', op => '{{{', '.join(operations)}}}', "
                 f"value => {quoted('{' + ', '.join(t.ours for t in terms) + '}')}, {key}filter => {quoted(trees.condition(1).ours)}, "
                 f"exact => {dice.choice(['true', 'false'])}, {arguments(trees.lets)})")
    answers = []
    for workers in (0, 3):
        session.run(f"SET max_parallel_workers_per_gather = {workers}")
        answers.append((*session.run(statement), session.message))
    if answers[0] != answers[1]:
        raise AssertionError(f"{answers[0]} is not {answers[1]}")
    return statement, answers[0][1] is not None


def rows_case(dice):
    """Values of each row."""
    trees = Trees(dice)
    terms = [trees.values() for _ in range(dice.randint(1, 4))]
    texts = f"index => 'id', cells => '{ROWS}', value => {quoted('{' + ', '.join(t.ours for t, _ in terms) + '}')}"
    ours = f"SELECT value FROM kmeans_reduce('fuzz_rows', {reduction(dice, texts, trees.lets)}) ORDER BY cell"
    # The key keeps the planner from reading anything else than what stands there.
    theirs = f"SELECT ARRAY[{', '.join(t.sql(e) for t, elements in terms for e in elements)}]::float8[] FROM fuzz_rows ORDER BY id"
    return ours, theirs, [t.exact for t, elements in terms for _ in elements]


def cells_case(dice):
    """Figures of cells, of the rows that a condition leaves."""
    trees = Trees(dice)
    condition, term, key = trees.condition(2), trees.exact(dice.randint(1, 3)), trees.exact(1)
    cells = dice.randint(1, 6)
    texts = (f"index => 'abs(floor(g)) % {cells}', cells => '{cells}', op => '{{sum, min, max, count, argmin}}', "
             f"value => {quoted('{' + ', '.join([term.ours] * 5) + '}')}, key => {quoted(key.ours)}, filter => {quoted(condition.ours)}")
    ours = f"SELECT value FROM kmeans_reduce('fuzz_rows', {reduction(dice, texts, trees.lets, dice.choice(['true', 'false']))}) ORDER BY cell"
    value = f"({term.sql({})})"
    theirs = (f"SELECT ARRAY[coalesce(sum(v), 0), min(v), max(v), count(v), (array_agg(k ORDER BY v, k) FILTER (WHERE v IS NOT NULL))[1]]::float8[] "
              f"FROM generate_series(0, {cells - 1}) AS c LEFT JOIN (SELECT abs(floor(g::float8))::int % {cells} AS c, {value} AS v, {key.sql({})} AS k "
              f"FROM fuzz_rows WHERE {condition.sql({})}) AS t USING (c) GROUP BY c ORDER BY c")
    # Sums are exact where the scale of the integers allows it: a value may lie 2^45 below the largest.
    return ours, theirs, [False, True, True, True, True]


WORDS = re.compile(r"[a-z_]\w*|[0-9.]+|\s+|.", re.S)
SOUP = ["f", "x", "p", "m", "v", "i", "(", ")", "[", "]", ",", "+", "-", "*", "/", "^", "%", "sum", "vector", "min", "argmin", "count", "CASE", "WHEN", "THEN",
        "ELSE", "END", "1", "0", "1e308", "0.5", "'", '"', "{", "}", ";", "--", "/*", "::", "$1", "AND", "OR", "NOT", "BETWEEN", "SELECT", "FROM", "NULL", "true",
        "old.x", "=", "<", "é", "\\", "ARRAY[", "IN", "IS", "pi()", "cardinality", "9" * 20, "0x1F", "1_0", "AS", "*", "x.y", "DISTINCT", "::int[]", "U&'\\0061'"]


def text_case(dice):
    """A text that is damaged, or none at all."""
    trees = Trees(dice)
    if dice.random() < 0.5:
        words = WORDS.findall(dice.choice([trees.exact, trees.condition])(dice.randint(1, 4)).ours)
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(len(words))
            words[place:place + dice.randint(0, 2)] = dice.choice([[], [dice.choice(SOUP)], [words[dice.randrange(len(words))]]])
            words = words or ["x"]
        text = "".join(words)
    else:
        text = " ".join(dice.choice(SOUP) for _ in range(dice.randint(1, 12)))
    name = dice.choice(["value", "value", "filter", "index", "cells", "key", "op"])
    given = {"value": "x", name: text}
    if name in ("index", "cells"):
        given = {"index": "g", "cells": "5", **given}
    if name == "key":
        given["op"] = "argmin"
    return f"SELECT * FROM kmeans_reduce('fuzz_rows', {', '.join(f'{n} => {quoted(t)}' for n, t in given.items())}, {arguments(trees.lets)})"


def prepare(session):
    session.run("CREATE EXTENSION IF NOT EXISTS pg_kmeans")
    session.run("SET client_min_messages = error; SET statement_timeout = '20s'; SET jit = off; DROP TABLE IF EXISTS fuzz_rows")
    session.run("CREATE TABLE fuzz_rows (id integer, x double precision, y real, g smallint, n numeric, f double precision[])")
    for i in range(ROWS):
        session.run(f"INSERT INTO fuzz_rows VALUES ({i}, {(i * 7 % 17 - 8) / 4}, {(i % 9 - 4) / 2}, {i % 7 - 3}, {i * 5 % 11}, "
                    f"ARRAY[{i % 5 - 2}, {(i * 3 % 8) / 8}, {i}]::float8[])")
    session.run("DROP TABLE IF EXISTS fuzz_many")
    session.run("CREATE TABLE fuzz_many WITH (parallel_workers = 3) AS SELECT id, x + i / 1000.0 AS x, y, g, n, f FROM fuzz_rows, generate_series(1, 1000) AS i")
    session.run("VACUUM fuzz_many")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cases", type=int, default=10 ** 9)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    session = Session(ALLOWED)
    prepare(session)
    dice = random.Random(given.seed)
    end, compared, failed, texts, refused = time.monotonic() + given.seconds, 0, 0, 0, 0
    while time.monotonic() < end and compared + texts < given.cases:
        statement = ""
        try:
            if dice.random() < 0.03:
                statement, both_failed = workers_case(dice, session)
                failed += both_failed
                compared += 1
            elif dice.random() < 0.6:
                statement, theirs, exact = dice.choice([rows_case, rows_case, cells_case])(dice)
                failed += compare(session, statement, theirs, exact)
                compared += 1
            else:
                statement = text_case(dice)
                refused += session.run(statement)[1] is not None
                texts += 1
        except Exception as failure:  # whatever it is, the statement is what counts
            print(f"FAILED: {failure}\n{statement}")
            sys.exit(1)
    print(f"{compared} reductions as the executor's, {failed} of them failed in both; {texts} texts, {refused} refused with a documented error")


main()

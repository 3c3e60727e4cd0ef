#!/usr/bin/python3
"""Random calls of the SQL functions; run by hand beside a throw-away server:

    scripts/with-postgres test/fuzz/fuzz_sql.py [--seconds 300] [--seed 1]

Fails when the connection is lost (a crash), when an error has an SQLSTATE that the reference
does not document for bad input (XX000 above all), or when a result contradicts itself. Prints
the statement that did it; the same seed repeats the same statements. Needs psycopg2.
"""
import argparse
import math
import random
import sys
import time

import psycopg2

ALLOWED = {"22004", "22023", "22003", "2202E", "42P01", "42703", "42804", "42809", "54000", "22P02", "42883", "0A000", "57014"}
TYPES = ["real", "double precision", "integer", "bigint", "smallint", "numeric"]
VALUES = ["0", "1", "-1", "0.5", "3", "7", "-12345", "1e-30", "1e6", "1e30", "1e-310", "1e160", "NaN", "Infinity", "-Infinity"]


def value(dice, kind):
    if dice.random() < 0.01:
        return "NULL"
    if kind in ("integer", "bigint", "smallint"):
        return str(dice.randint(-100, 100))
    return dice.choice(VALUES) if dice.random() < 0.03 else f"{dice.gauss(0, 10):.3f}"


def array(dice, d, kind):
    shape = dice.random()
    if shape < 0.01:
        return "NULL"
    if shape < 0.02:
        return "'{}'"
    if shape < 0.03:
        return "'{{1,2},{3,4}}'"
    length = d if dice.random() < 0.995 else dice.randint(1, 5)
    return "'{" + ",".join(value(dice, kind) for _ in range(length)) + "}'"


def rows(dice):
    kind = dice.choice(TYPES)
    d = dice.choice([1, 2, 3, 5, 8, 17, 40])
    count = dice.choice([0, 1, 2, 3, 10, 50, 200])
    lines = [f"({i}, {i % 3}, {array(dice, d, kind)}::{kind}[], {dice.choice(['1', '2.5', '0', '1e-9', '1e9'])}::float8)"
             for i in range(count)] or [f"(0, 0, NULL::{kind}[], 1::float8)"]
    return "(VALUES " + ", ".join(lines) + ") AS v(i, g, f, w)"


def options(dice):
    parts = []
    if dice.random() < 0.5:
        parts.append(f"init => '{dice.choice(['k-means++', 'kmeans++', 'k-means||', 'random', 'first', 'magic'])}'")
    if dice.random() < 0.3:
        parts.append(f"metric => '{dice.choice(['l2', 'cosine', 'l1'])}'")
    if dice.random() < 0.3:
        parts.append(f"standardize => {dice.choice(['true', 'false'])}")
    if dice.random() < 0.3:
        parts.append(f"max_iter => {dice.choice([-1, 0, 1, 2, 50])}")
    if dice.random() < 0.3:
        parts.append(f"tol => {dice.choice(['0', '1e-4', '-1', 'float8 $$NaN$$', '1e300'])}")
    if dice.random() < 0.3:
        parts.append(f"n_init => {dice.choice([0, 1, 3])}")
    if dice.random() < 0.2:
        parts.append(f"init_centroids => '{dice.choice(['{{1,2},{3,4}}', '{{1},{2}}', '{}', '{{NULL}}', '{1,2}', '{{NaN}}'])}'")
    parts.append(f"seed => {dice.randint(-5, 5)}")
    return f"kmeans_options({', '.join(parts)})"


def statement(dice):
    k = dice.choice(["1", "2", "3", "8", "100", "0", "-1", "NULL", "2147483647", "4000000000"] + ["2", "3", "5"] * 4)
    source, chosen = rows(dice), options(dice)
    form = dice.randrange(6)
    if form == 0:
        return f"SELECT kmeans(f, {k}, {chosen}, w) FROM {source}"
    if form == 1:
        return f"SELECT g, kmeans(f, {k}) FROM {source} GROUP BY g"
    if form == 2:
        return f"SELECT kmeans_label(f, {k}, {chosen}) OVER (PARTITION BY g) FROM {source}"
    if form == 3:
        return (f"SELECT kmeans_predict(m, f), kmeans_distance(m, f), kmeans_transform(m, f) "
                f"FROM (SELECT kmeans(f, {k}, {chosen}) AS m FROM {source}) AS s, {source.replace(' AS v(', ' AS u(')}")
    if form == 4:
        return f"SELECT kmeans_sums_centroids(kmeans_step(f, '{{{{1,2}},{{3,4}}}}', w)) FROM {source}"
    return (f"CREATE TEMP TABLE fuzz AS SELECT * FROM {source}; "
            f"SELECT count(*) FROM kmeans_{dice.choice(['labels', 'cluster'])}('fuzz', features => '{{f}}', k => {k}); "
            f"SELECT kmeans_fit('fuzz', features => '{{f}}', k => {k}, weight => 'w')")


CHECK = """SELECT (m).inertia, (SELECT sum(x) FROM unnest((m).within_ss) AS x), (SELECT sum(x) FROM unnest((m).size) AS x), (m).n
           FROM (SELECT kmeans(f, 3) AS m FROM {source}) AS s WHERE m IS NOT NULL AND (m).k > 0"""


def run(connection, sql):
    """The rows of the last statement, or None after a documented error; raises what must not be."""
    with connection.cursor() as cursor:
        try:
            cursor.execute("BEGIN")
            cursor.execute(sql)
            return cursor.fetchall()
        except psycopg2.Error as error:
            if connection.closed or error.pgcode not in ALLOWED:
                raise
            return None
        finally:
            if not connection.closed:
                cursor.execute("ROLLBACK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    connection = psycopg2.connect("")
    connection.autocommit = True
    connection.cursor().execute("CREATE EXTENSION IF NOT EXISTS pg_kmeans; SET client_min_messages = error; "
                                "SET statement_timeout = '20s'")
    dice = random.Random(arguments.seed)
    end, calls, errors = time.monotonic() + arguments.seconds, 0, 0
    while time.monotonic() < end:
        sql = statement(dice)
        try:
            errors += run(connection, sql) is None
            sql = CHECK.format(source=rows(dice))
            for inertia, within, sizes, n in run(connection, sql) or []:
                if sizes != n or not math.isclose(inertia, within, rel_tol=1e-9, abs_tol=1e-300):
                    raise AssertionError(f"inertia {inertia}, within_ss {within}, sizes {sizes}, n {n}")
        except Exception as failure:  # whatever it is, the statement is what counts
            print(f"FAILED: {failure}\n{sql}")
            sys.exit(1)
        calls += 2
    print(f"{calls} statements, {errors} of {calls // 2} refused with a documented error, 0 failures")


main()

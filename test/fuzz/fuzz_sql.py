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
import struct
import sys
import time

import psycopg2

from common import some

ALLOWED = {"22004", "22023", "22003", "2202E", "42P01", "42701", "42703", "42804", "42809", "54000", "55000", "22P02", "42883", "0A000", "57014"}
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


def texts(*values):
    return [f"'{value}'" for value in values]


def options(dice):
    parts = some(dice,
                 (0.5, "init", texts("k-means++", "kmeans++", "k-means||", "random", "first", "magic")),
                 (0.3, "metric", texts("l2", "cosine", "l1")),
                 (0.3, "standardize", ["true", "false"]),
                 (0.3, "refine", ["true", "false", "NULL"]),
                 (0.3, "max_iter", [-1, 0, 1, 2, 50]),
                 (0.3, "tol", ["0", "1e-4", "-1", "float8 $$NaN$$", "1e300"]),
                 (0.3, "n_init", [0, 1, 3]),
                 (0.2, "batch_size", [0, 1, 2, 7, 2147483647, "NULL"]),
                 (0.1, "init_model", ["NULL", "(SELECT kmeans(ARRAY[1, i], 2) FROM generate_series(1, 5) AS i)"]),
                 (0.2, "init_centroids", texts("{{1,2},{3,4}}", "{{1},{2}}", "{}", "{{NULL}}", "{1,2}", "{{NaN}}")))
    return f"kmeans_options({', '.join(parts + [f'seed => {dice.randint(-5, 5)}'])})"


def gmm_options(dice):
    parts = some(dice,
                 (1.0, "covariance_type", texts(*["full", "tied", "diag", "spherical"] * 5, "round")),
                 (0.4, "reg_covar", ["0", "1e-6", "1", "1e300", "-1", "float8 $$NaN$$"]),
                 (0.3, "tol", ["0", "1e-3", "-1", "1e300"]),
                 (0.4, "max_iter", [0, 1, 2, 30, 2147483647]),
                 (0.3, "n_init", [0, 1, 3]),
                 (0.2, "weights_init", texts("{0.5,0.5}", "{1,0}", "{1}", "{2,-1}", "{}", "{NULL,1}")),
                 (0.2, "means_init", texts("{{1,2},{3,4}}", "{{1},{2}}", "{{1e150},{-1e150}}", "{{NaN},{1}}")),
                 (0.2, "precisions_init", texts("{1,1}", "{{1},{2}}", "{{{1}},{{2}}}", "{{1,0},{0,1}}", "{{1,2},{2,1}}", "{1e300,1}")))
    return f"gmm_options({', '.join(parts + [f'seed => {dice.randint(-5, 5)}'])})"


def pca_options(dice):
    return (f"pca_options({dice.choice(['NULL'] * 4 + ['1', '2', '0.5', '0.999', '0', '-1', '1.5', '1000'])}, "
            f"{dice.choice(['true', 'false'])}, {dice.choice(['true', 'false'])})")


def pca_state(dice):
    """A state made by hand (src/pg/pca/sums.h): mostly well formed, seldom one that rows could have."""
    d = dice.choice([1, 2, 3])
    numbers = [0, 1, -1, 0.5, 1e300, 1.7e308, 1e-320, -1e308, 7]
    values = [dice.choice(numbers) for _ in range(d + d * (d + 1) // 2 + (dice.random() < 0.05))] + [0.0] * (8 * (d + 1))
    n = dice.choice([1, 2, 1000, 9007199254740992, 0, -1])
    head = struct.pack("=HBBiiqdd", 1, dice.randint(0, 1), dice.randint(0, 1), d, 0, n, float(n), dice.choice([0, 1, 0.5, 7]))
    return f"'\\x{(head + struct.pack(f'={len(values)}d', *values)).hex()}'::bytea"


def mixture_or_components(dice, k, source):
    form, chosen, others = dice.randrange(8), gmm_options(dice), source.replace(" AS v(", " AS u(")
    if form == 0:
        return f"SELECT g, gmm(f, {k}, {chosen}) FROM {source} GROUP BY GROUPING SETS ((g), ())"
    if form == 1:
        return f"SELECT gmm_label(f, {k}, {chosen}) OVER (PARTITION BY g) FROM {source}"
    if form == 2:
        return (f"SELECT gmm_predict(m, f), gmm_posterior(m, f), gmm_score(m, f) "
                f"FROM (SELECT gmm(f, {k}, {chosen}) AS m FROM {source}) AS s, {others}")
    if form == 3:
        return f"SELECT c.* FROM (SELECT gmm(f, {k}, {chosen}) AS m FROM {source}) AS s, gmm_components(m) AS c"
    if form == 4:
        return f"SELECT g, pca(f, {pca_options(dice)}) FROM {source} GROUP BY GROUPING SETS ((g), ())"
    if form == 5:
        return (f"SELECT pca_inverse_transform(m, pca_transform(m, f)), c.* FROM (SELECT pca(f, {pca_options(dice)}) AS m FROM {source}) AS s, "
                f"pca_components(m) AS c, {others}")
    if form == 6:
        return f"SELECT pgkm_pca_final(pgkm_pca_combine({pca_state(dice)}, {pca_state(dice)}))"
    return f"SELECT pca_transform(pgkm_pca_final({pca_state(dice)}), '{{1}}'::float8[])"


def tables(dice, k, source):
    many = dice.choice(["false", "true"])
    memory = dice.choice(["'auto'", "'loaded'"])
    calls = [f"SELECT kmeans_load('fuzz', '{{f}}')",
             f"SELECT kmeans_fit('fuzz', '{{f}}', {k}, memory => {memory})",
             f"SELECT kmeans_profile(m), kmeans_update(m, f) OVER (), kmeans_outliers('fuzz', '{{f}}', m, 1, nulls => 'mean') "
             f"FROM fuzz, kmeans_fit('fuzz', '{{f}}', {k}, nulls => '{dice.choice(['skip', 'mean', 'error'])}', options => kmeans_options(tol => {dice.choice(['0', '1'])})) AS m",
             f"SELECT count(*) FROM kmeans_labels('fuzz', '{{f}}', {k}, memory => {memory})",
             f"SELECT p.*, cluster_agreement(kmeans_predict(m, f), p.old_id) OVER () FROM fuzz, kmeans_fit('fuzz', '{{f}}', {k}) AS m, kmeans_match(m, (SELECT kmeans(f, {k}) FROM {source})) AS p",
             f"SELECT * FROM kmeans_sweep('fuzz', '{{f}}', {dice.choice(['1', '2', '0', 'NULL'])}, {dice.choice(['3', '1', '9'])}, memory => {memory})",
             f"SELECT * FROM kmeans_tree('fuzz', '{{f}}', '{dice.choice(['{2,3}', '{40}', '{2,2,2,2,2,2,2,2}', '{1}', '{,}'])}', memory => {memory}, options => kmeans_options(standardize => {dice.choice(['true', 'false'])}))",
             f"SELECT * FROM kmeans_tree('fuzz', '{{f}}', 'bisecting', {k}, options => kmeans_options(metric => '{dice.choice(['l2', 'cosine'])}'))",
             f"SELECT kmeans_tree_path(m, f), p.* FROM fuzz, kmeans_tree_fit('fuzz', '{{f}}', '{dice.choice(['{2,3}', '{2,2,2,2,2}'])}', nulls => '{dice.choice(['skip', 'mean', 'error'])}', options => kmeans_options(metric => '{dice.choice(['l2', 'cosine'])}')) AS m, kmeans_tree_probe(m, f, {k}) AS p",
             f"SELECT kmeans_fit('fuzz', '{{f}}', {k}, options => kmeans_options(max_radius => {dice.choice(['1e-9', '0.1', '3', '1e300'])}), memory => {memory})",
             f"SELECT * FROM gmm_sweep('fuzz', '{{f}}', 1, {dice.choice(['3', '0', '5'])}, options => gmm_options(reg_covar => {dice.choice(['0', '1'])}), memory => {memory})",
             f"SELECT gmm_fit('fuzz', '{{f}}', {k}, options => gmm_options(covariance_type => '{dice.choice(['full', 'tied', 'diag', 'spherical'])}', reg_covar => {dice.choice(['0', '1e-6', '1'])}))",
             f"SELECT count(*) FROM gmm_cluster('fuzz', '{{f}}', {k}, options => gmm_options(max_iter => 3), label_column => '{dice.choice(['part', 'g', 'f', 'no such', 'i'])}', overwrite => {many})",
             f"SELECT pca_fit('fuzz', '{{f}}', options => pca_options(n_components => {dice.choice(['NULL', '1', '0.9', '40'])}, whiten => {dice.choice(['true', 'false'])}, standardize => {dice.choice(['true', 'false'])}))",
             f"SELECT kmeans_plot('fuzz', '{{f}}', {k}, memory => {memory}, options => kmeans_options(standardize => {dice.choice(['true', 'false'])}), sample => {dice.choice(['10', '50'])})",
             f"SELECT kmeans_plot('fuzz', '{{f}}', label_column => '{dice.choice(['g', 'i', 'f', 'w', 'no such'])}')",
             f"SELECT kmeans_sweep_plot('fuzz', '{{f}}', 1, {dice.choice(['3', '9', '0'])}, memory => {memory})",
             "SELECT kmeans_unload()", "SELECT * FROM kmeans_loaded()", "SELECT * FROM kmeans_last_run()"]
    chosen = dice.sample(calls, 4) if dice.random() < 0.5 else [calls[0]] + dice.sample(calls[1:], 3)
    return "; ".join([f"CREATE TEMP TABLE fuzz AS SELECT * FROM {source}"] + chosen)


def statement(dice):
    k = dice.choice(["1", "2", "3", "8", "100", "0", "-1", "NULL", "2147483647", "4000000000"] + ["2", "3", "5"] * 4)
    source, chosen = rows(dice), options(dice)
    form = dice.randrange(12)
    if form >= 8:
        return mixture_or_components(dice, k, source)
    if form >= 6:
        return tables(dice, k, source)
    if form == 0:
        return f"SELECT kmeans(f, {k}, {chosen}, w) FROM {source}"
    if form == 1:
        return f"SELECT g, kmeans(f, {k}), kmeans_auto(f, 1, {k}) FROM {source} GROUP BY g"
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


def not_finite(value):
    """Whether a result of the mixtures and components holds a NaN or an infinity: none may."""
    return any(word in str(value) for word in ("NaN", "nan", "Infinity", "inf"))


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
            rows_of = run(connection, sql)
            errors += rows_of is None
            if ("gmm" in sql or "pca" in sql) and not_finite(rows_of) and "kmeans" not in sql:
                raise AssertionError(f"a value that is not finite: {rows_of}")
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

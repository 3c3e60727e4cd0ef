#!/usr/bin/python3
"""Random calls of the functions over tables, each by every road to the rows:

    scripts/with-postgres test/fuzz/fuzz_roads.py [--cases 200] [--seed 1]

The roads are a direct scan by one process, by workers alone and by all of them, the executor, a view that is
computed, and a stream by one process and by workers. All give the same, or all an error.
Fails where one differs, and where the connection is lost. Prints the statements that did it; the same seed
repeats the same calls. Needs psql.
"""
import argparse
import random
import sys

from common import Session, some

# name, type, the value of row i
COLUMNS = [("x", "real", "(i % 11 + sin(i))::real"), ("y", "float8", "i % 5 * 3 + cos(i)"), ("n", "numeric", "round((i % 13 * 0.25)::numeric, 2)"),
           ("s", "smallint", "i % 17"), ("big", "bigint", "i % 23 * 100000000::bigint"), ("t", "text", "chr(97 + i % 4)"),
           ("flag", "boolean", "i % 3 = 0"), ("day", "date", "date '2024-01-01' + i % 40"), ("since", "timestamp", "timestamp '2024-01-01' + i * interval '7 hours'"),
           ("a", "real[]", "ARRAY[i % 7 + sin(i), i % 3, cos(i * 2)]::real[]"), ("f", "float8[]", "ARRAY[sin(i), i % 4]"),
           ("w", "float8", "i % 4 * 0.5"), ("label", "integer", "i % 5"), ("filler", "text", "repeat('z', 300 + i % 50)")]
NUMBERS = ["x", "y", "n", "s", "big", "flag", "day", "since", "x * 2 + y", "ln(s + 1)", "coalesce(x, 7)", "y / (s + 1)", "date_trunc(''day'', since)", "big % 7"]
REALS = ["x", "x::real", "abs(x)"]
ARRAYS = ["a", "f", "ARRAY[x, y]::real[]", "ARRAY[x, s]", "a || x"]
CATEGORIES = ["t", "upper(t)", "CASE WHEN s > 5 THEN ''many'' ELSE t END"]

CALLS = 8 # with one table
ALLOWED = {"22004", "22023", "22003", "2202E", "2201E", "42809", "42804", "0A000", "54000", "22012"}


class Case:
    """A table, and calls for its rows."""

    def __init__(self, dice):
        self.dice = dice
        self.gaps = dice.choice([0, 0, 7, 50]) # one value of so many is NULL
        columns = list(COLUMNS)
        dice.shuffle(columns)
        self.columns = columns
        self.parts = dice.random() < 0.25
        self.rows = dice.choice([40, 700, 2500])

    def value(self, name, expression):
        if self.gaps and name not in ("filler", "s", "t"):
            return f"CASE WHEN (i * 31 + {len(expression)}) % {self.gaps} > 0 THEN {expression} END"
        return expression

    def table(self):
        lines = ["DROP TABLE IF EXISTS road_rows CASCADE"]
        listed = ", ".join(f"{name} {kind}" for name, kind, _ in self.columns)
        if self.parts:
            lines += [f"CREATE TABLE road_rows (id integer, {listed}) PARTITION BY RANGE (id)",
                      "CREATE TABLE road_part_1 PARTITION OF road_rows FOR VALUES FROM (0) TO (300)",
                      f"CREATE TABLE road_part_2 ({', '.join(f'{name} {kind}' for name, kind, _ in reversed(self.columns))}, gone text, id integer)",
                      "ALTER TABLE road_part_2 DROP gone", "ALTER TABLE road_rows ATTACH PARTITION road_part_2 FOR VALUES FROM (300) TO (1000000)"]
        else:
            lines += [f"CREATE TABLE road_rows (id integer, gone text, {listed})", "ALTER TABLE road_rows DROP gone"]
        values = ", ".join(self.value(name, expression) for name, _, expression in self.columns)
        lines += [f"INSERT INTO road_rows SELECT i, {values} FROM generate_series(1, {self.rows}) AS i"]
        if self.dice.random() < 0.3:
            lines += ["DELETE FROM road_rows WHERE id % 9 = 4"]
        lines += [f"ALTER TABLE {name} SET (parallel_workers = 3)" for name in (["road_part_1", "road_part_2"] if self.parts else ["road_rows"])]
        return lines + ["ANALYZE road_rows", "CREATE VIEW road_view AS SELECT * FROM road_rows OFFSET 0"]

    def about_rows(self):
        """What every function takes about the rows, but memory."""
        return some(self.dice, (0.3, "weight", ["'w'"]), (0.9 if self.gaps else 0.3, "nulls", ["'skip'", "'mean'"]),
                    (0.4, "filter", ["'flag'", "'s > 3'", "'x > 2 AND y < 9'", "'ln(s + 1) > 0.5 OR t = ''a'''", "'s > 1 AND random() < 2'"]))

    def features(self):
        d = self.dice
        kind = d.random()
        if kind < 0.25:
            chosen = d.sample(ARRAYS, 1)
        elif kind < 0.4:
            chosen = d.sample(REALS, d.randint(1, 3))
        else:
            chosen = d.sample(NUMBERS, d.randint(1, 4)) + d.sample(CATEGORIES, d.choice([0, 0, 1]))
        d.shuffle(chosen)
        return f"ARRAY[{', '.join(repr(name).replace(chr(34), chr(39)) for name in chosen)}]"

    def kmeans_options(self):
        d = self.dice
        parts = some(d, (0.2, "metric", ["'cosine'"]), (0.3, "standardize", ["true"]), (0.2, "n_init", [2]))
        if d.random() < 0.2:
            parts += ["batch_size => 50"]
        else:
            parts += some(d, (0.6, "init", ["'k-means++'", "'k-means||'", "'random'", "'first'"]), (0.1, "min_size", [5]), (0.2, "refine", ["true"]))
        return f"kmeans_options({', '.join(parts + ['max_iter => 8', f'seed => {d.randint(0, 3)}'])})"

    def gmm_options(self):
        kind = self.dice.choice(["full", "tied", "diag", "spherical"])
        return f"gmm_options(covariance_type => '{kind}', reg_covar => 1, max_iter => 3)"

    def call(self):
        """An expression or query of one value, with {relation} and {memory} in it."""
        d = self.dice
        features, rows, k = self.features(), self.about_rows(), d.randint(1, 5)
        start = f"'{{relation}}', {features}"
        end = ", ".join(rows + ["{memory}"])
        kmeans, gmm = f"{start}, {k}, options => {self.kmeans_options()}, {end}", f"{start}, {k}, options => {self.gmm_options()}, {end}"
        model = "(m).centroids, (m).size, (m).within_ss, (m).n_iter, (m).n, (m).center, (m).scale, (m).fills, (m).mass, (m).origin.features, (m).origin.sources"
        return d.choice([
            f"SELECT {model} FROM kmeans_fit({kmeans}) AS m",
            f"SELECT {model} FROM kmeans_fit({kmeans}) AS m",
            f"SELECT (m).weights, (m).means, (m).covariances, (m).log_likelihood, (m).n, (m).fills FROM gmm_fit({gmm}) AS m",
            f"SELECT (m).components, (m).mean, (m).n FROM pca_fit({start}, {end}) AS m",
            f"SELECT md5(string_agg(concat_ws(' ', r.id, l.cluster_id, l.distance), ',' ORDER BY r.id)) FROM kmeans_labels({kmeans}) AS l JOIN road_rows AS r ON r.tableoid = l.row_table AND r.ctid = l.row_ctid",
            f"SELECT md5(string_agg(concat_ws(' ', r.id, l.component_id), ',' ORDER BY r.id)) FROM gmm_labels({gmm}) AS l JOIN road_rows AS r ON r.tableoid = l.row_table AND r.ctid = l.row_ctid",
            f"SELECT array_agg((s.k, s.inertia, s.davies_bouldin, s.clusters, s.bic, s.knee) ORDER BY s.k) FROM kmeans_sweep({start}, 1, {k + 1}, options => {self.kmeans_options()}, {end}) AS s",
            f"SELECT array_agg(q ORDER BY q.cluster_id) FROM kmeans_quality({start}, 'label', {end}) AS q",
            f"SELECT array_agg(t ORDER BY t.node_id) FROM kmeans_tree({start}, k => {k}, options => {self.kmeans_options()}, {end}) AS t",
            f"CLUSTER SELECT {model}, label FROM kmeans_cluster({kmeans}, label_column => 'label', overwrite => true) AS m",
            f"CLUSTER SELECT {model}, label FROM kmeans_cluster({kmeans}, label_column => 'label', overwrite => true) AS m"])


def settings(scan, workers, leader):
    return [f"SET pg_kmeans.scan = {scan}", f"SET max_parallel_workers_per_gather = {workers}", f"SET parallel_leader_participation = {leader}"]


ROADS = {"alone": (settings("auto", 0, "on"), "road_rows", "resident"), "workers": (settings("auto", 3, "off"), "road_rows", "resident"),
         "all": (settings("auto", 3, "on"), "road_rows", "resident"), "executor": (settings("executor", 0, "on"), "road_rows", "resident"),
         "view": (settings("auto", 0, "on"), "road_view", "resident"), "stream": (settings("auto", 0, "on"), "road_rows", "stream"),
         "streaming workers": (settings("auto", 3, "off"), "road_rows", "stream")}


def answer(session, statements):
    """The lines of the last one, or the SQLSTATE of the first error. Nothing of it stays."""
    session.run("BEGIN")
    for statement in statements:
        try:
            lines, state = session.run(statement)
        except (AssertionError, ConnectionError) as failure:
            raise AssertionError(f"{statement};\n-- {failure} {session.message}")
        if state is not None:
            break
    session.run("ROLLBACK")
    return lines if state is None else state


def statements_of(call, road):
    before, relation, memory = ROADS[road]
    text = call.replace("{relation}", relation).replace("{memory}", f"memory => '{memory}'")
    if not text.startswith("CLUSTER "):
        return before + [text]
    text = text[len("CLUSTER "):].replace(", label FROM", " FROM")
    return before + [text.replace("SELECT ", "CREATE TEMP TABLE road_model AS SELECT ", 1), "SELECT (SELECT row(m)::text FROM road_model AS m), md5(string_agg(concat_ws(' ', id, label), ',' ORDER BY id)) FROM road_rows"]


def check(session, table, call):
    """How many roads were compared, and whether they gave an error."""
    expected, compared = answer(session, statements_of(call, "alone")), 1
    for road in list(ROADS)[1:]:
        result = answer(session, statements_of(call, road))
        if result in ("0A000", "42809") and result != expected:
            continue # a stream that cannot be, or labels of a view
        # Which of several bad rows comes first is open.
        if result != expected and not (isinstance(result, str) and isinstance(expected, str)):
            raise AssertionError(";\n".join([*table, *statements_of(call, "alone"), f"-- {expected}", *statements_of(call, road), f"-- {road}: {result}"]))
        compared += 1
    return compared, isinstance(expected, str)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    session = Session(ALLOWED)
    session.run("CREATE EXTENSION IF NOT EXISTS pg_kmeans")
    compared = errors = 0
    for number in range(arguments.cases):
        if number % CALLS == 0:
            case = Case(dice)
            table = case.table()
            for statement in table:
                session.run(statement)
        try:
            roads, failed = check(session, table, case.call())
        except AssertionError as difference:
            print(f"case {number} of seed {arguments.seed}:\n{difference}")
            return 1
        compared += roads
        errors += failed
    print(f"{arguments.cases} calls, {errors} of them errors, give the same by {compared} roads")
    return 0


if __name__ == "__main__":
    sys.exit(main())

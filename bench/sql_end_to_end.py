#!/usr/bin/python3
"""End to end in SQL: the aggregate against its own parts and against exporting the rows.

    scripts/with-postgres bench/sql_end_to_end.py [--scale 0.1] [--repeat 3] [--export fetchall]

For each table (float32 rows in a real[] column, hot) it times, in one run and alternating:
  ingest   SELECT kmeans(f, 1) with one iteration: reading, copying and checking every row
  iterate  10 iterations from given centroids on the rows in memory, from kmeans(f, k) with
           11 iterations minus the same with 1
  kmeans   SELECT kmeans(f, k) with 10 iterations
  export   COPY ... (FORMAT binary), or a SELECT and fetchall(), into numpy, then scikit-learn's KMeans(algorithm='lloyd')
           with the same first centroids, 10 iterations and as many threads
and prints CSV with the ratios kmeans / (ingest + iterate) and export / kmeans.
Needs psycopg2, numpy and scikit-learn; says so and stops with 0 where one is missing.
"""
import argparse
import io
import os
import statistics
import struct
import sys
import time

try:
    import numpy
    import psycopg2
    from sklearn.cluster import KMeans
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

SHAPES = [(1_000_000, 2, 100), (1_000_000, 8, 100), (1_000_000, 34, 32), (500_000, 54, 64), (100_000, 128, 256)]
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def blobs(n, d, seed=1):
    """10 centres uniform in [-100, 100] per coordinate, normal spread of 10 / sqrt(d)."""
    random = numpy.random.default_rng(seed)
    centres = random.uniform(-100, 100, (10, d))
    rows = centres[random.integers(0, 10, n)] + random.normal(0, 10 / d ** 0.5, (n, d))
    return rows.astype(numpy.float32)


def array_prefix(d):
    """What COPY BINARY writes before the elements of a one-dimensional real[]: sizes, type 700, bounds."""
    return struct.pack(">hiiiIii", 1, 20 + 8 * d, 1, 0, 700, d, 1)


def record_type(d):
    return numpy.dtype([("prefix", "V%d" % len(array_prefix(d))), ("items", [("size", ">i4"), ("value", ">f4")], d)])


def load(cursor, rows):
    n, d = rows.shape
    records = numpy.zeros(n, record_type(d))
    records["prefix"] = numpy.void(array_prefix(d))
    records["items"]["size"] = 4
    records["items"]["value"] = rows
    cursor.execute("DROP TABLE IF EXISTS bench_points; CREATE UNLOGGED TABLE bench_points (f real[])")
    stream = io.BytesIO(HEADER + records.tobytes() + b"\xff\xff")
    cursor.copy_expert("COPY bench_points FROM STDIN (FORMAT binary)", stream)
    cursor.execute("ANALYZE bench_points")


def fetch_all(cursor, d):
    """The plain way: the driver makes a list of every row."""
    cursor.execute("SELECT f FROM bench_points")
    return numpy.array([row[0] for row in cursor.fetchall()], numpy.float32)


def copy_binary(cursor, d):
    """The fastest way: the protocol's bytes read as a NumPy record type."""
    stream = io.BytesIO()
    cursor.copy_expert("COPY bench_points TO STDOUT (FORMAT binary)", stream)
    body = stream.getbuffer()[len(HEADER):-2]
    return numpy.ascontiguousarray(numpy.frombuffer(body, record_type(d))["items"]["value"].astype(numpy.float32))


def fit_sql(k, iterations, centroids):
    # One array literal: as an expression of its numbers the statement would be parsed longer than some fits take.
    literal = "{" + ",".join("{" + ",".join(map(repr, row)) + "}" for row in centroids.tolist()) + "}"
    return ("SELECT (kmeans(f, %s, kmeans_options(init_centroids => %s::float8[], max_iter => %s, tol => 0))).inertia"
            " FROM bench_points", (k, literal, iterations))


def seconds(action):
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def measure(cursor, n, d, k, repeat, export):
    rows = blobs(n, d)
    centroids = rows[numpy.random.default_rng(2).choice(n, k, replace=False)].astype(numpy.float64)

    def query(sql):
        cursor.execute(*sql)
        return cursor.fetchone()[0]

    def peer():
        data = export(cursor, d)
        model = KMeans(k, init=centroids.astype(numpy.float32), n_init=1, max_iter=10, tol=0, algorithm="lloyd")
        return model.fit(data).inertia_

    load(cursor, rows)
    query(fit_sql(1, 1, centroids[:1]))  # warm
    times = {"ingest": [], "kmeans": [], "one": [], "eleven": [], "export": []}
    for _ in range(repeat):
        times["ingest"].append(seconds(lambda: query(fit_sql(1, 1, centroids[:1])))[0])
        took, inertia = seconds(lambda: query(fit_sql(k, 10, centroids)))
        times["kmeans"].append(took)
        times["one"].append(seconds(lambda: query(fit_sql(k, 1, centroids)))[0])
        times["eleven"].append(seconds(lambda: query(fit_sql(k, 11, centroids)))[0])
        took, theirs = seconds(peer)
        times["export"].append(took)
        if abs(inertia - theirs) > 1e-3 * theirs:
            print(f"# inertia differs: {inertia} and {theirs}")
    median = {name: statistics.median(values) for name, values in times.items()}
    iterate = median["eleven"] - median["one"]
    print(f"{n},{d},{k},{median['ingest']:.3f},{iterate:.3f},{median['kmeans']:.3f},{median['export']:.3f},"
          f"{median['kmeans'] / (median['ingest'] + iterate):.2f},{median['export'] / median['kmeans']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows of each shape")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--export", choices=("binary", "fetchall"), default="binary", help="how the rows reach NumPy")
    options = parser.parse_args()
    connection = psycopg2.connect("")
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_kmeans; SET max_parallel_workers_per_gather = 0")
    print(f"# {os.cpu_count()} processors; seconds, median of {options.repeat}")
    print("n,d,k,ingest_s,iterate_s,kmeans_s,export_sklearn_s,kmeans/(ingest+iterate),export/kmeans")
    for n, d, k in SHAPES:
        measure(cursor, int(n * options.scale), d, k, options.repeat, {"binary": copy_binary, "fetchall": fetch_all}[options.export])
    cursor.execute("DROP TABLE bench_points")


main()

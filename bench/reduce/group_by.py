#!/usr/bin/python3
"""kmeans_reduce() beside GROUP BY, in processor time of all processes of the server; run beside a throw-away server:

    scripts/with-postgres bench/reduce/group_by.py [--rows 3000000] [--repeat 10] [--workers 0,1]

A table (x, y double precision) in shared buffers, vacuumed. histogram: rows by 100 cells of x; mean: count, mean and deviation of
y by these cells; k-means: rows and sums by the nearest of 4 centres. `exact` has integer sums. Runs alternate; means are printed, in
ms, and the ratio. Linux alone: a worker's time is that of the postmaster's children once it has ended.
"""
import argparse
import os
import subprocess
import time

CENTRES = [(0.2, 0.3), (0.7, 0.1), (0.5, 0.9), (0.9, 0.6)]
BY_X = "index => 'floor(x * 100)', cells => '100'"
NEAREST = "index => 'argmin(j, 4, (x - c[j][0]) ^ 2 + (y - c[j][1]) ^ 2)', cells => '4', params => '{\"c\": %s}'" % [list(c) for c in CENTRES]
DISTANCES = ", ".join(f"(x - {a}) ^ 2 + (y - {b}) ^ 2" for a, b in CENTRES)
MEAN = "SELECT floor(x * 100), count(*), avg(y), stddev_pop(y) FROM bench_xy GROUP BY 1"
STEP = f"SELECT array_position(d, least(d[1], d[2], d[3], d[4])), count(*), avg(x), avg(y) FROM (SELECT x, y, ARRAY[{DISTANCES}] AS d FROM bench_xy OFFSET 0) AS s GROUP BY 1"
CASES = [
    ("histogram", "SELECT floor(x * 100), count(*) FROM bench_xy GROUP BY 1", f"{BY_X}, op => 'count'"),
    ("mean", MEAN, f"{BY_X}, value => '{{1, y, y * y}}'"),
    ("mean, exact", MEAN, f"{BY_X}, value => '{{1, y, y * y}}', exact => true"),
    ("k-means step", STEP, f"{NEAREST}, value => '{{1, x, y}}'"),
    ("k-means step, exact", STEP, f"{NEAREST}, value => '{{1, x, y}}', exact => true"),
]


class Session:
    def __init__(self):
        self.psql = subprocess.Popen(["psql", "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.run("SELECT pg_backend_pid()")[0])
        self.postmaster = self.run("SELECT pg_read_file('postmaster.pid')")[0]

    def run(self, sql):
        self.psql.stdin.write(sql + ";\n\\echo --end--\n")
        self.psql.stdin.flush()
        return list(iter(lambda: self.psql.stdout.readline().rstrip("\n"), "--end--"))

    def spent(self):
        """Processor time so far, in ms."""
        time.sleep(0.05)
        with open(f"/proc/{self.postmaster}/stat") as stat:
            children = sum(map(int, stat.read().rsplit(")", 1)[1].split()[13:15])) / os.sysconf("SC_CLK_TCK")
        return 1000 * (children + time.clock_gettime(~self.pid << 3 | 2))  # the clock of a process, all its threads

    def cost(self, sql):
        before = self.spent()
        self.run(f"SELECT count(*) FROM ({sql}) AS s")
        return self.spent() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--workers", default="0,1")
    given = parser.parse_args()
    session = Session()
    session.run("CREATE EXTENSION IF NOT EXISTS pg_kmeans; SET client_min_messages = error; SET jit = off; DROP TABLE IF EXISTS bench_xy")
    session.run(f"CREATE TABLE bench_xy AS SELECT random() AS x, random() AS y FROM generate_series(1, {given.rows})")
    session.run("VACUUM bench_xy") # twice: the first may leave pages to others
    session.run("VACUUM ANALYZE bench_xy; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0")
    for workers in given.workers.split(","):
        session.run(f"SET max_parallel_workers_per_gather = {workers}; ALTER TABLE bench_xy SET (parallel_workers = {workers})")
        for name, executor, ours in CASES:
            statements = [executor, f"SELECT * FROM kmeans_reduce('bench_xy', {ours})"]
            costs = [[session.cost(s) for s in statements] for _ in range(given.repeat + 1)][1:]
            theirs, mine = (sum(c) / given.repeat for c in zip(*costs))
            print(f"{name:20} {workers} workers  GROUP BY {theirs:7.0f}  reduce {mine:7.1f}  ratio {theirs / mine:.2f}", flush=True)


main()

#!/bin/bash
# Reductions by several processes, which reduce rows where they read them if the order of rows does not count: the same bits, and
# the same errors, with any number of workers; and nothing left after timeouts.
set -uo pipefail
lib=$(dirname "$0")/../../../scripts/lib
source "$lib/tap.sh"
source "$lib/segments.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE reduced AS SELECT i AS id, i % 40 / 4.0::float8 AS x, sin(i) * exp(i % 50) AS y, ARRAY[cos(i), sin(i * 3)]::real[] AS f FROM generate_series(1, 200000) AS i;
CREATE TABLE reduced_gaps AS SELECT id, CASE WHEN id % 1000 > 0 THEN x END AS x, CASE WHEN id % 1000 > 0 THEN y END AS y, f FROM reduced;
CREATE TABLE reduced_new AS SELECT * FROM reduced;
CREATE TABLE reduced_parts (LIKE reduced) PARTITION BY RANGE (id);
CREATE TABLE reduced_part_1 PARTITION OF reduced_parts FOR VALUES FROM (0) TO (50000);
CREATE TABLE reduced_part_2 PARTITION OF reduced_parts FOR VALUES FROM (50000) TO (900000);
INSERT INTO reduced_parts SELECT * FROM reduced;
CREATE TABLE reduced_bad AS SELECT * FROM reduced;
UPDATE reduced_bad SET x = 100 WHERE id IN (70001, 150001);
UPDATE reduced_bad SET y = 1e150 WHERE id IN (30001, 180001);
VACUUM reduced, reduced_gaps, reduced_parts, reduced_bad;
SQL
for table in reduced reduced_gaps reduced_new reduced_part_1 reduced_part_2 reduced_bad; do query -c "ALTER TABLE $table SET (parallel_workers = 4)"; done

# with WORKERS STATEMENT: its answer, or its error with the detail.
with() { psql -XqAt -c "SET max_parallel_workers_per_gather = $1" -c "SET extra_float_digits = 3" -c "$2" 2>&1; }
# same NAME STATEMENT: the same answer with 0, 1, 2 and 4 workers. It is not empty.
same() {
    local alone workers status=0
    alone=$(with 0 "$2")
    [ -n "$alone" ] || status=1
    for workers in 1 2 4; do
        [ "$(with $workers "$2")" = "$alone" ] && continue
        status=1
        diff <(echo "$alone") <(with $workers "$2") | head -6 | sed "s/^/# $workers: /"
    done
    result $status "$1"
}
# fails NAME PATTERN STATEMENT: likewise, and the answer is an error that has the pattern.
fails() {
    same "$1" "$3"
    [[ $(with 4 "$3") =~ ERROR:.*$2 ]]
    result $? "$1: an error"
}

for table in reduced reduced_gaps reduced_new reduced_parts; do
    same "$table: counts" "SELECT * FROM kmeans_reduce('$table', index => 'floor(x)', cells => '10', op => 'count')"
    same "$table: sums of float64" "SELECT * FROM kmeans_reduce('$table', index => 'floor(x)', cells => '10', value => '{1, y, y * y}')"
    same "$table: sums of float64 in one cell" "SELECT * FROM kmeans_reduce('$table', value => '{y, sin(y), x * y}', filter => 'x > 1')"
    same "$table: sums of integers" "SELECT * FROM kmeans_reduce('$table', index => 'floor(x)', cells => '10', value => '{1, y}', exact => true)"
    same "$table: the rest" "SELECT * FROM kmeans_reduce('$table', index => 'floor(x)', cells => '11', value => '{y, y, y}', op => '{min, max, argmin}', key => 'x', filter => 'y > 0')"
    same "$table: several objects" "SELECT * FROM kmeans_reduce_many('$table', '{\"a\": {\"index\": \"floor(x)\", \"cells\": \"10\", \"value\": \"{y, x}\", \"op\": \"{max, sum}\"}, \"b\": {\"op\": \"count\"}}')"
done
centres="params => '{\"k\": 3, \"c\": [[0, 0], [0.5, 0.2], [-1, 0.4]]}'"
for exact in true false; do
    same "a step of k-means, exact $exact" "SELECT * FROM kmeans_reduce('reduced', index => 'argmin(j, k, sum(power(f - c[j], 2)))', cells => 'k', value => '{1, f}', exact => $exact, $centres)"
done
is "$(with 0 "SELECT count(*) FROM kmeans_reduce('reduced', op => 'count', filter => 'id > 0'); SELECT workers, n, rows_scanned FROM kmeans_last_run()" | tail -1)" '0|200000|200000' 'one process'
for call in "op => 'count', filter => 'id > 0'" "value => 'y'" "value => 'y', exact => true"; do
    is "$(with 2 "SELECT count(*) FROM kmeans_reduce('reduced', $call); SELECT workers, n, rows_scanned, backend FROM kmeans_last_run()" | tail -1)" '2|200000|200000|cpu' "$call: two workers"
done

# Of several rows that fail the first one is named, of several texts the one that fails there.
for exact in true false; do
    for op in sum max; do
        fails "a bad cell, exact $exact, $op" 'cell 100 is out of range' "SELECT * FROM kmeans_reduce('reduced_bad', index => 'x', cells => '11', value => 'x', op => '$op', filter => 'floor(x) = x', exact => $exact)"
        fails "an overflow, exact $exact, $op" 'ctid' "SELECT * FROM kmeans_reduce('reduced_bad', value => 'y ^ 3', op => '$op', exact => $exact)"
        fails "a division by zero, exact $exact, $op" 'division by zero' "SELECT * FROM kmeans_reduce('reduced_bad', value => '1 / (id - 123456)', op => '$op', exact => $exact)"
    done
    fails "a total, exact $exact" 'a total is out of range' "SELECT * FROM kmeans_reduce('reduced_bad', value => 'x * 0 + 1.7e308', exact => $exact)"
done
fails 'a bad program' 'vectors or matrices of different sizes' "SELECT * FROM kmeans_reduce('reduced', value => 'f + v', params => '{\"v\": [1, 2, 3]}')"
is "$(with 2 "SET pg_kmeans.memory_limit = '5MB'; SELECT count(*) FROM kmeans_reduce('reduced', index => 'id', cells => '200001', op => 'count')" | grep -c 'needs more memory than allowed')" 1 'a limit of memory'

# Timeouts at all moments, the statement itself behind them.
for value in 'y' 'y ^ 2, exact'; do
    statement="SELECT * FROM kmeans_reduce('reduced', index => 'floor(x)', cells => '10', value => '{${value%, exact}}', exact => $([ "$value" = y ] && echo false || echo true))"
    {
        echo '\set VERBOSITY sqlstate' && echo "SET max_parallel_workers_per_gather = 3; $statement; $(mapped before);"
        for ((ms = 1; ms <= 60; ms += 1)); do echo "SET LOCAL statement_timeout = $ms \\; $statement;"; done
        echo "$(mapped after); $statement;"
    } | psql -XqAt >"$folder/out" 2>"$folder/errors"
    ! grep -v 57014 "$folder/errors" | grep -q . && holds_no_more "$folder/out" &&
        cmp -s <(head -10 "$folder/out") <(tail -10 "$folder/out")
    result $? "$value: $(grep -c 57014 "$folder/errors") timeouts leave nothing"
done
is "$(query -c "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database()")" 0 'no worker is left'
echo 1..$number

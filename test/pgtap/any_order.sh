#!/bin/bash
# The same model, to the last bit, whatever the order in which rows arrive: serial and parallel plans, hashed and sorted
# groups, a shuffled copy, after an UPDATE that moves rows; by the aggregate, the window function and the table functions.
# PGKM_DEEP=1: with options of each kind; else the default ones.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"

# Rows that repeat, zeros of both signs, and weights over decades.
query <<'SQL' || exit 1
CREATE TABLE ordered WITH (parallel_workers = 3) AS
SELECT i AS id, i % 7 AS g,
       ARRAY[(i * 37 % 101) / 4.0, CASE WHEN i % 3 = 0 THEN '-0'::real ELSE i * 53 % 29 END, sqrt(i * 71 % 997), (i % 1009) * (i % 1009) % 13]::real[] AS f,
       10.0 ^ (i % 9 - 4) AS w, 0 AS other
FROM generate_series(1, 60000) AS i;
CREATE TABLE shuffled WITH (parallel_workers = 3) AS SELECT * FROM ordered ORDER BY md5(id::text);
CREATE TABLE moved WITH (parallel_workers = 3) AS SELECT * FROM ordered;
UPDATE moved SET other = 1 WHERE id % 3 = 0;
UPDATE moved SET other = 2 WHERE id % 5 = 0;
CREATE TABLE halves (LIKE ordered) PARTITION BY LIST (g);
CREATE TABLE halves_odd PARTITION OF halves FOR VALUES IN (1, 3, 5);
CREATE TABLE halves_even PARTITION OF halves FOR VALUES IN (0, 2, 4, 6);
INSERT INTO halves SELECT * FROM ordered;
CREATE VIEW viewed AS SELECT * FROM ordered ORDER BY f, id DESC;
ANALYZE;
SQL
serial="SET max_parallel_workers_per_gather = 0"
parallel="SET max_parallel_workers_per_gather = 3; SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001; SET parallel_tuple_cost = 0.01"
model() { query -c "$1" -c "$2" | md5sum || echo "no answer, $((++failures)) $2"; }
# same NAME WANTED SETTINGS STATEMENT
same() { is "$(model "$3" "$4")" "$2" "$1"; }

more=()
[ -z "${PGKM_DEEP:-}" ] || more=("init => 'k-means||'" "init => 'random', n_init => 3" "metric => 'cosine', seed => 7" "standardize => true, n_init => 2" "init => 'random', refine => true" "batch_size => 40, seed => 3" "batch_size => 7, standardize => true, n_init => 2")
for options in "" "${more[@]}"; do
    named="kmeans_options($options)" added=${options:+, options => kmeans_options($options)} say=${options:-defaults}
    wanted=$(model "$serial" "SELECT to_jsonb(kmeans(f, 12, $named)) - 'origin' FROM ordered")
    for table in ordered shuffled moved halves; do
        same "$say: $table, serial" "$wanted" "$serial" "SELECT to_jsonb(kmeans(f, 12, $named)) - 'origin' FROM $table"
        same "$say: $table, parallel" "$wanted" "$parallel" "SELECT to_jsonb(kmeans(f, 12, $named)) - 'origin' FROM $table"
        same "$say: $table, kmeans_fit" "$wanted" "$parallel" "SELECT to_jsonb(m) - 'origin' FROM kmeans_fit('$table', '{f}', 12$added) AS m"
    done
    same "$say: a view" "$wanted" "$serial" "SELECT to_jsonb(m) - 'origin' FROM kmeans_fit('viewed', '{f}', 12$added) AS m"
    same "$say: one thread" "$wanted" "$serial; SET pg_kmeans.cpu_threads = 1" "SELECT to_jsonb(kmeans(f, 12, $named)) - 'origin' FROM shuffled"
    labels=$(model "$serial" "SELECT id, kmeans_label(f, 12, $named) OVER () FROM ordered ORDER BY id")
    same "$say: a window over shuffled rows" "$labels" "$serial" "SELECT id, kmeans_label(f, 12, $named) OVER () FROM shuffled ORDER BY id"
    same "$say: a window in descending order" "$labels" "$serial" \
        "SELECT id, kmeans_label(f, 12, $named) OVER (ORDER BY w, id DESC) FROM moved ORDER BY id"
    same "$say: kmeans_labels" "$labels" "$parallel" "SELECT t.id, l.cluster_id FROM kmeans_labels('moved', '{f}', 12$added) AS l JOIN moved AS t ON t.ctid = l.row_ctid ORDER BY t.id"

    groups="SELECT g, kmeans(f, 5, $named) FROM ordered GROUP BY g ORDER BY g"
    wanted=$(model "$serial; SET enable_sort = off" "$groups")
    same "$say: sorted groups" "$wanted" "$serial; SET enable_hashagg = off" "$groups"
    same "$say: groups of a parallel plan" "$wanted" "$parallel" "$groups"
    same "$say: groups of shuffled rows" "$wanted" "$parallel; SET enable_hashagg = off" "${groups/ordered/shuffled}"
    same "$say: groups of partitions" "$wanted" "$parallel; SET enable_partitionwise_aggregate = on" "${groups/ordered/halves}"
done

weighted="SELECT kmeans(f, 12, NULL, w) FROM ordered"
wanted=$(model "$serial" "$weighted")
same 'weights, parallel' "$wanted" "$parallel" "$weighted"
same 'weights of shuffled rows' "$wanted" "$parallel" "${weighted/ordered/shuffled}"
same 'weights after an UPDATE' "$wanted" "$serial" "${weighted/ordered/moved}"

# Bounds of sizes leave equal rows to whoever comes first, so that models are compared, and no labels.
bounded="SELECT to_jsonb(kmeans(f, 12, kmeans_options(min_size => 0.08, max_size => 0.09))) - 'origin' FROM ordered"
wanted=$(model "$serial" "$bounded")
for table in ordered shuffled moved halves; do
    same "bounded sizes: $table, serial" "$wanted" "$serial" "${bounded/ordered/$table}"
    same "bounded sizes: $table, parallel" "$wanted" "$parallel" "${bounded/ordered/$table}"
    same "bounded sizes: $table, kmeans_fit" "$wanted" "$parallel" "SELECT to_jsonb(m) - 'origin' FROM kmeans_fit('$table', '{f}', 12, options => kmeans_options(min_size => 0.08, max_size => 0.09)) AS m"
done
same 'bounded sizes: one thread' "$wanted" "$serial; SET pg_kmeans.cpu_threads = 1" "${bounded/ordered/shuffled}"

# Clusters that are empty after the first iteration get the farthest rows, of which there are many at the same distance.
far="SELECT kmeans(ARRAY[f[2], f[4]], 4, kmeans_options(init_centroids => '{{0,0},{900,900},{800,900},{900,800}}', max_iter => 1), w) FROM ordered"
wanted=$(model "$serial" "$far")
same 'ties for an empty cluster' "$wanted" "$parallel" "${far/ordered/shuffled}"
same 'ties for an empty cluster after an UPDATE' "$wanted" "$serial" "${far/ordered/moved}"

[ "$(model "$serial" "SELECT kmeans(f, 12, kmeans_options(seed => 1)) FROM ordered")" != "$(model "$serial" "SELECT kmeans(f, 12) FROM ordered")" ]
result $? 'another seed gives another model'
echo 1..$number

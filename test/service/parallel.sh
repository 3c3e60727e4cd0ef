#!/bin/bash
# Rows that parallel workers have left in shared memory reach the service: the same results with any number
# of workers, also where the device fails.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
query <<'SQL'
CREATE TABLE slice_rows WITH (parallel_workers = 3) AS
SELECT ARRAY[sin(i), cos(i * 7), sin(i * 0.3), cos(i * 0.7)]::real[] AS f, sin(i)::real AS a, cos(i * 7)::real AS b, sin(i * 0.3)::real AS c, (1 + i % 3)::float8 AS w
FROM generate_series(1, 600000) AS i;
ANALYZE slice_rows;
SQL
# Sums are exact: the order in which workers bring rows does not count when centroids are given.
given="kmeans_options(init_centroids => '{{0,0,0,0},{0.5,0.5,0,0},{-1,0,0.5,1}}', max_iter => 3)"
statements=(
    "SELECT md5(kmeans(f, 3, $given)::text) FROM slice_rows"
    "SELECT md5(kmeans(f, 3, $given, w)::text) FROM slice_rows"
    "SELECT md5((to_jsonb(kmeans_fit('slice_rows', '{f}', 4, options => kmeans_options(max_iter => 3))) - 'origin')::text)"
    "SELECT md5((to_jsonb(kmeans_fit('slice_rows', '{a,b,c}', 4, options => kmeans_options(max_iter => 3), weight => 'w')) - 'origin')::text)"
    "SELECT count(*) || ' ' || sum(cluster_id) || ' ' || max(distance) FROM kmeans_labels('slice_rows', '{a,b,c}', 4, options => kmeans_options(max_iter => 3))"
)

say cuda "${statements[2]}" >/dev/null # the service runs from now on
for statement in "${statements[@]}"; do
    right=$(query -c "SET pg_kmeans.backend = cpu; SET max_parallel_workers_per_gather = 0" -c "$statement")
    for workers in 0 1 3; do
        is "$(say cuda "$statement" "SET max_parallel_workers_per_gather = $workers" "SET parallel_setup_cost = 0" "SET cpu_operator_cost = 0.00001" "SET parallel_tuple_cost = 0.01")" \
            "$right" "$workers workers: ${statement:0:40}"
    done
done
large="SELECT md5((to_jsonb(kmeans_fit('slice_rows', '{f}', 60, options => kmeans_options(max_iter => 20))) - 'origin')::text)"
fault "fit device_error once"
is "$(say auto "$large" "SET max_parallel_workers_per_gather = 3")" "WARNING $(query -c "SET pg_kmeans.backend = cpu" -c "$large")" \
    'the CPU takes them over where they are'
fault
echo 1..$number

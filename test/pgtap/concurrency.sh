#!/bin/bash
# Ten sessions at once get the bits that one session alone gets.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
sessions=10
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 1..4

query <<'SQL'
CREATE TABLE many_rows AS
SELECT i AS id, i % 3 AS g, ARRAY[sin(i), cos(i * 7), sin(i * 3) * 100, (i % 101) / 7.0]::double precision[] AS f FROM generate_series(1, 40000) AS i;
SQL
cat >"$folder/work.sql" <<'SQL'
SELECT to_jsonb(kmeans_fit('many_rows', '{f}', 20)) - 'origin';
SELECT g, kmeans(f, 8, kmeans_options(n_init => 2)) FROM many_rows GROUP BY g ORDER BY g;
SELECT md5(string_agg(cluster_id || ':' || distance, ',' ORDER BY row_ctid)) FROM kmeans_labels('many_rows', '{f}', 12, options => kmeans_options(seed => 9));
SELECT md5(string_agg(l::text, ',' ORDER BY id)) FROM (SELECT id, kmeans_label(f, 5) OVER (PARTITION BY g) AS l FROM many_rows) AS t;
SELECT kmeans_step(f, '{{0,0,0,0},{0,0,50,5},{0,0,-50,9}}') FROM many_rows;
SQL
# Arrival order is the aggregate's order of rows; let no parallel plan change it.
export PGOPTIONS="${PGOPTIONS:-} -c max_parallel_workers_per_gather=0 -c synchronize_seqscans=off"
query -f "$folder/work.sql" >"$folder/alone"
[ -s "$folder/alone" ]
result $? "one session alone"

# at_once SQL-FILE: runs it in all sessions; each leaves out.N.
at_once() {
    local i pids=() failed=0
    for ((i = 0; i < sessions; i++)); do
        query -f "$1" >"$folder/out.$i" 2>"$folder/err.$i" &
        pids+=($!)
    done
    for i in "${!pids[@]}"; do
        wait "${pids[$i]}" || { failed=1; sed "s/^/# session $i: /" "$folder/err.$i"; }
    done
    return $failed
}
status=0
at_once "$folder/work.sql" || status=1
for ((i = 0; i < sessions; i++)); do cmp -s "$folder/alone" "$folder/out.$i" || status=1; done
result $status "ten sessions at once get the same"

# Writers wait for one another: the first adds the column, the last finds nothing to change.
echo "SELECT md5(string_agg(c::text, ',' ORDER BY cluster_id)) FROM kmeans_centroids(kmeans_cluster('many_rows', '{f}', 6, options => kmeans_options(init_centroids => '{{0,0,0,0},{0,0,50,5},{0,0,-50,9},{0,0,90,1},{1,0,-90,2},{0,0,20,14}}'))) AS c;" >"$folder/write.sql"
status=0
at_once "$folder/write.sql" || status=1
for ((i = 1; i < sessions; i++)); do cmp -s "$folder/out.0" "$folder/out.$i" || status=1; done
result $status "ten sessions label one table"
[ "$(query -c 'SELECT count(DISTINCT cluster_id) FROM many_rows')" = 6 ]
result $? "and all rows have their labels"

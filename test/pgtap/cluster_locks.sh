#!/bin/bash
# What kmeans_cluster and gmm_cluster hold while they fit: readers read on, writers wait, and the column
# is added when the fit has ended.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query -c 'CREATE TABLE lock_rows AS SELECT i AS id, sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 3000) AS i'

# state STATEMENT...: the error code of the first statement that fails, or nothing.
state() {
    local statement commands=()
    for statement in "$@"; do commands+=(-c "$statement"); done
    query -v VERBOSITY=sqlstate "${commands[@]}" 2>&1 >/dev/null | grep -oE '[0-9A-Z]{5}$'
}
columns="SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'lock_rows'::regclass AND attnum > 0 AND NOT attisdropped"
read_now="LOCK TABLE lock_rows IN ACCESS SHARE MODE NOWAIT; SELECT count(*) FROM lock_rows"
write_now="LOCK TABLE lock_rows IN ROW EXCLUSIVE MODE NOWAIT"

for function in kmeans_cluster gmm_cluster; do
    # A fit that does not end by itself, but with the test where nobody finds it.
    state "SET statement_timeout = '10min'" "SELECT * FROM $function('lock_rows', '{x,y}', 3, options => ${function%_cluster}_options(tol => 0, n_init => 100000000))" >"$folder/fit" &
    victim=$!
    await 1 query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE restart > 1 AND datname = current_database()"
    result $? "$function fits"
    is "$(query -c "BEGIN; $read_now; COMMIT")" 3000 'meanwhile others read the table'
    is "$(state "BEGIN; $write_now")" 55P03 'nobody writes it'
    is "$(state "SET lock_timeout = 10" 'ALTER TABLE lock_rows ADD COLUMN cluster_id integer')" 55P03 'or adds a column'
    is "$(query -c "SELECT string_agg(DISTINCT mode, ',' ORDER BY mode) FROM pg_locks JOIN pg_stat_progress_kmeans USING (pid) WHERE relation = 'lock_rows'::regclass")" \
        "AccessShareLock,ShareRowExclusiveLock" 'by these locks'
    query -c "SELECT pg_cancel_backend(pid) FROM pg_stat_progress_kmeans WHERE datname = current_database()" >/dev/null
    wait $victim
    is "$(cat "$folder/fit") $(query -c "$columns")" '57014 id,x,y' 'a cancelled fit leaves no column'
done

# A transaction that has read the table keeps the column away, and nothing else of the call.
coproc READER { query; }
echo "BEGIN; SELECT count(*) FROM lock_rows;" >&"${READER[1]}"
read -r seen <&"${READER[0]}"
is "$seen $(state 'SET lock_timeout = 10' "SELECT kmeans_cluster('lock_rows', '{x,y}', 3)") $(query -c "$columns")" '3000 55P03 id,x,y' \
    'the column waits for readers, no longer than lock_timeout says'
query -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('lock_rows', '{x,y}', 3))" >"$folder/clusters" &
waiting=$!
await 1 query -c "SELECT count(*) FROM pg_locks WHERE relation = 'lock_rows'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted"
result $? 'without it until they end'
echo 'COMMIT; \q' >&"${READER[1]}"
wait $waiting
is "$(cat "$folder/clusters") $(query -c "$columns") $(query -c 'SELECT count(cluster_id) FROM lock_rows')" '3 id,x,y,cluster_id 3000' 'then it is added and filled'
echo "1..$number"

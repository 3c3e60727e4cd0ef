#!/bin/bash
# A hot standby: everything that writes nothing works there, with the primary's results, and a
# conflict with recovery ends a statement and not the server.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
source "$(dirname "$0")/../../../scripts/lib/copy.sh"

trap remove_copy EXIT

query <<'SQL'
CREATE TABLE standby_rows WITH (parallel_workers = 2) AS
SELECT i AS id, sin(i)::real AS x, cos(i * 7)::real AS y, i % 5 AS g FROM generate_series(1, 60000) AS i;
DELETE FROM standby_rows WHERE id % 10 = 0;
CREATE TABLE standby_doomed AS SELECT x, y FROM standby_rows;
CREATE UNLOGGED TABLE standby_unlogged AS SELECT x, y FROM standby_rows;
SQL
make_copy -R && start_copy max_standby_streaming_delay=100ms
# Committed synchronously: else its end may not be written yet when the position is asked for.
query -c "SET synchronous_commit = on" -c "INSERT INTO standby_rows SELECT id + 100000, y, x, g FROM standby_rows WHERE id <= 1000"
await_replay
[ "$(there -c 'SELECT pg_is_in_recovery()')" = t ]
result $? 'the standby runs'
[ $? -eq 0 ] || cat "$folder/log" >&2

# same NAME SQL: the same answer on both.
same() {
    local here now
    here=$(query -c "SET max_parallel_workers_per_gather = 2" -c "$2") && now=$(there -c "SET max_parallel_workers_per_gather = 2" -c "$2") &&
        [ -n "$here" ] && [ "$here" = "$now" ]
    result $? "$1"
}
same 'kmeans_fit, read directly by several processes' "SET pg_kmeans.scan = direct; SELECT to_jsonb(kmeans_fit('standby_rows', '{x,y}', 5)) - 'origin'; SELECT scan, workers FROM kmeans_last_run()"
same 'kmeans_fit through the executor' "SET pg_kmeans.scan = executor; SELECT to_jsonb(kmeans_fit('standby_rows', '{x,y}', 5)) - 'origin'"
same 'kmeans_labels' "SELECT count(*), sum(cluster_id), sum(distance) FROM kmeans_labels('standby_rows', '{x,y}', 5)"
same 'kmeans_sweep on loaded rows' "SELECT kmeans_load('standby_rows', '{x,y}'); SELECT * FROM kmeans_sweep('standby_rows', '{x,y}', 2, 4, memory => 'loaded')"
same 'the aggregate' "SET max_parallel_workers_per_gather = 0; SELECT g, kmeans(ARRAY[x, y], 3) FROM standby_rows GROUP BY g ORDER BY g"
same 'the aggregate in a parallel plan' "SELECT kmeans(ARRAY[x, y], 2, kmeans_options(init_centroids => '{{0,0},{1,1}}')) FROM standby_rows"
same 'the window function' "SELECT sum(l) FROM (SELECT kmeans_label(ARRAY[x, y], 3) OVER (PARTITION BY g ORDER BY id) AS l FROM standby_rows) AS s"
same 'progress and status' "SELECT count(*), (SELECT count(*) FROM kmeans_status() WHERE backend = 'cpu') FROM pg_stat_progress_kmeans WHERE datname = current_database()"

# What writes says so, before it reads or fits: the rows would be an error.
query -c "SET synchronous_commit = on" -c "CREATE TABLE standby_wrong AS SELECT 'NaN'::real AS x"
await_replay
for call in "kmeans_cluster('standby_wrong', '{x}', 3)" "gmm_cluster('standby_wrong', '{x}', 3)"; do
    said=$(psql -XqAt -p "$port" -v VERBOSITY=verbose -c "SELECT $call" 2>&1 | head -n 1)
    [[ $said =~ ^'ERROR:  25006: cannot execute '"${call%%(*}"'()' ]]
    result $? "refused: $said"
done

for scan in auto executor; do
    state=$(psql -XqAt -p "$port" -v VERBOSITY=sqlstate -c "SET pg_kmeans.scan = $scan" -c "SELECT kmeans_fit('standby_unlogged', '{x,y}', 3)" 2>&1 | grep -oE '[0-9A-Z]{5}$')
    [ "$state" = 0A000 ]
    result $? "an unlogged table is refused as by a SELECT ($scan): $state"
done

# The primary drops a table that a fit on the standby holds a lock on.
psql -XqAt -p "$port" -v VERBOSITY=sqlstate -c "SELECT kmeans_fit('standby_doomed', '{x,y}', 50, options => kmeans_options(n_init => 1000000))" >"$folder/doomed" 2>&1 &
victim=$!
await 1 there -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE restart > 1"
query -c 'DROP TABLE standby_doomed'
wait $victim
grep -qE '^ERROR: +40001$' "$folder/doomed"
result $? "a conflict with recovery ends the statement: $(head -c 100 "$folder/doomed")"
same 'and nothing else' "SELECT to_jsonb(kmeans_fit('standby_rows', '{x,y}', 2)) - 'origin'"
echo "1..$number"

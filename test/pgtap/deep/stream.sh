#!/bin/bash
# Tables whose rows are streamed: one snapshot for all passes, whatever others do meanwhile; parts that several
# processes read; progress; memory that stays within the limit, and none that is left behind.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE stream_rows (id integer, x real, y real, f real[], keep boolean);
INSERT INTO stream_rows SELECT i, sin(i) * 100, cos(i * 7) * (i % 13), ARRAY[sin(i), i % 4, cos(i)], i % 4 > 0 FROM generate_series(1, 100000) AS i;
ANALYZE stream_rows;
CREATE TABLE stream_models (name text, model kmeans_model);
SQL

# parts: several processes read each
fit() { echo "kmeans_fit('stream_rows', '{$1}', 20, options => kmeans_options(init => 'k-means||'), memory => '$2')"; }
is "$(query <<SQL
SET min_parallel_table_scan_size = 0;
ALTER TABLE stream_rows SET (parallel_workers = 2);
INSERT INTO stream_models SELECT c, $(fit x,y resident) FROM (VALUES ('x')) AS v(c);
INSERT INTO stream_models SELECT c, $(fit f resident) FROM (VALUES ('f')) AS v(c);
SET pg_kmeans.memory_limit = '3MB';
SELECT $(fit x,y stream) = model FROM stream_models WHERE name = 'x';
SELECT scan, workers, n, rows_scanned FROM kmeans_last_run();
SELECT $(fit f stream) = model FROM stream_models WHERE name = 'f';
SELECT scan, workers FROM kmeans_last_run();
SQL
)" $'t\nstream|2|100000|100000\nt\nstream|2' 'parts that two workers help to read'

# begin STATEMENT...: a session that runs them; its pid goes to $pid.
begin() {
    : >"$folder/out"
    psql -XqAt -c 'SELECT pg_backend_pid()' "${@/#/-c}" >"$folder/out" 2>"$folder/errors" &
    session=$!
    until pid=$(head -n 1 "$folder/out") && [ -n "$pid" ]; do sleep 0.01; done
}
ask() { query -c "SELECT $1 FROM pg_stat_progress_kmeans WHERE pid = $pid"; }

# one snapshot; progress counts the rows that the filter leaves out, too
many() { echo "kmeans_fit('stream_rows', '{x,y}', 3, options => kmeans_options(init => 'random', n_init => 25, tol => 0), filter => 'keep', memory => '$1')"; }
query -c "DELETE FROM stream_models" -c "ALTER TABLE stream_rows RESET (parallel_workers)" \
    -c "INSERT INTO stream_models SELECT 'many', $(many resident)"
begin "SET pg_kmeans.memory_limit = '2MB'" \
    "SELECT $(many stream) = model FROM stream_models"
await t ask 'pass > 1'
result $? "a pass is shown"
[[ $(ask "phase IN ('loading', 'seeding', 'iterating', 'labelling'), rows_scanned BETWEEN 0 AND rows_expected, rows_expected") == 't|t|100000' ]]
result $? "with its rows: $(ask 'phase, pass, rows_scanned, rows_expected')"
query -c "UPDATE stream_rows SET x = 1e6 WHERE id % 2 = 0" -c "DELETE FROM stream_rows WHERE id % 5 = 0" \
    -c "INSERT INTO stream_rows SELECT i, 1e5, 1e5, NULL FROM generate_series(1, 10000) AS i" -c "VACUUM stream_rows"
before=$(ask pass)
await t ask "pass > ${before:-0} + 1"
result $? 'passes go on after others have changed the rows'
wait "$session"
is "$(tail -n 1 "$folder/out")" t 'and see none of it'
is "$(query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE datname = current_database()")" 0 'nothing is shown afterwards'

# memory: of this process, while rows of 8 MB, and 40 MB of the work on them, are streamed within 6 MB
query -c "CREATE TABLE stream_many AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 1000000) AS i" -c "ANALYZE stream_many"
begin "SET pg_kmeans.memory_limit = '6MB'" "SELECT pg_sleep(1)" \
    "SELECT (kmeans_fit('stream_many', '{x,y}', 5, options => kmeans_options(init => 'random', n_init => 3))).n" "SELECT scan FROM kmeans_last_run()"
own() { awk '$1 == "RssAnon:" { print $2 }' "/proc/$pid/status" 2>/dev/null; }
sleep 0.5
first=$(own) most=0
while kill -0 "$session" 2>/dev/null; do
    now=$(own)
    [ "${now:-0}" -le "$most" ] || most=$now
    sleep 0.02
done
wait "$session"
is "$(tail -n 2 "$folder/out")" $'1000000\nstream' 'a table that does not fit is streamed by itself'
[ "$most" -gt 0 ] && [ $((most - first)) -lt 20000 ]
result $? "within some memory: $((most - first)) kB more than before"

# errors and cancels leave nothing: the session's account is empty, or the next fit would not fit
is "$(psql -XqAt 2>&1 <<'SQL'
SET pg_kmeans.memory_limit = '6MB';
SET statement_timeout = '700ms';
\set VERBOSITY sqlstate
SELECT kmeans_fit('stream_many', '{x,y}', 5, options => kmeans_options(init => 'random', n_init => 100000), memory => 'stream');
SELECT kmeans_fit('stream_many', '{x,y}', 5, options => kmeans_options(init => 'k-means++', n_init => 100000), memory => 'stream');
RESET statement_timeout;
SELECT kmeans_fit('stream_many', '{x,y}', 5, options => kmeans_options(init => 'random', metric => 'cosine', standardize => true, n_init => 2), memory => 'stream') IS NOT NULL;
SQL
)" $'ERROR:  57014\nERROR:  57014\nt' 'after a cancel there is room for the next fit'

# what a fit of rows in memory has taken it gives back to the system
mapfile -t kept < <(psql -XqAt <<'SQL'
SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*(\d+)');
SELECT (kmeans_fit('stream_many', '{x,y}', 20, memory => 'resident')).n;
SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*(\d+)');
SQL
)
[ "${kept[1]}" -eq 1000000 ] && [ $((kept[2] - kept[0])) -lt 24000 ]
result $? "a session keeps little memory after a fit: $((kept[2] - kept[0])) kB"
echo "1..$number"

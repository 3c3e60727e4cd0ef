#!/bin/bash
# pg_stat_progress_kmeans as other sessions see it: who may see what, rows and iterations that
# rise, and nothing left after a cancel, an end of the process or the normal end.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE progress_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 200000) AS i;
CREATE TABLE progress_wide AS SELECT array_agg(sin(i * (j * 0.37 + 1)) + (i = j)::integer ORDER BY j)::real[] AS f FROM generate_series(1, 2500) AS i, generate_series(1, 2000) AS j GROUP BY i;
CREATE VIEW progress_endless AS SELECT i::real AS x FROM generate_series(1, 100000) AS i, generate_series(1, 100000) AS j;
DROP ROLE IF EXISTS progress_other, progress_reader;
CREATE ROLE progress_other;
CREATE ROLE progress_reader IN ROLE pg_read_all_stats;
SQL
trap 'query -c "DROP ROLE progress_other, progress_reader"; rm -rf "$folder"' EXIT

# begin STATEMENT: a session that runs it; its pid goes to $pid.
begin() {
    : >"$folder/victim"
    psql -XqAt -c 'SELECT pg_backend_pid()' -c "$1" >"$folder/victim" 2>"$folder/errors" &
    until pid=$(head -n 1 "$folder/victim") && [ -n "$pid" ]; do sleep 0.01; done
}
# ask COLUMNS [ROLE]: what the view says of the session.
ask() { query -c "SET ROLE ${2:-postgres}" -c "SELECT $1 FROM pg_stat_progress_kmeans WHERE pid = $pid"; }
# expect COLUMNS PATTERN TEXT: waits up to 10 s for an answer that matches.
expect() {
    local i answer=
    for ((i = 0; i < 200; i++)); do
        answer=$(ask "$1")
        [[ $answer =~ $2 ]] && break
        sleep 0.05
    done
    [[ $answer =~ $2 ]]
    result $? "$3: $answer"
}
# rises COLUMN TEXT: it is more after a while.
rises() {
    local first
    first=$(ask "$1")
    sleep 0.3
    [ "$(ask "$1")" -gt "$first" ]
    result $? "$2"
}
cancel() { query -c "SELECT pg_cancel_backend($pid)" >/dev/null; }
expect_nothing() {
    wait
    [ -z "$(ask pid)" ]
    result $? "$1"
}

begin "SELECT kmeans_fit('progress_endless', '{x}', 2)"
expect "phase, rows_scanned, datname = current_database(), iteration" '^scanning rows\|[1-9][0-9]*\|t\|$' 'rows are counted'
rises rows_scanned 'and rise'
[ "$(ask 'relid::regclass')" = progress_endless ]
result $? 'the relation is named'
[ "$(ask "pid = $pid, datname IS NOT NULL, num_nulls(relid, phase, rows_scanned, bytes_moved)" progress_other)" = "t|t|4" ]
result $? 'another role sees only that there is something'
[ "$(ask 'relid::regclass::text, phase' progress_reader)" = 'progress_endless|scanning rows' ]
result $? 'pg_read_all_stats sees it all'
cancel
expect_nothing 'a cancel takes it away'

long="init => 'first', tol => 0, max_iter => 100000"
begin "SELECT kmeans_fit('progress_rows', '{x,y}', 1000, options => kmeans_options($long))"
expect 'phase, max_iter, restart, n_init, backend, iteration, shift > 0' '^iterating\|100000\|1\|1\|cpu\|[1-9][0-9]*\|t$' 'iterations are counted'
rises iteration 'and rise'
# What the session waits for has a name from version 17 on.
[[ $(query -c "SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity WHERE pid = $pid") =~ ^Extension\ (Extension|KmeansFit)$ ]]
result $? 'it waits for an event of an extension'
query -c "SELECT pg_terminate_backend($pid)" >/dev/null
expect_nothing 'so does the end of the process'

begin "SELECT kmeans(ARRAY[x, y], 1000, kmeans_options(init => 'first', tol => 0, max_iter => 100000)) FROM progress_rows"
expect 'phase, relid IS NULL, rows_scanned' '^iterating\|t\|0$' 'the aggregate shows its fit'
cancel
wait

begin "SELECT kmeans_fit('progress_rows', '{x,y}', 3, options => kmeans_options(n_init => 100000))"
expect 'phase, n_init, restart' '\|100000\|[1-9][0-9]+$' 'restarts are counted'
cancel
wait

begin "SELECT kmeans_fit('progress_rows', '{x,y}', 3000)"
expect 'phase, seeded, k' '^seeding\|[1-9][0-9]*\|3000$' 'first centroids are counted'
cancel
wait

begin "SELECT gmm_fit('progress_rows', '{x,y}', 40, options => gmm_options(tol => 0, max_iter => 100000))"
expect 'phase, relid::regclass, max_iter, restart, n_init, backend, iteration, shift IS NOT NULL' '^iterating\|progress_rows\|100000\|1\|1\|cpu\|[1-9][0-9]*\|t$' 'a mixture counts its own iterations'
rises iteration 'and they rise'
cancel
expect_nothing 'a cancel takes it away too'

begin "SELECT gmm(ARRAY[x, y], 40, gmm_options(tol => 0, max_iter => 100000)) FROM progress_rows"
expect 'phase, relid IS NULL, iteration > 0' '^iterating\|t\|t$' 'so does that of the aggregate'
cancel
wait

begin "SELECT pca_fit('progress_wide', '{f}') FROM generate_series(1, 10)"
expect 'phase, relid::regclass, backend, num_nonnulls(iteration, max_iter, restart, n_init, shift)' '^iterating\|progress_wide\|cpu\|0$' 'PCA shows its phases, and no iterations'
cancel
wait

begin "SELECT kmeans_fit('progress_rows', '{x,y}', 3)"
expect_nothing 'so does the normal end'
echo "1..$number"

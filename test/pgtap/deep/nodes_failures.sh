#!/bin/bash
# Servers of a fit that die, hang or are left alone, in each phase: the error names the server and comes in time, and
# nothing stays behind.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"

begin_with_nodes 2
query <<'SQL'
CREATE TABLE failing_rows (id integer, x double precision, y double precision) PARTITION BY RANGE (id);
CREATE TABLE failing_here PARTITION OF failing_rows FOR VALUES FROM (0) TO (20000);
INSERT INTO failing_rows SELECT i, sin(i), cos(i * 7) FROM generate_series(0, 19999) AS i;
SQL
for node in 1 2; do
    join_node $node
    on_node $node <<SQL
CREATE TABLE part (id integer, x double precision, y double precision);
INSERT INTO part SELECT i, sin(i * 3), cos(i * 5) FROM generate_series(${node}00000, ${node}19999) AS i;
CREATE VIEW slow AS SELECT id, x, y FROM part, LATERAL (SELECT pg_sleep(CASE WHEN id % 1000 = 0 THEN 30 ELSE 0 END)) AS s;
SQL
    query -c "CREATE FOREIGN TABLE failing_$node PARTITION OF failing_rows FOR VALUES FROM (${node}00000) TO (${node}20000) SERVER node$node OPTIONS (table_name 'part')"
done

# Fits that do not end by themselves, each with one phase that takes nearly all of the time.
declare -A fit=(
    [scanning]="SELECT kmeans_fit('failing_rows', '{x,y}', 3)"
    [seeding]="SELECT kmeans_fit('failing_rows', '{x,y}', 3000, options => kmeans_options(max_iter => 1, n_init => 1000000))"
    [iterating]="SELECT kmeans_fit('failing_rows', '{x,y}', 400, options => kmeans_options(init => 'random', tol => 0, max_iter => 1000000, n_init => 1000000))"
)
slow_parts() { # NAME: the tables, or the views that are slow to read
    for node in 1 2; do query -c "ALTER FOREIGN TABLE failing_$node OPTIONS (SET table_name '$1')"; done
}

# begin PHASE [SETTING]: the fit, in a session of its own, when it is in that phase. Its output goes to $out.
out=$nodes_folder/out
begin() {
    [ "$1" != scanning ] || slow_parts slow
    { echo '\set VERBOSITY verbose'; echo "${2:-};"; echo "SELECT 'pid', pg_backend_pid();"; echo "${fit[$1]};"; } | psql -XqAt >"$out" 2>&1 &
    session=$!
    local i
    for ((i = 0; i < 1200; i++)); do
        pid=$(sed -nE 's/^pid\|([0-9]+)$/\1/p' "$out")
        if [ -n "$pid" ] && [ "$(query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE pid = $pid AND phase LIKE '$1%'")" = 1 ] &&
            { [ "$1" != scanning ] || [ "$(on_node 2 -c "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pgkm_node_load%' AND state = 'active' AND pid <> pg_backend_pid()")" = 1 ]; }; then
            return
        fi
        sleep 0.05
    done
    echo "# it never got there: $(head -c 300 "$out")"
}
# finish PHASE WANTED TEXT: the session ends with the error WANTED; no server has anything left.
finish() {
    local node
    wait $session
    [ "$1" != scanning ] || slow_parts part
    grep -qE "$2" "$out"
    result $? "$3: $(grep -m 1 -E 'ERROR|FATAL' "$out")"
    for node in 1 2; do
        [ -n "${node_pid[$node]:-}" ] || start_node $node
        nothing_left $node "$3: nothing is left on node $node"
    done
}
# family PID: it and its children.
family() { echo "$1" $(pgrep -P "$1"); }

for phase in scanning seeding iterating; do
    begin $phase
    kill_node 2
    finish $phase 'ERROR: +[0-9A-Z]{5}: server "node2": ' "a server dies, $phase"

    begin $phase
    query -c "SELECT pg_cancel_backend($pid)" >/dev/null
    finish $phase 'ERROR: +57014' "a cancel, $phase"

    begin $phase
    query -c "SELECT pg_terminate_backend($pid)" >/dev/null
    finish $phase '57P01' "the session is terminated, $phase"

    begin $phase
    on_node 1 -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_kmeans'" >/dev/null
    finish $phase 'ERROR: +[0-9A-Z]{5}: server "node1": ' "a session over there is terminated, $phase"

    begin $phase "SET pg_kmeans.node_timeout = '3s'; SET statement_timeout = '120s'"
    stopped=$(family "${node_pid[1]}")
    kill -STOP $stopped
    wait $session
    kill -CONT $stopped
    finish $phase 'ERROR: +08[0-9A-Z]{3}: server "node1": ' "a server hangs, $phase"
done

# A server that is slow to read but alive is waited for.
slow_parts slow
on_node 1 -c "CREATE OR REPLACE VIEW slow AS SELECT id, x, y FROM part, LATERAL (SELECT pg_sleep(CASE WHEN id = 100000 THEN 7 ELSE 0 END)) AS s"
on_node 2 -c "CREATE OR REPLACE VIEW slow AS SELECT id, x, y FROM part"
is "$(query -c "SET pg_kmeans.node_timeout = '3s'" -c "SELECT (kmeans_fit('failing_rows', '{x,y}', 3)).n" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" '60000 nodes' 'a server that is slow to read is waited for'
query -c "DROP TABLE failing_rows" -c "DROP SERVER node1, node2 CASCADE"
echo "1..$number"

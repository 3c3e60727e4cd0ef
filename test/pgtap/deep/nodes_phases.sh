#!/bin/bash
# The connection to a server of a fit is cut, or says nothing any more, at each request that the fit sends there: the
# error names the server and comes in time, nothing stays behind there, and the same fit works when the network does.
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"

begin_with_nodes 2
proxy=
stop_proxy() {
    [ -z "$proxy" ] || kill "$proxy"
    proxy=
}
trap 'stop_proxy; stop_nodes' EXIT
query -c "CREATE TABLE phases_rows (id integer, x double precision, y double precision) PARTITION BY RANGE (id)" \
    -c "CREATE TABLE phases_here PARTITION OF phases_rows FOR VALUES FROM (0) TO (3000)" \
    -c "INSERT INTO phases_rows SELECT i, sin(i), cos(i * 7) FROM generate_series(0, 2999) AS i"
for node in 1 2; do
    join_node $node
    on_node $node -c "CREATE TABLE part AS SELECT i AS id, sin(i * 3) AS x, cos(i * 5) AS y FROM generate_series(${node}00000, ${node}02999) AS i"
    query -c "CREATE FOREIGN TABLE phases_$node PARTITION OF phases_rows FOR VALUES FROM (${node}00000) TO (${node}03000) SERVER node$node OPTIONS (table_name 'part')"
done
mkdir "$nodes_folder/proxy"
through() { query -c "ALTER SERVER node2 OPTIONS (SET host '$nodes_folder/$1')"; }

# fail_at HEX CUT-OR-HANG [SIDE BYTES]: what the connections to node 2 do from now on (failing_proxy.py).
fail_at() {
    local i
    rm -f "$nodes_folder/proxy/.s.PGSQL.5432"
    : >"$nodes_folder/said"
    python3 "$here/test/support/failing_proxy.py" "$nodes_folder/proxy/.s.PGSQL.5432" "$nodes_folder/socket2/.s.PGSQL.5432" "$@" >"$nodes_folder/said" &
    proxy=$!
    for ((i = 0; i < 600; i++)); do grep -q ready "$nodes_folder/said" && break || sleep 0.05; done
    through proxy
}
# fails CUT-OR-HANG NAME HEX STATEMENT [SIDE BYTES]: what the statement says when the connection to node 2 fails at these
# bytes.
fails() {
    local said node ended=:
    fail_at "$3" "$1" "${@:5}"
    said=$(psql -XqAt -v VERBOSITY=verbose -c "SET pg_kmeans.node_timeout = '3s'" -c "SET statement_timeout = '60s'" -c "$4" 2>&1)
    grep -q failed "$nodes_folder/said" && grep -qE 'ERROR: +08[0-9A-Z]{3}: server "node2": ' <<<"$said"
    result $? "$2, $1: $(grep -m 1 -E 'ERROR|FATAL' <<<"$said")"
    # What hangs at both ends is noticed there when the proxy goes.
    [ "$1" != hang ] || ended=stop_proxy
    for node in 1 2; do nothing_left $node "$2, $1: nothing is left on node $node" $ended; done
    stop_proxy
    through socket2
}
# A request: the magic number and the operation (message.hpp). How much of an answer may come at once follows, 16 MB; then,
# of operation 0, the function of the table.
magic=$(sed -nE 's/.*message_magic = 0x(..)(..)(..)(..)u;/\4\3\2\1/p' "$here/src/engine/nodes/message.hpp")
request() { printf '%s%02x000000' "$magic" "$1"; }
call() { printf '%s0000000100000000%02x000000' "$(request 0)" "$1"; }
text() { printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n'; }

plain="SELECT kmeans_fit('phases_rows', '{x,y}', 20)"
empty="SELECT kmeans_fit('phases_rows', '{x,y}', 4, options => kmeans_options(init_centroids => '{{0,0},{90,90},{95,95},{99,99}}', tol => 0))"
rounds="SELECT kmeans_fit('phases_rows', '{x,y}', 20, options => kmeans_options(init => 'k-means||'))"
fails cut 'a connection' "$(text pgkm_node_version)" "$plain"
fails cut 'a load' "$(text pgkm_node_load)" "$plain"
for way in cut hang; do
    fails $way 'an iteration' "$(call 3)" "$plain"
    fails $way 'sizes' 00000000010100 "$plain" # what is wanted of a call of assign: sums of squares and sizes alone
done
while read -r operation ways name statement; do
    for way in ${ways//,/ }; do fails "$way" "${name//_/ }" "$(request "$operation")" "${!statement}"; done
done <<'PHASES'
1 cut,hang ranges plain
4 cut empty_clusters empty
6 cut the_beginning_of_seeding plain
7 cut a_round rounds
8 cut masses_of_candidates rounds
9 cut masses plain
10 cut draws plain
11 cut,hang gains plain
13 cut,hang a_choice plain
PHASES
fails cut 'moments' "$(request 2)" "SELECT kmeans_fit('phases_rows', '{x,y}', 3, options => kmeans_options(standardize => true))"
fails cut 'a transformation' "$(request 3)" "SELECT kmeans_fit('phases_rows', '{x,y}', 3, options => kmeans_options(metric => 'cosine'))"
fails cut 'products' "$(call 4)" "SELECT pca_fit('phases_rows', '{x,y}')"
fails cut 'a mixture' "$(call 5)" "SELECT gmm_fit('phases_rows', '{x,y}', 3)"

# A long message travels in parts: the network fails at the first part, in the middle of one, and when all of them have come.
# Parts of three servers are shorter than those of two: node 1 is two of them.
query -c "CREATE TABLE phases_wide (id integer, f double precision[]) PARTITION BY RANGE (id)" \
    -c "CREATE SERVER again FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$nodes_folder/socket1', port '5432', dbname 'postgres')" \
    -c "CREATE USER MAPPING FOR CURRENT_USER SERVER again OPTIONS (user 'postgres')"
while read -r node server first; do
    on_node $node -c "CREATE TABLE wide_$first AS SELECT i AS id, (SELECT array_agg(sin(i * f * f + f)) FROM generate_series(1, 80) AS f) AS f FROM generate_series($first, $first + 199) AS i"
    query -c "CREATE FOREIGN TABLE phases_wide_$first PARTITION OF phases_wide FOR VALUES FROM ($first) TO ($((first + 200))) SERVER $server OPTIONS (table_name 'wide_$first')"
done <<'PARTS'
1 node1 1000
2 node2 2000
1 again 3000
PARTS
wide="SELECT gmm_fit('phases_wide', '{f}', 12, options => gmm_options(max_iter => 3))"
export PGOPTIONS='-c pg_kmeans.memory_limit=10MB'
for way in cut hang; do
    fails $way 'the first part of a request' "$(request 15)" "$wide"
    fails $way 'the middle of a part of a request' "$(request 15)" "$wide" request 100000
    fails $way 'the middle of a part of an answer' "$(request 14)" "$wide" answer 100000
done
fails cut 'the end of a request in parts' "$(request 16)" "$wide"
fails cut 'a question for a part of an answer' "$(request 14)" "$wide"
is "$(query -c "SELECT gmm_fit('phases_wide', '{f}', 12, options => gmm_options(max_iter => 3)) IS NULL" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" 'f nodes' 'the same fit in parts works when the network does'
unset PGOPTIONS
query -c "DROP TABLE phases_wide" -c "DROP SERVER again CASCADE"

# A fit of little work waits for servers as any other does.
fail_at "$(request 1)" hang
said=$(psql -XqAt -v VERBOSITY=sqlstate -c "SET pg_kmeans.node_timeout = '60s'" -c "SET statement_timeout = '1s'" -c "SELECT kmeans_fit('phases_rows', '{x,y}', 1)" 2>&1)
grep -q failed "$nodes_folder/said" && grep -q 57014 <<<"$said"
result $? "a cancel of a small fit that waits for a server: $said"
stop_proxy
through socket2

# Labels are written by postgres_fdw, in the caller's transaction.
query -c "ALTER TABLE phases_rows ADD COLUMN cluster_id integer"
for node in 1 2; do on_node $node -c "ALTER TABLE part ADD COLUMN cluster_id integer"; done
fail_at "$(text 'UPDATE public.part')" cut
psql -XqAt -c "SET statement_timeout = '60s'" -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('phases_rows', '{x,y}', 3, label_column => 'cluster_id', overwrite => true))" >"$nodes_folder/labels" 2>&1
grep -q failed "$nodes_folder/said" && grep -q '^ERROR' "$nodes_folder/labels"
result $? "labels: $(grep -m 1 ERROR "$nodes_folder/labels")"
stop_proxy
through socket2
is "$(query -c "SELECT count(cluster_id) FROM phases_rows")" 0 'and no server has kept any'

# A server that has restarted serves the next call of the session that it failed.
is "$(query -c "SELECT (kmeans_fit('phases_rows', '{x,y}', 20)).n" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" '9000 nodes' 'the fit works when the network does'
kill_node 2
start_node 2
is "$(query -c "SELECT (kmeans_fit('phases_rows', '{x,y}', 20)).n" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" '9000 nodes' 'and after a restart'
query -c "DROP TABLE phases_rows" -c "DROP SERVER node1, node2 CASCADE"
echo "1..$number"

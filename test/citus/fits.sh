#!/bin/bash
# A fit over shards of Citus has the bits of one server that holds all rows: three workers, shards on the coordinator, unequal
# parts, empty shards, NULLs and weights. What Citus pushes down of queries stays pushed down.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"
export PGOPTIONS='-c client_min_messages=warning'

begin_with_citus 3
query >/dev/null <<SQL
SELECT citus_set_node_property('$PGHOST', $PGPORT, 'shouldhaveshards', true);
CREATE TABLE one AS
SELECT i AS id, i % 5 AS part, CASE WHEN i % 97 > 0 THEN sin(i)::real END AS x, cos(i * 7)::real AS y, exp(sin(i * 3))::real AS z,
       ARRAY[sin(i), sin(i) + cos(i * 5) / 2, i % 3] AS f, CASE WHEN i % 11 > 0 THEN exp(3 * sin(i * 5)) END AS w
FROM generate_series(1, 12000) AS i;
UPDATE one SET (x, y, z) = (NULL, NULL, NULL), f = NULL WHERE x IS NULL;
CREATE SCHEMA "of Citus";
CREATE TABLE "of Citus"."some rows" (dropped integer, LIKE one);
ALTER TABLE "of Citus"."some rows" DROP COLUMN dropped;
-- 5 values in 16 shards: most are empty
SELECT create_distributed_table('"of Citus"."some rows"', 'part', shard_count => 16);
INSERT INTO "of Citus"."some rows" SELECT * FROM one;
CREATE TABLE even (LIKE one);
SELECT create_distributed_table('even', 'id', shard_count => 8);
INSERT INTO even SELECT * FROM one;
CREATE TABLE parted (LIKE one) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (4000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (4000) TO (20000);
SELECT create_distributed_table('parted', 'id', shard_count => 4);
INSERT INTO parted SELECT * FROM one;
CREATE TABLE copied (LIKE one);
SELECT create_reference_table('copied');
INSERT INTO copied SELECT * FROM one;
CREATE TABLE alone AS SELECT * FROM one;
SELECT citus_add_local_table_to_metadata('alone');
SQL

# same NAME ARGUMENTS [TABLE [WAY]]: kmeans_fit over all servers, and over one, with the way the rows went.
same() {
    local one all table=${3:-"\"of Citus\".\"some rows\""} way=${4:-nodes}
    one=$(query -c "SELECT to_jsonb(kmeans_fit('one', $2)) - 'origin'")
    all=$(query -c "SELECT to_jsonb(kmeans_fit('$table', $2)) - 'origin'" -c "SELECT scan FROM kmeans_last_run()")
    is "$all" "$one"$'\n'"$way" "$1"
}
same 'k-means++' "'{x,y,z}', 20"
same 'k-means||' "'{x,y,z}', 50, options => kmeans_options(init => 'k-means||')"
same 'random rows, restarts' "'{x,y,z}', 30, options => kmeans_options(init => 'random', seed => 7, n_init => 3)"
same 'weights' "'{x,y,z}', 20, weight => 'w'"
same 'an array column, standardized' "'{f}', 9, options => kmeans_options(standardize => true)"
same 'directions' "'{x,y,z}', 9, options => kmeans_options(metric => 'cosine')"
same 'given centroids that leave clusters empty' "'{x,y}', 4, options => kmeans_options(init_centroids => '{{0,0},{90,90},{95,95},{99,99}}', tol => 0)"
same 'shards of like size' "'{x,y,z}', 20" even
same 'a partitioned table' "'{x,y,z}', 20" parted
same 'a reference table, whose rows are all here' "'{x,y,z}', 20" copied executor
same 'a table of this server in the metadata' "'{x,y,z}', 20" alone executor
same 'a local table' "'{x,y,z}', 20" one direct
on_worker() { on_node 2 -c "SET client_min_messages = warning" "$@"; }
for table in even alone; do
    is "$(on_worker -c "SELECT to_jsonb(kmeans_fit('$table', '{x,y,z}', 20)) - 'origin'" -c "SELECT scan FROM kmeans_last_run()")" "$(query -c "SELECT to_jsonb(kmeans_fit('one', '{x,y,z}', 20)) - 'origin'")"$'\n'nodes "table $table from a worker"
done
shard=$(query -c "SELECT shard_name(logicalrelid, shardid) FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) WHERE logicalrelid = 'even'::regclass AND groupid = 2 LIMIT 1")
is "$(on_worker -c "SELECT (kmeans_fit('$shard', '{x,y,z}', 2)).n > 0" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" 't direct' 'a shard on its worker is read directly'

is "$(query -c "CREATE TEMP TABLE swept AS SELECT * FROM kmeans_sweep('even', '{x,y,z}', 1, 6)" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT count(*), bool_and((a.inertia, a.n_iter) = (b.inertia, b.n_iter)), max(abs(a.davies_bouldin / b.davies_bouldin - 1)) < 1e-12 FROM swept a JOIN kmeans_sweep('one', '{x,y,z}', 1, 6) b USING (k)" | paste -sd ' ')" 'nodes 6|t|t' 'a sweep'

is "$(query -c "SELECT kmeans_load('even', '{x,y,z}') > 0" -c "SELECT kmeans_fit('even', '{x,y,z}', 20, memory => 'loaded') = kmeans_fit('one', '{x,y,z}', 20)" -c "SELECT kmeans_fit('even', '{x,y,z}', 3, memory => 'loaded') IS NULL" -c "SELECT scan, backend FROM kmeans_last_run()" | paste -sd ' ')" 't t f loaded|nodes' 'rows stay loaded'

near one even 'PCA' pca_fit "'{x,z}'"
near one even 'PCA of standardized rows' pca_fit "'{f}', options => pca_options(n_components => 2, standardize => true)"
for type in full tied diag spherical; do
    near one even "a mixture, $type" gmm_fit "'{x,y,z}', 4, options => gmm_options(covariance_type => '$type', max_iter => 20)"
done

# Labels, in the caller's transaction.
labels() { # NAME TABLE ARGUMENTS: centroids, and how many labels differ from those of one server
    local one
    one=$(query -c "SELECT kmeans_centroids(kmeans_cluster('one', $3))")
    is "$(query -c "SELECT kmeans_centroids(kmeans_cluster('$2', $3))" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT count(*) FROM one FULL JOIN $2 AS t USING (id) WHERE one.label IS DISTINCT FROM t.label")" "$one"$'\nnodes\n0' "$1"
}
labels 'labels in a new column' even "'{x,y,z}', 20, label_column => 'label'"
labels 'labels in a new column of a table of another schema' '"of Citus"."some rows"' "'{x,y,z}', 7, label_column => 'label', overwrite => true"
labels 'labels of weighted rows' even "'{f}', 12, weight => 'w', label_column => 'label', overwrite => true"
is "$(on_worker -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('even', '{x,y}', 5, label_column => 'label', overwrite => true))" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT count(DISTINCT label) FROM even" | paste -sd ' ')" '5 nodes 5' 'labels, from a worker'
before="SELECT md5(string_agg(label::text, ',' ORDER BY id)) FROM even"
is "$(query -c "$before" -c "BEGIN" -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('even', '{x,y}', 3, label_column => 'label', overwrite => true))" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT count(DISTINCT label) FROM even" -c "ROLLBACK" -c "$before" | paste -sd ' ')" \
    "$(query -c "$before") 3 nodes 3 $(query -c "$before")" 'a rollback takes the labels back'

# What this transaction has changed is seen.
notice() { PGOPTIONS= query "$@" 2>&1 | grep -oE "may have changed rows|does not have the extension|distributed. is off" | sort -u; }
for change in "DELETE FROM even WHERE id > 100" "COPY even (id, x, y) FROM PROGRAM 'seq -f %.0f,1,2 20001 20100' DELIMITER ','"; do
    sql=(-c "BEGIN" -c "$change" -c "SELECT (kmeans_fit('even', '{x,y}', 2)).n = count(x) FROM even" -c "SELECT scan FROM kmeans_last_run()" -c "ROLLBACK")
    is "$(query "${sql[@]}" | paste -sd ' ') $(notice "${sql[@]}")" "t executor may have changed rows" "changes of the same transaction count: ${change%% *}"
done

# Queries that Citus sends to its servers.
pushed() { # NAME QUERY TEXT: each task has that
    query -c "EXPLAIN (COSTS OFF, VERBOSE) $2" | sed -n '/-> *Task/,$p' | grep -qE "$3"
    result $? "$1"
}
pushed 'kmeans() by the distribution column' "SELECT part, kmeans(ARRAY[x,y], 2) FROM \"of Citus\".\"some rows\" GROUP BY part" 'kmeans\(ARRAY'
is "$(query -c "SELECT part, kmeans(ARRAY[x,y], 2) FROM \"of Citus\".\"some rows\" GROUP BY part ORDER BY part")" "$(query -c "SELECT part, kmeans(ARRAY[x,y], 2) FROM one GROUP BY part ORDER BY part")" 'and is the same'
pushed 'kmeans_step()' "SELECT kmeans_step(ARRAY[x,y], '{{0,0},{1,1}}'::float8[]) FROM even" 'kmeans_step'
pushed 'pca()' "SELECT pca(ARRAY[x,y]) FROM even" 'pca\('
pushed 'the UPDATE of labels' "UPDATE even SET label = kmeans_predict('$(query -c "SELECT kmeans_fit('one', '{x,y}', 2)")'::kmeans_model, ARRAY[x,y])" 'kmeans_predict|Update on'

# Other users.
query -c "CREATE ROLE citus_guest LOGIN" -c "GRANT SELECT ON even TO citus_guest" >/dev/null
guest() { query -c "SET ROLE citus_guest" -c "SELECT to_jsonb(kmeans_fit('even', '{x,y,z}', 20)) - 'origin'" -c "RESET ROLE" -c "SELECT scan FROM kmeans_last_run()" 2>&1; }
is "$(guest)" "$(query -c "SELECT to_jsonb(kmeans_fit('one', '{x,y,z}', 20)) - 'origin'")"$'\nnodes' 'a user who may read the table'
hba=$nodes_folder/data2/pg_hba.conf
sed -i '1i local all citus_guest scram-sha-256' "$hba"
query -c "ALTER ROLE citus_guest PASSWORD 'of a guest'"
on_node 2 -c "SELECT pg_reload_conf()" >/dev/null
grep -q 'server ".*/socket2:5432": .*no password supplied' <<<"$(guest)"
result $? 'a worker asks for a password'
query -c "INSERT INTO pg_dist_authinfo VALUES (0, 'citus_guest', 'password=wrong'), ((SELECT nodeid FROM pg_dist_node WHERE groupid = 2), 'citus_guest', \$\$password='of a guest'\$\$)"
is "$(guest | tail -n 1)" nodes 'pg_dist_authinfo has it'
query -c "DELETE FROM pg_dist_authinfo" -c "REVOKE SELECT ON even FROM citus_guest"
sed -i 1d "$hba"
on_node 2 -c "SELECT pg_reload_conf()" >/dev/null
grep -q 'permission denied' <<<"$(guest)"
result $? 'a user who may not read the table'

is "$(notice -c "SET pg_kmeans.distributed = off" -c "SELECT kmeans_fit('even', '{x,y}', 2)")" 'distributed" is off' 'the setting that leaves all to Citus'
on_node 3 -c "SET citus.enable_ddl_propagation = off" -c "DROP EXTENSION pg_kmeans"
is "$(notice -c "SELECT kmeans_fit('even', '{x,y}', 2)")" 'does not have the extension' 'a server without the extension'
same 'then this server reads all rows' "'{x,y,z}', 20" even executor
on_node 3 -c "SET citus.enable_ddl_propagation = off" -c "CREATE EXTENSION pg_kmeans"

# Servers that die or hang: the error names them, in time.
fails() { # NAME COMMAND: what is done to a fit at work
    local session out=$nodes_folder/out
    query -c "SET pg_kmeans.node_timeout = '3s'" -c "SELECT kmeans_fit('even', '{x,y,z}', 300, options => kmeans_options(init => 'random', tol => 0, max_iter => 1000000, n_init => 1000000))" >"$out" 2>&1 &
    session=$!
    await 1 query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE phase = 'iterating'"
    $2
    wait $session
    grep -q "ERROR: *server \"$nodes_folder/socket2:5432\": " "$out"
    result $? "$1: $(head -n 1 "$out")"
}
hang() { local pids; pids=$(pgrep -P "${node_pid[2]}"; echo "${node_pid[2]}"); kill -STOP $pids; wait $session; kill -CONT $pids; }
fails 'a worker dies' 'kill_node 2'
start_node 2
fails 'a worker hangs' hang
for node in 0 1 2 3; do nothing_left $node "nothing is left on server $node"; done
same 'all is well after that' "'{x,y,z}', 20" even
echo "1..$number"

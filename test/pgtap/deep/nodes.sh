#!/bin/bash
# A fit over rows of several servers has the bits of one server that holds them all: partitions of postgres_fdw beside
# local ones, unequal parts, an empty one, NULLs and weights.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"

begin_with_nodes 3

query <<'SQL'
CREATE TABLE nodes_all AS
SELECT i AS id, CASE WHEN i % 97 > 0 THEN sin(i)::real END AS x, cos(i * 7)::real AS y, exp(sin(i * 3))::real AS z,
       ARRAY[sin(i), sin(i) + cos(i * 5) / 2, i % 3] AS f, CASE WHEN i % 11 > 0 THEN exp(3 * sin(i * 5)) END AS w
FROM generate_series(1, 12000) AS i;
UPDATE nodes_all SET (x, y, z) = (NULL, NULL, NULL), f = NULL WHERE x IS NULL;
CREATE TABLE nodes_rows (LIKE nodes_all) PARTITION BY RANGE (id);
CREATE TABLE nodes_here PARTITION OF nodes_rows FOR VALUES FROM (0) TO (2000);
SQL
# part NUMBER FROM TO: rows of that range lie on that node, under other names.
part() {
    query -c "COPY (SELECT id, x, y, z, f, w FROM nodes_all WHERE id >= $2 AND id < $3) TO STDOUT" |
        on_node "$1" -c "CREATE TABLE part_$2 (id integer, x real, \"Y\" real, z real, f double precision[], w double precision)" \
            -c "COPY part_$2 FROM STDIN"
    query -c "CREATE FOREIGN TABLE nodes_$2 PARTITION OF nodes_rows FOR VALUES FROM ($2) TO ($3) SERVER node$1 OPTIONS (schema_name 'public', table_name 'part_$2')" \
        -c "ALTER FOREIGN TABLE nodes_$2 ALTER COLUMN y OPTIONS (ADD column_name 'Y')"
}
for node in 1 2 3; do join_node $node; done
query -c "INSERT INTO nodes_rows SELECT * FROM nodes_all WHERE id < 2000"
part 1 2000 2100
part 2 2100 9000
part 1 9000 11000
part 2 11000 12500
part 3 12500 20000

# same NAME ARGUMENTS: kmeans_fit over all servers, and over one, with the way the rows went.
same() {
    local one all way
    one=$(query -c "SELECT to_jsonb(kmeans_fit('nodes_all', $2)) - 'origin'")
    all=$(query -c "SET client_min_messages = warning" -c "SELECT to_jsonb(kmeans_fit('nodes_rows', $2)) - 'origin'" -c "SELECT scan, backend FROM kmeans_last_run()")
    way=${all##*$'\n'}
    [ -n "$one" ] && [ "${all%$'\n'*}" = "$one" ] && [ "$way" = "nodes|nodes" ]
    result $? "$1"
    [ "$way" = "nodes|nodes" ] || echo "# way: $way"
}
same 'k-means++' "'{x,y,z}', 20"
same 'k-means||' "'{x,y,z}', 50, options => kmeans_options(init => 'k-means||')"
same 'random rows' "'{x,y,z}', 30, options => kmeans_options(init => 'random', seed => 7, n_init => 3)"
same 'weights' "'{x,y,z}', 20, weight => 'w'"
same 'an array column' "'{f}', 20"
same 'an array column and weights, k-means||' "'{f}', 25, weight => 'w', options => kmeans_options(init => 'k-means||')"
same 'standardized rows' "'{f}', 9, options => kmeans_options(standardize => true)"
same 'directions' "'{x,y,z}', 9, options => kmeans_options(metric => 'cosine', standardize => true)"
same 'given centroids that leave clusters empty' "'{x,y}', 4, options => kmeans_options(init_centroids => '{{0,0},{90,90},{95,95},{99,99}}', tol => 0)"
same 'one cluster' "'{x}', 1"
same 'clusters that are split and joined' "'{x,y,z}', 20, options => kmeans_options(refine => true)"

# A sweep loads once. Its indices are sums in float64, added server by server.
swept() { # NAME ARGUMENTS
    is "$(query -c "SET client_min_messages = warning" -c "CREATE TEMP TABLE swept AS SELECT * FROM kmeans_sweep('nodes_rows', $2)" -c "SELECT scan, backend FROM kmeans_last_run()" \
        -c "SELECT count(*) >= 5 AND bool_and(abs(a.bic / b.bic - 1) < 1e-12 AND b.silhouette IS NULL AND (a.k, a.inertia, a.clusters, a.n_iter, a.converged) = (b.k, b.inertia, b.clusters, b.n_iter, b.converged)
            AND (a.k = 1 AND b.davies_bouldin IS NULL OR abs(a.davies_bouldin / b.davies_bouldin - 1) + abs(a.calinski_harabasz / b.calinski_harabasz - 1)
                + abs(a.simplified_silhouette / b.simplified_silhouette - 1) < 1e-12)) FROM kmeans_sweep('nodes_all', $2) AS a FULL JOIN swept AS b USING (k)" | paste -sd ' ')" 'nodes|nodes t' "$1"
}
mixtures="'{x,y}', 1, 4, options => gmm_options(covariance_type => 'diag', max_iter => 20)"
is "$(query -c "SET client_min_messages = warning" -c "CREATE TEMP TABLE swept AS SELECT * FROM gmm_sweep('nodes_rows', $mixtures)" -c "SELECT scan, backend FROM kmeans_last_run()" \
    -c "SELECT count(*), bool_and(abs(a.bic / b.bic - 1) < 1e-10 AND a.n_iter = b.n_iter) FROM gmm_sweep('nodes_all', $mixtures) AS a JOIN swept AS b USING (k)" | paste -sd ' ')" 'nodes|nodes 4|t' 'a sweep of mixtures'
swept 'a sweep' "'{x,y,z}', 1, 6"
swept 'a sweep of weighted rows, standardized' "'{f}', 2, 7, weight => 'w', options => kmeans_options(standardize => true)"

is "$(query -c "SET client_min_messages = notice" -c "SET pg_kmeans.distributed = off" -c "SELECT (kmeans_fit('nodes_rows', '{x,y,z}', 20)).inertia = (kmeans_fit('nodes_all', '{x,y,z}', 20)).inertia" 2>"$nodes_folder/notice")" t 'rows are read by this server where distributed is off'
grep -q '^NOTICE: *rows of other servers are read by this one' "$nodes_folder/notice"
result $? 'and a NOTICE says so'
is "$(query -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3, options => kmeans_options(init => 'first')) = kmeans_fit('nodes_all', '{x,y}', 3, options => kmeans_options(init => 'first'))")" t 'the first rows are those of the order of partitions'
bounded="'{x,y}', 3, options => kmeans_options(min_size => 0.3, max_size => 7000)"
is "$(query -c "SELECT kmeans_fit('nodes_rows', $bounded) = kmeans_fit('nodes_all', $bounded)")" t 'rows are read by this server where sizes have bounds'
is "$(query -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3, options => kmeans_options(max_radius => 0.3)) = kmeans_fit('nodes_all', '{x,y}', 3, options => kmeans_options(max_radius => 0.3))")" t 'and where a radius decides how many clusters there are'
is "$(query -c "SELECT count(*) FROM (SELECT * FROM kmeans_tree('nodes_rows', '{x,y}', '{4,3}') INTERSECT SELECT * FROM kmeans_tree('nodes_all', '{x,y}', '{4,3}')) AS s")" 17 'and for a tree'
is "$(psql -XqAt -v VERBOSITY=sqlstate -c "SELECT kmeans_cluster('nodes_rows', $bounded)" 2>&1 | grep -oE '[0-9A-Z]{5}$')" 0A000 'and their labels are not written there'
is "$(query -c "SELECT kmeans_fit('nodes_12500', '{x,y}', 3) IS NULL, kmeans_fit('nodes_9000', '{x,y}', 3) = kmeans_fit('nodes_rows', '{x,y}', 3)")" "t|f" 'a foreign table alone; one without rows has no model'

# Rows that stay loaded on their servers, for one fit after the other.
is "$(query -c "SET client_min_messages = warning" -c "SELECT kmeans_load('nodes_rows', '{x,y,z}')" -c "SELECT n, d FROM kmeans_loaded()" \
    -c "SELECT kmeans_fit('nodes_rows', '{x,y,z}', 20, options => kmeans_options(standardize => true, metric => 'cosine'), memory => 'loaded') = kmeans_fit('nodes_all', '{x,y,z}', 20, options => kmeans_options(standardize => true, metric => 'cosine'))" \
    -c "SELECT kmeans_fit('nodes_rows', '{x,y,z}', 30, options => kmeans_options(init => 'k-means||'), memory => 'loaded') = kmeans_fit('nodes_all', '{x,y,z}', 30, options => kmeans_options(init => 'k-means||'))" \
    -c "SELECT (pca_fit('nodes_rows', '{x,y,z}', memory => 'loaded')).n, (gmm_fit('nodes_rows', '{x,y,z}', 2, memory => 'loaded')).n, (SELECT count(*) FROM kmeans_sweep('nodes_rows', '{x,y,z}', 2, 4, memory => 'loaded'))" \
    -c "SELECT kmeans_fit('nodes_rows', '{x,y,z}', 2, memory => 'loaded') IS NULL" -c "SELECT scan, backend FROM kmeans_last_run()" -c "SELECT kmeans_unload()" | paste -sd ' ')" \
    "$(query -c "SELECT count(x) FROM nodes_all" | sed 's/.*/& &|3 t t &|&|3 f loaded|nodes 1/')" 'rows stay loaded'
loaded_state() { psql -XqAt -v VERBOSITY=sqlstate -c "SELECT kmeans_load('nodes_rows', '{x,y}') > 0" "$@" 2>&1 | grep -oE '[0-9A-Z]{5}$|^[tf]$' | paste -sd ' '; }
again=(-c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3, memory => 'loaded') IS NULL")
is "$(loaded_state -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3, options => kmeans_options(init => 'first'), memory => 'loaded')" "${again[@]}" -c "SELECT count(*) FROM kmeans_labels('nodes_rows', '{x,y}', 3, memory => 'loaded')" "${again[@]}")" 't 0A000 f 42809 f' 'but neither first rows nor labels are here'
is "$(loaded_state -c "SET statement_timeout = '2s'" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 300, options => kmeans_options(init => 'random', tol => 0, n_init => 1000000), memory => 'loaded')" -c "RESET statement_timeout" "${again[@]}" -c "SELECT kmeans_load('nodes_rows', '{x,y}') > 0" "${again[@]}")" 't 57014 55000 t f' 'after a cancel they have to be loaded again'

near nodes_all nodes_rows 'PCA' pca_fit "'{x,z}'"
near nodes_all nodes_rows 'PCA of standardized rows' pca_fit "'{f}', options => pca_options(n_components => 2, standardize => true)"
for type in full tied diag spherical; do
    near nodes_all nodes_rows "a mixture, $type" gmm_fit "'{x,y,z}', 4, options => gmm_options(covariance_type => '$type', max_iter => 20)"
done
near nodes_all nodes_rows 'PCA of weighted rows' pca_fit "'{x,z}', weight => 'w'"
near nodes_all nodes_rows 'a mixture of weighted, standardized rows' gmm_fit "'{x,y,z}', 4, options => gmm_options(covariance_type => 'tied', max_iter => 20, standardize => true), weight => 'w'"
near nodes_all nodes_rows 'a mixture from given parameters' gmm_fit "'{x,y}', 2, options => gmm_options(covariance_type => 'diag', max_iter => 5, weights_init => '{0.5,0.5}', means_init => '{{0,0},{1,1}}', precisions_init => '{{1,1},{2,2}}')"

# This server among the others: rows that it works on in a session of a connection to itself.
query -c "CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname '$PGDATABASE')" -c "CREATE USER MAPPING FOR CURRENT_USER SERVER itself" \
    -c "CREATE TABLE nodes_self (LIKE nodes_all) PARTITION BY RANGE (id)" -c "CREATE TABLE part_self AS SELECT * FROM nodes_all WHERE id >= 5000" \
    -c "CREATE TABLE nodes_self_here PARTITION OF nodes_self FOR VALUES FROM (0) TO (5000)" -c "INSERT INTO nodes_self SELECT * FROM nodes_all WHERE id < 5000" \
    -c "CREATE FOREIGN TABLE nodes_self_there PARTITION OF nodes_self FOR VALUES FROM (5000) TO (20000) SERVER itself OPTIONS (table_name 'part_self')"
for init in k-means++ 'k-means||'; do
    options="'{x,y,z}', 20, weight => 'w', options => kmeans_options(init => '$init')"
    is "$(query -c "SET client_min_messages = warning" -c "CREATE TEMP TABLE own AS SELECT kmeans_fit('nodes_self', $options) AS m" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT m = kmeans_fit('nodes_all', $options) FROM own" | paste -sd ' ')" 'nodes t' "a server that is its own member, $init"
done

# Labels: each server updates its own rows, in the caller's transaction.
query -c "ALTER TABLE nodes_rows ADD COLUMN cluster_id integer"
for node in 1 2 3; do on_node $node -c "SELECT format('ALTER TABLE %s ADD COLUMN cluster_id integer;', oid::regclass) FROM pg_class WHERE relname LIKE 'part_%' AND relkind = 'r'" | on_node $node; done
labels() { # NAME ARGUMENTS: the labels of nodes_rows that differ from those of nodes_all, and how the rows were read
    is "$(query -c "SELECT kmeans_centroids(kmeans_cluster('nodes_all', $2))" | md5sum | cut -d' ' -f1) $(query -c "SELECT kmeans_centroids(kmeans_cluster('nodes_rows', $2, label_column => 'cluster_id', overwrite => true))" | md5sum | cut -d' ' -f1) $(query -c "SELECT count(*) FILTER (WHERE a.cluster_id IS DISTINCT FROM b.cluster_id), count(b.cluster_id) > 5000 FROM nodes_all a FULL JOIN nodes_rows b USING (id)")" \
        "$(query -c "SELECT kmeans_centroids(kmeans_cluster('nodes_all', $2))" | md5sum | cut -d' ' -f1 | sed 's/.*/& &/') 0|t" "$1"
}
labels 'labels over all servers' "'{x,y,z}', 20"
labels 'labels of weighted rows' "'{f}', 12, weight => 'w'"
query -c "ALTER SERVER node2 OPTIONS (ADD extensions 'pg_kmeans')"
labels 'labels where the UPDATE is sent whole' "'{x,y,z}', 7, options => kmeans_options(metric => 'cosine', standardize => true)"
query -c "SELECT 'EXPLAIN (COSTS OFF, VERBOSE) UPDATE nodes_2100 SET cluster_id = kmeans_predict(' || quote_literal(kmeans_fit('nodes_rows', '{x,y}', 2)) || '::kmeans_model, ARRAY[x::real, y::real])'" | query | grep -q 'Foreign Update on public.nodes_2100'
result $? 'which postgres_fdw does where it knows the extension'
before=$(on_node 2 -c "SELECT md5(string_agg(cluster_id::text, ',' ORDER BY id)) FROM part_2100")
query -c "BEGIN" -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('nodes_rows', '{x,y}', 3, label_column => 'cluster_id', overwrite => true))" -c "ROLLBACK" >/dev/null
is "$(on_node 2 -c "SELECT md5(string_agg(cluster_id::text, ',' ORDER BY id)) FROM part_2100")" "$before" 'a rollback takes the labels back over there'
is "$(psql -XqAt -v VERBOSITY=sqlstate -c "SELECT kmeans_cluster('nodes_rows', '{x,y}', 3, label_column => 'other')" 2>&1 | grep -oE '[0-9A-Z]{5}$')" 0A000 'a column that is missing has to be added there first'
for call in "kmeans_fit('nodes_rows', '{x,y}', 3" "kmeans_cluster('nodes_rows', '{x,y}', 3, label_column => 'cluster_id', overwrite => true"; do
    is "$(psql -XqAt -c "SELECT $call, memory => 'stream')" 2>&1 | grep -o 'has rows on other servers, which cannot be streamed')" 'has rows on other servers, which cannot be streamed' "${call%%(*}: rows of other servers are not streamed"
done
is "$(psql -XqAt -v VERBOSITY=sqlstate -c "SELECT kmeans_cluster('nodes_rows', '{x,y}', 3)" 2>&1 | grep -oE '[0-9A-Z]{5}$')" 42701 'a column that may hold something else is not overwritten'

# What this transaction has changed over there is seen.
is "$(query -c "BEGIN" -c "DELETE FROM nodes_rows WHERE id >= 2100" -c "SELECT (kmeans_fit('nodes_rows', '{x,y}', 3)).n" -c "ROLLBACK" 2>/dev/null)" "$(query -c "SELECT count(*) FROM nodes_all WHERE id < 2100 AND x IS NOT NULL")" 'changes of the same transaction count'
is "$(query -c "CREATE TABLE nodes_model AS SELECT kmeans_fit('nodes_rows', '{x,y}', 3) AS m" -c "SELECT scan FROM kmeans_last_run()")" nodes 'CREATE TABLE AS has the rows worked on over there'

# Errors.
state() { psql -XqAt -v VERBOSITY=sqlstate "$@" 2>&1 | grep -oE '[0-9A-Z]{5}$'; }
query -c "INSERT INTO nodes_rows VALUES (15000, 'Infinity', 0, 0)"
said=$(psql -XqAt -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3)" 2>&1)
grep -q '^ERROR: *server "node3": ' <<<"$said"
result $? "an error in the rows of a server names it: $(head -n 1 <<<"$said")"
query -c "DELETE FROM nodes_rows WHERE id = 15000"
query -c "CREATE ROLE nodes_guest" -c "GRANT SELECT ON nodes_rows TO nodes_guest" -c "GRANT USAGE ON FOREIGN SERVER node1, node2, node3 TO nodes_guest"
is "$(state -c "SET ROLE nodes_guest" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3)")" 42704 'a user mapping is needed'
query -c "CREATE USER MAPPING FOR nodes_guest SERVER node1 OPTIONS (user 'postgres')" \
    -c "CREATE USER MAPPING FOR nodes_guest SERVER node2 OPTIONS (user 'postgres')" -c "CREATE USER MAPPING FOR nodes_guest SERVER node3 OPTIONS (user 'postgres')"
is "$(state -c "SET ROLE nodes_guest" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3)")" 2F003 'a user who is no superuser needs a password there'
for node in 1 2 3; do query -c "ALTER USER MAPPING FOR nodes_guest SERVER node$node OPTIONS (ADD password 'secret')"; done
is "$(state -c "SET ROLE nodes_guest" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3)")" 2F003 'and one that the server asks for'
for node in 1 2 3; do query -c "ALTER USER MAPPING FOR nodes_guest SERVER node$node OPTIONS (ADD password_required 'false')"; done
is "$(query -c "SET ROLE nodes_guest" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3) IS NOT NULL" -c "RESET ROLE" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" 't nodes' 'unless a superuser has waived it'
query -c "REVOKE SELECT ON nodes_rows FROM nodes_guest"
is "$(state -c "SET ROLE nodes_guest" -c "SELECT kmeans_fit('nodes_rows', '{x,y}', 3)")" 42501 'privileges of the relation hold'

# Messages of k x d^2 count against the limit of each server. Where there is less than one at once they go in parts.
query -c "CREATE TABLE nodes_wide_all AS SELECT i AS id, (SELECT array_agg(sin(i * f * f + f)) FROM generate_series(1, 80) AS f) AS f FROM generate_series(1, 600) AS i" \
    -c "CREATE TABLE nodes_wide (LIKE nodes_wide_all) PARTITION BY RANGE (id)"
for node in 1 2 3; do
    first=$(((node - 1) * 200 + 1))
    query -c "COPY (SELECT * FROM nodes_wide_all WHERE id >= $first AND id < $first + 200) TO STDOUT" |
        on_node $node -c "CREATE TABLE wide (id integer, f double precision[])" -c "COPY wide FROM STDIN"
    query -c "CREATE FOREIGN TABLE nodes_wide_$node PARTITION OF nodes_wide FOR VALUES FROM ($first) TO ($((first + 200))) SERVER node$node OPTIONS (table_name 'wide')"
done
on_node 2 -c "ALTER ROLE postgres SET log_statement = 'all'" -c "ALTER ROLE postgres SET log_parameter_max_length = 32"
PGOPTIONS='-c pg_kmeans.memory_limit=10MB' near nodes_wide_all nodes_wide 'a mixture whose messages go in parts' gmm_fit "'{f}', 12, options => gmm_options(max_iter => 3, reg_covar => 0.01)"
on_node 2 -c "ALTER ROLE postgres RESET log_statement" -c "ALTER ROLE postgres RESET log_parameter_max_length"
for operation in 14 15; do # a part of an answer, of a request (message.hpp)
    is "$(grep -oE "'[\\]x[0-9a-f]{8}$(printf '%02x' $operation)000000" "$nodes_folder/log2" | wc -l | sed 's/^[1-9].*/some/')" some "which node 2 was asked for, operation $operation"
done
on_node 3 -c "ALTER ROLE postgres SET pg_kmeans.memory_limit = '2MB'"
is "$(query -c "SELECT kmeans_fit('nodes_wide', '{f}', 12) IS NOT NULL" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" 't nodes' 'the limit of a server has room for messages of k-means'
is "$(psql -XqAt -v VERBOSITY=verbose -c "SELECT gmm_fit('nodes_wide', '{f}', 12)" 2>&1 | grep -o '^ERROR: *54000: server "node3": ')" 'ERROR:  54000: server "node3": ' 'and none for those of a mixture'
on_node 3 -c "ALTER ROLE postgres RESET pg_kmeans.memory_limit"
is "$(state -c "SET pg_kmeans.memory_limit = '5MB'" -c "SELECT gmm_fit('nodes_wide', '{f}', 12)")" 54000 'nor has that where you call'
query -c "DROP TABLE nodes_wide, nodes_wide_all"

# A server without the extension.
on_node 2 -c "DROP EXTENSION pg_kmeans"
said=$(query -c "SET client_min_messages = notice" -c "SELECT (kmeans_fit('nodes_rows', '{x,y,z}', 20)).inertia = (kmeans_fit('nodes_all', '{x,y,z}', 20)).inertia" 2>&1)
grep -q 'server "node2" does not have the extension' <<<"$said" && grep -qx t <<<"$said"
result $? 'where a server lacks the extension, this one reads the rows'
on_node 2 -c "CREATE EXTENSION pg_kmeans"

# Nothing stays behind.
for node in 1 2 3; do nothing_left $node "no session of ours is left on node $node"; done
query -c "DROP TABLE nodes_rows, nodes_all, nodes_model, nodes_self, part_self" -c "DROP SERVER itself, node1, node2, node3 CASCADE" -c "DROP ROLE nodes_guest"
echo "1..$number"

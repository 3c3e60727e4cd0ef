#!/bin/bash
# Beside Citus's hook, tables that are not Citus's are read directly; those of pg_dist_partition are not. The library here
# has Citus's name and its hook. Another library's hook is an objection for all tables.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"

folder=$(mktemp -d /tmp/pgkm_citus.XXXXXX)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
build() { gcc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" "$here/test/support/citus.c" "$@" || exit 1; }
build -o "$folder/citus.so" -DSETTING
build -o "$folder/citus_columnar.so"
cp "$folder/citus_columnar.so" "$folder/other.so"

query <<'SQL'
CREATE TABLE beside AS SELECT i::real AS x FROM generate_series(1, 100) AS i;
CREATE TABLE sharded AS SELECT i::real AS x FROM generate_series(1, 100) AS i;
CREATE TABLE parted (x real) PARTITION BY RANGE (x);
ALTER TABLE parted ATTACH PARTITION sharded FOR VALUES FROM (0) TO (1000);
SQL
# ways LIBRARY...: how the tables are read in a session with these libraries.
ways() {
    local table library load=()
    for library in "$@"; do load+=(-c "LOAD '$folder/$library.so'"); done
    for table in beside sharded parted; do
        query "${load[@]}" -c "LOAD 'pg_kmeans'" -c "SELECT kmeans_fit('$table', '{x}', 2) IS NULL" -c "SELECT scan FROM kmeans_last_run()" | tail -n 1
    done | paste -sd ' '
}
is "$(ways citus)" 'direct direct direct' "Citus's hook in a database without Citus"
# Catalogues that know no shards.
query <<'SQL'
SET allow_system_table_mods = on;
SET search_path = pg_catalog;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char");
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint);
CREATE TABLE pg_catalog.pg_dist_placement (placementid bigint, shardid bigint, shardstate integer, groupid integer);
CREATE TABLE pg_catalog.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer, noderole text, isactive boolean);
CREATE FUNCTION pg_catalog.shard_name(regclass, bigint) RETURNS text LANGUAGE sql RETURN $1 || '_' || $2;
INSERT INTO pg_dist_partition VALUES ('public.sharded', 'h');
SQL
is "$(ways citus)" 'direct executor executor' "Citus's tables, and what has them as partitions, are read by the executor"
is "$(ways citus citus_columnar)" 'direct executor executor' 'likewise where Citus has loaded citus_columnar'
is "$(ways citus_columnar)" 'executor executor executor' 'which has another hook below itself elsewhere'
is "$(ways other)" 'executor executor executor' 'beside the hook of another library all are'
echo "1..$number"

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
gcc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" -o "$folder/citus.so" "$here/test/support/citus.c" || exit 1
cp "$folder/citus.so" "$folder/other.so"

query <<'SQL'
CREATE TABLE beside AS SELECT i::real AS x FROM generate_series(1, 100) AS i;
CREATE TABLE sharded AS SELECT i::real AS x FROM generate_series(1, 100) AS i;
CREATE TABLE parted (x real) PARTITION BY RANGE (x);
ALTER TABLE parted ATTACH PARTITION sharded FOR VALUES FROM (0) TO (1000);
SQL
# ways LIBRARY: how the tables are read in a session with that library.
ways() {
    local table
    for table in beside sharded parted; do
        query -c "LOAD '$folder/$1.so'" -c "LOAD 'pg_kmeans'" -c "SELECT kmeans_fit('$table', '{x}', 2) IS NULL" -c "SELECT scan FROM kmeans_last_run()" | tail -n 1
    done | paste -sd ' '
}
is "$(ways citus)" 'direct direct direct' "Citus's hook in a database without Citus"
query -c "SET allow_system_table_mods = on" -c "CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod \"char\")"
query -c "SET allow_system_table_mods = on" -c "INSERT INTO pg_catalog.pg_dist_partition VALUES ('sharded', 'h')"
is "$(ways citus)" 'direct executor executor' "Citus's tables, and what has them as partitions, are read by the executor"
is "$(ways other)" 'executor executor executor' 'beside the hook of another library all are'
echo "1..$number"

#!/bin/bash
# A server that preloads the library: processes that have nothing to do with it make nothing of it in shared memory.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"

trap stop_nodes EXIT
start_nodes 1 "shared_preload_libraries = 'pg_kmeans'" || exit 1
if [ "$(on_node 1 -c 'SHOW server_version_num')" -ge 170000 ]; then
    echo "1..0 # SKIP the server does not list what extensions have in shared memory"
    exit
fi
slices() { on_node 1 -c "SELECT count(*) FROM pg_shmem_allocations WHERE name ~ 'pg_kmeans pinned'"; }

on_node 1 -c "CREATE TABLE preloaded AS SELECT sin(i)::real AS x, cos(i)::real AS y FROM generate_series(1, 200000) AS i" -c "VACUUM ANALYZE preloaded" \
    -c "SELECT count(*) FROM preloaded" -c "SELECT (kmeans_fit('preloaded', '{x,y}', 3)).k" >/dev/null
is "$(slices)" 0 'no process has looked for slices of parallel aggregates'
parallel=(-c "SET parallel_setup_cost = 0" -c "SET parallel_tuple_cost = 0" -c "SET min_parallel_table_scan_size = 0")
is "$(on_node 1 "${parallel[@]}" -c "SELECT (kmeans(ARRAY[x, y], 3)).n FROM preloaded")" 200000 'such an aggregate'
is "$(slices)" 1 'has made the list'
echo "1..$number"

#!/bin/bash
# The GPU service on a hot standby: started there on demand, apart from the primary's; a conflict
# with recovery ends a job of it, and a promotion nothing at all.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
source "$here/scripts/lib/copy.sh"
trap 'fault; remove_copy' EXIT

query <<'SQL'
CREATE TABLE replica_rows AS SELECT i % 4 AS g, sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 100000) AS i;
ALTER TABLE replica_rows SET (parallel_workers = 2);
ANALYZE replica_rows;
SQL
fit="SELECT md5((to_jsonb(kmeans_fit('replica_rows', '{x,y}', 60, options => kmeans_options(max_iter => 20))) - 'origin')::text)"
groups="SELECT md5(string_agg(m::text, ',' ORDER BY g)) FROM (SELECT g, kmeans(ARRAY[x, y], 5) AS m FROM replica_rows GROUP BY g) AS t"
mixture="SELECT md5((to_jsonb(gmm_fit('replica_rows', '{x,y}', 3, options => gmm_options(max_iter => 3))) - 'origin')::text)"
stop_service
make_copy -R && start_copy max_standby_streaming_delay=100ms
await_replay

# on_standby BACKEND STATEMENT: as say().
on_standby() { PGPORT=$port say "$@"; }
standby_service() { there -c "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_kmeans GPU service'"; }
alone() { query -c "SET pg_kmeans.backend = cpu" -c "SET max_parallel_workers_per_gather = 0" -c "$1"; }

is "$(on_standby cuda "$fit")" "$(alone "$fit")" 'kmeans_fit'
pid=$(standby_service)
[ -n "$pid" ]
result $? 'by a service of its own'
is "$(service_pid)" '' 'the primary has none'
is "$(on_standby cuda "$groups" "SET max_parallel_workers_per_gather = 0")" "$(alone "$groups")" 'the aggregate'
is "$(on_standby cuda "$mixture")" "$(alone "$mixture")" 'a mixture'
is "$(on_standby cuda "SELECT kmeans_load('replica_rows', '{x,y}') = 0; SELECT md5((to_jsonb(kmeans_fit('replica_rows', '{x,y}', 60, options => kmeans_options(max_iter => 20), memory => 'loaded')) - 'origin')::text)")" \
    "f $(alone "$fit")" 'loaded rows'
is "$(there -c "SELECT service_pid FROM kmeans_status() WHERE backend = 'cuda'")" "$pid" 'one service for all of it'
is "$(say cuda "$fit")" "$(alone "$fit")" "the primary's sessions have theirs"
primary=$(service_pid)
[ -n "$primary" ] && [ "$primary" != "$pid" ]
result $? 'which is another'

fault "fit device_error once"
is "$(on_standby auto "$fit")" "WARNING $(alone "$fit")" 'a device error there: the CPU finishes the job'
is "$(on_standby cuda "$fit")" "$(alone "$fit")" 'the next job starts another service'
is "$(service_pid)" "$primary" "the primary's is not touched"

# The primary drops a table that a job on the standby holds a lock on. Before version 16 a server that
# repeats the conflict while the statement's locks go ends the session as well, whatever the statement
# was: the best of three attempts counts.
conflict() { # FAULT [SETTING]: what was said
    local i
    for i in 1 2 3; do
        query -c 'CREATE TABLE replica_doomed AS SELECT x, y FROM replica_rows'
        await_replay
        fault "$1"
        PGPORT=$port say cuda "SELECT kmeans_fit('replica_doomed', '{x,y}', 5)" "${@:2}" >"$folder/doomed" &
        victim=$!
        await_pause
        query -c 'DROP TABLE replica_doomed'
        wait $victim
        [ "$(cat "$folder/doomed")" != 40001 ] || break
    done
    fault
    cat "$folder/doomed"
}
is "$(conflict "fit hang")" 40001 'a conflict with recovery ends the job, and not the session'
is "$(conflict "fit deaf 700 once" "SET pg_kmeans.service = off")" 40001 'also where the job takes long to end'
is "$(PGPORT=$port at_rest)" '0|0|0' 'nothing is held'
is "$(on_standby cuda "$fit")" "$(alone "$fit")" 'the next job is right'

# While a job is at work the standby becomes a primary.
pid=$(standby_service)
right=$(alone "$fit")
fault "fit slow 1000 once"
on_standby cuda "$fit" >"$folder/promoted" &
job=$!
await_pause
is "$(there -c 'SELECT pg_promote()')" t 'a promotion'
wait $job
is "$(cat "$folder/promoted")" "$right" 'does not disturb a job'
is "$(standby_service)" "$pid" 'nor the service'
is "$(there -c "SELECT count(*) FROM kmeans_centroids(kmeans_cluster('replica_rows', '{x,y}', 3))")" 3 'labels can be written now'
echo "1..$number"

#!/bin/bash
# kmeans_status() looks and starts nothing, whoever calls it, and waits for the service no longer than a second.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
trap fault EXIT

query -c "CREATE TABLE status_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 500) AS i" -c "CREATE ROLE status_looker"
look() { query "$@" -c "SELECT available, service_pid, jobs, reason FROM kmeans_status() WHERE backend = 'cuda'"; }
job() { say cuda "SELECT (kmeans_fit('status_rows', '{x,y}', 3)).n"; }

stop_service
fault "probe hang"
not_started='|||the GPU service is not started: the first job for a GPU starts it'
is "$(look)" "$not_started" 'a service that does not run'
is "$(look -c "SET ROLE status_looker")" "$not_started" 'seen by anybody'
is "$(query -c "SELECT available FROM kmeans_status() WHERE backend = 'cpu'")" t 'the CPU is there'
is "$(service_pid)" '' 'and no service has started'
fault
is "$(job)" 500 'a job starts it'
is "$(look)" "t|$(service_pid)|0|" 'the service and its device'

fault "probe slow 8000 once"
began=$(date +%s%N)
is "$(look | cut -d'|' -f1,4)" 'f|the GPU service does not answer' 'a device that does not answer'
took=$((($(date +%s%N) - began) / 1000000))
[ $took -lt 6000 ]
result $? "is waited for no longer ($took ms)"
fault
is "$(look | cut -d'|' -f1)" t 'the next look finds it'
is "$(job)" 500 'and so does a job'

is "$(look -c "SET pg_kmeans.service = off" | cut -d'|' -f1,2)" 't|' 'without the service the session asks the driver itself'
query -c "DROP TABLE status_rows" -c "DROP ROLE status_looker"
echo "1..$number"

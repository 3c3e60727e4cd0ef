#!/bin/bash
# The GPU service in every kind of trouble. Each time: the right answer or the right error, in
# time; the session goes on; the service holds nothing; the next query is right.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
source "$here/scripts/lib/segments.sh"
folder=$(mktemp -d)
trap 'fault; rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE service_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 100000) AS i;
CREATE TABLE service_few AS SELECT x, y FROM service_rows LIMIT 500;
ALTER TABLE service_rows SET (parallel_workers = 2);
ANALYZE service_rows, service_few;
SQL
fit="SELECT md5((to_jsonb(kmeans_fit('service_rows', '{x,y}', 60, options => kmeans_options(max_iter => 20))) - 'origin')::text)"
small="SELECT md5((to_jsonb(kmeans_fit('service_few', '{x,y}', 3)) - 'origin')::text)"
right=$(query -c "SET pg_kmeans.backend = cpu" -c "$fit")
right_small=$(query -c "SET pg_kmeans.backend = cpu" -c "$small")

is "$(say cuda "$fit")" "$right" "rows handed over where the scan has put them"
is "$(say cuda "$fit" "SET pg_kmeans.scan = executor")" "$right" "rows copied"
is "$(query -c "SET pg_kmeans.backend = cuda" -c "$fit" -c "SELECT service_pid FROM kmeans_status() WHERE backend = 'cuda'")" \
    "$right"$'\n'"$(service_pid)" "by the service"
is "$(say auto "$fit")" "$right" "auto uses it where the work pays"
is "$(say cuda "$fit" "SET pg_kmeans.service = off")" "$right" "and without the service, from the session"

for phase in open load summarise seed fit assign; do
    fault "$phase device_error once"
    pid=$(service_pid)
    is "$(say cuda "$fit")" "58000" "device error in $phase, cuda: an error"
    is "$(say cuda "$fit")" "$right" "the next job is right"
    fresh=$(service_pid)
    [ -n "$fresh" ] && [ "$fresh" != "$pid" ]
    result $? "in a fresh service"
    fault "$phase device_error once"
    is "$(say auto "$fit")" "WARNING $right" "device error in $phase, auto: a warning and the result"
    say cuda "$small" >/dev/null
    fault "$phase out_of_memory once"
    is "$(say cuda "$fit")" "53200" "no memory in $phase, cuda: an error"
    fault "$phase out_of_memory once"
    is "$(say auto "$fit")" "$right" "no memory in $phase, auto: the result"
    is "$(at_rest)" "0|0|0" "nothing is held"
done
fault "fit limit"
is "$(say cuda "$fit")" "54000" "the limit of device memory, whatever is tried"
fault "fit limit once"
is "$(say cuda "$fit")" "$right" "the limit of device memory, until there is more"
fault

for phase in open load summarise seed fit assign; do
    is "$(hang $phase timeout)" 57014 "timeout in $phase"
    is "$(hang $phase cancel)" 57014 "cancel in $phase"
    is "$(hang $phase terminate)" 57P01 "session terminated in $phase"
    is "$(hang $phase service)" 58000 "service ended in $phase, cuda"
    is "$(say cuda "$fit")" "$right" "the next job is right"
    is "$(hang $phase service auto)" "WARNING"$'\n'"$right" "service ended in $phase, auto"
    is "$(say cuda "$small")" "$right_small" "the next job is right"
    is "$(at_rest)" "0|0|0" "nothing is held"
done

# A device that does not heed a cancel: the session does.
fault "fit deaf 1500 once"
began=$(date +%s%N)
is "$(say cuda "$fit" "SET statement_timeout = 200")" 57014 "timeout with a deaf device"
took=$((($(date +%s%N) - began) / 1000000))
[ $took -lt 1000 ]
result $? "in time ($took ms)"
is "$(say cuda "$small")" "$right_small" "another job meanwhile"
sleep 1.5
is "$(at_rest)" "0|0|0" "nothing is held in the end"

# While all turns of large calls are taken, a small one goes on.
large="SELECT md5((to_jsonb(kmeans_fit('service_rows', '{x,y}', 300, options => kmeans_options(init => 'first', tol => 0, max_iter => 30))) - 'origin')::text)"
right_large=$(say cpu "$large")
fault "fit slow 1500"
for _ in 1 2 3 4 5; do say cuda "$large" >>"$folder/large" & done
await_pause
sleep 0.3
fault
began=$(date +%s%N)
is "$(say cuda "$small")" "$right_small" "a small job beside five large ones"
took=$((($(date +%s%N) - began) / 1000000))
[ $took -lt 400 ] && [ ! -s "$folder/large" ]
result $? "does not wait for them ($took ms)"
wait
is "$(sort "$folder/large" | uniq -c | awk '{ print $1, $2 }')" "5 $right_large" "which are right too"

# Memory for two at a time.
configure gpu_memory_limit 200MB
for i in 1 2 3 4 5 6 7 8; do say cuda "$fit" >"$folder/tight.$i" & done
wait
is "$(cat "$folder"/tight.* | sort | uniq -c | awk '{ print $1, $2 }')" "8 $right" "eight jobs in the memory of two"
is "$(at_rest)" "0|0|0" "nothing is held"
configure gpu_memory_limit 0

# Thirty sessions with a table each, which all miss the service at once.
query <<'SQL'
SELECT format('CREATE TABLE many_%s AS SELECT sin(i * %s)::real AS x, cos(i)::real AS y FROM generate_series(1, 3000) AS i', n, n)
FROM generate_series(1, 30) AS n \gexec
SQL
for i in $(seq 30); do say cpu "SELECT md5((to_jsonb(kmeans_fit('many_$i', '{x,y}', 7)) - 'origin')::text)" >>"$folder/alone"; done
stop_service
for i in $(seq 30); do say cuda "SELECT md5((to_jsonb(kmeans_fit('many_$i', '{x,y}', 7)) - 'origin')::text)" >"$folder/many.$i" & done
wait
is "$(for i in $(seq 30); do cat "$folder/many.$i"; done | md5sum)" "$(md5sum <"$folder/alone")" "thirty sessions at once"
is "$(at_rest)" "0|0|0" "nothing is held"

# Rows that stay: with a connection of their own, beside other fits, and over the service's end.
stay="SELECT md5((to_jsonb(kmeans_fit('service_rows', '{x,y}', 60, options => kmeans_options(max_iter => 20), memory => 'loaded')) - 'origin')::text)"
is "$(query -c "SET pg_kmeans.backend = cuda" -c "SELECT kmeans_load('service_rows', '{x,y}')" -c "$stay" -c "$small" -c "$stay" \
    -c "SELECT jobs FROM kmeans_status() WHERE backend = 'cuda'" -c "$fit" \
    -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_kmeans GPU service'" \
    -c "SELECT pg_sleep(0.3)" -c "$stay" -c "$small" -c "SET statement_timeout = 5000" -c "$stay" -c "SELECT kmeans_unload('service_rows')" | paste -sd ' ')" \
    "100000 $right $right_small $right 1 $right t  $right $right_small $right 1" "loaded rows"
is "$(at_rest)" "0|0|0" "nothing is held"

# What the service has mapped when all is over is what it had before.
mapped() {
    query -c "SELECT count(*) FILTER (WHERE line ~ 'memfd:pg_kmeans'), count(*) FILTER (WHERE line ~ '/dev/shm/')
        FROM regexp_split_to_table(pg_read_file('/proc/$(service_pid)/maps'), '\n') AS line"
}
pid=$(service_pid)
before=$(mapped)
for _ in 1 2 3 4 5; do say cuda "$fit" >/dev/null; done
at_rest >/dev/null
sleep 0.1
is "$(mapped)" "$before" "no segment stays mapped"
is "${before%%|*}" 0 "and no anonymous memory"

# The extension goes and comes while the service runs.
is "$(query -c "DROP EXTENSION pg_kmeans" -c "CREATE EXTENSION pg_kmeans" -c "SET pg_kmeans.backend = cuda" -c "$fit")" "$right" "DROP EXTENSION beside it"
is "$(service_pid)" "$pid" "the service stays"

# Idle, it ends; the next job starts it.
configure gpu_idle_timeout 1
for ((i = 0; i < 60; i++)); do
    [ -n "$(service_pid)" ] || break
    sleep 0.1
done
is "$(service_pid)" "" "idle, it ends"
is "$(say cuda "$fit")" "$right" "the next job starts it again"
configure gpu_idle_timeout 300

# Starting takes as long as a driver does; a session that waits can be cancelled.
stop_service
fault "probe slow 1000 once"
is "$(say cuda "$small" "SET statement_timeout = 200")" 57014 "timeout while the service starts"
is "$(say cuda "$small")" "$right_small" "it has started"

# Without a device nobody asks twice.
use_plugin none
fault "probe no_device"
is "$(say cuda "$small")" 0A000 "no device, cuda: an error"
is "$(say auto "$fit")" "$right" "no device, auto: the CPU"
is "$(query -c "SELECT available, reason FROM kmeans_status() WHERE backend = 'cuda'")" "f|injected: no device" "the reason is known"
fault
is "$(say cuda "$small")" 0A000 "and remembered: no worker is started for it"

# A device that this build has no code for.
use_plugin codeless
why="no code for compute capability 9.0 in this build"
echo "$why" >"$SERVICE_FOLDER/unusable"
for service in on off; do
    setting="SET pg_kmeans.service = $service"
    is "$(say auto "$fit" "$setting")" "$right" "no code, service $service, auto: the CPU, without a warning"
    is "$(say cuda "$small" "$setting")" 0A000 "cuda: an error"
    is "$(query -c "$setting" -c "SELECT available, reason FROM kmeans_status() WHERE backend = 'cuda'")" "f|$why" "the reason is known"
done
rm "$SERVICE_FOLDER/unusable"

use_plugin broken
echo 'no library' >"$SERVICE_FOLDER/broken.so"
for service in on off; do
    [ $service = off ] || say cuda "$small" >/dev/null # which starts it
    reason=$(query -c "SET pg_kmeans.service = $service" -c "SELECT reason FROM kmeans_status() WHERE backend = 'cuda'")
    [[ $reason == *': broken.so: '* && $reason != *"$SERVICE_FOLDER"* ]]
    result $? "a plugin that cannot be loaded, service $service: $reason"
done
use_plugin again
is "$(say cuda "$small")" "$right_small" "for another plugin it is asked again"

is "$(orphans)" "" "no segment is left"
echo 1..$number

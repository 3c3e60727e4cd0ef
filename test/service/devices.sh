#!/bin/bash
# Several devices: each has its own memory, jobs go where there is room, pg_kmeans.device picks one.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
folder=$(mktemp -d)
trap 'fault; configure gpu_memory_limit 0; rm -f "$SERVICE_FOLDER/devices"; stop_service; rm -rf "$folder"' EXIT

query -c "CREATE TABLE spread_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 20000) AS i"
fit="SELECT md5((to_jsonb(kmeans_fit('spread_rows', '{x,y}', 20, options => kmeans_options(max_iter => 5))) - 'origin')::text)"
right=$(query -c "SET pg_kmeans.backend = cpu" -c "$fit")
state() { query -c "SELECT string_agg(concat_ws(' ', device, jobs, memory_held > 0), ', ' ORDER BY device) FROM kmeans_status() WHERE backend = 'cuda'"; }
waiting() { query -c "SELECT string_agg(jobs_waiting::text, ' ' ORDER BY device) FROM kmeans_status() WHERE backend = 'cuda'"; }

echo 2 >"$SERVICE_FOLDER/devices"
stop_service
say cuda "$fit" >/dev/null
is "$(state)" "0 0 f, 1 0 f" "two devices, both idle"

# Memory for one load on each.
configure gpu_memory_limit 100MB
fault "fit slow 1500"
for i in 1 2; do say cuda "$fit" >"$folder/out.$i" & done
await_pause
await "0 1 t, 1 1 t" state
result $? "two jobs: one on each"
wait
is "$(cat "$folder"/out.*)" "$right"$'\n'"$right" "both are right"

# While one has room, nobody waits for the other.
for i in 1 2 3 4; do say cuda "$fit" >"$folder/out.$i" & done
await_pause
await "1 1" waiting
result $? "four jobs: one more waits for each"
wait
is "$(sort "$folder"/out.* | uniq -c | awk '{ print $1, $2 }')" "4 $right" "which are right"
fault
is "$(at_rest)" "0|0|0"$'\n'"0|0|0" "nothing is held"

fault "fit slow 800"
for i in 1 2; do say cuda "$fit" "SET pg_kmeans.device = 1" >"$folder/out.$i" & done
await_pause
await "0 1" waiting
result $? "a device that was asked for is waited for"
wait
fault
is "$(sort "$folder/out.1" "$folder/out.2" | uniq -c | awk '{ print $1, $2 }')" "2 $right" "with the right results"
is "$(say cuda "$fit" "SET pg_kmeans.device = 2")" 0A000 "a device that is not there"
is "$(say auto "$fit" "SET pg_kmeans.device = 2")" "$right" "which auto does without"

# Rows that stay hold the memory of their device alone.
held=$({
    echo "SET pg_kmeans.backend = cuda; SELECT kmeans_load('spread_rows', '{x,y}') = 0;"
    echo "SELECT md5((to_jsonb(kmeans_fit('spread_rows', '{x,y}', 20, options => kmeans_options(max_iter => 5), memory => 'loaded')) - 'origin')::text);"
    echo "SELECT count(*) FILTER (WHERE memory_held > 0) FROM kmeans_status() WHERE backend = 'cuda';"
    echo "$fit;"
} | query)
is "$held" "f"$'\n'"$right"$'\n'"1"$'\n'"$right" "rows that stay, and another fit beside them"
is "$(at_rest)" "0|0|0"$'\n'"0|0|0" "nothing is held in the end"

# One fit over several devices: the same one may come again.
both="SET pg_kmeans.devices = '0,1'"
fault "fit slow 1000"
say cuda "$fit" "$both" >"$folder/out.1" &
await_pause
is "$(state)" "0 1 t, 1 1 t" "one fit holds both"
wait
fault
is "$(cat "$folder/out.1")" "$right" "and is right"
for list in 1 0,0 1,0 0,1,0,1; do
    is "$(say cuda "$fit" "SET pg_kmeans.devices = '$list'")" "$right" "devices $list"
done
is "$(say cuda "$fit" "SET pg_kmeans.devices = '0,2'")" 0A000 "one of which is not there"
for i in 1 2 3 4; do say cuda "$fit" "SET pg_kmeans.devices = '$((i % 2)),$(((i + 1) % 2))'" >"$folder/out.$i" & done
wait
is "$(sort "$folder"/out.* | uniq -c | awk '{ print $1, $2 }')" "4 $right" "four fits that want both, in either order"
fault "fit device_error once"
is "$(say cuda "$fit" "$both")" 58000 "a device that fails ends the fit"
fault
is "$(say cuda "$fit" "$both")" "$right" "the next fit is right"
fault "fit hang"
is "$(say cuda "$fit" "$both" "SET statement_timeout = 300")" 57014 "a cancel reaches both"
fault

# Restarts, and each k of a sweep, are shared out.
model="to_jsonb(kmeans_fit('spread_rows', '{x,y}', 20, options => kmeans_options(max_iter => 5, n_init => 7))) - 'origin'"
restarts="SELECT md5(($model)::text)"
sweep="SELECT md5(string_agg(s::text, ' ')) FROM kmeans_sweep('spread_rows', '{x,y}', 2, 8, options => kmeans_options(max_iter => 5, n_init => 2)) AS s"
for what in "$restarts" "$sweep"; do
    alone=$(query -c "SET pg_kmeans.backend = cpu" -c "$what")
    for list in 0,1 0,0,0; do
        is "$(say cuda "$what" "SET pg_kmeans.devices = '$list'")" "$alone" "devices $list: ${what:0:40}"
    done
done
fault "fit device_error once"
is "$(say cuda "$restarts" "$both")" 58000 "a device that fails ends all restarts"
fault "fit limit once"
is "$(say cuda "$restarts" "$both")" "$(query -c "SET pg_kmeans.backend = cpu" -c "$restarts")" "what one has no memory for, both do"
fault "fit hang"
is "$(say cuda "$restarts" "$both" "SET statement_timeout = 300")" 57014 "a cancel ends all restarts"
fault
is "$(at_rest)" "0|0|0"$'\n'"0|0|0" "nothing is held"

echo "1..$number"

#!/bin/bash
# Mixtures, PCA and reductions through the GPU service: the same bits as without it, and in every kind of
# trouble the right answer or the right error, nothing held, and the next query right.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
source "$here/scripts/lib/segments.sh"
folder=$(mktemp -d)
trap 'fault; rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE mixed_rows AS SELECT i % 3 AS g, sin(i)::real AS x, cos(i * 7)::real AS y, sin(i * 0.37)::float4 AS z FROM generate_series(1, 100000) AS i;
ALTER TABLE mixed_rows SET (parallel_workers = 2);
ANALYZE mixed_rows;
SQL
row_bytes=1200000

mixture() { echo "SELECT md5((to_jsonb(gmm_fit('mixed_rows', '{x,y,z}', 5, options => gmm_options(max_iter => 6, tol => 0, covariance_type => '$1'))) - 'origin')::text)"; }
components="SELECT md5((to_jsonb(pca_fit('mixed_rows', '{x,y,z}')) - 'origin')::text)"
# The CPU's answer by itself.
alone() { query -c "SET pg_kmeans.backend = cpu" -c "$1"; }

for type in full tied diag spherical; do
    fit=$(mixture $type)
    is "$(say cuda "$fit")" "$(alone "$fit")" "a mixture, $type"
done
given="SELECT md5((to_jsonb(gmm_fit('mixed_rows', '{x,y,z}', 2, options => gmm_options(means_init => '{{0,0,0},{1,1,1}}', weights_init => '{0.4,0.6}', precisions_init => '{1,2}', covariance_type => 'spherical', max_iter => 3))) - 'origin')::text)"
is "$(say cuda "$given")" "$(alone "$given")" "a mixture that begins with what is given"
groups="SELECT md5(string_agg(m::text, ',' ORDER BY g)) FROM (SELECT g, gmm(ARRAY[x, y], 2, gmm_options(n_init => 2, max_iter => 3)) AS m FROM mixed_rows GROUP BY g) AS t"
# Rows of an aggregate come in any order from parallel workers.
is "$(say cuda "$groups" "SET max_parallel_workers_per_gather = 0")" \
    "$(query -c "SET pg_kmeans.backend = cpu" -c "SET max_parallel_workers_per_gather = 0" -c "$groups")" "the aggregate, by groups"
labels="SELECT md5(string_agg(l::text, ',')) FROM (SELECT gmm_label(ARRAY[x, y], 3) OVER (ORDER BY x, y, z ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM mixed_rows) AS t"
is "$(say cuda "$labels")" "$(alone "$labels")" "labels"
is "$(say cuda "$components")" "$(alone "$components")" "PCA"
is "$(say cuda "$components" "SET pg_kmeans.scan = executor")" "$(alone "$components")" "PCA of rows that are copied"
is "$(query -c "SET pg_kmeans.backend = cuda" -c "$components" -c "SELECT backend FROM kmeans_last_run()" -c "$(mixture diag)" -c "SELECT backend FROM kmeans_last_run()" \
    -c "SELECT service_pid FROM kmeans_status() WHERE backend = 'cuda'" | sed -n '2p;4p;5p' | paste -sd ' ')" "cuda cuda $(service_pid)" "by the service"

# mapped PATTERN: bytes that the service has mapped of files of that name.
mapped() {
    query -c "SELECT coalesce(sum(('x' || lpad(split_part(range, '-', 2), 16, '0'))::bit(64)::bigint - ('x' || lpad(split_part(range, '-', 1), 16, '0'))::bit(64)::bigint), 0)
        FROM (SELECT split_part(line, ' ', 1) AS range FROM regexp_split_to_table(pg_read_file('/proc/$(service_pid)/maps'), '\n') AS line WHERE line ~ '$1') AS m"
}
# while_paused PHASE STATEMENT SETTING COMMAND: runs the command when the service has come to that phase.
while_paused() {
    fault "$1 slow 1500"
    say cuda "$2" "$3" >"$folder/paused" &
    await_pause
    "${@:4}"
    wait
    fault
}
# Beside what it has mapped of the server's own.
both() { echo "$(($(mapped '/dev/shm/') - own_bytes >= row_bytes)) $(($(mapped 'memfd:pg_kmeans') >= row_bytes))"; }
at_rest >/dev/null
own_bytes=$(mapped '/dev/shm/')
for phase in em_step moments; do
    case $phase in
    em_step) fit="SELECT md5((to_jsonb(gmm_fit('mixed_rows', '{x,y,z}', 2, options => gmm_options(max_iter => 1))) - 'origin')::text)" ;;
    moments) fit=$components ;;
    esac
    for way in direct executor; do
        is "$(while_paused $phase "$fit" "SET pg_kmeans.scan = $way" both)" "0 1" "$phase: rows of a $way scan are mapped, and nothing of the server's"
    done
done

# Trouble in every phase that is not k-means' own (test/service/faults.sh).
trouble() { # PHASE
    local phase=$1 pid
    right=$(alone "$fit")
    fault "$phase device_error once"
    pid=$(service_pid)
    is "$(say cuda "$fit")" 58000 "$phase: device error, cuda: an error"
    is "$(say cuda "$fit")" "$right" "$phase: the next job is right"
    [ "$(service_pid)" != "$pid" ]
    result $? "$phase: in a fresh service"
    fault "$phase device_error once"
    is "$(say auto "$fit" "SET pg_kmeans.cpu_threads = 2")" "WARNING $right" "$phase: device error, auto: a warning and the result"
    say cuda "$fit" >/dev/null
    fault "$phase out_of_memory once"
    is "$(say cuda "$fit")" 53200 "$phase: no memory, cuda: an error"
    fault "$phase out_of_memory once"
    is "$(say auto "$fit")" "$right" "$phase: no memory, auto: the result"
    fault "$phase limit once"
    is "$(say cuda "$fit")" "$right" "$phase: the limit of device memory, until there is more"
    fault "$phase unsupported once"
    is "$(say cuda "$fit")" 0A000 "$phase: not supported for this, cuda: an error"
    fault "$phase unsupported once"
    is "$(say auto "$fit")" "$right" "$phase: not supported for this, auto: the CPU"
    is "$(hang $phase timeout)" 57014 "$phase: timeout"
    is "$(hang $phase cancel)" 57014 "$phase: cancel"
    is "$(hang $phase terminate)" 57P01 "$phase: session terminated"
    is "$(hang $phase service)" 58000 "$phase: service ended, cuda"
    is "$(say cuda "$fit")" "$right" "$phase: the next job is right"
    is "$(hang $phase service auto)" "WARNING"$'\n'"$right" "$phase: service ended, auto"
    is "$(at_rest)" "0|0|0" "$phase: nothing is held"
}
fit="SELECT md5((to_jsonb(gmm_fit('mixed_rows', '{x,y,z}', 60, options => gmm_options(max_iter => 6))) - 'origin')::text)"
trouble em_step
fit="SELECT md5((to_jsonb(pca_fit('mixed_wide', '{f}')) - 'origin')::text)"
# So wide that auto takes a device.
query -c "CREATE TABLE mixed_wide AS SELECT ARRAY(SELECT sin(i * j + j)::real FROM generate_series(1, 160) AS j) AS f FROM generate_series(1, 10000) AS i" -c "ANALYZE mixed_wide"
trouble moments

# A plugin without a compiler for reductions: no rows travel, auto takes the CPU.
fit="SELECT md5(array_agg(value ORDER BY cell)::text) FROM kmeans_reduce('mixed_rows', index => 'g', cells => '3', op => 'count')"
stop_service
fault "reduce unsupported"
is "$(say cuda "$fit")" 0A000 "without reduce: cuda is an error"
is "$(say auto "$fit")" "$(alone "$fit")" "without reduce: auto takes the CPU"
fault
stop_service
is "$(say cuda "$fit")" "$(alone "$fit")" "another service may have it"
is "$(orphans)" "" "no segment is left"
echo "1..$number"

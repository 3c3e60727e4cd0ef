#!/bin/bash
# What the GPU service costs and saves, as CSV: scripts/with-postgres bench/service.sh [ROWS]
#
#   first_call    a new session's first fit of 1000 rows with backend = cuda, milliseconds, the
#                 service running; and where each session opens the device itself
#   later_call    the next one in the same session
#   cold_start    the first fit of all, which starts the service
#   fit           kmeans_fit of ROWS x 8 real, k = 100, 20 iterations; the service, and without
#   sessions_N    fits of 100,000 rows x 8, k = 20, a second, N sessions at once, both ways
# Every row with the service's device memory at the end, which must be 0, and whether all
# results were those of the CPU.
set -euo pipefail
rows=${1:-10000000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PGOPTIONS="${PGOPTIONS:-} -c client_min_messages=warning"
query() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
held() { query -c "SELECT coalesce(sum(memory_held), 0) FROM kmeans_status()"; }
# timed SETTING... -- STATEMENT...: milliseconds of each statement, one a line; results to $folder/results.
timed() {
    {
        echo "SET pg_kmeans.backend = cuda; SET pg_kmeans.memory_limit = 0;"
        while [ "$1" != -- ]; do echo "SET $1;"; shift; done
        shift
        echo '\timing on'
        printf '%s;\n' "$@"
    } | query | tee "$folder/raw" | sed -nE 's/^Time: ([0-9.]+) ms.*/\1/p'
    grep -v '^Time' "$folder/raw" >"$folder/results"
}

query -v rows="$rows" <<'SQL'
CREATE EXTENSION IF NOT EXISTS pg_kmeans;
CREATE TABLE service_large AS
SELECT sin(i)::real AS a, cos(i * 7)::real AS b, sin(i * 3)::real AS c, cos(i * 11)::real AS d, sin(i * 13)::real AS e,
    cos(i)::real AS f, sin(i * 5)::real AS g, cos(i * 2)::real AS h
FROM generate_series(1, :rows) AS i;
CREATE TABLE service_middle AS SELECT * FROM service_large LIMIT 100000;
CREATE TABLE service_small AS SELECT * FROM service_large LIMIT 1000;
VACUUM (ANALYZE) service_large, service_middle, service_small;
SQL
small="SELECT md5((to_jsonb(kmeans_fit('service_small', '{a,b,c,d,e,f,g,h}', 5)) - 'origin')::text)"
middle="SELECT md5((to_jsonb(kmeans_fit('service_middle', '{a,b,c,d,e,f,g,h}', 20, options => kmeans_options(max_iter => 20))) - 'origin')::text)"
large="SELECT md5((to_jsonb(kmeans_fit('service_large', '{a,b,c,d,e,f,g,h}', 100, options => kmeans_options(init => 'first', tol => 0, max_iter => 20))) - 'origin')::text)"
right_small=$(query -c "SET pg_kmeans.backend = cpu" -c "$small")
right_middle=$(query -c "SET pg_kmeans.backend = cpu" -c "$middle")
echo "measure,service,value,unit,right,memory_held"
line() { # MEASURE SERVICE VALUE UNIT RIGHT
    echo "$1,$2,$3,$4,$5,$(held)"
}
right() { # EXPECTED: whether all of $folder/results is
    [ "$(sort -u "$folder/results")" = "$1" ] && echo yes || echo no
}

cold=$(timed -- "$small")
line cold_start on "$cold" ms "$(right "$right_small")"
for service in on off; do
    : >"$folder/first"
    for _ in 1 2 3 4 5; do timed "pg_kmeans.service = $service" -- "$small" "$small" "$small" | paste -sd ' ' >>"$folder/first"; done
    line first_call $service "$(awk '{ print $1 }' "$folder/first" | sort -n | sed -n 3p)" ms "$(right "$right_small")"
    line later_call $service "$(awk '{ print $3 }' "$folder/first" | sort -n | sed -n 3p)" ms "$(right "$right_small")"
done
for service in on off; do
    times=$(timed "pg_kmeans.service = $service" -- "$large" "$large" "$large" "$large")
    line fit $service "$(tail -n 3 <<<"$times" | sort -n | head -n 1)" ms "$([ "$(sort -u "$folder/results" | wc -l)" = 1 ] && echo yes || echo no)"
    [ $service = off ] || cp "$folder/results" "$folder/large"
done
query -c "SELECT 'count(*),,' FROM service_large LIMIT 0"
count=$(timed -- "SELECT count(*) FROM service_large" "SELECT count(*) FROM service_large" | sort -n | head -n 1)
line count - "$count" ms -
for sessions in 1 4 16; do
    for service in on off; do
        for ((i = 0; i < 10; i++)); do echo "$middle;"; done >"$folder/work.sql"
        began=$(date +%s%N)
        for ((i = 0; i < sessions; i++)); do
            PGOPTIONS="$PGOPTIONS -c pg_kmeans.backend=cuda -c pg_kmeans.service=$service" query -f "$folder/work.sql" >"$folder/out.$i" &
        done
        wait
        took=$((($(date +%s%N) - began) / 1000000))
        cat "$folder"/out.* >"$folder/results"
        rm "$folder"/out.*
        line sessions_$sessions $service "$(awk -v n=$((sessions * 10)) -v ms=$took 'BEGIN { printf "%.1f", n * 1000 / ms }')" fits/s "$(right "$right_middle")"
    done
done

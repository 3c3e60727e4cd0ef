#!/bin/bash
# pg_kmeans.max_threads is the limit for whatever computes: a session that asks for 64 threads gets two. A process has a few
# more, which wait meanwhile: its own thread, the job's, and those of another step.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE thread_rows WITH (parallel_workers = 0) AS
SELECT i AS id, i % 50 AS g, ARRAY[sin(i), cos(i * 7), sin(i * 3) / 2, cos(i * 5), i % 3, i % 7, sin(i * 11), cos(i * 13)]::real[] AS f FROM generate_series(1, 100000) AS i;
ANALYZE thread_rows;
SQL

# most NAME STATEMENT [SETTING]: the most threads that its process had, looked at over and over while it runs.
most() {
    local name=$1 pid now threads=0
    : >"$folder/out"
    printf '%s;\n' "SET client_min_messages = error" "LOAD 'pg_kmeans'" "SET pg_kmeans.backend = cpu" "SET max_parallel_workers_per_gather = 0" \
        "SET pg_kmeans.max_threads = ${3:-2}" "SET pg_kmeans.cpu_threads = 64" "SELECT pg_backend_pid()" "$2" | psql -XqAt >"$folder/out" 2>&1 &
    until pid=$(head -n 1 "$folder/out") && [ -n "$pid" ]; do sleep 0.01; done
    while now=$(awk '/^Threads/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
        [ "$now" -le $threads ] || threads=$now
    done
    wait $!
    grep -q '^ERROR' "$folder/out" && sed 's/^/# /' "$folder/out"
    most=$threads
}
most 'without a limit' "SELECT (kmeans_fit('thread_rows', '{f}', 200, options => kmeans_options(n_init => 25, max_iter => 5))).k" 4096
[ $most -gt 60 ]
result $? "a superuser may have 64 threads ($most)"
within() {
    most "$@"
    [ $most -ge 2 ] && [ $most -le 6 ]
    result $? "$1: $most threads"
}
within 'k-means' "SELECT (kmeans_fit('thread_rows', '{f}', 200, options => kmeans_options(max_iter => 5))).k"
within 'k-means||, with a better optimum' "SELECT (kmeans_fit('thread_rows', '{f}', 40, options => kmeans_options(init => 'k-means||', refine => true, max_iter => 5))).k"
within 'bounds of sizes' "SELECT (kmeans_fit('thread_rows', '{f}', 8, options => kmeans_options(max_size => 0.2, max_iter => 3))).k"
within 'mini-batches' "SELECT (kmeans_fit('thread_rows', '{f}', 100, options => kmeans_options(batch_size => 50000, max_iter => 5))).k"
within 'streamed rows' "SELECT (kmeans_fit('thread_rows', '{f}', 100, memory => 'stream', options => kmeans_options(max_iter => 3))).k"
within 'a sweep with silhouettes' "SELECT count(*) FROM kmeans_sweep('thread_rows', '{f}', 20, 23, options => kmeans_options(max_iter => 3), sample => 5000)"
within 'a tree' "SELECT count(*) FROM kmeans_tree('thread_rows', '{f}', '{30,10}', options => kmeans_options(max_iter => 5))"
within 'groups' "SELECT count(m) FROM (SELECT g, kmeans(f, 40) AS m FROM thread_rows GROUP BY g) AS s"
within 'a mixture' "SELECT (gmm_fit('thread_rows', '{f}', 10, options => gmm_options(max_iter => 5))).k"
within 'a reduction' "SELECT count(*) FROM generate_series(1, 30) AS i, kmeans_reduce('thread_rows', index => 'id % 1000', cells => '1000', value => '{exp(sin(g) * cos(id)), sqrt(id) * ln(id), ' || i || '}')"
within 'loaded rows' "SELECT kmeans_load('thread_rows', '{f}'), (kmeans_fit('thread_rows', '{f}', 100, memory => 'loaded', options => kmeans_options(max_iter => 5))).k"
echo "1..$number"

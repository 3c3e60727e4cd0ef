#!/bin/bash
# k-means over several servers of this host beside one server with as many threads in all, as CSV:
#   scripts/with-postgres bench/nodes.sh [NODES [ROWS [D [K [RUNS [DELAY...]]]]]]
#
# Each server has one thread. For each way of seeding, and each delay of the network (milliseconds for a question and its
# answer, bench/delay_proxy.py), the least of RUNS runs: of seeding, and of an iteration, which is a twentieth of
# iterations 2 to 21. bytes: what the servers say to each other while they seed (with labels and sizes at the end), and
# in an iteration. cpu_ms: processor time of a call of one iteration. right: both ways have the same model.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/nodes.sh"
nodes=${1:-2} rows=${2:-300000} d=${3:-16} k=${4:-100} runs=${5:-3}
delays=(0 1 10)
[ $# -lt 6 ] || delays=("${@:6}")
proxy=
stop_proxy() {
    [ -z "$proxy" ] || kill "$proxy"
    proxy=
}
trap 'stop_proxy; stop_nodes' EXIT
start_nodes "$nodes"

columns=$(seq -f 'x%g' -s ',' "$d")
on_node 0 -c "CREATE EXTENSION IF NOT EXISTS pg_kmeans" -c "CREATE EXTENSION IF NOT EXISTS postgres_fdw" \
    -c "CREATE TABLE bench_rows (id integer, $(seq -f 'x%g real' -s ', ' "$d")) PARTITION BY RANGE (id)"
values=$(for ((j = 1; j <= d; j++)); do printf ', i %% 60 * %d %% 11 + random() + random() + random()' "$j"; done)
for ((i = 1; i <= nodes; i++)); do
    first=$((rows * (i - 1) / nodes)) end=$((rows * i / nodes))
    join_node "$i"
    on_node "$i" -c "LOAD 'pg_kmeans'" -c "ALTER SYSTEM SET pg_kmeans.cpu_threads = 1" -c "SELECT pg_reload_conf(), setseed(0.$i)" \
        -c "CREATE TABLE part (id integer, $(seq -f 'x%g real' -s ', ' "$d"))" \
        -c "INSERT INTO part SELECT i$values FROM generate_series($first, $((end - 1))) AS i" >/dev/null
    on_node 0 -c "CREATE FOREIGN TABLE bench_$i PARTITION OF bench_rows FOR VALUES FROM ($first) TO ($end) SERVER node$i OPTIONS (table_name 'part')"
done
on_node 0 -c "CREATE TABLE bench_all AS SELECT * FROM bench_rows" -c "VACUUM ANALYZE bench_all"

# delay MILLISECONDS: of the network from now on.
delay() {
    local i pairs=()
    stop_proxy
    for ((i = 1; i <= nodes; i++)); do
        mkdir -p "$nodes_folder/proxy$i"
        rm -f "$nodes_folder/proxy$i/.s.PGSQL.5432"
        pairs+=("$nodes_folder/proxy$i/.s.PGSQL.5432" "$nodes_folder/socket$i/.s.PGSQL.5432")
        on_node 0 -c "ALTER SERVER node$i OPTIONS (SET host '$nodes_folder/$([ "$1" = 0 ] && echo socket || echo proxy)$i')"
    done
    [ "$1" != 0 ] || return 0
    python3 "$here/bench/delay_proxy.py" "$1" "${pairs[@]}" >"$nodes_folder/proxy" &
    proxy=$!
    until grep -q ready "$nodes_folder/proxy"; do sleep 0.05; done
}

# used: processor time of all servers so far, in hundredths of a second.
here_pid=$(head -n 1 "$(on_node 0 -c "SHOW data_directory")/postmaster.pid")
used() {
    local pid
    for pid in "$here_pid" "${node_pid[@]}"; do
        cat "/proc/$pid/stat" $(pgrep -P "$pid" | sed 's|.*|/proc/&/stat|') 2>/dev/null
    done | sed 's/.*) //' | awk '{ t += $12 + $13 + $14 + $15 } END { print t }'
}

# fit TABLE INIT ITERATIONS: seeding ms, iterations ms, bytes, processor ms of the call, a hash of the model.
fit() {
    local said before=$(used)
    said=$(fit_once "$@")
    sleep 0.3 # for sessions that end
    echo "${said%|*}|$((($(used) - before) * 10))|${said##*|}"
}
fit_once() {
    on_node 0 <<SQL
SET pg_kmeans.cpu_threads = $nodes;
SET pg_kmeans.backend = cpu;
SELECT md5((to_jsonb(kmeans_fit('$1', '{$columns}', $k, options => kmeans_options(init => '$2', tol => 0, max_iter => $3))) - 'origin')::text) AS model \gset
SELECT seeding_ms, iterations_ms, bytes_moved, :'model' FROM kmeans_last_run();
SQL
}

# least FIELD: of the lines.
least() { cut -d '|' -f "$1" | sort -g | head -n 1; }

echo "init,delay_ms,seeding_ms,one_seeding_ms,iteration_ms,one_iteration_ms,seeding_bytes,iteration_bytes,cpu_ms,one_cpu_ms,right"
for delay in "${delays[@]}"; do
    delay "$delay"
    for init in k-means++ 'k-means||' random; do
        for table in rows all; do for n in 1 21; do : >"$nodes_folder/$table$n"; done; done
        for ((run = 0; run < runs; run++)); do
            for table in rows all; do for n in 1 21; do fit "bench_$table" "$init" $n >>"$nodes_folder/$table$n"; done; done
        done
        for table in rows all; do
            for n in 1 21; do for field in 1 2 3 4; do read -r "${table}_${n}_$field" < <(least $field <"$nodes_folder/$table$n"); done; done
        done
        right=$([ "$(cat "$nodes_folder"/{rows,all}21 | cut -d '|' -f 5 | sort -u | wc -l)" = 1 ] && echo yes || echo no)
        awk -v OFS=, -v name="$init,$delay" -v right="$right" "BEGIN {
            print name, sprintf(\"%.1f\", $rows_1_1 < $rows_21_1 ? $rows_1_1 : $rows_21_1), sprintf(\"%.1f\", $all_1_1 < $all_21_1 ? $all_1_1 : $all_21_1),
                sprintf(\"%.2f\", ($rows_21_2 - $rows_1_2) / 20), sprintf(\"%.2f\", ($all_21_2 - $all_1_2) / 20),
                $rows_1_3, ($rows_21_3 - $rows_1_3) / 20, $rows_1_4, $all_1_4, right }"
    done
done

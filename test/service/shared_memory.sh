#!/bin/bash
# No shared memory left: a server whose /dev/shm is small, and one whose files, those of anonymous
# shared memory too, must not grow. Each time the promised fallback or error, nothing left behind,
# and the next statement right.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
source "$here/scripts/lib/copy.sh"
trap 'fault; remove_copy' EXIT

# under_own_shm SIZE: copies run in a mount namespace with a /dev/shm of that size, where no other server leaves
# anything. Needs root, or a kernel that lets users have namespaces.
under_own_shm() {
    local mount="mount -t tmpfs -o size=$1,mode=1777 tmpfs /dev/shm && exec \"\$@\""
    local own=(unshare --user "--map-user=$(id -u)" "--map-group=$(id -g)")
    if [ "$(id -u)" -eq 0 ] && unshare --mount sh -c "$mount" sh true 2>/dev/null; then
        under=(unshare --mount sh -c "$mount" sh)
    elif unshare --user --map-root-user --mount sh -c "$mount" sh "${own[@]}" true 2>/dev/null; then
        under=(unshare --user --map-root-user --mount sh -c "$mount" sh "${own[@]}")
    else
        return 1
    fi
}
if ! under_own_shm 8m; then
    echo "1..0 # SKIP no mount namespace of its own may be made here"
    exit 0
fi

query <<'SQL'
CREATE TABLE shm_rows WITH (parallel_workers = 2) AS
SELECT i AS id, sin(i)::real AS a, cos(i * 7)::real AS b, sin(i * 0.3)::real AS c, cos(i * 0.7)::real AS d FROM generate_series(1, 1000000) AS i;
CREATE TABLE shm_few AS SELECT a, b, c, d FROM shm_rows LIMIT 20000;
CREATE TABLE shm_wide AS SELECT ARRAY(SELECT sin(i * j + j)::real FROM generate_series(1, 200) AS j) AS f FROM generate_series(1, 500) AS i;
ANALYZE shm_rows, shm_few, shm_wide;
SQL
fit="SELECT md5((to_jsonb(kmeans_fit('shm_rows', '{a,b,c,d}', 3, options => kmeans_options(init => 'first', max_iter => 3))) - 'origin')::text)"
few="SELECT md5((to_jsonb(kmeans_fit('shm_few', '{a,b,c,d}', 30, options => kmeans_options(max_iter => 20))) - 'origin')::text)"
# Exact sums do not depend on the order in which parallel workers bring rows, when centroids are given.
given="kmeans_options(init_centroids => '{{0,0,0,0},{0.5,0.5,0,0},{-1,0,0.5,1}}', max_iter => 3)"
aggregate="SELECT md5(kmeans(ARRAY[a, b, c, d], 3, $given)::text) FROM shm_rows"
labels="SELECT count(*) || ' ' || sum(cluster_id) FROM kmeans_labels('shm_rows', '{a,b,c,d}', 3, options => kmeans_options(init => 'first', max_iter => 3))"
mixture="SELECT md5((to_jsonb(gmm_fit('shm_wide', '{f}', 100, options => gmm_options(max_iter => 1))) - 'origin')::text)"
for name in fit few aggregate labels mixture; do
    declare "right_$name=$(query -c "SET pg_kmeans.backend = cpu" -c "${!name}")"
done

make_copy
# on BACKEND STATEMENT [SETTING]...: there, as say().
on() { PGPORT=$port say "$@"; }
# What is in the copy's /dev/shm beside what the server itself keeps there.
names() { ls "/proc/$copy/root/dev/shm" | sort; }
# The same, once it is what it was before: who maps a segment last, the service or a worker, undoes that in its time.
names_at_rest() {
    local i
    for ((i = 0; i < 40; i++)); do
        [ "$(names)" != "$before" ] || break
        sleep 0.05
    done
    names
}
parallel=("SET max_parallel_workers_per_gather = 2" "SET parallel_setup_cost = 0" "SET cpu_operator_cost = 0.00001" "SET parallel_tuple_cost = 0.01" "SET min_parallel_table_scan_size = 0")

# Workers look for room, and leave their rows to the tuple queue if there is none; two at once may both
# see the room that one has. The server itself needs some for a parallel plan.
right_or_full() {
    [[ $1 = "$right_aggregate" || $1 = 53100 ]]
    result $? "$2: ${1#"$right_aggregate"}"
}

start_copy || exit 1
is "$(($(stat -f -c '%b * %S' "/proc/$copy/root/dev/shm")))" 8388608 "a server with 8 MB of shared memory"
on cuda "$few" >/dev/null # what stays from the first use on
before=$(names)
for backend in cpu cuda; do
    is "$(on $backend "$fit" "SET pg_kmeans.scan = direct")" "$right_fit" "$backend: a fit without room for its rows in a segment"
    is "$(on $backend "SET pg_kmeans.scan = direct; $fit; SELECT workers FROM kmeans_last_run()")" "$right_fit 0" "$backend: by one process"
    is "$(on $backend "$labels")" "$right_labels" "$backend: labels"
    right_or_full "$(on $backend "$aggregate" "${parallel[@]}")" "$backend: the aggregate in a parallel plan"
    is "$(on $backend "$aggregate" "SET max_parallel_workers_per_gather = 0")" "$right_aggregate" "$backend: and in another"
done
is "$(names_at_rest)" "$before" "nothing is left"

# Statistics that are wrong: workers find no room for their rows, and leave them to the session.
there -c "UPDATE pg_class SET reltuples = 1000 WHERE relname = 'shm_rows'"
for backend in cpu cuda; do
    is "$(on $backend "SET pg_kmeans.scan = direct; $fit; SELECT workers > 0 FROM kmeans_last_run()")" "$right_fit t" "$backend: what has no room is found out late"
    is "$(there -c "SET pg_kmeans.backend = $backend" -c "$few")" "$right_few" "$backend: the next statement is right"
done
is "$(on cuda "$fit" "SET max_parallel_workers_per_gather = 0")" "$right_fit" "and so is one process"
is "$(names_at_rest)" "$before" "nothing is left"

# Somebody else's file takes the rest while sessions are at work.
filler=/proc/$copy/root/dev/shm/filler
there -c "ANALYZE shm_rows"
dd if=/dev/zero of="$filler" bs=1k 2>/dev/null
is "$(on cpu "$fit")" "$right_fit" "no shared memory at all: a fit"
is "$(on cuda "$few")" "$right_few" "on the GPU service"
right_or_full "$(on cpu "$aggregate" "${parallel[@]}")" "a parallel plan"
rm "$filler"
is "$(on cuda "$few")" "$right_few" "the next statement is right"
is "$(names_at_rest)" "$before" "nothing is left"
is "$(PGPORT=$port at_rest)" "0|0|0" "the service holds nothing"
stop_copy

# What goes to the service in anonymous shared memory: files, which must not pass 18 MB (a segment of
# the write-ahead log has 16).
under=(bash -c 'ulimit -f 18432 && exec "$@"' bash)
start_copy || exit 1
one="SET max_parallel_workers_per_gather = 0"
is "$(on cuda "$few")" "$right_few" "a server whose files must not grow"
# Rows: 16 MB and some weights.
is "$(on cuda "SELECT kmeans_fit('shm_rows', '{a,b,c,d}', 3, weight => 'id', options => kmeans_options(init => 'first', max_iter => 2))" "$one")" 53200 "rows cannot be handed over, cuda: an error"
is "$(on auto "$fit" "$one")" "$right_fit" "a fit of fewer bytes"
weighted="SELECT md5((to_jsonb(kmeans_fit('shm_rows', '{a,b,c,d}', 100, weight => 'id', options => kmeans_options(init => 'first', max_iter => 2))) - 'origin')::text)"
is "$(on auto "$weighted" "$one")" "$(query -c "SET pg_kmeans.backend = cpu" -c "$weighted")" "rows cannot be handed over, auto: the CPU"
# Sums: 100 triangles of 200 features in the arena, and as many factors, take 48 MB.
is "$(on cuda "$mixture")" 53200 "results have no room, cuda: an error"
is "$(on auto "$mixture")" "$right_mixture" "auto: the CPU"
is "$(on cuda "$few")" "$right_few" "the next statement is right"
is "$(PGPORT=$port at_rest)" "0|0|0" "the service holds nothing"
mapped=$(there -c "SELECT count(*) FROM regexp_split_to_table(pg_read_file('/proc/' || (SELECT service_pid FROM kmeans_status() WHERE backend = 'cuda') || '/maps'), '\n') AS line WHERE line ~ 'memfd:pg_kmeans'")
is "$mapped" 0 "nor has it anything mapped"
stop_copy

# A server that keeps room for segments in its own memory, enough for the rows and not.
under_own_shm 256m
for room in 64MB 4MB; do
    start_copy "min_dynamic_shared_memory=$room" || exit 1
    on cuda "$few" >/dev/null
    before=$(names)
    for backend in cpu cuda; do
        is "$(on $backend "SET pg_kmeans.scan = direct; $fit; SELECT workers FROM kmeans_last_run()")" "$right_fit 2" "$backend, $room in the server: a fit by workers"
        is "$(on $backend "$labels")" "$right_labels" "$backend, $room: labels"
        is "$(on $backend "$aggregate" "${parallel[@]}")" "$right_aggregate" "$backend, $room: the aggregate in a parallel plan"
    done
    is "$(names_at_rest)" "$before" "nothing is left"
    is "$(PGPORT=$port at_rest)" "0|0|0" "the service holds nothing"
    stop_copy
done
echo "1..$number"

#!/bin/bash
# What the system refuses: memory, threads, files, locked memory, room on a disk. A statement then fails with an error
# of its own or does with less; its session goes on, and so does the next statement when the limit is gone.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
folder=$(mktemp -d)
chmod 755 "$folder"
disk=
trap '[ -z "$disk" ] || umount "$disk"; rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE limit_rows WITH (parallel_workers = 2) AS
SELECT sin(i)::real AS x, cos(i * 7)::real AS y, i % 5000 AS g FROM generate_series(1, 300000) AS i;
ANALYZE limit_rows;
SQL
statements=(
    "SELECT (kmeans_fit('limit_rows', '{x,y}', 20, options => kmeans_options(init => 'first'))).inertia"
    "SELECT (kmeans(ARRAY[x,y], 20, kmeans_options(init_centroids => (SELECT array_agg(ARRAY[i / 10.0, 0.1]) FROM generate_series(1, 20) AS i)))).n FROM limit_rows"
    "SELECT (gmm_fit('limit_rows', '{x,y}', 3, options => gmm_options(max_iter => 3))).n"
    "SELECT (pca_fit('limit_rows', '{x,y}')).n"
)

# prlimit as the server's user, whose processes alone may be limited without a privilege.
limits() {
    local as_server=() user
    user=$(stat -c %U "$PGHOST")
    [ "$(id -u)" -ne 0 ] || as_server=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
    "${as_server[@]}" prlimit "$@"
}

# lift PID: soft limits become what the hard ones are.
lift() {
    local name
    for name in as nproc nofile memlock fsize; do
        limits --pid "$1" "--$name=$(limits --pid "$1" "--$name" --output HARD --noheadings --raw):"
    done
}

# limited TEXT LIMIT...: runs the statements in a session whose process gets the limits, lifts them, and runs them again.
# Every outcome under the limits is the result or one of these errors.
limited() {
    local text=$1 pid i bad=0
    shift
    mkfifo "$folder/in"
    : >"$folder/out" # or an earlier session's pid is taken for this one's
    psql -XqAt <"$folder/in" >"$folder/out" 2>"$folder/err" &
    exec 9>"$folder/in"
    echo '\set VERBOSITY verbose' >&9
    echo "LOAD 'pg_kmeans'; SELECT pg_backend_pid();" >&9
    until pid=$(head -n 1 "$folder/out") && [ -n "$pid" ]; do sleep 0.01; done
    limits --pid "$pid" "$@" || bad=1
    for i in "${!statements[@]}"; do printf "%s;\n\\\\echo state %s :LAST_ERROR_SQLSTATE :ERROR\n" "${statements[i]}" "$i" >&9; done
    echo "\\echo limited" >&9
    until grep -q '^limited' "$folder/out" || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
    lift "$pid"
    for i in "${!statements[@]}"; do echo "${statements[i]};" >&9; done
    exec 9>&-
    wait $!
    rm "$folder/in"
    grep '^ERROR' "$folder/err" | grep -vE '^ERROR:  (53[0-9]{3}|54000)' && bad=1
    [ "$(sed '1,/^limited/d' "$folder/out")" = "$expected" ] || bad=1
    [ $bad -eq 0 ]
    result $? "$text ($(grep -c '^ERROR' "$folder/err") errors)"
    [ $bad -eq 0 ] || sed 's/^/# /' "$folder/out" "$folder/err"
}
expected=$(for statement in "${statements[@]}"; do query -c "$statement"; done)
size=$(query -c "LOAD 'pg_kmeans'" -c "SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmSize:\s+(\d+)'))[1]")

limited "address space that is used up" --as=$((size * 1024 + 1000000)):
limited "some address space" --as=$((size * 1024 + 40000000)):
limited "no more processes" --nproc=1:
limited "no more files" --nofile=12:
limited "no locked memory" --memlock=0:
limited "segments of shared memory of a megabyte" --fsize=1000000:

# Temporary files on a disk of a megabyte.
mkdir "$folder/disk"
if mount -t tmpfs -o size=1m,mode=777 tmpfs "$folder/disk" 2>/dev/null; then
    disk=$folder/disk
    mkdir "$disk/space"
    chmod 777 "$disk/space"
    [ "$(id -u)" -ne 0 ] || chown "$(stat -c %u "$PGHOST")" "$disk/space"
    query -c "CREATE TABLESPACE small LOCATION '$disk/space'"
    got=$(psql -XqAt 2>&1 <<SQL
SET temp_tablespaces = small; SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0;
\set VERBOSITY sqlstate
SELECT count(m) FROM (SELECT kmeans(ARRAY[x, y], 2) AS m FROM limit_rows GROUP BY g) AS s;
SELECT count(*) FROM kmeans_labels('limit_rows', '{x,y}', 2) AS l WHERE (SELECT l IS NOT NULL);
RESET temp_tablespaces; RESET work_mem;
SELECT count(m) FROM (SELECT kmeans(ARRAY[x, y], 2) AS m FROM limit_rows GROUP BY g) AS s;
SQL
)
    is "$got" $'ERROR:  53100\nERROR:  53100\n5000' "a full disk is an error of its own, and ends with it"
    query -c "DROP TABLESPACE small"
else
    result 0 "a full disk # SKIP only root can mount one"
fi
echo 1..$number

#!/bin/bash
# A wide PCA that is cancelled or terminated while a library computes its eigenvectors: the library cannot be
# stopped, so its thread goes on for some seconds. It counts, it has no company, and no exit waits for it or fails.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE left_wide AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) ORDER BY j)::real[] AS f FROM generate_series(1, 20) AS i, generate_series(1, 4000) AS j GROUP BY i;
CREATE TABLE left_narrow AS SELECT sin(i)::real AS x, cos(i)::real AS y FROM generate_series(1, 20) AS i;
SQL
wide="SELECT pca_fit('left_wide', '{f}')"

# open_session NAME: a session that $NAME_in feeds, whose process is $NAME_pid; what it says goes to $folder/NAME.
open_session() {
    local fifo=$folder/$1.fifo
    mkfifo "$fifo"
    psql -XqAt <"$fifo" >"$folder/$1" 2>&1 &
    eval "exec {$1_in}>'$fifo'"
    tell "$1" '\set VERBOSITY sqlstate' 'SELECT pg_backend_pid();'
    await_lines "$1" 1
    eval "$1_pid=$(head -n 1 "$folder/$1")"
}
tell() { # NAME LINE...
    local to=$1_in
    shift
    printf '%s\n' "$@" >&"${!to}"
}
close_session() { eval "exec {$1_in}>&-"; }
await_lines() { # NAME COUNT
    until [ "$(wc -l <"$folder/$1")" -ge "$2" ]; do sleep 0.02; done
}
await_eigenvectors() { # PID
    until [ "$(query -c "SELECT phase FROM pg_stat_progress_kmeans WHERE pid = $1")" = iterating ]; do sleep 0.02; done
}
# A session's wide PCA is cancelled; 57014 is its next line.
cancel_wide() { # NAME LINES
    local pid=$1_pid
    tell "$1" "$wide;" '\echo :LAST_ERROR_SQLSTATE'
    await_eigenvectors "${!pid}"
    query -c "SELECT pg_cancel_backend(${!pid})" >"$folder/struck"
    await_lines "$1" "$2"
}
gone() { # PID
    local i
    for ((i = 0; i < 3000; i++)); do
        [ -e "/proc/$1" ] || return 0
        sleep 0.02
    done
    return 1
}

open_session bystander
open_session victim

# The session goes on, and the thread's memory counts.
cancel_wide victim 3
tell victim "SET pg_kmeans.memory_limit = '200MB';" '\set VERBOSITY default' "SELECT kmeans_fit('left_narrow', '{x,y}', 1);" \
    '\set VERBOSITY sqlstate' '\echo :LAST_ERROR_SQLSTATE' "RESET pg_kmeans.memory_limit;" \
    "SELECT (pca_fit('left_narrow', '{x,y}')).n_components;" '\echo narrow'
until grep -q '^narrow$' "$folder/victim"; do sleep 0.02; done
is "$(sed -n 3p "$folder/victim")" 57014 "a wide PCA is cancelled"
grep -q '^54000$' "$folder/victim"
result $? "what its thread holds counts against the limit"
grep -qE '^DETAIL:.* A PCA that was cancelled holds [0-9]+ kB until its thread ends\.$' "$folder/victim"
result $? "which the error tells"
is "$(tail -n 2 "$folder/victim" | head -n 1)" 2 "a narrow PCA needs no thread"

# Cancelled again and again, it has one such thread beside its own.
lines=$(wc -l <"$folder/victim")
cancel_wide victim $((lines + 2))
cancel_wide victim $((lines + 4))
is "$(tail -n +$((lines + 1)) "$folder/victim" | grep -c '^57014$')" 2 "so are further ones, that wait for the first"
threads=("/proc/$victim_pid/task"/*)
[ ${#threads[@]} -le 2 ]
result $? "their threads do not pile up (${#threads[@]})"

# It ends meanwhile, in each of the ways to end.
close_session victim
gone "$victim_pid"
result $? "the session ends while the thread computes"
open_session next
tell next "$wide;"
await_eigenvectors "$next_pid"
query -c "SELECT pg_terminate_backend($next_pid)" >"$folder/struck"
gone "$next_pid"
result $? "another is terminated"
close_session next

# A crash of one would have ended all others.
tell bystander "SELECT 'lives';"
await_lines bystander 2
is "$(tail -n 1 "$folder/bystander")" lives "none of them crashed"
close_session bystander
echo 1..$number

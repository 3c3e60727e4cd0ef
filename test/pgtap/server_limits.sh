#!/bin/bash
# All sessions together stay within pg_kmeans.max_memory and pg_kmeans.max_threads. Whatever a session holds here it holds until it
# is told otherwise: rows that are loaded, and fits that do not end.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE limit_rows AS
SELECT i AS id, ARRAY[sin(i), cos(i * 7), sin(i * 3) * 100, (i % 101) / 7.0, i % 5, i % 7, i % 11, i % 13]::double precision[] AS f FROM generate_series(1, 200000) AS i;
CREATE TABLE limit_few AS SELECT * FROM limit_rows LIMIT 60000;
CREATE ROLE limit_user;
ANALYZE;
SQL
settings="pg_kmeans.backend=cpu pg_kmeans.max_memory=30MB pg_kmeans.queue_timeout=0 statement_timeout=10min max_parallel_workers_per_gather=0"
# options NAME=VALUE...: settings of a session, these beside and instead of those above.
options() { for setting in $settings "$@"; do printf ' -c %s' "$setting"; done; }
fit="SELECT md5((kmeans_fit('limit_rows', '{f}', 5, options => kmeans_options(max_iter => 2, tol => 1))).centroids::text)"
few="SELECT (kmeans_fit('limit_few', '{f}', 2, options => kmeans_options(max_iter => 2, tol => 1))).n"
# state COMMAND...: the error code of a session's first statement that fails, or nothing; what it prints and says is in the folder.
state() {
    query -v VERBOSITY=verbose "$@" >"$folder/out" 2>"$folder/err"
    sed -nE '1s/.*ERROR:  ([0-9A-Z]{5}):.*/\1/p' "$folder/err"
}
waiting() { query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE phase = 'waiting for memory' AND datname = current_database()"; }
waiters() { query -c "SELECT string_agg(pid::text, ' ') FROM pg_stat_progress_kmeans WHERE phase = 'waiting for memory' AND datname = current_database()"; }
expected=$(query -c "SET pg_kmeans.backend = cpu" -c "$fit")

# A session that holds loaded rows until it is told to give them back.
hold() {
    coproc HOLDER { PGOPTIONS=$(options) query; }
    holding=$HOLDER_PID # the shell forgets it when that process ends
    echo "SELECT pg_backend_pid(), kmeans_load('limit_rows', '{f}'), (SELECT floor(sum(bytes) / 1048576) FROM kmeans_loaded());" >&"${HOLDER[1]}"
    IFS='|' read -r holder loaded megabytes <&"${HOLDER[0]}"
}
end_hold() {
    echo 'SELECT kmeans_unload();' >&"${HOLDER[1]}"
    read -r _ <&"${HOLDER[0]}"
    echo '\q' >&"${HOLDER[1]}"
    wait "$holding"
}

hold
is "$loaded" 200000 'a session holds rows'

# A fit waits for them, and gets what it would get alone.
PGOPTIONS=$(options) query -c "$fit" >"$folder/fit" &
victim=$!
await 1 waiting
result $? 'a fit waits'
case $(query -c 'SHOW server_version_num') in 15* | 16*) event=Extension ;; *) event=KmeansMemory ;; esac
is "$(query -c "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $(waiters)")" "Extension|$event" 'it says for what'
end_hold
wait $victim
is "$(cat "$folder/fit")" "$expected" 'and goes on when they are given back'

# Not for ever: the error says who holds how much.
hold
export PGOPTIONS
PGOPTIONS=$(options pg_kmeans.queue_timeout=50)
for call in "$fit" "SELECT (kmeans(f, 5)).n FROM limit_rows" "SELECT kmeans_label(f, 5) OVER () FROM limit_rows" \
    "SET pg_kmeans.max_memory = '20MB'; SELECT kmeans_load('limit_rows', '{f}')" "SELECT count(*) FROM kmeans_labels('limit_rows', '{f}', 5)" \
    "SET pg_kmeans.scan = executor; $fit"; do
    is "$(state -c "$call")" 53200 "no memory in time for $call"
done
state -c "$fit" >/dev/null
is "$(sed -nE "s/DETAIL:.*(all sessions.*)/\1/p" "$folder/err")" "all sessions may hold 30 MB. Of these, process $holder holds $megabytes MB." 'who holds it'
is "$(state -c "$few") $(cat "$folder/out")" ' 60000' 'what fits beside it does not wait'
# A role's smaller limit counts what all hold.
is "$(state -c 'SET pg_kmeans.max_memory = "14MB"' -c "$few")" 53200 'within a smaller limit there is none'
is "$(state -c 'SET pg_kmeans.max_memory = 0' -c "$fit") $(cat "$folder/out")" " $expected" 'without a limit there is'
is "$(state -c 'SET pg_kmeans.max_memory = "4MB"' -c "SELECT kmeans_load('limit_rows', '{f}')") $(grep -c 'Raise "pg_kmeans.max_memory", which is 4096 kB' "$folder/err")" \
    '54000 1' 'what exceeds the limit alone is refused at once'
is "$(state -c "LOAD 'pg_kmeans'" -c 'SET ROLE limit_user' -c 'SET pg_kmeans.max_memory = 0') $(state -c "LOAD 'pg_kmeans'" -c 'SET ROLE limit_user' -c 'SET pg_kmeans.queue_timeout = 1')" '42501 ' \
    'the limit is not for everyone to raise'

# Who holds some does not wait for more: two that did would wait for one another.
PGOPTIONS=$(options)
is "$(state -c "SELECT kmeans_load('limit_few', '{f}')" -c "SELECT kmeans_fit('limit_few', '{f}', 25000, memory => 'loaded')") $(grep -c 'A session that holds memory does not wait' "$folder/err")" "53200 1" 'a session that holds rows is refused at once'

# First come, first served: the small fit waits behind the large one, until that is cancelled.
query -c "$fit" >"$folder/fit" 2>&1 &
victim=$!
await 1 waiting
first=$(waiters)
query -c "$few" >"$folder/few" &
second=$!
await 2 waiting
result $? 'a small fit waits behind a large one'
PGOPTIONS="$(options pg_kmeans.max_memory=60MB)" query -c "$few" >"$folder/other"
is "$(cat "$folder/other")" 60000 'one with a higher limit does not'
query -c "SELECT pg_cancel_backend($first)" >/dev/null
wait $victim
wait $second
is "$(cat "$folder/few") $(grep -c 'canceling statement due to user request' "$folder/fit")" '60000 1' 'a cancelled one leaves the line'

# A session that is ended gives all back: its place in the line, and what it held.
query -c "$fit" >/dev/null 2>&1 &
victim=$!
await 1 waiting
first=$(waiters)
query -c "$fit" >"$folder/fit" &
second=$!
await 2 waiting
query -c "SELECT pg_terminate_backend($first)" >/dev/null
await 1 waiting
result $? 'one that is ended leaves the line'
query -c "SELECT pg_terminate_backend($holder)" >/dev/null
echo '\q' >&"${HOLDER[1]}"
wait "$holding"
wait $victim
wait $second
is "$(cat "$folder/fit")" "$expected" 'what a session held is given back at its end'

# An error in the midst, and a cancel: nothing stays.
query -c "CREATE TABLE limit_bad AS SELECT f FROM limit_rows UNION ALL SELECT '{1,NULL,1,1,1,1,1,1}'" -c "ANALYZE limit_bad"
is "$(state -c "SELECT kmeans_fit('limit_bad', '{f}', 5)" -c '\q') $(state -c "SELECT kmeans(f, 5) FROM limit_bad")" "22004 22004" 'errors of rows'
is "$(state -c "SET statement_timeout = 300" -c "SELECT kmeans_fit('limit_rows', '{f}', 5, options => kmeans_options(tol => 0, n_init => 100000000))")" 57014 'a timeout'
coproc HOLDER { PGOPTIONS=$(options) psql -XqAt 2>&1; }
holding=$HOLDER_PID
echo "SELECT kmeans(f, 5) FROM limit_bad; SELECT kmeans_fit('limit_bad', '{f}', 5); SELECT 'failed';" >&"${HOLDER[1]}"
until read -r line <&"${HOLDER[0]}" && [ "$line" = failed ]; do :; done
PGOPTIONS=$(options pg_kmeans.queue_timeout=1 pg_kmeans.max_memory=22MB)
is "$(query -c "$fit")" "$expected" 'all memory is there after them'
echo '\q' >&"${HOLDER[1]}"
wait "$holding"

# Eight at once, of which one has room.
PGOPTIONS=$(options)
sessions=()
for i in 1 2 3 4 5 6 7 8; do
    query -c "$fit" >"$folder/fit.$i" &
    sessions+=($!)
done
wait "${sessions[@]}"
is "$(sort -u "$folder"/fit.[1-8])" "$expected" 'eight wait for one another'

# Threads: the first fit takes its three of four, the others their own.
threads() { # PID: those of the process
    ls "/proc/$1/task" | wc -l
}
endless="SELECT kmeans_fit('limit_few', '{f}', 20, options => kmeans_options(tol => 0, n_init => 100000000))"
begin_endless() { # NUMBER: of those that run then. A fit that begins anew is at iteration 0 for a moment.
    query -c "$endless" >/dev/null 2>&1 &
    await "$1" query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE iteration > 0 AND datname = current_database()"
    newest=$(query -c "SELECT pid FROM pg_stat_progress_kmeans JOIN pg_stat_activity AS a USING (pid) WHERE a.datname = current_database() ORDER BY backend_start DESC LIMIT 1")
}
PGOPTIONS=$(options pg_kmeans.max_threads=4 pg_kmeans.cpu_threads=3 pg_kmeans.max_memory=0)
begin_endless 1
first=$newest
with_three=$(threads "$first")
begin_endless 2
with_one=$(threads "$newest")
is $((with_three - with_one)) 2 'the second fit has the thread that is left'
begin_endless 3
is "$(threads "$newest")" "$with_one" 'the third one its own'
query -c "SELECT pg_terminate_backend($first, 60000)" >/dev/null
begin_endless 3
is $(($(threads "$newest") - with_one)) 1 'a session that ends gives its threads back'
query -c "SELECT pg_cancel_backend(pid) FROM pg_stat_progress_kmeans WHERE datname = current_database()" >/dev/null
await 0 query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE datname = current_database()"
begin_endless 1
is "$(threads "$newest")" "$with_three" 'and so does a fit that is cancelled'
query -c "SELECT pg_cancel_backend($newest)" >/dev/null
wait
query -c 'DROP ROLE limit_user' -c 'DROP TABLE limit_rows, limit_few, limit_bad'
echo "1..$number"

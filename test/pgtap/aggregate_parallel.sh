#!/bin/bash
# The aggregate in parallel plans: many rows of a worker wait for the leader in the query's shared memory.
# The same models in every plan, and nothing left in /dev/shm after errors, timeouts and terminations on
# either side.
set -uo pipefail
lib=$(dirname "$0")/../../scripts/lib
source "$lib/tap.sh"
source "$lib/segments.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE part_rows WITH (parallel_workers = 3) AS
SELECT i % 5 AS g, ARRAY[i % 7, i % 11, i % 13, i % 17, i % 19, i % 23, i % 29, i % 31]::real[] AS f, (1 + i % 3)::float8 AS w
FROM generate_series(1, 400000) AS i;
CREATE TABLE part_bad WITH (parallel_workers = 3) AS SELECT g, f, w, 3 AS k FROM part_rows;
INSERT INTO part_bad SELECT g, f, w, 4 FROM part_rows LIMIT 1;
CREATE TABLE part_halves (LIKE part_rows) PARTITION BY LIST (g);
CREATE TABLE part_low PARTITION OF part_halves FOR VALUES IN (0, 1, 2);
CREATE TABLE part_high PARTITION OF part_halves FOR VALUES IN (3, 4);
INSERT INTO part_halves SELECT * FROM part_rows;
ANALYZE;
SQL
given="kmeans_options(init_centroids => '{{0,0,0,0,0,0,0,0},{6,1,2,3,4,5,6,7},{1,10,3,9,3,8,3,7},{3,3,3,3,18,20,28,30}}')"
whole="SELECT kmeans(f, 4, $given) FROM part_rows"
weighted="SELECT kmeans(f, 4, $given, w) FROM part_rows"
grouped="SELECT g, kmeans(f, 4, $given) FROM part_rows GROUP BY g ORDER BY g"
hashed="SELECT sum(hashtext(s::text)), count(*) FROM (SELECT g, kmeans(f, 4, $given) FROM part_rows GROUP BY g) AS s"
halves="SELECT g, kmeans(f, 4, $given) FROM part_halves GROUP BY g ORDER BY g"
# Groups of which every process has more than a megabyte, and rows that end somewhere in a page.
wide_given="kmeans_options(init_centroids => array_fill(0, ARRAY[1, 24])::float8[] || array_fill(9, ARRAY[1, 24])::float8[])"
wide="SELECT g, kmeans(f || f || f, 2, $wide_given) FROM part_rows GROUP BY g ORDER BY g"
narrow="SELECT kmeans(f[1:3], 2, kmeans_options(init_centroids => '{{0,0,0},{5,5,5}}')) FROM part_rows"
uneven="SELECT kmeans(f[1:7]::float8[], 2, kmeans_options(init_centroids => '{{0,0,0,0,0,0,0},{5,5,5,5,5,5,5}}')) FROM part_rows"
# An inner side that is read again for each outer row.
again="SELECT count(DISTINCT m), count(*) FROM generate_series(1, 3) AS i LEFT JOIN (SELECT kmeans(f, 4, $given) AS m FROM part_rows) AS s ON i <> (m).k"
again_sorted="SELECT count(DISTINCT m), count(*) FROM generate_series(1, 3) AS i LEFT JOIN (SELECT g, kmeans(f, 4, $given) AS m FROM part_rows GROUP BY g) AS s ON i <> g + 10"

again_limited="SELECT count(DISTINCT m), count(*) FROM generate_series(1, 3) AS i LEFT JOIN (SELECT g, kmeans(f, 4, $given) AS m FROM part_rows GROUP BY g ORDER BY g LIMIT 2) AS s ON i <> g + 10"

serial="SET max_parallel_workers_per_gather = 0"
parallel="SET max_parallel_workers_per_gather = 3; SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001; SET parallel_tuple_cost = 0.01"
serial_answer() { query -c "$serial" -c "$1" | md5sum; }
# compare NAME STATEMENT PLAN SETTINGS: the same as serially, by a plan that has those nodes.
compare() {
    local plan
    plan=$(query -c "$parallel" -c "$4" -c "EXPLAIN (COSTS OFF) $2" | tr -d '\n')
    [[ $plan =~ $3 ]] && [ "$(query -c "$parallel" -c "$4" -c "$2" | md5sum)" = "$(serial_answer "$2")" ]
    result $? "$1"
    [[ $plan =~ $3 ]] || echo "# $plan"
}

compare 'one state per process' "$whole" 'Finalize Aggregate.*Gather.*Partial Aggregate' 'SELECT'
compare 'with weights' "$weighted" 'Finalize Aggregate.*Gather.*Partial Aggregate' 'SELECT'
compare 'without the leader' "$whole" 'Gather' 'SET parallel_leader_participation = off'
compare 'groups, hashed on both sides' "$hashed" 'Finalize HashAggregate.*Gather .*Partial HashAggregate' "SET work_mem = '1GB'; SET enable_sort = off"
compare 'groups, sorted on both sides' "$grouped" 'Finalize GroupAggregate.*Gather Merge.*Partial GroupAggregate' 'SET enable_hashagg = off'
compare 'groups, sorted above the gather' "$grouped" 'Finalize GroupAggregate.*Sort.*Gather .*Partial' 'SET enable_gathermerge = off; SET enable_hashagg = on'
compare 'rows of 12 bytes' "$narrow" 'Finalize Aggregate.*Gather.*Partial Aggregate' 'SELECT'
compare 'rows of 56 bytes' "$uneven" 'Finalize Aggregate.*Gather.*Partial Aggregate' 'SELECT'
compare 'large groups, sorted on both sides' "$wide" 'Finalize GroupAggregate.*Gather Merge.*Partial GroupAggregate' 'SET enable_hashagg = off'
compare 'large groups, sorted above the gather' "$wide" 'Finalize GroupAggregate.*Sort.*Gather .*Partial' 'SET enable_gathermerge = off; SET enable_hashagg = on'
compare 'within a limit' "$whole" 'Gather' "SET pg_kmeans.memory_limit = '60MB'"
compare 'partitions' "$halves" 'Parallel' 'SET enable_partitionwise_aggregate = on'
compare 'partitions of wide rows' "SELECT g, kmeans(f || f || f, 2, $wide_given) FROM part_halves GROUP BY g ORDER BY g" 'Parallel' 'SET enable_partitionwise_aggregate = on'
compare 'groups that spill' "$grouped" 'Aggregate' "SET work_mem = '64kB'"
compare 'read again' "$again" 'Nested Loop.*Finalize Aggregate.*Gather' 'SET enable_material = off; SET enable_hashjoin = off'
compare 'read again from a sort' "$again_sorted" 'Nested Loop' 'SET enable_material = off; SET enable_hashjoin = off; SET enable_gathermerge = off'
compare 'read again from a sort below a limit' "$again_limited" 'Nested Loop.*Limit.*Finalize.*Sort.*Gather .*Partial' 'SET enable_material = off; SET enable_hashjoin = off; SET enable_gathermerge = off'
[ -z "$(orphans)" ]
result $? 'nothing is left in shared memory'

# Groups that nobody asks for, and groups that have come when an error does, in a transaction that goes on.
ended="SELECT count(*) FROM (SELECT g, kmeans(f || f || f, 2, $wide_given) FROM part_rows GROUP BY g ORDER BY g LIMIT 1) AS s"
failed="SELECT g, kmeans(f || f || f, 2, $wide_given), 1 / g FROM part_rows GROUP BY g"
coproc session { psql -XqAt -v VERBOSITY=sqlstate 2>&1; }
session_pid=$session_PID # the shell unsets that one as soon as the session has ended
exec {to}>&"${session[1]}" {from}<&"${session[0]}"
# in_session STATEMENT...: what they print, in a session and transaction that stay open.
in_session() {
    local statement line
    for statement in "$@" '\echo --end--'; do echo "$statement;" >&"$to"; done
    while read -r line <&"$from" && [ "$line" != '--end--;' ]; do [ "$line" = ';' ] || echo "$line"; done
}
in_session "$parallel" 'SET enable_hashagg = off' 'BEGIN' >"$folder/setup"
[ "$(in_session "$ended")" = 1 ] && [ -z "$(orphans)" ]
result $? 'groups that nobody asked for are gone at the end of the statement'
for plan in 'SET enable_hashagg = off' 'SET enable_hashagg = on'; do
    in_session 'SAVEPOINT s' "$plan" "$failed" 'ROLLBACK TO s' >"$folder/failed"
    grep -q 22012 "$folder/failed" && [ -z "$(orphans)" ] && [ "$(in_session "$ended")" = 1 ]
    result $? "$plan: with the subtransaction"
done
echo '\q' >&"$to"
wait "$session_pid"

# While the leader is busy with the fit, it has the rows, and their shared memory is the system's again.
long="kmeans_options(init => 'first', tol => 0, max_iter => 1000000)"
query -c "$parallel" -c "SELECT kmeans(f, 500, $long), pg_sleep(0) FROM part_rows" >"$folder/out" 2>&1 &
victim=$!
until pid=$(query -c "SELECT pid FROM pg_stat_progress_kmeans WHERE datname = current_database()") && [ -n "$pid" ]; do sleep 0.05; done
segments_of_leader=$(grep -o '/dev/shm/PostgreSQL\.[0-9]*' "/proc/$pid/maps" | sort -u)
mapped_kb=$(du -ck --apparent-size $segments_of_leader | tail -n 1 | cut -f 1)
held_kb=$(du -ck $segments_of_leader | tail -n 1 | cut -f 1)
query -c "SELECT pg_cancel_backend($pid)" >/dev/null
wait $victim
[ "$mapped_kb" -ge 12500 ]
result $? "400,000 rows of 32 bytes came through shared memory ($mapped_kb kB)"
[ "$held_kb" -le 4000 ]
result $? "and it is given back before the fit ($held_kb kB are left)"
grep -q 'canceling statement' "$folder/out"
result $? 'a cancel during the fit'

# The session goes on: its own answer, in order, and no more segments mapped than before.
expected=$(query -c "$serial" -c "$whole")
sound() {
    holds_no_more "$1" && grep -qxF "$expected" "$1"
}
prologue="$parallel; SELECT ($whole) IS NULL; $(mapped before);"
epilogue="$whole; $(mapped after);"

{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for ((ms = 2; ms <= 400; ms += 8)); do echo "SET LOCAL statement_timeout = $ms \\; SELECT md5(($whole)::text);"; done
    echo "$epilogue"
} | psql -XqAt >"$folder/timeouts" 2>"$folder/errors"
grep -q 57014 "$folder/errors" && ! grep -v 57014 "$folder/errors" | grep -q . && sound "$folder/timeouts"
result $? "$(grep -c 57014 "$folder/errors") timeouts at all moments"

{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for _ in 1 2 3 4 5 6; do
        echo "SELECT kmeans(f, k) FROM part_bad;"                                        # in a worker, or when two meet
        echo "SELECT kmeans(f, 4, $given), 1 / (count(*) - 400000) FROM part_rows;"      # when all have been merged
        echo "SELECT kmeans(f, 3, kmeans_options(init_centroids => '{{1,2}}')) FROM part_rows;" # in the fit
    done
    echo "$epilogue"
} | psql -XqAt >"$folder/bad" 2>"$folder/errors"
[ "$(grep -c 22023 "$folder/errors")" -eq 12 ] && [ "$(grep -c 22012 "$folder/errors")" -eq 6 ] && sound "$folder/bad"
result $? "errors in workers, between and in the fit: $(sort "$folder/errors" | uniq -c | tr -s ' \n' ' ')"

{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for _ in $(seq 30); do echo "SELECT md5(($whole)::text);"; done
    echo "$epilogue"
} | psql -XqAt >"$folder/killed" 2>"$folder/errors" &
victim=$!
while kill -0 $victim 2>/dev/null; do
    query -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database() AND query LIKE '%md5%'" >>"$folder/strikes" 2>&1
    sleep 0.05
done
wait $victim
! grep -vE '57P01|55000|08006' "$folder/errors" | grep -q . && sound "$folder/killed"
result $? "$(grep -c t "$folder/strikes") workers terminated, $(wc -l <"$folder/errors") statements failed"

# The leader itself is terminated while its workers read, or just after.
for delay in 0.05 0.1 0.2 0.3; do
    : >"$folder/leader"
    psql -XqAt -c 'SELECT pg_backend_pid()' -c "$parallel" -c "$whole" -c "$whole" -c "$whole" >"$folder/leader" 2>/dev/null &
    victim=$!
    until pid=$(head -n 1 "$folder/leader") && [ -n "$pid" ]; do sleep 0.01; done
    sleep $delay
    query -c "SELECT pg_terminate_backend($pid)" >/dev/null
    wait $victim
done
query -c "DO \$\$BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database()) LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP; END\$\$"
left=$(orphans)
[ -z "$left" ]
result $? "after all that nothing is left in shared memory${left:+: $(cd /dev/shm && ls -l $left 2>&1 | tr '\n' ' ')}"
echo 1..$number

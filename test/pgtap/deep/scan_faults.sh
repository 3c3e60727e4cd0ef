#!/bin/bash
# The direct scan under fire: timeouts at every moment of it, bad rows, workers that are
# terminated, too little memory. Each time the session goes on, and nothing is left: no
# mapped segment, no worker, no memory on the account.
set -uo pipefail
lib=$(dirname "$0")/../../../scripts/lib
source "$lib/tap.sh"
source "$lib/segments.sh"
limit_ms=120 # two steps of the clock of processor time
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE scan_rows WITH (parallel_workers = 3) AS
SELECT (i % 7)::real AS a, (i % 11)::real AS b, (i % 13)::real AS c, (i % 17)::real AS d, (i % 19)::real AS e,
       (i % 23)::real AS f, (i % 29)::real AS g, (i % 31)::real AS h
FROM generate_series(1, 1000000) AS i;
CREATE TABLE scan_bad WITH (parallel_workers = 3) AS SELECT a, b FROM scan_rows LIMIT 300000;
INSERT INTO scan_bad SELECT 'NaN', i FROM generate_series(1, 1000) AS i;
ANALYZE scan_rows, scan_bad;
SQL
settings="SET pg_kmeans.scan = direct; SET pg_kmeans.cpu_threads = 1; SET max_parallel_workers_per_gather = 3;"
labels="SELECT count(*) FROM kmeans_labels('scan_rows', '{a,b,c,d,e,f,g,h}', 1, options => kmeans_options(init => 'first', max_iter => 1))"
fit="SELECT to_jsonb(kmeans_fit('scan_rows', '{a,b,c,d,e,f,g,h}', 1, options => kmeans_options(init => 'first', max_iter => 1))) - 'origin'"
expected=$(query -c "SET pg_kmeans.scan = executor" -c "$fit")

# Whether a session's output says that it still works and holds nothing more than before.
sound() {
    holds_no_more "$1" && grep -qxF "$expected" "$1"
}
epilogue="$fit; $(mapped after);"
# The first parallel statement of a session maps what it shares with all its later workers.
prologue="$settings $labels; $(mapped before);"

# Timeouts every 4 ms, until the statement is done before.
{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for ((ms = 4; ms <= 240; ms += 4)); do
        echo "$(used "start $ms");"
        echo "SET LOCAL statement_timeout = $ms \\; $labels;"
        echo "\\echo state :LAST_ERROR_SQLSTATE :ERROR"
        echo "$(used end);"
    done
    echo "$epilogue"
} | psql -XqAt >"$folder/timeouts" 2>"$folder/errors"
late=$(timeouts_late "$folder/timeouts" | sort -n)
[ "$(wc -l <<<"$late")" -ge 5 ] && [ "$(tail -n 1 <<<"$late")" -le $limit_ms ]
result $? "$(wc -l <<<"$late") timeouts at all moments, $(tail -n 1 <<<"$late") ms of the processor late at most"
! grep -vE '57014|01K01' "$folder/errors" | grep -q .
result $? "and no other error"
sound "$folder/timeouts"
result $? "after timeouts the session works and holds no segment"

{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo "SELECT kmeans_fit('scan_bad', '{a,b}', 2);"; done
    echo "$epilogue"
} | psql -XqAt >"$folder/bad" 2>"$folder/errors"
[ "$(grep -c 22023 "$folder/errors")" -eq 10 ]
result $? "a bad row is the same error every time"
sound "$folder/bad"
result $? "after bad rows the session works and holds no segment"

# Workers are terminated as they come, once the session has mapped what it keeps. Some statements fail, the
# session does not.
: >"$folder/killed"
{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for _ in $(seq 40); do echo "$labels;"; done
    echo "$epilogue"
} | psql -XqAt >"$folder/killed" 2>"$folder/errors" &
victim=$!
until grep -q '^before' "$folder/killed" || ! kill -0 $victim 2>/dev/null; do sleep 0.01; done
while kill -0 $victim 2>/dev/null; do
    query -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database() AND query LIKE '%kmeans_labels%'" >>"$folder/strikes" 2>&1
    sleep 0.1
done
wait $victim
grep -q t "$folder/strikes" && ! grep -vE '57P01|55000|08006|01K01' "$folder/errors" | grep -q .
result $? "$(grep -c t "$folder/strikes") workers terminated, $(grep -cv 01K01 "$folder/errors") statements failed"
sound "$folder/killed"
result $? "after that the session works and holds no segment"

# 32 MB of rows: not under 20 MB, but under 120 MB.
{
    echo '\set VERBOSITY sqlstate' && echo "$prologue"
    for _ in 1 2 3; do echo "SET pg_kmeans.memory_limit = '20MB'; $fit; SET pg_kmeans.memory_limit = '120MB'; $fit;"; done
    echo "RESET pg_kmeans.memory_limit; $epilogue"
} | psql -XqAt >"$folder/memory" 2>"$folder/errors"
[ "$(grep -c 54000 "$folder/errors")" -eq 3 ] && [ "$(grep -cxF "$expected" "$folder/memory")" -eq 4 ]
result $? "the memory limit holds, and what failed is given back"
sound "$folder/memory"
result $? "after that the session works and holds no segment"

left=$(query -c "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND datname = current_database() AND query LIKE '%scan_%'")
[ "$left" = 0 ]
result $? "no worker is left"
echo 1..$number

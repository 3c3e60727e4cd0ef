#!/bin/bash
# A cancel, a timeout and a termination take effect within 100 ms, whatever the phase, and
# leave the session (if there still is one) in order.
#
# A victim session runs a statement by two threads; this script strikes from outside. What counts is the processor time that
# the victim uses from then on, 100 ms a thread, for a busy machine delays a process by more than the code does.
# PGKM_DEEP=1: in every phase; else in those whose names begin with "+".
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
threads=2
limit_ms=$((100 * threads + 20)) # two steps of the clock
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query <<'SQL'
CREATE TABLE interrupt_rows AS
SELECT ARRAY[sin(i), cos(i * 7), sin(i * 3), cos(i * 11), sin(i * 13), cos(i), sin(i * 5), cos(i * 2)]::real[] AS f,
    sin(i)::real AS x, cos(i * 7)::real AS y
FROM generate_series(1, 400000) AS i;
ANALYZE interrupt_rows; -- without it the memory for the rows is a guess
CREATE TABLE interrupt_few AS SELECT x, y FROM interrupt_rows LIMIT 60000;
CREATE TABLE interrupt_wide AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) + (i = j)::integer ORDER BY j)::real[] AS f FROM generate_series(1, 1500) AS i, generate_series(1, 1200) AS j GROUP BY i;
CREATE TABLE interrupt_widest AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) ORDER BY j)::real[] AS f FROM generate_series(1, 300) AS i, generate_series(1, 3000) AS j GROUP BY i;
CREATE TABLE interrupt_some AS SELECT f FROM interrupt_widest LIMIT 40;
CREATE TABLE interrupt_long AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) ORDER BY j)::real[] AS f FROM generate_series(1, 3) AS i, generate_series(1, 500000) AS j GROUP BY i;
CREATE TABLE interrupt_mixture AS
SELECT ROW(1, 2500, 'full', '{1}', ARRAY[array_fill(0::float8, ARRAY[2500])], ARRAY[array_agg(r ORDER BY i)], 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model AS m
FROM (SELECT i, array_agg((i = j)::integer::float8 ORDER BY j) AS r FROM generate_series(1, 2500) AS i, generate_series(1, 2500) AS j GROUP BY i) AS s;
CREATE VIEW interrupt_endless AS SELECT i::real AS x FROM generate_series(1, 1000000000) AS i;
SQL

# [+]NAME@WHEN@STATEMENT. WHEN is the phase of pg_stat_progress_kmeans in which the strike comes, or, where the view does not
# tell, the seconds before it.
phases=(
    "+reading@scanning rows@SELECT kmeans_fit('interrupt_endless', '{x}', 2)"
    "+seeding by k-means++@seeding@SELECT kmeans_fit('interrupt_rows', '{f}', 20000, options => kmeans_options(max_iter => 1))"
    "seeding by k-means||@seeding@SELECT kmeans_fit('interrupt_rows', '{f}', 20000, options => kmeans_options(init => 'k-means||', max_iter => 1))"
    "+iterating@iterating@SELECT kmeans_fit('interrupt_rows', '{f}', 2000, options => kmeans_options(init => 'first', tol => 0, max_iter => 100000))"
    "restarts@iterating@SELECT kmeans_fit('interrupt_few', '{x,y}', 10, options => kmeans_options(n_init => 1000000))"
    "bounded sizes, all rows@2.5@SELECT kmeans_fit('interrupt_rows', '{f}', 300, options => kmeans_options(init => 'random', tol => 0, min_size => 1300))"
    "bounded sizes, equal rows@1.5@SELECT kmeans(ARRAY[i % 3], 400, kmeans_options(init => 'random', tol => 0, max_iter => 100000, min_size => 700)) FROM generate_series(1, 300000) AS i"
    "+refining@refining@SELECT kmeans_fit('interrupt_few', '{x,y}', 1000, options => kmeans_options(init => 'random', max_iter => 1, n_init => 100000, refine => true))"
    "one long assignment@iterating@SELECT kmeans_fit('interrupt_rows', '{f}', 100000, options => kmeans_options(init => 'first', max_iter => 1))"
    "+the aggregate@iterating@SELECT kmeans(f, 2000, kmeans_options(init => 'first', tol => 0, max_iter => 100000)) FROM interrupt_rows"
    "+the window function@iterating@SELECT kmeans_label(f, 2000, kmeans_options(init => 'first', tol => 0, max_iter => 100000)) OVER () FROM interrupt_rows"
    "kmeans_step@0.5@SELECT kmeans_step(f, array_fill(0.5::float8, ARRAY[20000, 8])) FROM interrupt_rows"
    "kmeans_match@0.7@SELECT count(*) FROM (SELECT kmeans_model(array_agg(ARRAY[i * i % 7919, i * 31 % 10007])) AS a, kmeans_model(array_agg(ARRAY[i * 37 % 9973, i * i % 8011])) AS b FROM generate_series(1, 5000) AS i) AS s, kmeans_match(a, b)"
    "kmeans_labels@iterating@SELECT count(*) FROM kmeans_labels('interrupt_rows', '{f}', 2000, options => kmeans_options(init => 'first', tol => 0, max_iter => 100000))"
    "+many groups@iterating@SELECT g, kmeans(f, 20, kmeans_options(n_init => 100000)) FROM (SELECT f, (f[1] * 1000)::integer AS g FROM interrupt_rows) AS s GROUP BY g"
    "very many groups@0.8@SET work_mem = '1GB'; SELECT count(m) FROM (SELECT kmeans(ARRAY[i::real], 1) AS m FROM generate_series(1, 200000) AS i GROUP BY i) AS s"
    "+labels being written@writing@SELECT kmeans_cluster('interrupt_rows', '{x,y}', 1, options => kmeans_options(init => 'first', max_iter => 1))"
    "+streaming, seeding@seeding@SET pg_kmeans.memory_limit = '40MB'; SELECT kmeans_fit('interrupt_rows', '{f}', 3000, options => kmeans_options(init => 'k-means++'), memory => 'stream')"
    "+streaming, iterating@iterating@SET pg_kmeans.memory_limit = '12MB'; SELECT kmeans_fit('interrupt_rows', '{f}', 3, options => kmeans_options(init => 'random', tol => 0, n_init => 100000), memory => 'stream')"
    "kmeans_sweep@labelling@SELECT * FROM kmeans_sweep('interrupt_few', '{x,y}', 3, 1000000)"
    "the quality of many clusters@labelling@SELECT * FROM kmeans_sweep('interrupt_few', '{x,y}', 30000, 30020, options => kmeans_options(init => 'first', max_iter => 1))"
    "+silhouettes@labelling@SELECT * FROM kmeans_sweep('interrupt_rows', '{f}', 2, 2, options => kmeans_options(init => 'first', max_iter => 1), sample => 2000000)"
    "levels of a tree@iterating@SELECT count(*) FROM kmeans_tree('interrupt_rows', '{f}', '{500,100}', options => kmeans_options(tol => 0, max_iter => 100000))"
    "+a tree by bisecting@iterating@SELECT count(*) FROM kmeans_tree('interrupt_rows', '{f}', 'bisecting', 1000000)"
    "clusters within a radius@iterating@SELECT kmeans_fit('interrupt_rows', '{f}', 1, options => kmeans_options(max_radius => 1e-3))"
    "gmm_sweep@iterating@SELECT * FROM gmm_sweep('interrupt_few', '{x,y}', 1, 1000)"
    "kmeans_cluster@iterating@SELECT kmeans_cluster('interrupt_rows', '{f}', 2000, options => kmeans_options(init => 'first', tol => 0, max_iter => 100000))"
    "+expectation and maximisation@iterating@SELECT gmm_fit('interrupt_rows', '{f}', 40, options => gmm_options(tol => 0, max_iter => 100000))"
    "mixtures of many features@iterating@SELECT gmm_fit('interrupt_wide', '{f}', 3, options => gmm_options(reg_covar => 1, tol => 0, max_iter => 100000))"
    "a small mixture without end@iterating@SELECT gmm(ARRAY[i, i * i % 7, i % 3], 3, gmm_options(tol => 0, max_iter => 2147483647)) FROM generate_series(1, 50) AS i"
    "a small mixture again and again@iterating@SELECT gmm(ARRAY[i], 1, gmm_options(n_init => 2147483647)) FROM generate_series(1, 3) AS i"
    "+products of many features@1@SELECT pca(i.f) FROM interrupt_wide AS i, generate_series(1, 1000)"
    "products of very many features@1@SELECT pca(i.f) FROM interrupt_widest AS i, generate_series(1, 1000)"
    "factors of a large mixture@0.7@SELECT gmm_predict(m, array_fill(0, ARRAY[2500])) FROM interrupt_mixture"
    "+eigenvectors of many features@iterating@SELECT pca_fit('interrupt_widest', '{f}')"
    "components of few rows@iterating@SELECT pca(f) FROM (SELECT f FROM interrupt_widest LIMIT 3) AS s"
    "a full covariance of few rows@seeding@SELECT gmm(f, 1) FROM (SELECT f FROM interrupt_widest LIMIT 3) AS s"
    "a tied covariance of few rows@seeding@SELECT gmm_fit('interrupt_some', '{f}', 1, options => gmm_options(covariance_type => 'tied'))"
    "variances of few rows@iterating@SELECT gmm(f[1:10000], 1, gmm_options('diag', n_init => 100000)) FROM interrupt_long"
    "one variance of few rows@iterating@SELECT gmm(f[1:10000], 1, gmm_options('spherical', n_init => 100000)) FROM interrupt_long"
    "clusters of few rows@iterating@SELECT kmeans(f, 3, kmeans_options(init => 'random', n_init => 100000)) FROM interrupt_long"
    "seeding and fitting few rows@iterating@SELECT kmeans_fit('interrupt_long', '{f}', 3, options => kmeans_options(n_init => 100000))"
)

# await_moment PID WHEN: into the phase, not to its first moment.
await_moment() {
    if [[ $2 == [0-9]* ]]; then
        sleep "$2"
    else
        query -c "SET statement_timeout = '60s'" -c "DO \$\$BEGIN
            WHILE NOT EXISTS (SELECT FROM pg_stat_progress_kmeans WHERE pid = $1 AND phase = '$2') LOOP
                PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
            END LOOP;
            PERFORM pg_sleep(0.15);
            END\$\$"
    fi
}

# strike KIND SQLSTATE NAME WHEN STATEMENT
strike() {
    local kind=$1 wanted=$2 name=$3 when=$4 statement=$5 pid before after now state=none victim
    {
        echo '\set VERBOSITY sqlstate'
        echo "SELECT pg_backend_pid(); SET pg_kmeans.cpu_threads = $threads;"
        [ "$kind" != timeout ] || echo "$(used before); SET statement_timeout = '${when}s';"
        echo "$statement;"
        echo "\\echo state :LAST_ERROR_SQLSTATE"
        echo "RESET statement_timeout; $(used after);"
        # The session goes on: the same kind of work, with threads and memory of its own.
        echo "SELECT 'again ' || (kmeans_fit('interrupt_few', '{x,y}', 3)).k;"
    } >"$folder/victim.sql"
    : >"$folder/victim.out" # or an earlier victim's pid is taken for this one's
    timeout 300 psql -XqAt -f "$folder/victim.sql" >"$folder/victim.out" 2>"$folder/victim.err" &
    victim=$!
    until pid=$(head -n 1 "$folder/victim.out") && [ -n "$pid" ]; do sleep 0.01; done
    if [ "$kind" != timeout ]; then
        await_moment "$pid" "$when" >&2 || wanted='another state: it never got there'
        before=$(processor_ms "$pid")
        if [ "$kind" = cancel ]; then kill -INT "$pid"; else kill -TERM "$pid"; fi # as pg_cancel_backend and pg_terminate_backend
        while [ "$kind" = terminate ] && now=$(processor_ms "$pid"); do after=$now; done
    fi
    wait $victim
    if [ "$kind" = terminate ]; then
        state=$(grep -oE '57P01' "$folder/victim.err" | head -n 1)
    else
        state=$(awk '/^state/ { print $2 }' "$folder/victim.out")
        after=$(awk "/^after used/ { print $used_ms }" "$folder/victim.out")
        # A timeout strikes when its seconds have passed: the threads may have used as much before.
        [ "$kind" != timeout ] || before=$(awk "/^before used/ { print $used_ms + $when * 1000 * $threads }" "$folder/victim.out")
        grep -q '^again 3$' "$folder/victim.out" || state=broken
    fi
    [ "$state" = "$wanted" ] && [ $((after - before)) -le $limit_ms ]
    result $? "$kind during $name ($((after - before)) ms of the processor${state:+, $state})"
}

for phase in "${phases[@]}"; do
    IFS=@ read -r name when statement <<<"$phase"
    [[ $name == +* || -n ${PGKM_DEEP:-} ]] || continue
    strike cancel 57014 "${name#+}" "$when" "$statement"
done
iterating="SELECT kmeans_fit('interrupt_rows', '{f}', 2000, options => kmeans_options(init => 'first', tol => 0, max_iter => 100000))"
strike timeout 57014 iterating 1.5 "$iterating"
strike timeout 57014 reading 0.3 "SELECT kmeans_fit('interrupt_endless', '{x}', 2)"
strike terminate 57P01 iterating iterating "$iterating"
strike terminate 57P01 reading 'scanning rows' "SELECT kmeans_fit('interrupt_endless', '{x}', 2)"

# What a cancelled statement held is free again (some 40 MB): cancelled ten times under a limit that only
# one at a time fits, the session still has room for the next.
{
    echo "SET pg_kmeans.cpu_threads = 2; SET pg_kmeans.memory_limit = '60MB'; SET statement_timeout = '150ms';"
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo "$iterating;"; done
    echo "RESET statement_timeout;"
    echo "SELECT 'again ' || (kmeans_fit('interrupt_rows', '{f}', 3)).k;"
} | psql -XqAt >"$folder/out" 2>"$folder/err"
[ "$(grep -c 'statement timeout' "$folder/err")" -eq 10 ] && grep -q '^again 3$' "$folder/out"
result $? "memory is given back"

left=$(query -c "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%interrupt_%' AND state = 'active' AND pid <> pg_backend_pid()
    AND backend_type <> 'autovacuum worker'")
[ "$left" = 0 ]
result $? "nothing runs on"
echo 1..$number

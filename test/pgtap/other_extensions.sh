#!/bin/bash
# Beside other extensions. Those that take part in planning: tables are scanned directly as long as the plan is no other,
# whoever looks at it, and are read by the plan that such an extension has made. Those that store tables: directly, where
# their access method can scan ranges of ctids.
set -uo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
gcc -shared -fPIC -I"$("$PG_CONFIG" --includedir-server)" -o "$folder/foreign.so" "$here/test/support/foreign_extension.c" || exit 1

query <<'SQL'
CREATE TABLE hook_rows (g integer, x real, y real) PARTITION BY LIST (g);
CREATE TABLE hook_even PARTITION OF hook_rows FOR VALUES IN (0);
CREATE TABLE hook_odd PARTITION OF hook_rows FOR VALUES IN (1);
INSERT INTO hook_rows SELECT i % 2, sin(i), cos(i * 7) FROM generate_series(1, 5000) AS i;
SQL
fit() { echo "to_jsonb(kmeans_fit('$1', '{x,y}', 4, options => kmeans_options(init => 'k-means||')$2)) - 'origin'"; }
# with FIRST SECOND ADDS CALL: how the rows of a call come and whether the model is the one of no hook, with two libraries
# loaded in that order.
with() {
    query -c "LOAD '$1'" -c "LOAD '$2'" -c "SET stranger.adds = $3" -c "SELECT ($4) = model FROM hook_models WHERE name = '$5'" -c 'SELECT scan FROM kmeans_last_run()' | paste -sd ' '
}
for table in hook_rows hook_even; do
    query -c "CREATE TABLE IF NOT EXISTS hook_models (name text, model jsonb)" -c "INSERT INTO hook_models SELECT '$table', $(fit $table '')"
    for order in "pg_kmeans $folder/foreign" "$folder/foreign pg_kmeans"; do
        is "$(with $order off "$(fit $table '')" $table)" 't direct' "$table, a hook that adds no path (${order##*/}): a direct scan"
        is "$(with $order off "$(fit $table ", memory => 'stream'")" $table)" 't stream' 'whose rows can be streamed'
        is "$(with $order on "$(fit $table '')" $table)" 't executor' "$table, a hook that adds one: its plan"
    done
done
is "$(psql -XqAt -v VERBOSITY=sqlstate -c "LOAD '$folder/foreign'" -c 'SET stranger.adds = on' -c "SELECT kmeans_fit('hook_rows', '{x,y}', 4, memory => 'stream')" 2>&1)" 'ERROR:  0A000' 'which cannot be streamed'

query <<SQL
CREATE FUNCTION like_heap(internal) RETURNS table_am_handler AS '$folder/foreign' LANGUAGE c;
CREATE FUNCTION without_ranges(internal) RETURNS table_am_handler AS '$folder/foreign' LANGUAGE c;
CREATE FUNCTION of_servers(internal) RETURNS table_am_handler AS '$folder/foreign' LANGUAGE c;
CREATE ACCESS METHOD of_servers TYPE TABLE HANDLER of_servers;
CREATE ACCESS METHOD like_heap TYPE TABLE HANDLER like_heap;
CREATE ACCESS METHOD without_ranges TYPE TABLE HANDLER without_ranges;
SQL
for method in like_heap:direct without_ranges:executor; do
    way=${method#*:} method=${method%:*}
    query -c "CREATE TABLE stored_$method USING $method AS TABLE hook_even" -c "UPDATE stored_$method SET x = 2 WHERE x > 0.9" -c "UPDATE hook_even SET x = 2 WHERE x > 0.9 AND '$method' = 'like_heap'"
    is "$(query -c "SELECT ($(fit "stored_$method" '')) = ($(fit hook_even '')), (SELECT count(*) FROM kmeans_labels('stored_$method', '{x,y}', 4))" -c "SELECT (kmeans_fit('stored_$method', '{x,y}', 4)).n" -c 'SELECT scan FROM kmeans_last_run()' | paste -sd ' ')" "t|2500 2500 $way" "access method $method: $way"
done
query -c "CREATE TABLE stored_of_servers USING of_servers AS TABLE hook_even"
is "$(query -c "SELECT ($(fit stored_of_servers '')) = ($(fit hook_even '')), count(*), count(DISTINCT ctid) < count(*) FROM stored_of_servers")" 't|2500|t' 'rows of which several have the same place all count'
echo "1..$number"

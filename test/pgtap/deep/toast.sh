#!/bin/bash
# Values in a TOAST table, while others insert, update, delete, roll
# back, clean up and rewrite: every snapshot gets its own values. Also pgvector's types, timeouts, and what is damaged.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
writers=()
extensions=$(query -c "SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'")/extension
mine=("$extensions/vector--wide.sql")
folder=$(mktemp -d)
trap 'kill "${writers[@]}" 2>/dev/null; rm -rf "$folder" "${mine[@]}"' EXIT

# Feature j of a row is v * j % 1009, so that sums tell whether any chunk belongs to another version or row.
query <<'SQL'
CREATE FUNCTION wide(v integer) RETURNS real[] IMMUTABLE LANGUAGE sql RETURN (SELECT array_agg((v * j % 1009)::real ORDER BY j) FROM generate_series(1, 1536) AS j);
CREATE TABLE wide_rows (id integer PRIMARY KEY, v integer, note text, f real[]) WITH (parallel_workers = 2, autovacuum_enabled = off);
ALTER TABLE wide_rows ALTER f SET STORAGE external, ALTER note SET STORAGE external;
INSERT INTO wide_rows SELECT i, i, CASE WHEN i % 10 = 0 THEN repeat('n', i * 20) END, wide(i) FROM generate_series(1, 600) AS i;
CREATE TABLE wide_stop ();
CREATE SEQUENCE wide_changes;
CREATE PROCEDURE wide_write(own integer) LANGUAGE plpgsql AS $$
BEGIN
    FOR turn IN 1 .. 1000000000 LOOP
        EXIT WHEN EXISTS (SELECT FROM wide_stop);
        UPDATE wide_rows SET v = v + turn, f = wide(v + turn) WHERE id % 2 = own AND id % 37 = turn % 37;
        UPDATE wide_rows SET note = repeat('m', turn % 5000) WHERE id % 2 = own AND id % 41 = turn % 41;
        DELETE FROM wide_rows WHERE id % 2 = own AND id % 43 = turn % 43;
        INSERT INTO wide_rows SELECT i, turn, NULL, wide(turn) FROM generate_series(1, 600) AS i
            WHERE i % 2 = own AND i % 43 = (turn + 40) % 43 AND NOT EXISTS (SELECT FROM wide_rows WHERE id = i);
        PERFORM nextval('wide_changes');
        IF turn % 4 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END$$;
CREATE FUNCTION wide_differs(relation text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    scanned double precision[] := (kmeans_fit(relation, '{f}', 1)).centroids;
    summed double precision[];
    answer text;
BEGIN
    EXECUTE format('SELECT (kmeans(f, 1)).centroids FROM %I', relation) INTO summed;
    EXECUTE format('SELECT count(*) || '' features differ'' FROM (SELECT j, avg(v * j %% 1009)::real AS mean FROM %I, generate_series(1, 1536, 5) AS j GROUP BY j) AS s
        WHERE mean IS DISTINCT FROM $1[1][j]::real OR mean IS DISTINCT FROM $2[1][j]::real', relation) INTO answer USING scanned, summed;
    RETURN answer;
END$$;
SQL
for own in 0 1; do
    query -c "CALL wide_write($own)" &
    writers+=($!)
done
(until [ "$(query -c 'SELECT EXISTS (SELECT FROM wide_stop)')" = t ]; do
    query -c 'VACUUM wide_rows' -c "SELECT nextval('wide_changes')" -c 'VACUUM (FREEZE) wide_rows' -c 'REINDEX TABLE wide_rows' \
        -c 'VACUUM FULL wide_rows' >/dev/null || exit 1
    sleep 0.1
done) &
writers+=($!)

for workers in 0 2; do
    for isolation in 'REPEATABLE READ' 'READ COMMITTED'; do
        # In a snapshot that grows old, or in those of single statements, where the table must not change in between.
        lock='SET LOCAL jit = off'
        [ "$isolation" = 'REPEATABLE READ' ] || lock='LOCK TABLE wide_rows IN SHARE MODE'
        differs=$(for _ in 1 2 3 4; do
            query -c "SET max_parallel_workers_per_gather = $workers" -c "BEGIN ISOLATION LEVEL $isolation" -c "$lock" -c "SELECT wide_differs('wide_rows')" \
                -c "DO 'BEGIN PERFORM pg_sleep(0.2); END'" -c "SELECT wide_differs('wide_rows')" -c COMMIT || echo failed
        done | sort -u)
        is "$differs" '0 features differ' "$isolation, $workers workers: the values of the snapshot"
    done
done
query -c 'INSERT INTO wide_stop DEFAULT VALUES'
status=0
for writer in "${writers[@]}"; do wait "$writer" || status=1; done
writers=()
result $status 'others have written and cleaned up all the time'
is "$(query -c "SELECT last_value > 20 FROM wide_changes")" t 'and often'

# --- as many workers as what is read is worth, TOAST included, but not other columns there ---
query <<'SQL'
CREATE TABLE wide_many (note text, f real[]) WITH (autovacuum_enabled = off);
ALTER TABLE wide_many ALTER f SET STORAGE external, ALTER note SET STORAGE external;
INSERT INTO wide_many SELECT NULL, array_fill(i::real, ARRAY[8000]) FROM generate_series(1, 3500) AS i;
ANALYZE wide_many;
SQL
workers() { query -c 'SET min_parallel_table_scan_size = 0' -c "SELECT (kmeans_fit('wide_many', '{f}', 1)).centroids[1][$1]" -c 'SELECT workers > 0, rows_scanned FROM kmeans_last_run()'; }
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 262144 ] 2>/dev/null; then
    is "$(workers 8000)" $'1750.5\nt|3500' 'workers for a large TOAST table'
else
    result 0 'workers for a large TOAST table # SKIP there is too little shared memory'
fi
query -c "UPDATE wide_many SET note = repeat('n', 32000), f = ARRAY[1, 2]" -c 'ANALYZE wide_many'
is "$(workers 2)" $'2\nf|3500' 'and none where it holds another column'
query -c 'DROP TABLE wide_many'

# --- timeouts: late by less than 100 ms, and nothing is left open ---
query <<'SQL'
CREATE TABLE wide_long (f real[]) WITH (parallel_workers = 2, autovacuum_enabled = off);
ALTER TABLE wide_long ALTER f SET STORAGE external;
INSERT INTO wide_long SELECT array_fill(i::real, ARRAY[1536]) FROM generate_series(1, 8000) AS i;
VACUUM ANALYZE wide_long;
SQL
for call in "kmeans_load('wide_long', '{f}')" '(SELECT kmeans(f, 1) IS NULL FROM wide_long)'; do
    {
        echo '\set VERBOSITY sqlstate'
        echo 'SET pg_kmeans.cpu_threads = 1;'
        for ((ms = 2; ms <= 60; ms += 2)); do
            echo "$(used "start $ms");"
            # For the call alone: on a busy machine any other statement could end by it, too.
            echo "SET LOCAL statement_timeout = $ms \\; SELECT $call;"
            echo "\\echo state :LAST_ERROR_SQLSTATE :ERROR"
            echo "$(used end);"
        done
        # A pin that was left would make it wait.
        echo "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) wide_long; SELECT 'sum ' || (kmeans_fit('wide_long', '{f}', 1)).centroids[1][1536];"
        echo "SELECT 'open ' || count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (SELECT reltoastrelid FROM pg_class WHERE relname = 'wide_long');"
    } | psql -XqAt >"$folder/out" 2>"$folder/errors"
    late=$(timeouts_late "$folder/out" | sort -n)
    [ "$(wc -l <<<"$late")" -ge 3 ] && [ "$(tail -n 1 <<<"$late")" -le 120 ]
    result $? "$(wc -l <<<"$late") timeouts, $(tail -n 1 <<<"$late") ms of the processor late at most"
    is "$(grep -E '^(sum|open)' "$folder/out"; grep -v 57014 "$folder/errors")" $'sum 4000.5\nopen 0' 'and the session goes on, with nothing open'
done

# --- a cancel within one value ends reading it ---
query <<'SQL'
CREATE TABLE wide_one (f real[]) WITH (autovacuum_enabled = off);
ALTER TABLE wide_one ALTER f SET STORAGE external;
INSERT INTO wide_one SELECT array_fill(1::real, ARRAY[40000000]);
SQL
for call in "kmeans_fit('wide_one', '{f}', 1)" '(SELECT kmeans(f, 1) IS NULL FROM wide_one)'; do
    is "$(psql -XqAt -v VERBOSITY=sqlstate 2>&1 <<SQL
SELECT pg_stat_reset() IS NULL;
SET LOCAL statement_timeout = 20 \; SELECT $call;
SELECT pg_stat_force_next_flush() IS NULL;
SELECT toast_blks_read + toast_blks_hit < pg_relation_size(reltoastrelid) / 8192 / 2 FROM pg_statio_user_tables JOIN pg_class ON pg_class.oid = relid WHERE relid = 'wide_one'::regclass;
SQL
)" $'f\nERROR:  57014\nf\nt' "a timeout within a value: ${call%%(f*}"
done
query -c 'DROP TABLE wide_one'

# --- pgvector's types out of line, by an extension of that name whose values are any bytes ---
if [ ! -e "$extensions/vector.control" ]; then
    mine+=("$extensions/vector.control")
    printf "default_version = 'wide'\nrelocatable = true\n" >"$extensions/vector.control"
fi
for type in vector halfvec; do
    cat <<SQL
CREATE TYPE $type;
CREATE FUNCTION ${type}_in(cstring) RETURNS $type AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION ${type}_out($type) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE $type (INPUT = ${type}_in, OUTPUT = ${type}_out, INTERNALLENGTH = VARIABLE, STORAGE = extended);
CREATE FUNCTION ${type}_to_real($type) RETURNS real[] AS \$\$ SELECT '{7,7}'::real[] \$\$ LANGUAGE sql IMMUTABLE STRICT;
CREATE CAST ($type AS real[]) WITH FUNCTION ${type}_to_real($type);
SQL
done >"$extensions/vector--wide.sql"
query -c "CREATE EXTENSION vector VERSION 'wide'"
# The bytes of v * j % 8 for 1,536 values: as floats, and as halves.
floats=(00000000 0000803f 00000040 00004040 00008040 0000a040 0000c040 0000e040)
halves=(0000 003c 0040 0042 0044 0045 0046 0047)
values() { # TYPE V
    local -n digits=$1
    local j text=
    for ((j = 1; j <= 8; j++)); do text+=${digits[$2 * j % 8]}; done
    echo "'\\x00060000' || repeat('$text', 192)"
}
for type in vector halfvec; do
    digits=floats
    [ $type = vector ] || digits=halves
    for storage in external extended; do
        query -c 'DROP TABLE IF EXISTS wide_vectors, wide_arrays' -c "CREATE TABLE wide_vectors (note text, v $type)" -c "ALTER TABLE wide_vectors ALTER v SET STORAGE $storage" \
            -c 'CREATE TABLE wide_arrays (f real[])'
        for ((v = 1; v <= 40; v++)); do
            echo "INSERT INTO wide_vectors SELECT CASE WHEN $v % 3 > 0 THEN repeat('n', $v) END, ($(values $digits $((v % 8))))::$type;"
            echo "INSERT INTO wide_arrays SELECT array_agg(($v * j % 8)::real ORDER BY j) FROM generate_series(1, 1536) AS j;"
        done | query
        is "$(query -c "SET pg_kmeans.scan = direct" -c "SELECT md5((to_jsonb(kmeans_fit('wide_vectors', '{v}', 3, options => kmeans_options(seed => 4))) - 'origin')::text)")" \
            "$(query -c "SELECT md5((to_jsonb(kmeans_fit('wide_arrays', '{f}', 3, options => kmeans_options(seed => 4))) - 'origin')::text)")" "$type, $storage: what arrays of the same values give"
    done
done
query -c 'DROP TABLE wide_vectors' -c 'DROP EXTENSION vector CASCADE' 2>/dev/null

# --- a chunk that is missing or of the wrong size is the server's own error ---
toast=$(query -c "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'wide_long'")
outcome() { psql -XqAt -v VERBOSITY=sqlstate -c "$1" 2>&1 | sed 's/^.*ERROR: *//'; }
if [ "$(query -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_surgery'")" = 0 ]; then
    for text in 'kmeans_fit' 'kmeans'; do result 0 "$text # SKIP pg_surgery is not installed"; done
else
    query -c 'CREATE EXTENSION pg_surgery'
    chunk=$(query -c "SELECT ctid FROM $toast WHERE chunk_seq = 2 OFFSET 5000 LIMIT 1")
    query -c "SELECT heap_force_kill('$toast', ARRAY['$chunk'::tid])" >"$folder/out"
    is "$(outcome 'SELECT sum(f[1500]) FROM wide_long') $(outcome "SELECT kmeans_fit('wide_long', '{f}', 1)")" 'XX001 XX001' 'kmeans_fit: a missing chunk'
    is "$(outcome 'SELECT kmeans(f, 1) FROM wide_long')" XX001 'kmeans: a missing chunk'
    query -c 'DROP EXTENSION pg_surgery'
fi
echo "1..$number"

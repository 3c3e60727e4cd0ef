#!/bin/bash
# A scan of pages sees the rows that a SELECT in the same snapshot sees, whatever others do to the table
# meanwhile: writes that are committed, rolled back and rolled back in part, row locks, VACUUM, freezing,
# CLUSTER. By cursors, too, and on a standby.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"
source "$(dirname "$0")/../../../scripts/lib/copy.sh"
trap 'kill "${writers[@]}" 2>/dev/null; remove_copy' EXIT
writers=()
export PGOPTIONS="${PGOPTIONS:-} -c synchronize_seqscans=off -c min_parallel_table_scan_size=0 -c statement_timeout=10min"

query <<'SQL'
CREATE TABLE snap_rows (id integer PRIMARY KEY, g integer, y float8, note text) WITH (parallel_workers = 2, autovacuum_enabled = off);
CREATE TABLE snap_parts (id integer, g integer, y float8, note text) PARTITION BY LIST (g);
CREATE TABLE snap_part_0 PARTITION OF snap_parts FOR VALUES IN (0) WITH (parallel_workers = 2, autovacuum_enabled = off);
CREATE TABLE snap_part_1 PARTITION OF snap_parts FOR VALUES IN (1) WITH (parallel_workers = 2, autovacuum_enabled = off);
CREATE TABLE snap_stop ();
CREATE SEQUENCE snap_changes;
INSERT INTO snap_rows SELECT i, i % 2, CASE WHEN i % 7 <> 0 THEN sin(i) * 100 END, repeat('n', i % 200) FROM generate_series(1, 3000) AS i;
INSERT INTO snap_parts TABLE snap_rows;
INSERT INTO snap_rows SELECT -i, 0, i, NULL FROM generate_series(1, 199, 2) AS i; -- which nobody else writes

-- Writes rows of its own, until told to stop. Rows that it locks are none that another one deletes or moves.
CREATE PROCEDURE snap_write(own integer) LANGUAGE plpgsql AS $$
DECLARE
    relation text;
BEGIN
    FOR turn IN 1 .. 1000000000 LOOP
        EXIT WHEN EXISTS (SELECT FROM snap_stop);
        FOREACH relation IN ARRAY '{snap_rows,snap_parts}'::text[] LOOP
            EXECUTE format('UPDATE %I SET y = id * 0.01 + $2, g = (g + CASE WHEN id %% 5 = 2 THEN 0 ELSE $2 / 3 END) %% 2 WHERE id %% 2 = $1 AND id %% 37 = $2 %% 37', relation) USING own, turn;
            EXECUTE format('DELETE FROM %I WHERE id %% 2 = $1 AND id %% 5 = 1 AND id %% 23 = $2 %% 23', relation) USING own, turn;
            EXECUTE format('SELECT FROM %I WHERE id %% 5 = 2 AND id %% 31 = $1 %% 31 FOR KEY SHARE SKIP LOCKED', relation) USING turn;
            BEGIN
                EXECUTE format('UPDATE %I SET y = -1e6 WHERE id %% 2 = $1 AND id %% 29 = $2 %% 29', relation) USING own, turn;
                RAISE 'undone';
            EXCEPTION WHEN raise_exception THEN
            END;
            EXECUTE format('INSERT INTO %I SELECT i, i %% 2, $2, NULL FROM generate_series(1, 3000) AS i WHERE i %% 2 = $1 AND i %% 5 = 1
                AND i %% 23 = ($2 + 11) %% 23 AND NOT EXISTS (SELECT FROM %1$I WHERE id = i)', relation) USING own, turn;
        END LOOP;
        PERFORM nextval('snap_changes');
        IF turn % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
        PERFORM pg_sleep(0.02);
    END LOOP;
END$$;

-- Lets the snapshot grow old, for a while: on a standby changes may have to wait for it.
CREATE FUNCTION snap_wait(changes integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    goal CONSTANT bigint := changes + (SELECT last_value FROM snap_changes);
BEGIN
    FOR i IN 1 .. 20 LOOP
        EXIT WHEN (SELECT last_value FROM snap_changes) >= goal;
        PERFORM pg_sleep(0.01);
    END LOOP;
END$$;

-- What a scan of pages says, beside the executor's model and a SELECT: the place and the value of each row.
CREATE FUNCTION snap_differs(relation text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    direct   kmeans_model;
    executor kmeans_model;
    wrong    bigint;
BEGIN
    PERFORM set_config('pg_kmeans.scan', 'direct', true);
    direct := kmeans_fit(relation, '{y}', 1);
    EXECUTE format('SELECT count(*) FROM kmeans_labels(%L, ''{y}'', 1) AS l (place, cluster, distance, source)
        FULL JOIN (SELECT ctid, tableoid, y FROM %1$I) AS s ON s.ctid = l.place AND s.tableoid = l.source
        WHERE l.place IS NULL OR s.ctid IS NULL OR l.distance IS DISTINCT FROM abs(s.y - $1)', relation) INTO wrong USING direct.centroids[1][1];
    PERFORM set_config('pg_kmeans.scan', 'executor', true);
    executor := kmeans_fit(relation, '{y}', 1);
    IF wrong > 0 OR direct::text <> executor::text THEN
        RETURN format('%s: %s rows are others, %s and %s took part; ', relation, wrong, direct.n, executor.n);
    END IF;
    RETURN '';
END$$;
SQL
for own in 0 1; do
    query -c "CALL snap_write($own)" &
    writers+=($!)
done
(until [ "$(query -c 'SELECT EXISTS (SELECT FROM snap_stop)')" = t ]; do
    query -c 'VACUUM snap_rows, snap_parts' -c 'CLUSTER snap_rows USING snap_rows_pkey' -c 'VACUUM (FREEZE) snap_rows, snap_parts' \
        -c 'VACUUM FULL snap_part_0' -c "SELECT nextval('snap_changes')" >"$folder/maintenance" || exit 1
    sleep 0.1
done) &
writers+=($!)

make_copy -R &
backup=$!

# compare FIRST PSQL-OPTION...: in snapshots of several ages, by one process and by several. FIRST comes before
# the snapshot is taken; where it ends by its lock_timeout, nothing was compared yet, and the round begins anew.
compare() {
    local round first=$1
    shift
    for round in 0 1 2 3; do
        until query "$@" -c "SET max_parallel_workers_per_gather = $((round % 2 * 2))" -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c "$first" -c 'SELECT' \
            -c "DO 'BEGIN PERFORM snap_wait($((round * 2))); END'" -c "SELECT snap_differs('snap_rows') || snap_differs('snap_parts')" -c COMMIT 2>"$folder/errors"; do
            grep -q 'due to lock timeout' "$folder/errors" || { cat "$folder/errors" >&2; echo failed; break; }
        done
    done | sort -u
}
is "$(compare '')" '' 'snapshots of several ages, by one process and by three'
# What a cursor returns is settled when it is declared, though its own transaction goes on writing.
for name in early late; do
    query -v cursor=$name >"$folder/cursors" <<'SQL'
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL pg_kmeans.scan = direct;
DECLARE early CURSOR FOR SELECT place FROM kmeans_labels('snap_rows', '{y}', 1) AS l (place);
DECLARE late CURSOR FOR SELECT place FROM kmeans_labels('snap_rows', '{y}', 1) AS l (place);
DECLARE plain CURSOR FOR SELECT ctid FROM snap_rows;
MOVE 10 IN early;
MOVE BACKWARD ALL IN early;
UPDATE snap_rows SET y = 5 WHERE id BETWEEN -99 AND -1;
SAVEPOINT inner_part;
DELETE FROM snap_rows WHERE id BETWEEN -49 AND -1;
ROLLBACK TO inner_part;
DELETE FROM snap_rows WHERE id BETWEEN -199 AND -149;
INSERT INTO snap_rows SELECT -i, 0, 1, NULL FROM generate_series(201, 299, 2) AS i;
FETCH ALL IN :cursor;
\echo then
FETCH ALL IN plain;
ROLLBACK;
SQL
    sed '1,/^then$/d' "$folder/cursors" >"$folder/plain"
    [ -s "$folder/plain" ] && sed '/^then$/,$d' "$folder/cursors" | cmp -s - "$folder/plain"
    result $? "a cursor whose rows are read $name"
done
wait $backup && start_copy max_standby_streaming_delay=-1 hot_standby_feedback=on
result $? 'a standby runs'
# Recovery takes a table's lock for CLUSTER and then waits for old snapshots: one that waited for that lock would
# wait for ever. So the locks are taken before the snapshot. The search for the tables' names has a snapshot of the
# catalogs, for which recovery may wait in the same way: lock_timeout ends that.
is "$(compare 'LOCK TABLE snap_rows, snap_parts IN ACCESS SHARE MODE' -p "$port" -c "SET lock_timeout = '2s'")" '' 'and on it'

query -c 'INSERT INTO snap_stop DEFAULT VALUES'
status=0
for writer in "${writers[@]}"; do wait "$writer" || status=1; done
writers=()
result $status 'others have written and cleaned up all the time'
echo "1..$number"

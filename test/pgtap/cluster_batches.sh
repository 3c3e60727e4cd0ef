#!/bin/bash
# What kmeans_cluster_batches holds: nothing that writers need while it fits, a batch of rows while it writes, and nothing while
# it waits for a row of theirs. No row is missed, whatever they move.
set -uo pipefail
source "$(dirname "$0")/../../scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

query -c "CREATE TABLE batch_rows AS SELECT i AS id, (i % 3 * 100 + sin(i))::real AS x FROM generate_series(1, 3000) AS i"

# state STATEMENT...: the error code of the first statement that fails, or nothing.
state() {
    local statement commands=()
    for statement in "$@"; do commands+=(-c "$statement"); done
    query -v VERBOSITY=sqlstate "${commands[@]}" 2>&1 >/dev/null | grep -oE '[0-9A-Z]{5}$'
}
call="CALL kmeans_cluster_batches('batch_rows', '{x}', 3, batch_rows => 50"
waits="SELECT count(*) FROM pg_stat_activity JOIN pg_stat_progress_kmeans USING (pid) WHERE wait_event_type = 'Lock' AND phase = 'writing'"
missed="SELECT count(*) FROM batch_rows WHERE cluster_id IS NULL"
# differ FILE CONDITION: how many such rows have another label than the model in the output of a call says.
differ() {
    query -v model="$(sed -n 's/|[0-9]*$//p' "$1")" <<<"SELECT count(*) FROM batch_rows WHERE $2 AND cluster_id IS DISTINCT FROM kmeans_predict(:'model'::kmeans_model, ARRAY[x])"
}
# holder STATEMENTS: has session HOLDER do so and waits until it has.
holder() {
    echo "$1" >&"${HOLDER[1]}"
    echo 'SELECT 1;' >&"${HOLDER[1]}"
    read -r _ <&"${HOLDER[0]}"
}

# A fit that does not end by itself, but with the test where nobody finds it.
state "SET statement_timeout = '10min'" "$call, options => kmeans_options(tol => 0, n_init => 100000000))" >"$folder/fit" &
victim=$!
await 1 query -c "SELECT count(*) FROM pg_stat_progress_kmeans WHERE restart > 1 AND datname = current_database()"
result $? 'it fits'
is "$(query -c "SELECT string_agg(DISTINCT mode, ',') FROM pg_locks JOIN pg_stat_progress_kmeans USING (pid) WHERE relation = 'batch_rows'::regclass")" \
    AccessShareLock 'under the lock of a SELECT'
is "$(state "SET lock_timeout = 10" "UPDATE batch_rows SET x = x WHERE id = 1" "ALTER TABLE batch_rows SET (fillfactor = 100)")" '' 'others write meanwhile'
query -c "SELECT pg_cancel_backend(pid) FROM pg_stat_progress_kmeans WHERE datname = current_database()" >/dev/null
wait $victim
is "$(cat "$folder/fit") $(query -c "SELECT count(*) FROM pg_attribute WHERE attrelid = 'batch_rows'::regclass AND attname = 'cluster_id'")" \
    '57014 0' 'a cancelled fit leaves no column'

# Somebody holds a row: all others get their labels, and are held no longer.
query -c "ALTER TABLE batch_rows ADD COLUMN cluster_id integer; COMMENT ON COLUMN batch_rows.cluster_id IS 'made by pg_kmeans'"
coproc HOLDER { query; }
holder 'BEGIN; UPDATE batch_rows SET x = 201 WHERE id = 1500;'
is "$(state "SET lock_timeout = 100" "$call)") $(query -c "$missed")" '55P03 1' 'lock_timeout ends the wait for a row, and other labels stay'
query -c "UPDATE batch_rows SET cluster_id = NULL WHERE id <> 1500"
is "$(state "SET statement_timeout = '2s'" "$call)" | tr -d '\n')" 57014 'so does statement_timeout'
query -c "UPDATE batch_rows SET cluster_id = NULL WHERE id <> 1500"
query -c "$call)" >"$folder/model" &
waiting=$!
await 1 query -c "$waits"
result $? 'it waits for a row that somebody holds'
is "$(query -c "$missed") $(state "SET lock_timeout = 10" 'UPDATE batch_rows SET x = x WHERE id <> 1500')" '1 ' 'and holds none itself'
holder 'COMMIT;'
wait $waiting
is "$? $(differ "$folder/model" true)" '0 0' \
    'then the row gets the label of what it is now'

# A batch that does not end until somebody says so.
query <<'SQL'
CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id = 1500 AND NEW.cluster_id IS NOT NULL THEN PERFORM pg_advisory_xact_lock(40); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER wait_here BEFORE UPDATE ON batch_rows FOR EACH ROW EXECUTE FUNCTION wait_here();
SQL
held="SELECT 3000 - count(*) <= 50 FROM (SELECT FROM batch_rows FOR UPDATE SKIP LOCKED) AS rows"
# stopped ARGUMENTS: begins a call that stops in the batch with row 1500.
stopped() {
    query -c "CREATE TEMP TABLE kept AS SELECT id, x FROM batch_rows WHERE id <= 3000 ORDER BY id" -c 'TRUNCATE batch_rows' \
        -c 'INSERT INTO batch_rows SELECT id, x FROM kept'
    holder 'SELECT pg_advisory_lock(40) \g /dev/null'
    { state "$call$1)"; } >"$folder/call" &
    waiting=$!
    await 1 query -c "$waits"
}
# away STATEMENT: another session waits with it for the batch; then the batch goes on, and both end.
away() {
    query -c "$1" &
    local other=$!
    await 1 query -c "SELECT count(*) FROM pg_locks WHERE relation = 'batch_rows'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted"
    holder 'SELECT pg_advisory_unlock(40) \g /dev/null'
    wait $other $waiting
}
stopped ''
is "$(query -c "$held")" t 'a batch holds its rows, and no others'
# Rows that wait for their labels move to where the walk has been, or will not come.
is "$(query -c "WITH free AS (SELECT id FROM batch_rows WHERE cluster_id IS NULL FOR UPDATE SKIP LOCKED), moved AS (UPDATE batch_rows SET x = 200 FROM free WHERE batch_rows.id = free.id RETURNING 1) SELECT count(*) BETWEEN 1400 AND 1500 FROM moved")" \
    t 'others change the rows before and behind it'
query -c "INSERT INTO batch_rows SELECT i, 100 FROM generate_series(3001, 4000) AS i"
holder 'SELECT pg_advisory_unlock(40) \g /dev/null'
wait $waiting
is "$(cat "$folder/call") $(query -c "$missed") $(query -c 'SELECT count(DISTINCT (x, cluster_id)) FROM batch_rows WHERE x IN (100, 200)')" ' 0 2' \
    'rows that are moved or inserted meanwhile get their labels'
stopped ''
before=$(query -c "$missed")
query -c "SELECT pg_cancel_backend(pid) FROM pg_stat_progress_kmeans WHERE datname = current_database()" >/dev/null
wait $waiting
holder 'SELECT pg_advisory_unlock(40) \g /dev/null'
is "$(cat "$folder/call") $(query -c "$missed")" "57014 $before" \
    'a cancel within a batch takes back that batch'
stopped ''
away 'ALTER TABLE batch_rows RENAME TO batch_other'
is "$(cat "$folder/call") $(query -c "${missed/batch_rows/batch_other}")" ' 0' 'another name between batches does no harm'
query -c 'ALTER TABLE batch_other RENAME TO batch_rows'
stopped ''
away 'ALTER TABLE batch_rows RENAME x TO y'
is "$(cat "$folder/call")" 42703 'another name of a feature ends it'
query -c 'ALTER TABLE batch_rows RENAME y TO x'
stopped ''
away 'DROP TABLE batch_rows'
is "$(cat "$folder/call")" 42P01 'so does the end of the table'
echo '\q' >&"${HOLDER[1]}"

# Several at once, while others change rows all the time: no row is missed, and those nobody changed have the model's label.
query -c "CREATE TABLE batch_rows AS SELECT i AS id, (i % 3 * 100 + sin(i))::real AS x FROM generate_series(1, 3000) AS i"
writers=()
for writer in 0 1; do
    for ((i = 0; i < 300; i++)); do
        echo "UPDATE batch_rows SET x = 300 - x WHERE id > 1000 AND id % 37 = $((i % 37)) AND id % 2 = $writer;"
    done | query &
    writers+=($!)
done
calls=()
for i in 0 1 2; do
    query -c 'SET client_min_messages = error' -c "$call)" >"$folder/model.$i" 2>"$folder/call.$i" &
    calls+=($!)
done
wait "${calls[@]}" "${writers[@]}"
is "$(cat "$folder"/call.?) $(query -c "$missed")" ' 0' 'calls at once, and writers: no row is missed'
differing=$(for i in 0 1 2; do differ "$folder/model.$i" 'id <= 1000'; done)
grep -qx 0 <<<"$differing"
result $? 'rows that nobody changed have the labels of one model'

# Rows on other servers: refused before anybody asks them.
if [ "$(query -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'")" = 1 ]; then
    query -c 'CREATE EXTENSION postgres_fdw' -c 'CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw' -c 'CREATE TABLE far_rows (x real, cluster_id integer) PARTITION BY RANGE (x)' \
        -c 'CREATE FOREIGN TABLE far_part PARTITION OF far_rows FOR VALUES FROM (0) TO (1) SERVER far'
    is "$(state "CALL kmeans_cluster_batches('far_rows', '{x}', 3, overwrite => true, label_column => 'cluster_id')")" 0A000 'rows of other servers are refused'
fi
echo "1..$number"

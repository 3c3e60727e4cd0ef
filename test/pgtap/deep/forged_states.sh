#!/bin/bash
# Some distributed planners let any role hand bytes to a deserialization function. Here a superuser builds
# such a road: bytes that no state was written as are 22P03, and what names shared memory is believed only
# as one of the query's own processes wrote it.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"

gcc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" -o "$folder/mutate_state.so" "$here/test/support/mutate_state.c"
result $? 'the module that changes states is built'

query <<SQL
CREATE FUNCTION mutate_state(internal) RETURNS bytea AS '$folder/mutate_state.so' LANGUAGE C STRICT PARALLEL SAFE;
CREATE AGGREGATE mutated(real[], bigint, kmeans_options) (
    SFUNC = pgkm_transition, STYPE = internal, FINALFUNC = pgkm_final, COMBINEFUNC = pgkm_combine,
    SERIALFUNC = mutate_state, DESERIALFUNC = pgkm_deserialize, PARALLEL = SAFE);
CREATE AGGREGATE mutated(real[], bigint, kmeans_options, double precision) (
    SFUNC = pgkm_transition, STYPE = internal, FINALFUNC = pgkm_final, COMBINEFUNC = pgkm_combine,
    SERIALFUNC = mutate_state, DESERIALFUNC = pgkm_deserialize, PARALLEL = SAFE);
CREATE TABLE forged_rows WITH (parallel_workers = 2) AS
SELECT array_fill(i % 7, ARRAY[63]) || (i % 11)::int AS f FROM generate_series(1, 5000) AS i;
ALTER TABLE forged_rows ALTER f TYPE real[];
ANALYZE forged_rows;
SQL
# Of two workers one is started and reads all rows: more than a megabyte.
settings="SET max_parallel_workers = 1; SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001; SET parallel_tuple_cost = 0.01;
SET parallel_leader_participation = off"
options="kmeans_options(init_centroids => array_fill(0, ARRAY[1, 64])::float8[] || array_fill(9, ARRAY[1, 64])::float8[])"
plain="SELECT md5(mutated(f, 2, $options)::text) FROM forged_rows"
weighted="SELECT md5(mutated(f, 2, $options, 1)::text) FROM forged_rows"
right=$(query -c "SELECT md5(kmeans(f, 2, $options)::text) FROM forged_rows")

# mutations STATEMENT FIRST LAST: how it ends with a byte changed, at one of these places after the other.
mutations() {
    local at
    {
        echo "$settings; \set VERBOSITY sqlstate"
        for ((at = $2; at <= $3; at++)); do
            printf 'SET mutate.at = %d; SET mutate.by = %d;\n%s;\n' "$at" $((at % 2 == 0 ? 1 : 128)) "$1"
        done
    } | psql -XqAt 2>&1 | sed 's/^.*ERROR: *//' | sort | uniq -c | sed 's/^ *//'
}

query -c "$settings; SET mutate.at = 0; SET mutate.by = 0" -c "$plain" -c "$weighted" >"$folder/unchanged" 2>/dev/null
is "$(sort -u "$folder/unchanged")" "$right" 'states that are not changed give the model of a serial plan'

# Bytes 0 to 15 are the version and the length, 32 to 47 what the rows are, 64 to 79 where they are.
for statement in "$plain" "$weighted"; do
    is "$(mutations "$statement" 0 15)" '16 22P03' 'any byte changed of the version and the length is noticed'
    is "$(mutations "$statement" 32 47)" '16 22P03' 'any byte changed of what the rows are is noticed'
    is "$(mutations "$statement" 64 79)" '16 22P03' 'any byte changed of where the rows are is noticed'
done

# A state that names memory of its own query, as only our own serialization function may.
forged=$(query -c "$settings; SET mutate.at = 0; SET mutate.by = 1000; SET client_min_messages = notice" -c '\set VERBOSITY sqlstate' -c "$plain" 2>&1)
is "$(grep -c 'NOTICE' <<<"$forged") $(sed -n 's/^.*ERROR: *//p' <<<"$forged")" '1 22P03' 'memory that another function names is not believed'

query <<'SQL'
CREATE FUNCTION raw_deserialize(bytea) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_deserialize' LANGUAGE C STRICT;
CREATE FUNCTION raw_combine(bigint, bigint) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_combine' LANGUAGE C;
CREATE FUNCTION raw_final(bigint) RETURNS kmeans_model AS '$libdir/pg_kmeans', 'pgkm_aggregate_final' LANGUAGE C;
CREATE AGGREGATE feed(bigint) (SFUNC = raw_combine, STYPE = bigint, FINALFUNC = raw_final);
SQL
# The bytes of a state of a hundred rows, given by hand: as they are, and with a name of memory in them.
query -c 'CREATE AGGREGATE state_of(real[], bigint, kmeans_options) (SFUNC = pgkm_transition, STYPE = internal, FINALFUNC = pgkm_serialize)'
state=$(query -c "SELECT encode(state_of(f, 2, $options), 'hex') FROM (SELECT f FROM forged_rows LIMIT 100) AS s" | tr -d '\n')
by_hand() { psql -XqAt -v VERBOSITY=sqlstate <<<"SELECT (feed(raw_deserialize('\\x$1'))).n;" 2>&1 | sed 's/^.*ERROR: *//'; }
is "$(by_hand "$state")" 100 'a state that is given by hand is read'
is "$(by_hand "${state:0:112}01000000000000000000100000000000010000000000000000${state:160}")" 22P03 'but not memory that it names'
echo "1..$number"

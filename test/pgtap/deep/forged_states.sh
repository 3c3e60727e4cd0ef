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
slices="SELECT md5(mutated(f, 2, $options)::text) FROM forged_rows"
copies="SELECT md5(mutated(f, 2, $options, 1)::text) FROM forged_rows"
# Both end with 48 bytes that say what the rows are and where, names of segments, and a seal of 32 bytes.
places=$(seq -80 3 -1)
right=$(query -c "SELECT md5(kmeans(f, 2, $options)::text) FROM forged_rows")

# mutations STATEMENT: how it ends with a byte changed, at one place after the other.
mutations() {
    {
        echo "$settings; \set VERBOSITY sqlstate"
        for at in $places; do
            printf 'SET mutate.at = %d; SET mutate.by = %d;\n%s;\n' "$at" $((at % 2 == 0 ? 1 : 128)) "$1"
        done
    } | psql -XqAt 2>&1 | sed 's/^.*ERROR: *//' | sort | uniq -c | sed 's/^ *//'
}
# The states that the statement's workers write, as they are, in hexadecimal digits.
states() { query -c "$settings; SET mutate.at = 0; SET mutate.by = 0; SET client_min_messages = notice" -c "$1" 2>&1 | sed -n 's/^.*state //p'; }

query -c "$settings; SET mutate.at = 0; SET mutate.by = 0" -c "$slices" -c "$copies" >"$folder/unchanged" 2>/dev/null
is "$(sort -u "$folder/unchanged")" "$right" 'states that are not changed give the model of a serial plan'
states "$slices" >"$folder/slices"
states "$copies" >"$folder/copies"
is "$(cat "$folder/slices" "$folder/copies" | awk '{ print length($1) < 4000 }' | sort | uniq -c | sed 's/^ *//')" '2 1' 'they name the rows and do not carry them'

is "$(mutations "$slices")" "$(wc -w <<<"$places") 22P03" 'any byte changed of what names segments is noticed'
is "$(mutations "$copies")" "$(wc -w <<<"$places") 22P03" 'any byte changed of what names an address is noticed'

query <<'SQL'
CREATE FUNCTION raw_deserialize(bytea) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_deserialize' LANGUAGE C STRICT;
CREATE FUNCTION raw_combine(bigint, bigint) RETURNS bigint AS '$libdir/pg_kmeans', 'pgkm_aggregate_combine' LANGUAGE C;
CREATE FUNCTION raw_final(bigint) RETURNS kmeans_model AS '$libdir/pg_kmeans', 'pgkm_aggregate_final' LANGUAGE C;
CREATE AGGREGATE feed(bigint) (SFUNC = raw_combine, STYPE = bigint, FINALFUNC = raw_final);
SQL
for road in slices copies; do
    sed "s/.*/SELECT feed(raw_deserialize('\\\\x&'));/" "$folder/$road" >"$folder/$road.sql"
    is "$(psql -XqAt -v VERBOSITY=sqlstate -f "$folder/$road.sql" 2>&1 | sed 's/^.*ERROR: *//' | sort | uniq -c | sed 's/^ *//')" \
        '1 22P03' "$road of another query are refused"
done
echo "1..$number"

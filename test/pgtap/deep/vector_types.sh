#!/bin/bash
# Whose storage is read as pgvector's: only that of base types which an extension called vector made itself, and
# only values as long as they say. The extension here is one of the test's own; pgvector itself comes last, where
# it is installed.
set -uo pipefail
source "$(dirname "$0")/../../../scripts/lib/tap.sh"

extensions=$(query -c "SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'")/extension
mine=("$extensions/vector--hostile.sql" "$extensions/vector--hostile.control" "$extensions/vector--damaged.sql")
if [ ! -e "$extensions/vector.control" ]; then
    mine+=("$extensions/vector.control")
    printf "default_version = 'hostile'\nrelocatable = true\n" >"$extensions/vector.control"
fi
trap 'rm -f "${mine[@]}"' EXIT
echo 'trusted = true' >"$extensions/vector--hostile.control"
echo '-- the owner adds what he likes' >"$extensions/vector--hostile.sql"
# A base type whose values may be any bytes.
cat >"$extensions/vector--damaged.sql" <<'SQL'
CREATE TYPE vector;
CREATE FUNCTION vector_in(cstring) RETURNS vector AS 'byteain' LANGUAGE internal IMMUTABLE STRICT;
CREATE FUNCTION vector_out(vector) RETURNS cstring AS 'byteaout' LANGUAGE internal IMMUTABLE STRICT;
CREATE TYPE vector (INPUT = vector_in, OUTPUT = vector_out, INTERNALLENGTH = VARIABLE, STORAGE = external);
CREATE FUNCTION vector_to_real(vector) RETURNS real[] AS $$ SELECT '{7,7}'::real[] $$ LANGUAGE sql IMMUTABLE STRICT;
CREATE CAST (vector AS real[]) WITH FUNCTION vector_to_real(vector);
SQL
# fit COLUMN TABLE [SETTING]: the only centroid, or an SQLSTATE.
fit() { psql -XqAt -v VERBOSITY=sqlstate -c "SET pg_kmeans.scan = ${3:-auto}" -c "SELECT (kmeans_fit('$2', '{$1}', 1)).centroids" 2>&1 | sed 's/^.*ERROR: *//'; }

# --- types that the owner of the extension adds to it ---
query <<'SQL'
CREATE ROLE vector_owner;
CREATE SCHEMA hostile AUTHORIZATION vector_owner;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO vector_owner', current_database()); END $$;
SET ROLE vector_owner;
SET search_path = hostile;
CREATE EXTENSION vector VERSION 'hostile';
CREATE TYPE vector AS ENUM ('one', 'two');
CREATE TYPE halfvec AS RANGE (SUBTYPE = float8);
CREATE FUNCTION reals(vector) RETURNS real[] AS $$ SELECT CASE $1 WHEN 'one' THEN '{1,5}'::real[] ELSE '{3,9}' END $$ LANGUAGE sql IMMUTABLE;
CREATE FUNCTION reals(halfvec) RETURNS real[] AS $$ SELECT ARRAY[lower($1), upper($1)]::real[] $$ LANGUAGE sql IMMUTABLE;
CREATE CAST (vector AS real[]) WITH FUNCTION reals(vector);
CREATE CAST (halfvec AS real[]) WITH FUNCTION reals(halfvec);
ALTER EXTENSION vector ADD TYPE vector;
ALTER EXTENSION vector ADD TYPE halfvec;
CREATE TABLE rows AS SELECT e, r FROM (VALUES ('one'::vector, '[1,5]'::halfvec), ('two', '[3,9]')) AS v (e, r);
CREATE DOMAIN own AS vector;
CREATE TABLE domains AS SELECT e::own AS e FROM rows;
SQL
is "$(fit e hostile.rows)" '{{2,7}}' 'an enum called vector is read by its cast'
is "$(fit r hostile.rows)" '{{2,7}}' 'a range called halfvec is read by its cast'
is "$(fit e hostile.domains)" '{{2,7}}' 'a domain over the enum likewise'
is "$(fit e hostile.rows direct) $(fit r hostile.rows direct)" '0A000 0A000' 'their storage is not read'
query -c 'SET client_min_messages = error' -c 'DROP SCHEMA hostile CASCADE' -c 'DROP OWNED BY vector_owner' -c 'DROP ROLE vector_owner'

# --- the extension's own type, with values that are not what they say ---
# Heads: int16 count, int16 unused, in this machine's order; then real 1 and 2.
[ "$(printf '\1\0' | od -An -td2 | tr -d ' ')" = 1 ] && good='\x02000000 0000803f 00000040' || good='\x00020000 3f800000 40000000'
query -c "CREATE EXTENSION vector VERSION 'damaged'" -c 'CREATE TABLE whole (v vector)' -c "INSERT INTO whole VALUES ('$good')"
is "$(fit v whole) $(fit v whole direct) $(fit v whole executor)" '{{1,2}} {{1,2}} {{1,2}}' 'a value that is as long as it says is read where it lies'
for bad in "${good% *}" "$good 00" '\x' '\x0200' '\xff7f0000' '\xffff0000' '\x00000000'; do
    query -c 'DROP TABLE IF EXISTS alone, second' -c 'CREATE TABLE alone (v vector)' -c "INSERT INTO alone VALUES ('$bad')" \
        -c 'CREATE TABLE second AS TABLE whole' -c 'INSERT INTO second TABLE alone'
    is "$(fit v alone) $(fit v second)" 'XX001 XX001' "a damaged value ($bad) is no more than an error"
done
query -c "CREATE TABLE long (v vector)" -c "INSERT INTO long SELECT ('\x00100000' || repeat('0000803f', 3000))::vector"
is "$(fit v long direct)" 'XX001' 'nor is one out of line'
query -c 'DROP TABLE long, whole, alone, second' -c 'DROP EXTENSION vector CASCADE' 2>/dev/null

# --- pgvector ---
versions=$(query -c "SELECT string_agg(version, ' ') FROM pg_available_extension_versions WHERE name = 'vector' AND version ~ '^[0-9]'")
if [ -z "$versions" ]; then
    for text in 'vector columns' 'halfvec columns'; do result 0 "$text # SKIP pgvector is not installed"; done
else
    # both COLUMN EXPECTED TEXT: what direct scans and the executor make of it.
    both() {
        local call="SELECT md5(string_agg(l::text, ',' ORDER BY ctid)), (SELECT (to_jsonb(kmeans_fit('embeddings', '{$1}', 4)) - 'origin')::text FROM (SELECT 1) AS one) FROM kmeans_labels('embeddings', '{$1}', 4) AS l"
        is "$(query -c 'SET pg_kmeans.scan = direct' -c "$call")" "$(query -c 'SET pg_kmeans.scan = executor' -c "$call")" "$2"
    }
    query -c 'CREATE EXTENSION vector' -c "CREATE TABLE embeddings AS SELECT CASE WHEN i % 50 > 0 THEN (SELECT array_agg(sin(i * j)::real) FROM generate_series(1, 33) AS j)::vector END AS v FROM generate_series(1, 3000) AS i"
    both v 'vector columns: a direct scan gives what the executor does'
    if [ "$(query -c "SELECT to_regtype('halfvec') IS NOT NULL")" = t ]; then
        query -c 'ALTER TABLE embeddings ADD h halfvec' -c 'UPDATE embeddings SET h = v::halfvec'
        both h 'halfvec columns likewise'
    else
        result 0 'halfvec columns # SKIP this pgvector has no halfvec'
    fi
fi
echo "1..$number"

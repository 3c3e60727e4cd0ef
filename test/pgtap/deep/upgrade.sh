#!/bin/bash
# A new library over the extension script of the commit before, as a server has it between an upgrade of the package and
# ALTER EXTENSION UPDATE: calls work or fail with an error (a C function whose arguments change gets another name), models that were stored are read, views go on. The types then
# get the attributes that the new script adds; a dump is restored where the extension is new.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"

script=sql/pg_kmeans--1.0.sql
before() { git -C "$here" show "$1:$script" 2>/dev/null; }
last=$(git -C "$here" rev-list -n 1 HEAD -- "$script" 2>/dev/null) || last=
if ! git -C "$here" diff --quiet HEAD -- "$script" 2>/dev/null; then last=; fi
folder=$(mktemp -d /tmp/pgkm_upgrade.XXXXXX)
chmod 755 "$folder"
extensions=$(query -c "SELECT setting FROM pg_config() WHERE name = 'SHAREDIR'")/extension
library=$(query -c "SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'")/pg_kmeans.so
trap 'rm -rf "$folder" "$extensions/pg_kmeans--0before.sql"; query -d postgres -c "DROP DATABASE IF EXISTS pgtap_upgrade_new"' EXIT
if ! { before "$last^" || before HEAD; } >"$folder/old.sql" || [ ! -s "$folder/old.sql" ]; then
    echo "1..0 # SKIP the script of the commit before is not at hand"
    exit
fi

# Functions that the new library has no more are still declared: they come from one that raises an error.
grep -oE "'MODULE_PATHNAME', '[a-z0-9_]+'" "$folder/old.sql" | cut -d"'" -f4 | sort -u >"$folder/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sort -u | comm -23 "$folder/declared" - >"$folder/gone"
{
    printf '#include "postgres.h"\n#include "fmgr.h"\nPG_MODULE_MAGIC;\n'
    while read -r name; do
        printf 'PG_FUNCTION_INFO_V1(%s);\nDatum %s(PG_FUNCTION_ARGS) { ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("gone"))); }\n' "$name" "$name"
    done <"$folder/gone"
} >"$folder/stand_in.c"
gcc -shared -fPIC -I"$("$PG_CONFIG" --includedir-server)" -o "$folder/stand_in.so" "$folder/stand_in.c" || exit 1
while read -r name; do sed -i "s#'MODULE_PATHNAME', '$name'#'$folder/stand_in', '$name'#" "$folder/old.sql"; done <"$folder/gone"
cp "$folder/old.sql" "$extensions/pg_kmeans--0before.sql" || exit 1

query -c "DROP EXTENSION pg_kmeans CASCADE" -c "CREATE EXTENSION pg_kmeans VERSION '0before'"
result $? "the script of the commit before makes its objects beside the new library ($(wc -l <"$folder/gone") functions are gone)"
query <<'SQL'
CREATE TABLE up_rows AS SELECT i AS id, sin(i)::float8 AS x, cos(i * 7)::float8 AS y FROM generate_series(1, 3000) AS i;
CREATE TABLE up_kmeans AS SELECT kmeans(ARRAY[x, y], 5) AS m FROM up_rows UNION ALL SELECT kmeans(ARRAY[x, y], 3) FROM up_rows;
CREATE TABLE up_gmm AS SELECT gmm(ARRAY[x, y], 3) AS m FROM up_rows;
CREATE TABLE up_pca AS SELECT pca(ARRAY[x, y]) AS m FROM up_rows;
CREATE VIEW up_distances AS SELECT kmeans_transform(m, ARRAY[0.5, 0.5]) AS d FROM up_kmeans;
CREATE VIEW up_fit AS SELECT (kmeans(ARRAY[x, y], 4)).inertia FROM up_rows;
SQL
result $? 'models are made and stored, and views'

answers() { # [PSQL-ARGUMENT]...: what the stored models and the views say
    query "$@" -c "SELECT md5(string_agg(kmeans_predict(m, ARRAY[x, y])::text, ',' ORDER BY id, (m).k)) FROM up_kmeans, up_rows" \
        -c "SELECT md5(string_agg(gmm_predict(m, ARRAY[x, y])::text, ',' ORDER BY id)) FROM up_gmm, up_rows" \
        -c "SELECT md5(string_agg(pca_transform(m, ARRAY[x, y])::text, ',' ORDER BY id)) FROM up_pca, up_rows" \
        -c "SELECT md5(string_agg(d::text, ',' ORDER BY d::text)) FROM up_distances" -c "SELECT * FROM up_fit" \
        -c "SELECT (kmeans_update(m, ARRAY[0.5, 0.5])).n FROM up_kmeans GROUP BY m" 2>&1
}
wanted=$(answers)
! grep -q ERROR <<<"$wanted"
result $? 'and read'
[ "$(grep -c ERROR <<<"$wanted")" = 0 ] || sed 's/^/# /' <<<"$wanted"

# Every function of the old script with NULLs: an error, or an answer, but the session is there afterwards.
query -c "SELECT format('SELECT %s(%s)', p.oid::regproc, (SELECT string_agg(format('NULL::%s', t::regtype), ', ') FROM unnest(proargtypes) AS t))
          FROM pg_proc AS p JOIN pg_depend AS e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e' AND refclassid = 'pg_extension'::regclass
          WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans') AND prokind = 'f' AND prorettype <> 'trigger'::regtype
              AND NOT EXISTS (SELECT FROM unnest(proargtypes) AS t WHERE t IN (SELECT oid FROM pg_type WHERE typtype = 'p'))" >"$folder/calls.sql"
said=$({ cat "$folder/calls.sql" | sed 's/$/;/' && echo "SELECT 'still here';"; } | psql -XqAt 2>&1)
grep -qx 'still here' <<<"$said" && ! grep -qE 'server closed|terminat|XX000' <<<"$said"
result $? "$(wc -l <"$folder/calls.sql") functions with NULLs"

# What an update script adds: the types, and the attributes of types, that the new one has more.
query -d postgres -c "DROP DATABASE IF EXISTS pgtap_upgrade_new" -c "CREATE DATABASE pgtap_upgrade_new"
query -d pgtap_upgrade_new -c "CREATE EXTENSION pg_kmeans"
composites="FROM pg_type AS t JOIN pg_attribute AS a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
            JOIN pg_depend AS e ON e.classid = 'pg_type'::regclass AND e.objid = t.oid AND e.deptype = 'e'
            WHERE t.typtype = 'c' AND t.typname NOT LIKE '%options'"
made="SELECT format('CREATE TYPE %I AS (%s)', t.typname, string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)) $composites GROUP BY t.oid"
known=$(query -c "SELECT array_agg(DISTINCT t.typname) $composites")
query -d pgtap_upgrade_new -c "$made HAVING t.typname <> ALL ('$known') ORDER BY t.oid" >"$folder/types"
while read -r type; do query -c "$type"; done <"$folder/types"
attributes="SELECT t.typname, a.attname, format_type(a.atttypid, a.atttypmod)
            $composites AND t.typname = ANY ('$known') ORDER BY t.typname, a.attnum"
comm -13 <(query -F ' ' -c "$attributes" | sort) <(query -d pgtap_upgrade_new -F ' ' -c "$attributes" | sort) >"$folder/added"
while read -r type attribute kind; do
    query -c "ALTER TYPE $type ADD ATTRIBUTE $attribute $kind"
done <"$folder/added"
is "$(answers)" "$wanted" "the same answers with $(wc -l <"$folder/types") types and $(wc -l <"$folder/added") attributes more"

pg_dump -Fc -t 'up_*' -f "$folder/dump" && pg_restore -d pgtap_upgrade_new --no-owner "$folder/dump"
result $? 'a dump is restored beside the new script'
is "$(answers -d pgtap_upgrade_new)" "$wanted" 'with the same answers'
echo 1..$number

#!/bin/bash
# From a cancel on, a statement uses a few milliseconds of processor time, wherever it is struck. interrupts.sh measures by
# the clock in each phase; here strikes come at many times of statements that have long loops of their own outside of phases.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
limit_ms=80
strikes='2 8 20 45 90 160 260 400'

folder=$(mktemp -d /tmp/pgkm_late.XXXXXX)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
gcc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" -o "$folder/cancel_after.so" "$here/test/support/cancel_after.c" -lrt || exit 1

query <<SQL
CREATE FUNCTION cancel_after(float8) RETURNS void AS '$folder/cancel_after.so' LANGUAGE C STRICT;
CREATE FUNCTION since_cancel() RETURNS float8 AS '$folder/cancel_after.so' LANGUAGE C;
SET client_min_messages = error;
CREATE TABLE late_wide AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) ORDER BY j)::real[] AS f FROM generate_series(1, 400) AS i, generate_series(1, 1536) AS j GROUP BY i;
CREATE TABLE late_long AS
SELECT array_agg(sin(i * (j * 0.37 + 1)) ORDER BY j)::real[] AS f FROM generate_series(1, 3) AS i, generate_series(1, 400000) AS j GROUP BY i;
CREATE TABLE late_rows AS SELECT ARRAY[sin(i), cos(i * 7), sin(i * 3)]::real[] AS f FROM generate_series(1, 100000) AS i;
CREATE TABLE late_models AS SELECT kmeans(f, 300, kmeans_options(init => 'first', max_iter => 1)) AS wide,
    (SELECT kmeans(f, 1, kmeans_options(init => 'first', max_iter => 1)) FROM late_long) AS long FROM late_wide;
SQL

# NAME@STATEMENT
statements=(
    "kmeans_update of many clusters@SELECT (kmeans_update(wide, f)).n FROM late_models, late_wide"
    "kmeans_update of many features@SELECT (kmeans_update(long, f)).n FROM late_models, late_long"
    "pca@SELECT (pca(f)).n FROM late_wide"
    "pca_fit@SELECT (pca_fit('late_wide', '{f}')).n"
    "gmm_fit@SELECT (gmm_fit('late_wide', '{f}', 1, options => gmm_options(reg_covar => 1))).n"
    "kmeans_load in a loop@DO 'BEGIN FOR i IN 1..20 LOOP PERFORM kmeans_load(''late_rows'', ''{f}''); END LOOP; END'"
)
echo "1..${#statements[@]}"

# late STATEMENT: for each strike that hit, when it came and the processor time to its end.
late() {
    local strike
    {
        printf '%s;\n' "SET client_min_messages = fatal" "SET pg_kmeans.cpu_threads = 1" "SET max_parallel_workers_per_gather = 0" "$1"
        for strike in $strikes; do
            printf '%s;\n' "SELECT cancel_after($strike)" "$1" "SELECT 'struck', $strike, since_cancel()"
        done
    } | psql -XqAt -F ' ' 2>"$folder/errors" | awk '$1 == "struck" && $3 != "" { print $2, $3 }'
}

for entry in "${statements[@]}"; do
    late "${entry#*@}" >"$folder/found"
    worst=$(awk '$2 > worst { worst = $2 } END { print worst }' "$folder/found")
    awk -v worst="$worst" -v limit="$limit_ms" 'BEGIN { exit !(worst != "" && worst < limit) }'
    result $? "${entry%%@*}: within $limit_ms ms of processor time"
    echo "# worst of $(wc -l <"$folder/found") strikes: ${worst:-none} ms"
    [ -n "$worst" ] || cat "$folder/errors"
done

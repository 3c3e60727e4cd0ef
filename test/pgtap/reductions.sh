#!/bin/bash
# The reductions of examples/ run, each in a database of its own, and all that they compare with kmeans, gmm and pca is the same.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/tap.sh"

for script in "$here"/examples/*.sql; do
    name=$(basename "$script" .sql)
    query -c "DROP DATABASE IF EXISTS pgtap_reduction" -c "CREATE DATABASE pgtap_reduction"
    query -d pgtap_reduction -c "CREATE EXTENSION pg_kmeans"
    answers=$(psql -XqAt -v ON_ERROR_STOP=1 -d pgtap_reduction -f "$script" 2>&1)
    is "$(grep -E 'ERROR|WARNING' <<<"$answers")" "" "examples/$name.sql runs without an error or a warning"
    # A comparison prints t; f, or nothing, is a difference.
    grep -qE '(^|\|)t(\||$)' <<<"$answers" && ! grep -qE '(^|\|)f?(\||$)' <<<"$(grep -v '^$' <<<"$answers")"
    same=$?
    result $same "examples/$name.sql gives what it compares with"
    [ $same -eq 0 ] || sed 's/^/# got: /' <<<"$answers"
    query -d postgres -c "DROP DATABASE pgtap_reduction"
done
echo 1..$number

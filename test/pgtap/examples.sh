#!/bin/bash
# The examples of README.md and of the pages in docs/: each ```sql block runs as it stands, in order, in a database of the document's
# own, without an error or a warning. A block of output that follows one is what psql prints; "..." in it stands for any lines.
# A section (##) is skipped from where it creates an extension that the server does not have.
# Every function that users call has an example on one of the pages.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/tap.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$here"

# The SQL of a document. Every line stays where it is, so that psql's errors name the document's lines; in the place of
# a block's end its number is printed, and a missing extension.
examples() {
    awk -v extensions="$extensions" '
         /^## / { missing = "" }
         /^```/ { open = !open; sql = open && $0 == "```sql"; print was ? "\\echo ==== " NR " " missing : ""; was = sql; next }
         sql && /^CREATE EXTENSION / { name = $NF; sub(";$", "", name); if (!index(extensions, " " name " ")) missing = name }
         { print sql && missing == "" ? $0 : "" }' "$1"
}
extensions=" $(query -c "SELECT string_agg(name, ' ') FROM pg_available_extensions") "
# Writes each block of output to a file, named after the line where its example ends.
outputs() {
    awk -v folder="$2" '/^```/ { open = !open
             if (!open && sql) end = NR
             file = open && $0 == "```" && NR == end + 1 ? folder "/" end ".want" : ""
             if (file) printf "" >file
             sql = $0 == "```sql"; next }
         file { print >file }' "$1"
}
# Whether file $1, where a line "..." stands for any lines, is the text of file $2.
matches() {
    awk '{ sub(/[ \t]+$/, "") }
         NR == FNR { sub(/^ *\.\.\.$/, "..."); want[++wanted] = $0; next }
         { got[FNR] = $0; if ($0 != "") last = FNR }
         END { at = 1
               for (i = 1; i <= wanted; ++i) {
                   if (want[i] == "...") { any = 1; continue }
                   while (any && at <= last && got[at] != want[i]) ++at
                   if (at > last || got[at++] != want[i]) exit 1
                   any = 0
               }
               exit !(any || at > last) }' "$1" "$2"
}

for document in README.md docs/{guide,recipes,operating,from-scikit-learn,reductions,papers}.md; do
    name=$(basename "$document" .md)
    mkdir "$folder/$name"
    query -c "DROP DATABASE IF EXISTS \"pgtap_examples_$name\"" -c "CREATE DATABASE \"pgtap_examples_$name\""
    examples "$document" >"$folder/$name.sql"
    psql -Xq -P pager=off -d "pgtap_examples_$name" -f "$folder/$name.sql" >"$folder/$name.out" 2>"$folder/$name.err"
    grep -q '[^ ]' "$folder/$name.sql"
    result $? "$document has examples"
    is "$(sed "s|^psql:$folder/$name.sql:|$document:|" "$folder/$name.err")" "" "all of $document run"
    outputs "$document" "$folder/$name"
    awk -v folder="$folder/$name" '/^==== / { file = folder "/" $2 ($3 == "" ? ".got" : ".missing"); printf "%s", $3 text >file; close(file); text = ""; next }
                                   { text = text $0 "\n" }' "$folder/$name.out"
    for want in "$folder/$name"/*.want; do
        [ -e "$want" ] || continue
        text="$document:$(basename "$want" .want) prints what stands there"
        if [ -e "${want%.want}.missing" ]; then
            result 0 "$text # SKIP no extension $(cat "${want%.want}.missing")"
            continue
        fi
        matches "$want" "${want%.want}.got"
        same=$?
        result $same "$text"
        [ $same -eq 0 ] || sed 's/^/# got: /' "${want%.want}.got"
    done
done

# Functions that users do not call begin with pgkm_.
query <<'SQL' >"$folder/functions"
SELECT DISTINCT p.proname
FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'pg_kmeans' JOIN pg_proc p ON p.oid = d.objid
WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_proc'::regclass AND p.proname NOT LIKE 'pgkm\_%'
ORDER BY 1;
SQL
grep -q . "$folder/functions"
result $? "there are functions"
without=$(while read -r function; do grep -q "\b$function(" "$folder"/*.sql || echo "$function"; done <"$folder/functions")
is "$without" "" "every function has an example"
echo 1..$number

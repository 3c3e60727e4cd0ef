#!/bin/bash
# Tables of models, sums and labels survive pg_dump and pg_restore, bit for bit.
set -euo pipefail
echo 1..6
source "$(dirname "$0")/../../scripts/lib/tap.sh"
folder=$(mktemp -d)
restored=${PGDATABASE}_restored
cleanup() {
    rm -rf "$folder"
    psql -Xqc "DROP DATABASE IF EXISTS \"$restored\"" -d postgres
    psql -Xqc 'DROP TABLE IF EXISTS dump_kept CASCADE' -c 'DROP ROLE IF EXISTS "Dump Role"'
}
trap cleanup EXIT

query <<'SQL'
CREATE TABLE dump_rows AS SELECT i AS id, ARRAY[sin(i) * 1e-3, cos(i) / 3, i % 97]::double precision[] AS f FROM generate_series(1, 2000) AS i;
CREATE TABLE dump_models (name text PRIMARY KEY, model kmeans_model, options kmeans_options);
INSERT INTO dump_models
SELECT 'plain', kmeans(f, 7), kmeans_options() FROM dump_rows UNION ALL
SELECT 'cosine', kmeans(f, 3, kmeans_options(metric => 'cosine')), kmeans_options(metric => 'cosine') FROM dump_rows UNION ALL
SELECT 'standardized', kmeans(f, 4, kmeans_options(standardize => true)), kmeans_options(init_centroids => '{{1,2,3}}') FROM dump_rows UNION ALL
SELECT 'none', NULL, NULL;
CREATE TABLE dump_sums AS
SELECT id % 3 AS part, kmeans_step(f, '{{0,0,0},{0,0,50},{0.1,0.2,90}}', sqrt(id)) AS sums FROM dump_rows GROUP BY part;
ALTER TABLE dump_sums ADD CHECK (kmeans_sums_inertia(sums) > 0);
CREATE TABLE dump_pca AS
SELECT id % 2 AS part, pca(f, pca_options(n_components => 2, whiten => true, standardize => true)) AS model
FROM dump_rows WHERE id < 50 GROUP BY part;
CREATE TABLE dump_mixtures AS
SELECT kind, gmm(f, 3, gmm_options(kind)) AS model, gmm_options(means_init => '{{1,2},{3,4}}') AS options
FROM dump_rows, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY kind;
CREATE TABLE dump_trees AS SELECT kmeans_tree_fit('dump_rows', '{f}', '{4,3}', options => kmeans_options(standardize => true)) AS tree;
CREATE VIEW dump_labels AS SELECT id, kmeans_predict(model, f) AS label FROM dump_rows, dump_models WHERE name = 'plain';
CREATE MATERIALIZED VIEW dump_fit AS SELECT * FROM kmeans_fit('dump_rows', '{f}', 5);
CREATE VIEW dump_scan AS SELECT cluster_id, count(*) FROM kmeans_labels('dump_rows', '{f}', 5) GROUP BY cluster_id;
CREATE ROLE "Dump Role";
CREATE TABLE dump_kept (name text PRIMARY KEY, reduction jsonb DEFAULT kmeans_reduction(op => 'count', filter => 'id > 9'));
ALTER TABLE dump_kept OWNER TO "Dump Role";
INSERT INTO dump_kept VALUES ('step', kmeans_reduction(index => 'argmin(j, k, sum((f - c[j]) ^ 2))', cells => 'k', value => '{1, f}', let => '{"two": "2"}', exact => true));
INSERT INTO dump_kept VALUES ('odd', kmeans_reduction(value => '{"id" * 2, /* ''\" */ f}')), ('default', DEFAULT);
CREATE VIEW dump_cells AS SELECT name, r.* FROM dump_kept, kmeans_reduce('dump_rows', reduction, '{"k": 2, "c": [[0, 0, 0], [0, 0, 50]]}') AS r;
CREATE MATERIALIZED VIEW dump_merged AS SELECT kmeans_merge(sums) AS sums FROM dump_sums;
SQL

content() {
    query -d "$1" -c 'SELECT name, model::text, options::text FROM dump_models ORDER BY name' \
        -c 'SELECT part, sums FROM dump_sums ORDER BY part' -c 'SELECT sums FROM dump_merged' \
        -c 'SELECT * FROM dump_labels ORDER BY id' -c 'SELECT * FROM dump_cells ORDER BY name, cell' \
        -c 'SELECT * FROM dump_kept ORDER BY name' -c "SELECT relowner::regrole FROM pg_class WHERE relname = 'dump_kept'" \
        -c 'SELECT kind, model::text, options::text FROM dump_mixtures ORDER BY kind' \
        -c 'SELECT part, model::text FROM dump_pca ORDER BY 1' -c 'SELECT tree::text FROM dump_trees' \
        -c "SELECT to_jsonb(f) - 'origin' FROM dump_fit AS f" -c 'SELECT * FROM dump_scan ORDER BY cluster_id' \
        -c "SELECT (to_jsonb(kmeans_fit('dump_rows', '{f}', 5)) - 'origin')::text"
}
content "$PGDATABASE" >"$folder/before"

for format in custom plain; do
    status=0
    query -d postgres -c "DROP DATABASE IF EXISTS \"$restored\"" -c "CREATE DATABASE \"$restored\" TEMPLATE template0"
    if [ $format = custom ]; then
        pg_dump -Fc -f "$folder/dump" && pg_restore --exit-on-error -d "$restored" "$folder/dump" || status=1
    else
        pg_dump -f "$folder/dump.sql" && query -d "$restored" -f "$folder/dump.sql" >/dev/null || status=1
    fi
    result $status "a $format dump restores"
    content "$restored" >"$folder/after" || status=1
    status=0
    cmp -s "$folder/before" "$folder/after" || status=1
    result $status "what a $format dump restores is the same to the last bit"
done

# The owner of a database, who is no superuser, dumps it and restores it, reductions of his own and others with it.
query -d postgres -c "DROP DATABASE \"$restored\"" -c "CREATE DATABASE \"$restored\" OWNER \"Dump Role\""
query -d "$restored" -c 'SET ROLE "Dump Role"' -c "CREATE EXTENSION pg_kmeans" -c "CREATE TABLE dump_kept AS SELECT kmeans_reduction(value => 'x') AS r" >/dev/null
pg_dump --role='Dump Role' -d "$restored" >"$folder/dump_own.sql" && status=0 || status=1
query -d postgres -c "DROP DATABASE \"$restored\"" -c "CREATE DATABASE \"$restored\" OWNER \"Dump Role\""
{ echo 'SET ROLE "Dump Role";'; cat "$folder/dump_own.sql"; } | query -d "$restored" >/dev/null || status=1
[ "$(query -d "$restored" -c 'SELECT r FROM dump_kept')" = '{"value": "x"}' ] || status=1
result $status "the owner of a database dumps and restores it"

# Values also travel in binary form.
query -c "COPY dump_sums TO STDOUT (FORMAT binary)" >"$folder/sums"
query -c "CREATE TABLE dump_binary (LIKE dump_sums)"
query -c "COPY dump_binary FROM STDIN (FORMAT binary)" <"$folder/sums"
same=$(query -c "SELECT bool_and(a.sums::text = b.sums::text) FROM dump_sums AS a JOIN dump_binary AS b USING (part)")
[ "$same" = t ] && status=0 || status=1
result $status "sums are the same after COPY in binary form"

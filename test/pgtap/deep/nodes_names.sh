#!/bin/bash
# Nothing that the extension executes, here or on another server, takes a name from the search path: before pg_catalog stands
# a schema with an operator, a function, a type and a relation for each one of pg_catalog, which note that they were used and
# raise an error.
set -uo pipefail
here=$(cd "$(dirname "$0")/../../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/nodes.sh"

begin_with_nodes 2

# What somebody may create who has a schema in other people's search path.
plant() {
    cat <<'SQL'
CREATE SCHEMA planted;
GRANT USAGE ON SCHEMA planted TO PUBLIC;
CREATE SEQUENCE planted.uses;
SET check_function_bodies = off;
DO $do$
DECLARE
    made record;
BEGIN
    -- A function for each function of pg_catalog that PL/pgSQL can stand for, and one for each operator.
    FOR made IN
        SELECT proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result, NULL AS operator
        FROM pg_proc AS p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
            AND NOT proargtypes::oid[] && ARRAY['internal', 'cstring', '"any"']::regtype[]::oid[]
            AND prorettype <> ALL (ARRAY['internal', 'trigger', 'event_trigger', 'cstring']::regtype[])
        UNION ALL
        SELECT 'operator_' || oid, concat_ws(', ', nullif(oprleft, 0)::regtype, oprright::regtype), oprresult::regtype::text,
            format('CREATE OPERATOR planted.%s (%s RIGHTARG = %s, FUNCTION = planted.operator_%s)', oprname,
                   'LEFTARG = ' || nullif(oprleft, 0)::regtype || ',', oprright::regtype, oid)
        FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprresult <> 0
    LOOP
        BEGIN
            EXECUTE format($$CREATE FUNCTION planted.%I(%s) RETURNS %s LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_catalog.nextval(''planted.uses''); RAISE EXCEPTION ''planted: %s''; END'$$,
                made.name, made.arguments, made.result, made.name);
            IF made.operator IS NOT NULL THEN
                EXECUTE made.operator;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            NULL; -- a pseudo-type that PL/pgSQL does not know
        END;
    END LOOP;
    FOR made IN SELECT typname AS name FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typname !~ '^_' LOOP
        EXECUTE format('CREATE DOMAIN planted.%I AS pg_catalog.text CONSTRAINT planted CHECK (pg_catalog.nextval(''planted.uses'') OPERATOR(pg_catalog.<) 0)', made.name);
    END LOOP;
    FOR made IN SELECT relname AS name FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' LOOP
        BEGIN
            EXECUTE format('CREATE VIEW planted.%1$I AS SELECT *, pg_catalog.nextval(''planted.uses'') AS planted FROM pg_catalog.%1$I', made.name);
        EXCEPTION WHEN OTHERS THEN
            NULL; -- a column of a pseudo-type
        END;
    END LOOP;
END
$do$;
CREATE TYPE planted.cast_from AS (value pg_catalog.int4);
CREATE FUNCTION planted.to_cast(pg_catalog.int4) RETURNS planted.cast_from LANGUAGE plpgsql AS
'BEGIN PERFORM pg_catalog.nextval(''planted.uses''); RAISE EXCEPTION ''planted: cast''; END';
CREATE CAST (pg_catalog.int4 AS planted.cast_from) WITH FUNCTION planted.to_cast(pg_catalog.int4) AS IMPLICIT;
SQL
}
path="planted, pg_catalog, public"

query <<'SQL'
CREATE TABLE name_rows (id integer, x real, y double precision, b boolean, q numeric, w real, keep boolean, f real[], c integer);
INSERT INTO name_rows SELECT i, sin(i), cos(i * 7), i % 3 = 0, i % 5, 1 + i % 2, i % 11 > 0, ARRAY[sin(i), cos(i)]::real[], NULL FROM generate_series(1, 2000) AS i;
CREATE VIEW name_view AS SELECT * FROM name_rows;
CREATE TABLE name_parts (id integer, x real, y double precision, w real, cluster_id integer) PARTITION BY RANGE (id);
CREATE TABLE name_here PARTITION OF name_parts FOR VALUES FROM (0) TO (500);
SQL
for node in 1 2; do
    join_node $node
    on_node $node -c "CREATE TABLE name_part (id integer, x real, y double precision, w real, cluster_id integer)"
    query -c "CREATE FOREIGN TABLE name_node$node PARTITION OF name_parts FOR VALUES FROM ($((node * 500))) TO ($((node * 500 + 500))) SERVER node$node OPTIONS (table_name 'name_part')"
done
query -c "INSERT INTO name_parts SELECT id, x, y, w FROM name_rows WHERE id < 1500"
for node in 0 1 2; do plant | on_node $node; done
for node in 1 2; do on_node $node -c "ALTER ROLE postgres SET search_path = $path"; done
is "$(for node in 0 1 2; do PGOPTIONS="-c search_path=public" on_node $node -c "SELECT count(*) > 1500 FROM pg_proc WHERE pronamespace = 'planted'::regnamespace" -c "SELECT count(*) > 500 FROM pg_operator WHERE oprnamespace = 'planted'::regnamespace"; done | paste -sd ' ')" \
    't t t t t t' 'much is planted on all servers'
is "$(psql -XqAt -c "SET search_path = $path" -c "SELECT 1 = 1" -c "SELECT 1::text" -c "SELECT abs(1)" 2>&1 | grep -c planted)" 3 'and works'
query -c "SELECT setval('planted.uses', 1, false)" >/dev/null

# uses SERVERS: how often something planted was used on them.
uses() { for node in "$@"; do PGOPTIONS="-c search_path=public" on_node "$node" -c "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM planted.uses"; done | paste -sd ' '; }

# runs NAME STATEMENT...: in one session, under that search path.
runs() {
    local name=$1 said statement arguments=()
    shift
    for statement in "$@"; do arguments+=(-c "$statement"); done
    said=$(psql -XqAt -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" -c "SET search_path = $path" "${arguments[@]}" 2>&1 >/dev/null)
    is "$said|$(uses 0 1 2)" '|0 0 0' "$name"
    for node in 0 1 2; do PGOPTIONS="-c search_path=public" on_node $node -c "SELECT setval('planted.uses', 1, false)" >/dev/null; done
}
features="'{x,y,b,q}'"
for relation in name_rows name_view; do
    runs "kmeans_fit of $relation" "SELECT public.kmeans_fit('$relation', $features, 3)" \
        "SELECT public.kmeans_fit('$relation', $features, 3, weight => 'w', filter => 'keep', nulls => 'skip', options => public.kmeans_options(standardize => true, refine => true))" \
        "SELECT public.kmeans_fit('$relation', '{f}', 3, options => public.kmeans_options(init => 'k-means||', metric => 'cosine'))" \
        "SELECT public.kmeans_fit('$relation', '{x,y}', 3, options => public.kmeans_options(min_size => 0.1))" "SELECT public.kmeans_fit('$relation', '{x,y}', 3, options => public.kmeans_options(batch_size => 100))"
    runs "sweep, tree, plots, PCA and mixture of $relation" "SELECT public.kmeans_sweep('$relation', $features, 2, 4)" "SELECT public.kmeans_tree('$relation', $features, '{2,2}')" \
        "SELECT public.kmeans_plot('$relation', '{x,y}', 3)" "SELECT public.kmeans_plot('$relation', '{x,y}', label_column => 'c')" "SELECT public.kmeans_sweep_plot('$relation', '{x,y}', 2, 4)" \
        "SELECT public.pca_fit('$relation', $features, weight => 'w')" "SELECT public.gmm_plot(public.gmm_fit('$relation', '{x,y}', 2, filter => 'keep'))" "SELECT public.gmm_sweep('$relation', '{x,y}', 1, 2)"
    runs "a reduction of $relation" "SELECT public.kmeans_reduce('$relation', value => '{1, x * y}', index => 'id % 7', cells => '7', filter => 'x > 0 and q between 1 and 3')" \
        "SELECT public.kmeans_reduce_many('$relation', '{\"n\": {\"value\": \"1\"}, \"s\": {\"value\": \"abs(x)\", \"op\": \"max\"}}')" "SELECT public.kmeans_reduce_source('$relation', value => 'x + y')"
    runs "loaded rows of $relation" "SELECT public.kmeans_load('$relation', '{x,y}', 'w')" "SELECT public.kmeans_loaded()" \
        "SELECT public.kmeans_fit('$relation', '{x,y}', 3, weight => 'w', memory => 'loaded')" "SELECT public.kmeans_unload('$relation')"
done
for scan in auto executor; do
    runs "labels, scan = $scan" "SET pg_kmeans.scan = $scan" "SELECT * FROM public.kmeans_labels('name_rows', $features, 3)" "SELECT * FROM public.gmm_labels('name_rows', '{x,y}', 2)" \
        "SELECT public.kmeans_outliers('name_rows', '{x,y}', public.kmeans_fit('name_rows', '{x,y}', 3))" \
        "SELECT public.kmeans_cluster('name_rows', $features, 3, weight => 'w', filter => 'keep', nulls => 'skip', label_column => 'new_$scan')" \
        "SELECT public.kmeans_cluster('name_rows', $features, 2, label_column => 'c', overwrite => true)" "SELECT public.gmm_cluster('name_rows', '{x,y}', 2, label_column => 'mixed_$scan')"
done
runs 'labels of streamed rows' "SELECT public.kmeans_cluster('name_rows', $features, 3, weight => 'w', filter => 'keep', nulls => 'skip', memory => 'stream', label_column => 'streamed')" \
    "SELECT public.kmeans_cluster('name_rows', '{f}', 3, nulls => 'skip', memory => 'stream', label_column => 'streamed', overwrite => true)" \
    "SELECT public.kmeans_fit('name_rows', $features, 3, memory => 'stream')"
runs 'aggregates and window functions' "SELECT public.kmeans(f, 3) FROM public.name_rows" "SELECT b, public.kmeans(f, 3, public.kmeans_options(standardize => true), w) FROM public.name_rows GROUP BY b" \
    "SELECT public.kmeans_label(f, 3) OVER () FROM public.name_rows" "SELECT public.pca(f) FROM public.name_rows" "SELECT public.gmm_label(f, 2) OVER () FROM public.name_rows" \
    "SELECT public.kmeans_merge(s) FROM (SELECT public.kmeans_step(f, '{{0,0},{1,1}}') AS s FROM public.name_rows) AS q" \
    "SELECT public.kmeans_profile(m), public.kmeans_centroids(m), public.kmeans_predict(m, '{0,0}'::pg_catalog.float4[]) FROM (SELECT public.kmeans_fit('name_rows', '{x,y}', 3) AS m) AS q"
step="public.kmeans_reduction(value => '{1, x}', index => 'id % 3', cells => '3')"
runs 'reductions that are kept' "SELECT public.kmeans_reduce('name_rows', $step)" \
    "SELECT public.kmeans_reduce_iterate('name_rows', $step, '{\"m\": [[0, 0], [0, 0], [0, 0]]}', '{\"m\": \"r / (1 + abs(r))\"}', max_iter => 3)"
runs 'insight' "SELECT * FROM public.kmeans_status()" "SELECT * FROM public.pg_stat_progress_kmeans" "SELECT * FROM public.kmeans_last_run()"
label="label_column => 'cluster_id', overwrite => true"
runs 'rows of other servers' "SELECT public.kmeans_fit('name_parts', '{x,y}', 3)" "SELECT public.kmeans_sweep('name_parts', '{x,y}', 2, 3, weight => 'w')" \
    "SELECT public.pca_fit('name_parts', '{x,y}')" "SELECT public.gmm_fit('name_parts', '{x,y}', 2)" \
    "SELECT public.kmeans_load('name_parts', '{x,y}')" "SELECT public.kmeans_fit('name_parts', '{x,y}', 3, memory => 'loaded')"
runs 'their labels' "SELECT public.kmeans_cluster('name_parts', '{x,y}', 3, $label)" "SELECT public.kmeans_cluster('name_parts', '{x,y}', 4, weight => 'w', $label)"
runs 'in a transaction that has changed some of them' "BEGIN" "UPDATE public.name_parts SET y = 2" "SELECT public.kmeans_fit('name_parts', '{x,y}', 3)" "ROLLBACK"
is "$(query -c "SELECT kmeans_fit('name_parts', '{x,y}', 3) IS NULL" -c "SELECT scan FROM kmeans_last_run()" -c "SELECT count(*), count(cluster_id) FROM name_parts" | paste -sd ' ')" 'f nodes 1499|1499' 'the other servers did their part'
is "$(query -c "SET search_path = $path" -c "SET client_min_messages = notice" -c "SELECT public.kmeans_fit('name_parts', '{x,y}', 3) IS NULL" -c "SELECT scan FROM public.kmeans_last_run()" | paste -sd ' ')" 'f nodes' 'under that search path, too'
echo 1..$number

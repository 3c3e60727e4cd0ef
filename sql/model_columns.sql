-- A model is applied to the columns that it was fitted to, in their order.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE column_rows AS SELECT i AS id, (i % 3 * 10 + sin(i))::real AS a, (i % 3 * 2 + cos(i))::real AS "B c", sin(i * 7)::real AS c, 1 + i % 2 AS w FROM generate_series(1, 300) AS i;
ALTER TABLE column_rows ADD f real[];
UPDATE column_rows SET f = ARRAY[a, "B c"];
CREATE TABLE column_others AS SELECT id, a AS "x""y", "B c" AS z, f AS g FROM column_rows;
CREATE TABLE column_models AS SELECT kmeans_fit('column_rows', '{a,B c}', 3) AS m, (SELECT kmeans(f, 3) FROM column_rows) AS nameless;

CREATE FUNCTION pg_temp.said(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text; hint text; result text;
BEGIN
    EXECUTE query INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, detail, hint);
END $$;
-- every function that takes both
SELECT pg_temp.said(format(call, features)) FROM (VALUES
    (1, $$SELECT count(*) FROM column_models, kmeans_outliers('column_rows', %L, m, 1)$$),
    (2, $$SELECT n_iter FROM column_models, kmeans_fit('column_rows', %L, 3, options => kmeans_options(init_model => m))$$),
    (3, $$SELECT count(*) FROM column_models, kmeans_labels('column_rows', %L, 3, options => kmeans_options(init_model => m))$$),
    (4, $$SELECT k FROM column_models, kmeans_cluster('column_rows', %L, 3, options => kmeans_options(init_model => m))$$),
    (5, $$SELECT kmeans_plot('column_rows', %L, 3, options => kmeans_options(init_model => m)) IS NOT NULL FROM column_models$$)) AS calls (line, call),
    unnest(ARRAY['{"B c",a}', '{a,"B c"}']) AS features ORDER BY line, features COLLATE "C" DESC;
SELECT kmeans_load('column_rows', '{B c,a}');
SELECT pg_temp.said($$SELECT n_iter FROM column_models, kmeans_fit('column_rows', '{B c,a}', 3, options => kmeans_options(init_model => m), memory => 'loaded')$$);
SELECT kmeans_unload();
-- other columns, more of them, fewer, and an array of which nobody knows what its elements are
SELECT pg_temp.said(format($$SELECT count(*) FROM column_models, kmeans_outliers('column_rows', %L, m)$$, features))
FROM unnest(ARRAY['{a,c}', '{a,B c,c}', '{a}', '{f}']) AS features;
-- a table that has them under other names; and what the hint says
SELECT pg_temp.said($$SELECT count(*) FROM column_models, kmeans_outliers('column_others', '{"x\"y",z}', m)$$);
SELECT pg_temp.said(format('SELECT (%s) IS NOT DISTINCT FROM (%s) FROM column_models AS c (model)',
    $$SELECT array_agg((cluster_id, score) ORDER BY score, cluster_id) FROM kmeans_outliers('column_rows', '{a,B c}', model, 1)$$,
    replace($$SELECT array_agg((cluster_id, score) ORDER BY score, cluster_id) FROM kmeans_outliers('column_others', '{"x\"y",z}', model, 1)$$, 'model,',
        substring(pg_temp.said($$SELECT count(*) FROM column_models, kmeans_outliers('column_others', '{"x\"y",z}', m)$$), 'write (.*) in the place') || ',')));
-- a model without names is one of any columns
SELECT count(*) AS outliers FROM column_models, kmeans_outliers('column_others', '{g}', nameless, 1);
SELECT n_iter FROM column_models, kmeans_fit('column_rows', '{B c,a}', 3, options => kmeans_options(init_model => nameless));
SELECT pg_temp.said($$SELECT count(*) FROM column_models, kmeans_outliers('column_rows', '{a,B c}', jsonb_populate_record(m, '{"origin": {"features": ["a", null]}}'))$$);
DROP TABLE column_rows, column_others, column_models;

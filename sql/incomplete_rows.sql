-- Rows as they are: NULLs beside values, booleans, a filter
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE incomplete AS
SELECT *, ARRAY[x, y]::float8[] AS f, ARRAY[x, y]::real[] AS f4
FROM (SELECT i AS id, CASE WHEN i % 11 = 0 OR i % 77 = 3 THEN NULL ELSE sin(i) + i % 3 * 5 END AS x, CASE WHEN i % 13 = 0 OR i % 77 = 3 THEN NULL ELSE cos(i)::real END AS y,
    i % 4 AS w, nullif(i % 5, 0) > 2 AS chosen, i % 2 = 0 AS even
FROM generate_series(1, 4000) AS i) AS s;
VACUUM ANALYZE incomplete;
-- what skipping and means are, in plain SQL: a NULL row takes no part in either
CREATE VIEW whole_rows AS SELECT * FROM incomplete WHERE x IS NOT NULL AND y IS NOT NULL;
CREATE VIEW mean_rows AS SELECT id, coalesce(x, avg(x) OVER ()) AS x, coalesce(y, avg(y) OVER ()) AS y FROM incomplete WHERE x IS NOT NULL OR y IS NOT NULL;
CREATE FUNCTION pg_temp.near(a kmeans_model, b kmeans_model) RETURNS bool LANGUAGE sql AS $$
SELECT a.size = b.size AND a.n = b.n AND abs(a.inertia / b.inertia - 1) < 1e-9 $$;
SELECT road, features, kmeans_fit('incomplete', features, 3, nulls => 'skip') = kmeans_fit('whole_rows', features, 3) AS skipped,
    pg_temp.near(kmeans_fit('incomplete', features, 3, nulls => 'mean', options => kmeans_options(init_centroids => '{{0,0},{5,0},{10,0}}')), kmeans_fit('mean_rows', '{x,y}', 3, options => kmeans_options(init_centroids => '{{0,0},{5,0},{10,0}}'))) AS means
FROM (VALUES ('executor'), ('direct')) AS r(road), LATERAL (SELECT set_config('pg_kmeans.scan', CASE WHEN road = 'direct' THEN 'auto' ELSE road END, false)) AS s, (VALUES ('{x,y}'::text[]), ('{f}')) AS f(features);
SET pg_kmeans.scan = direct;
SELECT features, (kmeans_fit('incomplete', features, 3, nulls => 'skip')).n, (kmeans_fit('incomplete', features, 3, nulls => 'mean')).n AS means FROM (VALUES ('{x,y}'::text[]), ('{f}'), ('{f4}')) AS f(features);
-- the same bits on all roads: one process, several, the executor, another order
CREATE TABLE incomplete_again AS SELECT * FROM incomplete ORDER BY y, id DESC;
ANALYZE incomplete_again;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
CREATE TABLE incomplete_models AS SELECT features, nulls, filter, kmeans_fit('incomplete', features, 3, nulls => nulls, filter => filter) AS m
FROM (VALUES ('{x,y}'::text[]), ('{f}'), ('{f4}')) AS f(features), unnest(ARRAY['skip', 'mean']) AS nulls, unnest(ARRAY[NULL, 'chosen']) AS filter;
SET max_parallel_workers_per_gather = 0;
SELECT every(m = kmeans_fit('incomplete', features, 3, nulls => nulls, filter => filter)) AS one_process, every(m = kmeans_fit('incomplete_again', features, 3, nulls => nulls, filter => filter)) AS other_order FROM incomplete_models;
SET pg_kmeans.scan = executor;
SELECT every(m = kmeans_fit('incomplete', features, 3, nulls => nulls, filter => filter)) AS executor FROM incomplete_models;
RESET pg_kmeans.scan;
-- means count weights: a row of weight 2 like two rows
CREATE TABLE heavy AS SELECT * FROM (VALUES (1.0::float8, 2.0::float8, 2), (4, NULL, 1), (NULL, 5, 1)) AS v(x, y, w);
CREATE TABLE repeated AS SELECT x, y FROM heavy, generate_series(1, w);
SELECT a.centroids, a.centroids = b.centroids AS same FROM kmeans_fit('heavy', '{x,y}', 1, weight => 'w', nulls => 'mean') AS a, kmeans_fit('repeated', '{x,y}', 1, nulls => 'mean') AS b;
-- labels: of rows that take no part NULL, others by what stands in the place of NULLs
SELECT nulls, count(*), count(cluster_id), count(*) FILTER (WHERE cluster_id IS NULL AND (x IS NOT NULL AND y IS NOT NULL)) AS whole_without
FROM unnest(ARRAY['skip', 'mean']) AS nulls, kmeans_labels('incomplete', '{x,y}', 3, nulls => nulls) AS l JOIN incomplete ON incomplete.ctid = row_ctid GROUP BY nulls ORDER BY nulls;
SELECT chosen, x IS NULL AS no_x, count(*), count(cluster_id) FROM kmeans_labels('incomplete', '{x,y}', 3, nulls => 'skip', filter => 'chosen') AS l JOIN incomplete ON incomplete.ctid = row_ctid GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('incomplete_again', '{x,y}', 3, nulls => 'mean', filter => 'chosen'));
SELECT chosen, count(*), count(cluster_id) FROM incomplete_again GROUP BY 1 ORDER BY 1;
-- a filter: what it leaves out is not looked at, and counts as little as a row of no weight
CREATE VIEW only_chosen AS SELECT * FROM whole_rows WHERE chosen;
SELECT kmeans_fit('incomplete', '{x,y}', 3, filter => 'chosen', nulls => 'skip', weight => 'w') = kmeans_fit('only_chosen', '{x,y}', 3, weight => 'w') AS same;
CREATE TABLE bad_rows AS SELECT i::float8 AS x, CASE WHEN i = 7 THEN 'NaN'::float8 ELSE i % 3 END AS y, i <> 7 AS good, CASE WHEN i = 7 THEN -1 ELSE 1 END AS w FROM generate_series(1, 50) AS i;
SELECT (kmeans_fit('bad_rows', '{x,y}', 2, filter => 'good', weight => 'w')).n, pg_temp.outcome('SELECT kmeans_fit(''bad_rows'', ''{x,y}'', 2)');
-- booleans
SELECT m.d, m.n, (SELECT array_agg(round(c.centroid[2]::numeric, 3) ORDER BY size DESC) FROM kmeans_centroids(m) AS c) AS share
FROM kmeans_fit('incomplete', '{w,even}', 2, options => kmeans_options(init_centroids => '{{0,1},{3,0}}')) AS m;
CREATE VIEW evens AS SELECT even::int FROM incomplete;
SELECT kmeans_fit('incomplete', '{even}', 2) = kmeans_fit('evens', '{even}', 2) AS same, (SELECT count(DISTINCT cluster_id) FROM kmeans_labels('incomplete', '{even,chosen,w}', 2, nulls => 'mean')) AS clusters;
-- the others that read tables
SELECT (gmm_fit('incomplete', '{x,y}', 2, nulls => 'skip', filter => 'chosen')).n, (pca_fit('incomplete', '{x,y}', nulls => 'mean', filter => 'chosen')).n AS pca,
    (SELECT count(*) FROM kmeans_sweep('incomplete', '{x,y}', 1, 3, nulls => 'mean', filter => 'chosen')) AS sweep;
SELECT (gmm_cluster('incomplete_again', '{x,y}', 2, nulls => 'skip', filter => 'even')).k;
SELECT count(component_id) = count(*) FILTER (WHERE even AND x IS NOT NULL AND y IS NOT NULL) AS labelled FROM incomplete_again;
-- loaded rows are known by nulls and filter, too
SELECT kmeans_load('incomplete', '{x,y}', nulls => 'mean', filter => 'chosen');
SELECT nulls, filter FROM kmeans_loaded();
SELECT kmeans_fit('incomplete', '{x,y}', 3, nulls => 'mean', filter => 'chosen', memory => 'loaded') = (SELECT m FROM incomplete_models WHERE features = '{x,y}' AND nulls = 'mean' AND filter = 'chosen') AS same;
SELECT pg_temp.outcome('SELECT kmeans_fit(''incomplete'', ''{x,y}'', 3, nulls => ''skip'', filter => ''chosen'', memory => ''loaded'')'), pg_temp.outcome('SELECT kmeans_fit(''incomplete'', ''{x,y}'', 3, nulls => ''mean'', memory => ''loaded'')');
SELECT kmeans_unload('incomplete', '{x,y}');
-- what is refused
SELECT pg_temp.outcome(format('SELECT kmeans_fit(''incomplete'', %s)', arguments)) FROM unnest(ARRAY[
    '''{x,y}'', 2', '''{f}'', 2', '''{x,y}'', 2, nulls => ''zero''', '''{x,y}'', 2, filter => ''w''', '''{x,y}'', 2, filter => ''nowhere''', '''{x,y}'', 2, weight => ''even''', '''{x,y}'', 2, nulls => NULL']) AS arguments;
CREATE TABLE never AS SELECT NULL::float8 AS x, i AS y, ARRAY[i, NULL] AS f, ARRAY[true] AS b FROM generate_series(1, 3) AS i;
SELECT pg_temp.outcome(format('SELECT kmeans_fit(''never'', %s)', arguments)) FROM unnest(ARRAY['''{x,y}'', 2, nulls => ''mean''', '''{f}'', 2, nulls => ''mean''', '''{x,y}'', 2, nulls => ''skip''', '''{b}'', 2']) AS arguments;
DROP VIEW whole_rows, mean_rows, only_chosen, evens;
DROP TABLE incomplete, incomplete_again, incomplete_models, heavy, repeated, bad_rows, never;

-- kmeans_load: rows that stay in the session
CREATE TABLE loaded_rows AS
SELECT i AS id, sin(i)::real AS x, cos(i * 7)::real AS y, ARRAY[sin(i), cos(i * 3), i % 5] AS f, 1 + i % 2 AS w FROM generate_series(1, 3000) AS i;
SELECT kmeans_load('loaded_rows', '{x,y}'), kmeans_load('loaded_rows', '{f}'), kmeans_load('loaded_rows', '{x,y}', 'w');
SELECT relid::regclass, relation, features, weight, n, d, bytes, loaded_at <= clock_timestamp() AS loaded_at
FROM kmeans_loaded() ORDER BY features, weight;

-- The same results as without, whatever was asked for before.
SELECT name, bool_and(kmeans_fit('loaded_rows', features::text[], k, options => kmeans_options(init => init, n_init => 2, tol => tol, metric => metric,
            standardize => standardize), weight => weight, memory => 'loaded')
        = kmeans_fit('loaded_rows', features::text[], k, options => kmeans_options(init => init, n_init => 2, tol => tol, metric => metric,
            standardize => standardize), weight => weight)) AS same
FROM (VALUES ('columns', '{x,y}', NULL), ('array', '{f}', NULL), ('weights', '{x,y}', 'w')) AS v (name, features, weight),
    (VALUES (3, 'random', 0, 'l2', false), (4, 'k-means++', 1e-4, 'l2', true), (5, 'k-means||', 0, 'cosine', false),
        (40, 'first', 1e-4, 'l2', false), (2, 'k-means++', 1e-4, 'l2', false)) AS o (k, init, tol, metric, standardize)
GROUP BY name ORDER BY name;
SELECT count(kmeans_fit('loaded_rows', '{x,y}', 3, memory => 'loaded'));
SELECT n, scan, workers, rows_scanned FROM kmeans_last_run();
SELECT count(*) FROM (TABLE loaded_rows EXCEPT SELECT r.* FROM loaded_rows AS r
    JOIN kmeans_labels('loaded_rows', '{x,y}', 3, memory => 'loaded') AS a ON a.row_ctid = r.ctid
    JOIN kmeans_labels('loaded_rows', '{x,y}', 3) AS b ON b.row_ctid = r.ctid AND b.cluster_id = a.cluster_id AND b.distance = a.distance) AS s;
SELECT bool_and(a = b) FROM kmeans_sweep('loaded_rows', '{x,y}', 2, 5, memory => 'loaded') AS a, kmeans_sweep('loaded_rows', '{x,y}', 2, 5) AS b
WHERE a.k = b.k;

SELECT gmm_fit('loaded_rows', '{x,y}', 3, options => gmm_options(covariance_type => 'diag', seed => 2), memory => 'loaded')::text = gmm_fit('loaded_rows', '{x,y}', 3, options => gmm_options(covariance_type => 'diag', seed => 2))::text AS mixture,
    pca_fit('loaded_rows', '{f}', options => pca_options(n_components => 2, standardize => true), memory => 'loaded')::text = pca_fit('loaded_rows', '{f}', options => pca_options(n_components => 2, standardize => true))::text AS components;
SELECT count(gmm_fit('loaded_rows', '{x,y}', 2, memory => 'loaded'));
SELECT n, scan FROM kmeans_last_run();

-- They are what was there when they were loaded.
BEGIN;
DELETE FROM loaded_rows WHERE id > 100;
SELECT (gmm_fit('loaded_rows', '{x,y}', 1, memory => 'loaded')).n AS mixture, (pca_fit('loaded_rows', '{x,y}', memory => 'loaded')).n AS components;
SELECT (kmeans_fit('loaded_rows', '{x,y}', 1, memory => 'loaded')).n AS loaded, (kmeans_fit('loaded_rows', '{x,y}', 1)).n AS now;
SELECT kmeans_load('loaded_rows', '{x,y}');
ROLLBACK;
SELECT (kmeans_fit('loaded_rows', '{x,y}', 1, memory => 'loaded')).n AS loaded, (kmeans_fit('loaded_rows', '{x,y}', 1)).n AS now;
SELECT kmeans_load('loaded_rows', '{x,y}');

-- Other columns, another weight, another role: not loaded.
SELECT kmeans_fit('loaded_rows', '{y,x}', 2, memory => 'loaded');
SELECT kmeans_fit('loaded_rows', '{f}', 2, weight => 'w', memory => 'loaded');
SELECT gmm_fit('loaded_rows', '{y,x}', 2, memory => 'loaded');
SELECT pca_fit('loaded_rows', '{y,x}', memory => 'loaded');
CREATE ROLE regress_loaded;
GRANT SELECT (x, y) ON loaded_rows TO regress_loaded;
SET ROLE regress_loaded;
SELECT (kmeans_fit('loaded_rows', '{x,y}', 2, memory => 'loaded')).n;
SELECT kmeans_load('loaded_rows', '{x,y}');
SELECT (kmeans_fit('loaded_rows', '{x,y}', 2, memory => 'loaded')).n;
SELECT count(*) FROM kmeans_labels('loaded_rows', '{x,y}', 2, memory => 'loaded');
SELECT kmeans_load('loaded_rows', '{f}');
SELECT kmeans_unload('loaded_rows', '{x,y}');
RESET ROLE;
SELECT count(*) FROM kmeans_loaded();

-- A view, a partitioned table, no rows, NULLs.
CREATE VIEW loaded_view AS SELECT x, y FROM loaded_rows WHERE id <= 10;
SELECT kmeans_load('loaded_view', '{x,y}');
SELECT (kmeans_fit('loaded_view', '{x,y}', 2, memory => 'loaded')).n;
SELECT * FROM kmeans_labels('loaded_view', '{x,y}', 2, memory => 'loaded');
CREATE TABLE loaded_parts (id integer, x integer) PARTITION BY LIST (id);
CREATE TABLE loaded_part_1 PARTITION OF loaded_parts FOR VALUES IN (1);
CREATE TABLE loaded_part_2 PARTITION OF loaded_parts FOR VALUES IN (2);
SELECT kmeans_load('loaded_parts', '{x}');
SELECT kmeans_fit('loaded_parts', '{x}', 2, memory => 'loaded') IS NULL AS nothing;
INSERT INTO loaded_parts VALUES (1, 1), (1, NULL), (2, 5), (2, 6);
SELECT kmeans_load('loaded_parts', '{x}');
SELECT row_table, row_ctid, cluster_id, distance FROM kmeans_labels('loaded_parts', '{x}', 2, options => kmeans_options(init => 'first'), memory => 'loaded');

-- What cannot be loaded leaves nothing, and what was loaded before under its name is gone.
INSERT INTO loaded_parts VALUES (1, 7);
ALTER TABLE loaded_parts ALTER x TYPE float8;
INSERT INTO loaded_parts VALUES (1, 'NaN');
SELECT kmeans_load('loaded_parts', '{x}');
SELECT count(*) FROM kmeans_loaded() WHERE relation = 'loaded_parts';
-- An error in a fit leaves them loaded.
SELECT kmeans_fit('loaded_rows', '{x,y}', 3, options => kmeans_options(init_centroids => '{{1,2}}'), memory => 'loaded');
SET statement_timeout = 100;
SELECT kmeans_fit('loaded_rows', '{x,y}', 1000, options => kmeans_options(n_init => 1000000), memory => 'loaded');
RESET statement_timeout;
SELECT (kmeans_fit('loaded_rows', '{x,y}', 2, memory => 'loaded')).n;

-- Unloading: one, all of a relation, all.
SELECT kmeans_unload('loaded_rows', '{x,y}', 'w'), kmeans_unload('loaded_rows', '{x,y}', 'w');
SELECT kmeans_unload('loaded_rows');
SELECT relation, features FROM kmeans_loaded();
DROP VIEW loaded_view;
SELECT kmeans_unload('loaded_view');
SELECT kmeans_unload(), kmeans_unload();

-- Memory: other rows come first, those that were not used for the longest time go.
CREATE TABLE loaded_more AS SELECT i::float8 AS x, -i::float8 AS y FROM generate_series(1, 60000) AS i;
SET pg_kmeans.memory_limit = '4500kB';
SELECT kmeans_load('loaded_more', '{x}'), kmeans_load('loaded_rows', '{f}');
SELECT (kmeans_fit('loaded_more', '{y}', 2, options => kmeans_options(init => 'first'))).n;
SELECT relation, features FROM kmeans_loaded();
-- Nothing is given up in vain.
SET pg_kmeans.memory_limit = '2MB';
\set VERBOSITY terse
SELECT (kmeans_fit('loaded_more', '{y}', 2, options => kmeans_options(init => 'first'))).n;
\set VERBOSITY default
SELECT relation, features FROM kmeans_loaded();
-- So it is where mixtures and PCA need the memory to work in.
CREATE FUNCTION pg_temp.loaded_error(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text; detail text; hint text;
BEGIN
    EXECUTE query;
    RETURN 'no error';
EXCEPTION WHEN program_limit_exceeded THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' / ', message, regexp_replace(detail, '\d+ kB', 'N kB', 'g'), hint);
END $$;
SET pg_kmeans.cpu_threads = 1;
SET pg_kmeans.memory_limit = '6MB';
SELECT kmeans_unload(), kmeans_load('loaded_more', '{x}'), kmeans_load('loaded_more', '{y}'), kmeans_load('loaded_rows', '{f}');
SELECT (kmeans_fit('loaded_more', '{x}', 2, options => kmeans_options(init => 'first', max_iter => 1), memory => 'loaded')).n;
SET pg_kmeans.memory_limit = '3600kB';
SELECT (gmm_fit('loaded_rows', '{f}', 3, options => gmm_options(covariance_type => 'diag'), memory => 'loaded')).n;
SELECT relation, features FROM kmeans_loaded() ORDER BY features;
SELECT pg_temp.loaded_error($$SELECT pca_fit('loaded_rows', '{f}', memory => 'loaded')$$);
SELECT pg_temp.loaded_error($$SELECT gmm_fit('loaded_rows', '{f}', 2999, memory => 'loaded')$$);
SELECT relation, features FROM kmeans_loaded() ORDER BY features;
SET pg_kmeans.memory_limit = '4500kB';
SELECT (pca_fit('loaded_rows', '{f}', memory => 'loaded')).n;
SELECT relation, features FROM kmeans_loaded();
SELECT kmeans_load('loaded_more', '{x}'), kmeans_load('loaded_rows', '{f}');
SET pg_kmeans.memory_limit = '3MB';
BEGIN;
SELECT (gmm_cluster('loaded_rows', '{f}', 3, options => gmm_options(covariance_type => 'diag'))).k;
ROLLBACK;
SELECT relation, features FROM kmeans_loaded();
SET pg_kmeans.memory_limit = '6MB';
SELECT kmeans_load('loaded_more', '{x}'), kmeans_load('loaded_rows', '{f}');
SET pg_kmeans.memory_limit = '4700kB';
SELECT (pca(f)).n FROM loaded_rows;
SELECT relation, features FROM kmeans_loaded();
-- Rows that would make room for their own fit stay, and go for others' when it has failed.
SET pg_kmeans.memory_limit = '6MB';
SELECT kmeans_load('loaded_more', '{x}'), kmeans_unload('loaded_rows');
SET pg_kmeans.memory_limit = '4700kB';
SELECT pg_temp.loaded_error($$SELECT gmm_fit('loaded_more', '{x}', 2, memory => 'loaded')$$);
SELECT pg_temp.loaded_error($$SELECT pca_fit('loaded_more', '{x}', memory => 'loaded')$$);
SELECT relation, features FROM kmeans_loaded();
SELECT (pca_fit('loaded_rows', '{f}')).n;
SELECT relation, features FROM kmeans_loaded();
RESET pg_kmeans.cpu_threads;
-- What is being fitted stays, and the other rows go.
SET pg_kmeans.memory_limit = 0;
SELECT kmeans_load('loaded_rows', '{f}');
SET pg_kmeans.memory_limit = '1200kB';
SELECT (kmeans_fit('loaded_rows', '{f}', 2, options => kmeans_options(init => 'first'), memory => 'loaded')).n;
SELECT kmeans_load('loaded_rows', '{x,y}');
SELECT (kmeans_fit('loaded_rows', '{x,y}', 2, options => kmeans_options(init => 'first'), memory => 'loaded')).n;
SELECT relation, features FROM kmeans_loaded();
RESET pg_kmeans.memory_limit;
SELECT kmeans_unload();

-- errors
SELECT kmeans_load(NULL, '{x}');
SELECT kmeans_load('loaded_rows', NULL);
SELECT kmeans_load('loaded_none', '{x}');
SELECT kmeans_load('loaded_rows', '{z}');
SELECT kmeans_load('loaded_rows', '{x}', 'f');

DROP TABLE loaded_rows, loaded_parts, loaded_more;
DROP ROLE regress_loaded;

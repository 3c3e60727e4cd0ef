-- rows that exceed the memory limit are read anew for each pass: the same bits as in memory
CREATE TABLE streamed (id integer, x real, y double precision, f real[], w double precision, keep boolean);
INSERT INTO streamed
SELECT i, CASE WHEN i % 50 > 0 THEN sin(i) * 10 + i % 7 END, CASE WHEN i % 50 > 0 THEN cos(i * 3) + i % 5 END,
       ARRAY[sin(i), i % 3, cos(i * 7)], i % 11, i % 4 > 0
FROM generate_series(1, 20000) AS i;
CREATE TABLE streamed_parts (x real, y real) PARTITION BY RANGE (x);
CREATE TABLE streamed_low PARTITION OF streamed_parts FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE streamed_high PARTITION OF streamed_parts FOR VALUES FROM (0) TO (MAXVALUE);
INSERT INTO streamed_parts SELECT i % 5 - 2, i % 3 FROM generate_series(1, 15000) AS i;

CREATE TABLE streamed_fits (name text, memory text, model kmeans_model);
CREATE FUNCTION streamed_fit(memory text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO streamed_fits VALUES
        ('parallel', memory, kmeans_fit('streamed', '{x,y}', 12, options => kmeans_options(init => 'k-means||'), memory => memory)),
        ('greedy', memory, kmeans_fit('streamed', '{x,y}', 5, options => kmeans_options(init => 'k-means++', standardize => true), memory => memory)),
        ('random', memory, kmeans_fit('streamed', '{f}', 9, options => kmeans_options(init => 'random', n_init => 3, tol => 0), memory => memory)),
        ('cosine', memory, kmeans_fit('streamed', '{f}', 6, options => kmeans_options(init => 'k-means||', metric => 'cosine'), memory => memory)),
        ('weights', memory, kmeans_fit('streamed', '{x,y}', 7, options => kmeans_options(init => 'random', refine => true), weight => 'w', memory => memory)),
        ('filter', memory, kmeans_fit('streamed', '{x,y}', 7, options => kmeans_options(init => 'k-means||'), filter => 'keep', nulls => 'skip', memory => memory)),
        ('given', memory, kmeans_fit('streamed', '{x,y}', 3, options => kmeans_options(init_centroids => '{{0,0},{1e6,1e6},{2e6,2e6}}'), memory => memory)),
        ('partitions', memory, kmeans_fit('streamed_parts', '{x,y}', 20, options => kmeans_options(init => 'k-means||'), memory => memory))
$$;
SELECT streamed_fit('resident');
SET pg_kmeans.memory_limit = '1600kB';
SELECT streamed_fit('stream');
SELECT name, s.model = r.model AS same, (s.model).k, (s.model).n
FROM streamed_fits AS s JOIN streamed_fits AS r USING (name) WHERE s.memory = 'stream' AND r.memory = 'resident' ORDER BY name;
SELECT function, n, d, scan, rows_scanned FROM kmeans_last_run();

-- auto: where rows and the work on them would pass the limit
SELECT kmeans_fit('streamed', '{x,y}', 12, memory => 'resident');
CREATE TABLE streamed_auto AS SELECT kmeans_fit('streamed', '{x,y}', 12) AS model;
SELECT scan FROM kmeans_last_run();
RESET pg_kmeans.memory_limit;

-- the default init goes by rows, features and k: the same model in memory, here with fewer and there with more than 2^33
-- values of rows times k
CREATE TABLE streamed_repeats AS SELECT i % 700 + (i % 7) * 0.01 AS x, i % 3 + 0.5 AS w FROM generate_series(1, 100000) AS i;
SELECT s.model = r.model AS same, (s.model).origin.options->>'init' AS streamed, (r.model).origin.options->>'init' AS resident, (r.model).k
FROM streamed_auto AS s, (SELECT kmeans_fit('streamed', '{x,y}', 12) AS model) AS r
UNION ALL
SELECT s.model = r.model, (s.model).origin.options->>'init', (r.model).origin.options->>'init', (r.model).k
FROM (SELECT kmeans_fit('streamed_repeats', '{x}', 85900, memory => 'stream') AS model) AS s,
     (SELECT kmeans_fit('streamed_repeats', '{x}', 85900, memory => 'resident') AS model) AS r;
-- rows that repeat: in memory by those that differ, in a stream one by one
SELECT init, kmeans_fit('streamed_repeats', '{x}', 60, options => kmeans_options(init => init, tol => 0), weight => 'w', memory => 'stream')
           = kmeans_fit('streamed_repeats', '{x}', 60, options => kmeans_options(init => init, tol => 0), weight => 'w', memory => 'resident') AS same
FROM unnest('{k-means++,k-means||,random}'::text[]) AS init;
DROP TABLE streamed_repeats;
SELECT (kmeans_fit('streamed', '{x,y}', 12)).k;
SELECT scan FROM kmeans_last_run();

-- of a sweep, what its last k and its silhouettes take
ANALYZE streamed;
SET pg_kmeans.memory_limit = '2100kB';
SELECT count(*) FROM kmeans_sweep('streamed', '{x,y}', 2, 3, options => kmeans_options(init => 'random'), sample => 0);
SELECT scan FROM kmeans_last_run();
SELECT count(*), count(silhouette) FROM kmeans_sweep('streamed', '{x,y}', 2, 3, options => kmeans_options(init => 'random'));
SELECT scan FROM kmeans_last_run();
SELECT count(*) FROM kmeans_sweep('streamed', '{x,y}', 2, 60, options => kmeans_options(init => 'random', max_iter => 10), sample => 0);
SELECT scan FROM kmeans_last_run();
CREATE TABLE streamed_few AS SELECT i::double precision AS x FROM generate_series(1, 300) AS i;
RESET pg_kmeans.memory_limit;

-- its siblings
CREATE TABLE streamed_sweep AS SELECT * FROM kmeans_sweep('streamed', '{x,y}', 2, 4, options => kmeans_options(init => 'random'), memory => 'resident');
CREATE TABLE streamed_models AS
SELECT gmm_fit('streamed', '{f}', 3, memory => 'resident') AS g, gmm_fit('streamed', '{f}', 2, options => gmm_options(covariance_type => 'tied'), memory => 'resident') AS t,
       pca_fit('streamed', '{f}', memory => 'resident') AS p;
SET pg_kmeans.memory_limit = '5MB';
SELECT count(*) FROM kmeans_sweep('streamed_few', '{x}', 299, 1000000000, options => kmeans_options(init => 'random'), memory => 'stream');
SELECT s.k, s.inertia = r.inertia AND s.n_iter = r.n_iter AS same, abs(s.simplified_silhouette - r.simplified_silhouette) < 1e-9 AS near
FROM kmeans_sweep('streamed', '{x,y}', 2, 4, options => kmeans_options(init => 'random'), memory => 'stream') AS s JOIN streamed_sweep AS r USING (k);
SELECT abs((s).log_likelihood - (g).log_likelihood) < 1e-6 AS near, (s).n_iter = (g).n_iter AS same
FROM streamed_models, gmm_fit('streamed', '{f}', 3, memory => 'stream') AS s;
SELECT abs((s).components[1][1] - (p).components[1][1]) < 1e-9 AS near, (s).n FROM streamed_models, pca_fit('streamed', '{f}', memory => 'stream') AS s;
-- of which the CPU promises the bits
SET pg_kmeans.backend = cpu;
RESET pg_kmeans.memory_limit;
UPDATE streamed_models SET g = gmm_fit('streamed', '{f}', 3, memory => 'resident'), p = pca_fit('streamed', '{f}', memory => 'resident'),
       t = gmm_fit('streamed', '{f}', 2, options => gmm_options(covariance_type => 'tied'), memory => 'resident');
SET pg_kmeans.memory_limit = '5MB';
SELECT s = g AS same FROM streamed_models, gmm_fit('streamed', '{f}', 3, memory => 'stream') AS s;
SELECT s = t AS same FROM streamed_models, gmm_fit('streamed', '{f}', 2, options => gmm_options(covariance_type => 'tied'), memory => 'stream') AS s;
SELECT s = p AS same, (s).n FROM streamed_models, pca_fit('streamed', '{f}', memory => 'stream') AS s;
RESET pg_kmeans.backend;

-- labels in a column: those of the nearest centroids
CREATE FUNCTION streamed_labels(label text, memory text) RETURNS void LANGUAGE sql AS $$
    SELECT kmeans_cluster('streamed', '{x,y}', 6, options => kmeans_options(init => 'k-means||'), weight => 'w', filter => 'keep', nulls => 'skip', label_column => label, memory => memory)
$$;
SELECT streamed_labels('resident', 'resident');
SET pg_kmeans.memory_limit = '1600kB';
SELECT streamed_labels('stream', 'stream');
SELECT function, scan FROM kmeans_last_run();
SELECT resident IS NULL AS none, count(*), count(*) FILTER (WHERE resident IS DISTINCT FROM stream) AS other FROM streamed GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('streamed_parts', '{x,y}', 4, options => kmeans_options(init => 'random'), memory => 'stream'));
SELECT count(*), count(cluster_id) FROM streamed_parts;
-- each is computed once; old ones may be any integers
ALTER TABLE streamed ADD COLUMN wide bigint DEFAULT 5000000000;
BEGIN;
SET LOCAL track_functions = 'all';
SELECT (kmeans_cluster('streamed', '{x,y}', 6, options => kmeans_options(init => 'k-means||'), weight => 'w', filter => 'keep', nulls => 'skip', label_column => 'wide', overwrite => true, memory => 'stream')).k;
SELECT pg_stat_get_xact_function_calls('pgkm_row_kmeans_predict(kmeans_model, text[], "any")'::regprocedure) - count(wide) AS more_calls_than_labels, count(wide) > 0 AS labels,
    count(*) FILTER (WHERE wide IS DISTINCT FROM resident) AS other FROM streamed;
COMMIT;
SET pg_kmeans.memory_limit = '5MB';

-- what a pass cannot read is an error, as in memory; nothing is left behind
\set VERBOSITY terse
INSERT INTO streamed (x, y) VALUES (1, 'NaN');
SELECT kmeans_fit('streamed', '{x,y}', 3, memory => 'stream');
DELETE FROM streamed WHERE y = 'NaN';
INSERT INTO streamed (f) VALUES ('{1,2}');
SELECT kmeans_fit('streamed', '{f}', 3, memory => 'stream');
DELETE FROM streamed WHERE f = '{1,2}';
\set VERBOSITY default
SELECT kmeans_fit('streamed', '{x,y}', 3, options => kmeans_options(metric => 'cosine', standardize => true), memory => 'stream', filter => 'keep') IS NOT NULL AS fitted;

-- what memory => 'stream' does not go with
CREATE VIEW streamed_view AS SELECT x, y FROM streamed WHERE keep;
SELECT kmeans_fit('streamed_view', '{x,y}', 3, memory => 'stream');
SET pg_kmeans.scan = executor;
SELECT kmeans_fit('streamed', '{x,y}', 3, memory => 'stream');
RESET pg_kmeans.scan;
SELECT kmeans_fit('streamed', '{x,y}', 3, options => kmeans_options(init => 'first'), memory => 'stream');
SELECT kmeans_fit('streamed', '{x,y}', 3, options => kmeans_options(batch_size => 10), memory => 'stream');
SELECT kmeans_fit('streamed', '{x,y}', 3, nulls => 'mean', memory => 'stream');
SELECT kmeans_labels('streamed', '{x,y}', 3, memory => 'stream');
SELECT kmeans_tree('streamed', '{x,y}', k => 3, memory => 'stream');
SELECT kmeans_cluster('streamed', '{x,y}', 3, memory => 'loaded');
-- where the limit is passed, the option that keeps rows in memory
CREATE FUNCTION streamed_hint(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text;
    hint text;
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(': ', code, hint);
END$$;
SET pg_kmeans.memory_limit = '500kB';
SELECT option, streamed_hint(format('kmeans_fit(%L, %L, 3, options => kmeans_options(%s))', 'streamed', '{x,y}', option)) AS hint
    FROM unnest(ARRAY['init => ''first''', 'batch_size => 10', 'min_size => 10', 'max_size => 0.5', 'max_radius => 1000']) AS option;
SELECT streamed_hint($$ kmeans_fit('streamed', '{x,y}', 3, nulls => 'mean') $$);
SELECT streamed_hint($$ kmeans_cluster('streamed', '{x,y}', 3, options => kmeans_options(max_size => 0.5)) $$);
SELECT streamed_hint($$ kmeans_sweep('streamed', '{x,y}', 2, 3, options => kmeans_options(init => 'first')) $$);
-- which alone would not help
SELECT streamed_hint($$ kmeans_fit('streamed', '{x,y}', 3, options => kmeans_options(batch_size => 10), memory => 'resident') $$);
SELECT streamed_hint($$ kmeans_fit('streamed_view', '{x,y}', 3, options => kmeans_options(batch_size => 10)) $$);
SELECT streamed_hint($$ kmeans_labels('streamed', '{x,y}', 3) $$);
DROP FUNCTION streamed_hint(text);
RESET pg_kmeans.memory_limit;
SELECT kmeans_fit('streamed', '{x,y}', 3, memory => 'disk');
SET pg_kmeans.memory_limit = '500kB';
\set VERBOSITY terse
SELECT kmeans_fit('streamed', '{x,y}', 3, memory => 'stream');
\set VERBOSITY default
RESET pg_kmeans.memory_limit;
CREATE TABLE streamed_none (x real, f real[]);
SELECT kmeans_fit('streamed_none', '{x}', 3, memory => 'stream') IS NULL AS none, gmm_fit('streamed_none', '{f}', 3, memory => 'stream') IS NULL AS none,
       pca_fit('streamed_none', '{f}', memory => 'stream') IS NULL AS none;
SELECT kmeans_cluster('streamed_none', '{x}', 3, memory => 'stream') IS NULL AS none;
INSERT INTO streamed_none (cluster_id) VALUES (1);
SELECT kmeans_cluster('streamed_none', '{x}', 3, memory => 'stream') IS NULL AS none;
SELECT cluster_id FROM streamed_none;
SELECT * FROM kmeans_sweep('streamed_none', '{x}', 2, 4, memory => 'stream');
CREATE TABLE streamed_nowhere (x real) PARTITION BY RANGE (x);
SELECT count(*) FROM kmeans_sweep('streamed_nowhere', '{x}', 2, 4);
DROP TABLE streamed_nowhere;
DROP VIEW streamed_view;
DROP FUNCTION streamed_fit(text);
DROP FUNCTION streamed_labels(text, text);
DROP TABLE streamed_few, streamed, streamed_parts, streamed_fits, streamed_sweep, streamed_models, streamed_none;

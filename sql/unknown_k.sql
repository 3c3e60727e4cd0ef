-- kmeans_sweep's silhouettes by their definition, and BIC by its formula; the suggested k; gmm_sweep.
CREATE TABLE unknown_rows AS
SELECT i AS id, (i * 7919 % 1009) / 800.0 + i % 3 * 2 AS x, (i * 104729 % 997) / 800.0 + i % 3 % 2 AS y, 1 + i % 4 AS w FROM generate_series(1, 300) AS i;
CREATE FUNCTION unknown_near(a float8, b float8) RETURNS boolean LANGUAGE sql AS 'SELECT abs(a - b) <= 1e-11 * abs(b)';
CREATE FUNCTION unknown_silhouette(k bigint) RETURNS double precision LANGUAGE sql AS $$
    WITH l AS MATERIALIZED (SELECT t.id, t.x::float8, t.y::float8, l.cluster_id AS c FROM kmeans_labels('unknown_rows', '{x,y}', k) AS l JOIN unknown_rows AS t ON t.ctid = l.row_ctid),
    pairs AS (SELECT a.id, a.c, b.c AS other, sum(sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)) AS s, count(*) FILTER (WHERE a.id <> b.id) AS n FROM l AS a, l AS b GROUP BY 1, 2, 3),
    distances AS (SELECT id, max(s / nullif(n, 0)) FILTER (WHERE other = c) AS a, min(s / n) FILTER (WHERE other <> c) AS b FROM pairs GROUP BY id)
    SELECT avg(coalesce((b - a) / greatest(a, b), 0)) FROM distances
$$;
CREATE FUNCTION unknown_bic(m kmeans_model) RETURNS double precision LANGUAGE sql AS $$
    SELECT m.k * (m.d + 1) * ln(m.n) - 2 * (sum(s * ln(s / m.n::float8)) - m.n * m.d / 2.0 * (ln(2 * pi() * m.inertia / (m.n * m.d)) + 1)) FROM unnest(m.size) AS s
$$;
SELECT s.k, unknown_near(s.silhouette, unknown_silhouette(s.k)) AS silhouette, s.silhouette_error, unknown_near(s.bic, unknown_bic(kmeans_fit('unknown_rows', '{x,y}', s.k))) AS bic, s.suggestion
FROM kmeans_sweep('unknown_rows', '{x,y}', 2, 6) AS s ORDER BY k;
SELECT unknown_near(bic, unknown_bic(kmeans_fit('unknown_rows', '{x,y}', 1))) AS bic, silhouette, suggestion FROM kmeans_sweep('unknown_rows', '{x,y}', 1, 1);
-- singletons: as many clusters as rows but one
SELECT unknown_near(silhouette, unknown_silhouette(299)) AS silhouette FROM kmeans_sweep('unknown_rows', '{x,y}', 299, 299);

-- A row of weight w counts like w rows.
CREATE VIEW unknown_repeated AS SELECT t.* FROM unknown_rows AS t, generate_series(1, w);
SELECT k, unknown_near(a.inertia, b.inertia) AS inertia, unknown_near(a.silhouette, b.silhouette) AS silhouette, unknown_near(a.bic, b.bic) AS bic, a.suggestion = b.suggestion AS suggestion
FROM kmeans_sweep('unknown_rows', '{x,y}', 3, 3, weight => 'w', options => kmeans_options(n_init => 20, tol => 0)) AS a JOIN kmeans_sweep('unknown_repeated', '{x,y}', 3, 3, options => kmeans_options(n_init => 20, tol => 0)) AS b USING (k);

-- Of a sample the error is that of the estimate. The same sample and sums in any order of rows, with any number of threads.
CREATE TABLE unknown_many AS
SELECT i AS id, ((i * 7919 % 10007) / 5000.0 + i % 4 * 3)::real AS x, ((i * 104729 % 9973) / 5000.0 + i % 4 % 2)::real AS y, i % 5 / 2.0 AS w FROM generate_series(1, 4000) AS i;
CREATE TABLE unknown_shuffled AS SELECT * FROM unknown_many ORDER BY md5(id::text);
CREATE TABLE unknown_sweeps AS
SELECT n, s.* FROM unnest(ARRAY[200, 1000, 4000, 100000]) AS n, LATERAL kmeans_sweep('unknown_many', '{x,y}', 2, 5, sample => n) AS s;
SELECT a.n, bool_and(abs(a.silhouette - e.silhouette) < 3 * a.silhouette_error OR a.n >= 4000 AND a.silhouette = e.silhouette) AS near, max(a.silhouette_error) < 0.03 AS error,
    min(a.silhouette_error) = 0 AS exact, max(a.k) FILTER (WHERE a.suggestion IS NOT NULL) AS suggested
FROM unknown_sweeps AS a JOIN unknown_sweeps AS e ON e.k = a.k AND e.n = 100000 GROUP BY a.n ORDER BY n;
SELECT bool_and(s.silhouette = e.silhouette AND s.silhouette_error = 0) AS default_is_exact FROM kmeans_sweep('unknown_many', '{x,y}', 2, 5) AS s JOIN unknown_sweeps AS e USING (k) WHERE n = 4000;
SELECT bool_and(silhouette IS NULL AND silhouette_error IS NULL) AS none, max(k) FILTER (WHERE suggestion = 'highest simplified silhouette') AS suggested FROM kmeans_sweep('unknown_many', '{x,y}', 2, 5, sample => 0);
CREATE TABLE unknown_one AS SELECT k, silhouette, silhouette_error, bic, suggestion FROM kmeans_sweep('unknown_many', '{x,y}', 1, 5, weight => 'w', sample => 300);
SET pg_kmeans.cpu_threads = 3;
SELECT count(*) FROM (SELECT k, silhouette, silhouette_error, bic, suggestion FROM kmeans_sweep('unknown_shuffled', '{x,y}', 1, 5, weight => 'w', sample => 300) INTERSECT TABLE unknown_one) AS s;
RESET pg_kmeans.cpu_threads;

-- One cluster, and groups that are far apart.
CREATE TABLE unknown_blob AS SELECT sqrt(-2 * ln(i / 1001.0)) * cos(i * 2.399963) AS x, sqrt(-2 * ln(i / 1001.0)) * sin(i * 2.399963) AS y FROM generate_series(1, 1000) AS i;
SELECT k, suggestion FROM kmeans_sweep('unknown_blob', '{x,y}', 1, 5) WHERE suggestion IS NOT NULL;
SELECT k, suggestion FROM kmeans_sweep('unknown_many', '{x,y}', 1, 7) WHERE suggestion IS NOT NULL;
SELECT k, suggestion FROM kmeans_sweep('unknown_many', '{x,y}', 2, 7, options => kmeans_options(metric => 'cosine', standardize => true), sample => 100) WHERE suggestion IS NOT NULL;
-- errors
\set VERBOSITY terse
SELECT * FROM kmeans_sweep('unknown_rows', '{x,y}', 2, 3, sample => -1);
\set VERBOSITY default

-- gmm_sweep: the fit of each k is that of gmm_fit.
SELECT s.k, s.log_likelihood = m.log_likelihood AND s.aic = m.aic AND s.bic = m.bic AND s.components = m.k AND s.n_iter = m.n_iter AND s.converged = m.converged AS same, s.suggestion
FROM gmm_sweep('unknown_rows', '{x,y}', 1, 5, options => gmm_options(covariance_type => 'diag', reg_covar => 1e-3, seed => 3)) AS s,
    LATERAL gmm_fit('unknown_rows', '{x,y}', s.k, options => gmm_options(covariance_type => 'diag', reg_covar => 1e-3, seed => 3)) AS m ORDER BY s.k;
SELECT k, suggestion FROM gmm_sweep('unknown_blob', '{x,y}', 1, 4) WHERE suggestion IS NOT NULL;
SELECT function, relid::regclass, n, k, rows_scanned FROM kmeans_last_run();
SELECT kmeans_load('unknown_rows', '{x,y}');
SELECT count(*) FROM (SELECT * FROM gmm_sweep('unknown_rows', '{x,y}', 2, 4, memory => 'loaded') INTERSECT SELECT * FROM gmm_sweep('unknown_rows', '{x,y}', 2, 4)) AS s;
SELECT kmeans_unload();
SELECT k, components FROM gmm_sweep('unknown_rows', '{x,y}', 2, 3, filter => NULL, nulls => 'skip', options => gmm_options(max_iter => 1, n_init => 2));
CREATE TABLE unknown_few (x integer);
SELECT * FROM gmm_sweep('unknown_few', '{x}', 1, 3);
-- what the largest k needs counts before any fit
DO $$
DECLARE detail text;
BEGIN
    SET LOCAL pg_kmeans.memory_limit = '5MB';
    PERFORM gmm_sweep('unknown_many', '{x,y}', 1, 2000);
EXCEPTION WHEN program_limit_exceeded THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE NOTICE '%', substring(detail FROM '^.* features');
END $$;
INSERT INTO unknown_few VALUES (1), (1), (5);
SELECT k, components, suggestion FROM gmm_sweep('unknown_few', '{x}', 1, 9, options => gmm_options(reg_covar => 0.1));
SELECT * FROM gmm_sweep('unknown_few', '{x}', 3, 2);
SELECT * FROM gmm_sweep('unknown_few', '{x}', 0, 2);
SELECT * FROM gmm_sweep('unknown_few', '{x}', 1, NULL);
SELECT * FROM gmm_sweep('unknown_few', '{x}', 1, 2, options => gmm_options(covariance_type => 'round'));
SELECT * FROM gmm_sweep('unknown_few', '{x}', 1, 3, options => gmm_options(reg_covar => 0));
SELECT * FROM gmm_sweep('unknown_few', '{y}', 1, 2);
SELECT * FROM gmm_sweep(NULL, '{x}', 1, 2);
SELECT * FROM gmm_sweep('unknown_few', '{x}', 1, 2, memory => 'loaded');
DROP VIEW unknown_repeated;
DROP TABLE unknown_rows, unknown_many, unknown_shuffled, unknown_sweeps, unknown_one, unknown_blob, unknown_few;
DROP FUNCTION unknown_near, unknown_silhouette, unknown_bic;

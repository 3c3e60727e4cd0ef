-- kmeans_auto: the model of the k that a sweep of the rows suggests, for each group
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
-- Groups of 1 to 4 clouds, of one row, of two, of rows that repeat, and of equal rows.
CREATE TABLE auto_rows AS
SELECT g, i, i % (1 + g % 4) * 9 + sin(i * 12.9898 + g) AS x, i % (1 + g % 4) % 2 * 7 + cos(i * 78.233 * g) AS y, 1 + i % 3 * 0.5 AS w FROM generate_series(1, 12) AS g, generate_series(1, 10 + g * 5) AS i
UNION ALL SELECT 20, 1, 5, 5, 1 UNION ALL SELECT 21, i, i, 0, 2 FROM generate_series(1, 2) AS i
UNION ALL SELECT 22, i, 1 + i % 3 * 4, 1 + i % 3, 1 FROM generate_series(1, 30) AS i UNION ALL SELECT 23, i, 7, 7, 1 FROM generate_series(1, 9) AS i;
CREATE TABLE auto_models AS SELECT g, kmeans_auto(ARRAY[x, y], 1, 6) AS m FROM auto_rows GROUP BY g;
-- Silhouettes over all pairs and the BIC, from the labels of each k by itself; the rule of the sweep.
SET client_min_messages = error;
CREATE TABLE auto_labels AS SELECT f.g, k, i, x, y, kmeans_predict(m, ARRAY[x, y]) AS c, (m).centroids AS centroids
FROM (SELECT g, k, kmeans(ARRAY[x, y], k) AS m FROM auto_rows, generate_series(1, 6) AS k GROUP BY g, k HAVING k = 1 OR count(*) >= k) AS f JOIN auto_rows AS r USING (g);
RESET client_min_messages;
CREATE TABLE auto_wanted AS
WITH near AS (
    SELECT a.g, a.k, a.i, a.c, b.c AS other, sum(sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)) AS total, count(*) AS n FROM auto_labels AS a JOIN auto_labels AS b USING (g, k) GROUP BY 1, 2, 3, 4, 5
), rows AS (
    SELECT g, k, i, max(total / nullif(n - 1, 0)) FILTER (WHERE c = other) AS a, min(total / n) FILTER (WHERE c <> other) AS b, count(*) AS clusters FROM near GROUP BY g, k, i
), judged AS (
    SELECT g, k, CASE WHEN min(clusters) BETWEEN 2 AND count(*) - 1 THEN avg(coalesce((b - a) / nullif(greatest(a, b), 0), 0)) END AS silhouette FROM rows GROUP BY g, k
), spheres AS (
    SELECT g, k, c, count(*) AS n, sum((x - centroids[c + 1][1]) ^ 2 + (y - centroids[c + 1][2]) ^ 2) AS within FROM auto_labels GROUP BY g, k, c
), criteria AS (
    SELECT g, k, CASE WHEN sum(within) > 0 THEN count(*) * 3 * ln(sum(n)) - 2 * (sum(n * ln(n / s.all_rows)) - sum(n) * (ln(2 * pi() * (sum(within) / (sum(n) * 2))) + 1)) END AS bic
    FROM spheres JOIN (SELECT g, count(*)::float8 AS all_rows FROM auto_rows GROUP BY g) AS s USING (g) GROUP BY g, k
)
SELECT g, CASE WHEN (array_agg(k ORDER BY bic, k) FILTER (WHERE bic IS NOT NULL))[1] = 1 THEN 1 ELSE coalesce((array_agg(k ORDER BY round(silhouette::numeric, 12) DESC, k) FILTER (WHERE silhouette IS NOT NULL))[1], 1) END AS k
FROM judged JOIN criteria USING (g, k) GROUP BY g;
SELECT count(*) AS groups, count(*) FILTER (WHERE m = (SELECT kmeans(ARRAY[x, y], w.k) FROM auto_rows AS r WHERE r.g = w.g)) AS as_wanted, array_agg((m).k ORDER BY g) AS found FROM auto_models JOIN auto_wanted AS w USING (g);
-- The sweep of the same rows says the same, whatever the options and weights.
CREATE FUNCTION pg_temp.as_swept(first int, last int, options text, weight text, type text) RETURNS TABLE (groups bigint, same bigint, one bigint, found int[]) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT count(*), count(*) FILTER (WHERE m = swept), count(*) FILTER (WHERE m = alone), array_agg((m).k ORDER BY g) FROM (
            SELECT g, kmeans_auto(ARRAY[x, y]::%5$s, %1$s, %2$s, %3$s%4$s) AS m FROM auto_rows GROUP BY g) AS a, LATERAL (
            SELECT coalesce(min(k) FILTER (WHERE suggestion IS NOT NULL), %1$s) AS k FROM kmeans_sweep(''auto_rows'', ''{x::%6$s,y::%6$s}'', %1$s, %2$s, %3$s%7$s, filter => ''g = '' || g)) AS s, LATERAL (
            SELECT kmeans(ARRAY[x, y]::%5$s, k, %3$s%4$s) AS swept, kmeans_auto(ARRAY[x, y]::%5$s, %1$s, %2$s, %3$s%4$s) AS alone FROM auto_rows AS r WHERE r.g = a.g) AS f',
        first, last, options, coalesce(', ' || weight, ''), type, rtrim(type, '[]'), coalesce(', weight => ' || quote_literal(weight), ''));
END $$;
SET client_min_messages = error;
SELECT t.*, groups, same, one, found FROM (VALUES (1, 6, 'NULL::kmeans_options', NULL, 'float8[]'), (2, 5, 'kmeans_options(metric => ''cosine'', n_init => 3)', NULL, 'real[]'), (1, 12, 'kmeans_options(refine => true, seed => 5)', NULL, 'real[]'),
    (3, 3, 'kmeans_options(tol => 0, init => ''random'')', NULL, 'float8[]'), (1, 5, 'kmeans_options(n_init => 2)', 'w', 'real[]'), (2, 4, 'kmeans_options(metric => ''cosine'')', 'w', 'float8[]'), (1, 20, 'kmeans_options(batch_size => 16)', NULL, 'float8[]'), (1, 1, 'NULL::kmeans_options', 'w', 'real[]')) AS t (first, last, options, weight, type), LATERAL pg_temp.as_swept(first, last, options, weight, type);
RESET client_min_messages;
-- More rows than all pairs are taken of: silhouettes of a sample.
CREATE TABLE auto_many AS SELECT (i % 5 * 10 + sin(i * 12.9898) * 3)::real AS x, (i % 5 % 2 * 9 + cos(i * 78.233) * 3)::real AS y FROM generate_series(1, 20000) AS i;
SELECT (m).k, m = kmeans(ARRAY[x, y], s.k) AS same FROM (SELECT kmeans_auto(ARRAY[x, y], 2, 9) AS m FROM auto_many) AS a, (SELECT k FROM kmeans_sweep('auto_many', '{x,y}', 2, 9) WHERE suggestion IS NOT NULL) AS s, auto_many GROUP BY m, s.k;
-- Hashed, sorted, in parallel, and in a growing frame: the same models.
SET enable_hashagg = off;
SELECT count(*), every(s.m = a.m) AS sorted FROM (SELECT g, kmeans_auto(ARRAY[x, y], 1, 6) AS m FROM auto_rows GROUP BY g) AS s JOIN auto_models AS a USING (g);
RESET enable_hashagg;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashagg = off;
ALTER TABLE auto_many SET (parallel_workers = 2);
ALTER FUNCTION pgkm_combine(internal, internal) COST 1;
CREATE FUNCTION pg_temp.gathers(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan::text ~ 'Partial';
END $$;
SELECT pg_temp.gathers('SELECT kmeans_auto(ARRAY[x, y], 2, 9) FROM auto_many');
CREATE TABLE auto_parallel AS SELECT kmeans_auto(ARRAY[x, y], 2, 9) AS m FROM auto_many;
SET max_parallel_workers_per_gather = 0;
SELECT m = kmeans_auto(ARRAY[x, y], 2, 9) AS same FROM auto_parallel, auto_many GROUP BY m;
RESET ALL;
ALTER FUNCTION pgkm_combine(internal, internal) COST 20000;
SELECT every(m = (SELECT kmeans_auto(ARRAY[x, y], 1, 4) FROM auto_rows AS r WHERE g = 3 AND r.i <= s.i)) AS same, array_agg((m).k ORDER BY i) AS found FROM (SELECT i, kmeans_auto(ARRAY[x, y], 1, 4) OVER (ORDER BY i) AS m FROM auto_rows WHERE g = 3) AS s;
-- The number of threads changes nothing.
SET pg_kmeans.cpu_threads = 1;
SELECT every(s.m = a.m) AS same FROM (SELECT g, kmeans_auto(ARRAY[x, y], 1, 6) AS m FROM auto_rows GROUP BY g) AS s JOIN auto_models AS a USING (g);
RESET pg_kmeans.cpu_threads;
-- Ranges that differ from group to group. Fewer distinct rows than k_min: fewer clusters, and a WARNING.
SELECT g, (kmeans_auto(ARRAY[x, y], 1 + g % 2, 3 + g % 3)).k FROM auto_rows WHERE g < 7 GROUP BY g ORDER BY g;
SELECT (kmeans_auto(ARRAY[x, y], 5, 6)).k FROM auto_rows WHERE g = 22;
SET client_min_messages = error;
SELECT g, (kmeans_auto(ARRAY[x, y], 5, 6)).k FROM auto_rows WHERE g >= 20 GROUP BY g ORDER BY g;
RESET client_min_messages;
-- NULL rows, no rows, bounds of sizes
SELECT kmeans_auto(NULL::real[], 1, 3) IS NULL AS none, kmeans_auto(ARRAY[x, y], 1, 3) FILTER (WHERE false) IS NULL AS empty, (kmeans_auto(ARRAY[x, y], 1, 3, NULL, nullif(i, 1) % 2)).n FROM auto_rows WHERE g = 1;
SELECT g, (m).k, (SELECT min(s) FROM unnest((m).size) AS s) >= 4 AS bounded FROM (SELECT g, kmeans_auto(ARRAY[x, y], 2, 3, kmeans_options(min_size => 4)) AS m FROM auto_rows WHERE g < 4 GROUP BY g) AS s ORDER BY g;
-- what is refused
SELECT pg_temp.outcome(query) FROM unnest(ARRAY[
    'SELECT kmeans_auto(ARRAY[x, y], 3, 2) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 0, 2) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 1, 2147483648) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], NULL, 2) FROM auto_rows',
    'SELECT kmeans_auto(ARRAY[x, y], 1, NULL) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 1, 1 + i) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], i, 100) FROM auto_rows',
    'SELECT kmeans_auto(ARRAY[x, y], 1, 3, kmeans_options(seed => i)) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 1, 3, kmeans_options(max_radius => 2)) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 2, 3, kmeans_options(init_centroids => ''{{1,1},{2,2}}'')) FROM auto_rows',
    'SELECT kmeans_auto(ARRAY[x, y], 3, 3, kmeans_options(init_model => kmeans_model(''{{1,1},{2,2},{3,3}}''))) FROM auto_rows', 'SELECT g, kmeans_auto(ARRAY[x, y], 2, 8, kmeans_options(min_size => 4)) FROM auto_rows WHERE g < 4 GROUP BY g',
    'SELECT kmeans_auto(ARRAY[x, y, ''NaN''], 1, 3) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, NULL], 1, 3) FROM auto_rows', 'SELECT kmeans_auto(ARRAY[x, y], 1, 3, NULL, -1) FROM auto_rows', 'SELECT kmeans_auto(''x'', 1, 3)', 'SELECT kmeans_auto(true, 1, 3)']) AS query;
DROP TABLE auto_rows, auto_models, auto_labels, auto_wanted, auto_many, auto_parallel;

-- init => 'optimal': one feature, beside all ways to cut the sorted values, by recursion in numeric.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE optimal_sets AS SELECT s, i, (s * 7919 + i * i * 104729 + i * s * 31) % (40 + s) + CASE WHEN i % 4 = 0 THEN 60 ELSE 0 END AS x, 1 + (i * s) % 4 AS w
FROM generate_series(1, 48) AS s, generate_series(1, 11) AS i;
-- Values with what they weigh; then each list of clusters, as ranges of places.
CREATE TABLE optimal_values AS SELECT s, weighted, row_number() OVER (PARTITION BY s, weighted ORDER BY x) AS place, x, sum(CASE WHEN weighted THEN w ELSE 1 END) AS w
FROM optimal_sets, (VALUES (false), (true)) AS v (weighted) GROUP BY s, weighted, x;
CREATE TABLE optimal_ranges AS
SELECT a.s, a.weighted, a.place AS first, b.place AS last, sum(v.w * v.x * v.x) - sum(v.w * v.x)::numeric ^ 2 / sum(v.w) AS cost
FROM optimal_values AS a JOIN optimal_values AS b USING (s, weighted) JOIN optimal_values AS v USING (s, weighted)
WHERE a.place <= b.place AND v.place BETWEEN a.place AND b.place GROUP BY 1, 2, 3, 4;
CREATE TABLE optimal_wanted AS
WITH RECURSIVE cuts AS (
    SELECT s, weighted, last, 1 AS k, cost FROM optimal_ranges WHERE first = 1
    UNION ALL
    SELECT r.s, r.weighted, r.last, k + 1, c.cost + r.cost FROM cuts AS c JOIN optimal_ranges AS r ON r.s = c.s AND r.weighted = c.weighted AND r.first = c.last + 1 WHERE k < 5)
SELECT s, weighted, k, min(cost) AS inertia FROM cuts AS c JOIN (SELECT s, weighted, max(place) AS last FROM optimal_values GROUP BY 1, 2) AS e USING (s, weighted, last) GROUP BY 1, 2, 3;
-- each set by itself; the default misses some
SELECT weighted, count(*) AS fits, count(*) FILTER (WHERE abs(m.inertia - w.inertia) < 1e-9) AS optimal, count(*) FILTER (WHERE m.n_iter = 1 AND m.converged) AS at_rest,
    count(*) FILTER (WHERE usual.inertia > w.inertia + 1e-9) > 0 AS usual_misses, bool_and(usual.inertia > w.inertia - 1e-9) AS none_is_better
FROM optimal_wanted AS w, LATERAL (SELECT (kmeans(ARRAY[x], w.k, kmeans_options('optimal'), CASE WHEN weighted THEN o.w ELSE 1 END)).* FROM optimal_sets AS o WHERE o.s = w.s) AS m,
    LATERAL (SELECT (kmeans(ARRAY[x], w.k, NULL, CASE WHEN weighted THEN o.w ELSE 1 END)).* FROM optimal_sets AS o WHERE o.s = w.s) AS usual
GROUP BY weighted ORDER BY weighted;
-- a model as it is: centroids ascend; of partitions that are as good, the one whose last cluster begins first, and so on
SELECT m.centroids, m.size, m.within_ss, m.inertia, m.n_iter, m.converged, (m.origin).options->>'init' AS init FROM (SELECT (kmeans(ARRAY[x], 3, kmeans_options('optimal'))).* FROM unnest(ARRAY[30, 1, 12, 3, 2, 31, 10, 11]) AS x) AS m;
SELECT (kmeans(ARRAY[x], 2, kmeans_options('optimal'))).size FROM generate_series(0, 2) AS x;
SELECT (kmeans(ARRAY[x], 3, kmeans_options('optimal'))).size FROM generate_series(0, 5) AS x;
-- the same by every function, in every order, of real and standardized features, of groups fitted together
CREATE TABLE optimal_rows AS SELECT i AS id, ln(1 + i * 7919 % 10007) * 100 + i % 97 AS x, 1 + i % 5 AS w, i % 3 AS part FROM generate_series(1, 9000) AS i;
CREATE TABLE optimal_model AS SELECT kmeans_fit('optimal_rows', '{x}', 6, options => kmeans_options('optimal'), weight => 'w') AS m;
SELECT (kmeans(ARRAY[x], 6, kmeans_options('optimal'), w ORDER BY md5(id::text))).centroids = (m).centroids AS shuffled,
    (SELECT array_agg(n ORDER BY c) FROM (SELECT l.cluster_id AS c, count(*) AS n FROM kmeans_labels('optimal_rows', '{x}', 6, options => kmeans_options('optimal'), weight => 'w') AS l GROUP BY 1) AS s) = (m).size AS labels,
    (m).inertia <= (SELECT min((kmeans_fit('optimal_rows', '{x}', 6, options => kmeans_options(seed => s, n_init => 3), weight => 'w')).inertia) FROM generate_series(1, 5) AS s) AS no_worse
FROM optimal_rows, optimal_model GROUP BY m;
SELECT bool_and(s.inertia = f.inertia AND s.clusters = s.k) AS sweep, bool_and(fall > 0) AS falls
FROM (SELECT *, coalesce(lag(inertia) OVER (ORDER BY k) - inertia, 1) AS fall FROM kmeans_sweep('optimal_rows', '{x}', 1, 9, options => kmeans_options('optimal'))) AS s,
    LATERAL kmeans_fit('optimal_rows', '{x}', s.k, options => kmeans_options('optimal')) AS f;
SELECT round(a.inertia::numeric, 2) = round((b.inertia * b.scale[1] ^ 2)::numeric, 2) AS standardized, abs(c.inertia / a.inertia - 1) < 1e-5 AS as_real
FROM kmeans_fit('optimal_rows', '{x}', 6, options => kmeans_options('optimal')) AS a, kmeans_fit('optimal_rows', '{x}', 6, options => kmeans_options('optimal', standardize => true)) AS b,
    (SELECT (kmeans(ARRAY[x::real], 6, kmeans_options('optimal'))).* FROM optimal_rows) AS c;
SELECT part, kmeans(ARRAY[x], 4, kmeans_options('optimal')) = (SELECT kmeans(ARRAY[x], 4, kmeans_options('optimal')) FROM optimal_rows AS o WHERE o.part = r.part) AS alone FROM optimal_rows AS r GROUP BY part ORDER BY part;
SELECT size FROM kmeans_cluster('optimal_rows', '{x}', 4, options => kmeans_options('optimal'));
SELECT cluster_id, count(*) FROM optimal_rows GROUP BY 1 ORDER BY 1;
SELECT bool_and(abs(t.size) > 0) AS tree, count(*) FROM kmeans_tree('optimal_rows', '{x}', '{2,2}', options => kmeans_options('optimal')) AS t;
SELECT m.k, m.inertia, m.size FROM (SELECT (kmeans(ARRAY[x % 3], 7, kmeans_options('optimal'))).* FROM generate_series(1, 30) AS x) AS m;
SELECT kmeans(ARRAY[x], 2, kmeans_options('optimal')) IS NULL AS no_rows FROM generate_series(1, 0) AS x;
SELECT (kmeans(ARRAY[x], 2, kmeans_options('optimal', min_size => 3))).size FROM unnest(ARRAY[1, 2, 3, 4, 5, 100]) AS x;
-- what cannot be
SELECT query, pg_temp.outcome(query) FROM (VALUES
    ($q$SELECT kmeans(ARRAY[x, x], 2, kmeans_options('optimal')) FROM generate_series(1, 5) AS x$q$),
    ($q$SELECT kmeans_fit('optimal_rows', '{x,w}', 2, options => kmeans_options('optimal'))$q$),
    ($q$SELECT kmeans_sweep('optimal_rows', '{x,w}', 2, 3, options => kmeans_options('optimal'))$q$),
    ($q$SELECT kmeans_options('optimal', batch_size => 10)$q$),
    ($q$SELECT kmeans_options('Optimal')$q$),
    ($q$SELECT kmeans(ARRAY[x], 2, kmeans_options('optimal')) FROM (VALUES (1::float8), ('NaN')) AS v (x)$q$),
    ($q$SELECT kmeans(ARRAY[x], 0, kmeans_options('optimal')) FROM generate_series(1, 5) AS x$q$)) AS q (query);
-- rows beyond the limit are not streamed; a long fit can be cancelled
SET pg_kmeans.memory_limit = '1MB';
SELECT pg_temp.outcome($q$SELECT kmeans_fit('optimal_rows', '{x}', 2, options => kmeans_options('optimal'))$q$) ~ '^54000' AS limited;
RESET pg_kmeans.memory_limit;
SET statement_timeout = '700ms';
SELECT kmeans(ARRAY[sin(i)], 2000, kmeans_options('optimal')) FROM generate_series(1, 200000) AS i;
RESET statement_timeout;
DROP TABLE optimal_sets, optimal_values, optimal_ranges, optimal_wanted, optimal_rows, optimal_model;

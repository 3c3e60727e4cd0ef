-- The groups of a hash aggregate are fitted together: the same models as one by one. How many
-- there were in the last fit is told by kmeans_last_run().
CREATE TABLE batch_points AS
SELECT g, h, ARRAY[sin(i * 12.9898), cos(i * 78.233), g] AS f,
    ARRAY[sin(i * 12.9898), cos(i * 78.233), g]::real[] AS f4, 1 + i % 3 AS w, i
FROM generate_series(1, 4000) AS i, LATERAL (SELECT i * i % 37 AS g, i % 4 AS h) AS s;
ANALYZE batch_points;
SET pg_kmeans.backend = cpu;
SET work_mem = '256MB';
CREATE FUNCTION batch_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Agg|Key' THEN RETURN NEXT line; END IF;
    END LOOP;
END
$$;
CREATE TABLE batch_queries (name text, calls text, tail text DEFAULT '');
INSERT INTO batch_queries VALUES
('plain groups', 'kmeans(f, 3)'),
('float32', 'kmeans(f4, 3)'),
('k by group', 'kmeans(f, 1 + g % 5)'),
('options by group', 'kmeans(f, 3, kmeans_options(seed => g % 3, init => CASE WHEN g % 2 = 0 THEN ''random'' ELSE ''k-means||'' END))'),
('restarts', 'kmeans(f, 4, kmeans_options(n_init => 5))'),
('weights', 'kmeans(f, 3, NULL, w)'),
('standardized', 'kmeans(f[1:2], 3, kmeans_options(standardize => true))'),
('standardized float32 cosine', 'kmeans(f4[1:2], 3, kmeans_options(metric => ''cosine'', standardize => true, tol => 0), w)'),
('given', 'kmeans(f, 2, kmeans_options(init_centroids => ''{{0,0,0},{0,1,30}}''))'),
('one state, two calls', 'ROW(kmeans(f, 3), (kmeans(f, 3)).inertia)'),
('two states', 'ROW(kmeans(f, 3), kmeans(f4, 2))'),
('filter', 'kmeans(f, 3) FILTER (WHERE g % 2 = 0)');
INSERT INTO batch_queries VALUES
('mixtures', 'gmm(f, 2)'),
('mixtures, k by group', 'gmm(f4, 1 + g % 4, gmm_options(''diag''))'),
('mixtures, options by group', 'gmm(f, 2, gmm_options(CASE WHEN g % 2 = 0 THEN ''tied'' ELSE ''spherical'' END, n_init => 2, seed => 5))'),
('mixtures, given', 'gmm(f[1:1], 2, gmm_options(''spherical'', weights_init => ''{0.5,0.5}'', means_init => ''{{-1},{1}}'', precisions_init => ''{1,1}''))'),
('mixtures beside clusters', 'ROW(gmm(f, 2), kmeans(f, 2))'),
-- options that are the same bytes
('clusters beside mixtures', 'ROW(kmeans(f, 2, kmeans_options(n_init => 100, max_iter => 1, tol => 0)), gmm(f, 2))');
INSERT INTO batch_queries VALUES ('having', 'kmeans(f, 3)', 'HAVING (kmeans(f, 3)).inertia > 20');

-- One by one: an aggregate without groups for each.
CREATE FUNCTION batch_alone(calls text, tail text, key text DEFAULT 'g') RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT %3$s, s.* FROM (SELECT DISTINCT %3$s FROM batch_points) AS keys, LATERAL
    (SELECT %1$s AS m FROM batch_points AS b WHERE b.%3$s = keys.%3$s %2$s) AS s', calls, tail, key)
$$;
CREATE FUNCTION batch_grouped(calls text, tail text) RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT g, %1$s AS m FROM batch_points GROUP BY g %2$s', calls, tail)
$$;
-- A query's rows, and of how many groups the last fit was.
CREATE FUNCTION batch_run(query text, OUT digest text, OUT fitted bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT md5(string_agg(r::text, E''\n'' ORDER BY r::text COLLATE "C")) FROM (' || query || ') AS r' INTO digest;
    SELECT l.groups FROM kmeans_last_run() AS l INTO fitted;
END
$$;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
CREATE TABLE batch_expected AS SELECT name, (batch_run(batch_alone(calls, tail))).* FROM batch_queries;
SELECT name, e.fitted AS alone, r.fitted AS together, r.digest = e.digest AS same
FROM batch_queries JOIN batch_expected AS e USING (name), batch_run(batch_grouped(calls, tail)) AS r ORDER BY name;
SELECT batch_plan(batch_grouped('kmeans(f, 3)', ''));

-- Grouping sets: several tables at once, or a table beside sorted groups, which are fitted alone.
CREATE TABLE batch_sets (g integer, h integer, m text);
DO $$
BEGIN
    EXECUTE 'INSERT INTO batch_sets SELECT g, NULL, md5(m::text) FROM (' || batch_alone('kmeans(f, 2)', '', 'g') || ') AS s';
    EXECUTE 'INSERT INTO batch_sets SELECT NULL, h, md5(m::text) FROM (' || batch_alone('kmeans(f, 2)', '', 'h') || ') AS s';
    INSERT INTO batch_sets SELECT NULL, NULL, md5(kmeans(f, 2)::text) FROM batch_points;
END
$$;
SELECT batch_plan('SELECT g, h, kmeans(f, 2) FROM batch_points GROUP BY GROUPING SETS ((g), (h))');
SELECT count(*), count(*) FILTER (WHERE md5(m::text) = (SELECT b.m FROM batch_sets AS b
    WHERE b.g IS NOT DISTINCT FROM s.g AND b.h IS NOT DISTINCT FROM s.h)) AS same
FROM (SELECT g, h, kmeans(f, 2) AS m FROM batch_points GROUP BY GROUPING SETS ((g), (h))) AS s;
SELECT groups FROM kmeans_last_run();
SELECT batch_plan('SELECT g, h, kmeans(f, 2) FROM batch_points GROUP BY GROUPING SETS ((g), (h), ())');
SELECT count(*), count(*) FILTER (WHERE md5(m::text) = (SELECT b.m FROM batch_sets AS b
    WHERE b.g IS NOT DISTINCT FROM s.g AND b.h IS NOT DISTINCT FROM s.h)) AS same
FROM (SELECT g, h, kmeans(f, 2) AS m FROM batch_points GROUP BY GROUPING SETS ((g), (h), ())) AS s;
SELECT groups FROM kmeans_last_run();
-- The table is made anew for each outer row.
SELECT v.k, count(*), sum((m).k) FROM generate_series(1, 3) AS v (k), LATERAL
    (SELECT g, kmeans(f, v.k) AS m FROM batch_points GROUP BY g OFFSET 0) AS s GROUP BY v.k ORDER BY v.k;
-- or is read again
SET enable_material = off;
SELECT v.k, count(*), count(DISTINCT m) FROM generate_series(1, 3) AS v (k) LEFT JOIN
    (SELECT g, kmeans(f, 3) AS m FROM batch_points GROUP BY g OFFSET 0) AS s ON v.k > g - 100 GROUP BY v.k ORDER BY v.k;
RESET enable_material;

-- A table that does not fit spills: its groups come in parts.
SET work_mem = '64kB';
SELECT name, r.fitted BETWEEN 1 AND 18 AS parts, r.digest = e.digest AS same
FROM batch_queries JOIN batch_expected AS e USING (name), batch_run(batch_grouped(calls, tail)) AS r
WHERE name IN ('plain groups', 'k by group', 'one state, two calls', 'weights') ORDER BY name;
SET work_mem = '256MB';

-- in parallel plans, too (where the order of the rows does not matter)
CREATE TABLE batch_many AS SELECT i % 10 AS g, ARRAY[i % 7, i % 11, i % 13]::real[] AS f FROM generate_series(1, 20000) AS i;
ANALYZE batch_many;
CREATE TABLE batch_serial AS
SELECT g, kmeans(f, 2, kmeans_options(init_centroids => '{{0,0,0},{6,6,6}}')) AS m FROM batch_many GROUP BY g;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001;
SET parallel_tuple_cost = 0.01;
SET min_parallel_table_scan_size = 0;
SELECT batch_plan('SELECT g, kmeans(f, 2, kmeans_options(init_centroids => ''{{0,0,0},{6,6,6}}'')) FROM batch_many GROUP BY g');
SELECT count(*), count(*) FILTER (WHERE m = (SELECT b.m FROM batch_serial AS b WHERE b.g = s.g)) AS same
FROM (SELECT g, kmeans(f, 2, kmeans_options(init_centroids => '{{0,0,0},{6,6,6}}')) AS m FROM batch_many GROUP BY g) AS s;
SELECT groups FROM kmeans_last_run();
SET max_parallel_workers_per_gather = 0;

-- Memory: batches of what there is; alone where that is not enough for two.
SET pg_kmeans.memory_limit = '3MB';
SELECT r.fitted, r.digest = e.digest AS same
FROM batch_queries JOIN batch_expected AS e USING (name), batch_run(batch_grouped(calls, tail)) AS r WHERE name = 'plain groups';
SET pg_kmeans.memory_limit = '1200kB';
SELECT r.fitted, r.digest = e.digest AS same
FROM batch_queries JOIN batch_expected AS e USING (name), batch_run(batch_grouped(calls, tail)) AS r WHERE name = 'plain groups';
RESET pg_kmeans.memory_limit;

-- What is wrong with one group is an error, and the next query works.
SELECT g, kmeans(f[1:2], 2, kmeans_options(metric => 'cosine')) FROM
    (SELECT g, f FROM batch_points UNION ALL SELECT 5, '{0,0,0}') AS s GROUP BY g;
SELECT g, kmeans(f, 2 + g % 2, kmeans_options(init_centroids => '{{0,0,0},{0,1,30}}')) FROM batch_points WHERE g IN (24, 25) GROUP BY g;
-- One warning for a query, whichever group has too few rows.
SELECT count((m).k), sum((m).k) FROM (SELECT kmeans(f, 120) AS m FROM batch_points GROUP BY g OFFSET 0) AS s;
SELECT groups FROM kmeans_last_run();
-- A window is no group: its frames grow.
SELECT array_agg((m).n) FROM (SELECT kmeans(f, 1) OVER (ORDER BY i) AS m FROM (SELECT f, i FROM batch_points ORDER BY i LIMIT 5) AS t) AS s;
SELECT groups FROM kmeans_last_run();

DROP TABLE batch_points, batch_queries, batch_sets, batch_many, batch_serial, batch_expected;
DROP FUNCTION batch_plan, batch_run, batch_alone, batch_grouped;

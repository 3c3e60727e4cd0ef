-- the aggregate kmeans in all ways that an aggregate can be called
CREATE TEMP TABLE points AS
SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS region,
       v.x::real AS x, v.y::real AS y, ARRAY[v.x, v.y]::real[] AS f
FROM (VALUES (1, 0, 0), (2, 0, 1), (3, 10, 10), (4, 10, 11), (5, 0, 0.5), (6, 10, 10.5), (7, 1, 0), (8, 11, 10)) AS v(i, x, y);

SELECT k, d, centroids, size, within_ss, inertia, n_iter, converged, n, metric, seed, center, scale FROM (SELECT (kmeans(f, 2 ORDER BY id)).* FROM points) AS s;
SELECT c.* FROM (SELECT kmeans(ARRAY[x, y], 2) AS m FROM points) AS s, kmeans_centroids(m) AS c ORDER BY centroid;
SELECT k, d, centroids, size, within_ss, inertia, n_iter, converged, n, metric, seed, center, scale FROM (SELECT (kmeans(f, 1)).* FROM points) AS s;
-- k = n: every row its own cluster
SELECT (m).k, (m).inertia, (m).size FROM (SELECT kmeans(f, 8) AS m FROM points) AS s;

-- groups
SELECT region, (m).centroids, (m).size, (m).n
FROM (SELECT region, kmeans(f, 2, kmeans_options(init => 'first') ORDER BY id) AS m FROM points GROUP BY region) AS s
ORDER BY region;
SELECT region, (kmeans(f, 1)).n FROM points GROUP BY region HAVING (kmeans(f, 1)).inertia > 1 ORDER BY region;
SELECT region, (kmeans(f, 1)).n FROM points GROUP BY ROLLUP (region) ORDER BY region;
SELECT region, x > 5 AS far, (kmeans(f, 1)).centroids FROM points GROUP BY GROUPING SETS ((region), (x > 5)) ORDER BY 1, 2;
SELECT (kmeans(f, 1) FILTER (WHERE x > 5)).centroids FROM points;
SELECT (kmeans(f, 1) FILTER (WHERE x > 500)) IS NULL AS nothing FROM points;
SELECT (kmeans(DISTINCT ARRAY[x], 1)).n, (kmeans(ARRAY[x], 1)).n FROM points;
-- k may differ from group to group
SELECT asked, (m).k AS found FROM (SELECT asked, kmeans(f, asked) AS m FROM points, generate_series(1, 4) AS asked GROUP BY asked) AS s
ORDER BY asked;
-- hashed and sorted grouping see the same rows
SET enable_hashagg = off;
SELECT region, (kmeans(f, 2, kmeans_options(init => 'first') ORDER BY id)).inertia FROM points GROUP BY region ORDER BY region;
RESET enable_hashagg;
-- many groups
SELECT count(*), round(sum((m).inertia)::numeric, 6) AS inertia, sum((m).n) AS n
FROM (SELECT kmeans(ARRAY[i % 7, i % 5], 3, kmeans_options(init => 'first') ORDER BY i) AS m
      FROM generate_series(1, 20000) AS i GROUP BY i % 1000) AS s;

-- nothing to cluster
SELECT kmeans(f, 2) IS NULL AS nothing FROM points WHERE false;
SELECT kmeans(NULL::real[], 2) IS NULL AS nothing FROM points;
SELECT kmeans(NULL::real[], NULL) IS NULL AS nothing FROM points;
SELECT region, kmeans(f, 2) FROM points WHERE false GROUP BY region;
-- NULL rows are skipped
SELECT (kmeans(CASE WHEN id > 2 THEN f END, 1)).n FROM points;
-- options NULL are the defaults
SELECT (SELECT kmeans(f, 2, NULL) FROM points) = (SELECT kmeans(f, 2) FROM points) AS same;

-- weights: 2 is the row twice, NULL and 0 leave it out
SELECT (m).centroids, (m).size, (m).inertia, (m).n
FROM (SELECT kmeans(f, 1, NULL, 1) AS m FROM points) AS s;
SELECT (m).centroids, (m).size, (m).inertia, (m).n
FROM (SELECT kmeans(ARRAY[v], 1, kmeans_options(), w) AS m
      FROM (VALUES (0, 1), (4, 3), (100, NULL), (200, 0)) AS t(v, w)) AS s;
SELECT (m).centroids, (m).inertia, (m).n
FROM (SELECT kmeans(ARRAY[v], 1) AS m FROM (VALUES (0), (4), (4), (4)) AS t(v)) AS s;
-- a cluster of rows whose weights are small beside others has its rows' mean
SELECT round((m).centroids[2][1]::numeric, 11) AS light
FROM (SELECT kmeans(ARRAY[v], 2, kmeans_options(init_centroids => '{{1},{10}}'), w) AS m
      FROM (VALUES (1, 1), (10, 3e-14), (10.5, 3e-14)) AS t(v, w)) AS s;
SELECT kmeans(f, 1, NULL, 0) IS NULL AS nothing, kmeans(f, 1, NULL, NULL) IS NULL AS nothing FROM points;

-- fewer distinct rows than k: that many clusters, one warning for the whole query
SELECT (m).k, (m).size, (m).centroids FROM (SELECT kmeans(ARRAY[1, 2], 3) AS m FROM points) AS s;
SELECT region, (m).k FROM (SELECT region, kmeans(ARRAY[id % 4], 5) AS m FROM points GROUP BY region) AS s ORDER BY region;
SELECT (kmeans(ARRAY[1], 5)).k;
-- options that come with each row, the same in all
SELECT (m).k, (m).seed
FROM (SELECT kmeans(f, 2, o) AS m FROM points, (SELECT kmeans_options(seed => 3) AS o OFFSET 0) AS t) AS s;
CREATE TEMP TABLE settings AS SELECT i AS id, kmeans_options(seed => 3, init_centroids => '{{0,0},{1,1}}') AS o
FROM generate_series(1, 8) AS i;
SELECT (m).k, (m).seed FROM (SELECT kmeans(f, 2, o) AS m FROM points JOIN settings USING (id)) AS s;
SELECT (m).seed FROM (SELECT kmeans(f, 2, (SELECT o FROM settings WHERE id = 1)) AS m FROM points) AS s;

-- as a window aggregate, with frames that grow and frames that start anew
SELECT id, (kmeans(f, 1) OVER (PARTITION BY region)).n FROM points ORDER BY id;
SELECT id, (kmeans(ARRAY[x], 1) OVER (ORDER BY id)).centroids FROM points ORDER BY id;
SELECT id, (kmeans(ARRAY[x], 1, kmeans_options(seed => 1)) OVER (ORDER BY id ROWS 1 PRECEDING)).centroids FROM points ORDER BY id;

-- in a prepared statement and in PL/pgSQL
PREPARE fit(int, kmeans_options) AS SELECT (kmeans(f, $1, $2)).k FROM points;
EXECUTE fit(2, kmeans_options(seed => 1));
EXECUTE fit(3, NULL);
DO $$
DECLARE
    m kmeans_model;
BEGIN
    m := (SELECT kmeans(f, 2, kmeans_options(init => 'first') ORDER BY id) FROM points);
    RAISE NOTICE 'k %, n %, inertia %', m.k, m.n, m.inertia;
END $$;

-- parallel: the same rows, merged; without random choices the same model
CREATE TABLE many AS SELECT i AS id, ARRAY[i % 10, i % 7, i % 3]::real[] AS f, (i % 4 + 1)::float8 AS w
FROM generate_series(1, 20000) AS i;
ANALYZE many;
CREATE FUNCTION pg_temp.plan_has(query text, node text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line LIKE '%' || node || '%' THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
SET max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE serial AS
SELECT kmeans(f, 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}')) AS plain,
       kmeans(f, 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}'), w) AS weighted,
       kmeans(f::float8[], 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}')) AS doubled
FROM many;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001;
SET parallel_tuple_cost = 0.01;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.plan_has('SELECT kmeans(f, 3) FROM many', 'Partial Aggregate') AS partial;
SELECT serial.plain = p.plain AS plain, serial.weighted = p.weighted AS weighted, serial.doubled = p.doubled AS doubled
FROM serial,
     (SELECT kmeans(f, 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}')) AS plain,
             kmeans(f, 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}'), w) AS weighted,
             kmeans(f::float8[], 3, kmeans_options(init_centroids => '{{0,0,0},{5,5,1},{9,6,2}}')) AS doubled
      FROM many) AS p;
SELECT g, (m).n, (m).inertia
FROM (SELECT id % 3 AS g, kmeans(f, 1) AS m FROM many GROUP BY id % 3) AS s ORDER BY g;
-- a worker may find no rows
SELECT (kmeans(f, 1)).n FROM many WHERE id < 10;
SELECT kmeans(f, 1) IS NULL AS nothing FROM many WHERE id < 0;
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost; RESET cpu_operator_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE many;

-- Rows are not collected below a join, where PostgreSQL 19 would for sums (eager aggregation).
CREATE TABLE join_rows AS SELECT i % 20 AS key, (i % 7)::float8 AS x FROM generate_series(1, 20000) AS i;
CREATE TABLE join_kinds AS SELECT i % 20 AS key, i % 2 AS kind FROM generate_series(1, 2000) AS i;
ANALYZE join_rows, join_kinds;
CREATE FUNCTION join_plan(aggregate text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('EXPLAIN (COSTS off) SELECT kind, %s FROM join_rows JOIN join_kinds USING (key) GROUP BY kind', aggregate);
END $$;
BEGIN;
SELECT count(set_config(name, CASE vartype WHEN 'bool' THEN 'on' ELSE '1' END, true)) >= 0 AS set FROM pg_settings WHERE name LIKE '%eager_agg%';
SELECT count(*) FILTER (WHERE line LIKE '%Partial%') AS partial, count(*) FILTER (WHERE line LIKE '%Join%') AS joins
FROM unnest(ARRAY['kmeans(ARRAY[x], 2)', 'gmm(ARRAY[x], 2)']) AS aggregate, join_plan(aggregate) AS line;
COMMIT;
DROP FUNCTION join_plan;
DROP TABLE join_rows, join_kinds;

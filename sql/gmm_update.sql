-- gmm_update: rows added to a mixture by a step of EM
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE mix_rows AS SELECT i AS id, i <= 900 AS old, (i % 3 * 3 + sin(i * 12.9898)) AS x, (1 + i % 3 + cos(i * 78.233)) AS y, 0.5 + i % 4 AS w, 1 + i % 2 AS day FROM generate_series(1, 1100) AS i;
CREATE TABLE mix_models AS SELECT units, kind, gmm(ARRAY[x, y], 3, gmm_options(kind, reg_covar => 0.01, standardize => units)) AS m
FROM mix_rows, unnest(ARRAY[false, true]) AS units, unnest('{full,tied,diag,spherical}'::text[]) AS kind WHERE old GROUP BY units, kind;
-- the M step in SQL: of each component the masses and moments about 0, which the model stands for and the rows bring
CREATE FUNCTION pg_temp.covariance(m gmm_model, j int, a int, b int) RETURNS float8 LANGUAGE sql AS $$
    SELECT CASE WHEN (m).covariance_type IN ('diag', 'spherical') AND a <> b THEN 0 ELSE CASE (m).covariance_type WHEN 'full' THEN (m).covariances[j][a][b] WHEN 'tied' THEN (m).covariances[a][b] WHEN 'diag' THEN (m).covariances[j][a] ELSE (m).covariances[j] END END $$;
CREATE FUNCTION pg_temp.off(query text) RETURNS TABLE (kind text, units bool, weights float8, means float8, covariances float8) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format($q$
        WITH calls AS (%s),
        shares AS (
            SELECT c.kind, c.units, j, w * p AS r, CASE WHEN c.units THEN (x - (m).center[1]) / (m).scale[1] ELSE x END AS x, CASE WHEN c.units THEN (y - (m).center[2]) / (m).scale[2] ELSE y END AS y
            FROM calls AS c, LATERAL gmm_posterior(m, ARRAY[x, y]) AS post, unnest(post) WITH ORDINALITY AS s (p, j)
        ), came AS (
            SELECT kind, units, j, sum(r) AS r, sum(r * x) AS x, sum(r * y) AS y, sum(r * (x * x + reg)) AS xx, sum(r * x * y) AS xy, sum(r * (y * y + reg)) AS yy FROM shares, LATERAL (SELECT 0.01 AS reg) AS o GROUP BY kind, units, j
        ), had AS (
            SELECT DISTINCT ON (kind, units, j) kind, units, m, u, j, had * (m).weights[j] AS r, (m).means[j][1] AS x, (m).means[j][2] AS y FROM calls, generate_series(1, 3) AS j
        ), both_sums AS (
            SELECT kind, units, m, u, h.j, h.r + c.r AS n, h.r * h.x + c.x AS x, h.r * h.y + c.y AS y, h.r * (h.x * h.x + pg_temp.covariance(m, h.j, 1, 1)) + c.xx AS xx, h.r * (h.x * h.y + pg_temp.covariance(m, h.j, 1, 2)) + c.xy AS xy, h.r * (h.y * h.y + pg_temp.covariance(m, h.j, 2, 2)) + c.yy AS yy
            FROM had AS h JOIN came AS c USING (kind, units, j)
        ), spread AS (
            SELECT *, x / n AS mx, y / n AS my, xx / n - x * x / n / n AS cxx, xy / n - x * y / n / n AS cxy, yy / n - y * y / n / n AS cyy, sum(n) OVER (PARTITION BY kind, units) AS all_n FROM both_sums
        ), typed AS (
            SELECT *, CASE kind WHEN 'tied' THEN sum(n * cxx) OVER one / all_n WHEN 'spherical' THEN (cxx + cyy) / 2 ELSE cxx END AS wxx, CASE kind WHEN 'tied' THEN sum(n * cxy) OVER one / all_n WHEN 'full' THEN cxy ELSE 0 END AS wxy,
                CASE kind WHEN 'tied' THEN sum(n * cyy) OVER one / all_n WHEN 'spherical' THEN (cxx + cyy) / 2 ELSE cyy END AS wyy FROM spread WINDOW one AS (PARTITION BY kind, units)
        )
        SELECT kind, units, max(abs(n / all_n - (u).weights[j])), max(abs(mx - (u).means[j][1]) + abs(my - (u).means[j][2])),
            max(abs(wxx - pg_temp.covariance(u, j, 1, 1)) + abs(wxy - pg_temp.covariance(u, j, 1, 2)) + abs(wyy - pg_temp.covariance(u, j, 2, 2)) + abs(wxy - pg_temp.covariance(u, j, 2, 1)))
        FROM typed GROUP BY kind, units$q$, query);
END $$;
CREATE TABLE mix_updated AS SELECT units, kind, m, gmm_update(m, ARRAY[x, y]) AS u, gmm_update(m, ARRAY[x, y], w, 0.25) AS weighed FROM mix_models, mix_rows WHERE NOT old GROUP BY units, kind, m;
SELECT kind, units, weights < 1e-12 AS weights, means < 1e-12 AS means, covariances < 1e-12 AS covariances
FROM pg_temp.off('SELECT kind, units, m, u, 900.0::float8 AS had, 1 AS w, x, y FROM mix_updated, mix_rows WHERE NOT old') ORDER BY kind, units;
SELECT kind, units, weights < 1e-12 AS weights, means < 1e-12 AS means, covariances < 1e-12 AS covariances
FROM pg_temp.off('SELECT kind, units, m, weighed AS u, 225.0::float8 AS had, w, x, y FROM mix_updated, mix_rows WHERE NOT old') ORDER BY kind, units;
SELECT every((u).n = 1100 AND (u).mass = 1100 AND (weighed).n = 1100 AND (weighed).mass = 225 + (SELECT sum(w) FROM mix_rows WHERE NOT old)) AS counted, every((m).mass = (m).n) AS fitted FROM mix_updated;
-- fields that stay
SELECT every(jsonb_populate_record(u, to_jsonb(old)) = m) AS same FROM mix_updated, LATERAL (SELECT (m).weights, (m).means, (m).covariances, (m).n, (m).mass) AS old;
-- a second call goes on from the masses of the first
CREATE TABLE mix_steps AS SELECT kind, units, u AS m, (SELECT gmm_update(u, ARRAY[x, y], w, 0.7) FROM mix_rows WHERE NOT old AND day = 2) AS u, 0.7 * (0.9 * 900 + ws) AS had
FROM mix_models, LATERAL (SELECT gmm_update(m, ARRAY[x, y], w, 0.9) AS u, sum(w) AS ws FROM mix_rows WHERE NOT old AND day = 1) AS s;
SELECT count(*), every(weights < 1e-12 AND means < 1e-12 AND covariances < 1e-12) AS as_wanted FROM pg_temp.off('SELECT kind, units, m, u, had::float8, w, x, y FROM mix_steps, mix_rows WHERE NOT old AND day = 2');
-- the order of rows does not count, nor does the type of equal numbers
SELECT every((SELECT gmm_update(a.m, ARRAY[x, y], w, 0.25) FROM (SELECT * FROM mix_rows WHERE NOT old ORDER BY y, x DESC) AS s) = weighed) AS any_order FROM mix_updated AS a;
SELECT every(gmm_update(m, ARRAY[id, w * 2]::int[]) = gmm_update(m, ARRAY[id, w * 2]::numeric[])) OVER () AS any_type FROM mix_models, mix_rows WHERE id < 100 GROUP BY m LIMIT 1;
-- rows of a table in the place of vectors
SELECT (SELECT gmm_update(g, r) FROM mix_rows AS r WHERE NOT old) = (SELECT gmm_update(g, ARRAY[x, y]) FROM mix_rows WHERE NOT old) AS same FROM gmm_fit('mix_rows', '{x,y}', 3) AS g;
-- EM by batches learns what a fit of all rows finds
SELECT kind, abs(avg(gmm_score(u, ARRAY[x, y])) - avg(gmm_score(g, ARRAY[x, y]))) < 0.01 AS near FROM mix_updated, mix_rows, LATERAL (SELECT gmm(ARRAY[x, y], 3, gmm_options(kind, reg_covar => 0.01)) AS g FROM mix_rows) AS f WHERE NOT units GROUP BY kind ORDER BY kind;
-- a model that follows: after 12 days of decay rows of another place have moved the only component there
WITH RECURSIVE days AS (SELECT 0 AS day, (SELECT gmm(ARRAY[i % 3], 1) FROM generate_series(1, 99) AS i) AS m UNION ALL SELECT day + 1, (SELECT gmm_update(d.m, ARRAY[100 + i % 3], 1, 0.1) FROM generate_series(1, 99) AS i) FROM days AS d WHERE day < 12)
SELECT round((m).means[1][1]::numeric, 8) AS mean, round((m).covariances[1][1][1]::numeric, 6) AS variance, (m).n, round((m).mass::numeric, 6) AS mass FROM days WHERE day = 12;
-- without reg_covar in an origin it is the default; a component without responsibility keeps its mean
SELECT (u).weights, (u).means, (u).covariances, (u).n, (u).mass FROM (SELECT gmm_update(ROW(2, 1, 'diag', '{0.5,0.5}', '{{0},{1000}}', '{{1},{1}}', 0, '{}', 1, true, 0, 0, 8, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, v) AS u FROM (VALUES ('{1}'::float8[]), ('{-1}'), ('{2}'), ('{-2}')) AS t (v)) AS s;
-- a model that stands for nothing takes the place of what comes, far away, too: nothing cancels
SELECT (u).means, (u).covariances, (u).mass FROM (SELECT gmm_update(ROW(1, 2, 'full', '{1}', '{{0,0}}', '{{{1,0},{0,1}}}', 0, '{}', 1, true, 0, 0, 0, 0, NULL, NULL, NULL, ROW(NULL, NULL, '{"reg_covar": 0}', NULL, NULL, NULL, NULL), NULL)::gmm_model, v) AS u FROM (VALUES ('{1e15,1}'::float8[]), ('{1000000000000002,2}'), ('{1000000000000001,6}')) AS t (v)) AS s;
-- NULL rows, weights of NULL and 0, no rows, NULL models
SELECT every(a = m AND b = m AND c = m) AS unchanged, every(jsonb_populate_record(d, jsonb_build_object('mass', 900)) = m AND (d).mass = 450) AS decayed
FROM (SELECT m, gmm_update(m, NULL::float8[]) AS a, gmm_update(m, ARRAY[x, y], 0) AS b, gmm_update(m, ARRAY[x, y], NULL) AS c, gmm_update(m, ARRAY[NULL, NULL]::real[], 1, 0.5) AS d FROM mix_models, mix_rows WHERE id < 9 GROUP BY m) AS s;
SELECT gmm_update(m, '{1,2}'::real[]) IS NULL AS none FROM mix_models WHERE false;
SELECT (gmm_update(CASE WHEN i > 1 THEN m END, '{1,2}'::real[])).n AS one_more FROM mix_models, generate_series(1, 2) AS i WHERE units AND kind = 'full';
SELECT (gmm_update(CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, '{"origin": null, "seed": 7}') END, '{1,2}'::real[])).n - min((m).n) AS rows FROM mix_models, generate_series(1, 2) AS i WHERE units AND kind = 'full';
-- a growing frame; a weight of 2 counts like two rows; fills stand for NULLs
SELECT array_agg((u).n ORDER BY id) FROM (SELECT id, gmm_update(m, ARRAY[x, y]) OVER (ORDER BY id) AS u FROM mix_models, mix_rows WHERE units AND kind = 'full' AND id > 1097) AS s;
SELECT every((SELECT gmm_update(m, ARRAY[x, y]) FROM mix_rows, generate_series(1, 2) AS copy WHERE NOT old) = jsonb_populate_record(twice, jsonb_build_object('n', 1300))) AS twice FROM (SELECT m, gmm_update(m, ARRAY[x, y], 2) AS twice FROM mix_models, mix_rows WHERE NOT old GROUP BY m) AS s;
SELECT every(gmm_update(f, '{1,NULL}'::float8[]) = gmm_update(f, '{1,2}'::float8[])) OVER () AS filled FROM mix_models, LATERAL (SELECT jsonb_populate_record(m, '{"fills": [0, 2]}') AS f) AS s GROUP BY f LIMIT 1;
-- what is refused
SELECT arguments, pg_temp.outcome('SELECT (gmm_update(' || arguments || ')).n FROM mix_models, generate_series(1, 2) AS i WHERE units AND kind = ''full''') AS outcome FROM unnest(ARRAY[
    'm, ''{1,2}''::real[], 1, 0', 'm, ''{1,2}''::real[], 1, 1.5', 'm, ''{1,2}''::real[], 1, NULL', 'm, ''{1,2}''::real[], 1, ''NaN''', 'm, ''{1,2}''::real[], 1, 1.0 / i', 'm, ''{1,2}''::real[], -1', 'm, ''{1,2}''::real[], ''NaN''', 'm, ''{1,2}''::real[], 1e200',
    'm, ''{1,2,3}''::real[]', 'm, ''{1,NULL}''::real[]', 'm, ''{1,NaN}''::real[]', 'm, ''{1,1e150}''::float8[]', 'm, ''{1,1e300}''::float8[]',
    'CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, ''{"mass": 7}'') END, ''{1,2}''::real[]', 'CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, ''{"means": [[0,0],[1,1],[2,2]]}'') END, ''{1,2}''::real[]',
    'jsonb_populate_record(m, ''{"mass": -1}''), ''{1,2}''::real[]', 'jsonb_populate_record(m, ''{"mass": "NaN"}''), ''{1,2}''::real[]', 'jsonb_populate_record(m, ''{"weights": [1]}''), ''{1,2}''::real[]',
    'jsonb_populate_record(m, ''{"n": 9223372036854775807}''), ''{1,2}''::real[]', 'jsonb_populate_record(m, ''{"mass": 1e308}''), ''{1,2}''::real[], 1e150',
    'jsonb_populate_record(m, jsonb_build_object(''origin'', jsonb_build_object(''options'', ''{"reg_covar": -1}''::jsonb))), ''{1,2}''::real[]',
    'jsonb_populate_record(m, jsonb_build_object(''mass'', 0, ''origin'', jsonb_build_object(''options'', ''{"reg_covar": 0}''::jsonb))), ''{1,2}''::real[]']) AS arguments;
SELECT pg_temp.outcome('SELECT (gmm_update(m, ''{1,2}''::real[])).n FROM mix_models') AS models;
SET pg_kmeans.memory_limit = '1MB';
SELECT pg_temp.outcome($$SELECT (gmm_update(ROW(1, 300, 'full', '{1}', ARRAY[array_fill(0::float8, ARRAY[300])], ARRAY[c], 0, '{}', 1, true, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, array_fill(1::real, ARRAY[300]))).n FROM (SELECT array_agg(r ORDER BY i) AS c FROM (SELECT i, array_agg((i = j)::int::float8 ORDER BY j) AS r FROM generate_series(1, 300) AS i, generate_series(1, 300) AS j GROUP BY i) AS a) AS b GROUP BY c$$) AS beyond;
RESET pg_kmeans.memory_limit;
DROP TABLE mix_rows, mix_models, mix_updated, mix_steps;

-- kmeans_update: rows added to a model by the masses of its clusters
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE update_rows AS SELECT i AS id, i % 5 AS g, i <= 3000 AS old, (i % 7 * 3 + sin(i * 12.9898)) AS x, (1 + i % 7 + cos(i * 78.233)) AS y FROM generate_series(1, 5000) AS i;
CREATE TABLE update_models AS
SELECT units, distance, kmeans(ARRAY[x, y], 7, kmeans_options(standardize => units, metric => distance, tol => 0)) AS m
FROM update_rows, unnest(ARRAY[false, true]) AS units, unnest(ARRAY['l2', 'cosine']) AS distance WHERE old GROUP BY units, distance;
-- beside the plain sums over all rows: those of the fit and those that came, each in the cluster of the old model
CREATE VIEW update_plain AS
WITH rows AS (
    SELECT units, distance, kmeans_predict(m, ARRAY[x, y]) AS j, (x - coalesce((m).center[1], 0)) / coalesce((m).scale[1], 1) AS u, (y - coalesce((m).center[2], 0)) / coalesce((m).scale[2], 1) AS v FROM update_rows, update_models
), spaced AS (
    SELECT units, distance, j, u / l AS u, v / l AS v FROM rows, LATERAL (SELECT CASE distance WHEN 'l2' THEN 1 ELSE sqrt(u * u + v * v) END AS l) AS s
), means AS (
    SELECT units, distance, j, count(*) AS n, avg(u) AS u, avg(v) AS v FROM spaced GROUP BY units, distance, j
), scaled AS (
    SELECT units, distance, j, n, u / l AS u, v / l AS v FROM means, LATERAL (SELECT CASE distance WHEN 'l2' THEN 1 ELSE sqrt(u * u + v * v) END AS l) AS s
)
SELECT s.units, s.distance, s.j, s.n, s.u, s.v, sum((r.u - s.u) ^ 2 + (r.v - s.v) ^ 2) AS within
FROM scaled AS s JOIN spaced AS r USING (units, distance, j) GROUP BY s.units, s.distance, s.j, s.n, s.u, s.v;
CREATE TABLE updated AS SELECT units, distance, kmeans_update(m, ARRAY[x, y]) AS m FROM update_models, update_rows WHERE NOT old GROUP BY units, distance;
SELECT units, distance, count(*) AS clusters, every(n = (m).size[j + 1]) AS sizes, max(abs(u - (m).centroids[j + 1][1]) + abs(v - (m).centroids[j + 1][2])) < 1e-12 AS centroids,
    max(abs(within / (m).within_ss[j + 1] - 1)) < 1e-9 AS within, abs(sum(within) / min((m).inertia) - 1) < 1e-9 AS inertia, min((m).n) AS n
FROM update_plain JOIN updated USING (units, distance) GROUP BY units, distance ORDER BY units, distance;
-- fields that stay
SELECT every((a.m).center = (b.m).center AND (a.m).scale = (b.m).scale AND (a.m).metric = (b.m).metric AND (a.m).seed = (b.m).seed AND (a.m).n_iter = (b.m).n_iter AND (a.m).converged = (b.m).converged) AS same
FROM update_models AS a JOIN updated AS b USING (units, distance);
-- the order of rows does not count, and neither does the type of equal numbers
SELECT every((SELECT kmeans_update(a.m, ARRAY[x, y]) FROM (SELECT * FROM update_rows ORDER BY y, x DESC) AS s WHERE NOT old) = u.m) AS same FROM update_models AS a JOIN updated AS u USING (units, distance);
SELECT kmeans_update(m, ARRAY[id, g]) = kmeans_update(m, ARRAY[id, g]::real[]) AND kmeans_update(m, ARRAY[id, g]) = kmeans_update(m, ARRAY[id, g]::numeric[]) AS same FROM update_rows, update_models WHERE NOT units AND distance = 'l2' GROUP BY m;
-- a model that goes on by batches learns what one fit of all rows finds
SELECT abs((u.m).inertia / (kmeans_fit('update_rows', '{x,y}', 7)).inertia - 1) < 0.01 AS near FROM updated AS u WHERE NOT units AND distance = 'l2';
-- NULL rows, no rows, and NULL models
SELECT kmeans_update(m, NULL::float8[]) = m AS unchanged, kmeans_update(m, ARRAY[NULL, NULL]::real[]) = m AS also FROM update_models WHERE units AND distance = 'l2' GROUP BY m;
SELECT kmeans_update(m, '{1,2}'::real[]) IS NULL AS none FROM update_models WHERE false;
SELECT (kmeans_update(CASE WHEN i > 1 THEN m END, '{1,2}'::real[])).n AS one_more FROM update_models, generate_series(1, 2) AS i WHERE units AND distance = 'l2';
-- models that differ in their origin and figures alone are the same
SELECT (kmeans_update(CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, '{"origin": null, "seed": 7}') END, '{1,2}'::real[])).n - min((m).n) AS rows FROM update_models, generate_series(1, 2) AS i WHERE units AND distance = 'l2';
-- groups with models of their own, in and out of TOAST
CREATE TABLE update_tenants AS SELECT g, kmeans(array_prepend(x, array_fill(y, ARRAY[200])), 40) AS m FROM update_rows WHERE old GROUP BY g;
SELECT count(*), every((u).n = 1000 AND u = (SELECT kmeans_update((SELECT m FROM update_tenants AS t WHERE t.g = s.g), array_prepend(x, array_fill(y, ARRAY[200]))) FROM update_rows AS r WHERE NOT old AND r.g = s.g)) AS same
FROM (SELECT g, kmeans_update(m, array_prepend(x, array_fill(y, ARRAY[200]))) AS u FROM update_tenants JOIN update_rows USING (g) WHERE NOT old GROUP BY g) AS s;
-- a growing frame
SELECT array_agg((u).n ORDER BY id) FROM (SELECT id, kmeans_update(m, ARRAY[x, y]) OVER (ORDER BY id) AS u FROM update_models, update_rows WHERE units AND distance = 'l2' AND id > 4997) AS s;
-- clusters without mass take the place of what comes; features of no extent
SELECT (u).centroids, (u).size, (u).within_ss FROM (SELECT kmeans_update(ROW(1, 2, '{{0,0}}', '{0}', '{0}', 0, 1, true, 0, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, v) AS u FROM (VALUES ('{1,3}'::float8[]), ('{3,3}')) AS t(v)) AS s;
SELECT (u).centroids, (u).size, (u).within_ss FROM (SELECT kmeans_update(ROW(1, 1, '{{1e9}}', '{1}', '{0}', 0, 1, true, 1, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, v) AS u FROM (VALUES ('{1e9}'::float8[]), ('{1000000003}')) AS t(v)) AS s;
-- a model at the origin, rows far beyond a narrow model, many rows beside two, rows that cancel
SELECT name, (u).centroids, (u).size, (u).within_ss, (u).inertia
FROM (SELECT i, name, (SELECT kmeans_update(m, ARRAY[x]) FROM (SELECT kmeans(ARRAY[o], 1) AS m FROM unnest(old) AS o) AS s, unnest(new) AS x GROUP BY m) AS u
    FROM (VALUES (1, 'origin', '{0}'::float8[], '{0.3}'::float8[]), (2, 'outside', '{0.5}', '{3000}'), (3, 'many', '{1e6,1000001}', array_fill(1e6::float8, ARRAY[4295])), (4, 'cancel', '{0}', '{1e30,1e-10,-1e30}')) AS v (i, name, old, new)) AS s ORDER BY i;
-- a place without mass far from its rows, and directions next to each other
SELECT (u).centroids, (u).size, (u).within_ss FROM (SELECT kmeans_update(ROW(1, 1, '{{0}}', '{0}', '{0}', 0, 1, true, 0, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, v) AS u FROM (VALUES ('{1e16}'::float8[]), ('{10000000000000002}')) AS t (v)) AS s;
SELECT (u).centroids, (u).size, (u).within_ss FROM (SELECT kmeans_update(ROW(1, 2, '{{1,0}}', '{1}', '{0}', 0, 1, true, 1, 'cosine', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, v) AS u FROM (VALUES ('{1,1e-10}'::float8[]), ('{3,-3e-10}')) AS t (v)) AS s;
-- over 40 decades beside exact numbers, each result rounded once: values are whole numbers times powers of two, half of the rows cancel
CREATE TABLE update_powers AS WITH RECURSIVE p(e, up, down) AS (SELECT 0, 1::numeric, 1::numeric UNION ALL SELECT e + 1, up * 2, down * 0.5 FROM p WHERE e < 120) SELECT e, up AS value FROM p UNION SELECT -e, down FROM p;
CREATE TABLE update_values AS SELECT g, part, i, f, whole * 2::float8 ^ e AS value, whole::numeric * p.value AS exact
FROM (SELECT g, part, i, f, sign * (hashint8extended(key, 1) % 9007199254740992) AS whole, (abs(hashint8extended(key, 2) % 134) - 120)::int AS e
    FROM generate_series(1, 30) AS g, (VALUES ('centroid', 3, 0), ('within', 3, 1), ('row', 61, 2)) AS parts(part, n, p), generate_series(1, n) AS i, generate_series(1, 2) AS f,
        LATERAL (SELECT CASE WHEN part = 'row' AND g % 2 = 0 THEN i % 2 * 2 - 1 ELSE 1 END AS sign, (g * 10 + p) * 1000 + f + 2 * CASE WHEN part = 'row' AND g % 2 = 0 THEN (i + 1) / 2 ELSE i END AS key) AS k) AS v JOIN update_powers AS p USING (e);
CREATE TABLE update_clusters AS SELECT c.g, c.i - 1 AS j, array_agg(c.value ORDER BY f) AS centroid, array_agg(c.exact ORDER BY f) AS exact, (g * c.i % 4)::bigint AS size, min(abs(w.value)) AS within, min(abs(w.exact)) AS exact_within
FROM update_values AS c JOIN update_values AS w USING (g, i, f) WHERE c.part = 'centroid' AND w.part = 'within' GROUP BY g, c.i;
CREATE TABLE update_scales AS SELECT g, ROW(3, 2, array_agg(centroid ORDER BY j), array_agg(size ORDER BY j), array_agg(within ORDER BY j), 0, 1, true, sum(size)::bigint, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model AS m FROM update_clusters GROUP BY g;
CREATE TABLE update_wide AS SELECT g, i, array_agg(value ORDER BY f) AS v, array_agg(exact ORDER BY f) AS exact FROM update_values WHERE part = 'row' GROUP BY g, i;
CREATE TABLE update_made AS SELECT g, kmeans_update(m, v) AS m FROM update_scales JOIN update_wide USING (g) GROUP BY g;
WITH sums AS (
    SELECT c.g, c.j, c.size, c.size + count(i) AS n, coalesce(sum(x), 0) AS x, coalesce(sum(y), 0) AS y, c.exact_within + coalesce(sum(x * x + y * y), 0) AS squares
    FROM update_clusters AS c JOIN update_scales AS s USING (g) LEFT JOIN update_wide AS r ON r.g = c.g AND kmeans_predict(m, v) = j, LATERAL (SELECT r.exact[1] - c.exact[1] AS x, r.exact[2] - c.exact[2] AS y) AS apart GROUP BY c.g, c.j, c.size, c.exact_within
)
SELECT count(*), count(*) FILTER (WHERE n > size) AS with_rows, every(CASE WHEN n = size THEN (m).centroids[j + 1:j + 1] = ARRAY[centroid] AND (m).within_ss[j + 1] = within
    ELSE (m).centroids[j + 1:j + 1] = ARRAY[[((n * exact[1] + x) / n)::float8, ((n * exact[2] + y) / n)::float8]] AND (m).within_ss[j + 1] = ((squares * n - x * x - y * y) / n)::float8 END) AS same
FROM sums JOIN update_clusters USING (g, j, size) JOIN update_made USING (g);
-- whatever the order of rows, and the plan
SELECT every(m = (SELECT kmeans_update(s.m, v) FROM (SELECT v, s.m FROM update_wide AS w JOIN update_scales AS s USING (g) WHERE g = u.g ORDER BY md5(i::text)) AS s)) AND every(m = (SELECT kmeans_update(s.m, v) FROM (SELECT v, s.m FROM update_wide AS w JOIN update_scales AS s USING (g) WHERE g = u.g ORDER BY abs(v[1])) AS s)) AS same FROM update_made AS u;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE update_wide SET (parallel_workers = 2);
CREATE FUNCTION pg_temp.gathers(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan::text ~ '"Gather';
END $$;
SELECT pg_temp.gathers('SELECT g, kmeans_update(m, v) AS m FROM update_scales JOIN update_wide USING (g) GROUP BY g');
SELECT count(*), every(p.m = u.m) AS same FROM (SELECT g, kmeans_update(m, v) AS m FROM update_scales JOIN update_wide USING (g) GROUP BY g) AS p JOIN update_made AS u USING (g);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
-- weights and a decay, beside exact numbers: the mass of each cluster is a number of float64
CREATE TABLE update_heavy AS SELECT *, (1 + i % 7) / 4.0::float8 AS w FROM update_wide;
CREATE TABLE update_decayed AS SELECT g, kmeans_update(m, v, w, 0.5) AS m FROM update_scales JOIN update_heavy USING (g) GROUP BY g;
WITH sums AS (
    SELECT c.g, c.j, c.size, c.exact_within / 2 AS within, count(i) AS rows, c.size / 2.0 + coalesce(sum(w::numeric), 0) AS n, coalesce(sum(w::numeric * x), 0) AS x, coalesce(sum(w::numeric * y), 0) AS y, c.exact_within / 2 + coalesce(sum(w::numeric * (x * x + y * y)), 0) AS squares
    FROM update_clusters AS c JOIN update_scales AS s USING (g) LEFT JOIN update_heavy AS r ON r.g = c.g AND kmeans_predict(m, v) = j, LATERAL (SELECT r.exact[1] - c.exact[1] AS x, r.exact[2] - c.exact[2] AS y) AS apart GROUP BY c.g, c.j, c.size, c.exact_within
)
SELECT count(*), count(*) FILTER (WHERE rows > 0) AS with_rows, every((m).size[j + 1] = size + rows AND (m).mass[j + 1] = n::float8) AS counted, every(CASE WHEN rows = 0 THEN (m).centroids[j + 1:j + 1] = ARRAY[centroid] AND (m).within_ss[j + 1] = sums.within::float8
    ELSE (m).centroids[j + 1:j + 1] = ARRAY[[((n * exact[1] + x) / n)::float8, ((n * exact[2] + y) / n)::float8]] AND (m).within_ss[j + 1] = ((squares * n - x * x - y * y) / n)::float8 END) AS same
FROM sums JOIN update_clusters USING (g, j, size) JOIN update_decayed USING (g);
SELECT every(m = (SELECT kmeans_update(s.m, v, w, 0.5) FROM (SELECT v, w, s.m FROM update_heavy AS h JOIN update_scales AS s USING (g) WHERE g = u.g ORDER BY md5(i::text)) AS s)) AS any_order FROM update_decayed AS u;
-- two calls, one after the other: the second has the masses of the first
CREATE TABLE update_days AS SELECT id, x, y, 1 + id % 10 * 0.3 AS w, CASE WHEN id <= 4000 THEN 1 ELSE 2 END AS day FROM update_rows WHERE NOT old;
CREATE TABLE update_steps AS SELECT distance, m AS m0, m1, (SELECT kmeans_update(m1, ARRAY[x, y], w, 0.7) FROM update_days WHERE day = 2) AS m2
FROM update_models, LATERAL (SELECT kmeans_update(m, ARRAY[x, y], w, 0.9) AS m1 FROM update_days WHERE day = 1) AS s WHERE NOT units;
WITH parts AS (
    SELECT distance, kmeans_predict(m0, ARRAY[x, y]) AS j, 0.9 * 0.7 AS w, x, y FROM update_rows, update_steps WHERE old
    UNION ALL SELECT distance, kmeans_predict(m0, ARRAY[x, y]), w * 0.7, x, y FROM update_days, update_steps WHERE day = 1
    UNION ALL SELECT distance, kmeans_predict(m1, ARRAY[x, y]), w, x, y FROM update_days, update_steps WHERE day = 2
), spaced AS (
    SELECT distance, j, w, x / l AS x, y / l AS y FROM parts, LATERAL (SELECT CASE distance WHEN 'l2' THEN 1 ELSE sqrt(x * x + y * y) END AS l) AS s
), means AS (
    SELECT distance, j, sum(w) AS mass, count(*) AS n, sum(w * x) / sum(w) AS x, sum(w * y) / sum(w) AS y FROM spaced GROUP BY distance, j
), scaled AS (
    SELECT distance, j, mass, n, x / l AS x, y / l AS y FROM means, LATERAL (SELECT CASE distance WHEN 'l2' THEN 1 ELSE sqrt(x * x + y * y) END AS l) AS s
), wanted AS (
    SELECT s.distance, s.j, s.mass, s.n, s.x, s.y, sum(r.w * ((r.x - s.x) ^ 2 + (r.y - s.y) ^ 2)) AS within FROM scaled AS s JOIN spaced AS r USING (distance, j) GROUP BY s.distance, s.j, s.mass, s.n, s.x, s.y
)
SELECT distance, count(*) AS clusters, every(n = (m2).size[j + 1]) AS sizes, max(abs(mass / (m2).mass[j + 1] - 1)) < 1e-12 AS masses, max(abs(x - (m2).centroids[j + 1][1]) + abs(y - (m2).centroids[j + 1][2])) < 1e-12 AS centroids, max(abs(within / (m2).within_ss[j + 1] - 1)) < 1e-9 AS within
FROM wanted JOIN update_steps USING (distance) GROUP BY distance ORDER BY distance;
-- weights of 1 without a decay are none; a weight of 2 counts like two rows; rows of weight 0 or NULL do not
SELECT every(plain = ones) AS plain, every((ones).mass = '{}') AS empty, every((twice).centroids = (weighted).centroids AND (twice).within_ss = (weighted).within_ss AND (twice).size = (weighted).mass::bigint[]) AS twice, every(zero = void AND none = void) AS skipped
FROM (SELECT m, kmeans_update(m, ARRAY[x, y]) AS plain, kmeans_update(m, ARRAY[x, y], 1, 1) AS ones, kmeans_update(m, ARRAY[x, y], 2) AS weighted, kmeans_update(m, ARRAY[x, y], 0) AS zero, kmeans_update(m, ARRAY[x, y], NULL) AS none, kmeans_update(m, NULL::float8[]) AS void FROM update_models, update_days WHERE distance = 'l2' GROUP BY m) AS a,
    LATERAL (SELECT kmeans_update(m, ARRAY[x, y]) AS twice FROM update_days, generate_series(1, 2) AS copy) AS b;
-- masses halve in ten days without rows; what is typical of a cluster stays
CREATE TABLE update_idle AS WITH RECURSIVE days AS (SELECT 0 AS day, m FROM update_models WHERE NOT units AND distance = 'l2' UNION ALL SELECT day + 1, (SELECT kmeans_update(d.m, CASE WHEN i < 1 THEN '{1,2}'::float8[] END, 1, 0.5 ^ 0.1) FROM generate_series(1, 3) AS i) FROM days AS d WHERE day < 10)
SELECT a.m, d.m AS idle FROM days AS d, days AS a WHERE d.day = 10 AND a.day = 0;
SELECT (SELECT every(abs(mass * 2 / size - 1) < 1e-14) FROM unnest((idle).mass, (idle).size) AS s (mass, size)) AS half, (m).size = (idle).size AND (m).n = (idle).n AND (m).centroids = (idle).centroids AS rest, abs((m).inertia / (idle).inertia - 2) < 1e-12 AS inertia,
    (SELECT count(*) > 100 AND every(abs(a.score / b.score - 1) < 1e-12) FROM kmeans_outliers('update_rows', '{x,y}', m, 1) AS a JOIN kmeans_outliers('update_rows', '{x,y}', idle, 1) AS b USING (row_ctid)) AS scores FROM update_idle;
-- weights and values of any magnitude
SELECT (u).centroids, (u).mass, (u).within_ss FROM (SELECT kmeans_update(kmeans_model('{{0}}'), v, w) AS u FROM (VALUES ('{3e150}'::float8[], 1e-150), ('{1e-150}', 1e150), ('{1}', 1)) AS t (v, w)) AS s;
SELECT (u).centroids, (u).mass, (u).within_ss FROM (SELECT kmeans_update(kmeans_model('{{5}}'), v, w, 1e-300) AS u FROM (VALUES ('{7}'::float8[], 0.1), ('{7}', 0.2)) AS t (v, w)) AS s;
-- what is refused of them
SELECT pg_temp.outcome('SELECT (kmeans_update(' || arguments || ')).n FROM update_models, generate_series(1, 2) AS i WHERE units AND distance = ''l2''') FROM unnest(ARRAY[
    'm, ''{1,2}''::real[], 1, 0', 'm, ''{1,2}''::real[], 1, 1.5', 'm, ''{1,2}''::real[], 1, NULL', 'm, ''{1,2}''::real[], 1, ''NaN''', 'm, ''{1,2}''::real[], 1, 1.0 / i', 'm, ''{1,2}''::real[], -1', 'm, ''{1,2}''::real[], ''NaN''', 'm, ''{1,2}''::real[], 1e200',
    'jsonb_populate_record(m, ''{"mass": [1, 2]}''), ''{1,2}''::real[]', 'jsonb_populate_record(m, ''{"mass": [1, 2, 3, 4, 5, 6, "NaN"]}''), ''{1,2}''::real[]', 'CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, ''{"mass": [1, 2, 3, 4, 5, 6, 7]}'') END, ''{1,2}''::real[]']) AS arguments;
-- opposite directions have no mean
SELECT (u).centroids, (u).size, (u).within_ss FROM (SELECT kmeans_update(ROW(1, 2, '{{1,0}}', '{1}', '{0}', 0, 1, true, 1, 'cosine', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, '{-3,0}'::float8[]) AS u) AS s;
-- what is refused
SELECT pg_temp.outcome(query) FROM unnest(ARRAY[
    'SELECT kmeans_update(m, ''{1,2,3}''::real[]) FROM update_models WHERE units AND distance = ''l2''',
    'SELECT kmeans_update(m, ''{1,NULL}''::real[]) FROM update_models WHERE units AND distance = ''l2''',
    'SELECT kmeans_update(m, ''{0,0}''::real[]) FROM update_models WHERE NOT units AND distance = ''cosine''',
    'SELECT kmeans_update(m, ''{1,2}''::real[]) FROM update_models',
    'SELECT kmeans_update(ROW(1, 1, ''{{1}}'', ''{1}'', ''{0}'', 0, 1, true, 1, ''l2'', 0, ''{0}'', ''{1e-20}'', NULL, NULL, NULL)::kmeans_model, ''{1e140}''::float8[])',
    'SELECT kmeans_update(ROW(1, 1, ''{{1}}'', ''{9223372036854775807}'', ''{0}'', 0, 1, true, 1, ''l2'', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, ''{2}''::float8[])',
    'SELECT kmeans_update(ROW(1, 1, ''{{1}}'', ''{1}'', ''{0}'', 0, 1, true, 9223372036854775807, ''l2'', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, ''{2}''::float8[])',
    'SELECT kmeans_update(ROW(1, 2, ''{{1,0,2}}'', ''{1}'', ''{0}'', 0, 1, true, 1, ''cosine'', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model, ''{-3,0}''::float8[])',
    'SELECT kmeans_update(m, ''{1,1}''::float8[]) FROM (SELECT kmeans(f, 1, kmeans_options(metric => ''cosine''), 100.0) AS m FROM (VALUES (''{1,0.1}''::float8[]), (''{0.1,1}'')) AS v (f)) AS a GROUP BY m']) AS query;
DROP VIEW update_plain;
DROP TABLE update_rows, update_models, updated, update_tenants, update_powers, update_values, update_clusters, update_scales, update_wide, update_made, update_heavy, update_decayed, update_days, update_steps, update_idle;

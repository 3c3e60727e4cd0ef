-- First centroids by weight; fits that go on from a model of more or fewer clusters.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
SET client_min_messages = error; -- fits that max_iter ends
-- Of rows 0, 10 and 11 two are drawn, and 0 is alone after an iteration unless 10 and 11 are those. With weights 6, 1, 1 that is
-- 1/8 x 1/7 + 1/8 x 1/7 = 1/28 of all draws, else 1/3: of 2,800 seeds 100 and 933 or so, with a standard deviation of 10 and 25.
CREATE TABLE first_three AS SELECT * FROM (VALUES (0::float8, 6, 2), (10, 1, 2), (11, 1, 2)) AS v (x, w, same);
SELECT count(*) FILTER (WHERE by_weight) BETWEEN 70 AND 130 AS by_weight, count(*) FILTER (WHERE alike) BETWEEN 858 AND 1008 AS alike, every(alike = none) AS weights_alike_are_none
FROM (SELECT kmeans(ARRAY[x], 2, kmeans_options('random', seed => s, max_iter => 1), w) AS a, kmeans(ARRAY[x], 2, kmeans_options('random', seed => s, max_iter => 1), same) AS b,
        kmeans(ARRAY[x], 2, kmeans_options('random', seed => s, max_iter => 1)) AS c FROM first_three, generate_series(1, 2800) AS s GROUP BY s) AS f,
    LATERAL (SELECT 11 IN ((a).centroids[1][1], (a).centroids[2][1]) AS by_weight, 11 IN ((b).centroids[1][1], (b).centroids[2][1]) AS alike, 11 IN ((c).centroids[1][1], (c).centroids[2][1]) AS none) AS s;
-- Equal rows are drawn once, and rows of next to no weight as soon as no others are left.
CREATE TABLE first_light AS SELECT x, w FROM (VALUES (1, 1e9), (1, 1e8), (2, 1e-9), (3, 1e-9), (4, 1e-30)) AS v (x, w);
SELECT (SELECT array_agg(c ORDER BY c) FROM unnest((m).centroids) AS c) AS centroids, (m).inertia
FROM (SELECT kmeans_fit('first_light', '{x}', 9, options => kmeans_options('random', max_iter => 1), weight => 'w') AS m) AS s;
-- Light rows far out seldom take a centroid from heavy ones: 20 seeds.
CREATE TABLE first_far AS SELECT i % 3 * 10 + i % 7 * 0.1 AS x, 100.0 AS w FROM generate_series(1, 300) AS i UNION ALL SELECT 100 + i, 0.01 FROM generate_series(1, 300) AS i;
SELECT count(*) FILTER (WHERE (m).inertia < 1.01 * best) AS right_optimum, count(*)
FROM (SELECT s, kmeans_fit('first_far', '{x}', 3, options => kmeans_options('random', seed => s), weight => 'w') AS m FROM generate_series(1, 20) AS s) AS f,
    (SELECT (kmeans_fit('first_far', '{x}', 3, options => kmeans_options(n_init => 50), weight => 'w')).inertia AS best) AS b;
-- The same bits in memory, streamed, loaded, by an aggregate, with any number of threads, and in any order of rows; rows repeat or do not.
CREATE TABLE first_rows AS SELECT i AS id, (i % 7 * 3 + sin(i * 12.9898))::real AS x, (i % 7 + cos(i * 78.233))::real AS y, i % 50 AS r, 0.1 + i % 9 AS w, i % 3 AS g FROM generate_series(1, 4000) AS i;
CREATE TABLE first_backwards AS SELECT * FROM first_rows ORDER BY id DESC;
SELECT kmeans_load('first_rows', f, 'w') FROM (VALUES ('{x,y}'::text[]), ('{r}')) AS v (f);
SET pg_kmeans.cpu_threads = 1;
CREATE TABLE first_models AS SELECT f, k, kmeans_fit('first_rows', f, k, options => kmeans_options('random', n_init => 2, max_iter => 3, seed => k), weight => 'w') AS m FROM (VALUES ('{x,y}'::text[]), ('{r}')) AS v (f), unnest('{2,9,60}'::int[]) AS k;
SET pg_kmeans.cpu_threads = 3;
SELECT f, k, (m).k AS found, m = kmeans_fit('first_rows', f, k, options => o, weight => 'w', memory => 'stream') AS streamed, m = kmeans_fit('first_rows', f, k, options => o, weight => 'w', memory => 'loaded') AS loaded,
    (m).centroids = (kmeans_fit('first_backwards', f, k, options => o, weight => 'w')).centroids AS backwards,
    m = CASE WHEN f = '{r}' THEN (SELECT kmeans(ARRAY[r], k, o, w) FROM first_rows) ELSE (SELECT kmeans(ARRAY[x, y], k, o, w) FROM first_rows) END AS aggregate
FROM first_models, LATERAL (SELECT kmeans_options('random', n_init => 2, max_iter => 3, seed => k) AS o) AS s ORDER BY f, k;
RESET pg_kmeans.cpu_threads;
SELECT kmeans_unload();

-- More clusters: the fit of init_centroids that are those of the model, and rows behind them; never a row where the model has a centroid.
CREATE TABLE first_dozen AS SELECT i AS id, ARRAY[i * i % 13, i * 7 % 5]::float8[] AS f, 1 + i % 3 AS w FROM generate_series(1, 12) AS i;
SELECT old, count(*) AS rows_that_it_may_be, bool_and(NOT at_old) AS apart
FROM (SELECT s AS old, (kmeans_fit('first_dozen', '{f}', 2, options => kmeans_options(init_centroids => ARRAY[a.f, b.f], max_iter => 1), weight => 'w')) AS m
      FROM generate_series(1, 6) AS s, first_dozen AS a, first_dozen AS b WHERE a.id = s AND b.id = s + 6) AS o,
    first_dozen AS r, LATERAL (SELECT EXISTS (SELECT FROM kmeans_centroids(m) AS c WHERE c.centroid = r.f) AS at_old) AS t
WHERE kmeans_fit('first_dozen', '{f}', 3, options => kmeans_options(init_model => m, max_iter => 1), weight => 'w')
    = kmeans_fit('first_dozen', '{f}', 3, options => kmeans_options(init_centroids => (m).centroids || r.f, max_iter => 1), weight => 'w')
GROUP BY old ORDER BY old;
-- With as few rows that differ as clusters all of them are taken.
SELECT (SELECT array_agg(c ORDER BY c) FROM unnest(f.centroids) AS c) AS centroids, f.converged FROM kmeans_fit('first_light', '{x}', 9, options => kmeans_options(init_model => kmeans_model('{{1},{2}}'))) AS f;

-- Fewer: what a loop in SQL finds by Ward's criterion, of the rows at hand.
CREATE FUNCTION first_left(m kmeans_model, rows text, wanted integer) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    cheap record;
    result float8[];
BEGIN
    CREATE TEMP TABLE left_over ON COMMIT DROP AS SELECT cluster_id AS id, centroid AS c, 0::float8 AS mass FROM kmeans_centroids(m);
    EXECUTE format('UPDATE left_over SET mass = w FROM (SELECT kmeans_predict($1, f) AS id, sum(w) AS w FROM %I GROUP BY 1) AS s WHERE s.id = left_over.id', rows) USING m;
    WHILE (SELECT count(*) FROM left_over) > wanted LOOP
        SELECT a.id AS stays, b.id AS goes, a.mass + b.mass AS mass, (SELECT array_agg(CASE WHEN a.mass + b.mass = 0 THEN x ELSE (a.mass * x + b.mass * y) / (a.mass + b.mass) END ORDER BY i) FROM unnest(a.c, b.c) WITH ORDINALITY AS u (x, y, i)) AS c
        INTO cheap FROM left_over AS a JOIN left_over AS b ON a.mass > b.mass OR (a.mass = b.mass AND a.id < b.id)
        ORDER BY CASE WHEN b.mass = 0 THEN 0 ELSE a.mass * b.mass / (a.mass + b.mass) * (SELECT sum((x - y) ^ 2) FROM unnest(a.c, b.c) AS u (x, y)) END LIMIT 1;
        DELETE FROM left_over WHERE id = cheap.goes;
        UPDATE left_over SET c = cheap.c, mass = cheap.mass WHERE id = cheap.stays;
    END LOOP;
    SELECT array_agg(l.c ORDER BY p) INTO result FROM (
        SELECT c, id AS p FROM left_over WHERE id < wanted
        UNION ALL SELECT h.c, g.p FROM (SELECT c, row_number() OVER (ORDER BY id) AS i FROM left_over WHERE id >= wanted) AS h
        JOIN (SELECT p, row_number() OVER (ORDER BY p) AS i FROM generate_series(0, wanted - 1) AS p WHERE p NOT IN (SELECT id FROM left_over)) AS g USING (i)) AS l;
    DROP TABLE left_over;
    RETURN result;
END $$;
CREATE TABLE first_many AS SELECT i AS id, ARRAY[i % 11 * 7 + i % 11 * (i % 11) + sin(i), i % 11 * 5 % 13 + cos(i * i)]::float8[] AS f, 1 + i % 11 % 4 + i % 3 AS w FROM generate_series(1, 700) AS i;
CREATE TABLE first_elevens AS SELECT kmeans_fit('first_many', '{f}', 11, options => kmeans_options(n_init => 5), weight => 'w') AS m;
SELECT k, (a).centroids = (b).centroids AND (a).size = (b).size AS same, (a).k AS found FROM first_elevens, generate_series(1, 10) AS k,
    LATERAL (SELECT kmeans_fit('first_many', '{f}', k, options => kmeans_options(init_model => m, max_iter => 1), weight => 'w') AS a,
        kmeans_fit('first_many', '{f}', k, options => kmeans_options(init_centroids => first_left(m, 'first_many', k), max_iter => 1), weight => 'w') AS b) AS s ORDER BY k;
-- Clusters that no row is nearest to go first.
SELECT centroids FROM kmeans_fit('first_three', '{x}', 2, options => kmeans_options(init_model => kmeans_model('{{500},{11},{-900},{1},{700}}')));
-- The identity shows: what stays keeps its id, what was beyond the last takes a free one.
SELECT k, array_agg((p).old_id ORDER BY (p).new_id) FILTER (WHERE (p).new_id IS NOT NULL) AS old_ids FROM first_elevens, unnest('{9,11,13}'::int[]) AS k,
    LATERAL (SELECT kmeans_match(m, kmeans_fit('first_many', '{f}', k, options => kmeans_options(init_model => m), weight => 'w')) AS p) AS s GROUP BY k ORDER BY k;

-- Wherever a fit goes on, in the units and by the metric of the model.
CREATE TABLE first_goes AS SELECT units, metric, k, kmeans_fit('first_rows', '{x,y}', 7, options => kmeans_options(standardize => units, metric => metric), weight => 'w') AS m
FROM unnest('{f,t}'::boolean[]) AS units, unnest('{l2,cosine}'::text[]) AS metric, unnest('{4,12}'::int[]) AS k;
SELECT units, s.metric, s.k, (n).k = s.k AND (n).center = (m).center AND (n).metric = (m).metric AS fit, n = kmeans_fit('first_rows', '{x,y}', s.k, options => kmeans_options(init_model => m), weight => 'w', memory => 'stream') AS streamed,
    n = (SELECT kmeans(ARRAY[x, y], s.k, kmeans_options(init_model => m), w) FROM first_rows) AS aggregate,
    (n).inertia <= 1.2 * (kmeans_fit('first_rows', '{x,y}', s.k, options => kmeans_options(standardize => units, metric => s.metric), weight => 'w')).inertia AS near
FROM first_goes AS s, LATERAL (SELECT kmeans_fit('first_rows', '{x,y}', s.k, options => kmeans_options(init_model => m), weight => 'w') AS n) AS f ORDER BY 1, 2, 3;
SELECT g, k, count(*), every(m = (SELECT kmeans(ARRAY[x, y], k, kmeans_options(init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))) FROM first_rows AS r WHERE r.g = s.g)) AS alone
FROM (SELECT g, k, kmeans(ARRAY[x, y], k, kmeans_options(init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))) AS m FROM first_rows, unnest('{2,5}'::int[]) AS k GROUP BY g, k) AS s GROUP BY g, k ORDER BY g, k;
ALTER TABLE first_rows ADD c integer;
CREATE TABLE first_clustered AS SELECT kmeans_cluster('first_rows', '{x,y}', 5, options => kmeans_options(init_model => kmeans_model('{{0,0},{9,3},{18,6}}')), label_column => 'c', overwrite => true) AS m;
SELECT m = kmeans_fit('first_rows', '{x,y}', 5, options => kmeans_options(init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))) AS model FROM first_clustered;
SELECT count(DISTINCT c), every(c = l.cluster_id) AS labels FROM first_rows AS r JOIN kmeans_labels('first_rows', '{x,y}', 5, options => kmeans_options(init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))) AS l ON l.row_ctid = r.ctid;
SELECT options, (kmeans_fit('first_backwards', '{x,y}', k, options => o)).k FROM unnest('{2,5}'::int[]) AS k, (VALUES ('bounds', kmeans_options(min_size => 300, init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))),
    ('batches', kmeans_options(batch_size => 500, init_model => kmeans_model('{{0,0},{9,3},{18,6}}'))), ('refine', kmeans_options(refine => true, init_model => kmeans_model('{{0,0},{9,3},{18,6}}')))) AS v (options, o) ORDER BY 1, 2;
-- What does not go together.
SELECT pg_temp.outcome(format('SELECT kmeans_fit(''first_rows'', %s, options => kmeans_options(init_model => %s))', call, model)) FROM (VALUES
    ('''{x}'', 3', 'kmeans_model(''{{1,2}}'')'), ('''{x,y}'', 3', 'kmeans_model(''{{1,NaN}}'')'), ('''{x,y}'', 0', 'kmeans_model(''{{1,2}}'')'), ('''{x,y}'', NULL', 'kmeans_model(''{{1,2}}'')')) AS v (call, model);
DROP TABLE first_three, first_light, first_far, first_rows, first_backwards, first_models, first_dozen, first_many, first_elevens, first_goes, first_clustered;
DROP FUNCTION first_left;

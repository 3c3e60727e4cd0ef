-- Fits that go on from a model, and fits by mini-batches.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
SET client_min_messages = error; -- fits that max_iter ends
CREATE TABLE go_on AS SELECT i AS id, i % 3 AS g, (i % 7 * 3 + sin(i * 12.9898))::real AS x, (i % 7 + cos(i * 78.233))::real AS y, 1 + i % 4 AS w FROM generate_series(1, 4000) AS i;
-- a fit that is cut in two is the whole fit, in the units and by the metric of the model
CREATE TABLE go_on_models AS
SELECT units, distance, kmeans_fit('go_on', '{x,y}', 9, options => kmeans_options(init => 'random', max_iter => 3, standardize => units, metric => distance, tol => 0), weight => 'w') AS begun,
    kmeans_fit('go_on', '{x,y}', 9, options => kmeans_options(init => 'random', standardize => units, metric => distance, tol => 0), weight => 'w') AS whole
FROM unnest(ARRAY[false, true]) AS units, unnest(ARRAY['l2', 'cosine']) AS distance;
SELECT units, distance, f.centroids = (whole).centroids AND f.inertia = (whole).inertia AND f.center = (whole).center AND f.scale = (whole).scale AND f.metric = distance
        AND f.n_iter + 3 = (whole).n_iter AS same
FROM go_on_models, kmeans_fit('go_on', '{x,y}', 9, options => kmeans_options(init_model => begun, tol => 0), weight => 'w') AS f ORDER BY units, distance;
SELECT units, distance, (SELECT kmeans(ARRAY[x, y], 9, kmeans_options(tol => 0, init_model => begun), w) FROM go_on) = kmeans_fit('go_on', '{x,y}', 9, options => kmeans_options(tol => 0, init_model => begun), weight => 'w') AS aggregate,
    (SELECT max(l.cluster_id) FROM kmeans_labels('go_on', '{x,y}', 9, options => kmeans_options(init_model => begun)) AS l) AS labels
FROM go_on_models ORDER BY units, distance;
-- a model for each group, as options that differ from group to group
SELECT count(*), every(kmeans_predict(after, '{1,1}'::real[]) IS NOT NULL AND (after).n_iter = 1) FROM (
    SELECT g, kmeans(ARRAY[x, y], 4, kmeans_options(init_model => m)) AS after
    FROM go_on JOIN (SELECT g, kmeans(ARRAY[x, y], 4, kmeans_options(tol => 0, standardize => true)) AS m FROM go_on GROUP BY g) AS before USING (g) GROUP BY g) AS s;
-- the options of a parallel aggregate travel with its states
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001;
SET parallel_tuple_cost = 0.01;
SET min_parallel_table_scan_size = 0;
SELECT every(p.m = s.m) FROM
    (SELECT units, distance, (SELECT kmeans(ARRAY[x, y], 9, kmeans_options(init_model => begun)) FROM go_on) AS m FROM go_on_models) AS p
    JOIN (SELECT units, distance, kmeans_fit('go_on', '{x,y}', 9, options => kmeans_options(init_model => begun)) AS m FROM go_on_models) AS s USING (units, distance);
RESET max_parallel_workers_per_gather;
CREATE TABLE go_on_units AS SELECT i % 2 * 2 - 1 AS v FROM generate_series(1, 10) AS i;
-- a variable without a value is no model
DO $$
DECLARE
    none kmeans_model;
BEGIN
    ASSERT kmeans_fit('go_on', '{x,y}', 3, options => kmeans_options(init_model => none)) = kmeans_fit('go_on', '{x,y}', 3);
END $$;
-- means 0 and deviations 1 are units, too
SELECT f.center, f.scale, f.n_iter FROM (SELECT kmeans_fit('go_on_units', '{v}', 2, options => kmeans_options(standardize => true)) AS m) AS s, kmeans_fit('go_on_units', '{v}', 2, options => kmeans_options(standardize => true, init_model => m)) AS f;
-- what does not go together
SELECT pg_temp.outcome(format('SELECT (kmeans_fit(''go_on'', %s, options => kmeans_options(init_model => (SELECT begun FROM go_on_models WHERE units = %L AND distance = %L)%s))).k', call, units, distance, options)) FROM (VALUES
    ('''{x,y}'', 8', 'f', 'l2', ''), ('''{x}'', 9', 'f', 'l2', ''), ('''{x,y}'', 9', 't', 'l2', ', metric => ''cosine'''), ('''{x,y}'', 9', 'f', 'cosine', ', standardize => true'),
    ('''{x,y}'', 9', 'f', 'l2', ', init_centroids => ''{{1,2}}'''), ('''{x,y}'', 9', 't', 'cosine', ', metric => ''l2'', standardize => false')) AS v(call, units, distance, options);
SELECT pg_temp.outcome('SELECT kmeans(ARRAY[x, y], 2, kmeans_options(init_model => ROW(2, 2, ''{{0,0},{8,NaN}}'', ''{1,1}'', ''{0,0}'', 0, 1, true, 2, ''l2'', 0, NULL, NULL, NULL, NULL, NULL))) FROM go_on');
SELECT (kmeans_options(init_model => (SELECT begun FROM go_on_models WHERE units AND distance = 'cosine'))).metric, (kmeans_options(init_model => NULL)).init_model IS NULL AS none;

-- mini-batches: near a whole fit, in any order, for groups, windows, labels, sweeps and loaded rows
SELECT abs(b.inertia / a.inertia - 1) < 0.01 AS near, b.converged, b.n FROM kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(n_init => 4)) AS a, kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(n_init => 4, batch_size => 200)) AS b;
SELECT kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(batch_size => 200), weight => 'w') = (SELECT kmeans(ARRAY[x, y], 7, kmeans_options(batch_size => 200), w) FROM (SELECT * FROM go_on ORDER BY y DESC) AS s) AS same;
SELECT every(l.cluster_id = kmeans_predict(m, ARRAY[x, y]) AND l.distance = kmeans_distance(m, ARRAY[x, y])) AS labels_fit
FROM (SELECT kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(batch_size => 200, standardize => true)) AS m) AS f,
    kmeans_labels('go_on', '{x,y}', 7, options => kmeans_options(batch_size => 200, standardize => true)) AS l JOIN go_on ON go_on.ctid = row_ctid;
SELECT g, m = (SELECT kmeans(ARRAY[x, y], 4, kmeans_options(batch_size => 50)) FROM go_on AS o WHERE o.g = s.g) AS alone FROM (SELECT g, kmeans(ARRAY[x, y], 4, kmeans_options(batch_size => 50)) AS m FROM go_on GROUP BY g) AS s ORDER BY g;
SELECT every(l = kmeans_predict(m, ARRAY[x, y])) FROM (SELECT x, y, kmeans_label(ARRAY[x, y], 7, kmeans_options(batch_size => 200)) OVER () AS l FROM go_on) AS s,
    (SELECT kmeans(ARRAY[x, y], 7, kmeans_options(batch_size => 200)) AS m FROM go_on) AS f;
SELECT k, s.inertia = (kmeans_fit('go_on', '{x,y}', k, options => kmeans_options(batch_size => 200))).inertia AS same, simplified_silhouette BETWEEN 0 AND 1 AS index
FROM kmeans_sweep('go_on', '{x,y}', 2, 4, options => kmeans_options(batch_size => 200)) AS s;
SELECT kmeans_load('go_on', '{x,y}');
SELECT kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(batch_size => 200), memory => 'loaded') = kmeans_fit('go_on', '{x,y}', 7, options => kmeans_options(batch_size => 200)) AS batches,
    kmeans_fit('go_on', '{x,y}', 7, memory => 'loaded') = kmeans_fit('go_on', '{x,y}', 7) AS whole;
SELECT kmeans_unload();
-- a batch larger than the table, and batches of one row
SELECT (kmeans_fit('go_on', '{x,y}', 3, options => kmeans_options(batch_size => 2147483647))).k, (kmeans_fit('go_on', '{x,y}', 3, options => kmeans_options(batch_size => 1, max_iter => 2))).k;
-- rows that repeat, of which a sample may miss some
CREATE TABLE go_on_few AS SELECT CASE WHEN i <= 4 THEN i ELSE 0 END AS v FROM generate_series(1, 5000) AS i;
SELECT m.k FROM kmeans_fit('go_on_few', '{v}', 5, options => kmeans_options(batch_size => 10)) AS m;
SELECT pg_temp.outcome(format('SELECT (kmeans_fit(''go_on'', ''{x,y}'', 3, options => kmeans_options(batch_size => %s))).k', arguments)) FROM unnest(ARRAY['0', '-1', '10, refine => true', '10, init => ''first''']) AS arguments;
DROP TABLE go_on, go_on_models, go_on_few, go_on_units;

-- refine: a better optimum than the first, the same in every function.
-- Four clouds in a row. From these centroids two stay in the first cloud, and one takes two of the others.
CREATE TABLE refine_rows AS
SELECT 25 * c + i + 1 AS id, c AS cloud, 100 * c + i % 5 AS x, (i / 5)::integer AS y, 1 + i % 3 AS w, c % 2 AS half
FROM generate_series(0, 3) AS c, generate_series(0, 24) AS i;
CREATE VIEW refine_starts AS SELECT '{{0,2},{4,2},{102,2},{250,2}}'::float8[] AS start;
SELECT refine, m.centroids, m.size, m.inertia, m.converged
FROM refine_starts, unnest(ARRAY[false, true, NULL]) AS refine,
    LATERAL kmeans_fit('refine_rows', '{x,y}', 4, options => kmeans_options(init_centroids => start, refine => refine)) AS m;
-- the best there is: each cloud a cluster
SELECT count(DISTINCT l.cluster_id) AS clusters, count(DISTINCT (l.cluster_id, t.cloud)) AS pairs
FROM refine_starts, LATERAL kmeans_labels('refine_rows', '{x,y}', 4, options => kmeans_options(init_centroids => start, refine => true)) AS l JOIN refine_rows AS t ON t.ctid = l.row_ctid;

-- One model by the aggregate, whatever the order, and by all table functions.
CREATE TABLE refine_models AS
SELECT k, init, kmeans(ARRAY[x, y], k, kmeans_options(init => init, seed => 3, refine => true)) AS m
FROM refine_rows, generate_series(1, 9) AS k, unnest(ARRAY['k-means++', 'k-means||', 'random']) AS init GROUP BY k, init;
SELECT bool_and(m = kmeans_fit('refine_rows', '{x,y}', k, options => kmeans_options(init => init, seed => 3, refine => true))) AS fit,
    bool_and(m = (SELECT kmeans(ARRAY[x, y], k, kmeans_options(init => init, seed => 3, refine => true) ORDER BY md5(id::text)) FROM refine_rows)) AS shuffled,
    bool_and((m).inertia <= (kmeans_fit('refine_rows', '{x,y}', k, options => kmeans_options(init => init, seed => 3))).inertia) AS never_worse
FROM refine_models;
SELECT bool_and(s.inertia = (m).inertia AND s.n_iter = (m).n_iter AND s.converged = (m).converged) AS sweep
FROM refine_models JOIN kmeans_sweep('refine_rows', '{x,y}', 1, 9, options => kmeans_options(seed => 3, refine => true)) AS s USING (k) WHERE init = 'k-means++';
SELECT bool_and(l = kmeans_predict(m, ARRAY[x, y])) AS window_function
FROM (SELECT x, y, kmeans_label(ARRAY[x, y], 5, kmeans_options(seed => 3, refine => true)) OVER () AS l FROM refine_rows) AS s, refine_models
WHERE k = 5 AND init = 'k-means++';
SELECT bool_and(c.centroid = d.centroid AND c.size = d.size) AS cluster
FROM kmeans_centroids(kmeans_cluster('refine_rows', '{x,y}', 5, options => kmeans_options(seed => 3, refine => true))) AS c
    JOIN (SELECT d.* FROM refine_models, kmeans_centroids(m) AS d WHERE k = 5 AND init = 'k-means++') AS d USING (cluster_id);
-- groups of a hash aggregate, which are fitted together, and sorted ones, which are not
CREATE VIEW refine_groups AS SELECT half, kmeans(ARRAY[x, y], 3, kmeans_options(init => 'random', refine => true)) AS m FROM refine_rows GROUP BY half;
SET enable_sort = off;
CREATE TABLE refine_hashed AS TABLE refine_groups;
RESET enable_sort;
SET enable_hashagg = off;
SELECT count(*) AS same FROM refine_groups AS a JOIN refine_hashed AS b USING (half) WHERE a.m = b.m;
RESET enable_hashagg;

-- weights, directions, standardized features, runs
SELECT (r).k, (r).inertia <= (p).inertia AS no_worse
FROM unnest(ARRAY['{}', '{"w":"w"}', '{"metric":"cosine"}', '{"standardize":true}', '{"n_init":3}']::jsonb[]) AS o,
    LATERAL (SELECT kmeans_fit('refine_rows', '{x,y,id}', 6, options => kmeans_options(init => 'random', n_init => coalesce((o->>'n_init')::integer, 1), metric => coalesce(o->>'metric', 'l2'),
                               standardize => o ? 'standardize'), weight => o->>'w') AS p,
                    kmeans_fit('refine_rows', '{x,y,id}', 6, options => kmeans_options(init => 'random', n_init => coalesce((o->>'n_init')::integer, 1), metric => coalesce(o->>'metric', 'l2'),
                               standardize => o ? 'standardize', refine => true), weight => o->>'w') AS r) AS f;
SELECT n_init, seeding_ms > 0 AS seeded, refining_ms > 0 AS refined FROM kmeans_last_run();
SELECT (kmeans_fit('refine_rows', '{x,y}', 4)).k;
SELECT refining_ms FROM kmeans_last_run();
-- nothing to gain: one cluster, a cluster for each row, equal rows
SELECT wanted, m.k, m.inertia FROM unnest(ARRAY[1, 100, 101]) AS wanted, LATERAL kmeans_fit('refine_rows', '{x,y}', wanted, options => kmeans_options(refine => true)) AS m;
SELECT m.k, m.inertia, m.n_iter FROM (SELECT kmeans(ARRAY[1.5, 2], 3, kmeans_options(refine => true)) AS m FROM generate_series(1, 9)) AS s, LATERAL (SELECT (s.m).*) AS m;
-- mixtures have no such option, and it takes true and false alone
\set VERBOSITY terse
SELECT (gmm_options(refine => true)).tol;
\set VERBOSITY default
SELECT kmeans_options(refine => 'often');
DROP TABLE refine_models, refine_hashed;
DROP VIEW refine_starts, refine_groups;
DROP TABLE refine_rows;

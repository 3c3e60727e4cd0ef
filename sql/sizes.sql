-- min_size, max_size: bounds of the sizes of clusters, the same in every function.
CREATE TABLE size_rows AS
SELECT i AS id, (i * 7919 % 1009)::double precision / 100 + CASE WHEN i % 10 = 0 THEN 30 ELSE 0 END AS x, (i * 104729 % 997)::double precision / 100 AS y, i % 3 AS part
FROM generate_series(1, 3000) AS i;
SELECT o, m.k, m.size, (SELECT sum(s) FROM unnest(m.size) AS s) AS n
FROM unnest(ARRAY['{}', '{"lo":500}', '{"hi":800}', '{"lo":600,"hi":600}', '{"lo":0.18,"hi":0.22}', '{"lo":0.2}', '{"hi":0.2}']::jsonb[]) AS o,
    LATERAL kmeans_fit('size_rows', '{x,y}', 5, options => kmeans_options(min_size => (o->>'lo')::float8, max_size => (o->>'hi')::float8)) AS m;

-- One model by the aggregate, whatever the order, and by all table functions; labels are those of the bounded fit.
CREATE TABLE size_models AS
SELECT k, kmeans(ARRAY[x, y], k, kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10)) AS m
FROM size_rows, generate_series(2, 12, 5) AS k GROUP BY k;
SELECT k, (m).k AS clusters, (SELECT min(s) >= 3000 / k - 10 AND max(s) <= 3000 / k + 10 FROM unnest((m).size) AS s) AS within,
    m = kmeans_fit('size_rows', '{x,y}', k, options => kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10)) AS fit,
    m = (SELECT kmeans(ARRAY[x, y], k, kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10) ORDER BY md5(id::text)) FROM size_rows) AS shuffled,
    (SELECT array_agg(n ORDER BY c) FROM (SELECT l.cluster_id AS c, count(*) AS n FROM kmeans_labels('size_rows', '{x,y}', k, options => kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10)) AS l GROUP BY 1) AS s) = (m).size AS labels,
    (SELECT array_agg(n ORDER BY c) FROM (SELECT c, count(*) AS n FROM (SELECT kmeans_label(ARRAY[x, y], k, kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10)) OVER () AS c FROM size_rows) AS l GROUP BY 1) AS s) = (m).size AS window_function
FROM size_models ORDER BY k;
-- distances are those to the row's own centroid, and add up to the inertia
SELECT k, round((sum(l.distance ^ 2) / (m).inertia)::numeric, 9) AS share,
    bool_and(abs(l.distance - (kmeans_transform(m, ARRAY[x, y]))[l.cluster_id + 1]) < 1e-9) AS own,
    count(*) FILTER (WHERE l.cluster_id <> kmeans_predict(m, ARRAY[x, y])) > 0 AS some_not_nearest
FROM size_models, LATERAL kmeans_labels('size_rows', '{x,y}', k, options => kmeans_options(seed => 3, min_size => 3000 / k - 10, max_size => 3000 / k + 10)) AS l JOIN size_rows AS t ON t.ctid = l.row_ctid
GROUP BY k, m ORDER BY k;
SELECT bool_and(s.inertia = (m).inertia) AS sweep
FROM size_models JOIN kmeans_sweep('size_rows', '{x,y}', 2, 2, options => kmeans_options(seed => 3, min_size => 1490, max_size => 1510)) AS s USING (k);
SELECT s.k, s.clusters, s.inertia > 0 AS fitted FROM kmeans_sweep('size_rows', '{x,y}', 1, 4, options => kmeans_options(min_size => 0.2)) AS s;
SELECT size, (origin).options->'min_size' AS least, (origin).options->'max_size' AS most FROM kmeans_cluster('size_rows', '{x,y}', 4, options => kmeans_options(min_size => 700, max_size => 800));
SELECT cluster_id, count(*) FROM size_rows GROUP BY 1 ORDER BY 1;
SELECT kmeans_plot('size_rows', '{x,y}', 3, options => kmeans_options(max_size => 1000)) LIKE '%1,000%' AS plot;
-- groups of a hash aggregate, which are fitted together, and sorted ones, which are not
CREATE VIEW size_groups AS SELECT part, kmeans(ARRAY[x, y], 7, kmeans_options(min_size => 0.1, max_size => 150)) AS m FROM size_rows GROUP BY part;
SET enable_sort = off;
CREATE TABLE size_hashed AS TABLE size_groups;
RESET enable_sort;
SET enable_hashagg = off;
SELECT part, (a.m).size, a.m = b.m AS same FROM size_groups AS a JOIN size_hashed AS b USING (part) ORDER BY part;
RESET enable_hashagg;

-- directions, standardized features, runs, refinement, real features, centroids of one's own
SELECT (r).k, (SELECT min(s) >= 450 AND max(s) <= 550 FROM unnest((r).size) AS s) AS within
FROM unnest(ARRAY['{}', '{"metric":"cosine"}', '{"standardize":true}', '{"n_init":3}', '{"refine":true}', '{"init":"k-means||"}', '{"init":"random"}', '{"init":"first"}']::jsonb[]) AS o,
    LATERAL kmeans_fit('size_rows', '{x,y,id}', 6, options => kmeans_options(init => coalesce(o->>'init', 'k-means++'), n_init => coalesce((o->>'n_init')::integer, 1), metric => coalesce(o->>'metric', 'l2'),
                       standardize => o ? 'standardize', refine => o ? 'refine', min_size => 450, max_size => 550)) AS r;
SELECT (kmeans(ARRAY[x, y]::real[], 3, kmeans_options(min_size => 1000))).size FROM size_rows;
SELECT (kmeans(ARRAY[x], 2, kmeans_options(max_size => 3, init_centroids => '{{0},{1}}'))).size FROM generate_series(1, 6) AS x;
-- the cheapest assignment: three rows go to the far centroid, those that lose least by it
SELECT (kmeans(ARRAY[x], 2, kmeans_options(max_size => 3, max_iter => 1, init_centroids => '{{2.5},{100}}'))).centroids FROM generate_series(1, 6) AS x;

-- a fit that goes on keeps its clusters
SELECT (m).n_iter AS first, (again).n_iter AS next, (again).size, (again).inertia <= (m).inertia AS no_worse
FROM kmeans_fit('size_rows', '{x,y}', 4, options => kmeans_options(min_size => 740, max_size => 760)) AS m, LATERAL (SELECT kmeans_fit('size_rows', '{x,y}', 4, options => kmeans_options(min_size => 740, max_size => 760, init_model => m)) AS again) AS s;

-- rows that repeat: all clusters are there; fewer rows than clusters
SELECT m.k, m.centroids, m.size, m.inertia FROM (SELECT kmeans(ARRAY[1.5, 2], 3, kmeans_options(max_size => 4)) AS m FROM generate_series(1, 10)) AS s, LATERAL (SELECT (s.m).*) AS m;
SELECT (kmeans(ARRAY[x % 2], 4, kmeans_options(min_size => 2, max_size => 3))).size FROM generate_series(1, 10) AS x;
SELECT (kmeans(ARRAY[x], 5, kmeans_options(max_size => 2))).size FROM generate_series(1, 3) AS x;
-- a row that is skipped does not count
SELECT (kmeans(CASE WHEN x > 4 THEN ARRAY[x] END, 2, kmeans_options(min_size => 3))).size FROM generate_series(1, 10) AS x;
SELECT (kmeans(ARRAY[x], 2, kmeans_options(min_size => 1))) IS NULL AS no_rows FROM generate_series(1, 0) AS x;

-- bounds of each cluster, in its order; widest bounds go to the centroid that most rows are near
SELECT o, m.size FROM unnest(ARRAY['{}', '{"hi":[100,2000,900]}', '{"lo":[100,2000,900]}', '{"lo":[0.1,0,900],"hi":[0,0.4,1200]}', '{"hi":[900,1400,700]}', '{"lo":[0,0,0],"hi":[0,0,0]}']::jsonb[]) AS o,
    LATERAL kmeans_fit('size_rows', '{x,y}', 3, options => kmeans_options(min_sizes => (SELECT array_agg(v::float8 ORDER BY i) FROM jsonb_array_elements_text(o->'lo') WITH ORDINALITY AS e (v, i)),
        max_sizes => (SELECT array_agg(v::float8 ORDER BY i) FROM jsonb_array_elements_text(o->'hi') WITH ORDINALITY AS e (v, i)))) AS m;
-- the same bounds for all are the scalar ones, to the bit; an array beside a number
SELECT to_jsonb(a) - 'origin' = to_jsonb(b) - 'origin' AS same
FROM kmeans_fit('size_rows', '{x,y}', 4, options => kmeans_options(init => 'first', min_size => 700, max_size => 0.26)) AS a,
    kmeans_fit('size_rows', '{x,y}', 4, options => kmeans_options(init => 'first', min_sizes => '{700,700,700,700}', max_sizes => '{0.26,0.26,0.26,780}')) AS b;
SELECT (kmeans(ARRAY[x], 3, kmeans_options(min_size => 2, max_sizes => '{9,3,5}', init_centroids => '{{0},{9},{20}}'))).size FROM generate_series(1, 12) AS x;
-- a cluster that is known before keeps its place: centroids of one's own, a model, the first rows, the optimum of one feature
SELECT o, (SELECT (kmeans(ARRAY[x], 3, kmeans_options(init => coalesce(o->>'init', 'auto'), max_sizes => '{2,2,6}',
    init_centroids => CASE WHEN o ? 'own' THEN '{{9},{5},{1}}'::float8[] END, init_model => CASE WHEN o ? 'model' THEN kmeans_model('{{1},{9},{5}}') END))).centroids FROM generate_series(1, 10) AS x) AS centroids
FROM unnest(ARRAY['{"own":1}', '{"model":1}', '{"init":"first"}', '{"init":"optimal"}']::jsonb[]) AS o;
-- every assignment of eight rows to three clusters, tried: none within the bounds is better
SELECT bounds, size, abs(inertia - (SELECT min(total) FROM (
    SELECT sum((x - centroids[c + 1][1]) ^ 2) AS total, bool_and(n <= bounds[c + 1]) AND count(DISTINCT c) = 3 AS within
    FROM (SELECT code, x, c, count(*) OVER (PARTITION BY code, c) AS n
          FROM generate_series(0, 6560) AS code, unnest('{1,2,4,4.5,7,11,12,30}'::float8[]) WITH ORDINALITY AS r (x, i), LATERAL (SELECT code / (3 ^ (i - 1))::integer % 3 AS c) AS s) AS t
    GROUP BY code) AS t WHERE within)) < 1e-9 AS best
FROM (VALUES ('{4,2,3}'::float8[]), ('{2,2,4}'), ('{1,8,2}')) AS v (bounds), LATERAL (SELECT (kmeans(ARRAY[x], 3, kmeans_options(max_sizes => bounds))).* FROM unnest('{1,2,4,4.5,7,11,12,30}'::float8[]) AS x) AS m;
-- groups of one call, any order
SELECT part, (kmeans(ARRAY[x, y], 3, kmeans_options(max_sizes => '{200,0.3,600}') ORDER BY md5(id::text))).size FROM size_rows GROUP BY part ORDER BY part;

-- bounds of weights: sums keep within them, in every function; the model is the same in any order
CREATE TABLE size_loads AS SELECT i AS id, (i * 7919 % 1009)::float8 / 10 AS x, (i * 104729 % 997)::float8 / 10 AS y, (1 + i * 31 % 37)::float8 / 10 AS kg, i % 2 AS part FROM generate_series(1, 400) AS i;
CREATE TABLE size_load_cases AS SELECT c, kmeans_options(init_centroids => NULL, min_weight => (c->>'lo')::float8, max_weight => (c->>'hi')::float8,
    min_weights => (SELECT array_agg(v::float8 ORDER BY i) FROM jsonb_array_elements_text(c->'los') WITH ORDINALITY AS e (v, i)),
    max_weights => (SELECT array_agg(v::float8 ORDER BY i) FROM jsonb_array_elements_text(c->'his') WITH ORDINALITY AS e (v, i))) AS o
FROM unnest(ARRAY['{"hi":1000}', '{"hi":160}', '{"lo":150}', '{"lo":150,"hi":155}', '{"his":[400,300,100,50,20]}', '{"los":[0,300,10,10,0],"his":[0,350,0,20,200]}']::jsonb[]) AS c;
CREATE TABLE size_loaded AS SELECT c, o, l.cluster_id, t.* FROM size_load_cases, LATERAL kmeans_labels('size_loads', '{x,y}', 5, options => o, weight => 'kg') AS l JOIN size_loads AS t ON t.ctid = l.row_ctid;
SELECT c, bool_and(load >= 0.999999 * coalesce((c->>'lo')::float8, (c->'los'->>cluster_id)::float8, 0)) AS enough,
    bool_and(load <= 1.000001 * coalesce((c->>'hi')::float8, nullif((c->'his'->>cluster_id)::float8, 0), 'Infinity')) AS not_too_much, array_agg(round(load::numeric, 1) ORDER BY cluster_id) AS loads
FROM (SELECT c, cluster_id, sum(kg) AS load FROM size_loaded GROUP BY 1, 2) AS s GROUP BY c ORDER BY c;
SELECT c, m.size = (SELECT array_agg(n ORDER BY cluster_id) FROM (SELECT cluster_id, count(*) AS n FROM size_loaded AS l WHERE l.c = s.c GROUP BY 1) AS t) AS sizes, m.converged,
    abs(m.inertia - (SELECT sum(kg * ((x - m.centroids[cluster_id + 1][1]) ^ 2 + (y - m.centroids[cluster_id + 1][2]) ^ 2)) FROM size_loaded AS l WHERE l.c = s.c)) < 1e-6 AS inertia,
    to_jsonb(m) - 'origin' = (SELECT to_jsonb(kmeans(ARRAY[x, y], 5, o, kg ORDER BY md5(id::text))) - 'origin' FROM size_loads) AS shuffled
FROM size_load_cases AS s, LATERAL kmeans_fit('size_loads', '{x,y}', 5, options => o, weight => 'kg') AS m ORDER BY c;
-- no row that moves, and no two that change places, make it cheaper within the bounds
WITH fits AS (SELECT c, o, m.centroids AS z FROM size_load_cases, LATERAL kmeans_fit('size_loads', '{x,y}', 5, options => o, weight => 'kg') AS m),
    rows AS (SELECT c, id, kg, cluster_id AS own, j - 1 AS other, kg * ((x - z[j][1]) ^ 2 + (y - z[j][2]) ^ 2 - (x - z[cluster_id + 1][1]) ^ 2 - (y - z[cluster_id + 1][2]) ^ 2) AS more
             FROM size_loaded JOIN fits USING (c), generate_series(1, 5) AS j WHERE j <> cluster_id + 1
             UNION ALL SELECT c, 0, 0, a, b, 0 FROM size_load_cases, generate_series(0, 4) AS a, generate_series(0, 4) AS b WHERE a <> b),
    loads AS (SELECT c, cluster_id AS j, sum(kg) AS load, coalesce((c->>'lo')::float8, (c->'los'->>cluster_id)::float8, 0) AS lo, coalesce((c->>'hi')::float8, nullif((c->'his'->>cluster_id)::float8, 0), 'Infinity') AS hi
              FROM size_loaded GROUP BY 1, 2)
SELECT a.c, count(*) > 1000 AS tried, count(*) FILTER (WHERE a.more + b.more < -1e-6 AND m.load - a.kg + b.kg BETWEEN m.lo AND m.hi AND n.load + a.kg - b.kg BETWEEN n.lo AND n.hi) AS cheaper
FROM rows AS a JOIN rows AS b ON b.c = a.c AND b.own = a.other AND b.other = a.own AND a.own < a.other JOIN loads AS m ON m.c = a.c AND m.j = a.own JOIN loads AS n ON n.c = a.c AND n.j = a.other
GROUP BY a.c ORDER BY a.c;
-- equal weights are rows; a row without a weight does not count; 0.1 is rounded
SELECT (kmeans(ARRAY[x, y], 5, kmeans_options(init => 'first', max_weight => 340), 4)).size = (kmeans(ARRAY[x, y], 5, kmeans_options(init => 'first', max_size => 85))).size AS same FROM size_loads;
SELECT (kmeans(ARRAY[x], 2, kmeans_options(max_weight => 0.3), CASE WHEN x < 7 THEN 0.1 WHEN x < 9 THEN 0 END)).size FROM generate_series(1, 10) AS x;
SELECT part, (SELECT bool_and(s > 0) FROM unnest((m).size) AS s) AS filled, (m).n FROM (SELECT part, kmeans(ARRAY[x, y], 3, kmeans_options(max_weight => 135), kg) AS m FROM size_loads GROUP BY part) AS s ORDER BY part;
SELECT k, clusters FROM kmeans_sweep('size_loads', '{x,y}', 4, 6, options => kmeans_options(max_weight => 210), weight => 'kg');

-- what cannot be
\set VERBOSITY terse
SELECT kmeans_fit('size_rows', '{x,y}', 7, options => kmeans_options(min_size => 500));
SELECT kmeans_fit('size_rows', '{x,y}', 7, options => kmeans_options(min_size => 3000000000));
SELECT kmeans_fit('size_rows', '{x,y}', 7, options => kmeans_options(max_size => 400));
SELECT kmeans_fit('size_rows', '{x,y}', 3, options => kmeans_options(min_size => 0.34));
SELECT kmeans_fit('size_rows', '{x,y}', 3, options => kmeans_options(max_size => 0.3333));
SELECT kmeans_fit('size_rows', '{x,y}', 1, options => kmeans_options(min_size => 3001));
SELECT kmeans_fit('size_rows', '{x,y}', 3, options => kmeans_options(min_size => 900, max_size => 800));
SELECT kmeans_sweep('size_rows', '{x,y}', 2, 7, options => kmeans_options(min_size => 500));
SELECT part, kmeans(ARRAY[x, y], 3, kmeans_options(min_size => 20)) FROM size_rows WHERE id < 100 OR part = 0 GROUP BY part;
SELECT kmeans(ARRAY[x], 2, kmeans_options(min_size => 2)) FROM generate_series(1, 3) AS x;
-- which group that is
\set VERBOSITY default
CREATE TABLE size_named AS SELECT i % 3 AS part, i % 3 / 2 AS half, CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('long', 20) END AS kind, i::real AS x
    FROM generate_series(1, 3000) AS i WHERE i % 3 <> 2 OR i < 25;
ANALYZE size_named;
SELECT part, kmeans(ARRAY[x], 3, kmeans_options(min_size => 20)) FROM size_named GROUP BY part;
SET enable_hashagg = off;
SELECT kind, part, kmeans(ARRAY[x], 3, kmeans_options(min_size => 20)) FROM size_named GROUP BY kind, part;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_size => 600)) FROM size_named GROUP BY ROLLUP (half, kind);
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_size => 600)) FROM size_named GROUP BY GROUPING SETS (part, ());
RESET enable_hashagg;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_size => 600)) FROM size_named GROUP BY GROUPING SETS ((kind), (half, part - part));
DROP TABLE size_named;
\set VERBOSITY terse
SELECT kmeans_fit('size_rows', '{x,y}', 3, weight => 'id', options => kmeans_options(min_size => 10));
SELECT kmeans(ARRAY[x, y], 2, kmeans_options(max_size => 2000), 1.0) FROM size_rows;
SELECT o, kmeans_options(min_size => o) FROM unnest(ARRAY[0, 0.5, 1]) AS o WHERE o > 0;
SELECT kmeans_options(min_size => 0);
SELECT kmeans_options(max_size => -1);
SELECT kmeans_options(max_size => 1.5);
SELECT kmeans_options(max_size => 'NaN');
SELECT o, (kmeans(ARRAY[x], 3, kmeans_options(min_sizes => o))).size FROM unnest(ARRAY['{1,2,2}', '{2,2,2}']) AS t, LATERAL (SELECT t::float8[] AS o) AS s, generate_series(1, 5) AS x GROUP BY o;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_sizes => '{1,1,2}')) FROM generate_series(1, 5) AS x;
SELECT kmeans(ARRAY[x], 3, kmeans_options(min_sizes => '{1,2,1}', max_sizes => '{5,1,5}')) FROM generate_series(1, 5) AS x;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_sizes => '{2,2}')) FROM generate_series(1, 5) AS x;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_sizes => '{2,2,2,2}')) FROM generate_series(1, 5) AS x;
SELECT kmeans(ARRAY[x], 3, kmeans_options(max_sizes => '{2,2,2}')) FROM generate_series(1, 2) AS x;
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(max_weight => 100), weight => 'kg');
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(min_weight => 160), weight => 'kg');
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(max_weights => '{100,100,100,100,1}'), weight => 'kg');
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(min_weight => 160, max_weight => 150), weight => 'kg');
SELECT kmeans_fit('size_loads', '{x,y}', 300, options => kmeans_options(max_weight => 3), weight => 'kg');
SELECT kmeans(ARRAY[x], 2, kmeans_options(max_weight => 7), CASE WHEN x < 4 THEN 4 ELSE 0.5 END) FROM generate_series(1, 6) AS x;
SELECT part, kmeans(ARRAY[x, y], 3, kmeans_options(max_weight => 120), kg) FROM size_loads WHERE part = 1 OR id < 100 GROUP BY part;
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(max_weight => 160));
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(max_weight => 160, max_size => 100), weight => 'kg');
SELECT kmeans_fit('size_loads', '{x,y}', 5, options => kmeans_options(max_weights => '{160,160}'), weight => 'kg');
SELECT kmeans_options(max_weight => 0);
SELECT kmeans_options(min_weight => 'NaN');
SELECT kmeans_options(max_weight => 'Infinity');
SELECT kmeans_options(max_weights => '{1,NULL}');
SELECT kmeans_options(max_weights => '{1,-1}');
SELECT kmeans_options(min_weights => '{1}', min_weight => 1);
SELECT kmeans_options(max_weights => '{1}', max_weight => 1);
SELECT kmeans_options(max_weight => 1, batch_size => 10);
SELECT kmeans_options(max_sizes => '{2,NULL,2}');
SELECT kmeans_options(max_sizes => '{}');
SELECT kmeans_options(max_sizes => '{{2,2}}');
SELECT kmeans_options(min_sizes => '{2,-1}');
SELECT kmeans_options(min_sizes => '{2,1.5}');
SELECT kmeans_options(min_sizes => '{2,NaN}');
SELECT kmeans_options(min_sizes => '{2,2}', min_size => 3);
SELECT kmeans_options(max_sizes => '{2,2}', max_size => 3);
SELECT kmeans_options(max_sizes => '{2,2}', batch_size => 3);
SELECT kmeans_options(max_sizes => '{2,2}', max_radius => 3);
SELECT kmeans_sweep('size_rows', '{x,y}', 2, 3, options => kmeans_options(max_sizes => '{2000,2000}'));
SELECT kmeans_tree('size_rows', '{x,y}', '2', options => kmeans_options(max_sizes => '{2000,2000}'));
SELECT kmeans_fit('size_rows', '{x,y}', 2, weight => 'id', options => kmeans_options(max_sizes => '{2000,2000}'));
SELECT kmeans_fit('size_rows', '{x,y}', 3, options => kmeans_options(min_size => 10, batch_size => 100));
SELECT (gmm_options(min_size => 3)).tol;
\set VERBOSITY default
DROP VIEW size_groups;
DROP TABLE size_rows, size_models, size_hashed, size_loads, size_load_cases, size_loaded;

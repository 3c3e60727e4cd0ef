-- kmeans_sweep against figures of scikit-learn 1.9.1 on its iris set: KMeans(k, n_init=300, tol=0,
-- max_iter=1000).inertia_, davies_bouldin_score, calinski_harabasz_score; and the simplified
-- silhouette computed with numpy from its cluster_centers_. `standardized`: the same after
-- StandardScaler; `repeated`: each row i (from 0) 1 + i % 3 times, here as weights.
CREATE TABLE sweep_iris (id serial, a float8, b float8, c float8, d float8, species text);
\getenv folder PG_ABS_SRCDIR
\set path :folder '/test/data/iris.csv'
\set copy '\\copy sweep_iris (a, b, c, d, species) FROM ' :'path' ' CSV HEADER'
:copy
CREATE VIEW sweep_weighted AS SELECT *, 1 + (id - 1) % 3 AS w FROM sweep_iris;
CREATE TABLE sweep_expected (kind text, k bigint, inertia float8, davies_bouldin float8, calinski_harabasz float8, silhouette float8);
INSERT INTO sweep_expected VALUES
('raw', 2, 152.34795176035792, 0.40429283717304343, 513.9245459802768, 0.7697038327173391),
('raw', 3, 78.85144142614601, 0.6619715465007465, 561.62775662962, 0.6663855564711182),
('raw', 4, 57.228473214285714, 0.7803069838811107, 530.7658081872851, 0.6207380403765259),
('raw', 5, 46.44618205128205, 0.8059652120182736, 495.54148767768777, 0.6143759275036635),
('raw', 6, 39.03998724608725, 0.9141579726538026, 473.8506068330425, 0.5196508282561317),
('raw', 7, 34.298229665071766, 0.9668600960231223, 449.6410352248477, 0.5166365476345585),
('standardized', 2, 222.36170496502308, 0.5933126905762435, 251.34933946458108, 0.6992533734883165),
('standardized', 3, 139.8204963597498, 0.8335949464754338, 241.90440170183157, 0.5932631698619876),
('standardized', 4, 114.09223843568272, 0.879656111632692, 207.26660627425235, 0.533793716650442),
('standardized', 5, 90.80728315078541, 0.9530463492231889, 203.26823295807839, 0.494704144713272),
('standardized', 6, 79.99855804596771, 1.0573774787872343, 187.2038933460626, 0.47244239350819195),
('standardized', 7, 70.65863985830327, 1.0119193770917332, 178.54814511964568, 0.47659839647557495),
('repeated', 2, 298.5305533751961, 0.39828740903004994, 1057.8646450880537, 0.7729935503533283),
('repeated', 3, 159.49894008264465, 0.6868749349922899, 1116.1126174599449, 0.6533940020418174),
('repeated', 5, 93.68129332445152, 0.8210597310846837, 995.5461550292152, 0.614901752249699);
CREATE FUNCTION sweep_near(a float8, b float8) RETURNS boolean LANGUAGE sql AS 'SELECT abs(a - b) <= 1e-11 * abs(b)';
SELECT kind, k, sweep_near(s.inertia, e.inertia) AS inertia, sweep_near(s.davies_bouldin, e.davies_bouldin) AS davies_bouldin,
    sweep_near(s.calinski_harabasz, e.calinski_harabasz) AS calinski_harabasz, sweep_near(s.simplified_silhouette, e.silhouette) AS silhouette,
    clusters, converged
FROM (SELECT 'raw' AS kind, r.* FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', 2, 7, options => kmeans_options(n_init => 1000, tol => 0)) AS r
      UNION ALL SELECT 'standardized', r.* FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', 2, 7, options => kmeans_options(n_init => 1000, tol => 0, standardize => true)) AS r
      UNION ALL SELECT 'repeated', r.* FROM kmeans_sweep('sweep_weighted', '{a,b,c,d}', 2, 5, options => kmeans_options(n_init => 1000, tol => 0), weight => 'w') AS r) AS s
JOIN sweep_expected AS e USING (kind, k) ORDER BY kind, k;

-- scikit-learn's silhouette_score of these labels
SELECT k, sweep_near(silhouette, e) AS silhouette
FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', 2, 4, options => kmeans_options(n_init => 1000, tol => 0)) JOIN (VALUES (2, 0.6810461692117462), (3, 0.5528190123564095), (4, 0.49805050499728737)) AS v (k, e) USING (k) ORDER BY k;

-- The fit of each k is that of kmeans_fit; one reading is enough for all.
SELECT bool_and(s.inertia = m.inertia AND s.n_iter = m.n_iter AND s.converged = m.converged) AS same
FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', 1, 9, options => kmeans_options(init => 'random', n_init => 3, seed => 4, metric => 'cosine', max_iter => 4)) AS s,
    LATERAL kmeans_fit('sweep_iris', '{a,b,c,d}', s.k, options => kmeans_options(init => 'random', n_init => 3, seed => 4, metric => 'cosine', max_iter => 4)) AS m;
SELECT count(*) FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', 2, 4);
SELECT function, relid::regclass, n, k, rows_scanned FROM kmeans_last_run();
-- The number of threads does not show.
CREATE TABLE sweep_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 30000) AS i;
SET pg_kmeans.cpu_threads = 1;
CREATE TABLE sweep_one AS SELECT * FROM kmeans_sweep('sweep_rows', '{x,y}', 2, 4);
SET pg_kmeans.cpu_threads = 3;
SELECT count(*) FROM (TABLE sweep_one INTERSECT SELECT * FROM kmeans_sweep('sweep_rows', '{x,y}', 2, 4)) AS s;
RESET pg_kmeans.cpu_threads;

-- A list, in any order, is that part of a range; mixtures and pictures, too.
SELECT count(*), array_agg(k ORDER BY k) AS ks, every(l.inertia = r.inertia AND l.silhouette = r.silhouette AND l.bic = r.bic AND l.n_iter = r.n_iter) AS same
FROM kmeans_sweep('sweep_iris', '{a,b,c,d}', ks => '{9,2,4,9}') AS l JOIN kmeans_sweep('sweep_iris', '{a,b,c,d}', 1, 9) AS r USING (k);
SELECT s.k, s.inertia = m.inertia AS streamed FROM kmeans_sweep('sweep_rows', '{x,y}', ks => ARRAY(SELECT generate_series(2, 12, 5)), memory => 'stream') AS s, LATERAL kmeans_fit('sweep_rows', '{x,y}', s.k) AS m ORDER BY s.k;
SELECT l.k, l.log_likelihood = r.log_likelihood AS same, l.suggestion IS NOT NULL AS suggested FROM gmm_sweep('sweep_iris', '{a,b,c,d}', ks => '{1,3}', options => gmm_options('diag')) AS l JOIN gmm_sweep('sweep_iris', '{a,b,c,d}', 1, 3, options => gmm_options('diag')) AS r USING (k) ORDER BY k;
SELECT kmeans_sweep_plot('sweep_iris', '{a,b,c,d}', ks => '{2,3,9}') ~ 'for k from 2 to 9' AS list, kmeans_sweep_plot('sweep_iris', '{a,b,c,d}', ks => '{2,3,4}') = replace(kmeans_sweep_plot('sweep_iris', '{a,b,c,d}', 2, 4), 'for each k', 'for k') AS range;
-- The knee: the point farthest below the line from the first to the last, both axes scaled to 1.
SELECT part, array_agg(k ORDER BY k) FILTER (WHERE knee) AS knee, count(*) FILTER (WHERE knee IS NULL) AS undefined, (array_agg(k ORDER BY below DESC, k))[1] AS farthest
FROM (SELECT part, k, knee, (k - min(k) OVER p)::float8 / (max(k) OVER p - min(k) OVER p) AS x, (inertia - last_value(inertia) OVER p) / (first_value(inertia) OVER p - last_value(inertia) OVER p) AS y
      FROM (VALUES ('range', '{1,2,3,4,5,6,7,8,9,10}'::bigint[]), ('list', '{2,3,5,10,20,40}'), ('three', '{1,3,9}'), ('two', '{2,3}')) AS v (part, list), LATERAL kmeans_sweep('sweep_iris', '{a,b,c,d}', ks => list, sample => 0)
      WINDOW p AS (PARTITION BY part ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS s, LATERAL (SELECT 1 - x - y AS below) AS b GROUP BY part ORDER BY part;
-- One value has no knee: nothing falls.
CREATE TABLE sweep_alike AS SELECT 7 AS x FROM generate_series(1, 5);
SELECT k, inertia, knee FROM kmeans_sweep('sweep_alike', '{x}', 1, 3);

-- Where the indices are not defined: one cluster, as many clusters as rows, fewer clusters than k.
CREATE TABLE sweep_few (x integer);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 3);
INSERT INTO sweep_few VALUES (1), (1), (5), (6);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 5);

-- A row of weight w counts like w rows there, too: the sum of the weights is the number of rows.
CREATE TABLE sweep_copies AS SELECT x * x AS x, x AS y, w FROM (VALUES (0, 2), (1, 1), (4, 3), (9, 2)) AS v (x, w);
CREATE VIEW sweep_copied AS SELECT x, y FROM sweep_copies, generate_series(1, w);
CREATE FUNCTION sweep_same(a anycompatible, b anycompatible) RETURNS boolean LANGUAGE sql AS 'SELECT coalesce(abs(a - b) <= 1e-12 * greatest(abs(b), 1), a IS NULL AND b IS NULL)';
SELECT k, w.silhouette IS NULL AS no_silhouette, w.bic IS NULL AS no_bic, sweep_same(w.davies_bouldin, c.davies_bouldin) AS davies_bouldin,
    sweep_same(w.calinski_harabasz, c.calinski_harabasz) AS calinski_harabasz, sweep_same(w.simplified_silhouette, c.simplified_silhouette) AS simplified_silhouette,
    sweep_same(w.silhouette, c.silhouette) AS silhouette, sweep_same(w.bic, c.bic) AS bic, w.suggestion, c.suggestion AS of_copies
FROM kmeans_sweep('sweep_copies', '{x,y}', 1, 4, options => kmeans_options(init => 'random', n_init => 50, tol => 0), weight => 'w') AS w
JOIN kmeans_sweep('sweep_copied', '{x,y}', 1, 4, options => kmeans_options(init => 'random', n_init => 50, tol => 0)) AS c USING (k) ORDER BY k;
-- Weights that make no more rows than clusters leave the indices that do not count rows.
ALTER TABLE sweep_copies ADD tenth float8;
UPDATE sweep_copies SET tenth = w / 10.0;
SELECT k, t.calinski_harabasz, t.silhouette, sweep_same(t.davies_bouldin, w.davies_bouldin) AS davies_bouldin,
    sweep_same(t.simplified_silhouette, w.simplified_silhouette) AS simplified_silhouette, t.suggestion
FROM kmeans_sweep('sweep_copies', '{x,y}', 1, 3, options => kmeans_options(init => 'random', n_init => 50, tol => 0), weight => 'tenth') AS t
JOIN kmeans_sweep('sweep_copies', '{x,y}', 1, 3, options => kmeans_options(init => 'random', n_init => 50, tol => 0), weight => 'w') AS w USING (k) ORDER BY k;

-- errors
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 3, 2);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 0, 2);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', NULL, 2);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, NULL);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 2147483648);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 2, options => kmeans_options(init => 'best'));
SELECT * FROM kmeans_sweep('sweep_none', '{x}', 1, 2);
SELECT * FROM kmeans_sweep('sweep_few', '{y}', 1, 2);
SELECT * FROM kmeans_sweep(NULL, '{x}', 1, 2);
SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 2, memory => 'loaded');

SELECT * FROM kmeans_sweep('sweep_few', '{x}', 1, 2, ks => '{2}');
SELECT * FROM kmeans_sweep('sweep_few', '{x}', k_max => 2, ks => '{2}');
SELECT * FROM kmeans_sweep('sweep_few', '{x}', ks => '{}');
SELECT * FROM kmeans_sweep('sweep_few', '{x}', ks => '{2,NULL}');
SELECT * FROM kmeans_sweep('sweep_few', '{x}', ks => '{2,0}');
SELECT * FROM gmm_sweep('sweep_few', '{x}', ks => '{2147483648}');
SELECT * FROM kmeans_sweep('sweep_few', '{x}');

-- It ends at the number of rows that take part, but not before k_min.
LOAD 'pg_kmeans';
SET pg_kmeans.memory_limit = '2MB';
INSERT INTO sweep_few VALUES (NULL);
SELECT k, clusters FROM kmeans_sweep('sweep_few', '{x}', 3, 2147483647);
SELECT k, clusters FROM kmeans_sweep('sweep_few', '{x}', 2147483646, 2147483647);
SELECT k, clusters FROM kmeans_sweep('sweep_few', '{x}', 7, 7);
SELECT k, clusters FROM kmeans_sweep('sweep_few', '{x}', ks => '{1,3,2147483647}');
SELECT k, clusters FROM kmeans_sweep('sweep_few', '{x}', ks => '{8,9}');
-- The results of a range of fits count against the limit before it starts.
CREATE TABLE sweep_less AS SELECT * FROM sweep_rows LIMIT 5000;
SET pg_kmeans.memory_limit = '2500kB';
SELECT k FROM kmeans_sweep('sweep_less', '{x,y}', 5000, 5000, options => kmeans_options(init => 'first', max_iter => 1), sample => 0);
DO $$
BEGIN
    PERFORM kmeans_sweep('sweep_less', '{x,y}', 1, 5000, sample => 0);
EXCEPTION WHEN program_limit_exceeded THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
RESET pg_kmeans.memory_limit;

DROP VIEW sweep_weighted, sweep_copied;
DROP TABLE sweep_iris, sweep_expected, sweep_rows, sweep_less, sweep_one, sweep_few, sweep_copies, sweep_alike;
DROP FUNCTION sweep_near, sweep_same;

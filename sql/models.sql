-- models as values: no field of one is NULL, and what it holds starts another fit
CREATE TABLE model_rows AS SELECT i, i % 3 AS g, ARRAY[i % 10, i % 7 * 100]::float8[] AS f FROM generate_series(1, 60) AS i;
CREATE TABLE models (name text, m kmeans_model CHECK (m IS NOT NULL));
INSERT INTO models SELECT format('%s %s', metric, standardize), kmeans(f, 3, kmeans_options(metric => metric, standardize => standardize))
FROM model_rows, unnest(ARRAY['l2', 'cosine']) AS metric, unnest(ARRAY[false, true]) AS standardize WHERE i % 7 > 0 GROUP BY metric, standardize;
INSERT INTO models SELECT 'fit', m FROM kmeans_fit('model_rows', '{f}', 2) AS m;
INSERT INTO models SELECT 'window', kmeans(f, 1) OVER () FROM model_rows LIMIT 1;
SELECT name, m IS NOT NULL AS whole, (m).center = '{}' AND (m).scale = '{}' AS as_it_is FROM models ORDER BY name;
CREATE TABLE other_models (x gmm_model CHECK (x IS NOT NULL), p pca_model CHECK (p IS NOT NULL));
INSERT INTO other_models SELECT gmm(f, 2, gmm_options(kind)), pca(f, pca_options(whiten => kind = 'full', standardize => kind = 'tied'))
FROM model_rows, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY kind;
INSERT INTO other_models SELECT x, p FROM gmm_fit('model_rows', '{f}', 2) AS x, pca_fit('model_rows', '{f}') AS p;
SELECT count(*), count(*) FILTER (WHERE (p).scale = '{}') AS as_it_is FROM other_models;
-- a group without rows is filtered
SELECT g, (m).n, (p).n, (x).n FROM (SELECT g, kmeans(f, 2) FILTER (WHERE g > 0) AS m, pca(f) FILTER (WHERE g > 0) AS p, gmm(f, 2) FILTER (WHERE g > 0) AS x FROM model_rows GROUP BY g) AS s
WHERE m IS NOT NULL AND p IS NOT NULL AND x IS NOT NULL ORDER BY g;
INSERT INTO models SELECT 'none', kmeans(f, 2) FROM model_rows WHERE false;
-- a model made by hand that says nothing of center and scale is not standardized
SELECT kmeans_predict(m, '{8,1}'::float8[]), kmeans_distance(m, '{8,1}'::float8[]), c.*
FROM (SELECT ROW(2, 2, '{{0,0},{8,0}}', '{1,1}', '{0,0}', 0, 1, true, 2, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model AS m) AS s, kmeans_centroids(m) AS c;

-- init_centroids are in the units of the data, as those of kmeans_centroids are: the fit goes on where the model ended
SELECT name, (again).n_iter, round((again).inertia::numeric, 9) = round((m).inertia::numeric, 9) AS same, (other).n_iter > 1 AND (other).inertia > (m).inertia AS lost
FROM (SELECT name, m, kmeans(f, 3, kmeans_options(init_centroids => (SELECT array_agg(centroid ORDER BY cluster_id) FROM kmeans_centroids(m)), standardize => true)) AS again,
    kmeans(f, 3, kmeans_options(init_centroids => (m).centroids, standardize => true)) AS other
    FROM model_rows, models WHERE name = 'l2 t' AND i % 7 > 0 GROUP BY name, m) AS s;
SELECT name, (again).n_iter, round((again).inertia::numeric, 9) = round((m).inertia::numeric, 9) AS same
FROM (SELECT name, m, kmeans(f, 3, kmeans_options(init_centroids => (SELECT array_agg(centroid ORDER BY cluster_id) FROM kmeans_centroids(m)), metric => 'cosine', standardize => name = 'cosine t')) AS again
    FROM model_rows, models WHERE name LIKE 'cosine%' AND i % 7 > 0 GROUP BY name, m) AS s ORDER BY name;
DROP TABLE models, other_models, model_rows;

-- One part of an array of such parts: a row of a matrix, a matrix of several.
SELECT pgkm_part('{{1,2},{3,4}}', 2) AS row, pgkm_part('[0:1][5:5][2:3]={{{1,2}},{{3,4}}}', 2) AS matrix, pgkm_part('{1,2}', 1) AS number,
    pgkm_part('{{1,2}}', 0) AS before, pgkm_part('{{1,2}}', 2) AS behind, pgkm_part('{{1,NULL}}', 1) AS nulls, pgkm_part('{}', 1) AS nothing;

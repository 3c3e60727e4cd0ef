-- The demo of pg_kmeans; scripts/demo runs it from the checkout's root.
SET client_min_messages = warning;
CREATE EXTENSION pg_kmeans;

CREATE TABLE s1 (id integer GENERATED ALWAYS AS IDENTITY, x double precision, y double precision);
\copy s1 (x, y) FROM 'test/data/s1.csv' (FORMAT csv, HEADER)
CREATE TABLE iris (sepal_length real, sepal_width real, petal_length real, petal_width real, species text);
\copy iris FROM 'test/data/iris.csv' (FORMAT csv, HEADER)
\timing on

\echo
\echo '1. The aggregate: S1 (5000 points around 15 centres) in one query, the centroids as a relation.'
\echo
SELECT cluster_id, round(centroid[1]) AS x, round(centroid[2]) AS y, size, to_char(within_ss, '9.99EEEE') AS within_ss
FROM (SELECT kmeans(ARRAY[x, y], 15, kmeans_options(n_init => 10) ORDER BY id) AS m FROM s1) s, kmeans_centroids(s.m)
ORDER BY centroid[1];

\echo
\echo '2. Grouped: one model for each species of iris.'
\echo
SELECT species, (m).n AS flowers, (m).k, (m).size, round((m).inertia::numeric, 4) AS inertia, (m).n_iter, (m).converged
FROM (SELECT species, kmeans(ARRAY[sepal_length, sepal_width, petal_length, petal_width], 2) AS m
      FROM iris GROUP BY species) s
ORDER BY species;

\echo
\echo '3. The window function: a label beside every row. Do three clusters find the three species?'
\echo
SELECT label, count(*) FILTER (WHERE species = 'setosa') AS setosa,
       count(*) FILTER (WHERE species = 'versicolor') AS versicolor,
       count(*) FILTER (WHERE species = 'virginica') AS virginica
FROM (SELECT species, kmeans_label(ARRAY[sepal_length, sepal_width, petal_length, petal_width], 3,
                                   kmeans_options(n_init => 10)) OVER () AS label FROM iris) s
GROUP BY label ORDER BY label;

\echo
\echo '4. A whole table, labelled in place: kmeans_cluster adds the column and returns the model.'
\echo
SELECT cluster_id, round(centroid[1]) AS x, round(centroid[2]) AS y, size
FROM kmeans_centroids(kmeans_cluster('s1', features => '{x,y}', k => 5, label_column => 'cluster_id')) ORDER BY cluster_id;
SELECT * FROM s1 ORDER BY id LIMIT 3;

\echo
\echo '5. A stored model, and new rows.'
\echo
CREATE TABLE models AS SELECT 's1' AS name, kmeans_fit('s1', features => '{x,y}', k => 15) AS m;
SELECT x, y, kmeans_predict(m, ARRAY[x, y]) AS cluster_id, round(kmeans_distance(m, ARRAY[x, y])) AS distance
FROM models, (VALUES (600000, 570000), (850000, 160000), (0, 0)) AS new_points(x, y);

\timing off
\echo
\echo '6. Pictures: build/demo/clusters.svg, components.svg, sweep.svg and profile.svg.'
\echo
\i scripts/lib/pictures.sql

\echo
\echo '7. What it runs on.'
\echo
\x on
SELECT * FROM kmeans_status();

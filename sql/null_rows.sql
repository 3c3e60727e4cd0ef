-- what a NULL row is: NULL, or an array of nothing but NULLs; and which row an error is about
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE null_rows (id int, a float8, b float8, f float8[], w float8);
INSERT INTO null_rows SELECT i, v.a, v.b, ARRAY[v.a, v.b], 1
FROM (VALUES (1, NULL, NULL), (2, 0, 0), (3, 0, 1), (4, NULL, NULL), (5, 9, 9), (6, 9, 8)) AS v (i, a, b);

-- one meaning everywhere: columns and arrays, aggregates, window functions and models
SELECT (kmeans(ARRAY[a, b], 2)).n AS kmeans, (kmeans(f::real[], 2)).n AS float32, (kmeans(f, 2, NULL, 1)).n AS weighted, (gmm(f, 2)).n AS gmm, (pca(f)).n AS pca,
    (SELECT sum(m) FROM unnest(kmeans_sums_masses(kmeans_step(f, '{{0,0},{9,9}}'))) AS m) AS step FROM null_rows;
SELECT (kmeans_fit('null_rows', '{a,b}', 2)).n AS columns, (kmeans_fit('null_rows', '{f}', 2)).n AS array, (gmm_fit('null_rows', '{f}', 2)).n AS gmm, (pca_fit('null_rows', '{f}')).n AS pca;
SELECT set_config('pg_kmeans.scan', 'executor', false), (kmeans_fit('null_rows', '{f}', 2)).n AS executor;
SELECT (kmeans_fit('null_rows', '{f}', 2, weight => 'w')).n AS weighted;
RESET pg_kmeans.scan;
SELECT p.id, l.cluster_id, l.distance FROM kmeans_labels('null_rows', '{f}', 2, options => kmeans_options(init_centroids => '{{0,0},{9,9}}')) AS l JOIN null_rows AS p ON p.ctid = l.row_ctid ORDER BY id;
SELECT id, kmeans_label(f, 2, o) OVER () AS label, gmm_label(f, 2, g) OVER () IS NULL AS no_component, kmeans_predict(m, f), kmeans_distance(m, f) IS NULL AS no_distance,
    kmeans_transform(m, f) IS NULL AS no_distances, gmm_predict(x, f) IS NULL AS no_prediction, gmm_posterior(x, f) IS NULL AS no_posterior, gmm_score(x, f) IS NULL AS no_score,
    pca_transform(p, f) IS NULL AS no_scores, pca_inverse_transform(p, f) IS NULL AS no_row
FROM null_rows, (SELECT kmeans(f, 2, o) AS m, gmm(f, 2, g) AS x, pca(f) AS p, o, g
    FROM null_rows, (SELECT kmeans_options(init_centroids => '{{0,0},{9,9}}'), gmm_options(means_init => '{{0,0},{9,9}}')) AS c (o, g) GROUP BY o, g) AS s ORDER BY id;
-- whatever its length and weight; without other rows there is no model
SELECT (kmeans(f, 1, NULL, w)).n FROM (VALUES ('{1,2}'::float8[], 1), ('{NULL}', -1), ('{NULL,NULL,NULL}', 1)) AS v (f, w);
SELECT kmeans('{NULL,NULL}'::numeric[], 1) IS NULL AS kmeans, pca('{NULL}'::int[]) IS NULL AS pca, kmeans_step('{NULL,NULL}'::real[], '{{1,2}}') IS NULL AS step;
-- some elements that are NULL remain an error, and so does an array without elements
SELECT query, pg_temp.outcome(query, true) FROM (VALUES ($$SELECT kmeans(f, 1) FROM (VALUES ('{1,NULL}'::real[])) AS v (f)$$), ($$SELECT kmeans(f, 1) FROM (VALUES ('{NULL,1}'::real[])) AS v (f)$$),
    ($$SELECT kmeans(f, 1) FROM (VALUES ('{}'::real[])) AS v (f)$$), ($$SELECT kmeans(f, 1) FROM (VALUES ('{{NULL},{NULL}}'::real[])) AS v (f)$$),
    ($$SELECT (kmeans_fit('null_rows', '{f}', 2)).centroids FROM (SELECT 1) AS one$$)) AS q (query);

-- errors say which row it was
SELECT query, pg_temp.outcome(query, true) FROM (VALUES
    ('SELECT kmeans(ARRAY[i, 1 / (i - 3.5)], 2, NULL, 4 - i) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans(ARRAY[i, CASE i WHEN 7 THEN ''NaN'' ELSE 1.0::float8 END], 2) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans(ARRAY[i, nullif(i, 7)], 2) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans(array_fill(CASE WHEN i = 2 THEN NULL ELSE i END, ARRAY[CASE WHEN i = 7 THEN 3 ELSE 2 END]), 2) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans(ARRAY[i], i / 4 + 1) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans(ARRAY[i], 2, kmeans_options(seed => i / 5)) FROM generate_series(1, 9) AS i'),
    ('SELECT max((m).k) FROM (SELECT i % 2 AS g, kmeans(ARRAY[i, CASE i WHEN 8 THEN ''Infinity'' ELSE 1::real END], 2) AS m FROM generate_series(1, 9) AS i GROUP BY g) AS s'),
    ('SELECT max((m).k) FROM (SELECT i % 2 AS g, kmeans(ARRAY[CASE i WHEN 7 THEN ''NaN'' ELSE i::float8 END], 2 ORDER BY i DESC) AS m FROM generate_series(1, 9) AS i GROUP BY g, i % 3) AS s'),
    ('SELECT gmm(ARRAY[i, CASE i WHEN 7 THEN 1e200 ELSE 1 END]::float8[], 2) FROM generate_series(1, 9) AS i'),
    ('SELECT pca(ARRAY[i, CASE i WHEN 40 THEN ''NaN'' ELSE 1.0::float8 END]) FROM generate_series(1, 50) AS i'),
    ('SELECT pca(ARRAY[i], CASE WHEN i > 4 THEN pca_options(1) END) FROM generate_series(1, 9) AS i'),
    ('SELECT kmeans_step(ARRAY[i, nullif(i, 7)], ''{{1,2},{3,4}}'', i * 0.1) FROM generate_series(1, 9) AS i'),
    ('SELECT max(l) FROM (SELECT kmeans_label(ARRAY[nullif(i, 2), nullif(nullif(i, 2), 7)], 2) OVER () AS l FROM generate_series(1, 9) AS i) AS s'),
    ('SELECT max(l) FROM (SELECT gmm_label(ARRAY[i, nullif(i, 7)], 2) OVER (PARTITION BY i % 2) AS l FROM generate_series(1, 9) AS i) AS s')) AS q (query);
-- a process of a parallel plan knows its own rows only
CREATE TABLE null_part WITH (parallel_workers = 2) AS SELECT ARRAY[i, nullif(i, 3000)] AS f FROM generate_series(1, 3000) AS i;
SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001; SET parallel_tuple_cost = 0.01; SET min_parallel_table_scan_size = 0;
SELECT regexp_replace(pg_temp.outcome('SELECT kmeans(f, 2) FROM null_part', true), 'row \d+', 'row N');
DROP TABLE null_part, null_rows;

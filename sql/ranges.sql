-- Values at the ends of the range, and limits that the smallest work meets.
-- A direction has no smallest length.
SELECT (kmeans(f, 2, kmeans_options(metric => 'cosine', init => 'first'))).centroids
FROM (VALUES (ARRAY[3e-170, 4e-170]), (ARRAY[-6e-320, 8e-320]), (ARRAY[3e140, 4e140])) AS v (f);
SELECT kmeans_predict(m, ARRAY[3e-200, 4e-200]), kmeans_predict(m, ARRAY[-3e-200, 4e-200])
FROM (SELECT kmeans(f, 2, kmeans_options(metric => 'cosine', init => 'first')) AS m FROM (VALUES (ARRAY[3.0, 4.0]), (ARRAY[-3.0, 4.0])) AS v (f)) AS s;
SELECT kmeans(f, 1, kmeans_options(metric => 'cosine')) FROM (VALUES (ARRAY[0.0, 0.0])) AS v (f);
-- Distances do: below 2^-500 (about 3.1e-151) their squares would be 0.
SELECT (kmeans(ARRAY[x], 2, kmeans_options(init => 'first'))).centroids FROM (VALUES (1e-150), (3e-150)) AS v (x);
SELECT (kmeans(ARRAY[x], 2)).centroids FROM (VALUES (1e-305), (3e-305)) AS v (x);
SELECT (kmeans(ARRAY[x], 1)).centroids FROM (VALUES (0.0), (0.0)) AS v (x);
SELECT (kmeans(ARRAY[x], 2, kmeans_options(init => 'first', standardize => true))).centroids FROM (VALUES (1e-150), (3e-150)) AS v (x);
SELECT (kmeans(ARRAY[1, x], 2, kmeans_options(standardize => true))).centroids FROM (VALUES (1e-200), (3e-200)) AS v (x);
-- Rows that are the same to a centroid's precision, though they differ.
SELECT (kmeans(ARRAY[x], 3, kmeans_options(init => 'first'))).k FROM (VALUES (1e20::float8), (1), (2)) AS v (x);
-- A megabyte is enough for one row.
SET pg_kmeans.memory_limit = '1MB';
SELECT (kmeans(ARRAY[1, 2, 3], 1)).n, (pca(ARRAY[1, 2, 3])).n, (gmm(ARRAY[1, 2, 3], 1)).n;

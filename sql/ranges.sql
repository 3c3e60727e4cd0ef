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
-- Digits are kept below the range of a feature, wherever the range lies: clusters far from 0, of either sign, with
-- weights, of real rows, in groups of their own; and a constant keeps all its digits.
SELECT (m).k, (m).inertia, (m).centroids
FROM (SELECT kmeans(ARRAY[1e15::float8 + x], 2, kmeans_options(init => 'first')) AS m
      FROM (VALUES (0), (1), (10), (11)) AS v (x)) AS s;
SELECT (kmeans(ARRAY[-1e15 - x, 0.1, 1e15], 2, kmeans_options(init => 'first'))).centroids
FROM (VALUES (0), (1), (10), (11)) AS v (x);
SELECT (kmeans(ARRAY[1e15 + x], 2, kmeans_options(init => 'first'), w)).centroids
FROM (VALUES (0, 1), (10, 1), (1, 3), (11, 1e-9)) AS v (x, w);
SELECT (kmeans(ARRAY[8388608 + x]::real[], 2, kmeans_options(init => 'first'))).centroids
FROM (VALUES (0), (1), (10), (12)) AS v (x);
SELECT g, (kmeans(ARRAY[g * 1e15 + x], 2, kmeans_options(init => 'first') ORDER BY x)).centroids
FROM generate_series(-1, 4) AS g, (VALUES (0), (1), (10), (11)) AS v (x) GROUP BY g ORDER BY g;
-- The widest range, and one that is no normal number.
SELECT (kmeans(ARRAY[s * 3.2733906078961419e150, 1], 2, kmeans_options(init => 'first'))).centroids
FROM (VALUES (-1), (1), (-0.5), (0.5)) AS v (s);
SELECT (kmeans(ARRAY[x, 1e-305 + x * 3e-323], 2, kmeans_options(init => 'first'))).centroids
FROM (VALUES (0), (1), (10), (11)) AS v (x);
-- A megabyte is enough for one row.
SET pg_kmeans.memory_limit = '1MB';
SELECT (kmeans(ARRAY[1, 2, 3], 1)).n, (pca(ARRAY[1, 2, 3])).n, (gmm(ARRAY[1, 2, 3], 1)).n;

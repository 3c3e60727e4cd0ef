-- every kind of number, alone and mixed, with no cast
CREATE TEMP TABLE numbers AS
SELECT i AS id, i::smallint AS s, (i * 2)::integer AS i, (i * 3)::bigint AS b, (i / 2.0)::numeric AS n,
       (i / 4.0)::real AS r, (i / 8.0)::double precision AS d
FROM generate_series(1, 4) AS i;

SELECT (kmeans(ARRAY[s], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[i], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[b], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[n], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[r], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[d], 1)).centroids FROM numbers;
SELECT x, y, (m).centroids, (m).inertia
FROM (SELECT 's' AS x, 'i' AS y, kmeans(ARRAY[s, i], 1) AS m FROM numbers
      UNION ALL SELECT 's', 'b', kmeans(ARRAY[s, b], 1) FROM numbers
      UNION ALL SELECT 's', 'n', kmeans(ARRAY[s, n], 1) FROM numbers
      UNION ALL SELECT 's', 'r', kmeans(ARRAY[s, r], 1) FROM numbers
      UNION ALL SELECT 's', 'd', kmeans(ARRAY[s, d], 1) FROM numbers
      UNION ALL SELECT 'i', 'b', kmeans(ARRAY[i, b], 1) FROM numbers
      UNION ALL SELECT 'i', 'n', kmeans(ARRAY[i, n], 1) FROM numbers
      UNION ALL SELECT 'i', 'r', kmeans(ARRAY[i, r], 1) FROM numbers
      UNION ALL SELECT 'i', 'd', kmeans(ARRAY[i, d], 1) FROM numbers
      UNION ALL SELECT 'b', 'n', kmeans(ARRAY[b, n], 1) FROM numbers
      UNION ALL SELECT 'b', 'r', kmeans(ARRAY[b, r], 1) FROM numbers
      UNION ALL SELECT 'b', 'd', kmeans(ARRAY[b, d], 1) FROM numbers
      UNION ALL SELECT 'n', 'r', kmeans(ARRAY[n, r], 1) FROM numbers
      UNION ALL SELECT 'n', 'd', kmeans(ARRAY[n, d], 1) FROM numbers
      UNION ALL SELECT 'r', 'd', kmeans(ARRAY[r, d], 1) FROM numbers) AS t;
SELECT (kmeans(ARRAY[s, i, b, n, r, d], 1)).centroids FROM numbers;
-- literals and expressions
SELECT (kmeans(ARRAY[s, 1.5], 1)).centroids, (kmeans(ARRAY[i + 1, r * 2], 1)).centroids FROM numbers;
SELECT (kmeans('{1,2}'::real[], 1)).centroids;
-- the other functions resolve alike
SELECT kmeans_label(ARRAY[s, n], 1) OVER (), kmeans_label(ARRAY[i, r], 1) OVER (), kmeans_label(ARRAY[b], 1) OVER ()
FROM numbers LIMIT 1;
SELECT kmeans_predict(m, ARRAY[1]), kmeans_predict(m, ARRAY[1.5]), kmeans_predict(m, ARRAY[s]), kmeans_predict(m, ARRAY[b]),
       kmeans_predict(m, ARRAY[r]), kmeans_predict(m, ARRAY[d])
FROM (SELECT kmeans(ARRAY[i], 1) AS m FROM numbers) AS t, numbers WHERE id = 1;

-- real[] is clustered in float32, everything else in float64
SELECT (kmeans(ARRAY[16777217]::real[], 1)).centroids AS "real", (kmeans(ARRAY[16777217]::float8[], 1)).centroids AS "double precision",
       (kmeans(ARRAY[16777217::numeric], 1)).centroids AS "numeric";
SELECT (kmeans(ARRAY[2147483647, -2147483648], 1)).centroids AS "integer", (kmeans(ARRAY[32767, -32768]::smallint[], 1)).centroids AS "smallint",
       (kmeans(ARRAY[4611686018427387904], 1)).centroids AS "bigint", (kmeans(ARRAY[1024.25, -0.5], 1)).centroids AS "numeric";
-- domains over an array
CREATE DOMAIN feature_vector AS real[];
SELECT (kmeans('{1,2}'::feature_vector, 1)).centroids;
-- arrays however they are stored: short, long, compressed, out of line, expanded, with other subscripts
CREATE TEMP TABLE stored (id int, how text, f real[], n numeric[], d float8[]);
INSERT INTO stored SELECT i, 'short', ARRAY[i, 1, 2], ARRAY[i, 1, 2], ARRAY[i, 1, 2] FROM generate_series(1, 3) AS i;
INSERT INTO stored
SELECT i, 'compressed', array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000])
FROM generate_series(1, 3) AS i;
ALTER TABLE stored ALTER f SET STORAGE EXTERNAL, ALTER n SET STORAGE EXTERNAL, ALTER d SET STORAGE EXTERNAL;
INSERT INTO stored
SELECT i, 'external', array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000])
FROM generate_series(1, 3) AS i;
SELECT how, (m).d, (m).centroids[1][1], (m).inertia, (n).centroids[1][1], (n).inertia, (d).centroids[1][1], (d).inertia
FROM (SELECT how, kmeans(f, 1) AS m, kmeans(n, 1) AS n, kmeans(d, 1) AS d FROM stored GROUP BY how) AS s ORDER BY how;
SELECT (kmeans('[-1:1]={1,2,3}'::real[], 1)).centroids;
DO $$
DECLARE
    a real[] := '{1,2}';
    m kmeans_model;
BEGIN
    a[1] := 5;
    m := (SELECT kmeans(a, 1));
    RAISE NOTICE '%', m.centroids;
    RAISE NOTICE '%', kmeans_distance(m, a);
END $$;
-- a bitmap of NULLs without a NULL in it
SELECT (kmeans((ARRAY[1, NULL, 3]::real[])[3:3], 1)).centroids, (kmeans(array_replace('{1,NULL,3}'::float8[], NULL, 2), 1)).centroids;
-- one feature and many
SELECT (m).d, (m).centroids[1][1600], (m).inertia
FROM (SELECT kmeans(array_fill(i::real, ARRAY[1600]), 2, kmeans_options(init => 'first')) AS m FROM generate_series(1, 2) AS i) AS s;
DROP DOMAIN feature_vector;

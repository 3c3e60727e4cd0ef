-- the window function kmeans_label
CREATE TEMP TABLE points AS
SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS region, ARRAY[v.x, v.y]::real[] AS f
FROM (VALUES (1, 0, 0), (2, 0, 1), (3, 10, 10), (4, 10, 11), (5, 0, 0.5), (6, 10, 10.5), (7, 1, 0), (8, 11, 10)) AS v(i, x, y);

SELECT id, f, kmeans_label(f, 2, kmeans_options(init => 'first')) OVER (ORDER BY id) FROM points ORDER BY id;
-- the labels of the model of the same rows
SELECT every(label = kmeans_predict(m, f)) AS same
FROM (SELECT id, f, kmeans_label(f, 3) OVER (ORDER BY id) AS label FROM points) AS s,
     (SELECT kmeans(f, 3 ORDER BY id) AS m FROM points) AS t;
-- partitions, with columns beside the labels
SELECT region, id, kmeans_label(f, 2, kmeans_options(init => 'first')) OVER (PARTITION BY region ORDER BY id) AS label,
       count(*) OVER (PARTITION BY region)
FROM points ORDER BY region, id;
-- a partition of one row; k of each partition its own
SELECT id, kmeans_label(f, 1) OVER (PARTITION BY id) FROM points ORDER BY id;
SELECT n, id, kmeans_label(f, n, kmeans_options(init => 'first')) OVER (PARTITION BY n ORDER BY id)
FROM points, generate_series(1, 2) AS n ORDER BY n, id;
-- the frame does not matter, the partition does
SELECT id, kmeans_label(f, 2, kmeans_options(init => 'first')) OVER (ORDER BY id ROWS 1 PRECEDING) FROM points ORDER BY id;
-- NULL rows have no label, even all of them
SELECT id, kmeans_label(CASE WHEN id % 3 <> 0 THEN f END, 2, kmeans_options(init => 'first')) OVER (ORDER BY id) FROM points ORDER BY id;
SELECT kmeans_label(NULL::real[], 2) OVER () FROM points LIMIT 1;
SELECT kmeans_label(NULL::real[], NULL) OVER () FROM points LIMIT 1;
SELECT kmeans_label(f, 2) OVER () FROM points WHERE false;
-- k, or the options, from a column or a parameter
SELECT id, kmeans_label(f, n, o) OVER (ORDER BY id)
FROM points, (SELECT 2 AS n, kmeans_options(init => 'first') AS o OFFSET 0) AS s ORDER BY id LIMIT 3;
PREPARE labels(int, kmeans_options) AS SELECT id, kmeans_label(f, $1, $2) OVER (ORDER BY id) FROM points ORDER BY id LIMIT 3;
EXECUTE labels(2, kmeans_options(init => 'first'));
EXECUTE labels(1, NULL);
-- every type of features
SELECT id, kmeans_label(f::float8[], 2, o) OVER w, kmeans_label(f::smallint[], 2, o) OVER w, kmeans_label(f::integer[], 2, o) OVER w,
       kmeans_label(f::bigint[], 2, o) OVER w, kmeans_label(f::numeric[], 2, o) OVER w
FROM points, LATERAL (SELECT kmeans_options(init => 'first') AS o) AS t WINDOW w AS (ORDER BY id) ORDER BY id LIMIT 3;
-- fewer distinct rows than k: one warning per query
SELECT region, kmeans_label(ARRAY[id % 4], 5, kmeans_options(init => 'first')) OVER (PARTITION BY region ORDER BY id) FROM points ORDER BY region, id;
-- many small partitions and a large one
SELECT count(DISTINCT (p, label)), count(*)
FROM (SELECT i / 20 AS p, kmeans_label(ARRAY[i % 20, i % 7], 3) OVER (PARTITION BY i / 20 ORDER BY i) AS label FROM generate_series(0, 9999) AS i) AS s;
SELECT count(DISTINCT label), count(*), min(label), max(label)
FROM (SELECT kmeans_label(ARRAY[i % 100, i % 37], 8, kmeans_options(seed => 1)) OVER (ORDER BY i) AS label FROM generate_series(1, 50000) AS i) AS s;
-- it is a window function only
SELECT kmeans_label(f, 2) FROM points;

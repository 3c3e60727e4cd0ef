-- k-means as a reduction: Lloyd's iterations over the rows of a table, from given centroids.
--
-- i = the nearest centroid, v = (1, x); a centroid becomes the mean of its rows, or stays where it has none.
CREATE TABLE kmeans_rows AS
SELECT i AS id, ARRAY[i % 7 + sin(i), i % 3 + cos(i * 1.3), (i * 37 % 101) / 25.0]::double precision[] AS f
FROM generate_series(1, 3000) AS i;

-- The reduction is a value, which a table keeps.
CREATE TABLE kmeans_reductions AS
SELECT 'step' AS name, kmeans_reduction(
    index => 'argmin(j, k, sum(power(f - c[j], 2)))', cells => 'k', value => '{1, f}', exact => true) AS reduction;

CREATE TABLE kmeans_found AS
SELECT i.* FROM kmeans_reductions, kmeans_reduce_iterate('kmeans_rows', reduction,
    start  => '{"k": 4, "c": [[0, 0, 0], [5, 0, 4], [2, 2, 2], [100, 100, 100]]}',
    update => '{"c": "vector(j, k, vector(i, 3, CASE WHEN counts[j] > 0 THEN r[j][1 + i] / r[j][0] ELSE c[j][i] END))"}',
    until  => 'sum(j, k, sum(power(c[j] - old.c[j], 2))) = 0') AS i;

SELECT n_iter > 3 AS "took some iterations", converged, params->'c'->3 AS "no row came to it: it stays" FROM kmeans_found;

-- The label of each row, by a reduction whose cells are the rows.
CREATE TABLE kmeans_labelled AS
SELECT r.cell + 1 AS id, r.value[1]::integer AS label
FROM kmeans_found, kmeans_reduce('kmeans_rows', params => params || '{"n": 3000}',
    index => 'id - 1', cells => 'n', value => 'argmin(j, k, sum(power(f - c[j], 2)))', op => 'max') AS r;

-- kmeans from the same centroids, without the one that no row comes to, gives the same labels.
WITH fit AS (
    SELECT kmeans(f, 3, kmeans_options(init_centroids => '{{0,0,0},{5,0,4},{2,2,2}}', tol => 0)) AS model FROM kmeans_rows)
SELECT count(*) AS rows, bool_and(kmeans_predict(model, f) = label) AS "the same labels as kmeans",
    (SELECT array_agg(c::text::double precision ORDER BY j, i)
     FROM jsonb_path_query_array(params, '$.c[0 to 2]') AS m, jsonb_array_elements(m) WITH ORDINALITY AS v (v, j),
          jsonb_array_elements(v) WITH ORDINALITY AS e (c, i))
    = (SELECT array_agg(x) FROM unnest((model).centroids) AS x) AS "the same centroids"
FROM kmeans_rows JOIN kmeans_labelled USING (id), fit, kmeans_found GROUP BY params, model;

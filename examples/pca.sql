-- Principal components as reductions: the mean, the covariance, and the leading component by the power method.
CREATE TABLE pca_rows AS
SELECT ARRAY[5 * sin(i) + 3, 2 * cos(i * 1.7) + sin(i), sin(i * 2.3) - cos(i * 1.7), 0.5 * cos(i * 3.1)]::double precision[] AS f
FROM generate_series(1, 2000) AS i;

CREATE TABLE pca_mean AS
SELECT jsonb_build_object('mean', (SELECT jsonb_agg(v / 2000 ORDER BY i) FROM unnest(value) WITH ORDINALITY AS u (v, i))) AS params
FROM kmeans_reduce('pca_rows', value => 'f');

-- The lower triangle of the covariance, by rows.
CREATE TABLE pca_covariance AS
SELECT r.value AS triangle FROM pca_mean,
    kmeans_reduce('pca_rows', params => params, value => 'vector(a, cardinality(f), vector(b, a + 1, (f[a] - mean[a]) * (f[b] - mean[b]) / 1999))') AS r;

-- It is what the components of pca make up.
WITH fit AS (SELECT pca(f) AS model FROM pca_rows),
triangle AS (
    SELECT sum((model).explained_variance[c] * (model).components[c][a] * (model).components[c][b]) AS covariance,
        a * (a - 1) / 2 + b AS place
    FROM fit, generate_series(1, 4) AS a, generate_series(1, a) AS b, generate_series(1, 4) AS c GROUP BY a, b)
SELECT count(*) AS elements, bool_and(abs(triangle[place] - covariance) < 1e-9) AS "the covariance of pca"
FROM triangle, pca_covariance;

-- The power method: v becomes the normalized sum of (f - mean) ((f - mean) v).
SELECT kmeans_reduction(value => '(f - mean) * sum((f - mean) * v)') AS power_step \gset

WITH found AS (
    SELECT i.* FROM pca_mean, kmeans_reduce_iterate('pca_rows', :'power_step',
        start  => params || '{"v": [1, 0, 0, 0], "lambda": 0}',
        update => '{"v": "vector(i, 4, r[0][i] / sqrt(sum(r[0] * r[0])))", "lambda": "sqrt(sum(r[0] * r[0])) / 1999"}',
        until  => 'abs(lambda - old.lambda) <= 1e-14 * lambda', max_iter => 500) AS i),
fit AS (SELECT pca(f) AS model FROM pca_rows)
SELECT converged, abs((found.params->>'lambda')::double precision / (model).explained_variance[1] - 1) < 1e-9 AS "its variance",
    (SELECT bool_and(abs(abs((found.params->'v'->>(i - 1))::double precision) - abs((model).components[1][i])) < 1e-6)
     FROM generate_series(1, 4) AS i) AS "its direction"
FROM found, fit;

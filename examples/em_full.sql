-- EM of a Gaussian mixture with full covariances in two dimensions, as a reduction.
--
-- As in em_diag.sql. A component's covariance is kept by its precision q[j] = (xx, xy, yy) and by h[j], the logarithm
-- of its weight over the root of the determinant of 2 pi times the covariance.
CREATE TABLE em_full_rows AS
SELECT ARRAY[i % 3 * 4 + sin(i * 1.7) + cos(i * 2.9), i % 3 * -3 + cos(i * 2.9) * 2]::double precision[] AS f
FROM generate_series(1, 3000) AS i;

SELECT kmeans_reduction(
    value => '{mx + ln(s), p, vector(j, k, p[j] * f), vector(j, k, vector(a, 2, vector(b, a + 1, p[j] * f[a] * f[b])))}',
    let   => '{"x":  "vector(j, k, f[0] - m[j][0])",
               "y":  "vector(j, k, f[1] - m[j][1])",
               "l":  "vector(j, k, h[j] - 0.5 * (q[j][0] * x[j] ^ 2 + 2 * q[j][1] * x[j] * y[j] + q[j][2] * y[j] ^ 2))",
               "mx": "max(l)",
               "s":  "sum(exp(l - mx))",
               "p":  "exp(l - mx) / s"}') AS em_full \gset

CREATE TABLE em_full_found AS
SELECT * FROM kmeans_reduce_iterate('em_full_rows', :'em_full',
    start  => '{"k": 3, "n": 3000, "reg": 1e-6, "ll": -1e9, "w": [0.3, 0.3, 0.4],
                "m": [[0, 0], [4, -3], [8, -6]], "v": [[1, 0, 1], [1, 0, 1], [1, 0, 1]],
                "q": [[1, 0, 1], [1, 0, 1], [1, 0, 1]], "h": [-3.0418498707352812, -3.0418498707352812, -2.7541677982835004]}',
    update => '[{"ll": "r[0][0] / n",
                 "w":  "vector(j, k, r[0][1 + j] / n)",
                 "m":  "vector(j, k, vector(i, 2, r[0][1 + k + j * 2 + i] / r[0][1 + j]))"},
                {"mm": "vector(j, k, vector(e, 3, CASE e WHEN 0 THEN m[j][0] ^ 2 - reg WHEN 1 THEN m[j][0] * m[j][1] ELSE m[j][1] ^ 2 - reg END))"},
                {"v":  "vector(j, k, vector(e, 3, r[0][1 + 3 * k + j * 3 + e] / r[0][1 + j] - mm[j][e]))"},
                {"det": "vector(j, k, v[j][0] * v[j][2] - v[j][1] ^ 2)"},
                {"q":  "vector(j, k, vector(e, 3, CASE e WHEN 0 THEN v[j][2] WHEN 1 THEN -v[j][1] ELSE v[j][0] END / det[j]))",
                 "h":  "vector(j, k, ln(w[j]) - ln(2 * pi()) - 0.5 * ln(det[j]))"}]',
    until  => 'abs(ll - old.ll) < 1e-10', max_iter => 200);

WITH fit AS (
    SELECT gmm(f, 3, gmm_options('full', tol => 1e-10, max_iter => 200, weights_init => '{0.3,0.3,0.4}',
        means_init => '{{0,0},{4,-3},{8,-6}}', precisions_init => '{{{1,0},{0,1}},{{1,0},{0,1}},{{1,0},{0,1}}}')) AS model
    FROM em_full_rows)
SELECT f.converged,
    abs((params->>'ll')::double precision / ((model).log_likelihood / 3000) - 1) < 1e-9 AS "log-likelihood",
    (SELECT bool_and(abs(a - b) < 1e-9 * greatest(1, abs(b))) FROM
        unnest(ARRAY(SELECT e::text::double precision FROM jsonb_path_query(params, '$.w[*]') AS e)
            || ARRAY(SELECT e::text::double precision FROM jsonb_path_query(params, '$.m[*][*]') AS e),
        (model).weights || ARRAY(SELECT unnest((model).means))) AS t (a, b)) AS "weights and means as gmm's",
    (SELECT bool_and(abs((params->'v'->(j - 1)->>(a + b - 2))::double precision - (model).covariances[j][a][b]) < 1e-9)
     FROM generate_series(1, 3) AS j, generate_series(1, 2) AS a, generate_series(1, 2) AS b) AS "covariances as gmm's"
FROM fit, em_full_found AS f;

-- EM of a Gaussian mixture with diagonal covariances, as a reduction.
--
-- l[j]: the logarithm of component j's density at the row, with its weight; p[j]: its responsibility.
-- v = (log-likelihood, p, p f, p f^2); the M step makes weights, means and variances of their sums.
CREATE TABLE em_diag_rows AS
SELECT ARRAY[i % 3 * 4 + sin(i * 1.7), i % 3 * -3 + cos(i * 2.9) * 2]::double precision[] AS f
FROM generate_series(1, 3000) AS i;

SELECT kmeans_reduction(
    value => '{mx + ln(s), p, vector(j, k, p[j] * f), vector(j, k, p[j] * f * f)}',
    let   => '{"l":  "vector(j, k, ln(w[j]) - 0.5 * sum(i, d, ln(2 * pi() * v[j][i]) + power(f[i] - m[j][i], 2) / v[j][i]))",
               "mx": "max(l)",
               "s":  "sum(exp(l - mx))",
               "p":  "exp(l - mx) / s"}') AS em_diag \gset

-- As gmm does: ends when the mean log-likelihood of a row grows by less than tol.
CREATE TABLE em_diag_found AS
SELECT * FROM kmeans_reduce_iterate('em_diag_rows', :'em_diag',
    start  => '{"k": 3, "d": 2, "n": 3000, "reg": 1e-6, "ll": -1e9,
                "w": [0.33333333333333331, 0.33333333333333331, 0.33333333333333331],
                "m": [[0, 0], [4, -3], [8, -6]], "v": [[1, 1], [1, 1], [1, 1]]}',
    update => '[{"ll": "r[0][0] / n",
                 "w":  "vector(j, k, r[0][1 + j] / n)",
                 "m":  "vector(j, k, vector(i, d, r[0][1 + k + j * d + i] / r[0][1 + j]))"},
                {"v":  "vector(j, k, vector(i, d, r[0][1 + k + k * d + j * d + i] / r[0][1 + j] - m[j][i] ^ 2 + reg))"}]',
    until  => 'abs(ll - old.ll) < 1e-10', max_iter => 200);

WITH fit AS (
    SELECT gmm(f, 3, gmm_options('diag', tol => 1e-10, max_iter => 200, weights_init => '{0.33333333333333331,0.33333333333333331,0.33333333333333331}',
        means_init => '{{0,0},{4,-3},{8,-6}}', precisions_init => '{{1,1},{1,1},{1,1}}')) AS model FROM em_diag_rows)
SELECT f.converged,
    abs((params->>'ll')::double precision / ((model).log_likelihood / 3000) - 1) < 1e-9 AS "log-likelihood",
    (SELECT bool_and(abs(a - b) < 1e-9 * greatest(1, abs(b))) FROM
        unnest(ARRAY(SELECT e::text::double precision FROM jsonb_path_query(params, '$.w[*]') AS e)
            || ARRAY(SELECT e::text::double precision FROM jsonb_path_query(params, '$.m[*][*]') AS e)
            || ARRAY(SELECT e::text::double precision FROM jsonb_path_query(params, '$.v[*][*]') AS e),
        (model).weights || ARRAY(SELECT unnest((model).means)) || ARRAY(SELECT unnest((model).covariances))) AS t (a, b))
    AS "weights, means and variances as gmm's"
FROM fit, em_diag_found AS f;

-- Mixtures of rows with missing values, estimated by EM.
SET pg_kmeans.backend = cpu;
CREATE TABLE gap_rows AS SELECT i, x, 2 * x + sin(i * i) AS y, CASE WHEN i % 3 > 0 THEN 2 * x + sin(i * i) END AS y_gap, CASE WHEN i % 7 > 0 OR i % 3 = 0 THEN x END AS x_gap, 1 + i % 2 AS w
FROM (SELECT i, 3 * sin(i) + i % 2 * 20 AS x FROM generate_series(1, 600) AS i) AS t;

-- One component, y missing in some rows: the largest likelihood is known (Anderson 1957). Those of x are of all rows, and
-- y has a regression on x, which the complete rows tell.
CREATE TABLE gap_exact AS SELECT avg(x) AS mean_x, avg(y_gap) FILTER (WHERE y_gap IS NOT NULL) + regr_slope(y_gap, x) * (avg(x) - regr_avgx(y_gap, x)) AS mean_y, var_pop(x) AS xx, regr_slope(y_gap, x) * var_pop(x) AS xy,
    (regr_syy(y_gap, x) - regr_slope(y_gap, x) * regr_sxy(y_gap, x)) / regr_count(y_gap, x) + regr_slope(y_gap, x) ^ 2 * var_pop(x) AS yy FROM gap_rows;
CREATE TABLE gap_one AS SELECT gmm_fit('gap_rows', '{x,y_gap}', 1, nulls => 'em', options => gmm_options(reg_covar => 0, tol => 0, max_iter => 200)) AS m;
SELECT (m).n, abs((m).means[1][1] - mean_x) < 1e-9 AS mean_x, abs((m).means[1][2] - mean_y) < 1e-9 AS mean_y, abs((m).covariances[1][1][1] - xx) < 1e-9 AS xx, abs((m).covariances[1][1][2] - xy) < 1e-9 AS xy,
    abs((m).covariances[1][2][2] - yy) < 1e-9 AS yy, (m).fills FROM gap_one, gap_exact;
-- Diagonal: those of each feature's own values.
SELECT abs((m).means[1][2] - avg(y_gap)) < 1e-9 AS mean, abs((m).covariances[1][2] - var_pop(y_gap)) < 1e-9 AS variance
FROM gap_rows, (SELECT gmm_fit('gap_rows', '{x,y_gap}', 1, nulls => 'em', options => gmm_options('diag', reg_covar => 0, tol => 0, max_iter => 200)) AS m) AS f GROUP BY m;
-- A weight counts rows.
CREATE VIEW gap_twice AS SELECT x, y_gap FROM gap_rows, generate_series(1, w);
SELECT t.i, abs(gmm_score(a, t) - gmm_score(b, t)) < 1e-9 AS same, (a).n, (b).n FROM gap_rows AS t, gmm_fit('gap_rows', '{x,y_gap}', 2, nulls => 'em', weight => 'w') AS a, gmm_fit('gap_twice', '{x,y_gap}', 2, nulls => 'em') AS b WHERE i IN (5, 6);

-- Without NULLs it is the fit that it is without 'em'; a row without any value takes no part.
SELECT gmm_fit('gap_rows', '{x,y}', 3, nulls => 'em') = gmm_fit('gap_rows', '{x,y}', 3) AS same;
CREATE TABLE gap_both AS SELECT x_gap, y_gap FROM gap_rows UNION ALL SELECT NULL, NULL FROM generate_series(1, 5);
SELECT (m).n, (m).origin.options ->> 'nulls' AS nulls, round((m).weights[1]::numeric, 3) AS weight FROM gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em') AS m;

-- The model knows what to do with NULLs: functions of rows use what a row has. An array, too.
CREATE TABLE gap_model AS SELECT kind, gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options(kind, standardize => kind = 'diag')) AS m FROM unnest('{full,diag}'::text[]) AS kind;
SELECT kind, abs(sum(gmm_score(m, t)) - (m).log_likelihood) < 1e-6 AS score, count(gmm_predict(m, t)) AS rows, every(abs(p[1] + p[2] - 1) < 1e-12) AS posterior FROM gap_model, gap_both AS t, LATERAL gmm_posterior(m, t) AS p GROUP BY kind, m ORDER BY kind;
SELECT kind, count(*), count(*) FILTER (WHERE component_id IS NOT DISTINCT FROM gmm_predict(m, t)) AS same FROM gap_model, LATERAL gmm_labels('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options(kind, standardize => kind = 'diag')) AS l, gap_both AS t
WHERE t.ctid = row_ctid GROUP BY kind ORDER BY kind;
CREATE TABLE gap_arrays AS SELECT ARRAY[x_gap, y_gap] AS f FROM gap_both;
SELECT gmm_fit('gap_arrays', '{f}', 2, nulls => 'em') = m AS same, gmm_predict(m, '{21,NULL}'::float8[]) <> gmm_predict(m, '{0.5,NULL}'::float8[]) AS apart, gmm_score(m, '{NULL,NULL}'::float8[]) IS NULL AS nothing FROM gap_model WHERE kind = 'full';
SELECT gmm_cluster('gap_both', '{x_gap,y_gap}', 2, nulls => 'em') = m AS same FROM gap_model WHERE kind = 'full';
SELECT count(*) FILTER (WHERE component_id IS NULL) AS without, count(DISTINCT component_id) FROM gap_both;
SELECT k, round(bic) AS bic, suggestion FROM gmm_sweep('gap_both', '{x_gap,y_gap}', 1, 2, nulls => 'em');
-- A fit that was cut in two is the whole.
SELECT (SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options(tol => 0, max_iter => 3, init_model => a))).covariances = (b).covariances AS same
FROM gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options(tol => 0, max_iter => 2)) AS a, gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options(tol => 0, max_iter => 5)) AS b;
-- Threads.
SET pg_kmeans.cpu_threads = 1;
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em') = m AS same FROM gap_model WHERE kind = 'full';
RESET pg_kmeans.cpu_threads;

-- Complete rows are added to such a model, others are not.
SELECT (gmm_update(m, t)).n FROM gap_model, gap_both AS t WHERE kind = 'full' AND x_gap + y_gap IS NOT NULL;
SELECT gmm_update(m, t) FROM gap_model, gap_both AS t WHERE kind = 'full';

-- What cannot be.
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options('tied'));
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', options => gmm_options('spherical'));
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 1, nulls => 'em', options => gmm_options(precisions_init => '{{{1,0},{0,1}}}'));
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em', memory => 'stream');
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'estimate');
SELECT gmm_fit('gap_both', '{x_gap,y_gap}', 2);
SELECT kmeans_fit('gap_both', '{x_gap,y_gap}', 2, nulls => 'em');
SELECT pca_fit('gap_both', '{x_gap,y_gap}', nulls => 'em');
SELECT kmeans_load('gap_both', '{x_gap,y_gap}', nulls => 'em');
CREATE TABLE gap_none AS SELECT x, NULL::float8 AS y FROM gap_rows;
SELECT gmm_fit('gap_none', '{x,y}', 2, nulls => 'em');
DROP VIEW gap_twice;
DROP TABLE gap_rows, gap_exact, gap_one, gap_both, gap_model, gap_arrays, gap_none;

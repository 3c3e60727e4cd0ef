-- Gaussian mixtures: the aggregate, its models, rows under them, whole tables.
-- On the CPU: a device agrees with it to many digits, not to all.
SET pg_kmeans.backend = cpu;
CREATE FUNCTION gmm_round(v double precision[]) RETURNS double precision[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(round(x::numeric, 5)::double precision ORDER BY i) FROM unnest(v) WITH ORDINALITY AS t (x, i)$$;
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
-- Two groups of rows far apart, one long and narrow.
CREATE TABLE gmm_points AS
SELECT i AS id, f AS f8, f::real[] AS f4, CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END AS g
FROM generate_series(1, 300) AS i,
    LATERAL (SELECT CASE WHEN i % 3 = 0 THEN ARRAY[10 + sin(i * 1.7), 10 + cos(i * 2.3)] ELSE ARRAY[5 * sin(i * 0.9), 0.2 * cos(i * 1.1) + sin(i * 0.9)] END) AS r (f);
INSERT INTO gmm_points VALUES (301, NULL, NULL, 'a');

-- Components do not depend on where they start when the groups are apart; only their order does.
CREATE TABLE gmm_models AS
SELECT kind, gmm(f8, 2, gmm_options(covariance_type => kind, means_init => '{{0,0},{10,10}}', tol => 1e-9)) AS m
FROM gmm_points, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY kind;
SELECT kind, (m).k, (m).d, (m).n, (m).covariance_type = kind AS type, (m).converged, gmm_round((m).weights) AS weights, (m).seed FROM gmm_models ORDER BY kind;
SELECT kind, c.component_id, round(c.weight::numeric, 5) AS weight, gmm_round(c.mean) AS mean, gmm_round(c.covariance) AS covariance, array_ndims(c.covariance) AS dimensions
FROM gmm_models, gmm_components(m) AS c ORDER BY kind, component_id;
-- The first component of 'full' is what its rows say themselves.
SELECT gmm_round((m).means) = gmm_round(ARRAY[x, y, u, v]) AS means, gmm_round((m).covariances) = gmm_round(ARRAY[xx + 1e-6, xy, xy, yy + 1e-6, uu + 1e-6, uv, uv, vv + 1e-6]) AS covariances
FROM gmm_models, (SELECT avg(f8[1]) FILTER (WHERE g = 'b') AS x, avg(f8[2]) FILTER (WHERE g = 'b') AS y, avg(f8[1]) FILTER (WHERE g = 'a') AS u, avg(f8[2]) FILTER (WHERE g = 'a') AS v,
    var_pop(f8[1]) FILTER (WHERE g = 'b') AS xx, covar_pop(f8[1], f8[2]) FILTER (WHERE g = 'b') AS xy, var_pop(f8[2]) FILTER (WHERE g = 'b') AS yy,
    var_pop(f8[1]) FILTER (WHERE g = 'a') AS uu, covar_pop(f8[1], f8[2]) FILTER (WHERE g = 'a') AS uv, var_pop(f8[2]) FILTER (WHERE g = 'a') AS vv FROM gmm_points) AS s
WHERE kind = 'full';
-- The log-likelihood is the sum of the scores, AIC and BIC follow, the trace never falls, posteriors sum to 1.
SELECT kind, abs(score - (m).log_likelihood) < 1e-8 AS total, abs((m).aic - 2 * p + 2 * (m).log_likelihood) < 1e-8 AS aic, abs((m).bic - p * ln(300) + 2 * (m).log_likelihood) < 1e-8 AS bic,
    array_length((m).trace, 1) = (m).n_iter AS trace, rises, sums
FROM (SELECT kind, m, sum(gmm_score(m, f8)) AS score, CASE kind WHEN 'full' THEN 11 WHEN 'tied' THEN 8 WHEN 'diag' THEN 9 ELSE 7 END AS p,
        bool_and(abs(post[1] + post[2] - 1) < 1e-12) AS sums, bool_and(gmm_predict(m, f8) = CASE WHEN post[1] >= post[2] THEN 0 ELSE 1 END) AS labels
    FROM gmm_models, gmm_points, gmm_posterior(m, f8) AS post GROUP BY kind, m) AS t,
    LATERAL (SELECT bool_and(x >= lag - 1e-9) AS rises FROM (SELECT x, lag(x) OVER (ORDER BY i) FROM unnest((m).trace) WITH ORDINALITY AS u (x, i)) AS w) AS r ORDER BY kind;
SELECT kind, count(*) FILTER (WHERE gmm_predict(m, f8) = 0 AND g = 'b') AS b, count(*) FILTER (WHERE gmm_predict(m, f4) = 1 AND g = 'a') AS a FROM gmm_models, gmm_points GROUP BY kind ORDER BY kind;

-- By k-means: the same components. Every array type; columns and constants need no cast.
SELECT max(abs(a - b)) < 1e-4 AS same FROM (SELECT gmm(f8, 2, gmm_options(tol => 1e-9)) AS m FROM gmm_points) AS t, gmm_models AS g,
    LATERAL (SELECT array_agg(x ORDER BY x) FROM unnest((t.m).means) AS x) AS u (p), LATERAL (SELECT array_agg(x ORDER BY x) FROM unnest((g.m).means) AS x) AS v (q), unnest(p, q) AS w (a, b) WHERE kind = 'full';
SELECT count(DISTINCT m::text) FROM (SELECT unnest(ARRAY[gmm(ARRAY[i, i * i % 7], 2), gmm(ARRAY[i, i * i % 7]::smallint[], 2), gmm(ARRAY[i, i * i % 7]::bigint[], 2),
    gmm(ARRAY[i, i * i % 7]::numeric[], 2), gmm(ARRAY[i, i * i % 7]::real[], 2), gmm(ARRAY[i, i * i % 7]::double precision[], 2)]) AS m FROM generate_series(1, 50) AS i) AS t;

-- Options.
SELECT gmm_options();
SELECT gmm_options(covariance_type => 'diag', tol => 0, reg_covar => 0.5, max_iter => 3, n_init => 2, weights_init => '{0.5,0.5}', means_init => '{{1},{2}}', precisions_init => '{{1},{2}}', seed => 7);
SELECT (m).n_iter, (m).converged FROM (SELECT gmm(f8, 2, gmm_options(max_iter => 2, tol => 0)) AS m FROM gmm_points) AS t;
SELECT (gmm(f8, 2, NULL)).covariance_type FROM gmm_points;
-- More starts are never worse.
SELECT (gmm(f8, 5, gmm_options(n_init => 4))).log_likelihood >= (gmm(f8, 5)).log_likelihood AS better FROM gmm_points;
-- Precisions are inverses of covariances: one iteration from a model's own parameters changes next to nothing.
SELECT abs((gmm(f8, 2, gmm_options('spherical', max_iter => 1, weights_init => (m).weights, means_init => (m).means, precisions_init => p))).trace[1] - (m).log_likelihood) < 1e-6 AS same
FROM gmm_points, gmm_models, LATERAL (SELECT ARRAY[1 / c[1], 1 / c[2]] FROM (SELECT (m).covariances) AS s (c)) AS q (p) WHERE kind = 'spherical' GROUP BY m, p;
SELECT abs((gmm(f8, 2, gmm_options(max_iter => 1, weights_init => (m).weights, means_init => (m).means, precisions_init => p))).trace[1] - (m).log_likelihood) < 1e-6 AS same
FROM gmm_points, gmm_models, LATERAL (SELECT ARRAY[ARRAY[ARRAY[c[1][2][2] / e, -c[1][1][2] / e], ARRAY[-c[1][2][1] / e, c[1][1][1] / e]],
        ARRAY[ARRAY[c[2][2][2] / f, -c[2][1][2] / f], ARRAY[-c[2][2][1] / f, c[2][1][1] / f]]]
    FROM (SELECT (m).covariances) AS s (c), LATERAL (SELECT c[1][1][1] * c[1][2][2] - c[1][1][2] ^ 2, c[2][1][1] * c[2][2][2] - c[2][1][2] ^ 2) AS d (e, f)) AS q (p) WHERE kind = 'full' GROUP BY m, p;

-- Where it could break: constant features, repeated rows, fewer rows than k, a component that loses its rows, wide offsets. Never NaN.
SELECT (m).k, (m).weights, (m).means, (m).covariances, (m).converged FROM (SELECT gmm(ARRAY[1, 2], 1) AS m FROM generate_series(1, 10)) AS t;
SELECT (m).k, (m).weights, (m).means FROM (SELECT gmm(ARRAY[1, 2], 3) AS m FROM generate_series(1, 10)) AS t;
SELECT (m).k, gmm_round((m).weights) AS weights FROM (SELECT gmm(ARRAY[i, 0], 5) AS m FROM generate_series(1, 2) AS i) AS t;
SELECT gmm_round((m).weights) AS weights, gmm_round((m).means) AS means, gmm_round((m).covariances[2:2]) AS starved
FROM (SELECT gmm(ARRAY[i % 5, i % 3], 2, gmm_options(weights_init => '{0.5,0.5}', means_init => '{{2,1},{1e6,1e6}}', precisions_init => '{{{1,0},{0,1}},{{1,0},{0,1}}}')) AS m FROM generate_series(1, 30) AS i) AS t;
SELECT max(abs(a - b)) < 1e-4 AS same FROM (SELECT (gmm(f8, 2, gmm_options(tol => 1e-6, means_init => '{{0,0},{10,10}}'))).covariances AS c,
    (gmm(ARRAY[f8[1] + 1e6, f8[2] - 1e6], 2, gmm_options(tol => 1e-6, means_init => '{{1e6,-1e6},{1000010,-999990}}'))).covariances AS d FROM gmm_points WHERE f8 IS NOT NULL) AS t, unnest(c, d) AS u (a, b);

-- No rows: no model. In groups, with FILTER, DISTINCT, and as a window aggregate; beside gmm_label.
SELECT gmm(f8, 2) IS NULL AS none FROM gmm_points WHERE id > 300;
SELECT g, (m).n, gmm_round((m).weights) AS weights FROM (SELECT g, gmm(f8, 1) AS m FROM gmm_points GROUP BY g) AS t ORDER BY g;
SELECT (gmm(f8, 1) FILTER (WHERE id <= 10)).n AS filtered, (gmm(DISTINCT f8, 1)).n AS distinct_rows FROM gmm_points;
SELECT DISTINCT g, gmm_label(f8, 1) OVER (PARTITION BY g) AS label FROM gmm_points ORDER BY g, label;
SELECT count(DISTINCT (g, label)) AS pairs FROM (SELECT g, gmm_label(f8, 2, gmm_options(means_init => '{{0,0},{10,10}}')) OVER () AS label FROM gmm_points WHERE f8 IS NOT NULL) AS t;

-- Whole tables.
SELECT to_jsonb(gmm_fit('gmm_points', '{f8}', 2, options => gmm_options(means_init => '{{0,0},{10,10}}', tol => 1e-9))) - 'origin' = to_jsonb(m) - 'origin' AS same FROM gmm_models WHERE kind = 'full';
SELECT (gmm_fit('gmm_points', '{f4}', 2, options => gmm_options(covariance_type => 'diag'))).covariance_type;
CREATE TABLE gmm_none (f real[]);
SELECT gmm_fit('gmm_none', '{f}', 2) IS NULL AS none;
SELECT component_id, round(weight::numeric, 5) AS weight, gmm_round(mean) AS mean FROM gmm_components(gmm_cluster('gmm_points', '{f8}', 2, options => gmm_options(means_init => '{{0,0},{10,10}}'), label_column => 'part'));
SELECT g, part, count(*) FROM gmm_points GROUP BY g, part ORDER BY g, part;
SELECT gmm_cluster('gmm_none', '{f}', 2) IS NULL AS none;

-- Errors.
SELECT pg_temp.outcome(query) FROM (VALUES
    ($q$SELECT gmm_options('round')$q$),
    ($q$SELECT gmm_options(tol => -1)$q$),
    ($q$SELECT gmm_options(reg_covar => 'NaN')$q$),
    ($q$SELECT gmm_options(max_iter => 0)$q$),
    ($q$SELECT gmm_options(n_init => 0)$q$),
    ($q$SELECT gmm_options(weights_init => '{1,NULL}')$q$),
    ($q$SELECT gmm_options(means_init => '{{1,Infinity}}')$q$),
    ($q$SELECT gmm_options(means_init => '{}')$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(weights_init => '{1}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(weights_init => '{0.5,0.6}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(weights_init => '{1.5,-0.5}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(means_init => '{{1,2}}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(precisions_init => '{1,1}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options('tied', precisions_init => '{{1,2},{2,1}}')) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options('diag', precisions_init => '{{1,2},{0,1}}')) FROM gmm_points$q$),
    ($q$SELECT gmm(ARRAY[1, 2], 2, gmm_options(means_init => '{{1,2},{3,4}}')) FROM generate_series(1, 5)$q$),
    ($q$SELECT gmm(ARRAY[i, 2 * i], 1, gmm_options(reg_covar => 0)) FROM generate_series(1, 5) AS i$q$),
    ($q$SELECT gmm(ARRAY[i, 2 * i], 1, gmm_options('tied', reg_covar => 0)) FROM generate_series(1, 5) AS i$q$),
    ($q$SELECT gmm(ARRAY[i, 7], 1, gmm_options('diag', reg_covar => 0)) FROM generate_series(1, 5) AS i$q$),
    ($q$SELECT gmm(ARRAY[7, 7], 1, gmm_options('spherical', reg_covar => 0)) FROM generate_series(1, 5) AS i$q$),
    ($q$SELECT gmm(f8, 0) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, NULL) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, id) FROM gmm_points$q$),
    ($q$SELECT gmm(f8, 2, gmm_options(seed => id)) FROM gmm_points$q$),
    ($q$SELECT gmm('{1,NaN}'::real[], 1)$q$),
    ($q$SELECT gmm(f, 1) FROM (VALUES ('{1,2}'::real[]), ('{1}')) AS v (f)$q$),
    ($q$SELECT gmm_label(f8, 2, gmm_options(means_init => '{{1,2}}')) OVER () FROM gmm_points$q$),
    ($q$SELECT gmm_predict(m, '{1}'::real[]) FROM gmm_models$q$),
    ($q$SELECT gmm_score(m, '{3e150,0}'::double precision[]) FROM (SELECT gmm(ARRAY[1, 2], 1, gmm_options(reg_covar => 1e-12)) AS m) AS t$q$),
    ($q$SELECT gmm_components(ROW(1, 1, 'full', '{1}', '{{0}}', '{{1}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model)$q$),
    ($q$SELECT gmm_predict(ROW(1, 1, 'full', '{1}', '{{0}}', '{{{-1}}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, '{1}'::real[])$q$),
    ($q$SELECT gmm_predict(ROW(1, 1, 'none', '{1}', '{{0}}', '{{{1}}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, '{1}'::real[])$q$),
    ($q$SELECT gmm_predict(ROW(1, 1, 'diag', '{0}', '{{0}}', '{{1}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, '{1}'::real[])$q$),
    ($q$SELECT gmm_fit('gmm_missing', '{f}', 2)$q$),
    ($q$SELECT gmm_fit('gmm_points', '{f8}', 2, options => gmm_options(covariance_type => 'none'))$q$),
    ($q$SELECT gmm_cluster('gmm_points', '{id}', 2, label_column => 'id')$q$)) AS q (query);
SELECT gmm_predict(NULL, '{1,2}'::real[]) IS NULL AS null_model, gmm_posterior(m, NULL::real[]) IS NULL AS null_row FROM gmm_models WHERE kind = 'full';
-- A forced device is used, or refused where there is none, but never ignored.
SET pg_kmeans.backend = cuda;
SELECT CASE WHEN outcome LIKE '0A000 %' THEN 'cuda' ELSE (SELECT backend FROM kmeans_last_run()) END AS asked FROM (SELECT pg_temp.outcome('SELECT gmm_fit(''gmm_points'', ''{f8}'', 2)') AS outcome OFFSET 0) AS t;

RESET pg_kmeans.backend;
-- gmm_labels: the labels of gmm_predict by the same model, of rows that take part
CREATE TABLE gmm_rows AS SELECT i AS id, CASE WHEN i % 9 > 0 THEN i % 3 * 9 + sin(i) END AS x, cos(i) AS y, i % 2 = 0 AS even FROM generate_series(1, 300) AS i;
SELECT count(*), count(component_id), every(component_id IS NOT DISTINCT FROM CASE WHEN x IS NOT NULL AND even THEN gmm_predict(m, ARRAY[x, y]) END) AS same
FROM gmm_fit('gmm_rows', '{x,y}', 3, options => gmm_options(covariance_type => 'diag'), nulls => 'skip', filter => 'even') AS m, gmm_labels('gmm_rows', '{x,y}', 3, options => gmm_options(covariance_type => 'diag'), nulls => 'skip', filter => 'even') AS l
    JOIN gmm_rows AS r ON r.ctid = l.row_ctid AND r.tableoid = l.row_table;
SELECT kmeans_load('gmm_rows', '{y}');
SELECT count(*) FROM gmm_labels('gmm_rows', '{y}', 2, memory => 'loaded') AS a JOIN gmm_labels('gmm_rows', '{y}', 2) AS b USING (row_ctid, component_id);
VACUUM FULL gmm_rows;
SELECT count(*) FROM gmm_labels('gmm_rows', '{y}', 2, memory => 'loaded');
SELECT kmeans_unload();
SELECT count(*) FROM gmm_labels('gmm_rows', '{x}', 2);
CREATE VIEW gmm_view AS SELECT * FROM gmm_rows;
SELECT count(*) FROM gmm_labels('gmm_view', '{y}', 2);
DELETE FROM gmm_rows;
SELECT count(*) FROM gmm_labels('gmm_rows', '{y}', 2);
DROP TABLE gmm_rows CASCADE;

-- A fit goes on from a model: one that is cut in two is the whole fit, in its units, of any type.
SET client_min_messages = error; -- fits that max_iter ends
CREATE TABLE gmm_go_on AS
SELECT kind, units, gmm(f8, 3, gmm_options(covariance_type => kind, standardize => units, max_iter => 3, tol => 0)) AS begun,
    gmm(f8, 3, gmm_options(covariance_type => kind, standardize => units, max_iter => 8, tol => 0)) AS whole
FROM gmm_points, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind, unnest(ARRAY[false, true]) AS units GROUP BY kind, units;
SELECT kind, units, f.n_iter, f.weights = (whole).weights AND f.means = (whole).means AND f.covariances = (whole).covariances AND f.log_likelihood = (whole).log_likelihood
    AND f.covariance_type = kind AND f.center = (whole).center AND f.scale = (whole).scale AND f.trace = (whole).trace[4:] AS same
FROM gmm_go_on, LATERAL (SELECT (gmm(f8, 3, gmm_options(init_model => begun, max_iter => 5, tol => 0))).* FROM gmm_points) AS f ORDER BY kind, units;
-- Of a table, with its sources; labels; other rows; a model for each group; n_init means nothing.
CREATE TABLE gmm_table AS SELECT id, f8[1] AS x, f8[2] AS y, g FROM gmm_points WHERE f8 IS NOT NULL;
CREATE TABLE gmm_table_models AS SELECT gmm_fit('gmm_table', '{x,y}', 2, options => gmm_options(tol => 1e-9)) AS m;
SELECT f.n_iter <= 2 AS at_rest, abs(f.log_likelihood - (m).log_likelihood) < 1e-6 AS same, (f.origin).options ->> 'init_model' AS option
FROM gmm_table_models, gmm_fit('gmm_table', '{x,y}', 2, options => gmm_options(init_model => m, n_init => 5)) AS f;
SELECT count(*) FILTER (WHERE l.component_id <> gmm_predict(m, t)) AS differ, count(*) FROM gmm_table_models, gmm_labels('gmm_table', '{x,y}', 2, options => gmm_options(init_model => m)) AS l JOIN gmm_table AS t ON t.ctid = l.row_ctid GROUP BY m;
SELECT (gmm_fit('gmm_table', '{x,y}', 2, options => gmm_options(init_model => m), filter => 'id > 100')).n FROM gmm_table_models;
SELECT g, (m).k, (m).n_iter FROM (SELECT g, gmm(ARRAY[x, y], 1, gmm_options(init_model => before, tol => 1)) AS m FROM gmm_table
    JOIN (SELECT g, gmm(ARRAY[x, y], 1) AS before FROM gmm_table GROUP BY g) AS b USING (g) GROUP BY g) AS s ORDER BY g;
SELECT (gmm_options(init_model => NULL)).init_model IS NULL AS none;
DO $$
DECLARE
    none gmm_model;
BEGIN
    ASSERT gmm_fit('gmm_table', '{x,y}', 2, options => gmm_options(init_model => none)) = gmm_fit('gmm_table', '{x,y}', 2);
END $$;
-- A deviation of 1 about 0 is a unit, too.
SELECT f.center, f.scale FROM (SELECT gmm(ARRAY[i % 2 * 2 - 1], 1, gmm_options(standardize => true)) AS m FROM generate_series(1, 10) AS i) AS s,
    LATERAL (SELECT (gmm(ARRAY[i % 2 * 2 - 1], 1, gmm_options(init_model => m))).* FROM generate_series(1, 10) AS i) AS f;
-- What does not go together, and forged models.
SELECT pg_temp.outcome(format('SELECT (gmm_fit(''gmm_table'', %s, options => gmm_options(init_model => (SELECT begun FROM gmm_go_on WHERE units = %L AND kind = %L)%s))).k', call, units, kind, options)) FROM (VALUES
    ('''{x,y}'', 4', 'f', 'full', ''), ('''{x}'', 3', 'f', 'diag', ''), ('''{x,y}'', 3', 'f', 'diag', ', covariance_type => ''tied'''), ('''{x,y}'', 3', 'f', 'full', ', standardize => true'),
    ('''{x,y}'', 3', 'f', 'full', ', means_init => ''{{1,2}}'''), ('''{x,y}'', 3', 'f', 'full', ', weights_init => ''{1}'''), ('''{x,y}'', 3', 't', 'tied', ', precisions_init => ''{{1}}'''),
    ('''{x,y}'', 3', 't', 'spherical', ', covariance_type => ''spherical'', standardize => true, max_iter => 1')) AS v (call, units, kind, options);
SELECT pg_temp.outcome('SELECT gmm_fit(''gmm_table'', ''{y,x}'', 2, options => gmm_options(init_model => m)) FROM gmm_table_models');

SELECT pg_temp.outcome('SELECT gmm(ARRAY[x, y], 2, gmm_options(init_model => begun)) FROM gmm_table, (SELECT begun FROM gmm_go_on LIMIT 1) AS s');
SELECT pg_temp.outcome('SELECT * FROM gmm_sweep(''gmm_table'', ''{x,y}'', 1, 3, options => gmm_options(init_model => (SELECT begun FROM gmm_go_on LIMIT 1)))');
SELECT pg_temp.outcome(format('SELECT (gmm(ARRAY[x, y], 2, gmm_options(init_model => jsonb_populate_record(m, %L)))).k FROM gmm_table, gmm_table_models', forged)) FROM unnest(ARRAY[
    '{"means": [[1,2]]}', '{"weights": [-1,2]}', '{"weights": [0,0]}', '{"covariances": [1,2]}', '{"covariances": [[[1,1],[1,1]],[[1,0],[0,1]]]}', '{"covariance_type": "diag"}', '{"k": 0}', '{"scale": [0,1], "center": [0,0]}']) AS forged;
RESET client_min_messages;

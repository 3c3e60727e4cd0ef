-- Mixtures and PCA of weighted rows, each of which counts like as many rows, and of standardized features.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE weight_rows AS
SELECT i AS id, i % 4 AS w, i % 7 AS g, ARRAY[i % 3 * 10 + (i * 37 % 101) / 50.0, i % 3 * 1000 + i * 53 % 97, i % 3 * 50 + i * 71 % 23]::double precision[] AS f FROM generate_series(1, 900) AS i;
CREATE VIEW weight_copies AS SELECT id, g, f FROM weight_rows, generate_series(1, w);
CREATE TABLE weight_halves AS SELECT *, w / 2.0 AS half FROM weight_rows;
CREATE FUNCTION near(a double precision[], b double precision[]) RETURNS boolean LANGUAGE sql AS $$ SELECT count(*) = cardinality($2) AND max(abs(x - y) / (1 + abs(y))) < 1e-8 FROM unnest($1, $2) AS u (x, y) $$;

-- mixtures: like copies of rows
CREATE TABLE weight_mixtures AS
SELECT kind, units, gmm(f, 3, o, w) AS m, (SELECT gmm(c.f, 3, o) FROM weight_copies AS c) AS copies
FROM weight_rows, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind, unnest(ARRAY[false, true]) AS units,
    LATERAL (SELECT gmm_options(kind, tol => 1e-9, standardize => units, means_init => '{{0,0,10},{10,1000,60},{20,2000,110}}')) AS s (o) GROUP BY kind, units, o;
SELECT kind, units, (m).n, (copies).n AS copies, near((m).weights, (copies).weights) AS weights,
    near(array_agg(v ORDER BY c.component_id, i), array_agg(w ORDER BY c.component_id, i)) AS means
FROM weight_mixtures, gmm_components(m) AS c JOIN gmm_components(copies) AS d USING (component_id), unnest(c.mean, d.mean) WITH ORDINALITY AS u (v, w, i) WHERE NOT units GROUP BY kind, units, m, copies ORDER BY kind;
SELECT kind, near((m).covariances, (copies).covariances) AS covariances, near(ARRAY[(m).log_likelihood, (m).bic, (m).aic], ARRAY[(copies).log_likelihood, (copies).bic, (copies).aic]) AS figures, (m).n_iter = (copies).n_iter AS iterations
FROM weight_mixtures WHERE NOT units ORDER BY kind;
-- the unit of the weights does not count, but for what is a total
SELECT near((h).covariances, (m).covariances) AS covariances, near(ARRAY[(h).log_likelihood * 2], ARRAY[(m).log_likelihood]) AS likelihood
FROM (SELECT gmm(f, 3, gmm_options(tol => 1e-9, means_init => '{{0,0,10},{10,1000,60},{20,2000,110}}'), half) AS h FROM weight_halves) AS s, weight_mixtures WHERE kind = 'full' AND NOT units;

-- standardized: the same mixture where its form does not depend on the units
SELECT kind, near((s.c).mean, (p.c).mean) AND near((s.c).covariance, (p.c).covariance) AS component, near(ARRAY[s.l], ARRAY[p.l]) AS likelihood
FROM (SELECT kind, units, c, (m).log_likelihood AS l FROM (SELECT kind, units, gmm(f, 3, gmm_options(kind, tol => 1e-9, reg_covar => 0, standardize => units), w) AS m FROM weight_rows, unnest(ARRAY['full', 'tied', 'diag']) AS kind, unnest(ARRAY[false, true]) AS units GROUP BY kind, units) AS a, gmm_components(m) AS c) AS s
JOIN (SELECT kind, c, (m).log_likelihood AS l FROM (SELECT kind, gmm(f, 3, gmm_options(kind, tol => 1e-9, reg_covar => 0), w) AS m FROM weight_rows, unnest(ARRAY['full', 'tied', 'diag']) AS kind GROUP BY kind) AS a, gmm_components(m) AS c) AS p USING (kind)
WHERE units AND abs((s.c).mean[1] - (p.c).mean[1]) < 1 ORDER BY kind, (s.c).mean[1];
SELECT kind, (m).center = (SELECT (gmm_fit('weight_rows', '{f}', 1, options => gmm_options(standardize => true), weight => 'w')).center) AS center, (m).scale[2] > 100 AS scale,
    near(ARRAY[(SELECT sum(w * gmm_score(m, f)) FROM weight_rows)], ARRAY[(m).log_likelihood]) AS scores, abs((SELECT sum(p) FROM gmm_posterior(m, '{5,500,40}'::float8[]) AS q, unnest(q) AS p) - 1) < 1e-12 AS posterior
FROM weight_mixtures WHERE units ORDER BY kind;
SELECT cardinality(covariance) = 3 AND covariance[2] > 1000 * covariance[1] AS in_units_of_the_data FROM weight_mixtures, gmm_components(m) WHERE units AND kind = 'spherical';
-- float32 rows are standardized as the fit did it
CREATE TABLE weight_reals AS SELECT id, f::real[] AS f FROM weight_rows;
SELECT every(gmm_predict(m, f) = l.component_id) AS predicted
FROM (SELECT gmm_fit('weight_reals', '{f}', 3, options => gmm_options(standardize => true)) AS m) AS s, gmm_labels('weight_reals', '{f}', 3, options => gmm_options(standardize => true)) AS l JOIN weight_reals AS r ON r.ctid = l.row_ctid;

-- whole tables, loaded rows, groups and parallel plans
SELECT kmeans_load('weight_rows', '{f}', 'w');
SELECT kind, t.m = a.m AS table, gmm_fit('weight_rows', '{f}', 3, options => gmm_options(covariance_type => kind, standardize => true), weight => 'w', memory => 'loaded') = t.m AS loaded
FROM (SELECT kind, gmm_fit('weight_rows', '{f}', 3, options => gmm_options(covariance_type => kind, standardize => true), weight => 'w') AS m FROM unnest(ARRAY['full', 'tied', 'diag']) AS kind) AS t
JOIN (SELECT kind, gmm(f, 3, gmm_options(kind, standardize => true), w) AS m FROM weight_rows, unnest(ARRAY['full', 'tied', 'diag']) AS kind GROUP BY kind) AS a USING (kind) ORDER BY kind;
SELECT kmeans_unload();
SELECT every(m = (SELECT gmm(f, 2, gmm_options('diag', standardize => true), w) FROM weight_rows AS r WHERE r.g = s.g)) AS alone FROM (SELECT g, gmm(f, 2, gmm_options('diag', standardize => true), w) AS m FROM weight_rows GROUP BY g) AS s;
ALTER TABLE weight_rows ADD part integer;
SELECT gmm_cluster('weight_rows', '{f}', 3, options => gmm_options(standardize => true), weight => 'w', label_column => 'part', overwrite => true) = gmm_fit('weight_rows', '{f}', 3, options => gmm_options(standardize => true), weight => 'w') AS model;
SELECT count(*) FILTER (WHERE part IS NULL) AS unlabelled, every(w > 0 OR part IS NULL) AS of_no_weight, every(part IS NULL OR part = l.component_id) AS as_labels
FROM weight_rows JOIN gmm_labels('weight_rows', '{f}', 3, options => gmm_options(standardize => true), weight => 'w') AS l ON l.row_ctid = weight_rows.ctid;
SELECT every(part = gmm_predict(m, f)) AS predicted FROM weight_rows, (SELECT gmm_fit('weight_rows', '{f}', 3, options => gmm_options(standardize => true), weight => 'w') AS m) AS s WHERE w > 0;

-- PCA
CREATE TABLE weight_axes AS SELECT units, pca(f, pca_options(standardize => units), w) AS m, (SELECT pca(c.f, pca_options(standardize => units)) FROM weight_copies AS c) AS copies FROM weight_rows, unnest(ARRAY[false, true]) AS units GROUP BY units;
SELECT units, (m).n, (copies).n AS copies, near((m).mean || (m).scale, (copies).mean || (copies).scale) AS units_of_rows, near((m).components, (copies).components) AS components,
    near((m).explained_variance || (m).singular_values, (copies).explained_variance || (copies).singular_values) AS variances FROM weight_axes ORDER BY units;
SELECT units, near((f).components, (m).components) AND near((f).explained_variance, (m).explained_variance) AS table
FROM weight_axes, LATERAL (SELECT pca_fit('weight_rows', '{f}', options => pca_options(standardize => units), weight => 'w') AS f) AS s ORDER BY units;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0; SET cpu_operator_cost = 0.00001;
SET parallel_tuple_cost = 0.01;
SET min_parallel_table_scan_size = 0;
SELECT near((pca(f, NULL, w)).explained_variance, (SELECT (m).explained_variance FROM weight_axes WHERE NOT units)) AS parallel FROM weight_rows;
RESET max_parallel_workers_per_gather;
SELECT (pca(ARRAY[x, y], NULL, w)).explained_variance FROM (VALUES (1, 2, 0.5), (3, 1, 1.5), (2, 2, NULL)) AS v (x, y, w);
-- what is refused
SELECT pg_temp.outcome(query) FROM (VALUES
    ($q$SELECT pca(f, NULL, 1 / 900.0) FROM weight_rows$q$), ($q$SELECT pca_fit('weight_halves', '{f}', weight => 'none')$q$),
    ($q$SELECT gmm(f, 2, NULL, -1.0) FROM weight_rows$q$), ($q$SELECT pca(f, NULL, 'NaN'::float8) FROM weight_rows$q$),
    ($q$SELECT gmm(f, 1, gmm_options('diag', standardize => true, precisions_init => '{{1,1,1}}')) FROM weight_rows$q$),
    ($q$SELECT gmm_predict(ROW(1, 1, 'diag', '{1}', '{{0}}', '{{1}}', 0, '{}', 1, true, 0, 0, 1, 0, '{0}', '{0}', NULL, NULL, NULL)::gmm_model, '{1}'::real[])$q$)) AS v (query);
DROP VIEW weight_copies;
DROP FUNCTION near;
DROP TABLE weight_rows, weight_halves, weight_reals, weight_mixtures, weight_axes;

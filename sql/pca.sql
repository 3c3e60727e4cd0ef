-- Principal component analysis: the aggregate, its models, rows through them, whole tables.
-- On the CPU: a device agrees with it to many digits, not to all.
SET pg_kmeans.backend = cpu;
CREATE FUNCTION pca_round(v double precision[]) RETURNS double precision[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(round(x::numeric, 6)::double precision ORDER BY i) FROM unnest(v) WITH ORDINALITY AS t (x, i)$$;
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE pca_points (id integer, f8 double precision[], f4 real[], f2 smallint[], fi integer[], fb bigint[], fn numeric[]);
INSERT INTO pca_points
SELECT id, f, f, f, f, f, f
FROM (VALUES (1, '{1,2,0}'), (2, '{3,2,4}'), (3, '{5,8,4}'), (4, '{7,8,8}'), (5, NULL)) AS v (id, t), LATERAL (SELECT v.t::double precision[]) AS d (f);

-- The model field by field, and as a relation. The largest coordinate of a component is positive.
SELECT (m).n_components, (m).d, (m).mean, (m).scale, (m).n, (m).whiten, pca_round((m).explained_variance) AS explained_variance,
    pca_round((m).explained_variance_ratio) AS ratio, pca_round((m).singular_values) AS singular_values
FROM (SELECT pca(f8) AS m FROM pca_points) AS t;
SELECT c.component_id, pca_round(c.component) AS component, round(c.explained_variance::numeric, 9) AS variance,
    round(c.explained_variance_ratio::numeric, 9) AS ratio, round(c.singular_value::numeric, 6) AS singular_value
FROM (SELECT pca(f8) AS m FROM pca_points) AS t, pca_components(t.m) AS c;
-- What makes them components: the covariance of the scores is diagonal.
SELECT round(var_samp(s[1])::numeric, 9) = round(((m).explained_variance[1])::numeric, 9) AS first,
    round(var_samp(s[2])::numeric, 9) = round(((m).explained_variance[2])::numeric, 9) AS second,
    abs(covar_samp(s[1], s[2])) < 1e-12 AS uncorrelated, abs(avg(s[1])) < 1e-12 AS centred
FROM (SELECT pca(f8) AS m FROM pca_points) AS t, LATERAL (SELECT pca_transform(m, f8) AS s FROM pca_points WHERE f8 IS NOT NULL) AS r
GROUP BY m;
-- Every array type gives the same; columns and constants need no cast.
SELECT count(DISTINCT m::text)
FROM (SELECT unnest(ARRAY[pca(f8), pca(f4), pca(f2), pca(fi), pca(fb), pca(fn), pca(ARRAY[f8[1], f4[2], fn[3]]) FILTER (WHERE fi IS NOT NULL)]) AS m
    FROM pca_points) AS t;

-- Options.
SELECT pca_options(), pca_options(2), pca_options(n_components => 0.5, whiten => true, standardize => true), pca_options(NULL, NULL, NULL);
SELECT (pca(f8, pca_options(1))).n_components AS one, (pca(f8, pca_options(0.5))).n_components AS half, (pca(f8, pca_options(0.95))).n_components AS most,
    (pca(f8, pca_options(0.9999))).n_components AS nearly_all, (pca(f8, NULL)).n_components AS "all" FROM pca_points;
SELECT pca_round((m).scale) AS scale, pca_round((m).explained_variance) AS explained_variance FROM (SELECT pca(f8, pca_options(standardize => true)) AS m FROM pca_points) AS t;
-- Whitened scores have unit variance; the way back undoes whitening and standardization.
SELECT round(var_samp(s[1])::numeric, 9) AS first, round(var_samp(s[2])::numeric, 9) AS second, bool_and(pca_round(pca_inverse_transform(m, s)) = f8) AS back
FROM (SELECT pca(f8, pca_options(whiten => true, standardize => true)) AS m FROM pca_points) AS t, LATERAL (SELECT f8, pca_transform(m, f8) AS s FROM pca_points WHERE f8 IS NOT NULL) AS r;
-- Fewer components: the nearest row that they can make.
SELECT id, pca_round(pca_inverse_transform(m, pca_transform(m, f8))) AS nearest
FROM (SELECT pca(f8, pca_options(1)) AS m FROM pca_points) AS t, pca_points ORDER BY id;

-- Wide offsets cost no more digits than the rows themselves have lost.
SELECT max(abs(a - b)) < 1e-8 AS same
FROM (SELECT (pca(ARRAY[sin(i), cos(i * 3) + i % 5, i % 7])).components AS c, (pca(ARRAY[1e6 + sin(i), cos(i * 3) + i % 5 - 1e6, 1e6 + i % 7])).components AS d
    FROM generate_series(1, 5000) AS i) AS t, unnest(c, d) AS u (a, b);
-- Where there is no variance: constant features, one row, fewer rows than features. Never NaN.
SELECT (m).explained_variance, (m).explained_variance_ratio, (m).components FROM (SELECT pca(ARRAY[0.1, 7]) AS m FROM generate_series(1, 1000)) AS t;
SELECT pca_round((m).scale) AS scale, pca_round((m).explained_variance) AS explained_variance FROM (SELECT pca(ARRAY[0.1, i], pca_options(standardize => true)) AS m FROM generate_series(1, 3) AS i) AS t;
SELECT m, pca_transform(m, '{1,2,3}'::real[]) FROM (SELECT pca(ARRAY[1, 2, 3], pca_options(whiten => true)) AS m) AS t;
SELECT (m).n_components, pca_round((m).explained_variance) AS explained_variance FROM (SELECT pca(f8) AS m FROM pca_points WHERE id < 3) AS t;
SELECT (pca(f8, pca_options(3))).n_components FROM pca_points WHERE id < 3;

-- No rows: no model. In groups, with FILTER, DISTINCT, HAVING and as a window aggregate.
SELECT pca(f8) IS NULL FROM pca_points WHERE false;
SELECT pca(f8) IS NULL FROM pca_points WHERE f8 IS NULL;
SELECT id % 2 AS g, (pca(f8)).n FROM pca_points GROUP BY g ORDER BY g;
SELECT (pca(f8) FILTER (WHERE id > 2)).n AS filtered, (pca(DISTINCT fi)).n AS distinct_rows FROM pca_points, generate_series(1, 2) HAVING count(*) > 5;
SELECT id, (pca(f8) OVER (ORDER BY id)).n AS running, (pca(f8) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)).mean AS moving FROM pca_points ORDER BY id;

-- The state: bytes, in one part or several, with rows that wait or without.
CREATE TABLE pca_parts AS
SELECT id % 2 AS part, (SELECT pgkm_pca_accum(NULL, f8)) AS sums FROM pca_points WHERE f8 IS NOT NULL;
CREATE AGGREGATE pca_merge(bytea) (SFUNC = pgkm_pca_combine, STYPE = bytea, FINALFUNC = pgkm_pca_final);
SELECT pca_round((m).explained_variance) AS explained_variance, (m).n FROM (SELECT pca_merge(sums) AS m FROM pca_parts) AS t;
SELECT (m).n, (m).mean, (m).explained_variance FROM (SELECT pgkm_pca_final(pgkm_pca_accum(pgkm_pca_accum(NULL, '{1,2}'::real[]), '{3,6}'::real[])) AS m) AS t;
-- States that are none.
SELECT pg_temp.outcome(query) FROM (VALUES
    ($q$SELECT pgkm_pca_final('')$q$),
    ($q$SELECT pgkm_pca_final(substr(sums, 1, 100)) FROM pca_parts$q$),
    ($q$SELECT pgkm_pca_combine(sums, sums || '\x00') FROM pca_parts$q$),
    ($q$SELECT pgkm_pca_accum(set_byte(sums, 0, 2), f8) FROM pca_parts, pca_points$q$),
    ($q$SELECT pgkm_pca_combine(pgkm_pca_accum(NULL, '{1,2}'::real[]), pgkm_pca_accum(NULL, '{1,2,3}'::real[]))$q$),
    ($q$SELECT pgkm_pca_combine(pgkm_pca_accum(NULL, '{1,2}'::real[]), pgkm_pca_accum(NULL, '{1,2}'::real[], pca_options(1)))$q$)) AS q (query);

-- Whole tables.
SELECT pca_round((a).components[1:1]) = pca_round((b).components[1:1]) AS components, pca_round((a).explained_variance) = pca_round((b).explained_variance) AS variance,
    pca_round((a).mean) = pca_round((b).mean) AS mean, (a).n = (b).n AS n
FROM (SELECT pca_fit('pca_points', '{f8}', options => pca_options(n_components => 2, standardize => true)) AS a, (SELECT pca(f8, pca_options(2, standardize => true)) FROM pca_points) AS b) AS t;
SELECT (pca_fit('pca_points', '{id}')).components;
SELECT pca_fit('pca_points', '{f4}') IS NULL FROM (SELECT 1) AS t;
CREATE TABLE pca_none (f real[]);
SELECT pca_fit('pca_none', '{f}') IS NULL AS none;

-- Errors.
SELECT pg_temp.outcome(query) FROM (VALUES
    ($q$SELECT pca_options(0)$q$),
    ($q$SELECT pca_options(1.5)$q$),
    ($q$SELECT pca_options('NaN')$q$),
    ($q$SELECT pca_options(-1)$q$),
    ($q$SELECT pca(ARRAY[1, 2], ROW(0.0, false, false)::pca_options)$q$),
    ($q$SELECT pca(ARRAY[1, 2], pca_options(3))$q$),
    ($q$SELECT pca(f8, pca_options(id)) FROM pca_points$q$),
    ($q$SELECT pca(f) FROM (VALUES ('{1,2}'::real[]), ('{1}')) AS v (f)$q$),
    ($q$SELECT pca('{}'::real[])$q$),
    ($q$SELECT pca('{{1,2}}'::real[])$q$),
    ($q$SELECT pca('{1,NaN}'::real[])$q$),
    ($q$SELECT pca('{1,NULL}'::real[])$q$),
    ($q$SELECT pca('{1,Infinity}'::real[])$q$),
    ($q$SELECT pca_round((pca(ARRAY[x, -x])).explained_variance_ratio) AS ratio FROM (VALUES (3e150), (-3e150)) AS v (x)$q$),
    ($q$SELECT (pca(array_fill(0::real, ARRAY[20000]))).d$q$),
    ($q$SELECT pca_transform(m, '{1,2}'::real[]) FROM (SELECT pca(f8) AS m FROM pca_points) AS t$q$),
    ($q$SELECT pca_transform(m, '{1e300,1,1}'::double precision[]) FROM (SELECT pca(f8) AS m FROM pca_points) AS t$q$),
    ($q$SELECT pca_inverse_transform(m, '{1}'::real[]) FROM (SELECT pca(f8) AS m FROM pca_points) AS t$q$),
    ($q$SELECT pca_components(ROW(1, 2, '{0,0}', NULL, '{{1}}', '{1}', '{1}', '{1}', 5, false, NULL, NULL)::pca_model)$q$),
    ($q$SELECT pca_transform(ROW(1, 2, '{0,0}', '{1,0}', '{{1,0}}', '{1}', '{1}', '{1}', 5, false, NULL, NULL)::pca_model, '{1,2}'::real[])$q$),
    ($q$SELECT pca_transform(ROW(1, 2, '{0,0}', NULL, '{{1,0}}', '{-1}', '{1}', '{1}', 5, false, NULL, NULL)::pca_model, '{1,2}'::real[])$q$),
    ($q$SELECT pca_fit('pca_missing', '{f}')$q$),
    ($q$SELECT pca_fit('pca_points', '{g}')$q$),
    ($q$SELECT pca_fit(NULL, '{f8}')$q$),
    ($q$SELECT pca_fit('pca_points', '{f8}', options => pca_options(n_components => 4))$q$)) AS q (query);
SELECT pca_transform(NULL, '{1,2}'::real[]) IS NULL AS null_model, pca_transform(m, NULL::real[]) IS NULL AS null_row FROM (SELECT pca(f8) AS m FROM pca_points) AS t;
-- A forced device is used, or refused where there is none, but never ignored.
SET pg_kmeans.backend = cuda;
SELECT CASE WHEN outcome LIKE '0A000 %' THEN 'cuda' ELSE (SELECT backend FROM kmeans_last_run()) END AS asked FROM (SELECT pg_temp.outcome('SELECT pca_fit(''pca_points'', ''{f8}'')') AS outcome OFFSET 0) AS t;

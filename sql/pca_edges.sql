-- Principal component analysis at its edges: states made by hand, altered types, values at the ends of float64.
SET pg_kmeans.backend = cpu;
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
-- A state of n rows as bytes (src/pg/pca/sums.h): version, whiten, standardize; d, pending; n, mass, n_components; then
-- the means, the products, and zeros where rows wait.
CREATE FUNCTION edge_bytes(big bytea) RETURNS bytea LANGUAGE sql AS $$
    SELECT string_agg(substr(big, i, 1), '' ORDER BY i DESC) FROM generate_series(1, length(big)) AS i $$;
CREATE FUNCTION edge_sums(n bigint, mean float8[], products float8[], standardize integer DEFAULT 0) RETURNS bytea LANGUAGE sql AS $$
    SELECT '\x010000'::bytea || substr(int4send(standardize), 4) || edge_bytes(int4send(cardinality(mean))) || '\x00000000' || edge_bytes(int8send(n))
        || edge_bytes(float8send(n)) || edge_bytes(float8send(0)) || (SELECT string_agg(edge_bytes(float8send(v)), '' ORDER BY i) FROM unnest(mean || products) WITH ORDINALITY AS u (v, i))
        || decode(repeat('00', 8 * 8 * (cardinality(mean) + 1)), 'hex') $$;
CREATE AGGREGATE edge_merge(bytea) (SFUNC = pgkm_pca_combine, STYPE = bytea);

-- No rows have these sums of products: |x y| would be more than (x x + y y) / 2.
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(2, '{0,0}', '{1,1e300,1}'))$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(2, '{0,NaN}', '{1,0,1}'))$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(0, '{0}', '{1}'))$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(set_byte(edge_sums(2, '{0}', '{1}'), 35, 200))$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(5, '{0,0}', '{0,-1,0}'))$$);
-- Sums whose eigenvalues would be infinite are an error and no Infinity or NaN in a model.
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(2, '{0,0}', '{1.7e308,1.7e308,1.7e308}'))$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(edge_sums(2, '{0,0}', '{1e-320,4e307,1.6e308}', 1))$$);
-- Many rows of wide range: singular values stay finite where their squares do not.
SELECT (m).singular_values[1] < 'Infinity' AS finite, round(((m).singular_values[1] / 1e154)::numeric, 6) AS value
FROM (SELECT pgkm_pca_final(edge_sums(1000000000, '{0,0}', '{1.7e308,1.7e308,1.7e308}')) AS m) AS t;
-- More rows than float64 counts.
SELECT pg_temp.outcome($$SELECT edge_merge(edge_sums(9007199254740992, '{1}', '{1}')) FROM generate_series(1, 2)$$);
SELECT pg_temp.outcome($$SELECT pgkm_pca_final(pgkm_pca_accum(edge_sums(9007199254740992, '{1}', '{1}'), '{1}'::real[]))$$);
-- What a merge returns is a state.
SELECT (pgkm_pca_final(edge_merge(edge_sums(4503599627370496, '{1}', '{1}')))).n FROM generate_series(1, 2);
SELECT pg_temp.outcome($$SELECT pgkm_pca_combine(edge_sums(2, '{1e308}', '{1}'), edge_sums(2, '{-1e308}', '{1}'))$$);

-- A type that its owner has altered is an error and no crash.
BEGIN;
ALTER TYPE pca_options ADD ATTRIBUTE more integer, ADD ATTRIBUTE and_more text;
SAVEPOINT altered;
SELECT pca_options(n_components => 1);
ROLLBACK TO altered;
SELECT pca(ARRAY[1, 2], ROW(1, false, false, NULL, NULL)::pca_options);
ROLLBACK;
BEGIN;
ALTER TYPE pca_model ADD ATTRIBUTE remark text;
SAVEPOINT altered;
SELECT pca(ARRAY[1, 2]);
ROLLBACK TO altered;
SELECT pca_transform(ROW(1, 1, '{0}', NULL, '{{1}}', '{1}', '{1}', '{1}', 5, false, NULL, NULL, 'x'), ARRAY[1]);
ROLLBACK;

-- Whole numbers beside an offset that leaves them exact; the smallest numbers there are.
SELECT (m).explained_variance[1] BETWEEN 8.25 AND 8.26 AS first, (m).explained_variance[2] BETWEEN 3.99 AND 4.01 AS second, (m).explained_variance[3]
FROM (SELECT pca(ARRAY[1e15 + i % 10, -1e15 + i % 7, 1e15]) AS m FROM generate_series(1, 1000) AS i) AS t;
SELECT (m).explained_variance, (m).scale FROM (SELECT pca(ARRAY[i * 5e-324, 0]::double precision[], pca_options(standardize => true)) AS m FROM generate_series(1, 10) AS i) AS t;
SELECT round((m).explained_variance[1]::numeric, 3) AS standardized
FROM (SELECT pca(ARRAY[i * 1e-160, i % 7 * 1e-160], pca_options(1, standardize => true)) AS m FROM generate_series(1, 1000) AS i) AS t;

-- As many rows as features leave one variance that is next to 0 on either side, and 0 at most.
SELECT i, (m).explained_variance[3] BETWEEN 0 AND 1e-13 AS variance, (m).singular_values[3] BETWEEN 0 AND 1e-6 AS singular_value
FROM (SELECT i, pca(ARRAY[sin(i + 7 * j), cos(i * j), sin(i * i + j)]) AS m FROM generate_series(1, 8) AS i, generate_series(1, 3) AS j GROUP BY i) AS t ORDER BY i;

-- Orders, filters and frames of aggregates; a scan that is started again.
SELECT g, (pca(ARRAY[i, i * i] ORDER BY i DESC) FILTER (WHERE i > 3)).n FROM generate_series(1, 9) AS i, LATERAL (SELECT i % 2) AS v (g) GROUP BY GROUPING SETS ((g), ()) ORDER BY g;
SELECT i, (pca(ARRAY[i]) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)).n FROM generate_series(1, 4) AS i;
SELECT o, (SELECT (pca(ARRAY[i, o])).mean FROM generate_series(1, o) AS i) FROM generate_series(1, 3) AS o;

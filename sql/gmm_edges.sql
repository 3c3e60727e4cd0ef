-- Gaussian mixtures at their edges: altered types, limits of options, values at the ends of float64.
SET pg_kmeans.backend = cpu;
CREATE FUNCTION edge_round(v double precision[]) RETURNS double precision[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(round(x::numeric, 4)::double precision ORDER BY i) FROM unnest(v) WITH ORDINALITY AS t (x, i)$$;

-- A type that its owner has altered is an error and no crash.
BEGIN;
ALTER TYPE gmm_options ADD ATTRIBUTE more integer, ADD ATTRIBUTE and_more text;
SAVEPOINT altered;
SELECT gmm_options(seed => 1);
ROLLBACK TO altered;
SELECT gmm(ARRAY[1, 2], 1, NULL::gmm_options) IS NOT NULL AS without, gmm(ARRAY[1, 2], 1, ROW('full', 0, 0, 1, 1, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL)::gmm_options);
ROLLBACK;
BEGIN;
ALTER TYPE gmm_model ADD ATTRIBUTE remark text;
SELECT gmm(ARRAY[1, 2], 1);
ROLLBACK;

-- The largest values of options are no larger models.
SELECT (gmm(ARRAY[i, i * i % 7], 2, gmm_options(max_iter => 2147483647, n_init => 2, seed => -9223372036854775808))).converged FROM generate_series(1, 50) AS i;
SELECT (gmm(ARRAY[i, i * i % 7], 2, gmm_options(tol => 1e308))).n_iter FROM generate_series(1, 50) AS i;
SELECT edge_round((m).weights) AS weights FROM (SELECT gmm(ARRAY[i, i % 3], 2, gmm_options('spherical', max_iter => 1, weights_init => '{1,0}', means_init => '{{5,1},{7,1}}')) AS m FROM generate_series(1, 9) AS i) AS t;

-- A component far from all rows loses them: the others are what they are without it, whatever the type.
SELECT kind, edge_round((m).weights) AS weights, edge_round((m).means) AS means, edge_round((m).covariances) AS covariances
FROM (SELECT kind, gmm(ARRAY[i % 5, i % 3], 2, gmm_options(kind, means_init => '{{2,1},{1e10,-1e10}}')) AS m
    FROM generate_series(1, 30) AS i, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY kind) AS t ORDER BY kind;

-- Whole numbers beside an offset that leaves them exact; numbers whose squares are next to the ends of float64.
SELECT kind, edge_round((m).weights) AS weights, edge_round((m).covariances) AS covariances, (m).converged
FROM (SELECT kind, gmm(ARRAY[1e15 + i % 2 * 100 + i % 10, 1e15 - i % 7], 2, gmm_options(kind)) AS m
    FROM generate_series(1, 1000) AS i, unnest(ARRAY['diag', 'spherical']) AS kind GROUP BY kind) AS t ORDER BY kind;
SELECT scale < 1 AS small, kind, edge_round((m).weights) AS weights, abs((m).log_likelihood) < 'Infinity' AS finite
FROM (SELECT scale, kind, gmm(ARRAY[i * scale, i % 7 * scale], 2, gmm_options(kind, reg_covar => 0)) AS m
    FROM generate_series(1, 1000) AS i, unnest(ARRAY[1e-150, 3e147]) AS scale, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY scale, kind) AS t ORDER BY kind, scale;

-- Components far apart for their width: each has a variance of 0.25.
SELECT kind, count(*), every(abs(v * 4 - 1) < 1e-9) AS right
FROM (SELECT kind, gmm(ARRAY[i % 2 * ratio + i / 2 % 2], 2, gmm_options(kind, reg_covar => 0)) AS m
    FROM generate_series(1, 400) AS i, unnest('{1e2,1e3,1e4,1e6,1e7,1e8,1e9}'::float8[]) AS ratio, unnest(ARRAY['full', 'tied', 'diag', 'spherical']) AS kind GROUP BY kind, ratio) AS t, unnest((m).covariances) AS v GROUP BY kind ORDER BY kind;

-- Memory: what a type does not need is not asked for.
SET pg_kmeans.memory_limit = '64MB';
SET pg_kmeans.cpu_threads = 2;
\set VERBOSITY sqlstate
SELECT (gmm(array_fill(i, ARRAY[4096]), 2, gmm_options('diag'))).k FROM generate_series(1, 20) AS i;
SELECT (gmm(array_fill(i, ARRAY[4096]), 2, gmm_options('tied'))).k FROM generate_series(1, 20) AS i;
\set VERBOSITY default
RESET pg_kmeans.memory_limit;
RESET pg_kmeans.cpu_threads;

-- A model's components are shown whatever they are; no row can be under a covariance that is none.
SELECT c.* FROM gmm_components(ROW(1, 2, 'full', '{1}', '{{0,0}}', '{{{1,2},{2,1}}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model) AS c;
SELECT gmm_score(ROW(1, 2, 'full', '{1}', '{{0,0}}', '{{{1,2},{2,1}}}', 0, '{}', 1, true, 0, 0, 1, 0, NULL, NULL, NULL, NULL, NULL)::gmm_model, '{0,0}'::real[]);

-- Orders, filters and frames of aggregates; a scan that is started again.
SELECT g, (gmm(ARRAY[i, i * i], 1 ORDER BY i DESC) FILTER (WHERE i > 3)).n FROM generate_series(1, 9) AS i, LATERAL (SELECT i % 2) AS v (g) GROUP BY GROUPING SETS ((g), ()) ORDER BY g;
SELECT i, (gmm(ARRAY[i], 1) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)).means FROM generate_series(1, 4) AS i;
SELECT o, (SELECT (gmm(ARRAY[i, o], 1)).means FROM generate_series(1, o) AS i) FROM generate_series(1, 3) AS o;

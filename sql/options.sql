-- kmeans_options(): defaults, names, checks
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql

SELECT * FROM kmeans_options();
SELECT * FROM kmeans_options(n_init => 3, tol => 0, metric => 'cosine', standardize => true);
SELECT * FROM kmeans_options('random', NULL, 2, 10, 0.5, -1, 'l2', false, true);
SELECT * FROM kmeans_options(init_centroids => '{{1,2},{3,4}}');
-- NULL means the default
SELECT * FROM kmeans_options(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- both spellings, one canonical name
SELECT name, (kmeans_options(init => name)).init
FROM unnest(ARRAY[NULL, 'auto', 'k-means++', 'kmeans++', 'k-means||', 'random', 'first']) AS name;
-- any bigint is a seed
SELECT (kmeans_options(seed => 9223372036854775807)).seed, (kmeans_options(seed => '-9223372036854775808')).seed;

-- what is refused, where it is made ...
SELECT call, pg_temp.outcome('SELECT kmeans_options(' || call || ')') FROM unnest(ARRAY[
    'init => ''best''',
    'init => ''''',
    'init => ''Random''',
    'n_init => 0',
    'n_init => -1',
    'max_iter => 0',
    'max_iter => -5',
    'tol => -0.1',
    'tol => ''NaN''',
    'tol => ''Infinity''',
    'metric => ''l1''',
    'metric => ''''',
    'init_centroids => ''{}''',
    'init_centroids => ''{1,2}''',
    'init_centroids => ''{{{1}}}''',
    'init_centroids => ''{{1,NULL}}''',
    'init_centroids => ''{{1,NaN}}''',
    'init_centroids => ''{{1,Infinity}}''',
    'init_centroids => ''{{1,1e151}}'''
]) AS call;

-- ... and where it is used, for a row need not come from there
CREATE TEMP TABLE points AS SELECT i AS id, ARRAY[i, i % 3]::real[] AS f FROM generate_series(1, 9) AS i;
SELECT options, pg_temp.outcome('SELECT (kmeans(f, 2, ' || options || '::kmeans_options)).k FROM points')
FROM unnest(ARRAY[
    'ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''best'', NULL, 1, 300, 1e-4, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', NULL, 0, 300, 1e-4, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', NULL, 1, 0, 1e-4, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', NULL, 1, 300, -1, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', NULL, 1, 300, ''NaN'', 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', NULL, 1, 300, 0, 0, ''manhattan'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', ''{1}'', 1, 300, 0, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', ''{{1}}'', 1, 300, 0, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', ''{{1,2},{3,4},{5,6}}'', 1, 300, 0, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)',
    'ROW(''random'', ''{{1,2,3},{3,4,5}}'', 1, 300, 0, 0, ''l2'', false, true, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)'
]) AS options;

-- what the options do: the first rows, rows given, one iteration
SELECT (m).centroids, (m).size, (m).n_iter, (m).converged
FROM (SELECT kmeans(f, 2, kmeans_options(init => 'first', max_iter => 1) ORDER BY id) AS m FROM points) AS s;
SELECT (m).centroids, (m).size, (m).n_iter, (m).converged
FROM (SELECT kmeans(f, 2, kmeans_options(init => 'first', tol => 0) ORDER BY id) AS m FROM points) AS s;
SELECT (m).centroids, (m).size, (m).n_iter, (m).converged
FROM (SELECT kmeans(f, 2, kmeans_options(init_centroids => '{{9,1},{1,1}}') ORDER BY id) AS m FROM points) AS s;
-- the same seed gives the same model, whatever the method
SELECT init, every(a = b) AS same
FROM unnest(ARRAY['k-means++', 'k-means||', 'random', 'first']) AS init,
     LATERAL (SELECT kmeans(f, 3, kmeans_options(init => init, seed => 5) ORDER BY id) AS a FROM points) AS one,
     LATERAL (SELECT kmeans(f, 3, kmeans_options(init => init, seed => 5) ORDER BY id) AS b FROM points) AS two
GROUP BY init ORDER BY init;
-- more restarts never give a worse model
SELECT (one).inertia >= (ten).inertia AS better
FROM (SELECT kmeans(f, 4, kmeans_options(init => 'random', seed => 1) ORDER BY id) AS one,
             kmeans(f, 4, kmeans_options(init => 'random', seed => 1, n_init => 10) ORDER BY id) AS ten
      FROM points) AS s;
-- seed and metric are kept in the model
SELECT (m).seed, (m).metric FROM (SELECT kmeans(f, 2, kmeans_options(seed => -7, metric => 'cosine')) AS m FROM points) AS s;
-- a type that its owner has altered is an error and no crash
BEGIN;
ALTER TYPE kmeans_options ADD ATTRIBUTE more double precision[], ADD ATTRIBUTE and_more text;
SAVEPOINT altered;
SELECT kmeans_options(seed => 1);
ROLLBACK TO altered;
SELECT kmeans(f, 1, NULL::kmeans_options) IS NOT NULL, kmeans(f, 1, ROW(NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::kmeans_options) FROM points;
ROLLBACK;
-- standardize: models in units of the standard deviation, centroids in those of the data
SELECT (m).center, (m).scale
FROM (SELECT kmeans(f, 1, kmeans_options(standardize => true)) AS m
      FROM (VALUES ('{1,10}'::real[]), ('{3,10}')) AS v(f)) AS s;
SELECT (m).centroids, c.*
FROM (SELECT kmeans(f, 2, kmeans_options(standardize => true, init => 'first')) AS m
      FROM (VALUES ('{1,100}'::float8[]), ('{3,300}')) AS v(f)) AS s, kmeans_centroids(m) AS c ORDER BY cluster_id;

-- the same value for all functions; its origin has the way that was taken
CREATE TABLE option_rows AS SELECT i AS x, i * i % 7 AS y, ARRAY[i, i * i % 7]::float8[] AS f FROM generate_series(1, 50) AS i;
SELECT kmeans_fit('option_rows', '{f}', 3, o) = (SELECT kmeans(f, 3, o) FROM option_rows) AS same, (kmeans_fit('option_rows', '{f}', 3, options => o)).origin.options->'init' AS init,
    (kmeans_fit('option_rows', '{f}', 3, o, memory => 'stream')).origin.options->'init' AS streamed
FROM unnest(ARRAY[NULL, kmeans_options(seed => 3), kmeans_options(init => NULL), kmeans_options('k-means++'), ROW(NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::kmeans_options]) AS o;
-- options that a function cannot use
SELECT call, pg_temp.outcome('SELECT count(*) FROM ' || call) FROM unnest(ARRAY[
    $$kmeans_sweep('option_rows', '{x,y}', 1, 2, kmeans_options(init_centroids => '{{1,2}}'))$$,
    $$kmeans_sweep('option_rows', '{x,y}', 1, 2, kmeans_options(init_model => (SELECT kmeans(f, 2) FROM option_rows)))$$,
    $$kmeans_sweep_plot('option_rows', '{x,y}', 1, 2, kmeans_options(max_radius => 1))$$,
    $$kmeans_sweep('option_rows', '{x,y}', 1, 2, kmeans_options(max_radius => 0, init_model => NULL, min_size => 3))$$,
    $$kmeans_tree('option_rows', '{x,y}', '{2}', options => kmeans_options(init_centroids => '{{1,2}}'))$$,
    $$kmeans_tree('option_rows', '{x,y}', '{2}', options => kmeans_options(min_size => 2))$$,
    $$kmeans_tree('option_rows', '{x,y}', '{2}', options => kmeans_options(max_size => 20))$$,
    $$kmeans_tree('option_rows', '{x,y}', '{2}', options => kmeans_options(batch_size => 20))$$,
    $$gmm_sweep('option_rows', '{x,y}', 1, 2, gmm_options(means_init => '{{1,2}}'))$$,
    $$gmm_sweep('option_rows', '{x,y}', 1, 2, gmm_options(weights_init => '{1}'))$$,
    $$gmm_sweep('option_rows', '{x,y}', 1, 2, gmm_options(precisions_init => '{1}', covariance_type => 'spherical'))$$,
    $$kmeans_fit('option_rows', '{x,y}', 1, gmm_options())$$,
    $$kmeans_fit('option_rows', '{x,y}', 1, n_init => 2)$$
]) AS call;
DROP TABLE option_rows;

-- Options that a query takes from an outer row, a subquery or a parameter: the groups have the models of options in the call.
CREATE TABLE option_rows AS SELECT i, kmeans_options(seed => i, init_centroids => ARRAY[ARRAY[i, 0], ARRAY[i + 5, 1]]::float8[], tol => 0) AS o FROM generate_series(1, 4) AS i;
CREATE TABLE option_data AS SELECT i % 3 AS g, ARRAY[i % 11, i % 7]::float8[] AS f FROM generate_series(1, 300) AS i;
CREATE TABLE option_wanted AS SELECT i, g, kmeans(f, 2, kmeans_options(seed => i, init_centroids => ARRAY[ARRAY[i, 0], ARRAY[i + 5, 1]]::float8[], tol => 0)) AS m
FROM generate_series(1, 4) AS i, option_data GROUP BY i, g;
PREPARE option_given(kmeans_options) AS SELECT count(*) FROM (SELECT g, kmeans(f, 2, $1) AS m FROM option_data GROUP BY g) AS s JOIN option_wanted AS w USING (g, m) WHERE w.i = 2;
SET plan_cache_mode = force_generic_plan;
SELECT name, count(*) AS same FROM (
    SELECT 'outer row' AS name, i, g, m FROM option_rows, LATERAL (SELECT g, kmeans(f, 2, o) AS m FROM option_data GROUP BY g OFFSET 0) AS s
    UNION ALL SELECT 'subquery', 3, g, kmeans(f, 2, (SELECT o FROM option_rows WHERE i = 3)) FROM option_data GROUP BY g
    UNION ALL SELECT 'column', i, g, kmeans(f, 2, o) FROM option_rows, option_data GROUP BY i, g) AS s JOIN option_wanted USING (i, g, m) GROUP BY name ORDER BY name;
EXECUTE option_given(kmeans_options(seed => 2, init_centroids => '{{2,0},{7,1}}', tol => 0));
RESET plan_cache_mode;
DO $$
DECLARE
    given kmeans_options := (SELECT o FROM option_rows WHERE i = 4);
BEGIN
    RAISE NOTICE '% in PL/pgSQL', (SELECT count(*) FROM (SELECT g, kmeans(f, 2, given) AS m FROM option_data GROUP BY g) AS s JOIN option_wanted AS w USING (g, m) WHERE w.i = 4);
END $$;
DEALLOCATE option_given;
DROP TABLE option_rows, option_data, option_wanted;

-- every kind of bad input to the aggregate and the window function, with its SQLSTATE
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql

-- features: one row each, after a sound one
SELECT features,
       pg_temp.outcome('SELECT (kmeans(f, 1)).n FROM (VALUES (1, ARRAY[1, 2]' || kind || '), (2, ' || features || kind || ')) AS v(i, f)') AS aggregate,
       pg_temp.outcome('SELECT kmeans_label(f, 1) OVER () FROM (VALUES (1, ARRAY[1, 2]' || kind || '), (2, ' || features || kind || ')) AS v(i, f)') =
       pg_temp.outcome('SELECT (kmeans(f, 1)).n FROM (VALUES (1, ARRAY[1, 2]' || kind || '), (2, ' || features || kind || ')) AS v(i, f)') AS same
FROM (VALUES ('''{1,NULL}''', '::real[]'), ('''{NULL,2}''', '::float8[]'), ('''{1,NULL}''', '::smallint[]'), ('''{1,NULL}''', '::integer[]'),
             ('''{1,NULL}''', '::bigint[]'), ('''{1,NULL}''', '::numeric[]'),
             ('''{1,NaN}''', '::real[]'), ('''{NaN,1}''', '::float8[]'), ('''{1,NaN}''', '::numeric[]'),
             ('''{1,Infinity}''', '::real[]'), ('''{-Infinity,1}''', '::float8[]'), ('''{1,Infinity}''', '::numeric[]'),
             ('''{1,1e151}''', '::float8[]'), ('''{-1e308,1}''', '::float8[]'), ('''{1,1e200}''', '::numeric[]'), ('''{1,-1e400}''', '::numeric[]'),
             ('''{1}''', '::real[]'), ('''{1,2,3}''', '::float8[]'), ('''{1}''', '::integer[]'), ('''{1,2,3}''', '::numeric[]'),
             ('''{}''', '::real[]'), ('''{{1,2},{3,4}}''', '::real[]'), ('''{{1,2}}''', '::numeric[]')) AS t(features, kind);
-- the largest and the smallest magnitudes that are taken
SELECT (kmeans(ARRAY[2 ^ 500, -(2 ^ 500)], 1)).centroids[1][1] = 2 ^ 500 AS largest;
SELECT (kmeans('{3e38,-1e-45}'::real[], 1)).d, (kmeans('{1e-320,1}'::float8[], 1)).d;

-- k
SELECT k, pg_temp.outcome('SELECT (kmeans(ARRAY[1, 2], ' || k || ')).k FROM generate_series(1, 2)') AS aggregate,
       pg_temp.outcome('SELECT kmeans_label(ARRAY[1, 2], ' || k || ') OVER () FROM generate_series(1, 2)') AS label
FROM unnest(ARRAY['NULL', '0', '-1', '2147483648', '9223372036854775807']) AS k;
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[k], k)).k FROM generate_series(1, 2) AS k') AS aggregate,
       pg_temp.outcome('SELECT kmeans_label(ARRAY[k], k) OVER () FROM generate_series(1, 2) AS k') AS label;
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[k], CASE WHEN k = 1 THEN 1 END)).k FROM generate_series(1, 2) AS k') AS aggregate,
       pg_temp.outcome('SELECT kmeans_label(ARRAY[k], CASE WHEN k = 1 THEN 1 END) OVER () FROM generate_series(1, 2) AS k') AS label;

-- options that change inside a group; equal ones in other bytes do not
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, kmeans_options(seed => i))).k FROM generate_series(1, 2) AS i') AS aggregate,
       pg_temp.outcome('SELECT kmeans_label(ARRAY[i], 1, kmeans_options(seed => i)) OVER () FROM generate_series(1, 2) AS i') AS label,
       pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, kmeans_options(seed => i)) OVER ()).k FROM generate_series(1, 2) AS i') AS window;
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, CASE WHEN i = 1 THEN kmeans_options(tol => 0) END)).k FROM generate_series(1, 2) AS i') AS to_null,
       pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, CASE WHEN i = 2 THEN kmeans_options(tol => 0) END)).k FROM generate_series(1, 2) AS i') AS from_null,
       pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, kmeans_options(init_centroids => ARRAY[ARRAY[i]]))).k FROM generate_series(1, 2) AS i') AS centroids;
SELECT (kmeans(ARRAY[i], 1, CASE WHEN i = 1 THEN kmeans_options() END)).k,
       (kmeans(ARRAY[i], 1, CASE WHEN i = 1 THEN kmeans_options() ELSE ROW(NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::kmeans_options END)).k
FROM generate_series(1, 2) AS i;

-- weights
SELECT weight, pg_temp.outcome('SELECT (kmeans(ARRAY[i], 1, NULL, CASE WHEN i = 2 THEN ' || weight || ' ELSE 1 END)).n FROM generate_series(1, 3) AS i')
FROM unnest(ARRAY['-1', '-0.001', '''NaN''::float8', '''Infinity''::float8', '''-Infinity''::float8', '1e151', '0', '-0.0', 'NULL', '1e-300', '1e150']) AS weight;

-- a zero vector has no direction
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[i, 0], 1, kmeans_options(metric => ''cosine''))).n FROM generate_series(0, 2) AS i ORDER BY 1') AS aggregate,
       pg_temp.outcome('SELECT (kmeans(ARRAY[i, 1], 1, kmeans_options(metric => ''cosine'', init_centroids => ''{{0,0}}''))).n FROM generate_series(0, 2) AS i') AS given;

-- no such function: k, or features, that are no numbers
SELECT pg_temp.outcome('SELECT kmeans(ARRAY[1, 2], ''two''::text)'), pg_temp.outcome('SELECT kmeans(ARRAY[''a''], 2)');

-- memory: the limit, what is needed, and the setting that raises it
LOAD 'pg_kmeans';
SET pg_kmeans.memory_limit = '100kB';
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[i, i, i, i], 2)).k FROM generate_series(1, 10000) AS i') AS rows,
       pg_temp.outcome('SELECT (kmeans(ARRAY[i, i, i, i], 2)).k FROM generate_series(1, 1000) AS i') AS fit,
       pg_temp.outcome('SELECT kmeans_label(ARRAY[i, i, i, i], 2) OVER () FROM generate_series(1, 10000) AS i') AS label,
       pg_temp.outcome('SELECT count(kmeans) FROM (SELECT kmeans(ARRAY[i, i, i, i], 1) FROM generate_series(1, 10000) AS i GROUP BY i) AS s') AS groups;
SELECT pg_temp.outcome('SELECT kmeans_label(NULL::real[], 2) OVER () FROM generate_series(1, 100000)') AS labels_alone;
DO $$
DECLARE
    n integer;
    detail text;
    hint text;
BEGIN
    FOREACH n IN ARRAY ARRAY[10000, 1000] LOOP
        BEGIN
            PERFORM kmeans(ARRAY[i, i, i, i], 2) FROM generate_series(1, n) AS i;
        EXCEPTION WHEN program_limit_exceeded THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            RAISE NOTICE '% %', regexp_replace(detail, '\d+ kB', 'N kB', 'g'), hint;
        END;
    END LOOP;
END $$;
SET pg_kmeans.memory_limit = '64MB';
SELECT pg_temp.outcome('SELECT (kmeans(ARRAY[i, i, i, i], 2)).k FROM generate_series(1, 10000) AS i') AS enough,
       pg_temp.outcome('SELECT (kmeans(array_fill(i::real, ARRAY[1000]), 100000)).k FROM generate_series(1, 100) AS i') AS clusters_of_rows;
SET pg_kmeans.memory_limit = 0;
SELECT (kmeans(ARRAY[i, i, i, i], 2)).k FROM generate_series(1, 10000) AS i;
RESET pg_kmeans.memory_limit;
-- what failed queries held is not counted against the limit any more
SET pg_kmeans.memory_limit = '16MB';
SELECT DISTINCT pg_temp.outcome('SELECT (kmeans(ARRAY[i, i, i, NULLIF(i, 1000)], 2)).k FROM generate_series(1, 1000) AS i')
FROM generate_series(1, 1000);
RESET pg_kmeans.memory_limit;

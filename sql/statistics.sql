-- pg_stat_kmeans: fits of all sessions, by function and backend
SET pg_kmeans.backend = cpu;
CREATE TABLE counted AS SELECT i AS id, i % 5 AS g, (i * 31 % 97)::real AS x, (i * 17 % 89)::real AS y FROM generate_series(1, 500) AS i;
ANALYZE counted;
SELECT pg_stat_kmeans_reset();
SELECT count(*) FROM pg_stat_kmeans;
-- each call beside what it has to add
CREATE TEMP TABLE calls (function text, fits bigint, rows bigint);
CREATE FUNCTION pg_temp.adds(function text, fits bigint, rows bigint) RETURNS void LANGUAGE sql AS 'INSERT INTO calls VALUES (function, fits, rows)';
SELECT (kmeans_fit('counted', '{x,y}', 3)).n, pg_temp.adds('kmeans_fit', 1, 500);
SELECT (kmeans_fit('counted', '{x,y}', 3, filter => 'id <= 100')).n, pg_temp.adds('kmeans_fit', 1, 100);
SELECT count(*), pg_temp.adds('kmeans_labels', 1, 500) FROM kmeans_labels('counted', '{x,y}', 4);
SELECT count(*), pg_temp.adds('kmeans_sweep', 4, 500) FROM kmeans_sweep('counted', '{x,y}', 2, 5);
SELECT count(*), pg_temp.adds('gmm_sweep', 3, 500) FROM gmm_sweep('counted', '{x,y}', 1, 3);
SELECT (pca_fit('counted', '{x,y}')).n, pg_temp.adds('pca_fit', 1, 500);
-- of an aggregate one for each group, fitted together or not
SET enable_sort = off;
SELECT count(m), pg_temp.adds('kmeans', 5, 500) FROM (SELECT kmeans(ARRAY[x, y], 2) AS m FROM counted GROUP BY g) AS t;
RESET enable_sort;
SET enable_hashagg = off;
SELECT count(m), pg_temp.adds('kmeans', 5, 500) FROM (SELECT kmeans(ARRAY[x, y], 2) AS m FROM counted GROUP BY g) AS t;
RESET enable_hashagg;
SELECT count(l), pg_temp.adds('kmeans_label', 5, 500) FROM (SELECT kmeans_label(ARRAY[x, y], 2) OVER (PARTITION BY g) AS l FROM counted) AS t;
-- what fits nothing, and what ends with an error, is not counted
SELECT kmeans_load('counted', '{x,y}');
SELECT kmeans_fit('counted', '{x,y}', 0);
SELECT kmeans_unload();
SELECT function, s.backend, s.fits, s.rows FROM pg_stat_kmeans AS s ORDER BY function;
SELECT count(*) AS unequal
FROM (SELECT function, sum(fits) AS fits, sum(rows) AS rows FROM calls GROUP BY function) AS c FULL JOIN pg_stat_kmeans AS s USING (function)
WHERE (c.fits, c.rows) IS DISTINCT FROM (s.fits, s.rows);
SELECT bool_and(seconds > 0 AND seconds < extract(epoch FROM clock_timestamp() - stats_reset)) AS seconds, count(DISTINCT stats_reset) FROM pg_stat_kmeans;
-- they are of all sessions
\connect -
SET pg_kmeans.backend = cpu;
SELECT sum(fits) FROM pg_stat_kmeans;
-- everybody may look, and who is granted that may reset
CREATE ROLE regress_kmeans_statistics;
SET ROLE regress_kmeans_statistics;
SELECT count(*) FROM pg_stat_kmeans;
SELECT pg_stat_kmeans_reset();
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_stat_kmeans_reset() TO regress_kmeans_statistics;
SET ROLE regress_kmeans_statistics;
SELECT pg_stat_kmeans_reset();
RESET ROLE;
SELECT count(*) FROM pg_stat_kmeans;
SELECT (kmeans_fit('counted', '{x,y}', 3)).n;
SELECT function, backend, fits, rows FROM pg_stat_kmeans;
REVOKE EXECUTE ON FUNCTION pg_stat_kmeans_reset() FROM regress_kmeans_statistics;
DROP ROLE regress_kmeans_statistics;
DROP TABLE counted;

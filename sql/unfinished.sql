-- One WARNING for all fits of a query that max_iter ended.
CREATE TABLE unfinished_rows AS SELECT i AS id, i % 100 AS g, sin(i)::real AS x, cos(i * i)::real AS y FROM generate_series(1, 4000) AS i;
-- tables
SELECT (kmeans_fit('unfinished_rows', '{x,y}', 5, options => kmeans_options(max_iter => 1))).converged;
SELECT (kmeans_fit('unfinished_rows', '{x,y}', 5)).converged;
SELECT count(*) FROM kmeans_labels('unfinished_rows', '{x,y}', 5, options => kmeans_options(max_iter => 1)) AS l;
SELECT count(*) FROM kmeans_sweep('unfinished_rows', '{x,y}', 1, 5, options => kmeans_options(max_iter => 1));
SELECT (gmm_fit('unfinished_rows', '{x,y}', 3, options => gmm_options(max_iter => 2))).converged;
-- groups: fitted together, one by one, and in a plan node that is scanned again and again
SET enable_sort = off;
SELECT count((m).k) FROM (SELECT kmeans(ARRAY[x, y], 1 + g % 2, kmeans_options(max_iter => 1)) AS m FROM unfinished_rows GROUP BY g) AS s;
RESET enable_sort;
SET enable_hashagg = off;
SELECT count((m).k) FROM (SELECT kmeans(ARRAY[x, y], 1 + g % 2, kmeans_options(max_iter => 1)) AS m FROM unfinished_rows GROUP BY g) AS s;
RESET enable_hashagg;
SELECT count((m).inertia) FROM generate_series(0, 9) AS h, LATERAL (SELECT kmeans(ARRAY[x, y], 2, kmeans_options(max_iter => 1)) AS m FROM unfinished_rows WHERE g = h) AS s;
SELECT count((gmm(ARRAY[x, y], 2, gmm_options(max_iter => 1))).k) OVER (), (kmeans(ARRAY[x, y], 2)).converged FROM unfinished_rows;
-- windows
SELECT count(DISTINCT l) FROM (SELECT kmeans_label(ARRAY[x, y], 2, kmeans_options(max_iter => 1)) OVER (PARTITION BY g) AS l FROM unfinished_rows) AS s;
SELECT count(m) FROM (SELECT kmeans(ARRAY[x, y], 2, kmeans_options(max_iter => 1)) OVER (PARTITION BY g) AS m FROM unfinished_rows WHERE g < 3) AS s;
-- none where an error ends the query
SELECT 1 / (min(m.k) - 2) FROM (SELECT (kmeans(ARRAY[x, y], 2, kmeans_options(max_iter => 1))).k AS k FROM unfinished_rows GROUP BY g) AS m;
DROP TABLE unfinished_rows;

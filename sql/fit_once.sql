-- A fit in a subquery is made once, wherever the planner expects how many rows.
CREATE TABLE once_points AS SELECT i AS id, i % 2 AS a, i % 2 AS b, i % 2 AS c, i % 2 AS d, (i % 10)::real AS x, (i / 10)::real AS y FROM generate_series(1, 200) AS i;
ANALYZE once_points;
CREATE VIEW once_model AS SELECT kmeans_fit('once_points', '{x,y}', 2) AS m;

CREATE FUNCTION fits(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before bigint = (SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions WHERE funcname ~ '_(fit|sweep|labels)$');
    n bigint;
BEGIN
    EXECUTE sql;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN format('%s rows, %s fits', n,
        (SELECT sum(calls) FROM pg_stat_xact_user_functions WHERE funcname ~ '_(fit|sweep|labels)$') - before);
END
$$;
SET track_functions = 'all';

SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) AS s$$);
SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]), kmeans_distance(s.m, ARRAY[x, y]), (s.m).k, (s.m).n FROM once_points, (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) AS s$$);
SELECT fits($$WITH s AS (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, s$$);
SELECT fits($$WITH s AS NOT MATERIALIZED (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, s$$);
SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, LATERAL (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) AS s$$);
SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, once_model AS s$$);
SELECT fits($$SELECT kmeans_predict(m, ARRAY[x, y]) FROM once_points, kmeans_fit('once_points', '{x,y}', 2) AS m$$);
SELECT fits($$SELECT kmeans_predict((SELECT kmeans_fit('once_points', '{x,y}', 2)), ARRAY[x, y]) FROM once_points$$);
SELECT fits($$UPDATE once_points SET id = kmeans_predict(s.m, ARRAY[x, y]) FROM (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) AS s$$);
SELECT fits($$SELECT gmm_predict(s.m, ARRAY[x, y]) FROM once_points, (SELECT gmm_fit('once_points', '{x,y}', 2) AS m) AS s$$);
SELECT fits($$SELECT kmeans_tree_predict(s.m, ARRAY[x, y]) FROM once_points, (SELECT kmeans_tree_fit('once_points', '{x,y}', '{2,2}') AS m) AS s WHERE a + b + c + d = 4$$);
SELECT fits($$SELECT pca_transform(s.m, ARRAY[x, y]) FROM once_points, (SELECT pca_fit('once_points', '{x,y}') AS m) AS s$$);

-- also where one row is expected and many come, or a join leaves no choice
SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, once_model AS s WHERE a + b + c + d = 4$$);
SELECT fits($$SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, LATERAL (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) AS s WHERE a + b + c + d = 4$$);
SELECT fits($$WITH s AS (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m) SELECT kmeans_predict(s.m, ARRAY[x, y]) FROM once_points, s WHERE a + b + c + d = 4$$);
SELECT fits($$SELECT * FROM once_points LEFT JOIN (SELECT gmm_fit('once_points', '{x,y}', 2) AS m) AS s ON (s.m).n > id WHERE a + b + c + d = 4$$);
SELECT fits($$SELECT * FROM once_points LEFT JOIN (SELECT kmeans_sweep('once_points', '{x,y}', 2, 3) AS r) AS s ON (s.r).k > id WHERE a + b + c + d = 4$$);
SELECT fits($$SELECT * FROM once_points AS p LEFT JOIN (SELECT kmeans_labels('once_points', '{x,y}', 2) AS r) AS s ON (s.r).row_ctid = p.ctid WHERE a + b + c + d = 4$$);
EXPLAIN (COSTS OFF) SELECT m FROM once_model;
SELECT fits($$SELECT id, (SELECT kmeans_predict(m, ARRAY[x, y]) FROM once_model) FROM once_points$$);
SELECT fits($$SELECT * FROM once_points AS p, LATERAL (SELECT kmeans_predict(s.m, ARRAY[p.x, p.y]) FROM once_model AS s OFFSET 0) AS l$$);
CREATE TABLE once_others AS SELECT i AS id FROM generate_series(1, 20000) AS i;
CREATE INDEX ON once_others (id);
ANALYZE once_others;
SELECT fits($$SELECT p.id, kmeans_predict(q.m, ARRAY[p.x, p.y]) FROM once_points AS p LEFT JOIN (SELECT o.id, s.m FROM once_others AS o CROSS JOIN once_model AS s) AS q ON q.id = p.id WHERE a + b + c + d = 4$$);
SET enable_material = off;
SELECT fits($$SELECT * FROM once_points LEFT JOIN (SELECT kmeans_fit('once_points', '{x,y}', 2) AS m UNION ALL SELECT kmeans_fit('once_points', '{x,y}', 3)) AS s ON (s.m).n > id WHERE a + b + c + d = 4$$);
RESET enable_material;

-- and where what is made of the model depends on a row
SELECT fits($$SELECT * FROM once_points AS p LEFT JOIN LATERAL (SELECT kmeans_predict(m, ARRAY[p.x, p.y]) FROM once_model) AS s ON true$$);
SELECT fits($$SELECT * FROM once_points AS p LEFT JOIN LATERAL (SELECT gmm_predict(m, ARRAY[p.x, p.y]) FROM (SELECT gmm_fit('once_points', '{x,y}', 2) AS m) AS v) AS s ON true$$);
SELECT fits($$SELECT s.* FROM once_points AS p LEFT JOIN LATERAL (SELECT p.id, (m).k FROM once_model) AS s ON true$$);
SELECT fits($$SELECT (SELECT (m).k FROM once_model WHERE p.id > 0) FROM once_points AS p$$);
SELECT fits($$SELECT CASE WHEN a = 1 THEN (SELECT kmeans_predict(m, ARRAY[p.x, p.y]) FROM once_model WHERE p.a = 1) END FROM once_points AS p$$);
SELECT fits($$SELECT s.* FROM once_points AS p, LATERAL (SELECT m FROM once_model WHERE (m).k = p.a + 1 UNION ALL SELECT m FROM once_model) AS s$$);

-- but for each row where it depends on one
SELECT fits($$SELECT (s.m).k FROM once_points AS p, LATERAL (SELECT kmeans_fit('once_points', '{x,y}', p.id + 1) AS m) AS s WHERE y = 3$$);

RESET track_functions;
DROP FUNCTION fits;
DROP TABLE once_points, once_others CASCADE;

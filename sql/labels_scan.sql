-- kmeans_labels in FROM: a scan of its own, which gives what the function gives.
CREATE TABLE scan_labels AS SELECT i AS id, (i % 10)::real AS x, (i % 7)::real AS y FROM generate_series(1, 1000) AS i;
INSERT INTO scan_labels VALUES (2000, NULL, NULL);

EXPLAIN (COSTS OFF) SELECT row_ctid FROM kmeans_labels('scan_labels', '{x,y}', 3) AS l WHERE distance > 0;
-- what the tuple store is for: rows as a whole, numbered rows, several functions, rows to be read again after a lock
EXPLAIN (COSTS OFF) SELECT l FROM kmeans_labels('scan_labels', '{x,y}', 3) AS l;
SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', 3) AS l WHERE l IS NOT NULL AND l::text <> '';
EXPLAIN (COSTS OFF) SELECT * FROM kmeans_labels('scan_labels', '{x,y}', 3) WITH ORDINALITY;
EXPLAIN (COSTS OFF) SELECT * FROM ROWS FROM (kmeans_labels('scan_labels', '{x,y}', 3), generate_series(1, 3));
EXPLAIN (COSTS OFF) UPDATE scan_labels AS t SET x = l.cluster_id FROM kmeans_labels('scan_labels', '{x,y}', 3) AS l WHERE l.row_ctid = t.ctid;
-- and a function that is not called as it is
CREATE FUNCTION owned_labels(relation regclass, features text[], k bigint, options kmeans_options, weight text, nulls text, filter text, memory text)
RETURNS TABLE (row_ctid tid, cluster_id integer, distance double precision, row_table regclass)
AS 'pg_kmeans', 'pgkm_kmeans_labels' LANGUAGE C STABLE SECURITY DEFINER;
EXPLAIN (COSTS OFF) SELECT row_ctid FROM owned_labels('scan_labels', '{x,y}', 3, kmeans_options('first'), NULL, NULL, NULL, NULL);
DROP FUNCTION owned_labels;

-- the same rows, also with NULLs, weights and options
CREATE VIEW differences AS
SELECT count(*) FILTER (WHERE s IS DISTINCT FROM f) AS different, count(*)
FROM (SELECT ROW(row_ctid, cluster_id, distance, row_table) AS s, row_number() OVER () AS n FROM kmeans_labels('scan_labels', '{x,y}', 4, options => kmeans_options(seed => 5, standardize => true), weight => 'id') WHERE true) AS a
    FULL JOIN (SELECT ROW(row_ctid, cluster_id, distance, row_table) AS f, ordinality AS n
               FROM kmeans_labels('scan_labels', '{x,y}', 4, options => kmeans_options(seed => 5, standardize => true), weight => 'id') WITH ORDINALITY) AS b USING (n);
SELECT * FROM differences;

-- parameters: of an outer row, of a prepared statement, of a subquery; again only when one of them has changed
SELECT k, count(*), count(DISTINCT cluster_id) FROM generate_series(1, 3) AS k, kmeans_labels('scan_labels', '{x,y}', k) GROUP BY k ORDER BY k;
SELECT n, (SELECT count(DISTINCT cluster_id) FROM kmeans_labels('scan_labels', '{x,y}', (SELECT count(*) FROM scan_labels WHERE id < n))) AS clusters
FROM generate_series(2, 4) AS n;
CREATE SEQUENCE scan_calls;
CREATE FUNCTION counted(k bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$SELECT k + 0 * nextval('scan_calls')$$;
SELECT n, (SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', counted(3), options => kmeans_options(init => 'first')) AS l WHERE l.cluster_id < n) AS below
FROM generate_series(1, 3) AS n;
SELECT last_value AS calls FROM scan_calls;
PREPARE scan_prepared(bigint) AS SELECT count(DISTINCT cluster_id) FROM kmeans_labels('scan_labels', '{x,y}', $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE scan_prepared(2);
EXECUTE scan_prepared(5);
EXECUTE scan_prepared(0);
RESET plan_cache_mode;
SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', 2) AS a JOIN kmeans_labels('scan_labels', '{x,y}', 3) AS b USING (row_ctid, row_table);

-- a cursor goes both ways, over rows without a label too
CREATE TABLE scan_gaps AS SELECT CASE WHEN full_row THEN (i % 10)::real END AS x, CASE WHEN full_row THEN (i % 7)::real END AS y
FROM generate_series(1, 1001) AS i, LATERAL (SELECT i NOT IN (2, 1000, 1001) AS full_row) AS r;
BEGIN;
DECLARE d CURSOR FOR SELECT row_ctid, cluster_id FROM kmeans_labels('scan_gaps', '{x,y}', 2, options => kmeans_options(init => 'first'));
CREATE TEMPORARY TABLE forward AS SELECT row_number() OVER () AS n, l.row_ctid AS place, cluster_id FROM kmeans_labels('scan_gaps', '{x,y}', 2, options => kmeans_options(init => 'first')) AS l;
FETCH 2 FROM d;
FETCH BACKWARD 2 FROM d;
MOVE FORWARD ALL IN d;
FETCH BACKWARD 3 FROM d;
FETCH FORWARD 3 FROM d;
MOVE BACKWARD 700 IN d;
FETCH FORWARD 1 FROM d;
SELECT place, cluster_id FROM forward WHERE n = 1001 - 700 + 2;
COMMIT;
DROP TABLE scan_gaps;

-- what EXPLAIN says of the fit
CREATE FUNCTION pg_temp.scan_of(options text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF' || options || ') SELECT row_ctid FROM kmeans_labels(''scan_labels'', ''{x,y}'', 3)' INTO plan;
    RETURN plan->0->'Plan';
END $$;
SELECT scan->'Function' AS function, scan->'Relation' AS relation, scan->'Clusters' AS clusters, scan->'Backend' AS backend FROM pg_temp.scan_of('') AS scan;
SELECT scan->>'Backend' IN ('cpu', 'cuda') AS backend, scan->'Rows Read' AS read, scan->'Iterations' AS iterations, scan ? 'Seeding Time' AS timed FROM unnest(ARRAY[', ANALYZE, TIMING OFF', ', ANALYZE']) AS options, pg_temp.scan_of(options) AS scan;

-- rows that are let go meanwhile
SELECT kmeans_load('scan_labels', '{x,y}') > 0 AS loaded;
EXPLAIN (COSTS OFF) SELECT row_ctid FROM kmeans_labels('scan_labels', '{x,y}', 3, memory => 'loaded');
SELECT count(u), count(DISTINCT row_ctid) FROM (SELECT row_ctid, kmeans_unload() AS u FROM kmeans_labels('scan_labels', '{x,y}', 3, memory => 'loaded')) AS s;

-- privileges are those of the function
CREATE ROLE scan_labels_role;
GRANT SELECT ON scan_labels TO scan_labels_role;
SET ROLE scan_labels_role;
SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', 2);
RESET ROLE;
BEGIN;
REVOKE EXECUTE ON FUNCTION kmeans_labels FROM PUBLIC;
SET ROLE scan_labels_role;
SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', 2);
ROLLBACK;
REVOKE SELECT ON scan_labels FROM scan_labels_role;
SET ROLE scan_labels_role;
SELECT count(*) FROM kmeans_labels('scan_labels', '{x,y}', 2);
RESET ROLE;

DROP ROLE scan_labels_role;
DROP TABLE scan_labels CASCADE;
DROP FUNCTION counted;
DROP SEQUENCE scan_calls;

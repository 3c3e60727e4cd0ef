-- The table functions see and do what the caller may, no more.
BEGIN;
SELECT plan(40);

CREATE FUNCTION explain_json(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    result json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO result;
    RETURN result;
END$$;
CREATE ROLE km_reader;
CREATE ROLE km_columns;
CREATE ROLE km_writer;
CREATE ROLE km_tenant;
GRANT CREATE, USAGE ON SCHEMA public TO km_writer;

CREATE TABLE priv_points (id integer PRIMARY KEY, owner text, x real, y real, secret real, cluster_id integer);
INSERT INTO priv_points
SELECT i, CASE WHEN i % 4 = 0 THEN 'km_tenant' ELSE 'other' END, i % 10, (i * 7) % 13, i, NULL FROM generate_series(1, 400) AS i;
ANALYZE priv_points;
CREATE VIEW priv_view AS SELECT x, y FROM priv_points WHERE id <= 100;
CREATE SCHEMA priv_closed;
CREATE TABLE priv_closed.points AS SELECT x, y FROM priv_points;
GRANT SELECT ON priv_view, priv_closed.points TO km_reader;
GRANT SELECT (x, y) ON priv_points TO km_columns;
GRANT SELECT, UPDATE ON priv_points TO km_writer;
GRANT SELECT, UPDATE ON priv_points TO km_tenant;

-- Nobody
SET LOCAL ROLE km_reader;
SELECT throws_ok($$SELECT kmeans_fit('priv_points', '{x,y}', 2)$$, '42501', 'permission denied for table priv_points', 'kmeans_fit without SELECT');
SELECT throws_ok($$SELECT kmeans_labels('priv_points', '{x,y}', 2)$$, '42501', NULL, 'kmeans_labels without SELECT');
SELECT throws_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 2)$$, '42501', NULL, 'kmeans_cluster without SELECT');
SELECT throws_ok($$SELECT kmeans_fit('priv_closed.points', '{x,y}', 2)$$, '42501', NULL, 'a schema without USAGE');
SELECT is((kmeans_fit('priv_view', '{x,y}', 2)).n, 100::bigint, 'a view reads with its owner''s rights');
SELECT throws_ok($$SET pg_kmeans.memory_limit = 0$$, '42501', NULL, 'the memory limit is not for everyone to raise');

-- Column grants
SET LOCAL ROLE km_columns;
SELECT is((kmeans_fit('priv_points', '{x,y}', 2)).n, 400::bigint, 'granted columns suffice for kmeans_fit');
SELECT throws_ok($$SELECT kmeans_fit('priv_points', '{x,secret}', 2)$$, '42501', NULL, 'a column that is not granted');
SELECT throws_ok($$SELECT kmeans_fit('priv_points', '{x}', 2, weight => 'secret')$$, '42501', NULL, 'a weight that is not granted');
SELECT is((SELECT max(size) FROM kmeans_tree('priv_points', '{x,y}', '{2,2}')), 400::bigint, 'granted columns suffice for kmeans_tree');
SELECT throws_ok($$SELECT kmeans_tree('priv_points', '{x,secret}', '{2}')$$, '42501', NULL, 'a column that is not granted, of kmeans_tree');
SELECT throws_ok($$SELECT gmm_sweep('priv_points', '{x,secret}', 1, 2)$$, '42501', NULL, 'a column that is not granted, of gmm_sweep');
SELECT throws_ok($$SELECT kmeans_labels('priv_points', '{x,y}', 2)$$, '42501', NULL, 'ctid needs SELECT on the table');
SELECT throws_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 2)$$, '42501', NULL, 'and writing needs UPDATE');

-- Writers that are not owners
SET LOCAL ROLE km_writer;
SELECT throws_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 2, label_column => 'mine')$$, '42501', NULL, 'only an owner adds a column');
SELECT hasnt_column('priv_points', 'mine', 'and none is added');
SELECT is((SELECT sum(size) FROM kmeans_centroids(kmeans_cluster('priv_points', '{x,y}', 2, label_column => 'cluster_id', overwrite => true))), 400::numeric, 'a writer fills a column that exists');
SELECT is((SELECT count(*) FROM priv_points WHERE cluster_id IS NULL), 0::bigint, 'all of it');
SAVEPOINT before_revoke;
RESET ROLE;
REVOKE UPDATE ON priv_points FROM km_writer;
GRANT UPDATE (x) ON priv_points TO km_writer;
SET LOCAL ROLE km_writer;
SELECT throws_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 2)$$, '42501', NULL, 'not without UPDATE');
RESET ROLE;
ROLLBACK TO before_revoke;

-- Nothing in a search path stands in for the server's own functions and operators.
RESET ROLE;
CREATE SCHEMA evil;
CREATE FUNCTION evil.same(tid, tid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'fooled'; END$$;
CREATE OPERATOR evil.= (LEFTARG = tid, RIGHTARG = tid, FUNCTION = evil.same);
CREATE FUNCTION evil.unnest(tid[]) RETURNS SETOF tid LANGUAGE plpgsql AS $$BEGIN RAISE 'fooled'; END$$;
CREATE DOMAIN evil.int4 AS text;
SET LOCAL search_path = evil, pg_catalog, public;
SELECT lives_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 3, label_column => 'unfooled')$$, 'a hostile search path changes nothing');
SELECT col_type_is('public', 'priv_points', 'unfooled', 'integer', 'the new column is an integer');
SET LOCAL search_path = public;

-- A function's body was looked up when it was made: who calls it needs no right to the extension's schema.
CREATE SCHEMA priv_open;
CREATE TABLE priv_open.points AS SELECT x, y FROM priv_points;
CREATE FUNCTION priv_open.cluster(name text, memory text DEFAULT 'auto') RETURNS numeric BEGIN ATOMIC SELECT sum(size) FROM kmeans_centroids(kmeans_cluster(name, '{x,y}', 3, memory => memory)); END;
GRANT USAGE ON SCHEMA priv_open TO km_writer;
ALTER TABLE priv_open.points OWNER TO km_writer;
REVOKE ALL ON SCHEMA public FROM km_writer, PUBLIC;
SET LOCAL ROLE km_writer;
SELECT has_schema_privilege('public', 'USAGE') AS open \gset
SELECT sum AS clustered FROM priv_open.cluster('priv_open.points') AS sum \gset
SELECT sum AS streamed FROM priv_open.cluster('priv_open.points', 'stream') AS sum \gset
RESET ROLE;
GRANT USAGE ON SCHEMA public TO PUBLIC;
SELECT is(:'open', 'f'::text, 'the schema of the extension is closed');
SELECT is(:clustered, 400, 'kmeans_cluster labels rows without USAGE on the schema of the extension');
SELECT is(:streamed, 400, 'also rows that are streamed');

-- Names hold no SQL
SELECT throws_ok($$SELECT kmeans_fit('priv_points WHERE id < 5', '{x}', 1)$$, '42602', NULL, 'a condition in the name of a table');
SELECT throws_ok($$SELECT kmeans_fit('(SELECT * FROM priv_points)', '{x}', 1)$$, '42602', NULL, 'a query in the name of a table');
SELECT throws_ok($$SELECT kmeans_fit('priv_points', ARRAY['x FROM priv_points; DELETE FROM priv_points; --'], 1)$$, '42601', NULL, 'SQL in an expression');
SELECT throws_ok($$SELECT kmeans_fit('priv_points', ARRAY['x"; DELETE FROM priv_points; --'], 1)$$, '42601', NULL, 'a quote in an expression');
SELECT lives_ok($$SELECT kmeans_cluster('priv_points', '{x,y}', 2, label_column => 'a = 1; DELETE FROM priv_points; --"')$$, 'SQL in the name of a new column');
SELECT is((SELECT count(*) FROM priv_points), 400::bigint, 'and it is a name only');

-- Row security
ALTER TABLE priv_points ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON priv_points USING (owner = current_user AND id > 40);
UPDATE priv_points SET cluster_id = 99;
SET LOCAL ROLE km_tenant;
SELECT is((kmeans_fit('priv_points', '{x,y}', 2)).n, 90::bigint, 'kmeans_fit reads the rows of the policy');
SELECT set_eq($$SELECT row_ctid::text AS place FROM kmeans_labels('priv_points', '{x,y}', 2)$$, $$SELECT ctid::text AS place FROM priv_points$$, 'so does kmeans_labels');
-- A policy may invite an index; rows are used in the order of ctid all the same.
RESET ROLE;
CREATE TABLE priv_shuffled AS SELECT id, owner, x, y FROM priv_points ORDER BY (id * 7919) % 1009;
CREATE INDEX ON priv_shuffled (id);
ALTER TABLE priv_shuffled ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON priv_shuffled USING (id > 40);
GRANT SELECT ON priv_shuffled TO km_tenant;
SET LOCAL ROLE km_tenant;
CREATE TEMPORARY TABLE by_sequence AS SELECT row_ctid AS place, cluster_id, distance FROM kmeans_labels('priv_shuffled', '{x,y}', 5);
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT matches((SELECT plan::text FROM explain_json('SELECT x, y FROM priv_shuffled') AS plan), 'Index Scan', 'here an index scan is what reads');
SELECT results_eq($$SELECT row_ctid, cluster_id, distance FROM kmeans_labels('priv_shuffled', '{x,y}', 5)$$, $$SELECT * FROM by_sequence$$, 'an index scan gives the same labels');
SELECT is((SELECT (to_jsonb(kmeans_fit('priv_shuffled', '{x,y}', 5)) - 'origin')::text), (SELECT (to_jsonb(kmeans(ARRAY[x, y], 5 ORDER BY ctid)) - 'origin')::text FROM priv_shuffled), 'and the same model');
RESET enable_seqscan;
RESET enable_bitmapscan;
-- Of a table with partitions the order is that of the partitions, and of ctid in each.
RESET ROLE;
CREATE TABLE priv_parts (id integer, x real, y real) PARTITION BY RANGE (id);
CREATE TABLE priv_later PARTITION OF priv_parts FOR VALUES FROM (200) TO (1000);
CREATE TABLE priv_sooner PARTITION OF priv_parts FOR VALUES FROM (0) TO (200);
INSERT INTO priv_parts SELECT id, x, y FROM priv_shuffled;
CREATE INDEX ON priv_parts (id);
ALTER TABLE priv_parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON priv_parts USING (id > 40);
GRANT SELECT ON priv_parts TO km_tenant;
SET LOCAL ROLE km_tenant;
CREATE TEMPORARY TABLE parts_by_sequence AS SELECT row_table, row_ctid, cluster_id, distance FROM kmeans_labels('priv_parts', '{x,y}', 5);
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT matches((SELECT plan::text FROM explain_json('SELECT x, y FROM priv_parts') AS plan), 'Index Scan', 'here, too, an index scan is what reads');
SELECT results_eq($$SELECT row_table, row_ctid, cluster_id, distance FROM kmeans_labels('priv_parts', '{x,y}', 5)$$, $$SELECT * FROM parts_by_sequence$$, 'and gives the labels of partitions in their order');
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT is((SELECT sum(size) FROM kmeans_centroids(kmeans_cluster('priv_points', '{x,y}', 3, label_column => 'cluster_id', overwrite => true))), 90::numeric, 'kmeans_cluster clusters the rows of the policy');
RESET ROLE;
SELECT results_eq($$SELECT owner = 'km_tenant' AND id > 40, cluster_id BETWEEN 0 AND 2, count(*) FROM priv_points GROUP BY 1, 2 ORDER BY 1$$,
    $$VALUES (false, false, 310::bigint), (true, true, 90::bigint)$$, 'and writes no other');
SELECT is((kmeans_fit('priv_points', '{x,y}', 2)).n, 400::bigint, 'the owner sees all rows');

SELECT * FROM finish();
ROLLBACK;

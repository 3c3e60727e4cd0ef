-- The direct scan sees what a SELECT by the caller would see. Forced here, so that a
-- relation that it must leave to the executor is an error.
BEGIN;
SELECT plan(17);

CREATE ROLE km_scan_nobody;
CREATE ROLE km_scan_table;
CREATE ROLE km_scan_columns;
CREATE ROLE km_scan_tenant;
GRANT USAGE ON SCHEMA public TO PUBLIC;

CREATE TABLE scan_points (id integer, owner text, x real, y real, secret real) WITH (parallel_workers = 2);
INSERT INTO scan_points
SELECT i, CASE WHEN i % 4 = 0 THEN 'km_scan_tenant' ELSE 'other' END, i % 10, (i * 7) % 13, i FROM generate_series(1, 4000) AS i;
GRANT SELECT ON scan_points TO km_scan_table, km_scan_tenant;
GRANT SELECT (x, y) ON scan_points TO km_scan_columns;
CREATE TABLE scan_parts (x real, y real) PARTITION BY RANGE (x);
CREATE TABLE scan_part PARTITION OF scan_parts DEFAULT;
INSERT INTO scan_parts SELECT i % 10, i % 7 FROM generate_series(1, 2000) AS i;
GRANT SELECT ON scan_parts TO km_scan_table;

SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL pg_kmeans.scan = direct;

SET LOCAL ROLE km_scan_nobody;
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x,y}', 2)$$, '42501', 'permission denied for table scan_points', 'no privilege');
SELECT throws_ok($$SELECT kmeans_labels('scan_points', '{x,y}', 2)$$, '42501', NULL, 'nor for labels');

SET LOCAL ROLE km_scan_columns;
SELECT is((kmeans_fit('scan_points', '{x,y}', 2)).n, 4000::bigint, 'granted columns suffice');
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x,secret}', 2)$$, '42501', NULL, 'a column that is not granted');
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x}', 2, weight => 'secret')$$, '42501', NULL, 'a weight that is not granted');
SELECT throws_ok($$SELECT kmeans_labels('scan_points', '{x,y}', 2)$$, '42501', NULL, 'column grants do not reach ctid');

SET LOCAL ROLE km_scan_table;
SELECT is((kmeans_fit('scan_points', '{x,secret}', 2)).n, 4000::bigint, 'a grant on the table');
SELECT is((SELECT count(*) FROM kmeans_labels('scan_points', '{x,y}', 2)), 4000::bigint, 'labels too');
SELECT is((kmeans_fit('scan_parts', '{x,y}', 2)).n, 2000::bigint, 'a partition is read by the privilege on its parent');
SELECT throws_ok($$SELECT kmeans_fit('scan_part', '{x,y}', 2)$$, '42501', NULL, 'and not by itself');

-- Row security
RESET ROLE;
CREATE POLICY own ON scan_points USING (owner = current_user);
ALTER TABLE scan_points ENABLE ROW LEVEL SECURITY;
SELECT is((kmeans_fit('scan_points', '{x,y}', 2)).n, 4000::bigint, 'row security does not apply to the owner');
SET LOCAL ROLE km_scan_tenant;
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x,y}', 2)$$, '0A000', NULL, 'row security is for the executor');
RESET ROLE;
SET LOCAL pg_kmeans.scan = auto;
SET LOCAL ROLE km_scan_tenant;
SELECT is((kmeans_fit('scan_points', '{x,y}', 2)).n, 1000::bigint, 'which is used by default');
SET LOCAL row_security = off;
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x,y}', 2)$$, '42501', NULL, 'and which refuses to read unfiltered');
RESET ROLE;
SET LOCAL row_security = on;
SET LOCAL pg_kmeans.scan = direct;
ALTER TABLE scan_points FORCE ROW LEVEL SECURITY;
ALTER TABLE scan_points OWNER TO km_scan_tenant;
SET LOCAL ROLE km_scan_tenant;
SELECT throws_ok($$SELECT kmeans_fit('scan_points', '{x,y}', 2)$$, '0A000', NULL, 'forced on the owner');
RESET ROLE;

-- A function that runs as its owner
CREATE FUNCTION fit_as_owner() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$SELECT (kmeans_fit('scan_parts', '{x,y}', 2)).n$$;
SET LOCAL ROLE km_scan_nobody;
SELECT is(fit_as_owner(), 2000::bigint, 'security definer: the owner''s privileges');
SELECT throws_ok($$SELECT kmeans_fit('scan_parts', '{x,y}', 2)$$, '42501', NULL, 'which end with it');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;

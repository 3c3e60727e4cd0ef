-- The two roads of the table functions: from the pages themselves, by one process or by
-- several, and by a query. All must read the same rows in the same order, so that models
-- and labels are the same to the last bit.
SET client_min_messages = error; -- fits that max_iter ends
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;

CREATE SCHEMA kmeans_scan;
SET search_path = kmeans_scan, public;

-- Model and labels as one text, read on one road. Rows in the order of the result.
CREATE FUNCTION read_by(road text, workers int, relation text, features text[], k int, weight text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  PERFORM set_config('pg_kmeans.scan', road, true),
          set_config('max_parallel_workers_per_gather', workers::text, true);
  SELECT kmeans_fit(relation, features, k, options => kmeans_options(init => 'first', max_iter => 5), weight => weight)::text INTO result;
  RETURN result || (SELECT coalesce(string_agg(l::text, ' '), '')
                    FROM kmeans_labels(relation, features, k, options => kmeans_options(init => 'first', max_iter => 5), weight => weight) AS l);
END $$;

CREATE FUNCTION compare(relation text, features text[], k int DEFAULT 2, weight text DEFAULT NULL)
RETURNS TABLE (fitted bigint, alone_same bool, workers_same bool) LANGUAGE plpgsql AS $$
DECLARE
  expected text := coalesce(read_by('executor', 0, relation, features, k, weight), 'none');
BEGIN
  RETURN QUERY SELECT (SELECT m.n FROM kmeans_fit(relation, features, k, options => kmeans_options(max_iter => 1), weight => weight) AS m),
                      expected = coalesce(read_by('direct', 0, relation, features, k, weight), 'none'),
                      expected = coalesce(read_by('direct', 3, relation, features, k, weight), 'none');
END $$;

-- Numbers of every type, beside columns of any length, with and without NULLs.
CREATE TABLE numbers (id int, r real, note text, d float8, i2 int2, i4 int4, i8 int8, n numeric(12, 3), w real,
                      nothing int, r2 real, r3 real) WITH (parallel_workers = 3);
INSERT INTO numbers
SELECT i, i % 7, repeat('x', i % 50), i / 3.0, i % 100, -i, i * 100000::int8, i / 8.0, i % 4,
       CASE WHEN i % 2 = 0 THEN i END, i % 11, i % 13
FROM generate_series(1, 5000) AS i;
SELECT * FROM compare('numbers', '{r}', 3);
SELECT * FROM compare('numbers', '{id}', 3);
SELECT * FROM compare('numbers', '{r3,r2}', 3);
SELECT * FROM compare('numbers', '{d,i2,i4,i8,n,r,id}', 3);
SELECT * FROM compare('numbers', '{r2,r3}', 3, weight => 'w');
SELECT * FROM compare('numbers', '{r2,r3}', 3, weight => 'nothing');
SELECT * FROM compare('numbers', '{nothing}', 3);

-- A prefix of fixed length, read in place.
CREATE TABLE plain (a real, b real, c real, d float8, e float8, f int2, g int4, h int8, t text)
WITH (parallel_workers = 3);
INSERT INTO plain SELECT i % 17, i % 19, i % 23, i, i / 7.0, i % 29, i, i, CASE WHEN i % 3 = 0 THEN 'text' END
FROM generate_series(1, 5000) AS i;
SELECT * FROM compare('plain', '{a,b,c}', 4);
SELECT * FROM compare('plain', '{c,b,a}', 4);
SELECT * FROM compare('plain', '{a,b,c,d,e,f,g,h}', 4);
SELECT * FROM compare('plain', '{a,c,d,h}', 4);

-- Columns that come and go: old tuples lack them, or still hold them.
ALTER TABLE plain ADD COLUMN late real DEFAULT 2.5, ADD COLUMN later real;
INSERT INTO plain SELECT i, i, i, i, i, i, i, i, 't', i, i FROM generate_series(1, 300) AS i;
SELECT * FROM compare('plain', '{a,late}', 4);
SELECT * FROM compare('plain', '{late}', 4);
SELECT * FROM compare('plain', '{later}', 4);
ALTER TABLE plain DROP COLUMN b;
INSERT INTO plain SELECT i, i, i, i, i, i, i, 't', i, i FROM generate_series(1, 300) AS i;
SELECT * FROM compare('plain', '{a,c,d}', 4);
CREATE DOMAIN measure AS float8 CHECK (VALUE > -1e9);
ALTER TABLE plain ALTER COLUMN d TYPE measure;
SELECT * FROM compare('plain', '{a,c,d}', 4);

-- Arrays: short and long headers, NULL rows, toasted and compressed ones.
CREATE TABLE arrays (id int, v real[], f float8[], i int[], n numeric[]) WITH (parallel_workers = 3);
INSERT INTO arrays
SELECT i, CASE WHEN i % 10 <> 0 THEN ARRAY[i % 5, i % 7, i % 11]::real[] END,
       ARRAY(SELECT (i * j % 100) / 3.0 FROM generate_series(1, 40) AS j), ARRAY[i, i % 3], ARRAY[i / 4.0, 1e10 + i]
FROM generate_series(1, 3000) AS i;
SELECT * FROM compare('arrays', '{v}', 3);
SELECT * FROM compare('arrays', '{f}', 3);
SELECT * FROM compare('arrays', '{i}', 3);
SELECT * FROM compare('arrays', '{n}', 3);
SELECT * FROM compare('arrays', '{v}', 3, weight => 'id');
UPDATE arrays SET v = NULL WHERE id < 1000; -- no first row for a while
VACUUM arrays;
SELECT * FROM compare('arrays', '{v}', 3);

CREATE TABLE long_arrays (id int, v real[], same float8[]) WITH (parallel_workers = 3);
INSERT INTO long_arrays
SELECT i, ARRAY(SELECT hashint4(i * 3000 + j) / 1e6 FROM generate_series(1, 3000) AS j)::real[], array_fill(i::float8, ARRAY[3000])
FROM generate_series(1, 60) AS i;
SELECT min(pg_column_size(v)) > 12000 AS stored_outside, max(pg_column_size(same)) < 2000 AS compressed FROM long_arrays;
SELECT * FROM compare('long_arrays', '{v}', 3);
SELECT * FROM compare('long_arrays', '{same}', 3);

-- Only what the snapshot sees: rows deleted, updated, of an aborted transaction, and own ones.
CREATE TABLE seen (a real, b real) WITH (parallel_workers = 3);
INSERT INTO seen SELECT i % 13, i % 17 FROM generate_series(1, 3000) AS i;
DELETE FROM seen WHERE a = 3;
UPDATE seen SET b = b + 100 WHERE a = 5;
BEGIN;
INSERT INTO seen SELECT 1e6, i FROM generate_series(1, 500) AS i;
ROLLBACK;
SELECT * FROM compare('seen', '{a,b}', 3);
BEGIN;
INSERT INTO seen SELECT 50, i FROM generate_series(1, 200) AS i;
SAVEPOINT one;
INSERT INTO seen SELECT 60, i FROM generate_series(1, 200) AS i;
UPDATE seen SET b = 0 WHERE a = 50 AND b < 20;
SELECT * FROM compare('seen', '{a,b}', 3);
ROLLBACK TO SAVEPOINT one;
SELECT * FROM compare('seen', '{a,b}', 3);
SAVEPOINT two;
DELETE FROM seen WHERE a = 50 AND b > 100;
RELEASE SAVEPOINT two;
SELECT * FROM compare('seen', '{a,b}', 3);
COMMIT;
SELECT * FROM compare('seen', '{a,b}', 3);
VACUUM (FREEZE) seen;
SELECT * FROM compare('seen', '{a,b}', 3);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM compare('seen', '{a,b}', 3);
COMMIT;

-- An error inside is over with its savepoint, and so are its workers and their memory.
BEGIN;
SAVEPOINT one;
INSERT INTO seen SELECT 'NaN', i FROM generate_series(1, 2000) AS i;
\set VERBOSITY sqlstate
SET LOCAL pg_kmeans.scan = direct;
SELECT kmeans_fit('seen', '{a,b}', 3);
\set VERBOSITY default
ROLLBACK TO SAVEPOINT one;
SELECT * FROM compare('seen', '{a,b}', 3);
COMMIT;

-- Partitions by their bounds and not by age, several levels; children; their columns may
-- have other places.
CREATE TABLE parts (id int, x real, y real) PARTITION BY RANGE (id);
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (2000) TO (3000);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (1000) PARTITION BY LIST (id);
CREATE TABLE parts_low_rest PARTITION OF parts_low DEFAULT;
CREATE TABLE parts_low_5 PARTITION OF parts_low FOR VALUES IN (5);
CREATE TABLE parts_empty PARTITION OF parts FOR VALUES FROM (7000) TO (8000);
CREATE TABLE parts_middle (y real, gone int, x real, id int);
ALTER TABLE parts_middle DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_middle FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i % 5000, i % 31, i % 37 FROM generate_series(1, 12000) AS i;
SELECT * FROM compare('parts', '{x,y}', 5);
SELECT * FROM compare('parts', '{x,y}', 5, weight => 'id');
CREATE TABLE parent (x real, y real);
CREATE TABLE child_b (extra text) INHERITS (parent);
CREATE TABLE child_a () INHERITS (child_b);
INSERT INTO parent SELECT i, i % 3 FROM generate_series(1, 500) AS i;
INSERT INTO child_a SELECT i, i % 5, 'a' FROM generate_series(1, 2000) AS i;
INSERT INTO child_b SELECT i, i % 7, 'b' FROM generate_series(1, 2000) AS i;
SELECT * FROM compare('parent', '{x,y}', 5);
SELECT * FROM compare('child_b', '{y,x}', 5);

-- Other things that hold rows.
CREATE MATERIALIZED VIEW kept AS SELECT r, r2 FROM numbers;
SELECT * FROM compare('kept', '{r,r2}', 3);
CREATE UNLOGGED TABLE unlogged AS SELECT r, r2 FROM numbers;
SELECT * FROM compare('unlogged', '{r,r2}', 3);
CREATE TEMP TABLE temporary AS SELECT r, r2 FROM numbers;
SELECT * FROM compare('temporary', '{r,r2}', 3);
CREATE TABLE nothing_there (x real, v real[]);
SELECT * FROM compare('nothing_there', '{x}');
SELECT * FROM compare('nothing_there', '{v}');
INSERT INTO nothing_there VALUES (NULL, NULL), (NULL, NULL);
SELECT * FROM compare('nothing_there', '{x}');
SELECT * FROM compare('nothing_there', '{v}');

-- In place, with a column made in the same transaction; then again over its labels (sorted by
-- size: which row comes first after an UPDATE is the server's affair).
CREATE FUNCTION cluster_by(road text, relation text) RETURNS TABLE (cluster_id int, size bigint) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I WITH (parallel_workers = 3) AS SELECT * FROM numbers', relation);
  PERFORM set_config('pg_kmeans.scan', road, true);
  PERFORM kmeans_cluster(relation, '{r,r2}', 3, options => kmeans_options(init => 'first'), label_column => 'c');
  RETURN QUERY SELECT l.cluster_id, l.size
               FROM kmeans_centroids(kmeans_cluster(relation, '{r,r2,r3}', 3, options => kmeans_options(init => 'first'), label_column => 'c')) AS l;
END $$;
SELECT size FROM cluster_by('direct', 'clustered_direct') ORDER BY size;
SELECT size FROM cluster_by('executor', 'clustered_executor') ORDER BY size;
SELECT count(*), count(*) FILTER (WHERE d.c = e.c AND d.ctid = e.ctid) AS same
FROM clustered_direct AS d JOIN clustered_executor AS e USING (id);

-- Pages that are visible to all, and those that are not; rows that are skipped among others.
SET synchronous_commit = on; -- VACUUM marks no page whose commit it finds still unwritten
CREATE TABLE settled (id int, a real, b real, v real[], w real, other int) WITH (parallel_workers = 3);
INSERT INTO settled SELECT i, i % 17, i % 19, ARRAY[i % 23, i % 29, i % 31], i % 3, CASE WHEN i % 2 = 0 THEN i END
FROM generate_series(1, 20000) AS i;
VACUUM settled;
SELECT * FROM compare('settled', '{a,b}', 3);
SELECT * FROM compare('settled', '{v}', 3);
SELECT * FROM compare('settled', '{a,b}', 3, weight => 'w');
UPDATE settled SET v = NULL WHERE id % 997 = 0 OR id BETWEEN 9000 AND 9300;
VACUUM settled;
SELECT * FROM compare('settled', '{a,b}', 3);
SELECT * FROM compare('settled', '{v}', 3);
UPDATE settled SET v = '{1,2,3}' WHERE id BETWEEN 9000 AND 9300; -- only single rows without a value are left
VACUUM settled;
SELECT * FROM compare('settled', '{v}', 3);
DELETE FROM settled WHERE id % 1000 < 20; -- some pages are not visible to all now
SELECT * FROM compare('settled', '{v}', 3);
UPDATE settled SET b = 1 WHERE id % 2 = 0; -- most are not
SELECT * FROM compare('settled', '{a,b}', 3);
SELECT * FROM compare('settled', '{v}', 3);
DELETE FROM settled WHERE v IS NOT NULL;
VACUUM settled;
SELECT * FROM compare('settled', '{v}', 3);
CREATE TABLE settled_parts (g int, v real[], other int) PARTITION BY LIST (g);
CREATE TABLE settled_low PARTITION OF settled_parts FOR VALUES IN (0) WITH (parallel_workers = 3);
CREATE TABLE settled_none PARTITION OF settled_parts FOR VALUES IN (1);
CREATE TABLE settled_high (v real[], gone text, other int, g int);
ALTER TABLE settled_high DROP COLUMN gone;
ALTER TABLE settled_parts ATTACH PARTITION settled_high FOR VALUES IN (2);
INSERT INTO settled_parts SELECT i % 2 * 2, CASE WHEN i % 501 <> 0 THEN ARRAY[i % 19, i % 7] END FROM generate_series(1, 20000) AS i;
VACUUM settled_parts;
SELECT * FROM compare('settled_parts', '{v}', 3);
RESET synchronous_commit;

-- The same errors on both roads.
CREATE TABLE bad (x real, v real[]) WITH (parallel_workers = 3);
INSERT INTO bad SELECT i, ARRAY[i, i] FROM generate_series(1, 3000) AS i;
CREATE FUNCTION complaint(road text, relation text, features text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  detail text;
BEGIN
  PERFORM set_config('pg_kmeans.scan', road, true), kmeans_fit(relation, features, 2);
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
  RETURN concat_ws(' | ', SQLSTATE, SQLERRM, detail);
END $$;
CREATE FUNCTION complain(bad_x real, bad_v real[], features text[]) RETURNS TABLE (sqlstate text, same bool)
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bad VALUES (bad_x, bad_v);
  RETURN QUERY SELECT split_part(e, ' ', 1), e = complaint('direct', 'bad', features) FROM complaint('executor', 'bad', features) AS e;
  DELETE FROM bad WHERE x IS NOT DISTINCT FROM bad_x AND v IS NOT DISTINCT FROM bad_v;
END $$;
SELECT * FROM complain('NaN', NULL, '{x}');
SELECT * FROM complain('-Infinity', NULL, '{x}');
SELECT * FROM complain(1, '{1}', '{v}');
SELECT * FROM complain(1, '{1,NULL}', '{v}');
SELECT * FROM complain(1, '{1,NaN}', '{v}');
SELECT * FROM complain(1, '{{1,2},{3,4}}', '{v}');
SELECT * FROM complain(1, '{}', '{v}');
SELECT * FROM complain(0, '{1,2}', '{v}');

-- Views that rename columns of tables, and put tables behind each other.
CREATE VIEW seen_view AS SELECT b AS first, a AS second FROM seen;
CREATE VIEW seen_twice AS SELECT a, b FROM seen UNION ALL SELECT r, r2 FROM numbers;
CREATE FUNCTION fit_by(road text, relation text, features text[], weight text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('pg_kmeans.scan', road, true);
  RETURN to_jsonb(kmeans_fit(relation, features, 3, options => kmeans_options(init => 'first'), weight => weight)) - 'origin';
END $$;
SELECT relation, fit_by('direct', relation, features, weight) = fit_by('executor', relation, features, weight) AS same
FROM (VALUES ('seen_view', '{first,second}'::text[], NULL), ('seen_view', '{second}', 'first'), ('seen_twice', '{b,a}', NULL)) AS v (relation, features, weight);

-- What only the executor can read.
CREATE VIEW seen_part AS SELECT * FROM seen WHERE a > 3;
CREATE VIEW seen_double AS SELECT a * 2 AS a, b FROM seen;
SET pg_kmeans.scan = auto;
SELECT (kmeans_fit('seen_part', '{a,b}', 3)).n, (kmeans_fit('seen_double', '{a,b}', 3)).n;
SET pg_kmeans.scan = direct;
SELECT (kmeans_fit('seen_part', '{a,b}', 3)).n;
SELECT (kmeans_fit('seen_double', '{a,b}', 3)).n;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT (kmeans_fit('seen', '{a,b}', 3)).n;
ROLLBACK;

RESET pg_kmeans.scan;
SET client_min_messages = warning;
DROP SCHEMA kmeans_scan CASCADE;

-- A direct scan counts in the server's statistics as a sequential scan does. (They are sent off
-- between transactions only.)
CREATE TABLE scan_counted AS SELECT i AS x FROM generate_series(1, 1000) AS i;
DELETE FROM scan_counted WHERE x > 900;
BEGIN;
SELECT pg_stat_get_xact_numscans('scan_counted'::regclass) AS scans, pg_stat_get_xact_tuples_returned('scan_counted'::regclass) AS rows \gset
SELECT (kmeans_fit('scan_counted', '{x}', 2)).n;
SELECT pg_stat_get_xact_numscans('scan_counted'::regclass) - :scans AS scans,
    pg_stat_get_xact_tuples_returned('scan_counted'::regclass) - :rows AS rows;
COMMIT;
DROP TABLE scan_counted;

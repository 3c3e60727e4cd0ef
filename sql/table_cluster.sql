-- kmeans_cluster: labels into the table itself.
CREATE TABLE cluster_points (id integer, x real, y real, w integer DEFAULT 1);
INSERT INTO cluster_points
VALUES (1, 0, 0), (2, 0, 1), (3, 10, 10), (4, 12, 10), (5, 1, 0), (6, NULL, NULL), (7, 10, 12), (8, 1, 1), (9, 12, 12);

-- All or nothing: the column goes with the transaction.
BEGIN;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', features => '{x,y}', k => 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), label_column => 'c'));
SELECT id, c FROM cluster_points ORDER BY id;
ROLLBACK;
SELECT count(*) FROM pg_attribute WHERE attrelid = 'cluster_points'::regclass AND attname = 'c';

-- A column is added once, and only rows whose label changes are written.
CREATE TABLE cluster_log (id integer, label integer);
CREATE FUNCTION cluster_log() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO cluster_log VALUES (new.id, new.cluster_id); RETURN new; END$$;
CREATE TRIGGER log BEFORE UPDATE ON cluster_points FOR EACH ROW EXECUTE FUNCTION cluster_log();
SELECT cluster_id, centroid, size FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}')));
SELECT id, label FROM cluster_log ORDER BY id;
TRUNCATE cluster_log;
SELECT cluster_id, centroid, size FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}')));
SELECT count(*) AS changed FROM cluster_log;
UPDATE cluster_points SET cluster_id = 7 WHERE id IN (6, 7);
UPDATE cluster_points SET cluster_id = -1 WHERE id = 8;
UPDATE cluster_points SET x = 9, y = 9 WHERE id = 2;
UPDATE cluster_points SET x = NULL, y = NULL WHERE id = 3;
TRUNCATE cluster_log;
SELECT cluster_id, centroid, size FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}')));
SELECT id, label FROM cluster_log ORDER BY id;
SELECT id, cluster_id FROM cluster_points ORDER BY id;

-- Rows of weight 0 get no label.
UPDATE cluster_points SET w = 0 WHERE id = 1;
SELECT cluster_id, centroid, size FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), weight => 'w'));
SELECT id, cluster_id FROM cluster_points WHERE cluster_id IS NULL ORDER BY id;
DROP TRIGGER log ON cluster_points;

-- Label columns of other integer types and of any name.
ALTER TABLE cluster_points ADD COLUMN "Lab""el" smallint, ADD COLUMN big bigint DEFAULT 9223372036854775807;
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), label_column => 'Lab"el', overwrite => true));
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), label_column => 'big', overwrite => true));
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), label_column => 'it''s; new'));
SELECT id, "Lab""el", big, "it's; new" FROM cluster_points ORDER BY id;

-- Labels agree with those that kmeans_labels gave before (an UPDATE may reorder the rows);
-- more rows than one batch of updates.
CREATE TABLE cluster_many AS SELECT i AS id, ((i::bigint * 7919) % 100003)::real AS x, ((i::bigint * 104729) % 99991)::real AS y FROM generate_series(1, 200000) AS i;
CREATE TEMP TABLE cluster_many_labels AS
SELECT id, l.cluster_id FROM cluster_many AS t JOIN kmeans_labels('cluster_many', '{x,y}', 9) AS l ON t.ctid = l.row_ctid;
SELECT count(*) AS clusters, sum(size) AS rows FROM kmeans_centroids(kmeans_cluster('cluster_many', '{x,y}', 9));
SELECT count(*), count(*) FILTER (WHERE t.cluster_id = l.cluster_id) AS same
FROM cluster_many AS t JOIN cluster_many_labels AS l USING (id);

-- Partitions, also when the label decides on the partition.
CREATE TABLE cluster_parted (id integer, x real, cluster_id integer) PARTITION BY LIST (cluster_id);
CREATE TABLE cluster_parted_0 PARTITION OF cluster_parted FOR VALUES IN (0);
CREATE TABLE cluster_parted_1 PARTITION OF cluster_parted FOR VALUES IN (1);
CREATE TABLE cluster_parted_new PARTITION OF cluster_parted DEFAULT;
INSERT INTO cluster_parted (id, x, cluster_id) VALUES (1, 0, NULL), (2, 9, NULL), (3, 1, NULL), (4, 8, 0), (5, 1, 0), (6, NULL, 1);
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_parted', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{9}}'), label_column => 'cluster_id', overwrite => true));
SELECT tableoid::regclass, id, cluster_id FROM cluster_parted ORDER BY id;

-- Inside a function, and on a table without rows.
CREATE FUNCTION cluster_twice() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cluster_points (id, x, y) VALUES (100, 11, 11);
    PERFORM kmeans_cluster('cluster_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'));
    RETURN (SELECT cluster_id FROM cluster_points WHERE id = 100);
END$$;
SELECT cluster_twice();
TRUNCATE cluster_points;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2));

-- What cannot be updated.
CREATE VIEW cluster_view AS SELECT * FROM cluster_many;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_view', '{x,y}', 2));
CREATE MATERIALIZED VIEW cluster_matview AS SELECT * FROM cluster_many;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_matview', '{x,y}', 2));
ALTER TABLE cluster_points ADD COLUMN note text;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, label_column => 'note'));
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y,w}', 2, label_column => 'w'));
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, weight => 'w', label_column => 'w'));
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, label_column => 'ctid'));
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, label_column => ''));
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_nowhere', '{x,y}', 2));
BEGIN READ ONLY;
SELECT * FROM kmeans_centroids(kmeans_cluster('cluster_points', '{x,y}', 2, label_column => 'other'));
ROLLBACK;
-- Known before a row is read: the first one is none.
CREATE TABLE cluster_fixed (x real, label integer, computed integer GENERATED ALWAYS AS (1) STORED,
    numbered integer GENERATED ALWAYS AS IDENTITY, granted integer);
INSERT INTO cluster_fixed VALUES ('NaN'), (1);
SELECT (kmeans_cluster('cluster_fixed', '{x}', 2, label_column => 'computed')).k;
SELECT (kmeans_cluster('cluster_fixed', '{x}', 2, label_column => 'numbered')).k;
SELECT gmm_cluster('cluster_fixed', '{x}', 2, label_column => 'numbered');
BEGIN READ ONLY;
SELECT (kmeans_cluster('cluster_fixed', '{x}', 2, label_column => 'label')).k;
ROLLBACK;
BEGIN READ ONLY;
SELECT (gmm_cluster('cluster_fixed', '{x}', 2, label_column => 'label')).k;
ROLLBACK;
CREATE ROLE regress_cluster;
GRANT SELECT, DELETE, UPDATE (granted) ON cluster_fixed TO regress_cluster;
SET ROLE regress_cluster;
SELECT (kmeans_cluster('cluster_fixed', '{x}', 2, label_column => 'label')).k;
SELECT (kmeans_cluster('cluster_fixed', '{x}', 2, label_column => 'granted', overwrite => true)).k;
RESET ROLE;
DELETE FROM cluster_fixed WHERE x = 'NaN';
SET ROLE regress_cluster;
SELECT (kmeans_cluster('cluster_fixed', '{x}', 1, label_column => 'granted', overwrite => true)).k;
RESET ROLE;
SELECT label, granted FROM cluster_fixed;
DROP TABLE cluster_fixed;
DROP ROLE regress_cluster;
-- A temporary table's rows can be written in a read-only transaction.
CREATE TEMPORARY TABLE cluster_own AS SELECT 1::real AS x, 5 AS label;
BEGIN READ ONLY;
SELECT (kmeans_cluster('cluster_own', '{x}', 1, label_column => 'label', overwrite => true)).k;
SELECT label FROM cluster_own;
ROLLBACK;
DROP TABLE cluster_own;
-- The query itself reads the table that shall get a column.
SELECT * FROM cluster_points, kmeans_cluster('cluster_points', '{x,y}', 2, label_column => 'other');

DROP FUNCTION cluster_twice, cluster_log CASCADE;
DROP TABLE cluster_points, cluster_log, cluster_parted;
DROP TABLE cluster_many CASCADE;

-- One UPDATE, also where its triggers cluster another table; its functions serve nobody else.
CREATE TABLE cluster_outer (id integer, x real);
CREATE TABLE cluster_inner (id integer, x real);
INSERT INTO cluster_outer VALUES (1, 0), (2, 10), (3, NULL), (4, 1), (5, 11);
INSERT INTO cluster_inner VALUES (1, 5), (2, 50), (3, 51);
CREATE FUNCTION cluster_nested() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN IF NEW.id = 2 THEN PERFORM kmeans_cluster('cluster_inner', '{x}', 2, options => kmeans_options(init => 'first')); END IF; RETURN NEW; END$$;
CREATE FUNCTION cluster_statement() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE NOTICE 'a statement on %', TG_TABLE_NAME; RETURN NULL; END$$;
CREATE TRIGGER nested BEFORE UPDATE ON cluster_outer FOR EACH ROW EXECUTE FUNCTION cluster_nested();
CREATE TRIGGER statement AFTER UPDATE ON cluster_outer FOR EACH STATEMENT EXECUTE FUNCTION cluster_statement();
SELECT cluster_id, size FROM kmeans_centroids(kmeans_cluster('cluster_outer', '{x}', 2, options => kmeans_options(init => 'first')));
SELECT id, cluster_id FROM cluster_outer ORDER BY id;
SELECT id, cluster_id FROM cluster_inner ORDER BY id;
SELECT cluster_id, size FROM kmeans_centroids(kmeans_cluster('cluster_outer', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{10}}')));
-- nor is anything left of a statement that fails
CREATE OR REPLACE FUNCTION cluster_nested() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$;
SELECT cluster_id, size FROM kmeans_centroids(kmeans_cluster('cluster_outer', '{x}', 2, options => kmeans_options(init_centroids => '{{10},{0}}')));
SELECT pgkm_new_label(NULL, tableoid, ctid) FROM cluster_outer;
SELECT pgkm_keep_label(NULL, tableoid, ctid, 1) FROM cluster_outer;
-- plans that are logged show where to look as a parameter, and its value nowhere (where there is auto_explain)
DO $$BEGIN LOAD 'auto_explain'; EXCEPTION WHEN undefined_file THEN NULL; END$$;
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_nested_statements = on;
SET auto_explain.log_verbose = on;
SELECT (kmeans_cluster('cluster_inner', '{x}', 2, options => kmeans_options(init_centroids => '{{50},{0}}'))).size;
SELECT (kmeans_cluster('cluster_inner', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{50}}'), memory => 'stream')).size;
RESET auto_explain.log_min_duration;
DROP TABLE cluster_outer, cluster_inner;
-- a trigger that skips rows: the fit is told, and the labels that are there are not lost from sight
CREATE TABLE cluster_skipping (id integer, x real, cluster_id integer);
INSERT INTO cluster_skipping SELECT i, i % 2 * 10, NULL FROM generate_series(1, 6) AS i;
CREATE FUNCTION cluster_skip() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN NEW.id > 2 THEN NEW END; END$$;
CREATE TRIGGER skip BEFORE UPDATE ON cluster_skipping FOR EACH ROW EXECUTE FUNCTION cluster_skip();
SELECT (kmeans_cluster('cluster_skipping', '{x}', 2, label_column => 'cluster_id', overwrite => true)).k;
SELECT (kmeans_cluster('cluster_skipping', '{x}', 2, label_column => 'cluster_id', overwrite => true, memory => 'stream')).k;
SELECT (gmm_cluster('cluster_skipping', '{x}', 1, label_column => 'cluster_id', overwrite => true)).k;
SELECT id, cluster_id FROM cluster_skipping ORDER BY id;
DROP TRIGGER skip ON cluster_skipping;
SELECT (kmeans_cluster('cluster_skipping', '{x}', 2, label_column => 'cluster_id', overwrite => true)).k;
DROP TABLE cluster_skipping;
DROP FUNCTION cluster_skip;
-- a rule instead of the statement
CREATE TABLE cluster_ruled (x real, cluster_id integer);
INSERT INTO cluster_ruled VALUES (1), (2);
CREATE RULE cluster_nothing AS ON UPDATE TO cluster_ruled DO INSTEAD NOTHING;
SELECT cluster_id, size FROM kmeans_centroids(kmeans_cluster('cluster_ruled', '{x}', 2, label_column => 'cluster_id', overwrite => true));
DROP TABLE cluster_ruled;
DROP FUNCTION cluster_nested, cluster_statement;

-- Old labels and weights wherever they lie in a tuple, or not: both roads write the same labels, and those that change alone.
CREATE TABLE cluster_places (early smallint, id integer, x real, y real, note text, w numeric, late bigint) WITH (parallel_workers = 2);
INSERT INTO cluster_places
SELECT CASE WHEN i % 5 <> 0 THEN i % 4 END, i, i % 17, i % 19, CASE WHEN i % 7 = 0 THEN repeat('n', i % 9) END,
       CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN 0 ELSE i % 3 + 0.5 END,
       CASE WHEN i % 6 = 0 THEN -1 WHEN i % 6 = 1 THEN 5000000000 ELSE i % 3 END
FROM generate_series(1, 3000) AS i;
ALTER TABLE cluster_places ADD COLUMN added integer, ADD COLUMN given integer DEFAULT 1, ADD COLUMN x2 real;
INSERT INTO cluster_places SELECT 1, i, i % 17, i % 19, NULL, 1, 2, i % 3, nullif(i % 3, 2), 1 FROM generate_series(3001, 4000) AS i;
CREATE FUNCTION cluster_places_by(road text, workers integer, weight text, label text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    PERFORM set_config('pg_kmeans.scan', road, true), set_config('max_parallel_workers_per_gather', workers::text, true),
            set_config('min_parallel_table_scan_size', '0', true);
    CREATE TEMP TABLE before AS SELECT id, ctid AS place FROM cluster_places;
    PERFORM kmeans_cluster('cluster_places', '{x,y}', 3, options => kmeans_options(init => 'first'), weight => weight, label_column => label, overwrite => true);
    EXECUTE format('SELECT count(*) FILTER (WHERE place <> t.ctid) || '' written, '' || count(%1$I) || '' labels, '' ||
        md5(string_agg(id || coalesce(%1$I::text, ''none''), '','' ORDER BY id)) FROM cluster_places AS t JOIN before USING (id)', label) INTO result;
    RAISE '%', result;
EXCEPTION WHEN raise_exception THEN
    RETURN SQLERRM;
END$$;
SELECT label, weight, cluster_places_by('executor', 0, weight, label) AS expected,
    cluster_places_by('direct', 0, weight, label) = cluster_places_by('executor', 0, weight, label) AS alone_same,
    cluster_places_by('direct', 2, weight, label) = cluster_places_by('executor', 0, weight, label) AS workers_same
FROM unnest('{early,late,added,given,new}'::text[]) AS label, unnest('{NULL,w}'::text[]) AS weight;
-- bad weights are told of as ever
SET max_parallel_workers_per_gather = 0;
TRUNCATE cluster_places;
INSERT INTO cluster_places VALUES (1, 0, 1, 1, NULL, 'NaN');
SELECT (kmeans_cluster('cluster_places', '{x,y}', 3, weight => 'w', label_column => 'late', overwrite => true)).k;
UPDATE cluster_places SET w = -1 WHERE id = 0;
SELECT (kmeans_cluster('cluster_places', '{x,y}', 3, weight => 'w', label_column => 'late', overwrite => true)).k;
DROP TABLE cluster_places;
RESET max_parallel_workers_per_gather;
DROP FUNCTION cluster_places_by;

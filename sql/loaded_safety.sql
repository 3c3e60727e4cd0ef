-- Loaded rows are used where they are still what they are taken for, and by those whose they are.
CREATE TABLE kept_rows (id integer, x real);
INSERT INTO kept_rows SELECT i, i FROM generate_series(1, 2000) AS i;

-- The places of rows that were loaded mean nothing once the table has another file. Fits do not need places.
CREATE PROCEDURE kept_try(change text, relation text DEFAULT 'kept_rows') LANGUAGE plpgsql AS $$
DECLARE
    said text := 'labels';
BEGIN
    PERFORM kmeans_load(relation, '{x}');
    EXECUTE change;
    BEGIN
        PERFORM kmeans_labels(relation, '{x}', 2, memory => 'loaded');
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        said := SQLERRM;
    END;
    RAISE NOTICE '% -> %, a fit of % rows', change, said, (kmeans_fit(relation, '{x}', 2, memory => 'loaded')).n;
END$$;
CALL kept_try('SELECT');
CALL kept_try('DELETE FROM kept_rows WHERE id % 2 = 0');
CALL kept_try('ALTER TABLE kept_rows ADD COLUMN note text');
CALL kept_try('CREATE INDEX kept_index ON kept_rows (x DESC)');
CALL kept_try('CLUSTER kept_rows USING kept_index');
CALL kept_try('ALTER TABLE kept_rows ALTER x TYPE float8');
CALL kept_try('ALTER TABLE kept_rows SET UNLOGGED');
CALL kept_try('TRUNCATE kept_rows');
INSERT INTO kept_rows SELECT i, i FROM generate_series(1, 2000) AS i;
DELETE FROM kept_rows WHERE id <= 500;
SELECT kmeans_load('kept_rows', '{x}');
VACUUM FULL kept_rows;
SELECT * FROM kmeans_labels('kept_rows', '{x}', 2, memory => 'loaded');
-- What a rollback takes back, too.
BEGIN;
TRUNCATE kept_rows;
INSERT INTO kept_rows VALUES (1, 1), (2, 2);
SELECT kmeans_load('kept_rows', '{x}');
SELECT count(*) FROM kmeans_labels('kept_rows', '{x}', 2, memory => 'loaded');
ROLLBACK;
SELECT count(*) FROM kmeans_labels('kept_rows', '{x}', 2, memory => 'loaded');
SELECT kmeans_load('kept_rows', '{x}');
SELECT count(*) FROM kmeans_labels('kept_rows', '{x}', 2, memory => 'loaded');
-- Of partitions each one counts, also one that is gone.
CREATE TABLE kept_parts (id integer, x real) PARTITION BY LIST (id);
CREATE TABLE kept_part_1 PARTITION OF kept_parts FOR VALUES IN (1);
CREATE TABLE kept_part_2 PARTITION OF kept_parts FOR VALUES IN (2);
CREATE TABLE kept_part_3 PARTITION OF kept_parts FOR VALUES IN (3);
INSERT INTO kept_parts VALUES (1, 1), (2, 2), (2, 3);
CALL kept_try('TRUNCATE kept_part_3', 'kept_parts');
CALL kept_try('CREATE TABLE kept_part_4 PARTITION OF kept_parts FOR VALUES IN (4)', 'kept_parts');
CALL kept_try('ALTER TABLE kept_parts DETACH PARTITION kept_part_1', 'kept_parts');
CALL kept_try('ALTER TABLE kept_parts ALTER x TYPE float8', 'kept_parts');
CALL kept_try('DROP TABLE kept_part_2', 'kept_parts');
CREATE MATERIALIZED VIEW kept_view AS SELECT * FROM kept_rows;
CALL kept_try('REFRESH MATERIALIZED VIEW kept_view', 'kept_view');
SELECT kmeans_unload() > 0 AS unloaded;

-- Other roles' loads are neither shown nor given back, but for roles that one is a member of.
CREATE ROLE regress_kept_a;
CREATE ROLE regress_kept_b;
CREATE ROLE regress_kept_all NOINHERIT;
GRANT regress_kept_a, regress_kept_b TO regress_kept_all;
GRANT SELECT ON kept_rows TO regress_kept_a, regress_kept_b;
SELECT kmeans_load('kept_rows', '{x}');
SET ROLE regress_kept_a;
SELECT kmeans_load('kept_rows', '{x}');
SELECT count(*) FROM kmeans_loaded();
SET ROLE regress_kept_b;
SELECT kmeans_load('kept_rows', '{id}'), kmeans_load('kept_rows', '{id,x}');
SELECT features FROM kmeans_loaded() ORDER BY features;
SELECT kmeans_unload('kept_rows', '{x}') AS one, kmeans_unload('kept_rows', '{id}') AS own, kmeans_unload('kept_rows') AS rest, kmeans_unload() AS everything;
SELECT kmeans_load('kept_rows', '{id}');
SET ROLE regress_kept_all;
SELECT features FROM kmeans_loaded() ORDER BY features;
SELECT kmeans_fit('kept_rows', '{x}', 2, memory => 'loaded');
SELECT kmeans_unload('kept_rows', '{x}') AS one, kmeans_unload() AS rest;
RESET ROLE;
SELECT features FROM kmeans_loaded();
SELECT (kmeans_fit('kept_rows', '{x}', 2, memory => 'loaded')).n;
SELECT kmeans_unload();

-- A view whose function loads that view, once: one load of the name remains, the outer one.
CREATE SEQUENCE kept_depth;
CREATE FUNCTION kept_self() RETURNS real LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('kept_depth') <= 3 THEN
        PERFORM kmeans_load('kept_loop', '{x}');
    END IF;
    RETURN 1;
END$$;
CREATE VIEW kept_loop AS SELECT kept_self() AS x;
SELECT kmeans_load('kept_loop', '{x}');
SELECT relation, features, n FROM kmeans_loaded();
SELECT kmeans_unload('kept_loop', '{x}'), kmeans_unload();

DROP VIEW kept_loop;
DROP FUNCTION kept_self;
DROP SEQUENCE kept_depth;
DROP PROCEDURE kept_try;
DROP TABLE kept_rows, kept_parts, kept_part_1 CASCADE;
DROP ROLE regress_kept_a, regress_kept_b, regress_kept_all;

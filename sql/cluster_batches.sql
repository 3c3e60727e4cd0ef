-- kmeans_cluster_batches: the labels of kmeans_cluster, each batch in a transaction of its own.
CREATE TABLE batched_rows AS
SELECT i AS id, i % 7 + sin(i) AS x, (i * i % 11)::real AS y, ARRAY[cos(i), i % 5, sin(i * 3)]::real[] AS f, i % 4 AS w,
    'level ' || i % 3 AS kind, nullif(i % 6, 0) AS gap, CASE WHEN i % 9 > 0 THEN i % 9 END AS gap_2, NULL::bigint AS whole, NULL::smallint AS batched
FROM generate_series(1, 500) AS i;

-- As one: labels and model. A second call finds nothing to write.
CREATE PROCEDURE batch_compare(relation regclass, features text[], k bigint, options kmeans_options DEFAULT NULL, weight text DEFAULT NULL,
    nulls text DEFAULT 'error', filter text DEFAULT NULL, memory text DEFAULT 'auto', batch_rows integer DEFAULT 7,
    INOUT written bigint DEFAULT NULL, INOUT again bigint DEFAULT NULL, INOUT labelled bigint DEFAULT NULL, INOUT differ bigint DEFAULT NULL, INOUT same_model boolean DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    m kmeans_model;
    n kmeans_model;
    ignored kmeans_model;
BEGIN
    EXECUTE format('UPDATE %s SET whole = 99, batched = 99', relation);
    n := kmeans_cluster(relation, features, k, options, weight, nulls, filter, memory, 'whole', true);
    CALL kmeans_cluster_batches(relation, features, k, options, weight, nulls, filter, memory, 'batched', true, batch_rows, m, written);
    CALL kmeans_cluster_batches(relation, features, k, options, weight, nulls, filter, memory, 'batched', true, batch_rows, ignored, again);
    EXECUTE format('SELECT count(batched), count(*) FILTER (WHERE batched IS DISTINCT FROM whole) FROM %s', relation) INTO labelled, differ;
    same_model := to_jsonb(m) - 'origin' = to_jsonb(n) - 'origin' OR (m IS NULL AND n IS NULL);
END $$;
CALL batch_compare('batched_rows', '{x,y}', 6);
CALL batch_compare('batched_rows', '{f}', 6, batch_rows => 1);
CALL batch_compare('batched_rows', '{x,y}', 6, batch_rows => 2147483647);
CALL batch_compare('batched_rows', '{x,y}', 6, batch_rows => NULL);
CALL batch_compare('batched_rows', '{f}', 5, kmeans_options(metric => 'cosine'));
CALL batch_compare('batched_rows', '{x,y}', 4, kmeans_options(standardize => true, n_init => 3, max_iter => 2));
CALL batch_compare('batched_rows', '{x,y}', 6, memory => 'stream');
CALL batch_compare('batched_rows', '{x,y}', 4, kmeans_options(batch_size => 50));
CALL batch_compare('batched_rows', '{x,y}', 2, kmeans_options(max_radius => 3));
CALL batch_compare('batched_rows', '{y}', 3, kmeans_options(init => 'optimal'));
CALL batch_compare('batched_rows', '{x,y}', 4, weight => 'w');
CALL batch_compare('batched_rows', '{x,y}', 4, filter => $$kind <> 'level 1' -- and so on$$);
CALL batch_compare('batched_rows', '{gap,gap_2}', 4, nulls => 'skip');
CALL batch_compare('batched_rows', '{gap,gap_2}', 4, nulls => 'mean');
CALL batch_compare('batched_rows', '{x,kind}', 4);
CALL batch_compare('batched_rows', '{x,"y * 2 + x","kind || ''!''"}', 4);
CREATE TABLE batch_none (LIKE batched_rows);
CALL batch_compare('batch_none', '{x}', 2);
INSERT INTO batch_none (id) VALUES (1), (2);
CALL batch_compare('batch_none', '{x}', 2);

-- Tables below the relation, some without rows; also where the label says which table has the row.
CREATE TABLE batch_parts (LIKE batched_rows) PARTITION BY LIST (w);
CREATE TABLE batch_part_01 PARTITION OF batch_parts FOR VALUES IN (0, 1);
CREATE TABLE batch_part_2 PARTITION OF batch_parts FOR VALUES IN (2);
CREATE TABLE batch_part_3 PARTITION OF batch_parts FOR VALUES IN (3, NULL) PARTITION BY RANGE (batched);
CREATE TABLE batch_part_3_0 PARTITION OF batch_part_3 FOR VALUES FROM (0) TO (2);
CREATE TABLE batch_part_3_n PARTITION OF batch_part_3 DEFAULT;
CREATE TABLE batch_part_4 PARTITION OF batch_parts FOR VALUES IN (4);
INSERT INTO batch_parts SELECT * FROM batched_rows;
CALL batch_compare('batch_parts', '{x,y}', 6);
SELECT tableoid::regclass::text, count(*), min(batched), max(batched) FROM batch_parts GROUP BY 1 ORDER BY 1;
CREATE TABLE batch_child () INHERITS (batch_none);
INSERT INTO batch_child SELECT * FROM batched_rows;
CALL batch_compare('batch_none', '{x,y}', 6);

-- No transaction holds more than a batch, and rows that have their label stay as they are.
CREATE TABLE batch_sizes AS SELECT i AS id, (i / 250)::real AS x FROM generate_series(0, 999) AS i;
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, batch_rows => 100) \gset
SELECT :rows_written AS written, (:'model'::kmeans_model).k, count(DISTINCT xmin::text) >= 10 AS apart, (SELECT max(count) <= 100 FROM (SELECT count(*) FROM batch_sizes GROUP BY xmin::text) AS sizes) AS small,
    count(DISTINCT cluster_id) AS labels
FROM batch_sizes;
SELECT col_description('batch_sizes'::regclass, 3);
SELECT max(xmin::text::bigint) AS last FROM batch_sizes \gset
UPDATE batch_sizes SET cluster_id = NULL WHERE id < 5;
INSERT INTO batch_sizes VALUES (-1, 'NaN');
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, filter => 'id >= 0', batch_rows => 2) \gset
SELECT :rows_written AS written, count(*) FILTER (WHERE xmin::text::bigint > :last) AS touched FROM batch_sizes WHERE id >= 0;
SELECT function, n, k FROM kmeans_last_run();

-- Whatever isolation is usual here.
SET default_transaction_isolation = 'serializable';
UPDATE batch_sizes SET cluster_id = NULL;
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, filter => 'id >= 0', batch_rows => 300) \gset
SELECT :rows_written AS written;
RESET default_transaction_isolation;

-- It commits, so it cannot run where that is not possible.
BEGIN;
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4);
ROLLBACK;
CREATE FUNCTION batch_function() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    m kmeans_model;
    n bigint;
BEGIN
    CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, model => m, rows_written => n);
END $$;
SELECT batch_function();
DO $$
DECLARE
    m kmeans_model;
    n bigint;
BEGIN
    CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, filter => 'id > 0', model => m, rows_written => n);
    RAISE NOTICE '% clusters, % rows', m.k, n;
    BEGIN
        CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, model => m, rows_written => n);
    EXCEPTION WHEN invalid_transaction_termination THEN
        RAISE NOTICE '%', SQLERRM;
    END;
END $$;

-- Bad input: nothing is read, nor written.
\set VERBOSITY terse
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, batch_rows => 0);
CALL kmeans_cluster_batches('batch_sizes', '{x}', NULL);
CALL kmeans_cluster_batches(NULL, '{x}', 4);
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, label_column => '');
CALL kmeans_cluster_batches('batch_sizes', '{x,cluster_id}', 4);
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, filter => 'cluster_id > 0');
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, label_column => 'id');
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, options => kmeans_options(min_size => 2));
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, options => kmeans_options(max_size => 500));
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, filter => 'random() < 0.5');
CALL kmeans_cluster_batches('batch_sizes', '{"x + 1"}', 4, nulls => 'skip');
CALL kmeans_cluster_batches('batch_sizes', '{x}', 4, memory => 'loaded');
CALL kmeans_cluster_batches('batch_sizes', '{x,id}', 4, label_column => 'note');
CREATE VIEW batch_view AS SELECT * FROM batch_sizes;
CALL kmeans_cluster_batches('batch_view', '{x}', 4);
CREATE TABLE batch_key AS SELECT x, id FROM batch_sizes WHERE id >= 0;
ALTER TABLE batch_key ADD PRIMARY KEY (id);
CALL kmeans_cluster_batches('batch_key', '{x}', 4, label_column => 'id', overwrite => true);
SET default_transaction_read_only = on;
CALL kmeans_cluster_batches('batch_key', '{x}', 4);
RESET default_transaction_read_only;
\set VERBOSITY default

-- A trigger that keeps rows: they are told, and do not keep it going.
CREATE FUNCTION batch_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN NEW.id % 10 > 0 THEN NEW END; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON batch_key FOR EACH ROW EXECUTE FUNCTION batch_keep();
CALL kmeans_cluster_batches('batch_key', '{x}', 4, batch_rows => 1000) \gset
SELECT :rows_written AS written, count(cluster_id) FROM batch_key;
UPDATE batch_key SET cluster_id = NULL;
CALL kmeans_cluster_batches('batch_key', '{x}', 4, batch_rows => 15) \gset
SELECT count(cluster_id) = :rows_written AS counted FROM batch_key;
DROP TRIGGER keep ON batch_key;
CREATE RULE other AS ON UPDATE TO batch_key DO INSTEAD NOTHING;
CALL kmeans_cluster_batches('batch_key', '{x}', 3) \gset
DROP RULE other ON batch_key;

-- A trigger that fails ends it; what was committed stays.
CREATE FUNCTION batch_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 700 THEN RAISE 'no label for %', NEW.id; END IF; RETURN NEW; END $$;
CREATE TABLE batch_fresh AS SELECT * FROM batch_sizes ORDER BY id;
CREATE TRIGGER fail BEFORE UPDATE ON batch_fresh FOR EACH ROW EXECUTE FUNCTION batch_fail();
\set VERBOSITY terse
CALL kmeans_cluster_batches('batch_fresh', '{x}', 4, filter => 'id >= 0', label_column => 'label', batch_rows => 100);
\set VERBOSITY default
SELECT count(label) BETWEEN 1 AND 999 AS some, count(label) FILTER (WHERE id = 700) AS failed FROM batch_fresh;
DROP TRIGGER fail ON batch_fresh;

-- Privileges as of kmeans_cluster. Rows that policies hide, or let nobody update, get no label.
CREATE ROLE batch_user;
GRANT SELECT ON batch_key TO batch_user;
ALTER TABLE batch_key ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON batch_key FOR SELECT USING (id < 600);
CREATE POLICY written ON batch_key FOR UPDATE USING (id < 500);
UPDATE batch_key SET cluster_id = NULL;
SET ROLE batch_user;
CALL kmeans_cluster_batches('batch_key', '{x}', 4);
RESET ROLE;
GRANT UPDATE (cluster_id) ON batch_key TO batch_user;
SET ROLE batch_user;
CALL kmeans_cluster_batches('batch_key', '{x}', 3, batch_rows => 100) \gset
RESET ROLE;
SELECT :rows_written AS written, count(cluster_id), count(cluster_id) FILTER (WHERE id < 500) AS allowed FROM batch_key;
ALTER TABLE batch_key DROP cluster_id;
SET ROLE batch_user;
CALL kmeans_cluster_batches('batch_key', '{x}', 3);
RESET ROLE;
REVOKE SELECT ON batch_key FROM batch_user;
GRANT SELECT (id, x), UPDATE ON batch_key TO batch_user;
SET ROLE batch_user;
CALL kmeans_cluster_batches('batch_key', '{x}', 3);
RESET ROLE;

-- The names of functions and operators are ours, whatever the path.
CREATE SCHEMA batch_other;
CREATE FUNCTION batch_other.never(integer, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE OPERATOR batch_other.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = batch_other.never);
CREATE OPERATOR batch_other.> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = batch_other.never);
SET search_path = batch_other, pg_catalog, public;
CALL public.kmeans_cluster_batches('batch_key', '{x}', 4, batch_rows => 100) \gset
RESET search_path;
SELECT :rows_written AS written;
DROP OWNED BY batch_user;
DROP ROLE batch_user;

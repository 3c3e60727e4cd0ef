-- Rows in TOAST tables. Beside each table stands one with the same rows in the same order whose values lie in its own
-- pages: both must give the same model and labels, by the direct scan, the executor and the aggregate.
SET client_min_messages = error; -- fits that max_iter ends
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION numbers(v int, d int) RETURNS real[] IMMUTABLE LANGUAGE sql RETURN (SELECT array_agg(sin(v * j + j * 0.01)::real ORDER BY j) FROM generate_series(1, d) AS j);
-- as many bytes, of which most can be saved
CREATE FUNCTION repeats(v int, d int) RETURNS real[] IMMUTABLE LANGUAGE sql RETURN (SELECT array_agg(((v + j / 40) % 5)::real ORDER BY j) FROM generate_series(1, d) AS j);
CREATE FUNCTION answers(relation text, way text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    model kmeans_model;
    labels text;
BEGIN
    PERFORM set_config('pg_kmeans.scan', way, true);
    model := kmeans_fit(relation, '{f}', 3, options => kmeans_options(init => 'first', max_iter => 4));
    SELECT string_agg(cluster_id || ' ' || distance, ',' ORDER BY cluster_id, distance) FROM kmeans_labels(relation, '{f}', 3, options => kmeans_options(init => 'first', max_iter => 4)) INTO labels;
    model.origin := NULL; -- names the relation
    RETURN md5(model::text || labels);
END$$;
CREATE FUNCTION aggregated(relation text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    model kmeans_model;
BEGIN
    EXECUTE format('SELECT m.* FROM (SELECT (kmeans(f, 3, kmeans_options(init => ''first'', max_iter => 4))).* FROM %I) AS m', relation) INTO model;
    model.origin := NULL;
    RETURN md5(model::text);
END$$;
-- The rows of `relation` in the order of a scan, each in a page of its own.
CREATE FUNCTION agrees(relation text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    outside bigint;
BEGIN
    DROP TABLE IF EXISTS inline_rows;
    EXECUTE format('CREATE TABLE inline_rows WITH (fillfactor = 10) AS SELECT f FROM %I WHERE false', relation);
    ALTER TABLE inline_rows ALTER f SET STORAGE plain;
    EXECUTE format('INSERT INTO inline_rows SELECT CASE WHEN f IS NOT NULL THEN f || f[2:1] END FROM %I', relation); -- not compressed
    EXECUTE format('SELECT count(*) FROM %I WHERE pg_column_size(f) > 2000', relation) INTO outside;
    RETURN format('%s wide, direct %s, executor %s, aggregate %s', outside, answers(relation, 'direct') = answers('inline_rows', 'executor'),
        answers(relation, 'executor') = answers('inline_rows', 'direct'), aggregated(relation) = aggregated('inline_rows'));
END$$;

-- chunks: a whole number of them, one more, less than two
CREATE TABLE outside (id int, f real[]);
ALTER TABLE outside ALTER f SET STORAGE external;
INSERT INTO outside SELECT i, numbers(i, 1491) FROM generate_series(1, 40) AS i;
SELECT d, agrees('outside') FROM (VALUES (1491)) AS v (d);
TRUNCATE outside;
INSERT INTO outside SELECT i, numbers(i, 1492) FROM generate_series(1, 40) AS i;
SELECT d, agrees('outside') FROM (VALUES (1492)) AS v (d);
TRUNCATE outside;
INSERT INTO outside SELECT i, numbers(i, 510) FROM generate_series(1, 90) AS i;
SELECT d, agrees('outside') FROM (VALUES (510)) AS v (d);
TRUNCATE outside;
INSERT INTO outside SELECT i, numbers(i, 1536) FROM generate_series(1, 60) AS i;
SELECT d, agrees('outside') FROM (VALUES (1536)) AS v (d);

-- rows in another order than their values, dead versions, rows that were rolled back, and space used again
UPDATE outside SET id = -id WHERE id % 3 = 0;
SELECT agrees('outside') AS moved;
UPDATE outside SET f = numbers(id + 7, 1536) WHERE id % 4 = 0;
DELETE FROM outside WHERE id % 7 = 3;
SELECT agrees('outside') AS dead;
BEGIN;
INSERT INTO outside SELECT i, numbers(i * 3, 1536) FROM generate_series(100, 130) AS i;
UPDATE outside SET f = numbers(id + 9, 1536);
SELECT agrees('outside') AS own;
ROLLBACK;
INSERT INTO outside SELECT i, numbers(i, 1536) FROM generate_series(200, 215) AS i;
SELECT agrees('outside') AS rolled_back;
VACUUM outside;
INSERT INTO outside SELECT i, numbers(i, 1536) FROM generate_series(300, 340) AS i;
UPDATE outside SET id = id + 1 WHERE id % 2 = 0;
SELECT agrees('outside') AS used_again;
VACUUM FULL outside;
SELECT agrees('outside') AS rewritten;

-- a snapshot from before an update by the same transaction
SELECT md5(string_agg(cluster_id || ' ' || distance, ',' ORDER BY row_ctid)) AS before FROM kmeans_labels('outside', '{f}', 3, options => kmeans_options(init => 'first')) \gset
BEGIN;
DECLARE early CURSOR FOR SELECT md5(string_agg(cluster_id || ' ' || distance, ',' ORDER BY row_ctid)) = :'before' AS as_before FROM kmeans_labels('outside', '{f}', 3, options => kmeans_options(init => 'first'));
UPDATE outside SET f = numbers(id, 1536);
FETCH early;
ROLLBACK;

-- compressed, out of line and not; a plain one among them
CREATE TABLE mixed (f real[]);
INSERT INTO mixed SELECT repeats(i, 1800) FROM generate_series(1, 20) AS i;
ALTER TABLE mixed ALTER f SET STORAGE external;
INSERT INTO mixed SELECT numbers(i, 1800) FROM generate_series(1, 20) AS i;
ALTER TABLE mixed ALTER f SET STORAGE extended;
INSERT INTO mixed SELECT repeats(i, 900) || numbers(i, 900) FROM generate_series(1, 20) AS i;
ALTER TABLE mixed ALTER f SET STORAGE main;
INSERT INTO mixed SELECT repeats(i, 1500) || numbers(i, 300) FROM generate_series(1, 5) AS i;
ALTER TABLE mixed ALTER f SET STORAGE plain;
INSERT INTO mixed SELECT numbers(i, 1800) FROM generate_series(40, 43) AS i;
INSERT INTO mixed VALUES (NULL), (array_fill(NULL::real, ARRAY[1800]));
SELECT agrees('mixed');
SELECT count(*), count(pg_column_compression(f)), count(*) FILTER (WHERE pg_column_size(f) > 7200) > 20 AS plain FROM mixed;
-- by the other method, where the server has it
DO $$
BEGIN
    ALTER TABLE mixed ALTER f SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END$$;
ALTER TABLE mixed ALTER f SET STORAGE extended;
INSERT INTO mixed SELECT repeats(i, 900) || numbers(i, 900) FROM generate_series(1, 20) AS i;
INSERT INTO mixed SELECT repeats(i, 1800) FROM generate_series(1, 20) AS i;
SELECT agrees('mixed');

-- other columns in the same TOAST table, before, after and absent; other types; weights; children
CREATE TABLE documents (note text, gone int, f float8[], more text, w float8);
ALTER TABLE documents ALTER note SET STORAGE external, ALTER more SET STORAGE external, ALTER f SET STORAGE external;
ALTER TABLE documents DROP gone;
INSERT INTO documents SELECT repeat(i::text, i * 300), numbers(i, 850)::float8[], CASE WHEN i % 3 > 0 THEN repeat('m', i * 40) END, i % 4 FROM generate_series(1, 50) AS i;
INSERT INTO documents SELECT NULL, numbers(i, 850)::float8[], repeat('m', i * 300), 1 FROM generate_series(1, 30) AS i;
ALTER TABLE documents ADD late int DEFAULT 5;
SELECT agrees('documents');
SELECT set_config('pg_kmeans.scan', way, false), md5(kmeans_fit('documents', '{f}', 3, weight => 'w', options => kmeans_options(seed => 2))::text) = first_value(md5(kmeans_fit('documents', '{f}', 3, weight => 'w', options => kmeans_options(seed => 2))::text)) OVER (ORDER BY way) AS same
FROM (VALUES ('direct'), ('executor')) AS v (way);
RESET pg_kmeans.scan;
CREATE TABLE parts (id int, f int2[]) PARTITION BY LIST (id);
CREATE TABLE part_0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2);
ALTER TABLE part_0 ALTER f SET STORAGE external;
ALTER TABLE part_2 ALTER f SET STORAGE external;
INSERT INTO parts SELECT i % 3, (SELECT array_agg(i * j % 1000 ORDER BY j) FROM generate_series(1, 1100) AS j) FROM generate_series(1, 60) AS i;
SELECT agrees('parts');
CREATE TEMPORARY TABLE own (f numeric[]);
ALTER TABLE own ALTER f SET STORAGE external;
INSERT INTO own SELECT (SELECT array_agg((i * j % 1000) * 0.5 ORDER BY j) FROM generate_series(1, 500) AS j) FROM generate_series(1, 30) AS i;
SELECT agrees('own');

-- what is wrong with a row, and where it lies
CREATE FUNCTION outcomes(bad real[]) RETURNS TABLE (way text, outcome text) LANGUAGE plpgsql AS $$
DECLARE
    query text;
BEGIN
    DELETE FROM outside WHERE id = 0;
    INSERT INTO outside VALUES (0, bad);
    FOREACH way IN ARRAY '{direct,executor,aggregate}'::text[] LOOP
        query := CASE way WHEN 'aggregate' THEN 'SELECT kmeans(f, 2) FROM outside' ELSE 'SELECT kmeans_fit(''outside'', ''{f}'', 2) FROM (SELECT 1) AS one' END;
        PERFORM set_config('pg_kmeans.scan', CASE way WHEN 'aggregate' THEN 'auto' ELSE way END, true);
        BEGIN
            EXECUTE query;
            outcome := 'none';
        EXCEPTION WHEN OTHERS THEN
            outcome := SQLSTATE || ' ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END$$;
SELECT v.fault, o.* FROM (VALUES ('NULL', numbers(1, 999) || NULL::real || numbers(1, 536)), ('NaN', numbers(1, 1400) || 'NaN'::real || numbers(1, 135)), ('longer', numbers(1, 1537)), ('shorter', numbers(1, 1000)),
    ('inline', numbers(1, 3)), ('infinite', 'Infinity'::real || numbers(1, 1535)), ('two dimensions', array_fill(1::real, ARRAY[768, 2]))) AS v (fault, bad), LATERAL outcomes(bad) AS o;
DELETE FROM outside WHERE id = 0;

DROP TABLE own, parts, documents, mixed, outside, inline_rows;
DROP FUNCTION outcomes, agrees, aggregated, answers, repeats, numbers;

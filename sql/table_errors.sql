-- What the table functions refuse, and how.
\set SHOW_CONTEXT never
CREATE TABLE error_points (x real, y double precision, n numeric, f real[], g double precision[], t text, o oid, p point, a text[], w real);
INSERT INTO error_points VALUES (1, 2, 3, '{1,2}', '{1,2}', 'a', 1, '(1,2)', '{b}', 1);

-- Relations.
SELECT kmeans_fit('no_such_table', '{x}', 1);
SELECT kmeans_fit('', '{x}', 1);
SELECT kmeans_fit('error_points; DROP TABLE error_points', '{x}', 1);
SELECT kmeans_fit('a.b.c.d', '{x}', 1);
SELECT kmeans_fit('no_such_database.public.error_points', '{x}', 1);
CREATE SEQUENCE error_sequence;
CREATE INDEX error_index ON error_points (x);
CREATE TYPE error_type AS (x real);
SELECT kmeans_fit('error_sequence', '{last_value}', 1);
SELECT kmeans_fit('error_index', '{x}', 1);
SELECT kmeans_fit('error_type', '{x}', 1);
SELECT kmeans_fit(NULL, '{x}', 1);

-- Columns.
SELECT kmeans_fit('error_points', '{nowhere}', 1);
SELECT kmeans_fit('error_points', '{x,X}', 1);
SELECT kmeans_fit('error_points', '{x,y,x}', 1);
SELECT kmeans_fit('error_points', '{f,f}', 1);
SELECT (kmeans_fit('error_points', ARRAY['x * 2'], 1)).centroids;
SELECT (kmeans_fit('error_points', '{x}', 1, filter => 'x > 0')).n;
SELECT kmeans_fit('error_points', '{x}', 1, weight => 'y + 1');
SELECT (kmeans_fit('error_points', '{x}', 2, options => kmeans_options(init_model => kmeans_fit('error_points', '{x}', 1)))).k;
-- Types that are features, by what they become, and those that are not: the view that each hint tells of can be fitted.
CREATE TYPE error_geometry AS ENUM ('a');
CREATE TYPE geometry AS (x double precision, y double precision);
CREATE FUNCTION st_x(geometry) RETURNS double precision LANGUAGE sql IMMUTABLE RETURN $1.x;
CREATE TABLE error_types AS SELECT '1.5'::text AS "A text", 'x'::varchar AS v, date '2026-01-01' AS day, timestamptz '2026-01-01' AS at, interval '1 day' AS span, 3::money AS price,
    '{"key": 1}'::jsonb AS j, '{"key": 1}'::json AS js, point '(1,2)' AS p, '\x00'::bytea AS bytes, 'a'::error_geometry AS e, ARRAY['a'] AS texts, ROW(5, 6)::geometry AS shape, timetz '06:00+02' AS zoned;
DO $$
DECLARE
    name text; hint text; m kmeans_model;
BEGIN
    FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'error_types'::regclass AND attnum > 0 ORDER BY attnum LOOP
        BEGIN
            m := kmeans_fit('error_types', ARRAY[name], 1);
            RAISE NOTICE '%: % %', name, m.centroids, (m.origin).sources;
        EXCEPTION WHEN datatype_mismatch THEN
            GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
            RAISE NOTICE '% -> % (%)', name, SQLERRM, hint;
            CONTINUE WHEN hint = '';
            EXECUTE format('CREATE VIEW error_number AS SELECT %s AS number FROM error_types', substring(hint FROM 'view, as (.*), and name'));
            m := kmeans_fit('error_number', '{number}', 1);
            RAISE NOTICE '    %', m.centroids;
            DROP VIEW error_number;
        END;
    END LOOP;
END $$;
DROP TABLE error_types;
DROP FUNCTION st_x;
DROP TYPE geometry, error_geometry;
SELECT kmeans_fit('error_points', ARRAY['x, y'], 1);
SELECT kmeans_fit('error_points', ARRAY['(SELECT 1)'], 1);
SELECT (kmeans_fit('error_points', ARRAY['*'], 1)).centroids;
SELECT m.centroids, (m.origin).sources FROM kmeans_fit('error_points', '{t}', 1) AS m;
SELECT kmeans_fit('error_points', '{x,o}', 1);
SELECT kmeans_fit('error_points', '{p}', 1);
SELECT kmeans_fit('error_points', '{a}', 1);
SELECT kmeans_fit('error_points', '{ctid}', 1);
SELECT kmeans_fit('error_points', '{tableoid}', 1);
SELECT kmeans_fit('error_points', '{x,f}', 1);
SELECT kmeans_fit('error_points', '{f,g}', 1);
SELECT kmeans_fit('error_points', '{}', 1);
SELECT kmeans_fit('error_points', '{{x},{y}}', 1);
SELECT kmeans_fit('error_points', '{x,NULL}', 1);
SELECT kmeans_fit('error_points', ARRAY[''], 1);
SELECT kmeans_fit('error_points', NULL, 1);
SELECT kmeans_fit('error_points', '{x}', 1, weight => 'nowhere');
SELECT kmeans_fit('error_points', '{x}', 1, weight => 'f');
SELECT kmeans_fit('error_points', '{x}', 1, weight => 't');
ALTER TABLE error_points DROP COLUMN p;
SELECT kmeans_fit('error_points', '{p}', 1);
SELECT kmeans_fit('error_points', '{........pg.dropped.8........}', 1);

-- k and options.
SELECT kmeans_fit('error_points', '{x}', NULL);
SELECT kmeans_fit('error_points', '{x}', 0);
SELECT kmeans_fit('error_points', '{x}', -1);
SELECT kmeans_fit('error_points', '{x}', 2147483648);
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(init => 'nonsense'));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(n_init => 0));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(max_iter => 0));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(tol => -1));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(tol => 'NaN'));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(metric => 'euclidean'));
SELECT gmm_fit('error_points', '{x}', 1, options => gmm_options(covariance_type => 'diagonal'));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(init_centroids => '{{1,2}}'));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(init_centroids => '{1}'));
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(init_centroids => '{{Infinity}}'));

-- Values, each named with its row.
INSERT INTO error_points (x, y) VALUES (1, NULL);
SELECT kmeans_fit('error_points', '{x,y}', 1);
SELECT kmeans_labels('error_points', '{x,y}', 1);
SELECT (kmeans_cluster('error_points', '{x,y}', 1)).k;
UPDATE error_points SET y = 'NaN' WHERE y IS NULL;
SELECT kmeans_fit('error_points', '{x,y}', 1);
UPDATE error_points SET y = '-Infinity' WHERE y = 'NaN';
SELECT kmeans_fit('error_points', '{x,y}', 1);
UPDATE error_points SET y = 1e200 WHERE y = '-Infinity';
SELECT kmeans_fit('error_points', '{x,y}', 1);
UPDATE error_points SET y = 1, n = 'NaN' WHERE y = 1e200;
SELECT kmeans_fit('error_points', '{n}', 1);
UPDATE error_points SET n = 1e400 WHERE n = 'NaN';
SELECT kmeans_fit('error_points', '{n}', 1);
UPDATE error_points SET n = 'Infinity' WHERE n = 1e400;
SELECT kmeans_fit('error_points', '{n}', 1);
UPDATE error_points SET w = -1 WHERE n = 'Infinity';
SELECT kmeans_fit('error_points', '{y}', 1, weight => 'w');
UPDATE error_points SET w = 'Infinity' WHERE n = 'Infinity';
SELECT kmeans_fit('error_points', '{y}', 1, weight => 'w');
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{1,2}'), ('{1,2,3}');
SELECT kmeans_fit('error_points', '{f}', 1);
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{1,2}'), ('{1,NULL}');
SELECT kmeans_fit('error_points', '{f}', 1);
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{1,2}'), ('{NaN,1}');
SELECT kmeans_labels('error_points', '{f}', 1);
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{}');
SELECT kmeans_fit('error_points', '{f}', 1);
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{{1,2},{3,4}}');
SELECT kmeans_fit('error_points', '{f}', 1);
-- No direction, by each road; a row without weight takes no part.
TRUNCATE error_points;
INSERT INTO error_points (x, y, n, f, w) VALUES (1, 2, 3, '{1,2}', 1), (0, 5, 0, '{0,1}', 1), (0, 0, 0, '{0,-0}', 0), (2, 3, 0, '{1,1}', 1);
SELECT kmeans_fit('error_points', '{x,y}', 1, options => kmeans_options(metric => 'cosine'));
SELECT kmeans_labels('error_points', '{f}', 1, options => kmeans_options(metric => 'cosine'));
SELECT (kmeans_cluster('error_points', '{x,n}', 1, options => kmeans_options(metric => 'cosine'))).k;
SELECT count(*) FROM kmeans_sweep('error_points', '{f}', 1, 2, options => kmeans_options(metric => 'cosine'));
SET pg_kmeans.scan = executor;
SELECT kmeans_fit('error_points', '{x,y}', 1, options => kmeans_options(metric => 'cosine'));
SELECT kmeans_fit('error_points', '{f}', 1, options => kmeans_options(metric => 'cosine'));
RESET pg_kmeans.scan;
SELECT (kmeans_fit('error_points', '{x,y}', 1, options => kmeans_options(metric => 'cosine'), weight => 'w')).n, (kmeans_fit('error_points', '{f}', 1)).n AS l2;
SELECT kmeans_load('error_points', '{f}');
SELECT kmeans_fit('error_points', '{f}', 1, options => kmeans_options(metric => 'cosine'), memory => 'loaded');
SELECT kmeans_unload();
-- what is zero when it is standardized is not so in the table
TRUNCATE error_points;
INSERT INTO error_points (x, y) VALUES (1, 5), (0, 0), (2, 6), (3, 7);
SELECT (kmeans_fit('error_points', '{x}', 1, options => kmeans_options(metric => 'cosine', standardize => true))).n;
INSERT INTO error_points (x) VALUES (1.5);
SELECT kmeans_fit('error_points', '{x}', 1, options => kmeans_options(metric => 'cosine', standardize => true));
TRUNCATE error_points;
INSERT INTO error_points (f) VALUES ('{{1,2},{3,4}}');
CREATE VIEW error_view AS SELECT * FROM error_points;
SELECT kmeans_fit('error_view', '{f}', 1);

-- A partition is named where a ctid does not say enough.
CREATE TABLE error_parted (id integer, x real) PARTITION BY LIST (id);
CREATE TABLE error_parted_1 PARTITION OF error_parted FOR VALUES IN (1);
CREATE TABLE error_parted_2 PARTITION OF error_parted FOR VALUES IN (2);
INSERT INTO error_parted VALUES (1, 1), (2, 'NaN');
SELECT kmeans_fit('error_parted', '{x}', 1);

-- An error leaves nothing behind that a later call would trip over.
DO $$
BEGIN
    FOR i IN 1..50 LOOP
        BEGIN
            PERFORM kmeans_fit('error_parted', '{x}', 1);
        EXCEPTION WHEN invalid_parameter_value THEN NULL;
        END;
    END LOOP;
END$$;
SHOW enable_hashjoin;
SHOW synchronize_seqscans;

-- Memory.
CREATE TABLE error_many AS SELECT i::real AS x, i::real AS y FROM generate_series(1, 20000) AS i;
SET pg_kmeans.memory_limit = '64kB';
\set VERBOSITY sqlstate
SELECT kmeans_fit('error_many', '{x,y}', 3);
SELECT kmeans_labels('error_many', '{x,y}', 3);
SELECT (kmeans_cluster('error_many', '{x,y}', 3)).k;
\set VERBOSITY default
RESET pg_kmeans.memory_limit;
SELECT (kmeans_fit('error_many', '{x,y}', 1)).centroids;

-- What the rows need: an estimate from the table's pages, and, where it has statistics, before a row is read.
CREATE TABLE error_large (x double precision, y double precision, f real[], sparse integer) WITH (autovacuum_enabled = off);
INSERT INTO error_large SELECT i, -i, ARRAY[i, i, i], CASE WHEN i <= 200 THEN i END FROM generate_series(1, 20000) AS i;
CREATE FUNCTION needed(call text) RETURNS TABLE (state text, message text, kind text, kb integer, hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, kind = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    kb := substring(kind FROM '\d+');
    kind := regexp_replace(kind, '\d+', 'N');
    RETURN NEXT;
END $$;
SET pg_kmeans.memory_limit = '100kB';
SELECT state, message, kind, kb BETWEEN 300 AND 400 AS kb, hint FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3)$$);
SELECT state, kind, kb BETWEEN 220 AND 300 AS kb FROM needed($$SELECT kmeans_fit('error_large', '{f}', 3)$$);
SET pg_kmeans.scan = executor;
SELECT state, kind, kb FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3)$$);
RESET pg_kmeans.scan;
-- without statistics, how ever many they seem, rows are read: the first one is none
TRUNCATE error_large;
INSERT INTO error_large VALUES ('NaN', 0, '{0,0,0}', 1);
INSERT INTO error_large SELECT i, -i, ARRAY[i, i, i], CASE WHEN i <= 200 THEN i END FROM generate_series(1, 19999) AS i;
SELECT state, message FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3)$$);
-- with statistics they are not: 16 bytes a row, with its ctid 22
ANALYZE error_large;
SELECT state, kind, kb BETWEEN 312 AND 314 AS kb, hint FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3, memory => 'resident')$$);
SELECT state, kind, kb BETWEEN 429 AND 431 AS kb FROM needed($$SELECT FROM kmeans_labels('error_large', '{x,y}', 3)$$);
SELECT state, kind, kb BETWEEN 312 AND 314 AS kb FROM needed($$SELECT gmm_fit('error_large', '{x,y}', 3, memory => 'resident')$$);
SELECT state, kind, kb BETWEEN 429 AND 431 AS kb FROM needed($$SELECT kmeans_load('error_large', '{x,y}')$$);
-- and a stream of them, with the work on it, is named where it takes less than rows in memory and theirs
SELECT state, kind, kb BETWEEN 1200 AND 1500 AS kb FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3)$$);
-- they are where nobody knows how many have a weight
SELECT state, message FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3, weight => 'sparse')$$);
-- and where they are less than twice too many, for statistics may be old
SET pg_kmeans.memory_limit = '200kB';
SELECT state, message FROM needed($$SELECT kmeans_fit('error_large', '{x,y}', 3)$$);
-- few rows have features: 8 bytes for each other, with its ctid 14
SET pg_kmeans.memory_limit = '70kB';
SELECT state, kind, kb BETWEEN 272 AND 275 AS kb FROM needed($$SELECT FROM kmeans_labels('error_large', '{sparse}', 2)$$);
SET pg_kmeans.memory_limit = '2MB';
SELECT (kmeans_fit('error_large', '{sparse}', 2)).n;
RESET pg_kmeans.memory_limit;
DROP FUNCTION needed;
DROP TABLE error_large;

DROP TABLE error_points CASCADE;
DROP TABLE error_parted, error_many;
DROP TYPE error_type;
DROP SEQUENCE error_sequence;

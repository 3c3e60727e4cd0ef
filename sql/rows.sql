-- A model is applied to a row of any relation, whose columns it finds by their names.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TYPE row_size AS ENUM ('large', 'small', 'medium');
CREATE DOMAIN row_price AS numeric CHECK (VALUE < 1000);
CREATE TABLE row_types AS
SELECT i AS id, i % 3 * 5 + sin(i) AS x, (i % 4 + cos(i))::real AS r, (i % 7)::real AS r2, (i % 5)::int2 AS small, (i % 11)::int8 AS l, i % 2 = 0 AS b, (i % 9 + 0.1)::numeric AS n,
    (i % 13 * 1.5)::row_price AS price, (ARRAY['pro', 'free', 'Zeta', ''])[1 + i % 4] AS plan, ('v' || i % 3)::varchar(9) AS v, ('c' || i % 3)::char(5) AS c, ('n' || i % 2)::name AS "a name",
    (ARRAY['large', 'small', 'medium'])[1 + i % 3]::row_size AS e, md5((i % 3)::text)::uuid AS u, date '2024-02-28' + i % 30 AS d, timestamp '2024-02-28' + i % 50 * interval '1 hour' AS ts,
    timestamptz '2024-02-28 00:00+00' + i % 50 * interval '1 hour' AS tz, time '00:00' + i % 24 * interval '1 hour' AS h, i % 40 * interval '1 day 1 hour' AS iv, (i % 17)::text::money AS cash,
    ARRAY[i % 3 * 5 + sin(i), cos(i)] AS f, ARRAY[i % 3 * 5 + sin(i), cos(i)]::real[] AS f4
FROM generate_series(1, 300) AS i;
UPDATE row_types SET plan = NULL WHERE id % 10 = 0;
UPDATE row_types SET x = NULL WHERE id % 7 = 0;
UPDATE row_types SET r = NULL WHERE id % 8 = 0;
UPDATE row_types SET x = NULL, plan = NULL, r = NULL, b = NULL, d = NULL, cash = NULL, f = NULL WHERE id % 100 = 0;
ANALYZE row_types;

CREATE VIEW row_view AS SELECT *, row_size 'small' AS more FROM row_types;

-- The labels and distances of a fit are those of its rows: by columns, and as one value, of which a plan has no columns.
CREATE FUNCTION pg_temp.differ(features text[], options text, nulls text, OUT labels bigint, OUT columns bigint, OUT value bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(cluster_id), count(*) FILTER (WHERE (cluster_id, distance) IS DISTINCT FROM (kmeans_predict(m, t), kmeans_distance(m, t))),
            count(*) FILTER (WHERE (cluster_id, distance) IS DISTINCT FROM (kmeans_predict(m, w.value), kmeans_distance(m, w.value)))
        FROM kmeans_fit(''row_types'', $1, 4, options => kmeans_options(%1$s), nulls => $2) AS m, kmeans_labels(''row_types'', $1, 4, options => kmeans_options(%1$s), nulls => $2) AS l
        JOIN row_types AS t ON l.row_ctid = t.ctid, LATERAL (SELECT t AS value OFFSET 0) AS w', options) INTO labels, columns, value USING features, nulls;
END $$;
SELECT features, options, nulls, d.* FROM (VALUES
    (1, '{x,small,l,b,n,price}'::text[], '', 'mean'), (2, '{r2}', '', 'error'), (3, '{r,r2}', '', 'mean'), (4, '{r,r2}', 'standardize => true', 'mean'), (5, '{r2,small}', 'metric => ''cosine'', standardize => true', 'error'),
    (6, '{plan}', '', 'error'), (7, '{v,c,a name,u}', '', 'error'), (8, '{e,x}', 'standardize => true', 'mean'), (9, '{d,ts,tz}', 'standardize => true', 'mean'), (10, '{h,iv,cash}', '', 'mean'),
    (11, '{f}', '', 'error'), (12, '{f4}', 'standardize => true', 'error'), (13, '{plan,x,e,d,cash,b,r}', 'standardize => true, metric => ''cosine''', 'mean')) AS v (line, features, options, nulls),
    LATERAL pg_temp.differ(features, options, nulls) AS d ORDER BY line;

-- Every function says of a row what it says of the array that SQL makes of it.
CREATE TABLE row_models AS SELECT kmeans_fit('row_types', '{plan,r,d,x}', 4, options => kmeans_options(standardize => true), nulls => 'mean') AS m,
    gmm_fit('row_types', '{plan,r,d,x}', 2, options => gmm_options(reg_covar => 0.1), nulls => 'mean') AS g, pca_fit('row_types', '{plan,r,d,x}', nulls => 'mean') AS p;
CREATE TABLE row_arrays AS SELECT t.id, ARRAY[(plan IS NOT DISTINCT FROM '')::int, (plan IS NOT DISTINCT FROM 'Zeta')::int, (plan IS NOT DISTINCT FROM 'free')::int, (plan IS NOT DISTINCT FROM 'pro')::int, (plan IS NULL)::int,
    coalesce(r, (m).fills[6]), coalesce(d - date '1970-01-01', (m).fills[7]), coalesce(x, (m).fills[8])] AS a FROM row_types AS t, row_models WHERE id % 100 <> 0;
ANALYZE row_models, row_arrays;
SELECT (m).d, (m).fills = (g).fills AND (m).fills = (p).fills AS fills, (m).origin.sources FROM row_models;
SELECT count(*), every(kmeans_predict(m, t) = kmeans_predict(m, a)) AS predict, every(kmeans_distance(m, t) = kmeans_distance(m, a)) AS distance, every(kmeans_transform(m, t) = kmeans_transform(m, a)) AS transform,
    every(gmm_predict(g, t) = gmm_predict(g, a)) AS predict, every(gmm_posterior(g, t) = gmm_posterior(g, a)) AS posterior, every(gmm_score(g, t) = gmm_score(g, a)) AS score, every(pca_transform(p, t) = pca_transform(p, a)) AS pca,
    kmeans_update(m, t) = kmeans_update(m, a) AS update FROM row_models, row_types AS t JOIN row_arrays USING (id) GROUP BY m;
SELECT count(*), every(component_id = gmm_predict(g, t)) AS gmm_labels FROM row_models, gmm_labels('row_types', '{plan,r,d,x}', 2, options => gmm_options(reg_covar => 0.1), nulls => 'mean') AS l JOIN row_types AS t ON l.row_ctid = t.ctid WHERE id % 100 <> 0;
SELECT count(*), every((o.cluster_id, o.distance) = (kmeans_predict(m, t), kmeans_distance(m, t))) AS outliers FROM row_models, kmeans_outliers('row_types', model => m, threshold => 1) AS o JOIN row_types AS t ON o.row_ctid = t.ctid;
-- a row of NULLs has no label
SELECT count(*), count(kmeans_predict(m, t)) AS predict, count(kmeans_distance(m, t)) AS distance, count(kmeans_transform(m, t)) AS transform, count(gmm_predict(g, t)) AS predict, count(gmm_score(g, t)) AS score, count(gmm_posterior(g, t)) AS posterior, count(pca_transform(p, t)) AS pca
FROM row_models, row_types AS t WHERE id % 100 = 0;

-- Rows from anywhere: each query counts what is not as it is for the array, and says whether the plan has columns.
CREATE FUNCTION pg_temp.of_rows(query text) RETURNS TABLE (n bigint, wrong bigint, plan text) LANGUAGE plpgsql AS $$
DECLARE
    line text;
    found bool := false;
BEGIN
    EXECUTE format('WITH q (id, label) AS MATERIALIZED (%s) SELECT count(*), count(*) FILTER (WHERE q.label IS DISTINCT FROM kmeans_predict(m, a)) FROM row_models, q LEFT JOIN row_arrays AS a USING (id)', query) INTO n, wrong;
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
        found := found OR line LIKE '%pgkm_row_kmeans_predict(%';
    END LOOP;
    plan := CASE WHEN found THEN 'columns' ELSE 'value' END;
    RETURN NEXT;
END $$;
CREATE VIEW row_barrier WITH (security_barrier) AS SELECT id, plan, d, r, x FROM row_types WHERE id > 5;
CREATE FUNCTION row_function() RETURNS SETOF row_types LANGUAGE sql STABLE AS 'SELECT * FROM row_types';
CREATE FUNCTION row_opaque() RETURNS SETOF row_types LANGUAGE plpgsql STABLE AS 'BEGIN RETURN QUERY SELECT * FROM row_types; END';
SELECT rows_of, o.* FROM (VALUES
    (1, 'table', 'SELECT id, kmeans_predict(m, t) FROM row_types AS t, row_models'),
    (2, 'view', 'SELECT id, kmeans_predict(m, row_view) FROM row_view, row_models'),
    (3, 'security barrier view', 'SELECT id, kmeans_predict(m, b) FROM row_barrier AS b, row_models'),
    (4, 'subquery', 'SELECT id, kmeans_predict(m, s) FROM (SELECT x, r, d, plan, id + 0 AS id FROM row_types) AS s, row_models'),
    (5, 'with OFFSET', 'SELECT id, kmeans_predict(m, s) FROM (SELECT x, r, d, plan, id FROM row_types OFFSET 0) AS s, row_models'),
    (6, 'with LIMIT', 'SELECT id, kmeans_predict(m, s) FROM (SELECT * FROM row_types ORDER BY id LIMIT 50) AS s, row_models'),
    (7, 'UNION ALL', 'SELECT id, kmeans_predict(m, s) FROM (SELECT x, r, d, plan, id FROM row_types WHERE id < 50 UNION ALL SELECT x, r, d, plan, id FROM row_types WHERE id > 250) AS s, row_models'),
    (8, 'WITH', 'WITH s AS MATERIALIZED (SELECT * FROM row_types) SELECT id, kmeans_predict(m, s) FROM s, row_models'),
    (9, 'join', 'SELECT id, kmeans_predict(m, j) FROM (row_arrays JOIN row_types USING (id)) AS j, row_models'),
    (10, 'LATERAL', 'SELECT t.id, kmeans_predict(m, s) FROM row_types AS t, row_models, LATERAL (SELECT t.x, t.plan, t.r, t.d) AS s'),
    (11, 'LATERAL with OFFSET', 'SELECT t.id, label FROM row_types AS t, row_models, LATERAL (SELECT kmeans_predict(m, t) AS label OFFSET 0) AS s'),
    (26, 'LATERAL function', 'SELECT t.id, label FROM row_types AS t, row_models, kmeans_predict(m, t) AS label'),
    (27, 'LATERAL VALUES', 'SELECT t.id, label FROM row_types AS t, row_models, LATERAL (VALUES (kmeans_predict(m, t))) AS o (label)'),
    (28, 'LATERAL with LIMIT', 'SELECT t.id, label FROM row_types AS t, LATERAL (SELECT kmeans_predict(m, t) AS label FROM row_models LIMIT 1) AS s'),
    (12, 'VALUES', 'SELECT id, kmeans_predict(m, v) FROM row_models, (VALUES (20, 20 % 3 * 5 + sin(20), cos(20)::real, NULL, date ''2024-03-19''), (3, sin(3), (3 + cos(3))::real, '''', ''2024-03-02'')) AS v (id, x, r, plan, d)'),
    (13, 'ROW of a type', 'SELECT id, kmeans_predict(m, ROW(t.*)::row_types) FROM row_types AS t, row_models'),
    (14, 'function', 'SELECT id, kmeans_predict(m, o) FROM row_function() AS o, row_models'),
    (15, 'opaque function', 'SELECT id, kmeans_predict(m, o) FROM row_opaque() AS o, row_models'),
    (16, 'column definitions', 'SELECT id, kmeans_predict(m, j) FROM row_models, jsonb_to_recordset((SELECT jsonb_agg(t) FROM row_types AS t)) AS j (x float8, plan text, id int, r real, d date)'),
    (17, 'outer join', 'SELECT t.id, kmeans_predict(m, t) FROM row_models, generate_series(1, 400) AS i LEFT JOIN row_types AS t ON t.id = i'),
    (18, 'outer join of a view', 'SELECT t.id, kmeans_predict(m, t) FROM row_models, generate_series(1, 400) AS i LEFT JOIN row_view AS t ON t.id = i'),
    (19, 'outer reference', 'SELECT id, (SELECT kmeans_predict(m, t) FROM row_models) FROM row_types AS t'),
    (20, 'two levels', 'SELECT id, (SELECT max((SELECT kmeans_predict(m, t))) FROM row_models) FROM row_types AS t'),
    (21, 'GROUP BY', 'SELECT t.id, kmeans_predict(max(m::text)::kmeans_model, t) FROM row_types AS t, row_models GROUP BY t.id, t'),
    (22, 'DISTINCT', 'SELECT DISTINCT ON (t) t.id, kmeans_predict(m, t) FROM row_types AS t, row_models'),
    (23, 'window', 'SELECT id, first_value(kmeans_predict(m, t)) OVER (PARTITION BY kmeans_predict(m, t), id) FROM row_types AS t, row_models'),
    (24, 'ORDER BY', 'SELECT id, kmeans_predict(m, t) FROM row_types AS t, row_models ORDER BY kmeans_predict(m, t), kmeans_distance(m, t) LIMIT 40'),
    (25, 'composite column', 'SELECT (w).id, kmeans_predict(m, w) FROM (SELECT t AS w FROM row_types AS t OFFSET 0) AS s, row_models')) AS v (line, rows_of, query), LATERAL pg_temp.of_rows(query) AS o ORDER BY line;
-- an outer join's missing row has no label, whatever an expression makes of NULLs
CREATE TABLE row_coalesced AS SELECT kmeans_fit('row_types', ARRAY['coalesce(x, 7)'], 3) AS coalesced;
SELECT i, kmeans_predict(coalesced, t) AS a_table, kmeans_predict(coalesced, w.t) AS a_value, kmeans_predict(coalesced, a_barrier) AS a_barrier, kmeans_predict(coalesced, a_view) AS a_view FROM row_coalesced, generate_series(299, 301) AS i
LEFT JOIN row_types AS t ON t.id = i LEFT JOIN (SELECT t, id AS value_id FROM row_types AS t OFFSET 0) AS w ON value_id = i LEFT JOIN row_barrier AS a_barrier ON a_barrier.id = i LEFT JOIN row_view AS a_view ON a_view.id = i ORDER BY i;
SELECT count(*), count(kmeans_predict(coalesced, t)) AS labels FROM row_coalesced, row_types AS t FULL JOIN generate_series(301, 310) AS i ON t.id = i;
SELECT count(*), count((SELECT kmeans_predict(coalesced, t) FROM row_coalesced)) AS labels FROM generate_series(291, 310) AS i LEFT JOIN row_types AS t ON t.id = i;

-- Plans
CREATE FUNCTION pg_temp.plan_of(query text, lines text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
        IF line ~ lines THEN RETURN NEXT substring(line FROM lines); END IF;
    END LOOP;
END $$;
SELECT pg_temp.plan_of('SELECT kmeans_predict((SELECT m FROM row_models), s) FROM (SELECT x, plan, r, d, x + 1 AS y FROM row_types) AS s', ', ''.*');
SELECT pg_temp.plan_of('SELECT kmeans_predict((SELECT m FROM row_models), t) FROM generate_series(1, 2) AS i LEFT JOIN row_coalesced AS t ON true', ', ''.*');
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
ALTER TABLE row_types SET (parallel_workers = 2);
SELECT pg_temp.plan_of('SELECT count(*) FROM row_types AS t WHERE kmeans_predict((SELECT m FROM row_models), t) = 1', 'Workers Planned.*|Filter: .pgkm_row_kmeans_predict|Parallel Seq Scan');
SELECT count(*) = (SELECT count(*) FROM row_models, row_arrays WHERE kmeans_predict(m, a) = 1) AS same_in_workers FROM row_types AS t WHERE kmeans_predict((SELECT m FROM row_models), t) = 1;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- A long text beside the columns is not read: so many blocks are.
CREATE TABLE row_long (id integer, x float8, plan text, r real, d date, doc text);
ALTER TABLE row_long ALTER doc SET STORAGE EXTERNAL;
INSERT INTO row_long SELECT id, x, plan, r, d, repeat('long ', 4000) FROM row_types;
CREATE FUNCTION pg_temp.blocks(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
    RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;
SELECT pg_temp.blocks('SELECT count(kmeans_predict(m, l)) FROM row_long AS l, row_models') < 30 AS columns, pg_temp.blocks('SELECT count(gmm_score(g, l)) FROM (SELECT * FROM row_long OFFSET 0) AS l, row_models') < 30 AS subquery,
    pg_temp.blocks('SELECT count(kmeans_predict(m, w)) FROM (SELECT l AS w FROM row_long AS l OFFSET 0) AS s, row_models') > 1000 AS value;

-- data-modifying statements
ALTER TABLE row_types ADD label integer;
WITH done AS (UPDATE row_types AS t SET label = -1 FROM row_models WHERE t.id <= 30 RETURNING t.id, t.label, kmeans_predict(m, t) AS predicted)
SELECT count(*), count(*) FILTER (WHERE label <> -1 OR predicted IS DISTINCT FROM kmeans_predict(m, a)) AS wrong FROM row_models, done LEFT JOIN row_arrays AS a USING (id);
UPDATE row_types AS t SET label = kmeans_predict(m, t) FROM row_models;
SELECT label, count(*), count(*) FILTER (WHERE label IS DISTINCT FROM kmeans_predict(m, t)) AS differ FROM row_types AS t, row_models GROUP BY label ORDER BY label;
CREATE TABLE row_kept (id integer PRIMARY KEY, d date, label integer, plan text, dropped integer, x float8, r real);
ALTER TABLE row_kept DROP dropped;
INSERT INTO row_kept AS k (id, d, plan, x, r) SELECT id, d, plan, x, r FROM row_types WHERE id <= 20;
INSERT INTO row_kept AS k (id, d, plan, x, r) SELECT id, d, plan, x, r FROM row_types WHERE id <= 20 ON CONFLICT (id) DO UPDATE SET label = kmeans_predict((SELECT m FROM row_models), k) + 0 * kmeans_predict((SELECT m FROM row_models), excluded);
INSERT INTO row_kept AS k SELECT 21, d, NULL, plan, x, r FROM row_types WHERE id = 21 RETURNING id, kmeans_predict((SELECT m FROM row_models), k) = (SELECT kmeans_predict(m, t) FROM row_types AS t, row_models WHERE id = 21) AS same;
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 150000 THEN
        EXECUTE 'MERGE INTO row_kept AS k USING (SELECT * FROM row_types, row_models WHERE id = 21) AS s ON k.id = s.id WHEN MATCHED AND kmeans_predict(m, k) = kmeans_predict(m, s) THEN UPDATE SET label = kmeans_predict(m, k)';
    ELSE
        UPDATE row_kept AS k SET label = kmeans_predict(m, k) FROM row_models WHERE id = 21;
    END IF;
END $$;
SELECT count(*), count(k.label), count(*) FILTER (WHERE k.label IS DISTINCT FROM kmeans_predict(m, a)) AS wrong FROM row_models, row_kept AS k LEFT JOIN row_arrays AS a USING (id);
-- triggers and variables
CREATE FUNCTION row_label() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.label := kmeans_predict(m, NEW) FROM row_models; RETURN NEW; END $$;
CREATE TRIGGER row_label BEFORE INSERT OR UPDATE ON row_kept FOR EACH ROW EXECUTE FUNCTION row_label();
UPDATE row_kept SET label = NULL, plan = CASE WHEN id = 1 THEN 'unheard of' ELSE plan END;
INSERT INTO row_kept SELECT id, d, NULL, plan, x, r FROM row_types WHERE id > 200;
SELECT count(*), count(k.label), count(*) FILTER (WHERE k.label IS DISTINCT FROM kmeans_predict(m, CASE WHEN id = 1 THEN '{0,0,0,0}' || a[5:] ELSE a END)) AS wrong FROM row_models, row_kept AS k LEFT JOIN row_arrays AS a USING (id);
DO $$
DECLARE
    m kmeans_model; one row_types; any_row record; wrong integer := 0;
BEGIN
    SELECT (row_models.m).* FROM row_models INTO m;
    FOR i IN 1..3 LOOP -- the type of a record changes from row to row
        FOR any_row IN SELECT * FROM row_types WHERE id <= 30 LOOP wrong := wrong + (kmeans_predict(m, any_row) IS DISTINCT FROM any_row.label)::int; END LOOP;
        FOR any_row IN SELECT label, plan, x, r, d FROM row_types WHERE id <= 30 LOOP wrong := wrong + (kmeans_predict(m, any_row) IS DISTINCT FROM any_row.label)::int; END LOOP;
    END LOOP;
    FOR one IN SELECT * FROM row_types WHERE id <= 30 LOOP wrong := wrong + (kmeans_predict(m, one) IS DISTINCT FROM one.label)::int; END LOOP;
    RAISE NOTICE '% wrong, of NULL %', wrong, kmeans_predict(m, NULL::row_types);
END $$;
SELECT count(*), every(label IS NOT DISTINCT FROM kmeans_predict(m, CASE WHEN id % 3 > 0 THEN (SELECT s FROM (SELECT x, plan, r, d) AS s) ELSE (SELECT s FROM (SELECT d, r, plan, 1 AS more, x) AS s) END)) AS records_of_two_types FROM row_types, row_models;

-- Children and partitions, whose columns lie elsewhere; dropped columns; many columns
CREATE TABLE row_parent (id integer, gone integer, plan text, x float8) PARTITION BY LIST ((id % 2));
CREATE TABLE row_part (x float8, also integer, plan text, id integer, gone integer);
ALTER TABLE row_part DROP also;
ALTER TABLE row_parent ATTACH PARTITION row_part FOR VALUES IN (0);
CREATE TABLE row_part_1 PARTITION OF row_parent FOR VALUES IN (1);
ALTER TABLE row_parent DROP gone;
ALTER TABLE row_parent ADD r real, ADD d date;
INSERT INTO row_parent (id, plan, x, r, d) SELECT id, plan, x, r, d FROM row_types;
CREATE TABLE row_base (id integer, r real);
CREATE TABLE row_heir (plan text, d date, x float8) INHERITS (row_base);
CREATE TABLE row_heir_2 (d date, r real, id integer, first text, plan text, x float8);
ALTER TABLE row_heir_2 DROP first;
ALTER TABLE row_heir_2 INHERIT row_heir;
INSERT INTO row_heir SELECT id, r, plan, d, x FROM row_types WHERE id % 2 = 0;
INSERT INTO row_heir_2 SELECT d, r, id, plan, x FROM row_types WHERE id % 2 = 1;
DO $$ BEGIN
    EXECUTE (SELECT format('CREATE TABLE row_wide AS SELECT id, %s, plan, x, r, d FROM row_types', string_agg(format('id AS c%s', i), ', ')) FROM generate_series(1, 110) AS i);
    EXECUTE (SELECT format('CREATE TABLE row_widest AS SELECT id, %s, plan, x, r, d FROM row_types WHERE id <= 5', string_agg(format('NULL::int AS c%s', i), ', ')) FROM generate_series(1, 1595) AS i);
END $$;
SELECT rows_of, o.* FROM (VALUES
    (1, 'partitions', 'SELECT id, kmeans_predict(m, whole) FROM row_parent AS whole, row_models'),
    (2, 'partition', 'SELECT id, kmeans_predict(m, whole) FROM row_part AS whole, row_models'),
    (3, 'children', 'SELECT id, kmeans_predict(m, h) FROM row_heir AS h, row_models'),
    (4, 'partitions, by value', 'SELECT id, kmeans_predict(m, w) FROM (SELECT id, whole AS w FROM row_parent AS whole OFFSET 0) AS s, row_models'),
    (5, 'cast to the parent', 'SELECT id, kmeans_predict(m, h::row_heir) FROM row_heir_2 AS h, row_models'),
    (6, '115 columns', 'SELECT id, kmeans_predict(m, t) FROM row_wide AS t, row_models'),
    (7, '1,600 columns', 'SELECT id, kmeans_predict(m, t) FROM row_widest AS t, row_models')) AS v (line, rows_of, query), LATERAL pg_temp.of_rows(query) AS o ORDER BY line;
UPDATE row_parent AS whole SET id = id + 1000 FROM row_models WHERE kmeans_predict(m, whole) = (SELECT label FROM row_types WHERE id = 1);
SELECT count(*) - count(*) FILTER (WHERE label = (SELECT label FROM row_types WHERE id = 1)) AS wrong FROM row_parent AS p JOIN row_types AS t ON p.id = t.id + 1000;

-- Columns that change between the calls of a prepared plan, and of functions
CREATE TABLE row_changing AS SELECT id, plan, r, d, x FROM row_types WHERE id <= 30;
CREATE FUNCTION row_wrong() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    m kmeans_model; one row_changing; any_row record; wrong text := '';
BEGIN
    SELECT (row_models.m).* FROM row_models INTO m;
    SELECT wrong || count(*) INTO wrong FROM row_changing AS c LEFT JOIN row_arrays AS a USING (id) WHERE kmeans_predict(m, c) IS DISTINCT FROM kmeans_predict(m, a);
    FOR one IN SELECT * FROM row_changing LOOP PERFORM kmeans_predict(m, one); END LOOP;
    FOR any_row IN SELECT * FROM row_changing LOOP PERFORM kmeans_predict(m, any_row); END LOOP;
    RETURN wrong;
END $$;
PREPARE row_plan AS SELECT count(*), count(kmeans_predict(m, c)), count(kmeans_predict(m, s.c)) AS by_value FROM row_changing AS c, row_models, LATERAL (SELECT c OFFSET 0) AS s;
SET plan_cache_mode = force_generic_plan;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing ADD first text, ALTER x TYPE real;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing ALTER plan TYPE varchar(20), DROP first, ADD y integer;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing RENAME d TO e;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing RENAME e TO d;
EXECUTE row_plan;
ALTER TABLE row_changing ALTER x TYPE text USING x::text;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing DROP x;
EXECUTE row_plan;
SELECT pg_temp.outcome('SELECT row_wrong()');
ALTER TABLE row_changing ADD x float8;
EXECUTE row_plan;
UPDATE row_changing AS c SET x = t.x FROM row_types AS t WHERE t.id = c.id;
SELECT pg_temp.outcome('SELECT row_wrong()');
RESET plan_cache_mode;

-- What a row must have
CREATE FUNCTION pg_temp.said(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text; hint text; result text;
BEGIN
    EXECUTE query INTO result;
    RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE TABLE row_strict AS SELECT kmeans_fit('row_types', '{plan,r2,x}', 3, filter => 'plan IS NOT NULL AND x IS NOT NULL') AS m, kmeans_fit('row_types', '{f}', 3) AS f, kmeans(ARRAY[id, r2], 2) AS nameless, kmeans_fit('row_types', '{d}', 2, nulls => 'skip') AS d FROM row_types;
SELECT pg_temp.said(format('SELECT kmeans_predict(%s, s) FROM (SELECT %s) AS s, (SELECT m, f AS v, d AS day, nameless FROM row_strict) AS models', coalesce(model, 'm'), columns)) AS said FROM (VALUES
    (1, $$1::float8 AS x, 'pro' AS plan$$, NULL), (2, $$1::float8 AS x, 'pro' AS plan, date '2024-01-01' AS r2$$, NULL), (3, $$1::float8 AS x, 5 AS plan, 1 AS r2$$, NULL), (4, $$'1'::text AS x, 'pro' AS plan, 1 AS r2$$, NULL),
    (5, $$'1'::jsonb AS x, 'pro' AS plan, 1 AS r2$$, NULL), (6, $$1 AS x, 'pro'::varchar AS plan, 1.5 AS r2$$, NULL), (7, $$NULL::int8 AS x, 'pro' AS plan, 1 AS r2$$, NULL), (8, $$'NaN'::real AS x, 'pro' AS plan, 1 AS r2$$, NULL),
    (9, $$1e200::float8 AS x, 'pro' AS plan, 1 AS r2$$, NULL), (10, $$1 AS x, NULL::text AS plan, 1 AS r2$$, NULL), (11, $$NULL::int AS x, NULL::text AS plan, NULL::int AS r2$$, NULL), (12, $$1 AS "X", 'pro' AS plan, 1 AS r2$$, NULL),
    (13, 'ARRAY[1,2] AS f', 'v'), (14, '''{1,2}''::text AS f', 'v'), (15, 'ARRAY[1,2,3] AS f', 'v'), (16, '''{1,NULL}''::int[] AS f', 'v'), (17, 'NULL::int[] AS f', 'v'), (18, '''infinity''::date AS d', 'day'), (19, '''infinity''::timestamp AS d', 'day'),
    (20, '1 AS x, 2 AS y', 'nameless'), (21, '1 AS x, 2 AS y', $$jsonb_populate_record(nameless, '{"origin": {"features": ["x", "y"]}}')$$), (22, '1 AS x, 2 AS y', $$jsonb_populate_record(nameless, '{"origin": {"features": ["y", "z"]}}')$$),
    (23, '1 AS x, 2 AS y', 'NULL::kmeans_model'), (24, 'row_types.* FROM row_types WHERE id = 1', 'NULL::kmeans_model')) AS v (line, columns, model) ORDER BY line;
SELECT pg_temp.said(query) FROM unnest(ARRAY['SELECT kmeans_predict(m, ROW(1, 2)) FROM row_strict', 'SELECT kmeans_predict(m, NULL::row_types) FROM row_strict', 'SELECT kmeans_predict(nameless, ARRAY[1, 2]) FROM row_strict',
    'SELECT kmeans_predict(m, NULL::record) FROM row_strict', 'SELECT kmeans_predict(m, t) FROM row_types AS t, (SELECT f AS m FROM row_strict) AS s', 'SELECT gmm_predict(g, s) FROM row_models, (SELECT 1 AS x) AS s', 'SELECT pca_transform(p, s) FROM row_models, (SELECT 1 AS x) AS s',
    'SELECT (kmeans_update(m, s)).n FROM row_models, (SELECT 1 AS x) AS s', 'SELECT kmeans_predict(NULL, s) FROM (SELECT 1 AS x) AS s', 'SELECT kmeans_predict(m, 5) FROM row_strict', 'CREATE TABLE row_generated (x float8, label integer GENERATED ALWAYS AS (kmeans_predict(NULL::kmeans_model, row_generated)) STORED)']) AS query;

-- Models out as JSON and in again, and forged ones
SELECT every(kmeans_predict(m, t) IS NOT DISTINCT FROM kmeans_predict(jsonb_populate_record(NULL::kmeans_model, to_jsonb(m)), t)) AS json, every(gmm_score(g, t) IS NOT DISTINCT FROM gmm_score(json_populate_record(NULL::gmm_model, to_json(g)), t)) AS mixture,
    every(pca_transform(p, t) IS NOT DISTINCT FROM pca_transform(jsonb_populate_record(NULL::pca_model, to_jsonb(p)), t)) AS components, every(kmeans_distance(m, t) IS NOT DISTINCT FROM kmeans_distance(m::text::kmeans_model, t)) AS text FROM row_types AS t, row_models;
CREATE FUNCTION pg_temp.forged(path text, value text, call text DEFAULT 'kmeans_predict(%s, t)', of text DEFAULT 'm') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.outcome(format('SELECT %s FROM row_types AS t, row_models WHERE id = 3',
        format(call, format('jsonb_populate_record(NULL::%s, jsonb_set(jsonb_set(to_jsonb(%s), %L, %L), ''{origin,sources,3,expression}'', %L, false))', CASE of WHEN 'm' THEN 'kmeans_model' WHEN 'g' THEN 'gmm_model' ELSE 'pca_model' END, of, path, value, to_json(path = '{origin,features,3}'))))) $$;
SELECT value, pg_temp.forged('{origin,sources,0,levels}', value) FROM unnest(ARRAY['["free","pro","x","y",null]', '["a",null,"b","c","d"]', '["b","a","c","d","e"]', '["a","a","b","c","d"]', '[["a","b","c","d","e"]]', '["a"]', 'null', '[]', '["a","b","c","d","e","f"]']) WITH ORDINALITY AS v (value, line) ORDER BY line;
SELECT value, pg_temp.forged('{fills}', value) FROM unnest(ARRAY['[]', '[1]', 'null', '[1,2,3,4,5,6,7,null]', '[1,2,3,4,5,6,7,"NaN"]', '[9,9,9,9,9,9,9,9]']) WITH ORDINALITY AS v (value, line) ORDER BY line;
SELECT path, value, pg_temp.forged('{origin,' || path || '}', value) FROM (VALUES (1, 'sources', 'null'), (2, 'sources', '[]'), (3, 'sources', '[null,null,null,null]'), (4, 'sources,1,encoding', '"vector"'), (5, 'sources,1,encoding', '"category"'), (6, 'sources,1,encoding', '"odd"'),
    (7, 'sources,1,encoding', 'null'), (8, 'sources,1,type', 'null'), (9, 'sources,1,type', '"no type"'), (10, 'sources,2,encoding', '"number"'), (11, 'sources,1,encoding', '"interval"'), (12, 'sources', '[{"type":"text","encoding":"category","levels":[]},{"type":"real[]","encoding":"vector"},null,null]'),
    (13, 'features', '["plan","r","d"]'), (14, 'features', '["plan","r","d",null]'), (15, 'features', '["plan","r","d",""]'), (16, 'features', '["plan","r","d","r"]'), (17, 'features', '[]'), (18, 'features', 'null'), (19, 'features', '[["plan","r","d","x"]]')) AS v (line, path, value) ORDER BY line;
-- a vector beside a category of no levels
SELECT pg_temp.outcome(format('SELECT kmeans_predict(jsonb_populate_record(s.f, %L), t) FROM row_types AS t, row_strict AS s WHERE id = 3', jsonb_build_object('origin', jsonb_build_object('features', features, 'sources', sources)))) FROM (VALUES
    (1, '["plan","f"]'::jsonb, '[{"type":"text","encoding":"category","levels":[]},{"type":"real[]","encoding":"vector"}]'::jsonb), (2, '["f","plan"]', '[{"type":"real[]","encoding":"vector"},{"type":"text","encoding":"category","levels":[]}]'),
    (3, '["plan","f4"]', '[{"type":"text","encoding":"category"},{"type":"real[]","encoding":"vector","levels":["a"]}]')) AS v (line, features, sources) ORDER BY line;
-- expressions that no fit takes; the same of every kind of model
SELECT expression, pg_temp.forged('{origin,features,3}', to_jsonb(expression)::text) FROM unnest(ARRAY['x + 0', 'x + nothing', 'pg_sleep(9)', 'random() + x', 'row_size(x)', '(SELECT 1)', 'sum(x)', 'x; SELECT 1', 'x) + (1', '$1 + x', 'x::row_price', 'lower(plan)', 'ARRAY[x, x]', 't.x + 0', 'x / 0', 'NULL + 1', '(x)::row_size', 'ctid::text', 'pg_read_file(''/etc/passwd'')', ' ', '*']) WITH ORDINALITY AS v (expression, line) ORDER BY line;
SELECT of, pg_temp.forged('{origin,features,3}', '"pg_sleep(9)"', call, of), pg_temp.forged('{origin,sources,0,levels}', '["b","a","c","d","e"]', call, of), pg_temp.forged('{fills}', '[1]', call, of) FROM (VALUES ('gmm_score(%s, t)', 'g'), ('pca_transform(%s, t)', 'p'), ('(SELECT (kmeans_update(a, t)).n FROM (SELECT %s AS a) AS s)', 'm'), ('(SELECT count(*) FROM kmeans_outliers(''row_types'', model => %s))', 'm')) AS v (call, of);
SELECT pg_temp.forged('{origin,features,3}', to_jsonb(repeat('(', 20000) || 'x' || repeat(')', 20000))::text) ~ '^(42601|54001) ' AS deep, pg_temp.forged('{origin,features,3}', to_jsonb('x' || repeat(' + 0', 1000))::text) AS long;
-- the functions that plans call
SELECT pg_temp.outcome(format('SELECT pgkm_row_kmeans_predict(%s) FROM row_models', arguments)) FROM unnest(ARRAY['m, NULL, 1', 'm, ''{x}'', 1', 'm, ''{x,y}'', 1', 'm, ''{NULL}'', 1', 'm, ''{}'', 1', 'm, ''{x}'', VARIADIC ARRAY[1, 2]', 'm, ''{""}'', 1', 'm, ''{""}'', NULL::oid', 'NULL, ''{x}'', 1', 'm, ''{{plan,r},{d,x}}'', ''pro''::text, 1, date ''2024-03-01'', 5']) WITH ORDINALITY AS v (arguments, line) ORDER BY line;
SET client_min_messages = warning;
DROP TABLE row_types, row_models, row_arrays, row_kept, row_parent, row_base, row_wide, row_widest, row_changing, row_strict, row_coalesced, row_long CASCADE;
DROP FUNCTION row_wrong, row_label;
DROP TYPE row_size;
DROP DOMAIN row_price;
-- what a reading of the code found: grouping sets, arrays that an expression would change, and labels by value of many columns
CREATE TABLE row_sets AS SELECT i AS n, i % 4 AS x FROM generate_series(1, 8) AS i;
CREATE TABLE row_set_models AS SELECT kmeans_fit('row_sets', '{x}', 2) AS m;
SELECT count(*), count(l) AS labels FROM (SELECT kmeans_predict(m, t) AS l FROM row_sets AS t, row_set_models GROUP BY GROUPING SETS ((t, m), (m))) AS s;
CREATE FUNCTION row_grown(integer) RETURNS double precision[] LANGUAGE plpgsql AS $$DECLARE a double precision[] := ARRAY[1]; BEGIN a := a || $1::double precision; RETURN a; END$$;
SELECT DISTINCT kmeans_distance(kmeans_model('{{3,3}}', ARRAY['cardinality(array_append(a, 1::float8))', 'cardinality(array_append(a, 2::float8))'], sources => ARRAY[ROW('integer', 'number', '{}', true), ROW('integer', 'number', '{}', true)]::kmeans_source[]), t)
FROM (SELECT row_grown(n) AS a FROM row_sets) AS t;
DO $$ BEGIN EXECUTE 'CREATE TABLE row_columns AS SELECT ' || (SELECT string_agg(format('(i * %s %% 17)::real AS c%s', c, c), ', ') FROM generate_series(1, 120) AS c) || ' FROM generate_series(1, 300) AS i'; END $$;
SELECT (kmeans_cluster('row_columns', (SELECT array_agg('c' || c ORDER BY c) FROM generate_series(1, 120) AS c), 3, memory => 'stream')).n;
SELECT count(*) FILTER (WHERE r.cluster_id IS DISTINCT FROM l.cluster_id) AS differ FROM row_columns AS r JOIN kmeans_labels('row_columns', (SELECT array_agg('c' || c ORDER BY c) FROM generate_series(1, 120) AS c), 3) AS l ON r.ctid = l.row_ctid;
-- a column is a column, and no expression, after it has gone
CREATE TABLE row_minus AS SELECT n AS "a-b", n AS a, x AS b FROM row_sets;
CREATE TABLE row_minus_models AS SELECT kmeans_fit('row_minus', '{a-b}', 2) AS m;
ALTER TABLE row_minus DROP COLUMN "a-b";
SELECT pg_temp.outcome('SELECT kmeans_predict(m, r) FROM row_minus AS r, row_minus_models');
DROP TABLE row_sets, row_set_models, row_columns, row_minus, row_minus_models;
DROP FUNCTION row_grown;

-- Features of columns as they are: text, enumerations and uuids by levels, dates and times in days. What a fit makes of
-- them is what it makes of the matrix that plain SQL makes.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0; -- but where it says otherwise
-- 1 in the place of the level that a value has, 0 in all others
CREATE FUNCTION pg_temp.one_hot(value text, levels text[]) RETURNS float8[] LANGUAGE sql IMMUTABLE AS $$
SELECT array_agg((level IS NOT DISTINCT FROM value COLLATE "C")::int::float8 ORDER BY place) FROM unnest(levels) WITH ORDINALITY AS l (level, place) $$;
-- a column of rows as SQL for one row's features: float8[]; `given` are the levels of a model
CREATE FUNCTION pg_temp.encoded(relation text, feature text, condition text, given text[] DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    levels text[] := given; type text; category "char";
BEGIN
    SELECT format_type(atttypid, NULL), typcategory INTO type, category FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
    WHERE attrelid = relation::regclass AND attname = feature;
    IF category IN ('D', 'T') THEN
        RETURN format('ARRAY[extract(epoch FROM %I)::float8 / 86400]', feature);
    ELSIF category IN ('B', 'N') THEN
        RETURN format('ARRAY[%I%s::float8]', feature, CASE type WHEN 'money' THEN '::numeric' WHEN 'boolean' THEN '::int' END);
    END IF;
    IF levels IS NULL THEN
        EXECUTE format('SELECT array_agg(DISTINCT %I::text COLLATE "C" ORDER BY %1$I::text COLLATE "C") FROM %s WHERE %s', feature, relation, condition) INTO levels;
    END IF;
    RETURN format('pg_temp.one_hot(%I::text, %L)', feature, levels);
END $$;
-- enc_matrix: the rows with their weights that meet a condition
CREATE FUNCTION pg_temp.make_matrix(relation text, features text[], condition text DEFAULT 'true', sources kmeans_source[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE IF EXISTS enc_matrix;
    EXECUTE format('CREATE TEMP TABLE enc_matrix AS SELECT %s AS f, w FROM %s WHERE %s',
        (SELECT string_agg(pg_temp.encoded(relation, feature, condition, sources[place].levels), ' || ' ORDER BY place) FROM unnest(features) WITH ORDINALITY AS f (feature, place)), relation, condition);
END $$;
-- whether fits of the columns are those of the matrix
CREATE FUNCTION pg_temp.compare(relation text, features text[], k int DEFAULT 3, nulls text DEFAULT 'error', weight text DEFAULT NULL, filter text DEFAULT NULL, units bool DEFAULT false, distance text DEFAULT 'l2')
RETURNS TABLE (n bigint, d int, kmeans bool, gmm bool, pca bool) LANGUAGE plpgsql AS $$
DECLARE
    names text := (SELECT string_agg(format('%I', feature), ',') FROM unnest(features) AS feature);
    o kmeans_options := kmeans_options(standardize => units, metric => distance);
    g gmm_options := gmm_options('diag', standardize => units);
    p pca_options := pca_options(standardize => units);
    m kmeans_model;
BEGIN
    PERFORM pg_temp.make_matrix(relation, features, concat_ws(' AND ', format(CASE nulls WHEN 'skip' THEN 'num_nulls(%s) = 0' ELSE 'num_nonnulls(%s) > 0' END, names), weight || ' > 0', filter));
    m := kmeans_fit(relation, features, k, nulls => nulls, weight => weight, filter => filter, options => o);
    RETURN QUERY SELECT m.n, m.d, m = kmeans_fit('enc_matrix', '{f}', k, nulls => nulls, weight => weight, options => o),
        gmm_fit(relation, features, 2, nulls => nulls, weight => weight, filter => filter, options => g) = gmm_fit('enc_matrix', '{f}', 2, nulls => nulls, weight => weight, options => g),
        pca_fit(relation, features, nulls => nulls, weight => weight, filter => filter, options => p) = pca_fit('enc_matrix', '{f}', nulls => nulls, weight => weight, options => p);
END $$;
CREATE TYPE enc_size AS ENUM ('small', 'medium', 'large');
CREATE DOMAIN enc_plan AS text CHECK (VALUE <> 'none');
CREATE DOMAIN enc_short AS char(6);
CREATE DOMAIN enc_domain_size AS enc_size;
CREATE DOMAIN enc_day AS date;
CREATE TABLE enc_rows WITH (parallel_workers = 3) AS
SELECT i AS id, (ARRAY['pro', 'basic', 'free', NULL])[1 + i % 4] AS t, ('v' || i * i % 7)::varchar(20) AS v, rpad('c' || i % 5, i % 3 * 2)::char(6) AS c, ('n' || i % 3)::name AS n,
    (ARRAY['small', 'medium', 'large'])[1 + i % 3]::enc_size AS e, md5((i % 6)::text)::uuid AS u, ('p' || i * 7 % 5)::enc_plan AS dt, ('s' || i % 4)::enc_short AS dc, (ARRAY['large', 'small'])[1 + i % 2]::enc_domain_size AS de,
    date '1969-11-01' + i % 97 AS d, timestamp '1969-12-31 12:00' + i * interval '1 hour 7.000013 s' AS ts, timestamptz '2026-03-01 00:00+01' - i * interval '11 min 0.000001 s' AS tz,
    (i % 50 - 25) * interval '1 month 3 days -5.25 s' AS iv, time '23:59:59.999999' - i * interval '0.77 s' AS tm, (i % 90 * 1.27)::numeric::money AS mo, (i % 80 * 0.1 - 3)::numeric AS nu, i % 3 = 0 AS b,
    (date '2020-01-01' - i % 365)::enc_day AS dd, sin(i) * 3 AS x, cos(i * 5)::real AS r, i % 4 AS w, i % 5 < 3 AS half
FROM generate_series(1, 1200) AS i;
ANALYZE enc_rows;
\set ECHO all
-- each type alone, beside a number, and all of them
SELECT f AS feature, c.* FROM unnest('{t,v,c,n,e,u,dt,dc,de,d,ts,tz,iv,tm,mo,nu,b,dd}'::text[]) WITH ORDINALITY AS f (f, place), LATERAL pg_temp.compare('enc_rows', ARRAY['x', f]) AS c ORDER BY place;
SELECT c.* FROM pg_temp.compare('enc_rows', '{t}') AS c;
SELECT c.* FROM pg_temp.compare('enc_rows', '{r,t}') AS c; -- in float64
SELECT units, distance, c.* FROM unnest(ARRAY[false, true]) AS units, unnest(ARRAY['l2', 'cosine']) AS distance,
    LATERAL pg_temp.compare('enc_rows', '{t,v,x,c,n,e,d,u,dt,dc,ts,de,tz,iv,tm,mo,nu,b,dd,r}', 5, units => units, distance => distance) AS c ORDER BY units, distance;
SELECT (m.origin).features, array_agg(s.type || ' ' || s.encoding ORDER BY place) AS sources, string_agg(nullif(s.levels::text, '{}'), ' ' ORDER BY place) AS levels
FROM kmeans_fit('enc_rows', '{t,c,e,d,iv,de,dd,x,r,mo}', 2) AS m, LATERAL unnest((m.origin).sources) WITH ORDINALITY AS s (type, encoding, levels, place) GROUP BY m.origin;
SELECT (m.origin).sources = (g.origin).sources AND (m.origin).sources = (p.origin).sources AS same, (g.origin).features, (p.origin).relation, (g.origin).options->>'covariance_type' AS kind, (p.origin).options->>'whiten' AS whiten,
    (g.origin).fitted_at = now() AS now, (p.origin).means AS means FROM kmeans_fit('enc_rows', '{t,d}', 2) AS m, gmm_fit('enc_rows', '{t,d}', 2) AS g, pca_fit('enc_rows', '{t,d}') AS p;
-- weights and filters: a level of rows that take no part is no feature
SELECT c.* FROM pg_temp.compare('enc_rows', '{t,x,d}', weight => 'w') AS c;
SELECT c.* FROM pg_temp.compare('enc_rows', '{x,c,e}', weight => 'w', filter => 'half') AS c;
CREATE TABLE enc_few AS SELECT * FROM (VALUES ('a', 1.0, 1, true), ('b', 2, 0, true), ('c', 3, NULL, true), ('d', 4, 1, false), ('e', 5, 2, true), (NULL, 6, 1, NULL), (NULL, NULL, 1, true)) AS v (t, x, w, half);
SELECT weight, filter, (m.origin).sources[1].levels, m.n FROM (VALUES (NULL, NULL), ('w', NULL), (NULL, 'half'), ('w', 'half')) AS v (weight, filter), LATERAL kmeans_fit('enc_few', '{t,x}', 2, weight => weight, filter => filter) AS m;
SELECT weight, filter, c.* FROM (VALUES (NULL, NULL), ('w', NULL), (NULL, 'half'), ('w', 'half')) AS v (weight, filter), LATERAL pg_temp.compare('enc_few', '{t,x}', 2, weight => weight, filter => filter) AS c;

-- NULLs: a level of a category, but not with 'skip'; never of a row that has nothing else
CREATE TABLE enc_nulls AS SELECT CASE WHEN i % 5 > 0 THEN 'a' || i % 3 END AS a, CASE WHEN i % 7 > 0 THEN (ARRAY['small', 'large'])[1 + i % 2]::enc_size END AS e, CASE WHEN i % 3 > 0 THEN sin(i) END AS x,
    CASE WHEN i % 2 > 0 THEN date '2000-01-01' + i END AS d, 1 + i % 2 AS w FROM generate_series(1, 500) AS i;
SELECT features, nulls, c.*, levels FROM unnest(ARRAY['{a,x}', '{a,e}', '{e,d,a,x}', '{a}']::text[]) AS f (features), unnest(ARRAY['skip', 'mean']) AS nulls, LATERAL pg_temp.compare('enc_nulls', features::text[], nulls => nulls) AS c,
    LATERAL (SELECT string_agg(s.levels::text, ' ') AS levels FROM unnest(((kmeans_fit('enc_nulls', features::text[], 2, nulls => nulls)).origin).sources) AS s) AS s ORDER BY features COLLATE "C", nulls;
SELECT c.* FROM pg_temp.compare('enc_nulls', '{a,e}') AS c; -- 'error', of which there is none
SELECT c.* FROM pg_temp.compare('enc_nulls', '{e,d,a,x}', nulls => 'mean', weight => 'w', units => true) AS c;
SELECT pg_temp.outcome('SELECT kmeans_fit(''enc_nulls'', ''{a,x}'', 2)');
ALTER TABLE enc_nulls ADD none boolean GENERATED ALWAYS AS (a IS NULL AND x IS NULL) STORED, ADD bare boolean GENERATED ALWAYS AS (x IS NULL) STORED;
SELECT pg_temp.outcome(format('SELECT (kmeans_fit(''enc_nulls'', %L, 2, nulls => %L, filter => ''none'')).n', features, nulls)) FROM (VALUES ('{a,x}', 'mean'), ('{a,x}', 'skip'), ('{a}', 'skip')) AS v (features, nulls);
SELECT nulls, filter, pg_temp.outcome(format('SELECT (kmeans_fit(''enc_nulls'', ''{a,x}'', 2, nulls => %L, filter => %L)).n', nulls, filter)) FROM unnest(ARRAY['error', 'mean', 'skip']) AS nulls, unnest(ARRAY['none', 'bare']) AS filter ORDER BY nulls, filter;

-- times: the last bit of each value, which is the center of its row alone
CREATE TABLE enc_times AS SELECT ts, ts AT TIME ZONE 'UTC' AS tz, ts::date AS d, ts - timestamp '2001-02-03 04:05:06.000007' AS iv, ts::time AS tm, start, 1 AS w
FROM (VALUES (timestamp '1970-01-01'), ('0001-01-01'), ('4001-05-06 07:08:09 BC'), ('200000-01-01'), ('294276-10-01'), ('1969-12-31 23:59:59.999')) AS v (start), generate_series(0, 6) AS i,
    LATERAL (SELECT start + i * interval '1 day 3 min 0.123457 s') AS t (ts);
CREATE TABLE enc_one (LIKE enc_times);
CREATE FUNCTION pg_temp.differ(feature text) RETURNS TABLE (start timestamp, rows bigint, differ bigint, fits bool) LANGUAGE plpgsql AS $$
DECLARE
    r enc_times;
BEGIN
    FOR start IN SELECT DISTINCT t.start FROM enc_times AS t ORDER BY 1 LOOP
        rows := 0; differ := 0;
        FOR r IN SELECT * FROM enc_times AS t WHERE t.start = differ.start LOOP
            DELETE FROM enc_one;
            INSERT INTO enc_one SELECT r.*;
            PERFORM pg_temp.make_matrix('enc_one', ARRAY[feature]);
            rows := rows + 1; differ := differ + ((kmeans_fit('enc_one', ARRAY[feature], 1)).centroids <> (SELECT ARRAY[f] FROM enc_matrix))::int;
        END LOOP;
        DROP TABLE IF EXISTS enc_some;
        CREATE TEMP TABLE enc_some AS SELECT * FROM enc_times AS t WHERE t.start = differ.start;
        PERFORM pg_temp.make_matrix('enc_some', ARRAY[feature]);
        fits := kmeans_fit('enc_some', ARRAY[feature], 3) = kmeans_fit('enc_matrix', '{f}', 3);
        RETURN NEXT;
    END LOOP;
END $$;
SELECT f AS feature, c.* FROM unnest('{ts,tz,d,iv,tm}'::text[]) AS f, LATERAL pg_temp.differ(f) AS c;
-- lengths: months of 30 days, years of 365.25
CREATE TABLE enc_spans AS SELECT iv, 1 AS w FROM unnest(ARRAY['1 month', '-1 month', '11 mons 29 days 23:59:59.999999', '-14 mons 1 day -00:00:00.000001', '178000000 years', '-178000000 years 3 mons', '2147483647 days', '1000000 hours 0.1 s']::interval[]) AS iv;
SELECT c.* FROM pg_temp.compare('enc_spans', '{iv}', 8) AS c;
-- what is infinite is refused, with its row
CREATE TABLE enc_ends AS SELECT i AS id, CASE i WHEN 7 THEN date 'infinity' ELSE date '2000-01-01' + i END AS d, CASE i WHEN 5 THEN timestamp '-infinity' ELSE timestamp '2000-01-01' END AS ts, CASE i WHEN 9 THEN timestamptz 'infinity' ELSE 'epoch' END AS tz, 'a' AS t FROM generate_series(1, 9) AS i;
SELECT features, pg_temp.outcome(format('SELECT kmeans_fit(''enc_ends'', %L, 2)', features)) FROM unnest(ARRAY['{d}', '{ts}', '{t,tz}', '{id,t,d}']) AS features;
SELECT pg_temp.outcome(format('SELECT %s(''enc_ends'', ''{t,d}'', %s)', f, 'nulls => ''skip''' || CASE WHEN f = 'gmm_fit' THEN ', k => 2' ELSE '' END)) FROM unnest(ARRAY['gmm_fit', 'pca_fit']) AS f;

-- how many levels, and how many more
CREATE TABLE enc_many AS SELECT 'l' || i % 100 AS hundred, CASE WHEN i % 101 > 0 THEN 'l' || i % 101 END AS with_null, 'l' || i % 101 AS one_more, 'l' || i % 1000 AS thousand, i AS id, 'l' || i AS many, i % 3 AS x, 1 AS w FROM generate_series(1, 3000) AS i;
SELECT feature, pg_temp.outcome(format('SELECT (kmeans_fit(''enc_many'', ARRAY[''x'', %L], 2)).d', feature)) FROM unnest(ARRAY['hundred', 'with_null', 'one_more', 'thousand', 'many']) AS feature;
SELECT feature, pg_temp.outcome(format('SELECT (pca_fit(''enc_many'', ARRAY[''x'', %L])).d', feature)) FROM unnest(ARRAY['hundred', 'one_more']) AS feature;
SELECT gmm_fit('enc_many', '{one_more}', 2);
SET pg_kmeans.max_levels = 1001;
SELECT d FROM kmeans_fit('enc_many', '{one_more,thousand}', 2, options => kmeans_options(max_iter => 2));
SELECT pg_temp.outcome('SELECT (kmeans_fit(''enc_many'', ''{many}'', 2)).d');
SET pg_kmeans.max_levels = 2;
SELECT pg_temp.outcome('SELECT (kmeans_fit(''enc_few'', ''{t}'', 2)).d'), pg_temp.outcome('SELECT (kmeans_fit(''enc_few'', ''{t}'', 2, weight => ''w'', filter => ''half'')).d') AS weighted;
RESET pg_kmeans.max_levels;

-- long levels and odd ones, under every collation
CREATE COLLATION enc_any (provider = icu, locale = 'und');
CREATE COLLATION enc_loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE TABLE enc_odd WITH (parallel_workers = 3) AS
SELECT t, t COLLATE "C" AS c, t COLLATE enc_any AS any, t COLLATE enc_loose AS loose, t COLLATE "POSIX" AS posix, i % 5 AS x, 1 AS w FROM generate_series(1, 4) AS i,
    unnest(ARRAY['', ' ', '  ', 'Pro', 'pro', 'PRO', 'pro ', E'\x01', E'\t\n', 'é', U&'e\0301', 'E', U&'\+01F600', U&'\FFFF', '"', '\', ',', '{}', 'NULL', 'null', '''', 'a', 'ab', 'Z', repeat('long', 2500), repeat('longer', 2500) || 'a', repeat('longer', 2500) || 'b', NULL]) AS t;
SELECT f AS feature, c.* FROM unnest('{t,c,any,loose,posix}'::text[]) WITH ORDINALITY AS f (f, place), LATERAL pg_temp.compare('enc_odd', ARRAY[f, 'x'], 9) AS c ORDER BY place;
SELECT count(DISTINCT m.origin::text) AS models FROM unnest('{c,any,loose,posix}'::text[]) AS f, LATERAL (SELECT jsonb_populate_record(o, '{"features": ["f"]}') FROM (SELECT (kmeans_fit('enc_odd', ARRAY[f, 'x'], 9)).origin AS o) AS s) AS m (origin);
SELECT count(*), every(a = b) AS same FROM kmeans_fit('enc_odd', '{loose}', 5) AS m, LATERAL unnest((m.origin).sources[1].levels, (SELECT array_agg(DISTINCT t COLLATE "C" ORDER BY t COLLATE "C") FROM enc_odd)) AS l (a, b) WHERE a IS NOT NULL;
CREATE TABLE enc_long (compressed text, external text, name text, x int, w int) WITH (parallel_workers = 3);
ALTER TABLE enc_long ALTER external SET STORAGE EXTERNAL;
INSERT INTO enc_long SELECT repeat('x' || i % 3, 100000), repeat(md5((i % 4)::text), 6250), 'short' || i % 2, i % 7, 1 FROM generate_series(1, 60) AS i;
INSERT INTO enc_long VALUES ('x', 'y', 'z', 1, 1), (NULL, NULL, NULL, 2, 1);
SELECT road, c.* FROM unnest(ARRAY['direct', 'executor']) AS road, set_config('pg_kmeans.scan', road, false), LATERAL pg_temp.compare('enc_long', '{external,x,compressed,name}') AS c;
RESET pg_kmeans.scan;

-- the same bits on every road
CREATE TABLE enc_part_a (half boolean, w int, d date, x float8, filler text, e enc_size, id int NOT NULL, t text);
CREATE TABLE enc_part_b (x float8, t text, id int NOT NULL, gone int, e enc_size, d date, w int, half boolean);
ALTER TABLE enc_part_a DROP COLUMN filler;
ALTER TABLE enc_part_b DROP COLUMN gone;
CREATE TABLE enc_parts (id int NOT NULL, t text, e enc_size, d date, x float8, w int, half boolean) PARTITION BY RANGE (id);
ALTER TABLE enc_parts ATTACH PARTITION enc_part_a FOR VALUES FROM (0) TO (500);
ALTER TABLE enc_parts ATTACH PARTITION enc_part_b FOR VALUES FROM (500) TO (9999);
INSERT INTO enc_parts SELECT id, t, e, d, x, w, half FROM enc_rows;
CREATE VIEW enc_view AS SELECT * FROM enc_rows;
CREATE TABLE enc_turned WITH (parallel_workers = 3) AS SELECT * FROM enc_rows ORDER BY id DESC;
ANALYZE enc_parts, enc_turned;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
CREATE TABLE enc_models AS SELECT features, weight, nulls, kmeans_fit('enc_rows', features, 4, weight => weight, nulls => nulls) AS m, pca_fit('enc_rows', features, weight => weight, nulls => nulls) AS p
FROM (VALUES ('{t,x,e,d}'::text[], NULL, 'error'), ('{t,e}', 'w', 'skip'), ('{d,t,x}', 'w', 'mean')) AS v (features, weight, nulls);
SELECT relation, scan, workers, every(m = other AND ((m).origin).sources = ((other).origin).sources) AS kmeans, count(*)
FROM unnest(ARRAY['enc_rows', 'enc_turned', 'enc_parts', 'enc_view']) AS relation, (VALUES ('direct', 0), ('direct', 3), ('executor', 0)) AS s (scan, workers), LATERAL set_config('max_parallel_workers_per_gather', workers::text, false) AS c,
    LATERAL set_config('pg_kmeans.scan', CASE WHEN relation = 'enc_view' THEN 'auto' ELSE scan END, false) AS d, enc_models, LATERAL (SELECT kmeans_fit(relation, features, 4, weight => weight, nulls => nulls) AS other) AS o
GROUP BY relation, scan, workers ORDER BY relation, scan, workers;
SET pg_kmeans.scan = direct;
SET max_parallel_workers_per_gather = 3;
SELECT every(m = kmeans_fit('enc_rows', features, 4, weight => weight, nulls => nulls)) AS kmeans, every(p = pca_fit('enc_rows', features, weight => weight, nulls => nulls)) AS pca FROM enc_models;
SELECT pg_temp.outcome('SELECT kmeans_fit(''enc_rows'', ''{ts,uu}'', 4)'), c.* FROM pg_temp.compare('enc_rows', '{ts,u,c,n,de}', 4) AS c;
CREATE TABLE enc_spread WITH (parallel_workers = 3) AS SELECT 'l' || i / 60 AS t FROM generate_series(1, 8999) AS i; -- each process meets some of them
SELECT pg_temp.outcome('SELECT (kmeans_fit(''enc_spread'', ''{t}'', 3)).d');
SET pg_kmeans.max_levels = 150;
SELECT (kmeans_fit('enc_spread', '{t}', 3)).d;
RESET pg_kmeans.max_levels;
SET max_parallel_workers_per_gather = 0;
RESET min_parallel_table_scan_size;
RESET pg_kmeans.scan;
-- loaded rows; rows are not streamed
SELECT kmeans_load('enc_rows', features, weight, nulls => nulls) FROM enc_models;
SELECT every(m = other AND ((m).origin).sources = ((other).origin).sources) AS kmeans, every(p = pca_fit('enc_rows', features, weight => weight, nulls => nulls, memory => 'loaded')) AS pca
FROM enc_models, LATERAL (SELECT kmeans_fit('enc_rows', features, 4, weight => weight, nulls => nulls, memory => 'loaded') AS other) AS o;
SELECT features, d, n FROM kmeans_loaded() ORDER BY d;
SELECT kmeans_unload();
SELECT pg_temp.outcome('SELECT kmeans_fit(''enc_rows'', ''{t,x}'', 2, memory => ''stream'')'), pg_temp.outcome('SELECT pca_fit(''enc_rows'', ''{t,x}'', memory => ''stream'')') AS pca;
SET pg_kmeans.memory_limit = '1600kB';
SELECT (kmeans_fit('enc_many', '{id,x}', 2)).d AS numbers, pg_temp.outcome('SELECT kmeans_fit(''enc_many'', ''{hundred,x}'', 2)');
RESET pg_kmeans.memory_limit;

-- the other functions of tables
SELECT pg_temp.make_matrix('enc_rows', '{t,x,e,d}');
SELECT count(*), every(a.cluster_id = b.cluster_id AND a.distance = b.distance) AS labels FROM
    (SELECT l.*, row_number() OVER (ORDER BY row_ctid) AS i FROM kmeans_labels('enc_rows', '{t,x,e,d}', 4) AS l) AS a FULL JOIN (SELECT l.*, row_number() OVER (ORDER BY row_ctid) AS i FROM kmeans_labels('enc_matrix', '{f}', 4) AS l) AS b USING (i);
SELECT count(*), every(a.component_id = b.component_id) AS components FROM
    (SELECT l.*, row_number() OVER (ORDER BY row_ctid) AS i FROM gmm_labels('enc_rows', '{t,x,e,d}', 2) AS l) AS a FULL JOIN (SELECT l.*, row_number() OVER (ORDER BY row_ctid) AS i FROM gmm_labels('enc_matrix', '{f}', 2) AS l) AS b USING (i);
SELECT kmeans_cluster('enc_rows', '{t,x,e,d}', 4, label_column => 'label') = m AS model FROM enc_models WHERE nulls = 'error';
SELECT gmm_cluster('enc_rows', '{t,x,e,d}', 2, label_column => 'component') = gmm_fit('enc_matrix', '{f}', 2) AS model;
SELECT count(component), count(*), every(l.cluster_id = label) AS as_labels FROM kmeans_labels('enc_rows', '{t,x,e,d}', 4) AS l JOIN enc_rows AS r ON r.ctid = l.row_ctid;
SELECT kmeans_cluster('enc_parts', '{t,x,e,d}', 4, label_column => 'label') = m AS model FROM enc_models WHERE nulls = 'error';
SELECT count(*), every(a.label = b.label) AS in_parts FROM enc_parts AS a JOIN enc_rows AS b USING (id);
SELECT count(*), every(a = b) AS sweeps FROM kmeans_sweep('enc_rows', '{t,x,e,d}', 2, 4) AS a FULL JOIN kmeans_sweep('enc_matrix', '{f}', 2, 4) AS b USING (k);
SELECT count(*), every(a = b) AS trees FROM kmeans_tree('enc_rows', '{t,x,e,d}', '{3,2}') AS a FULL JOIN kmeans_tree('enc_matrix', '{f}', '{3,2}') AS b USING (node_id);
SELECT name FROM regexp_matches(kmeans_plot('enc_rows', '{de}', 2), '>(de [^<]*)<', 'g') AS m (name);
SELECT name FROM regexp_matches(kmeans_plot('enc_few', '{t}', 2, filter => 'half', weight => 'w'), '>(t [^<]*)<', 'g') AS m (name);
SELECT kmeans_plot('enc_rows', '{t,x}', 2) LIKE '%component 1 (%' AS plot, gmm_plot(gmm_fit('enc_rows', '{t,x}', 2)) IS NOT NULL AS mixture;

-- a model knows its levels: a fit goes on with them, and what is new is none of them
CREATE TABLE enc_later AS SELECT id, CASE WHEN id % 3 = 0 THEN 'new' ELSE t END AS t, round(x::numeric, 3)::float8 AS x, e, d + 9 AS d, w FROM enc_rows WHERE id < 900 UNION ALL SELECT 0, 'new', NULL, NULL, NULL, 1;
CREATE TABLE enc_kept AS SELECT m FROM enc_models WHERE nulls = 'error';
SELECT pg_temp.make_matrix('enc_later', '{t,x,e,d}', 'x IS NOT NULL AND t IS NOT NULL AND e IS NOT NULL', ((m).origin).sources) FROM enc_kept;
SELECT road, a = b AS same, a.d, (a.origin).sources = ((m).origin).sources AS sources FROM enc_kept, unnest(ARRAY['direct', 'executor']) AS road, set_config('pg_kmeans.scan', road, false),
    LATERAL kmeans_fit('enc_later', '{t,x,e,d}', 4, nulls => 'skip', options => kmeans_options(init_model => m)) AS a,
    kmeans_fit('enc_matrix', '{f}', 4, options => kmeans_options(init_centroids => (m).centroids, n_init => 1)) AS b;
RESET pg_kmeans.scan;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET pg_kmeans.max_levels = 1; -- counts what a fit finds itself
SELECT kmeans_fit('enc_turned', '{t,x,e,d}', 4, options => kmeans_options(init_model => m)) = kmeans_fit('enc_rows', '{t,x,e,d}', 4, options => kmeans_options(init_model => m)) AS workers FROM enc_kept;
RESET pg_kmeans.max_levels;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
SELECT every(o.distance = kmeans_distance(m, f) AND o.cluster_id = kmeans_predict(m, f)) AS outliers, count(*) > 0 AS any FROM enc_kept, LATERAL kmeans_outliers('enc_rows', model => m, threshold => 1) AS o
    JOIN enc_rows AS r ON r.ctid = o.row_ctid, LATERAL (SELECT pg_temp.one_hot(r.t, ((m).origin).sources[1].levels) || r.x || pg_temp.one_hot(r.e::text, ((m).origin).sources[3].levels) || (extract(epoch FROM r.d)::float8 / 86400)) AS s (f);
SELECT count(*) > 0 AS any FROM enc_kept, kmeans_outliers('enc_later', NULL, m, 0.5, nulls => 'skip');
-- another kind of column under the same name; a number of another type is none
ALTER TABLE enc_later ALTER x TYPE numeric, ALTER d TYPE timestamp, ALTER e TYPE text, ALTER t TYPE char(9);
SELECT kmeans_fit('enc_later', '{t,x,e,d}', 4, nulls => 'skip', options => kmeans_options(init_model => m)) = kmeans_fit('enc_matrix', '{f}', 4, options => kmeans_options(init_centroids => (m).centroids)) AS same FROM enc_kept;
ALTER TABLE enc_later ALTER x TYPE text;
SELECT pg_temp.outcome('SELECT kmeans_fit(''enc_later'', ''{t,x,e,d}'', 4, options => kmeans_options(init_model => m)) FROM enc_kept'), pg_temp.outcome('SELECT kmeans_outliers(''enc_later'', model => m) FROM enc_kept') AS outliers;
ALTER TABLE enc_later DROP x;
SELECT pg_temp.outcome('SELECT kmeans_outliers(''enc_later'', model => m) FROM enc_kept'), pg_temp.outcome('SELECT kmeans_outliers(''enc_rows'', model => jsonb_populate_record(m, ''{"origin": null}'')) FROM enc_kept') AS nameless,
    pg_temp.outcome('SELECT kmeans_outliers(''enc_rows'', ''{t}'')') AS none;

-- out as JSON and back
SELECT jsonb_populate_record(NULL::kmeans_model, to_jsonb(m)) = m AS model, (jsonb_populate_record(NULL::kmeans_model, to_jsonb(m))).origin *= (m).origin AS origin,
    (jsonb_populate_record(NULL::pca_model, to_jsonb(p))).origin *= (p).origin AS pca, m::text::kmeans_model = m AS text, (m::text::kmeans_model).origin *= (m).origin AS text_origin FROM enc_models;
SELECT (jsonb_populate_record(NULL::kmeans_model, to_jsonb(m))).origin *= m.origin AS origin FROM kmeans_fit('enc_odd', '{t}', 5) AS m;
SELECT m = jsonb_populate_record(m, '{"origin": {"sources": null}}') AS of_figures FROM enc_kept;

-- forged models
SELECT short AS forged, pg_temp.outcome(format('SELECT (kmeans_fit(''enc_rows'', ''{t,x,e,d}'', 4, options => kmeans_options(init_model => jsonb_populate_record(m, %L)))).d FROM enc_kept', jsonb_build_object('origin', forged::jsonb))) AS fit,
    pg_temp.outcome(format('SELECT count(*) > 0 FROM enc_kept, kmeans_outliers(''enc_rows'', ''{t,x,e,d}'', jsonb_populate_record(m, %L), 1)', jsonb_build_object('origin', forged::jsonb))) AS outliers
FROM unnest(ARRAY[
    '{"sources": [C(["basic", "free", "pro", null]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["pro", "free", "basic", null]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "basic", "pro", null]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C([null, "basic", "free", "pro"]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", null, null]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "high", "pro", null]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro"]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C([]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(null), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C([["basic", "free"], ["pro", "top"]]), N, C(["large", "medium", "small"]), D]}',
    '{"sources": [N, N, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro", null]), N, C(["large", "medium", "small"])]}',
    '{"sources": [C(["basic", "free", "pro", null]), N, C(["large", "medium", "small"]), D, D]}',
    '{"sources": [C(["basic", "free", "pro", null]), N, C(["large", "medium", "small"]), null]}',
    '{"sources": [C(["basic", "free", "pro", null]), D, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro", null]), {"type": "text", "encoding": "ordinal"}, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro", null]), {"type": null, "encoding": "number"}, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro", null]), {"type": "text", "encoding": null}, C(["large", "medium", "small"]), D]}',
    '{"sources": [C(["basic", "free", "pro", null]), {"type": "real[]", "encoding": "vector"}, C(["large", "medium", "small"]), D]}',
    '{"sources": []}', '{"sources": null}', '{"features": ["t", "x", "e"]}', '{"features": ["t", "x", "e", null]}', '{"features": []}', '{"features": null}',
    '{"means": [1]}']) WITH ORDINALITY AS f (short, place), LATERAL (SELECT regexp_replace(regexp_replace(regexp_replace(short, 'C\(([^)]*)\)', '{"type": "text", "encoding": "category", "levels": \1}', 'g'),
    '\mN\M', '{"type": "real", "encoding": "number"}', 'g'), '\mD\M', '{"type": "date", "encoding": "date"}', 'g')) AS g (forged) ORDER BY place;
SELECT pg_temp.outcome(format('SELECT kmeans_predict(jsonb_populate_record(m, %L), array_fill(0::float8, ARRAY[(m).d])) IS NOT NULL FROM enc_kept', forged)), pg_temp.outcome(format('SELECT count(*) FROM enc_kept, kmeans_profile(jsonb_populate_record(m, %L))', forged)) AS profile
FROM unnest(ARRAY['{"origin": {"sources": [null, null, null, null]}}', '{"origin": {"features": null}}']) AS forged;
DROP VIEW enc_view;
DROP TABLE enc_rows, enc_few, enc_nulls, enc_times, enc_one, enc_spans, enc_ends, enc_many, enc_odd, enc_long, enc_parts, enc_turned, enc_models, enc_spread, enc_later, enc_kept;
DROP COLLATION enc_any, enc_loose;
DROP DOMAIN enc_plan, enc_short, enc_domain_size, enc_day;
DROP TYPE enc_size;

-- Features that are SQL expressions, filters that are conditions, and '*', all columns.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE FUNCTION pg_temp.said(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text; hint text; result text; context text;
BEGIN
    EXECUTE query INTO result;
    RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''), substring(context FROM '^(expression "[^\n]*"(\nrow [^\n]*)?)'));
END $$;
CREATE TABLE expression_rows (id integer PRIMARY KEY, income float8, age integer, plan text, doc jsonb, x real, y real, "a + b" integer, a integer, b integer, since timestamp, day date, keep boolean, label integer);
INSERT INTO expression_rows SELECT i, 1 + i % 7 * 1000 + i % 3, 20 + i % 50, (ARRAY['pro', 'free', NULL])[1 + i % 3], jsonb_build_object('score', i % 11 * 0.5), CASE WHEN i % 50 > 0 THEN i % 5 + sin(i) END, i % 3 * 4 + cos(i), i % 4, i % 6, i % 9,
    timestamp '2024-01-01' + i * interval '7 hours', date '2024-01-01' + i % 60, i % 2 = 0 FROM generate_series(1, 600) AS i;
ANALYZE expression_rows;
-- a table of what SQL makes of each
CREATE TABLE expression_results AS SELECT id, keep, ln(income) AS e1, age AS e2, plan AS e3, (doc->>'score')::float8 AS e4, age > 30 AS e5, date_trunc('month', since) AS e6, income / age AS e7, upper(plan) AS e8, "a + b" AS e9,
    CASE WHEN a > 2 THEN 'many' WHEN b > 3 THEN plan END AS e10, day + 7 AS e11, coalesce(x, 9) AS e12, x * 2 AS e13, day - date '2024-01-15' AS e14, since::time AS e15, a = ANY (ARRAY[1, 3]) AS e16, ARRAY[x, y] AS e17, ARRAY[a, b]::numeric[] AS e18, x::float8 + y AS e19 FROM expression_rows;
ANALYZE expression_results;
CREATE VIEW expression_view AS SELECT * FROM expression_rows;
CREATE TABLE expression_parts (LIKE expression_rows) PARTITION BY RANGE (id);
CREATE TABLE expression_part_1 PARTITION OF expression_parts FOR VALUES FROM (0) TO (200);
CREATE TABLE expression_part_2 (label integer, keep boolean, gone text, day date, since timestamp, b integer, a integer, "a + b" integer, y real, x real, doc jsonb, plan text, age integer, income float8, id integer NOT NULL);
ALTER TABLE expression_part_2 DROP gone;
ALTER TABLE expression_parts ATTACH PARTITION expression_part_2 FOR VALUES FROM (200) TO (1000);
INSERT INTO expression_parts SELECT * FROM expression_rows;

-- The model is the one of a table of the expressions' values: by every way to the rows.
CREATE TABLE expression_cases (line integer, features text[], columns text[], nulls text);
INSERT INTO expression_cases VALUES (1, ARRAY['ln(income)', 'age', 'plan', '(doc->>''score'')::float8', 'age > 30'], '{e1,e2,e3,e4,e5}', 'error'), (2, ARRAY['date_trunc(''month'', since)', 'income / age', 'upper(plan)', 'a + b'], '{e6,e7,e8,e9}', 'error'),
    (3, ARRAY['CASE WHEN a > 2 THEN ''many'' WHEN b > 3 THEN plan END', 'day + 7', 'coalesce(x, 9)'], '{e10,e11,e12}', 'error'), (4, ARRAY['x * 2', 'day - ''2024-01-15''::date', 'since::time'], '{e13,e14,e15}', 'mean'), (5, ARRAY['x*2', 'plan', '  a = ANY (''{1,3}'')'], '{e13,e3,e16}', 'skip'),
    (6, ARRAY['ARRAY[x, y]'], '{e17}', 'mean'), (7, ARRAY['ARRAY[a, b]::numeric[]'], '{e18}', 'error'), (8, ARRAY['ln(income)', 'x::float8 + y'], '{e1,e19}', 'mean');
CREATE FUNCTION pg_temp.same(relation regclass) RETURNS TABLE (line integer, kmeans bool, gmm bool, pca bool, fills bool, n bigint, d integer) LANGUAGE sql AS $$
    SELECT line, m = e, (g).means = (h).means AND (g).log_likelihood = (h).log_likelihood, (p).components = (q).components AND (p).mean = (q).mean, (m).fills = (e).fills AND (g).fills = (h).fills AND (p).fills = (q).fills, (m).n, (m).d
    FROM expression_cases AS c, kmeans_fit('expression_results', columns, 4, nulls => nulls) AS e, gmm_fit('expression_results', columns, 2, options => gmm_options(reg_covar => 1, max_iter => 3), nulls => nulls) AS h, pca_fit('expression_results', columns, nulls => nulls) AS q,
    kmeans_fit(relation, features, 4, nulls => nulls) AS m, gmm_fit(relation, features, 2, options => gmm_options(reg_covar => 1, max_iter => 3), nulls => nulls) AS g, pca_fit(relation, features, nulls => nulls) AS p ORDER BY line
$$;
SELECT * FROM pg_temp.same('expression_rows');
SELECT scan FROM kmeans_last_run();
SELECT 'view' AS of, every(kmeans AND gmm AND pca AND fills), count(*) FROM pg_temp.same('expression_view') UNION ALL SELECT 'partitions', every(kmeans AND gmm AND pca AND fills), count(*) FROM pg_temp.same('expression_parts');
SET pg_kmeans.scan = executor;
SELECT every(kmeans AND gmm AND pca AND fills) AS executor, count(*) FROM pg_temp.same('expression_rows');
SET pg_kmeans.scan = direct;
SELECT every(kmeans AND gmm AND pca AND fills) AS direct, count(*) FROM pg_temp.same('expression_parts');
RESET pg_kmeans.scan;
SET min_parallel_table_scan_size = 0;
ALTER TABLE expression_rows SET (parallel_workers = 2);
SELECT every(kmeans AND gmm AND pca AND fills) AS workers, count(*), (SELECT workers FROM kmeans_last_run()) FROM pg_temp.same('expression_rows');
RESET min_parallel_table_scan_size;

-- Other functions: labels resident and streamed, loaded rows, a sweep, an init_model, outliers, trees and pictures
CREATE FUNCTION pg_temp.labels(relation regclass, features text[], memory text) RETURNS bigint[] LANGUAGE sql AS $$
    SELECT array_agg(l.cluster_id::bigint ORDER BY l.row_table, l.row_ctid) FROM kmeans_labels(relation, features, 3, memory => memory) AS l
$$;
SELECT memory, pg_temp.labels('expression_rows', ARRAY['ln(income)', 'age + 0'], 'auto') = pg_temp.labels('expression_results', '{e1,e2}', 'auto') AS labels, kmeans_fit('expression_rows', ARRAY['ln(income)', 'age + 0'], 3, memory => memory) = kmeans_fit('expression_results', '{e1,e2}', 3) AS model FROM unnest('{resident,stream}'::text[]) AS memory;
SELECT pg_temp.labels('expression_rows', ARRAY['ln(income)', 'upper(plan)'], 'resident') = pg_temp.labels('expression_results', '{e1,e8}', 'resident') AS categories, pg_temp.said($$SELECT kmeans_fit('expression_rows', ARRAY['upper(plan)'], 3, memory => 'stream')$$) AS streamed;
SELECT memory, kmeans_cluster('expression_rows', ARRAY['ln(income)', 'age + 0'], 3, memory => memory, label_column => 'label', overwrite => true) = kmeans_fit('expression_results', '{e1,e2}', 3) AS model FROM unnest('{stream,resident}'::text[]) AS memory;
SELECT count(*), every(label = kmeans_predict(m, r)) AS labels, every(label = kmeans_predict(m, v)) AS of_a_view, every(label = kmeans_predict(m, w.r)) AS by_value FROM kmeans_fit('expression_rows', ARRAY['ln(income)', 'age + 0'], 3) AS m, expression_rows AS r JOIN expression_view AS v USING (id, label), LATERAL (SELECT r OFFSET 0) AS w;
SELECT count(*), every(label = kmeans_predict(m, s)) AS of_a_subquery FROM (SELECT label, age, income FROM expression_rows) AS s, kmeans_fit('expression_rows', ARRAY['ln(income)', 'age + 0'], 3) AS m;
-- by workers alone
SET parallel_leader_participation = off;
SELECT memory, kmeans_cluster('expression_rows', ARRAY['ln(income)', 'age + 0'], 3, memory => memory, label_column => 'label', overwrite => true) = kmeans_fit('expression_results', '{e1,e2}', 3) AS model FROM unnest('{stream,resident}'::text[]) AS memory;
RESET parallel_leader_participation;
SELECT kmeans_load('expression_rows', ARRAY['ln(income)', 'upper(plan)'], filter => 'age > 25');
SELECT kmeans_fit('expression_rows', ARRAY['ln(income)', 'upper(plan)'], 3, memory => 'loaded', filter => 'age > 25') = kmeans_fit('expression_results', '{e1,e8}', 3, filter => 'e2 > 25') AS loaded, features, filter FROM kmeans_loaded();
SELECT kmeans_unload();
SELECT count(*), every(s.inertia = t.inertia AND s.silhouette IS NOT DISTINCT FROM t.silhouette) AS sweep FROM kmeans_sweep('expression_rows', ARRAY['ln(income)', 'upper(plan)'], 2, 4) AS s JOIN kmeans_sweep('expression_results', '{e1,e8}', 2, 4) AS t USING (k);
SELECT count(*), every(s = t) AS tree FROM kmeans_tree('expression_rows', ARRAY['ln(income)', 'age + 0'], '{2,2}') AS s JOIN kmeans_tree('expression_results', '{e1,e2}', '{2,2}') AS t USING (node_id);
SELECT count(*), every(o.distance = kmeans_distance(m, r)) AS outliers FROM kmeans_fit('expression_rows', ARRAY['ln(income)', 'upper(plan)', 'age > 30'], 3) AS m, kmeans_outliers('expression_rows', model => m, threshold => 1.2) AS o JOIN expression_rows AS r ON r.ctid = o.row_ctid;
SELECT a.n_iter AS goes_on FROM kmeans_fit('expression_rows', ARRAY['ln(income)', 'upper(plan)', 'age > 30'], 3, options => kmeans_options(tol => 0)) AS m, kmeans_fit('expression_rows', (m).origin.features, 3, options => kmeans_options(init_model => m)) AS a;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_rows', ARRAY['ln(income)'], 3, options => kmeans_options(init_model => kmeans_fit('expression_rows', ARRAY['log(income)'], 3)))$$) AS another_expression,
    pg_temp.said($$SELECT kmeans_fit('expression_results', '{e1}', 3, options => kmeans_options(init_model => kmeans_fit('expression_rows', ARRAY['ln(income)'], 3)))$$) AS a_column_of_it;
SELECT kmeans_plot('expression_rows', ARRAY['ln(income)', 'age + 0'], 3) LIKE '%ln(income)%' AS picture, (SELECT string_agg(DISTINCT feature, ', ' ORDER BY feature) FROM kmeans_profile(kmeans_fit('expression_rows', ARRAY['ln(income)', 'age > 30'], 2))) AS profile;

-- Names: a column wins; what has no sign of an expression is a name
SELECT kmeans_fit('expression_rows', '{a + b}', 2) = kmeans_fit('expression_results', '{e9}', 2) AS column, kmeans_fit('expression_rows', '{b + a}', 2) = kmeans_fit('expression_rows', '{a + b}', 2) AS expression, kmeans_fit('expression_rows', '{"\"a + b\" + 0"}', 2) = kmeans_fit('expression_results', '{e9}', 2) AS of_the_column;
SELECT features, pg_temp.said(format('SELECT (kmeans_fit(''expression_rows'', %L, 1, nulls => ''skip'')).n', features)) FROM unnest(ARRAY['{nothing}', '{nothing + 1}', '{INCOME}', '{INCOME + 0}', '{"\"INCOME\" + 0"}', '{" income"}', '{"\"income\""}', '{""}', '{" "}', '{*,age}', '{age,*}', '{income + 0,income + 0}', '{income+0,income + 0}', '{NULL}', '{x + NULL}', '{expression_rows.age + 0}', '{(expression_rows)}', '{ctid + 0}', '{ctid::text}', '{"ARRAY[x, y]",age}', '{"(doc)"}', '{"(since, day)"}', '{"NULL + 0"}', '{''a''::unknown}', '{"(''7'')"}', '{7 + 0}']) WITH ORDINALITY AS v (features, line) ORDER BY line;

-- What a model cannot have. A view can, as the hint says.
CREATE FUNCTION expression_volatile(float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT $1';
CREATE FUNCTION expression_mine(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE DOMAIN expression_domain AS float8;
CREATE TYPE expression_pair AS (l float8, r float8);
CREATE TYPE expression_mood AS ENUM ('sad', 'glad');
SELECT expression, pg_temp.said(format('SELECT (kmeans_fit(''expression_rows'', ARRAY[%L], 1)).n', expression)) FROM unnest(ARRAY['random() + a', 'age + extract(epoch from now())', 'extract(epoch from current_date)', 'since - current_timestamp', 'day - ''today''::date', 'day - ''2024-01-02''::date', 'day - ''01/02/2024''::date', 'since - ''now''::timestamp', 'since + ''-1 2:03:04''::interval', 'since = ANY (''{now}''::timestamp[])', '''2024-01-02 00:00''::timestamptz - since', 'since - ''2024-01-02 00:00+00''::timestamptz', 'date_trunc(''day'', since::timestamptz)', 'to_char(day, ''Mon'')', 'to_char(since, ''YYYY'')', 'current_user::text', 'length(current_setting(''work_mem''))', 'expression_mine(age)', 'expression_volatile(age)', 'public.expression_mine(age)', 'age::expression_domain', 'age::public.expression_domain', 'plan::expression_mood', 'ROW(x, y)::expression_pair', 'age OPERATOR(public.+) 1', 'age OPERATOR(pg_catalog.+) 1', 'pg_catalog.ln(income)', '(SELECT 1)', 'age IN (SELECT 1)', 'EXISTS (SELECT 1)', 'ARRAY(SELECT 1)', 'sum(age)', 'count(*)', 'rank() OVER ()', 'sum(age) OVER ()', 'generate_series(1, age)', 'unnest(ARRAY[age])', '$1 + age', 'age; DROP TABLE expression_rows', 'age FROM expression_rows', 'age WHERE true', 'age, x', 'age AS years', 'expression_rows.*', 'DISTINCT age', 'age +', 'age + ''one''', 'nextval(''x'')', 'pg_read_file(''PG_VERSION'')', 'ln(income', 'income / NULLIF(0, 0)', 'plan COLLATE "C"', 'plan < ''p''', 'tableoid + 0', 'GROUPING(age)', 'DEFAULT + 1', 'xmlelement(name a)', '-- age' || E'\nage', 'age /* years */'])
    WITH ORDINALITY AS v (expression, line) ORDER BY line;
CREATE VIEW expression_hint AS SELECT expression_mine(age) AS mine, (SELECT 1) AS one, sum(age) OVER () AS total, extract(epoch FROM current_date) AS today FROM expression_rows;
SELECT (kmeans_fit('expression_hint', '{mine,one,total,today}', 1)).n;
-- Columns of enumerations and domains serve in expressions.
CREATE TABLE expression_moods AS SELECT i AS id, (ARRAY['sad', 'glad'])[1 + i % 2]::expression_mood AS mood, i::float8::expression_domain AS price FROM generate_series(1, 40) AS i;
SELECT pg_temp.said(format('SELECT count(kmeans_predict(m, e)) || '' '' || every(kmeans_predict(m, e) IS NOT DISTINCT FROM kmeans_predict(m, w.e)) FROM kmeans_fit(''expression_moods'', ARRAY[%L], 2) AS m, expression_moods AS e, LATERAL (SELECT e OFFSET 0) AS w', expression)) FROM unnest(ARRAY['mood = ''sad''', 'price * 2', 'CASE WHEN price > 20 THEN mood END', 'coalesce(mood, ''glad'')', 'mood::text', 'mood = ''odd''']) WITH ORDINALITY AS v (expression, line) ORDER BY line;
-- The built-in operator and function are taken, whatever the search path has before them; a model means the same under all settings.
CREATE SCHEMA expression_first;
CREATE FUNCTION expression_first.minus(integer, integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 7';
CREATE OPERATOR expression_first.- (LEFTARG = integer, RIGHTARG = integer, FUNCTION = expression_first.minus);
CREATE FUNCTION expression_first.upper(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'mine'$$;
CREATE TABLE expression_before AS SELECT kmeans_fit('expression_rows', ARRAY['age - a', 'upper(plan)', 'day - ''2024-02-03''::date', 'coalesce(plan = NULL, a > 2)', 'since - ''1 day 2 hours''::interval'], 3, nulls => 'mean') AS m;
SET search_path = expression_first, pg_catalog, public;
SET DateStyle = 'SQL, DMY'; SET IntervalStyle = iso_8601; SET TimeZone = 'Asia/Kathmandu'; SET transform_null_equals = on; SET standard_conforming_strings = off; SET escape_string_warning = off; SET extra_float_digits = 0;
SELECT 5 - 3 AS mine, upper('a');
SELECT m = kmeans_fit('expression_rows', (m).origin.features, 3, nulls => 'mean') AS same_fit, (SELECT every(kmeans_distance(m, r) = kmeans_distance(kmeans_fit, r)) FROM expression_rows AS r, kmeans_fit('expression_rows', (m).origin.features, 3, nulls => 'mean')) AS same_rows FROM expression_before;
RESET search_path; RESET DateStyle; RESET IntervalStyle; RESET TimeZone; RESET transform_null_equals; RESET standard_conforming_strings; RESET escape_string_warning; RESET extra_float_digits;

-- An expression that fails names the row; it is not evaluated for rows that the filter leaves out.
CREATE TABLE expression_failing AS SELECT * FROM expression_rows ORDER BY id;
INSERT INTO expression_failing (id, income, age) VALUES (601, 0, 0);
ALTER TABLE expression_failing SET (parallel_workers = 2);
CREATE VIEW expression_failing_view AS SELECT * FROM expression_failing;
INSERT INTO expression_parts (id, income, age) VALUES (601, 0, 0);
SELECT tableoid::regclass, ctid FROM expression_failing WHERE id = 601 UNION ALL SELECT tableoid::regclass, ctid FROM expression_parts WHERE id = 601;
SELECT pg_temp.said(format('SELECT (kmeans_fit(%L, ARRAY[%L], 1)).n', relation, expression)) FROM unnest(ARRAY['expression_failing', 'expression_failing_view', 'expression_parts']) WITH ORDINALITY AS r (relation, line), unnest(ARRAY['1 / income', 'plan::integer', 'ln(income)']) AS expression ORDER BY line, expression COLLATE "C";
SET pg_kmeans.scan = executor;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_failing', ARRAY['1 / income'], 1)$$);
RESET pg_kmeans.scan;
SET min_parallel_table_scan_size = 0;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_failing', ARRAY['1 / income'], 1)$$);
RESET min_parallel_table_scan_size;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_failing', ARRAY['1 / income'], 1, memory => 'stream')$$), pg_temp.said($$SELECT kmeans_predict(kmeans_fit('expression_failing', ARRAY['1 / income'], 2, filter => 'income > 0'), r) FROM expression_failing AS r WHERE id = 601$$) AS predict;
SELECT (kmeans_fit('expression_failing', ARRAY['1 / income'], 2, filter => 'income > 0')).n AS resident, (kmeans_fit('expression_failing', ARRAY['1 / income'], 2, filter => 'income > 0', memory => 'stream')).n AS streamed, (gmm_fit('expression_failing_view', ARRAY['1 / income'], 2, options => gmm_options(max_iter => 3), filter => 'income > 0')).n AS mixture;
SET max_parallel_workers_per_gather = 0; -- or a worker may meet another bad row first
SELECT expression, pg_temp.said(format('SELECT (kmeans_fit(''expression_failing'', ARRAY[%L], 1, filter => %L)).d', expression, filter)) FROM (VALUES (1, 'income * 1e200 * 1e100', 'true '), (2, 'income * ''NaN''::float8', 'true '), (3, 'x + 1', 'true '), (4, 'ARRAY[x, y]', 'true '),
    (5, 'ARRAY[x, y] || a::real', 'x IS NOT NULL'), (6, 'CASE WHEN a > 1 THEN ARRAY[x, y] ELSE ARRAY[x] END', 'x IS NOT NULL'), (7, 'ARRAY[x, NULL]', 'x IS NOT NULL'), (8, 'ARRAY[ARRAY[x], ARRAY[y]]', 'x IS NOT NULL')) AS v (line, expression, filter) ORDER BY line;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_failing', ARRAY['x + 1', 'a'], 1, filter => 'id < 601')$$) AS a_null;
RESET max_parallel_workers_per_gather;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_failing', ARRAY['repeat(''x'', id)'], 1)$$) AS levels;
DELETE FROM expression_parts WHERE id = 601;

-- Filters: any condition of one row, with the caller's rights and settings
CREATE TABLE expression_read (id integer);
CREATE FUNCTION expression_effect(integer) RETURNS boolean LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$BEGIN RETURN $1 > 100; END$$;
CREATE FUNCTION expression_limit() RETURNS integer LANGUAGE sql STABLE AS $$SELECT current_setting('expression.least')::integer$$;
SET expression.least = 500;
SELECT filter, pg_temp.said(format('SELECT (kmeans_fit(''expression_failing'', ''{age}'', 1, filter => %L)).n', filter)) FROM unnest(ARRAY['keep', 'age > 30', 'NOT keep AND plan = ''pro''', 'plan <> ''pro''', 'x > 0 OR NULL', 'NULL::boolean', 'id > expression_limit()', 'expression_effect(id)', 'expression_mine(age) > 60', 'current_user = session_user', 'since < now()', 'random() < 2', 'plan IN (''pro'', ''free'')', 'doc ? ''score''', '(doc->>''score'')::float8 > 2', '"a + b" = 1', 'b+a = 3', 'true', '''yes''', 'id > 1 AND true',
    'age', 'age + 1', 'plan', '''maybe'' ', '(SELECT true)', 'id IN (SELECT 1)', 'sum(age) > 1', 'row_number() OVER () = 1', 'generate_series(1, 2) > 1', '$1', 'id = $1', 'nothing > 1', 'expression_failing.age > 1', 'expression_failing IS NOT NULL', 'ctid = ''(0,1)''', 'keep; DELETE FROM expression_read', 'keep ORDER BY 1', 'keep)', '', ' ', '1 / (age - 20) > 0'])
    WITH ORDINALITY AS v (filter, line) ORDER BY line;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_rows', '{age}', 1, filter => NULL) = kmeans_fit('expression_rows', '{age}', 1)$$) AS of_null, (m).origin.options->>'filter' AS kept FROM kmeans_fit('expression_rows', '{age}', 1, filter => 'age > 30') AS m;
-- the same by every road, and an unsafe function in none but this process
SET min_parallel_table_scan_size = 0;
CREATE TABLE expression_some AS SELECT age, y FROM expression_rows WHERE expression_effect(id) AND plan = 'pro';
SELECT kmeans_fit('expression_rows', '{age,y}', 3, filter => 'expression_effect(id) AND plan = ''pro''') = kmeans_fit('expression_some', '{age,y}', 3) AS unsafe;
SELECT (kmeans_fit('expression_rows', '{age,y}', 3, filter => 'expression_effect(id)')).n;
SELECT workers FROM kmeans_last_run();
SELECT kmeans_fit('expression_rows', '{age,y}', 3, filter => 'id > 100 AND plan = ''pro''') = kmeans_fit('expression_some', '{age,y}', 3) AS safe;
SELECT (kmeans_fit('expression_rows', '{age,y}', 3, filter => 'id > 100')).n;
SELECT workers FROM kmeans_last_run();
RESET min_parallel_table_scan_size;
SET pg_kmeans.scan = executor;
SELECT kmeans_fit('expression_rows', '{age,y}', 3, filter => 'expression_effect(id) AND plan = ''pro''') = kmeans_fit('expression_some', '{age,y}', 3) AS executor;
RESET pg_kmeans.scan;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_rows', '{age,y}', 3, filter => 'expression_effect(id)', memory => 'stream')$$) AS is_volatile;
ALTER FUNCTION expression_effect STABLE;
SELECT kmeans_fit('expression_rows', '{age,y}', 3, filter => 'expression_effect(id) AND plan = ''pro''', memory => 'stream') = kmeans_fit('expression_some', '{age,y}', 3) AS streamed, kmeans_fit('expression_parts', '{age,y}', 3, filter => 'expression_effect(id) AND plan = ''pro''') = kmeans_fit('expression_some', '{age,y}', 3) AS partitions,
    (SELECT count(*) FROM kmeans_labels('expression_rows', '{age,y}', 3, filter => 'id > 100 AND plan = ''pro''') WHERE cluster_id IS NOT NULL) = (SELECT count(*) FROM expression_some) AS labels;

-- '*': every column that can be a feature, but keys, labels and arrays
CREATE TABLE expression_all (id serial PRIMARY KEY, other_id integer REFERENCES expression_all, code text UNIQUE, x float8, plan text, "Mixed Name" date, f float8[], doc jsonb, ok boolean, mine integer, gone real);
ALTER TABLE expression_all DROP gone;
CREATE UNIQUE INDEX ON expression_all (upper(code), x) WHERE ok;
INSERT INTO expression_all (code, x, plan, "Mixed Name", f, ok) SELECT i, i % 7, 'p' || i % 3, date '2024-01-01' + i % 9, ARRAY[i], i % 2 = 0 FROM generate_series(1, 60) AS i;
COMMENT ON COLUMN expression_all.mine IS 'made by hand';
SELECT pg_temp.said($$SELECT (kmeans_fit('expression_all', '{*}', 2, nulls => 'skip')).n$$);
ALTER TABLE expression_all DROP mine;
SELECT (kmeans_cluster('expression_all', '{*}', 2)).origin.features;
SELECT (kmeans_cluster('expression_all', '{*}', 2, label_column => 'cluster_id', overwrite => true)).origin.features, (gmm_fit('expression_all', '{*}', 1)).origin.features, (pca_fit('expression_all', '{*}')).d;
ALTER TABLE expression_all ADD label integer DEFAULT 5;
SELECT (kmeans_cluster('expression_all', '{*}', 2, label_column => 'label', overwrite => true)).origin.features;
ALTER TABLE expression_all DROP label;
SELECT count(*), every(l.cluster_id = kmeans_predict(m, l)) AS predict FROM expression_all AS l, kmeans_fit('expression_all', '{*}', 2) AS m;
CREATE VIEW expression_all_view AS SELECT id, x, plan, f FROM expression_all;
SELECT (kmeans_fit('expression_all_view', '{*}', 2)).origin.features;
SELECT pg_temp.said('SELECT kmeans_fit(''expression_read'', ''{*}'', 1)') AS no_rows, pg_temp.said('SELECT kmeans_fit(''expression_keys'', ''{*}'', 1)') AS missing;
CREATE TABLE expression_keys (id integer PRIMARY KEY, f real[], doc jsonb);
SELECT pg_temp.said('SELECT kmeans_fit(''expression_keys'', ''{*}'', 1)') AS nothing_left;
CREATE TABLE expression_star ("*" float8, x float8);
INSERT INTO expression_star VALUES (1, 2), (3, 4);
SELECT (kmeans_fit('expression_star', '{*}', 1)).origin.features, pg_temp.said($$SELECT (kmeans_fit('expression_star', '{*,x}', 1)).d$$) AS two, pg_temp.said($$SELECT (kmeans_fit('expression_star', ARRAY['"*" + 0'], 1)).d$$) AS expression;
SET client_min_messages = warning;
DROP TABLE expression_failing, expression_moods, expression_rows, expression_results, expression_parts, expression_cases, expression_before, expression_read, expression_some, expression_all, expression_keys, expression_star CASCADE;
DROP FUNCTION expression_volatile, expression_mine, expression_effect, expression_limit;
DROP TYPE expression_pair, expression_mood;
DROP DOMAIN expression_domain;
DROP SCHEMA expression_first CASCADE;
-- what a reading of the code found: weights, comments, operators, and columns for something else than features
RESET client_min_messages;
CREATE TABLE expression_late AS SELECT i AS n, i % 5 AS x, (i % 5 <> 0)::integer AS w, i % 7 > 0 AS keep FROM generate_series(1, 50) AS i;
SELECT (kmeans_fit('expression_late', ARRAY['1 / x', 'x^2'], 2, weight => 'w')).n AS without_weight, (kmeans_fit('expression_late', '{x}', 2, filter => 'x > 1 -- large ones')).n AS commented;
SELECT (kmeans_cluster('expression_late', '{x}', 2, filter => 'x > 1 -- large ones', memory => 'stream')).n AS streamed;
SELECT count(cluster_id) FILTER (WHERE x > 1) AS labels, count(cluster_id) AS all FROM expression_late;
SELECT (kmeans_fit('expression_late', '{*}', 2, weight => 'w', filter => 'keep')).origin.features;
SELECT pg_temp.said($$SELECT kmeans_fit('expression_late', ARRAY['length((x * 3.5::float8)::text)'], 2)$$);
-- an expression over columns of any collation is one over the default one
CREATE TABLE expression_collated AS SELECT i AS n, (ARRAY['b', 'A', 'a'])[1 + i % 3] COLLATE "C" AS p FROM generate_series(1, 30) AS i;
SELECT a = b AS same FROM (SELECT kmeans_fit('expression_collated', ARRAY['p < ''a'''], 2) AS a, (SELECT kmeans(ARRAY[(p < 'a' COLLATE "default")::integer], 2 ORDER BY n) FROM expression_collated) AS b) AS s;
DROP TABLE expression_late, expression_collated;

-- A row is given to a model by whom its columns may be read, and neither models nor expressions run what is others'.
BEGIN;
SELECT plan(36);

CREATE ROLE km_row_author;
CREATE ROLE km_row_columns;
CREATE ROLE km_row_reader;
CREATE ROLE km_row_tenant;
GRANT CREATE, USAGE ON SCHEMA public TO km_row_author;
GRANT USAGE ON SCHEMA public TO km_row_columns, km_row_reader, km_row_tenant;

CREATE TABLE row_points (id integer PRIMARY KEY, owner text, x float8, y float8, secret float8);
INSERT INTO row_points SELECT i, CASE WHEN i % 4 = 0 THEN 'km_row_tenant' ELSE 'other' END, i % 10, (i * 7) % 13, i FROM generate_series(1, 400) AS i;
CREATE VIEW row_window AS SELECT id, x, y FROM row_points;
CREATE TABLE row_stored AS SELECT kmeans_fit('row_points', '{x,y}', 3) AS m, kmeans_fit('row_points', '{x,secret}', 3) AS with_secret;
GRANT SELECT ON row_stored TO PUBLIC;
GRANT SELECT (id, x, y) ON row_points TO km_row_columns;
GRANT SELECT ON row_window TO km_row_reader;
GRANT SELECT ON row_points TO km_row_tenant;
CREATE TABLE row_ran (who name, how text);
GRANT INSERT ON row_ran TO PUBLIC;

-- Columns
SET LOCAL ROLE km_row_reader;
SELECT throws_ok('SELECT kmeans_predict(m, p) FROM row_points AS p, row_stored', '42501', 'permission denied for table row_points', 'a row of a table that may not be read');
SELECT is((SELECT count(kmeans_predict(m, w)) FROM row_window AS w, row_stored), 400::bigint, 'a row of a view that may be, over that table');
SET LOCAL ROLE km_row_columns;
SELECT throws_ok('SELECT kmeans_predict(m, p) FROM row_points AS p, row_stored', '42501', NULL, 'a whole row needs every column');
SELECT is((SELECT count(kmeans_predict(m, s)) FROM (SELECT x, y FROM row_points) AS s, row_stored), 400::bigint, 'a row of granted columns');
SELECT throws_ok('SELECT kmeans_predict(with_secret, q) FROM (SELECT x, secret FROM row_points) AS q, row_stored', '42501', NULL, 'with another one');
SELECT is((kmeans_fit('row_points', ARRAY['x + y', 'x > 3'], 2, filter => 'y > 0 AND id > 0')).n, 370::bigint, 'expressions over granted columns');
SELECT throws_ok($$SELECT kmeans_fit('row_points', ARRAY['x + secret'], 2)$$, '42501', NULL, 'an expression over another one');
SELECT throws_ok($$SELECT kmeans_fit('row_points', ARRAY['x + 0 * secret'], 2, filter => 'x > 0')$$, '42501', NULL, 'whatever becomes of it');
SELECT throws_ok($$SELECT kmeans_fit('row_points', '{x,y}', 2, filter => 'secret > 3')$$, '42501', NULL, 'a filter over another one');
SELECT throws_ok($$SELECT kmeans_fit('row_points', '{*}', 2)$$, '42501', NULL, 'and all of them');
RESET ROLE;
SET LOCAL pg_kmeans.scan = direct;
SET LOCAL ROLE km_row_columns;
SELECT throws_ok($$SELECT kmeans_fit('row_points', ARRAY['x + secret'], 2)$$, '42501', NULL, 'the direct scan refuses it too');
SELECT throws_ok($$SELECT kmeans_fit('row_points', '{x,y}', 2, filter => 'secret > 3')$$, '42501', NULL, 'and the filter');
RESET ROLE;
SET LOCAL pg_kmeans.scan = auto;
SET LOCAL ROLE km_row_columns;
SELECT throws_like($$SELECT kmeans_fit('row_points', ARRAY['1 / (x - 3)'], 2)$$, 'division by zero', 'an expression fails');

-- Row security
RESET ROLE;
CREATE POLICY own ON row_points USING (owner = current_user);
ALTER TABLE row_points ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION row_leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$BEGIN INSERT INTO row_ran VALUES (current_user, $1); RETURN true; END$$;
SET LOCAL ROLE km_row_tenant;
SELECT is((SELECT count(kmeans_predict(m, p)) FROM row_points AS p, row_stored), 100::bigint, 'the rows that the caller may see');
SELECT is((kmeans_fit('row_points', ARRAY['x + y'], 2, filter => 'true OR x > 0')).n, 100::bigint, 'a filter goes behind the policy');
SELECT is((kmeans_fit('row_points', '{x}', 2, filter => 'row_leak(owner)')).n, 100::bigint, 'a function in it too');
RESET ROLE;
SELECT is((SELECT array_agg(DISTINCT how) FROM row_ran), '{km_row_tenant}', 'it has seen none of the others'' rows');
SELECT is((SELECT array_agg(DISTINCT who) FROM row_ran), '{km_row_tenant}', 'and ran with the caller''s rights');
TRUNCATE row_ran;
SET LOCAL ROLE km_row_tenant;
SELECT lives_ok($$SELECT kmeans_fit('row_points', ARRAY['1 / (CASE WHEN owner = ''other'' THEN 0 ELSE 1 END)', 'x'], 1)$$, 'no error from a row that is not to be seen');
RESET ROLE;
ALTER TABLE row_points DISABLE ROW LEVEL SECURITY;

-- A model runs nothing of its author's.
-- What ran counts up, errors or not.
CREATE SEQUENCE row_traps;
GRANT USAGE ON row_traps TO PUBLIC;
SET LOCAL ROLE km_row_author;
CREATE FUNCTION row_trap(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN $1; END$$;
CREATE FUNCTION row_trap(text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN 1; END$$;
CREATE FUNCTION row_plus(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN $1; END$$;
CREATE OPERATOR + (LEFTARG = float8, RIGHTARG = float8, FUNCTION = row_plus);
CREATE OPERATOR <+> (LEFTARG = float8, RIGHTARG = float8, FUNCTION = row_plus);
CREATE FUNCTION ln(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN $1; END$$;
CREATE FUNCTION row_check(float8) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN true; END$$;
CREATE DOMAIN row_domain AS float8 CHECK (row_check(VALUE));
CREATE TYPE row_pair AS (x float8, y float8);
CREATE FUNCTION row_pair(float8) RETURNS row_pair LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM nextval('public.row_traps'); RETURN ($1, $1); END$$;
CREATE CAST (float8 AS row_pair) WITH FUNCTION row_pair(float8);
CREATE TABLE row_forged AS
SELECT line, expression, jsonb_populate_record(NULL::kmeans_model, jsonb_set(jsonb_set(to_jsonb(m), '{origin,features,0}', to_jsonb(expression)), '{origin,sources,0,expression}', 'true')) AS m, jsonb_populate_record(NULL::kmeans_model, jsonb_set(to_jsonb(m), '{origin,options,filter}', '"row_trap(x) > 0"')) AS filtered
FROM row_stored, unnest(ARRAY['row_trap(x)', 'public.row_trap(x)', '(x).row_trap', 'x <+> x', 'x OPERATOR(public.+) x', 'x OPERATOR(public.<+>) x', 'public.ln(x)', 'x::row_domain', 'x::public.row_domain', 'CAST(x AS public.row_pair) IS NULL', 'row_trap(''a'')', '(SELECT public.row_trap(x))', 'x + 0', 'ln(x + 1)', 'x + x',
    '(ARRAY[x]::public.row_domain[])[1]', 'CASE WHEN x > 0 THEN x ELSE public.row_trap(x) END', 'coalesce(x, public.row_trap(1))', '''1''::public.row_domain', 'nextval(''row_traps'')', 'pg_catalog.query_to_xml(''SELECT public.row_trap(1)'', true, true, '''')::text::float8', 'x); SELECT public.row_trap(1)', 'pg_catalog.set_config(''a.b'', ''c'', false)::float8']) WITH ORDINALITY AS f (expression, line);
GRANT SELECT ON row_forged TO PUBLIC;
RESET ROLE;
SET LOCAL search_path = public, pg_catalog;
SELECT is(5::float8 + 1::float8, 5::float8, 'the author''s operator is found first');
SELECT ok((SELECT is_called FROM row_traps), 'by a caller, whom it can trap');
DO $$ BEGIN PERFORM setval('row_traps', 1, false); END $$;
CREATE FUNCTION row_outcomes(call text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    of row_forged;
BEGIN
    FOR of IN SELECT * FROM row_forged ORDER BY line LOOP
        BEGIN
            EXECUTE call USING of.m;
            RETURN NEXT of.expression;
        EXCEPTION WHEN OTHERS THEN
            IF SQLSTATE LIKE 'XX%' THEN RAISE; END IF;
        END;
    END LOOP;
END $$;
SELECT results_eq($$SELECT row_outcomes('SELECT count(kmeans_predict($1, p)) FROM row_points AS p')$$, ARRAY['x + 0', 'ln(x + 1)', 'x + x'], 'a superuser applies forged models: by columns');
SELECT results_eq($$SELECT row_outcomes('SELECT count(kmeans_predict($1, s.p)) FROM (SELECT p FROM row_points AS p OFFSET 0) AS s')$$, ARRAY['x + 0', 'ln(x + 1)', 'x + x'], 'by a value');
SELECT results_eq($$SELECT row_outcomes('SELECT kmeans_distance($1, p) FROM row_points AS p LIMIT 1')$$, ARRAY['x + 0', 'ln(x + 1)', 'x + x'], 'the distance');
SELECT results_eq($$SELECT row_outcomes('SELECT count(*) FROM kmeans_outliers(''row_points'', model => $1)')$$, ARRAY['x + 0', 'ln(x + 1)', 'x + x'], 'outliers');
SELECT results_eq($$SELECT row_outcomes('SELECT n FROM kmeans_fit(''row_points'', ($1).origin.features, 3, options => kmeans_options(init_model => $1))')$$, ARRAY['x + 0', 'ln(x + 1)', 'x + x'], 'and a fit that goes on');
SELECT is((SELECT count(*) FROM row_forged, LATERAL (SELECT count(kmeans_predict(filtered, p)) AS n FROM row_points AS p) AS c WHERE n = 400), (SELECT count(*) FROM row_forged), 'a filter of the author''s is not applied');
SELECT is((SELECT count(*) FROM kmeans_profile((SELECT m FROM row_forged WHERE line = 1))), 6::bigint, 'a profile evaluates no expression');
SELECT ok((SELECT NOT is_called FROM row_traps), 'nothing of the author''s ran');

-- The same of fits with the author's objects about
SELECT is((kmeans_fit('row_points', ARRAY['x + y', 'ln(x + 1)'], 2)).n, 400::bigint, 'built-in operators and functions of the same names');
SELECT ok((SELECT NOT is_called FROM row_traps), 'are those that ran');
SELECT throws_ok($$SELECT kmeans_fit('row_points', ARRAY['row_trap(x)'], 2)$$, '42883', NULL, 'the author''s function is not found');
SELECT throws_ok($$SELECT kmeans_fit('row_points', ARRAY['public.row_trap(x)'], 2)$$, '0A000', NULL, 'nor taken by its schema');
SELECT ok((SELECT NOT is_called FROM row_traps), 'and nothing ran');
SELECT is((kmeans_fit('row_points', '{x}', 2, filter => 'row_trap(x) >= 0')).n, 400::bigint, 'a filter is the caller''s own: what it names it runs');
SELECT ok((SELECT is_called FROM row_traps), 'as it does here');
SELECT * FROM finish();
ROLLBACK;

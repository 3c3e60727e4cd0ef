-- Reductions read what the caller may, and definitions belong to who made them.
BEGIN;
SELECT plan(28);
CREATE ROLE km_maker;
CREATE ROLE km_runner;
CREATE ROLE km_other;
CREATE ROLE km_group;
GRANT km_group TO km_other;
CREATE TABLE priv_rows AS SELECT i AS id, i % 5 AS x, i AS secret FROM generate_series(1, 100) AS i;
GRANT SELECT (id, x) ON priv_rows TO km_maker, km_runner, km_other;

-- Columns, and rows by row security.
SET LOCAL ROLE km_runner;
SELECT results_eq($$SELECT value FROM reduce('priv_rows', value => 'x')$$, $$VALUES (ARRAY[200]::double precision[])$$, 'granted columns can be reduced');
SELECT throws_ok($$SELECT reduce('priv_rows', value => 'x', filter => 'secret > 50')$$, '42501', NULL, 'no other');
SELECT throws_ok($$SELECT reduce('priv_rows', value => 'x + ctid')$$, '42804', NULL, 'ctid is no number');
SELECT throws_ok($$SELECT reduce('priv_rows', value => '1 / (id - 3)')$$, '22012', NULL, 'a fault without the right to see the ctid');
RESET ROLE;
ALTER TABLE priv_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON priv_rows USING (id <= 10);
SET LOCAL ROLE km_runner;
SELECT results_eq($$SELECT value FROM reduce('priv_rows', value => '1 + 0 * x')$$, $$VALUES (ARRAY[10]::double precision[])$$, 'rows of the policy alone');
SELECT lives_ok($$SELECT reduce('priv_rows', value => '1 / (id - 50)')$$, 'a fault in a row of others is not seen');

-- Who made it may drop it; who may run it is said.
SET LOCAL ROLE km_maker;
SELECT lives_ok($$SELECT reduction_define('for_all', value => 'x')$$, 'everybody may define');
SELECT lives_ok($$SELECT reduction_define('for_group', value => 'x', runners => '{km_group}')$$, 'for a role');
SELECT lives_ok($$SELECT reduction_define('for_me', value => 'x', runners => '{}')$$, 'for nobody else');
SELECT is((SELECT array_agg(owner::text || ' ' || name ORDER BY name) FROM reduction_definitions), '{km_maker for_all,km_maker for_group,km_maker for_me}'::text[], 'the maker sees them all');
SELECT lives_ok($$SELECT reduce('priv_rows', 'for_me')$$, 'and runs them');
SET LOCAL ROLE km_other;
SELECT lives_ok($$SELECT reduce('priv_rows', 'for_group')$$, 'a member of the role runs it');
SELECT throws_ok($$SELECT reduce('priv_rows', 'for_me')$$, '42704', NULL, 'others do not find what is not for them');
SELECT throws_ok($$SELECT reduction_iterate('priv_rows', 'for_me', '{}', '{"c": "1"}')$$, '42704', NULL, 'in a loop neither');
SET LOCAL ROLE km_runner;
SELECT is((SELECT count(*) FROM reduction_definitions), 3::bigint, 'though all see it');
SELECT throws_ok($$SELECT reduction_drop('for_all')$$, '42501', 'must be owner of reduction "for_all"', 'who may run one may not drop it');
SELECT throws_ok($$SELECT reduction_drop('for_me')$$, '42501', NULL, 'nor may others');
SELECT throws_ok($$SELECT reduction_drop('none')$$, '42704', 'there is no reduction "none"', 'what is not there is not dropped');
SELECT throws_ok($$SELECT reduction_define('for_me', value => 'id')$$, '42710', NULL, 'a name that is taken stays taken');
SELECT throws_ok($$INSERT INTO reduction_definitions VALUES ('forged', 'km_maker', NULL, '{"value": "x"}')$$, '42501', NULL, 'nobody defines for others');
SELECT throws_ok($$UPDATE reduction_definitions SET definition = '{"value": "id"}'$$, '42501', NULL, 'nobody changes one');
SELECT throws_ok($$DELETE FROM reduction_definitions$$, '42501', NULL, 'nor deletes it');
SELECT lives_ok($$INSERT INTO reduction_definitions (name, definition) VALUES ('mine', '{"value": "x"}')$$, 'everybody writes what is his');
DELETE FROM reduction_definitions WHERE name = 'mine';
CREATE TEMP TABLE other_rows (a text);
CREATE TRIGGER odd BEFORE INSERT ON other_rows FOR EACH ROW EXECUTE FUNCTION pgkm_reduction_check_owner();
SELECT throws_ok($$INSERT INTO other_rows VALUES ('a')$$, '39P01', NULL, 'the trigger of another table');
RESET ROLE;
SELECT is((SELECT count(*) FROM reduction_definitions), 3::bigint, 'all are still there');
SET LOCAL ROLE km_runner;
-- Whatever stands in the table, it is text that is parsed.
INSERT INTO reduction_definitions (name, definition) VALUES ('odd', '{"value": "x); DROP TABLE priv_rows; --"}'), ('odder', '[1]'), ('oddest', '{"value": 1}');
SELECT throws_ok($$SELECT reduce('priv_rows', 'odd')$$, '42601', NULL, 'SQL in a definition');
SELECT throws_ok($$SELECT reduce('priv_rows', name) FROM reduction_definitions WHERE name LIKE 'odde%'$$, '22023', NULL, 'no object of texts');
SET LOCAL ROLE km_maker;
SELECT lives_ok($$SELECT reduction_drop('for_me')$$, 'the maker drops it');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;

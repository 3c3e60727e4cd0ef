-- Reductions read what the caller may, and a kept one has the rights of the table that keeps it.
BEGIN;
SELECT plan(14);
CREATE ROLE "Km Maker";
CREATE ROLE km_runner;
CREATE ROLE km_other;
CREATE TABLE priv_rows AS SELECT i AS id, i % 5 AS x, i AS secret FROM generate_series(1, 100) AS i;
GRANT SELECT (id, x) ON priv_rows TO "Km Maker", km_runner, km_other;

-- Columns, and rows by row security.
SET LOCAL ROLE km_runner;
SELECT results_eq($$SELECT value FROM kmeans_reduce('priv_rows', value => 'x')$$, $$VALUES (ARRAY[200]::double precision[])$$, 'granted columns can be reduced');
SELECT throws_ok($$SELECT kmeans_reduce('priv_rows', value => 'x', filter => 'secret > 50')$$, '42501', NULL, 'no other');
SELECT throws_ok($$SELECT kmeans_reduce('priv_rows', value => 'x + ctid')$$, '42804', NULL, 'ctid is no number');
SELECT throws_ok($$SELECT kmeans_reduce('priv_rows', value => '1 / (id - 3)')$$, '22012', NULL, 'a fault without the right to see the ctid');
RESET ROLE;
ALTER TABLE priv_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON priv_rows USING (id <= 10);
SET LOCAL ROLE km_runner;
SELECT results_eq($$SELECT value FROM kmeans_reduce('priv_rows', value => '1 + 0 * x')$$, $$VALUES (ARRAY[10]::double precision[])$$, 'rows of the policy alone');
SELECT lives_ok($$SELECT kmeans_reduce('priv_rows', value => '1 / (id - 50)')$$, 'a fault in a row of others is not seen');

-- Whoever may read a reduction runs it, with his own rights; its owner is the table's.
RESET ROLE;
CREATE SCHEMA priv_kept;
GRANT USAGE, CREATE ON SCHEMA priv_kept TO "Km Maker";
GRANT USAGE ON SCHEMA priv_kept TO km_runner, km_other;
SET LOCAL ROLE "Km Maker";
SELECT lives_ok($$CREATE TABLE priv_kept.reductions AS SELECT name, kmeans_reduction(value => name) AS reduction FROM unnest('{x,secret}'::text[]) AS name$$, 'everybody keeps reductions in a table of his own');
GRANT SELECT ON priv_kept.reductions TO km_runner;
SELECT results_eq($$SELECT value FROM priv_kept.reductions, kmeans_reduce('priv_rows', reduction) WHERE name = 'x'$$, $$VALUES (ARRAY[20]::double precision[])$$, 'the maker runs it');
SELECT throws_ok($$SELECT kmeans_reduce('priv_rows', reduction) FROM priv_kept.reductions WHERE name = 'secret'$$, '42501', NULL, 'on columns that he may read');
SET LOCAL ROLE km_runner;
SELECT results_eq($$SELECT value FROM priv_kept.reductions, kmeans_reduce('priv_rows', reduction) WHERE name = 'x'$$, $$VALUES (ARRAY[20]::double precision[])$$, 'so does who may read the table');
SELECT throws_ok($$DELETE FROM priv_kept.reductions$$, '42501', NULL, 'who does not write to it');
SELECT throws_ok($$SELECT (kmeans_reduce_iterate('priv_rows', reduction, '{}', '{"c": "r[0][0]"}')).params FROM priv_kept.reductions WHERE name = 'secret'$$, '42501', NULL, 'in a loop rights are the caller''s, too');
SET LOCAL ROLE km_other;
SELECT throws_ok($$SELECT kmeans_reduce('priv_rows', reduction) FROM priv_kept.reductions$$, '42501', NULL, 'others do not see it');
RESET ROLE;
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE relname = 'reductions'), '"Km Maker"', 'it belongs to who made it');
SELECT * FROM finish();
ROLLBACK;

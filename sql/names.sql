-- Names of relations and columns.
CREATE SCHEMA name_schema;
CREATE TABLE name_points AS SELECT i AS id, (i % 10)::real AS x, (i / 10)::real AS y FROM generate_series(1, 100) AS i;

-- A relation is a regclass: a literal, a cast, a value of type text, an OID.
SELECT (kmeans_fit('name_points', '{x,y}', 2)).n AS literal, (kmeans_fit('public.name_points'::regclass, '{x,y}', 2)).n AS "regclass",
    (kmeans_fit(format('%I.%I', 'public', 'name_points'), '{x,y}', 2)).n AS "text", (kmeans_fit(oid, '{x,y}', 2)).n AS "oid"
FROM pg_class WHERE relname = 'name_points';
SELECT p.oid::regprocedure FROM pg_proc AS p, unnest(proargtypes) WITH ORDINALITY AS t (type, place)
WHERE p.proname ~ '^((kmeans|gmm|pca|reduction)_|reduce)' AND proargnames[place] = 'relation' AND type <> 'regclass'::regtype;

-- So a view follows its table to another name and schema, whatever the search path, and depends on it.
CREATE VIEW name_view AS SELECT n, k FROM kmeans_fit('name_points', '{x,y}', 2);
CREATE VIEW name_labels AS SELECT * FROM kmeans_labels('name_points', '{x,y}', 2);
ALTER TABLE name_points RENAME TO "Name Points";
ALTER TABLE "Name Points" SET SCHEMA name_schema;
SET search_path = '';
SELECT * FROM public.name_view;
SELECT row_table, count(*) FROM public.name_labels GROUP BY row_table;
SELECT n FROM public.kmeans_fit('name_schema."Name Points"', '{x,y}', 2);
RESET search_path;
DROP TABLE name_schema."Name Points";

-- What is no relation, or is one no more.
SELECT kmeans_fit('SELECT x, y FROM name_points', '{x,y}', 2);
SELECT kmeans_fit('name_schema.Name Points', '{x,y}', 2);
SELECT kmeans_fit(0, '{x,y}', 2);
SELECT kmeans_fit(1, '{x,y}', 2);
SELECT kmeans_labels(1, '{x,y}', 2);
SELECT (kmeans_cluster(1, '{x,y}', 2)).k;
SELECT kmeans_load(1, '{x,y}');
SELECT kmeans_unload(1), kmeans_unload(0);
CREATE TABLE name_dropped AS TABLE name_schema."Name Points";
SELECT kmeans_load('name_dropped', '{x,y}') AS loaded, 'name_dropped'::regclass::oid AS dropped \gset
DROP TABLE name_dropped;
\set VERBOSITY sqlstate
SELECT gmm_fit(:dropped, '{x,y}', 2);
SELECT kmeans_fit(:dropped, '{x,y}', 2, memory => 'loaded');
\set VERBOSITY default
SELECT kmeans_unload(relid) FROM kmeans_loaded();

-- An OID opens no schema, and no table, that is closed by name.
CREATE ROLE name_role;
GRANT SELECT, UPDATE ON name_schema."Name Points" TO name_role;
SELECT 'name_schema."Name Points"'::regclass::oid AS points \gset
SET ROLE name_role;
SELECT kmeans_fit('name_schema."Name Points"', '{x,y}', 2);
SELECT kmeans_fit(:points, '{x,y}', 2);
SELECT kmeans_sweep(:points, '{nowhere}', 2, 3);
SELECT (kmeans_cluster(:points, '{x,y}', 2)).k;
RESET ROLE;
GRANT USAGE ON SCHEMA name_schema TO name_role;
REVOKE SELECT ON name_schema."Name Points" FROM name_role;
SET ROLE name_role;
SELECT kmeans_fit(:points, '{x,y}', 2);
SELECT pca_fit(:points, '{x,y}');
RESET ROLE;

-- A column is named as it stands in the catalog, whatever its case; a relation as in a query.
CREATE TABLE name_columns (age integer, "Income" integer, "CUST_CLEAN" integer, "odd ""one""" integer, w text);
INSERT INTO name_columns SELECT i, i % 10, i % 3, i % 4, 'heavy' FROM generate_series(1, 50) AS i;
SELECT (kmeans_fit('NAME_columns', '{age,Income,CUST_CLEAN}', 2, weight => 'CUST_CLEAN')).d, (pca_fit('name_columns', ARRAY['odd "one"'])).d;
SELECT kmeans_fit('name_columns', '{Age}', 2);
SELECT kmeans_fit('name_columns', '{age,income}', 2);
SELECT kmeans_labels('name_columns', '{cust_clean}', 2);
SELECT gmm_fit('name_columns', ARRAY['"age"'], 2);
SELECT pca_fit('name_columns', ARRAY['odd one']);
SELECT kmeans_fit('name_columns', '{age}', 2, weight => 'INCOME');
SELECT kmeans_fit('name_columns', '{aged}', 2);
SELECT kmeans_fit('"Name_Columns"', '{age}', 2);
ALTER TABLE name_columns DROP "Income";
SELECT kmeans_fit('name_columns', '{income}', 2);
SELECT kmeans_fit('name_columns', '{age}', 2, weight => 'w');

-- What a name allows: ctid, and labels, need privileges on the whole table.
GRANT SELECT (age), UPDATE (age) ON name_columns TO name_role;
SET ROLE name_role;
SELECT (kmeans_fit('name_columns', '{age}', 2)).n;
SELECT kmeans_labels('name_columns', '{age}', 2);
SELECT (kmeans_cluster('name_columns', '{age}', 2)).k;
RESET ROLE;
GRANT SELECT, DELETE ON name_columns TO name_role;
ALTER TABLE name_columns ADD cluster_id integer;
SET ROLE name_role;
SELECT gmm_cluster('name_columns', '{age}', 2, label_column => 'cluster_id');
RESET ROLE;

DROP TABLE name_columns;
DROP SCHEMA name_schema CASCADE;
DROP ROLE name_role;

-- \df names the arguments of all that users call, \d+ says what each column is.
SELECT p.oid::regprocedure FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans') AND p.proargnames IS NULL AND pronargs > 0
    AND NOT EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn))
    AND NOT EXISTS (SELECT FROM pg_type WHERE p.oid IN (typinput, typoutput, typreceive, typsend))
    AND NOT EXISTS (SELECT FROM pg_operator WHERE p.oid = oprcode) AND NOT EXISTS (SELECT FROM pg_amproc WHERE p.oid = amproc) AND p.prorettype <> 'internal'::regtype;
SELECT c.relname, a.attname FROM pg_depend AS d JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
    JOIN pg_class AS c ON c.oid = t.typrelid JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans') AND col_description(c.oid, a.attnum) IS NULL;
SELECT count(*) > 0 AS commented FROM pg_description WHERE objoid = 'pg_stat_progress_kmeans'::regclass AND objsubid > 0;

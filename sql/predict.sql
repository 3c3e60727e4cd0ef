-- models: stored, read, and applied to rows
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TEMP TABLE points AS
SELECT i AS id, ARRAY[v.x, v.y]::real[] AS f
FROM (VALUES (1, 0, 0), (2, 0, 4), (3, 30, 40), (4, 30, 44)) AS v(i, x, y);
CREATE TEMP TABLE models (name text, m kmeans_model);
INSERT INTO models
SELECT 'l2', kmeans(f, 2, kmeans_options(init => 'first') ORDER BY id DESC) FROM points
UNION ALL SELECT 'standardized', kmeans(f, 2, kmeans_options(init => 'first', standardize => true) ORDER BY id DESC) FROM points
UNION ALL SELECT 'cosine', kmeans(f, 2, kmeans_options(init => 'first', metric => 'cosine') ORDER BY id DESC)
          FROM points WHERE id > 1;

SELECT name, k, d, centroids, size, within_ss, inertia, n_iter, converged, n, metric, seed, center, scale FROM (SELECT name, (m).* FROM models) AS s ORDER BY name;
SELECT name, c.* FROM models, kmeans_centroids(m) AS c ORDER BY name, cluster_id;
SELECT name, id, kmeans_predict(m, f), kmeans_distance(m, f), kmeans_transform(m, f)
FROM models, points WHERE id > 1 ORDER BY name, id;
-- a 3-4-5 triangle, and the lowest id where two clusters are equally near
SELECT kmeans_predict(m, ARRAY[33, 46]), kmeans_distance(m, ARRAY[33, 46]), kmeans_predict(m, ARRAY[15, 22]), kmeans_transform(m, ARRAY[15, 22])
FROM models WHERE name = 'l2';
-- cosine: 1 - cos, whatever the length
SELECT kmeans_distance(m, ARRAY[0, 0.001]), kmeans_distance(m, ARRAY[0, 1e10]) FROM models WHERE name = 'cosine';
-- strict
SELECT kmeans_predict(NULL, ARRAY[1]) IS NULL, kmeans_distance(m, NULL::real[]) IS NULL, kmeans_transform(NULL, NULL::real[]) IS NULL
FROM models WHERE name = 'l2';
SELECT count(*) FROM kmeans_centroids(NULL);
-- every row of a fit goes where the fit put it
CREATE TEMP TABLE many AS
SELECT i AS id, ARRAY[i * 7919 % 1000 + 1, i % 13, sqrt(i)] AS f FROM generate_series(1, 2000) AS i;
CREATE TEMP TABLE variants AS
SELECT metric, standardize, kmeans_options(metric => metric, standardize => standardize, seed => 2) AS o
FROM unnest(ARRAY['l2', 'cosine']) AS metric, unnest(ARRAY[false, true]) AS standardize;
SELECT metric, standardize, every(kmeans_predict(m4, f::real[]) = label4) AS float32, every(kmeans_predict(m8, f) = label8) AS float64,
       every(kmeans_distance(m8, f) = (kmeans_transform(m8, f))[label8 + 1]) AS distance
FROM (SELECT metric, standardize, f, kmeans_label(f::real[], 5, o) OVER w AS label4, kmeans_label(f, 5, o) OVER w AS label8
      FROM many, variants WINDOW w AS (PARTITION BY metric, standardize ORDER BY id)) AS labels
     JOIN (SELECT metric, standardize, kmeans(f::real[], 5, o ORDER BY id) AS m4, kmeans(f, 5, o ORDER BY id) AS m8
           FROM many, variants GROUP BY metric, standardize) AS fits USING (metric, standardize)
GROUP BY metric, standardize ORDER BY metric, standardize;

-- the model may change from row to row: between tables, in a loop, under one name
SELECT count(*), sum(kmeans_predict(m, f)) FROM models, points WHERE name <> 'cosine';
SELECT id, string_agg(kmeans_predict(m, f)::text, ' ' ORDER BY name DESC) FROM models, points WHERE id > 1 GROUP BY id ORDER BY id;
DO $$
DECLARE
    a kmeans_model := (SELECT m FROM models WHERE name = 'l2');
BEGIN
    FOR i IN 1..4 LOOP
        RAISE NOTICE '% %', kmeans_predict(a, ARRAY[0, 0]), kmeans_distance(a, ARRAY[0, 0]);
        a.centroids[1][1] := i;
        a.centroids[1][2] := 0;
    END LOOP;
END $$;
-- models out of line
CREATE TEMP TABLE wide AS
SELECT n AS name, kmeans(array_fill(i * n, ARRAY[600]), 4, kmeans_options(init => 'first') ORDER BY i) AS m
FROM generate_series(1, 4) AS i, generate_series(1, 2) AS n GROUP BY n;
ALTER TABLE wide ALTER m SET STORAGE EXTERNAL;
INSERT INTO wide SELECT name + 2, m FROM wide;
SELECT name, string_agg(kmeans_predict(m, array_fill(i, ARRAY[600]))::text, ' ' ORDER BY i)
FROM wide, generate_series(1, 9) AS i GROUP BY name ORDER BY name;
-- as a constant, a parameter, an initplan
PREPARE predict(kmeans_model) AS SELECT id, kmeans_predict($1, f) FROM points ORDER BY id;
EXECUTE predict('(2,2,"{{30,42},{0,2}}","{2,2}","{8,8}",16,3,t,4,l2,0,,,,,)');
EXECUTE predict('(2,2,"{{0,2},{30,42}}","{2,2}","{8,8}",16,3,t,4,l2,0,,,,,)');
SELECT id, kmeans_predict((SELECT m FROM models WHERE name = 'l2'), f) FROM points ORDER BY id;
SELECT id, kmeans_predict('(1,2,"{{0,0}}",{1},{0},0,1,t,1,l2,0,,,,,)', f) FROM points ORDER BY id;

-- rows that do not fit the model
SELECT features, pg_temp.outcome('SELECT kmeans_predict(m, ' || features || ') FROM models WHERE name = ''cosine''') FROM unnest(ARRAY[
    'ARRAY[1]', 'ARRAY[1, 2, 3]', '''{}''::real[]', '''{{1,2}}''::real[]', '''{1,NULL}''::real[]', '''{NaN,1}''::float8[]',
    '''{1,-Infinity}''::float8[]', '''{1,1e300}''::float8[]', '''{1,NaN}''::numeric[]', 'ARRAY[0, 0]']) AS features;
SELECT pg_temp.outcome('SELECT kmeans_distance(m, ARRAY[1]) FROM models'), pg_temp.outcome('SELECT kmeans_transform(m, ARRAY[1]) FROM models');
-- a row beyond the range of a standardized model
SELECT pg_temp.outcome($$SELECT kmeans_distance(ROW(1,1,'{{0}}','{1}','{0}',0,1,true,1,'l2',0,'{0}','{1e-200}',NULL,NULL,NULL), '{1e150}'::float8[])$$);

-- models made by hand: sound ones work, others are refused
SELECT kmeans_predict(ROW(2,1,'{{0},{9}}','{1,1}','{0,0}',NULL,NULL,NULL,NULL,'l2',NULL,NULL,NULL,NULL,NULL,NULL), ARRAY[7]);
SELECT model, pg_temp.outcome('SELECT kmeans_predict(ROW(' || model || ', NULL, NULL, NULL)::kmeans_model, ARRAY[1, 2])'),
       pg_temp.outcome('SELECT count(*) FROM kmeans_centroids(ROW(' || model || ', NULL, NULL, NULL)::kmeans_model)') =
       pg_temp.outcome('SELECT kmeans_predict(ROW(' || model || ', NULL, NULL, NULL)::kmeans_model, ARRAY[1, 2])') AS same
FROM unnest(ARRAY[
    'NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL',
    '1,NULL,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '0,2,''{}'',''{}'',''{}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,-2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '2147483647,2147483647,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,NULL,''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{1,2}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '2,2,''{{1,2}}'',''{1,1}'',''{0,0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,2,3}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,NULL}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,NaN}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,Infinity}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,2}}'',NULL,''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,2}}'',''{1,1}'',''{0}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,2}}'',''{1}'',''{NaN}'',0,1,true,1,''l2'',0,NULL,NULL',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,NULL,0,NULL,NULL',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l1'',0,NULL,NULL',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,''{1,1}'',NULL',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,NULL,''{1,1}''',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,''{1}'',''{1,1}''',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,''{1,1}'',''{1,0}''',
    '1,2,''{{1,2}}'',''{1}'',''{0}'',0,1,true,1,''l2'',0,''{1,1}'',''{1,-1}'''
]) AS model;
-- centroids whose standardization leaves the range of numbers
SELECT pg_temp.outcome($$SELECT kmeans_centroids(ROW(1,2,'{{1e10,1}}','{1}','{0}',0,1,true,1,'l2',0,'{0,0}','{1e308,1e308}',NULL,NULL,NULL))$$);
SELECT centroid FROM kmeans_centroids(ROW(1,2,'{{1,-1}}','{1}','{0}',0,1,true,1,'l2',0,'{0,1}','{1e308,1e308}',NULL,NULL,NULL));
-- rows of models whose arrays do not begin at 1
SELECT * FROM kmeans_centroids(ROW(2,1,'[5:6][3:3]={{1},{2}}','[0:1]={3,4}','[7:8]={0,1}',0,1,true,1,'l2',0,NULL,NULL,NULL,NULL,NULL));
SELECT * FROM kmeans_profile(ROW(2,2,'[5:6][0:1]={{1,2},{3,4}}','{1,1}','{0,0}',0,1,true,1,'l2',0,NULL,NULL,ROW('[0:1]={a,b}',NULL,NULL,NULL,'[0:1]={2,3}','[3:4]={1,0}',NULL),NULL,NULL));
SELECT * FROM gmm_components(ROW(1,2,'tied','[0:0]={1}','[2:2][3:4]={{0,1}}','[0:1][0:1]={{1,0},{0,2}}',0,'{}',1,true,0,0,1,0,NULL,NULL,NULL,NULL,NULL));
SELECT * FROM pca_components(ROW(1,2,'{0,0}',NULL,'[0:0][0:1]={{1,0}}','[2:2]={1}','[3:3]={1}','[4:4]={1}',5,false,NULL,NULL));
-- altered types are refused too
BEGIN;
ALTER TYPE kmeans_model ADD ATTRIBUTE remark text;
SAVEPOINT altered;
SELECT kmeans(f, 1) FROM points;
ROLLBACK TO altered;
SELECT kmeans_predict(ROW(1,2,'{{1,2}}','{1}','{0}',0,1,true,1,'l2',0,NULL,NULL,NULL,NULL,NULL,'x'), ARRAY[1, 2]);
ROLLBACK;

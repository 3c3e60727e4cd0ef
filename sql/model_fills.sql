-- What stood in the place of NULLs in a fit stands there for new rows, too.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE fill_rows AS
SELECT i AS id, CASE WHEN i % 9 = 0 THEN NULL ELSE i % 3 * 5 + sin(i) END AS x, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 3 * 2 + cos(i) END AS y,
    (i % 4 + sin(i))::real AS z, 1 + i % 3 AS w FROM generate_series(1, 3000) AS i;
UPDATE fill_rows SET z = NULL WHERE id % 7 = 0;
UPDATE fill_rows SET x = NULL, y = NULL, z = NULL WHERE id % 700 = 0;
ALTER TABLE fill_rows ADD f float8[], ADD f4 real[], ADD a real, ADD b real, ADD label integer;
UPDATE fill_rows SET f = ARRAY[x, y, z], f4 = ARRAY[y, z], a = x, b = y;
VACUUM ANALYZE fill_rows;
SELECT (m).fills = ARRAY[avg(a), avg(b)]::real[]::float8[] AS means_of_reals, (m).origin.options->>'nulls' AS nulls, m IS NOT NULL AS whole
FROM fill_rows, (SELECT kmeans_fit('fill_rows', '{a,b}', 3, nulls => 'mean') AS m) AS s GROUP BY m;
-- The labels of a fit are those of kmeans_predict, rows with NULLs among them, in all units, and after a fit that goes on.
CREATE FUNCTION pg_temp.labels_differ(features text[], options text, weight text) RETURNS TABLE (labels bigint, filled bigint, differ bigint, goes_on bigint, of_real bigint) LANGUAGE plpgsql AS $$
DECLARE
    m kmeans_model; again kmeans_model; expression text;
BEGIN
    expression := CASE WHEN features[1] LIKE 'f%' THEN features[1] ELSE 'ARRAY[' || array_to_string(features, ',') || ']' END;
    EXECUTE format('SELECT * FROM kmeans_fit(''fill_rows'', %L, 4, nulls => ''mean'', options => kmeans_options(%s), weight => $1)', features, options) INTO m USING weight;
    EXECUTE format('SELECT * FROM kmeans_fit(''fill_rows'', %L, 4, nulls => ''mean'', options => kmeans_options(init_model => $1), filter => ''half'', weight => $2)', features) INTO again USING m, weight;
    EXECUTE format('SELECT count(l.cluster_id), count(*) FILTER (WHERE l.cluster_id IS NOT NULL AND array_position(%1$s, NULL) IS NOT NULL),
            count(*) FILTER (WHERE l.cluster_id IS DISTINCT FROM kmeans_predict($1, %1$s) OR l.distance IS DISTINCT FROM kmeans_distance($1, %1$s)),
            (SELECT count(*) FILTER (WHERE l.cluster_id IS NOT NULL AND l.cluster_id <> kmeans_predict($2, %1$s))
             FROM kmeans_labels(''fill_rows'', %2$L, 4, nulls => ''mean'', options => kmeans_options(init_model => $1), filter => ''half'', weight => $3) AS l JOIN fill_rows ON fill_rows.ctid = row_ctid),
            count(*) FILTER (WHERE kmeans_transform($1, %1$s::real[]) IS NULL AND l.cluster_id IS NOT NULL)
        FROM kmeans_labels(''fill_rows'', %2$L, 4, nulls => ''mean'', options => kmeans_options(%3$s), weight => $3) AS l JOIN fill_rows ON fill_rows.ctid = row_ctid',
        expression, features, options) INTO labels, filled, differ, goes_on, of_real USING m, again, weight;
    RETURN NEXT;
END $$;
ALTER TABLE fill_rows ADD half boolean;
UPDATE fill_rows SET half = id % 2 = 0;
SELECT features, options, d.* FROM (VALUES ('{x,y}'::text[]), ('{a,b}'), ('{x,z}'), ('{f}'), ('{f4}')) AS v (features),
    (VALUES ('', NULL, 1), ('standardize => true', NULL, 2), ('metric => ''cosine''', NULL, 3), ('standardize => true, metric => ''cosine''', 'w', 4)) AS o (options, weight, line),
    LATERAL pg_temp.labels_differ(features, options, weight) AS d ORDER BY features, line;
CREATE TABLE fill_models AS SELECT kmeans_cluster('fill_rows', '{x,y}', 4, nulls => 'mean', weight => 'w', label_column => 'label', overwrite => true) AS m,
    gmm_fit('fill_rows', '{x,y}', 2, nulls => 'mean') AS g, pca_fit('fill_rows', '{x,y}', nulls => 'mean') AS p;
SELECT count(label), count(*) FILTER (WHERE label IS DISTINCT FROM kmeans_predict(m, ARRAY[x, y])) AS differ FROM fill_rows, fill_models;
-- numbers of every type, and what is no number all the same
SELECT kmeans_predict(m, v) = kmeans_predict(m, ARRAY[(m).fills[1], 2]) AS same FROM fill_models, LATERAL (VALUES ('{NULL,2}'::numeric[]), (ARRAY[NULL, 2.0])) AS t (v);
SELECT kmeans_distance(m, '{NULL,2}'::smallint[]) = kmeans_distance(m, '{NULL,2}'::bigint[]) AS integers, kmeans_predict(m, '{NULL,NULL}'::integer[]) AS of_a_null_row FROM fill_models;
SELECT pg_temp.outcome(format('SELECT kmeans_predict(m, %s) FROM fill_models', v)) FROM unnest(ARRAY['''{NULL,NaN}''::real[]', '''{NULL,1,2}''::float8[]', '''{NULL,1e200}''::float8[]']) AS v;
-- loaded rows
SELECT kmeans_load('fill_rows', '{x,y}', 'w', nulls => 'mean');
SELECT (kmeans_fit('fill_rows', '{x,y}', 4, weight => 'w', nulls => 'mean', memory => 'loaded')).fills = (m).fills AS loaded FROM fill_models;
SELECT kmeans_unload();
-- kmeans_update
SELECT kmeans_update(m, ARRAY[x, y]) = kmeans_update(m, ARRAY[coalesce(x, (m).fills[1]), coalesce(y, (m).fills[2])]) AS filled, (kmeans_update(m, ARRAY[x, y])).fills = (m).fills AS stay
FROM fill_rows, fill_models WHERE x IS NOT NULL OR y IS NOT NULL GROUP BY m;
SELECT pg_temp.outcome('SELECT (kmeans_update(CASE WHEN i = 1 THEN m ELSE jsonb_populate_record(m, ''{"fills": [1, 2]}'') END, ''{1,2}''::real[])).n FROM fill_models, generate_series(1, 2) AS i');
-- kmeans_outliers: by the model's values, whichever rows it looks at; as nulls says, if it says so
SELECT count(*), count(*) FILTER (WHERE x IS NULL OR y IS NULL) AS filled, every(o.cluster_id = kmeans_predict(m, ARRAY[x, y]) AND o.distance = kmeans_distance(m, ARRAY[x, y])) AS as_predicted
FROM fill_models, kmeans_outliers('fill_rows', '{x,y}', m, 1, filter => 'half') AS o JOIN fill_rows ON fill_rows.ctid = o.row_ctid;
SELECT coalesce(nulls, 'not given') AS nulls, pg_temp.outcome(format('SELECT count(*) FROM fill_models, kmeans_outliers(''fill_rows'', ''{x,y}'', %s, 1, nulls => %L)', model, nulls))
FROM unnest(ARRAY['m', 'jsonb_populate_record(m, ''{"fills": []}'')']) AS model, unnest(ARRAY[NULL, 'mean', 'skip', 'error']) AS nulls;
-- mixtures and PCA
SELECT (g).fills = (p).fills AS fills, every(gmm_predict(g, ARRAY[x, y]) = l.component_id) AS labels, every(gmm_score(g, ARRAY[x, y]) = gmm_score(g, v)) AS scores, every(gmm_posterior(g, ARRAY[x, y]) = gmm_posterior(g, v)) AS posteriors,
    every(pca_transform(p, ARRAY[x, y]) = pca_transform(p, v)) AS components, g IS NOT NULL AND p IS NOT NULL AS whole
FROM fill_models, gmm_labels('fill_rows', '{x,y}', 2, nulls => 'mean') AS l JOIN fill_rows ON fill_rows.ctid = l.row_ctid, LATERAL (SELECT ARRAY[coalesce(x, (g).fills[1]), coalesce(y, (g).fills[2])]) AS s (v)
WHERE x IS NOT NULL OR y IS NOT NULL GROUP BY g, p;
SELECT (gmm_cluster('fill_rows', '{x,y}', 2, nulls => 'mean', label_column => 'label', overwrite => true)).fills = (g).fills AS cluster, pg_temp.outcome('SELECT pca_inverse_transform(p, ''{NULL,1}''::real[]) FROM fill_models') AS scores FROM fill_models;
-- Without them a NULL is an error. Means are kept also where no value was missing.
SELECT (m).fills, pg_temp.outcome(format('SELECT kmeans_predict(%L::kmeans_model, ARRAY[NULL, 1])', m)) FROM (SELECT kmeans_fit('fill_rows', '{x,y}', 2, nulls => 'skip') AS m UNION ALL SELECT kmeans(ARRAY[x, y], 2) FROM fill_rows WHERE x > 0 AND y > 0) AS s;
SELECT (gmm_fit('fill_rows', '{x,y}', 2, nulls => 'skip')).fills AS mixture, (pca_fit('fill_rows', '{x,y}', nulls => 'skip')).fills AS components, (kmeans_fit('fill_rows', '{id}', 2, nulls => 'mean')).fills AS no_nulls;
SELECT pg_temp.outcome(format('SELECT kmeans_predict(jsonb_populate_record(m, ''{"fills": %s}''), ''{NULL,1}''::real[]) FROM fill_models', fills)) FROM unnest(ARRAY['[1]', '[1,null]', '[[1,2]]', '["NaN",1]', '[1,1e200]', 'null']) AS fills;
SELECT m::text::kmeans_model = m AS kmeans, g::text::gmm_model = g AS mixture, p::text::pca_model = p AS components FROM fill_models;

-- The types of an older version lack fields: the library works over them, and reads what was stored then.
CREATE TABLE fill_older (m kmeans_model, g gmm_model, p pca_model, o kmeans_options);
BEGIN;
SET LOCAL allow_system_table_mods = on;
SET LOCAL client_min_messages = warning;
CREATE TEMP TABLE fill_fields AS
SELECT c.oid AS relid, relnatts, attname, attnum, (4000000000 + row_number() OVER ())::oid AS aside FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE relkind = 'c' AND (relname, attname) IN (('kmeans_model', 'fills'), ('kmeans_model', 'mass'), ('gmm_model', 'fills'), ('gmm_model', 'origin'), ('gmm_model', 'mass'), ('pca_model', 'fills'), ('pca_model', 'origin'), ('kmeans_origin', 'sources'));
CREATE FUNCTION pg_temp.take_away(fields name[]) RETURNS void LANGUAGE sql AS $$
    UPDATE pg_attribute AS a SET attrelid = aside FROM fill_fields AS f WHERE attrelid = relid AND a.attnum = f.attnum AND f.attname = ANY (fields);
    UPDATE pg_class AS c SET relnatts = c.relnatts - n FROM (SELECT relid, count(*) AS n FROM fill_fields WHERE attname = ANY (fields) GROUP BY relid) AS t WHERE c.oid = relid;
$$;
CREATE FUNCTION pg_temp.bring_back() RETURNS void LANGUAGE sql AS $$
    UPDATE pg_attribute SET attrelid = relid FROM fill_fields WHERE attrelid = aside;
    UPDATE pg_class AS c SET relnatts = f.relnatts FROM fill_fields AS f WHERE c.oid = relid;
$$;
SELECT pg_temp.take_away('{mass,fills,origin,sources}');
INSERT INTO fill_older SELECT kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean'), gmm_fit('fill_rows', '{x,y}', 2, nulls => 'mean'), pca_fit('fill_rows', '{x,y}', nulls => 'mean'), kmeans_options(init_model => kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean'));
INSERT INTO fill_older (m, g, p) SELECT kmeans(ARRAY[x, y], 3), gmm(ARRAY[x, y], 2), pca(ARRAY[x, y]) FROM fill_rows WHERE x > 0 AND y > 0;
SELECT m IS NOT NULL AS whole, kmeans_predict(m, ARRAY[1, 2]) IS NOT NULL AS predicted,
    gmm_predict(g, ARRAY[1, 2]) IS NOT NULL AS component, pca_transform(p, ARRAY[1, 2]) IS NOT NULL AS scores FROM fill_older;
SELECT (kmeans_update(m, ARRAY[1, 2])).n - min((m).n) AS more FROM fill_older GROUP BY m;
SELECT n_iter, (SELECT count(*) FROM kmeans_outliers('fill_rows', '{x,y}', m, 1, nulls => 'skip')) > 0 AS outliers FROM (SELECT m FROM fill_older LIMIT 1) AS o, kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean', options => kmeans_options(init_model => m));
SELECT k FROM kmeans_cluster('fill_rows', '{x,y}', 3, nulls => 'mean', label_column => 'label', overwrite => true);
SELECT pg_temp.outcome('SELECT kmeans_predict(m, ARRAY[NULL, 2]) FROM fill_older');
-- the same after an update of the extension
SELECT pg_temp.bring_back();
SELECT (m).fills, (g).fills, (p).fills, (g).origin, (p).origin, ((m).origin).sources, (SELECT count(*) FROM kmeans_centroids(m)) AS clusters, (SELECT count(*) FROM kmeans_profile(m)) AS features,
    kmeans_predict(m, ARRAY[1, 2]) IS NOT NULL AS predicted, gmm_predict(g, ARRAY[1, 2]) IS NOT NULL AS component, pca_transform(p, ARRAY[1, 2]) IS NOT NULL AS scores,
    (kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean', options => kmeans_options(init_model => (o).init_model))).n_iter FROM fill_older;
UPDATE fill_older SET m = kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean', options => kmeans_options(init_model => m)) WHERE (o).n_init = 1;
SELECT (m).fills IS NOT NULL AS kept, pg_temp.outcome('SELECT kmeans_predict(m, ARRAY[NULL, 2]) IS NOT NULL FROM fill_older WHERE (o).n_init = 1') AS predicted, ((m).origin).sources FROM fill_older WHERE (o).n_init = 1;
-- a version that had fills, but mixtures and PCA without origins, and origins without sources
TRUNCATE fill_older;
SELECT pg_temp.take_away('{mass,origin,sources}');
INSERT INTO fill_older SELECT kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean'), gmm_fit('fill_rows', '{x,y}', 2, nulls => 'mean'), pca_fit('fill_rows', '{x,y}', nulls => 'mean');
SELECT (m).fills = (g).fills AND (g).fills = (p).fills AS fills, kmeans_predict(m, ARRAY[NULL, 2]) IS NOT NULL AS predicted, gmm_predict(g, ARRAY[NULL, 2]) IS NOT NULL AS component, pca_transform(p, ARRAY[NULL, 2]) IS NOT NULL AS scores,
    (SELECT count(*) FROM kmeans_outliers('fill_rows', '{x,y}', m, 1)) > 0 AS outliers FROM fill_older;
SELECT pg_temp.bring_back();
SELECT m = jsonb_populate_record(n, '{"mass": null}') AS same, (g).origin, (p).origin, ((m).origin).sources, ((n).origin).sources AS now, (SELECT count(*) FROM kmeans_outliers('fill_rows', NULL, m, 1)) > 0 AS outliers, kmeans_predict(m, ARRAY[NULL, 2]) = kmeans_predict(n, ARRAY[NULL, 2]) AS predicted
FROM fill_older, LATERAL (SELECT kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean') AS n) AS s;
ROLLBACK;
-- a type without a field that every version has is altered
BEGIN;
ALTER TYPE kmeans_model DROP ATTRIBUTE fills;
SELECT (kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean')).k;
ALTER TYPE kmeans_model DROP ATTRIBUTE seed;
SELECT (kmeans_fit('fill_rows', '{x,y}', 3, nulls => 'mean')).k;
ROLLBACK;
DROP TABLE fill_rows, fill_models, fill_older;

-- What a model says of where it comes from, and what tells its clusters apart.
CREATE TABLE origin_rows AS SELECT i AS id, i % 3 * 10 + sin(i) AS "Width", (i % 3 = 1)::int * 4 + cos(i) AS y, 7::real AS same, i % 2 + 1 AS w, i % 5 > 0 AS chosen FROM generate_series(1, 300) AS i;
ALTER TABLE origin_rows ADD f float8[];
UPDATE origin_rows SET f = ARRAY["Width", y];
VACUUM origin_rows;
SELECT (m.origin).features, (m.origin).relation, (m.origin).fitted_at = now() AS now, (m.origin).options - '{tol,init,seed,metric,n_init,refine,min_size,max_size,min_sizes,max_sizes,min_weight,max_weight,min_weights,max_weights,max_iter,batch_size,max_radius,init_model,standardize,init_centroids}'::text[] AS more,
    (m.origin).options->>'seed' AS seed, (m.origin).options->'tol' AS tol, (m.origin).options->>'init' AS init, (m.origin).options->>'init_model' AS model
FROM kmeans_fit('origin_rows', '{Width,y}', 3, options => kmeans_options(seed => -5, tol => 0.25, init => 'random'), weight => 'w', filter => 'chosen', nulls => 'skip') AS m;
SELECT (m.origin).options->>'init_model' AS model, (m.origin).options->'batch_size' AS batch FROM kmeans_fit('origin_rows', '{Width,y}', 3) AS b, kmeans_fit('origin_rows', '{Width,y}', 3, options => kmeans_options(init_model => b, batch_size => 9)) AS m;
SELECT (m).origin IS NULL AS none, ((m).origin).features IS NULL AS features, ((m).origin).options->>'n_init' AS n_init FROM (SELECT kmeans(f, 3, kmeans_options(n_init => 2)) AS m FROM origin_rows) AS s;
-- means and deviations: of the rows that took part; of groups, too
SELECT abs((m.origin).means[1] - a) < 1e-9 AND abs((m.origin).means[2] - b) < 1e-9 AS means, abs((m.origin).deviations[1] - c) < 1e-9 AND abs((m.origin).deviations[2] - e) < 1e-9 AS deviations
FROM kmeans_fit('origin_rows', '{Width,y}', 3, filter => 'chosen') AS m, (SELECT avg("Width") AS a, avg(y) AS b, stddev_pop("Width") AS c, stddev_pop(y) AS e FROM origin_rows WHERE chosen) AS s;
SELECT w, abs((m.origin).means[1] - a) < 1e-9 AND abs((m.origin).deviations[1] - c) < 1e-9 AS same FROM (SELECT w, (kmeans(f, 3)).*, avg("Width") AS a, stddev_pop("Width") AS c FROM origin_rows GROUP BY w) AS m ORDER BY w;
SELECT (m.origin).means = m.center AND (m.origin).deviations = m.scale AS standardized FROM kmeans_fit('origin_rows', '{Width,y}', 3, options => kmeans_options(standardize => true, tol => 0)) AS m;
SELECT (m.origin).means IS NULL AND (m.origin).deviations IS NULL AS unknown FROM kmeans_fit('origin_rows', '{Width,y}', 3, options => kmeans_options(tol => 0)) AS m;
-- an origin does not count: models are equal if their clusters are; they sort, group and hash
SELECT a = b AS equal, a <> b AS different, a < b AS less, (a).origin = (b).origin AS origins, (a).origin *= (b).origin AS same_bytes
FROM (SELECT kmeans_fit('origin_rows', '{f}', 3) AS a, kmeans_fit('origin_rows', '{Width,y}', 3) AS b) AS s;
SET enable_sort = off;
SELECT count(*) FROM (SELECT DISTINCT m FROM (SELECT kmeans_fit('origin_rows', f, 3) AS m FROM (VALUES ('{f}'::text[]), ('{Width,y}')) AS v(f)) AS s) AS d;
RESET enable_sort;
SET enable_hashagg = off;
SELECT count(*) FROM (SELECT DISTINCT m FROM (SELECT kmeans_fit('origin_rows', f, 3) AS m FROM (VALUES ('{f}'::text[]), ('{Width,y}')) AS v(f)) AS s) AS d;
RESET enable_hashagg;
-- through a dump's text and kmeans_update
SELECT m::text::kmeans_model = m AND (m::text::kmeans_model).origin *= (m).origin AS text FROM (SELECT kmeans_fit('origin_rows', '{Width,y}', 3) AS m) AS s;
SELECT (u).origin *= (m).origin AS kept FROM (SELECT m, kmeans_update(m, f) AS u FROM origin_rows, (SELECT kmeans_fit('origin_rows', '{Width,y}', 3) AS m) AS s GROUP BY m) AS s;

-- kmeans_profile
SELECT cluster_id, feature, round(value::numeric, 3) AS value, round(overall_mean::numeric, 3) AS overall_mean, round(deviations::numeric, 3) AS deviations
FROM kmeans_profile(kmeans_fit('origin_rows', '{Width,y,same}', 3, options => kmeans_options(init_centroids => '{{0,0,7},{10,4,7},{20,0,7}}'))) ORDER BY cluster_id, feature COLLATE "C";
SELECT every(abs(p.value - c.centroid[1 + (p.feature = 'y')::int]) < 1e-12 AND abs(p.deviations - (p.value - avg) / dev) < 1e-9) AS right
FROM (SELECT avg("Width") AS a, avg(y) AS b, stddev_pop("Width") AS c, stddev_pop(y) AS e FROM origin_rows) AS s, kmeans_fit('origin_rows', '{Width,y}', 3, options => kmeans_options(standardize => true)) AS m,
    kmeans_profile(m) AS p JOIN kmeans_centroids(m) AS c USING (cluster_id), LATERAL (SELECT CASE feature WHEN 'y' THEN b ELSE a END AS avg, CASE feature WHEN 'y' THEN e ELSE c END AS dev) AS q;
SELECT DISTINCT feature FROM kmeans_fit('origin_rows', '{f}', 3) AS m, kmeans_profile(m) ORDER BY feature;
SELECT feature, round(overall_mean::numeric, 6) AS mean, deviations FROM kmeans_profile(ROW(2, 2, '{{0,1},{8,3}}', '{1,3}', '{0,0}', 0, 1, true, 4, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model) WHERE cluster_id = 0;
SELECT kmeans_profile(ROW(1, 2, '{{0,1}}', '{1}', '{0}', 0, 1, true, 4, 'l2', 0, NULL, NULL, ROW('{a,NULL}', NULL, NULL, NULL, NULL, NULL, NULL), NULL, NULL)::kmeans_model);
SELECT kmeans_profile(ROW(1, 2, '{{0,1}}', '{1}', '{0}', 0, 1, true, 4, 'l2', 0, NULL, NULL, ROW(NULL, NULL, NULL, NULL, '{1}', NULL, NULL), NULL, NULL)::kmeans_model);
SELECT count(*) FROM kmeans_profile(NULL);

-- kmeans_outliers
INSERT INTO origin_rows ("Width", y, same, w, chosen, f) VALUES (40, 9, 7, 1, true, '{40,9}'), (0, -30, 7, 1, false, '{0,-30}'), (NULL, 1, 7, 1, true, NULL);
CREATE TABLE origin_models AS SELECT kmeans_fit('origin_rows', '{Width,y}', 3, filter => 'chosen', nulls => 'skip', options => kmeans_options(init_centroids => '{{0,0},{10,4},{20,0}}')) AS m;
SELECT r."Width", r.y, o.cluster_id, o.distance = kmeans_distance(m, ARRAY[r."Width", r.y]) AS distance, abs(o.score - o.distance / sqrt((m).within_ss[o.cluster_id + 1] / (m).size[o.cluster_id + 1])) < 1e-9 AS score, o.row_table
FROM origin_models, kmeans_outliers('origin_rows', '{Width,y}', m, nulls => 'skip') AS o JOIN origin_rows AS r ON r.ctid = o.row_ctid ORDER BY o.score DESC;
SELECT count(*), every(o.score > 0.5) AS far, (SELECT count(*) FROM origin_rows WHERE chosen AND "Width" IS NOT NULL) AS rows FROM origin_models, kmeans_outliers('origin_rows', '{Width,y}', m, 0.5, filter => 'chosen', nulls => 'skip') AS o;
SELECT count(*) = (SELECT count(*) FROM origin_rows, origin_models WHERE f IS NOT NULL AND kmeans_distance(m, f) / sqrt((m).within_ss[kmeans_predict(m, f) + 1] / (m).size[kmeans_predict(m, f) + 1]) > 1.2) AS as_plain
FROM origin_models, kmeans_outliers('origin_rows', '{f}', jsonb_populate_record(m, '{"origin": {"features": ["f"], "sources": null}}'), 1.2);
-- cosine, standardized
SELECT count(*) = (SELECT count(*) FROM origin_rows, (SELECT kmeans_fit('origin_rows', '{f}', 3, options => kmeans_options(standardize => true, metric => 'cosine')) AS m) AS s
    WHERE f IS NOT NULL AND sqrt(2 * kmeans_distance(m, f) / ((m).within_ss[kmeans_predict(m, f) + 1] / (m).size[kmeans_predict(m, f) + 1])) > 1.5) AS as_plain
FROM (SELECT kmeans_fit('origin_rows', '{f}', 3, options => kmeans_options(standardize => true, metric => 'cosine')) AS m) AS s, kmeans_outliers('origin_rows', '{f}', m, 1.5);
-- a cluster of equal rows has no typical distance
SELECT score FROM kmeans_outliers('origin_rows', '{w}', ROW(1, 1, '{{1}}', '{3}', '{0}', 0, 1, true, 4, 'l2', 0, NULL, NULL, NULL, NULL, NULL)::kmeans_model) LIMIT 1;
CREATE VIEW origin_view AS SELECT * FROM origin_rows;
SELECT kmeans_outliers('origin_view', '{Width,y}', m) FROM origin_models;
SELECT kmeans_outliers('origin_rows', '{Width,y}', m) FROM origin_models;
SELECT kmeans_outliers('origin_rows', '{y}', jsonb_populate_record(m, '{"origin": {"features": ["y"]}}')) FROM origin_models;
SELECT kmeans_outliers('origin_rows', '{y}', jsonb_populate_record(m, '{"origin": {"features": ["y"], "sources": null}}')) FROM origin_models;
SELECT kmeans_outliers('origin_rows', '{y}', jsonb_populate_record(m, '{"origin": {"features": null}}')) FROM origin_models;
SELECT kmeans_outliers('origin_rows', '{y}', NULL);
SELECT every(o.score > 3) AS far, count(*) > 0 AS any, array_agg(o) = (SELECT array_agg(p) FROM origin_models, kmeans_outliers('origin_rows', '{Width,y}', m, nulls => 'skip') AS p) AS usual
FROM origin_models, kmeans_outliers('origin_rows', '{Width,y}', m, NULL, nulls => 'skip') AS o;
SELECT kmeans_outliers('origin_rows', '{y}', m, -1) FROM origin_models;
-- origins do not count in hashes
SELECT hash_record_extended(m, 7) = hash_record_extended(jsonb_populate_record(m, '{"origin": {"relation": "another"}}'), 7) AS hash FROM origin_models;
DROP VIEW origin_view;
DROP TABLE origin_rows, origin_models;

-- max_radius: clusters are added until every row lies within it of its centroid.
CREATE TABLE radius_rows AS
SELECT i AS id, (i * 7919 % 1009)::double precision / 100 AS x, (i * 104729 % 997)::double precision / 100 AS y, i % 3 AS part
FROM generate_series(1, 1000) AS i;
SELECT r, m.k, (SELECT max(kmeans_distance(m, ARRAY[x, y])) <= r FROM radius_rows) AS within, m.converged
FROM unnest(ARRAY[0.5, 1, 2, 4, 20]) AS r, LATERAL kmeans_fit('radius_rows', '{x,y}', 2, options => kmeans_options(max_radius => r)) AS m;

-- Against the rule in SQL: each cluster that reaches too far gets a centroid at its farthest row, and the fit goes on.
CREATE FUNCTION radius_reference(k bigint, radius double precision) RETURNS kmeans_model LANGUAGE plpgsql AS $$
DECLARE
    m kmeans_model := kmeans_fit('radius_rows', '{x,y}', k, options => kmeans_options(tol => 0));
    more double precision[];
BEGIN
    LOOP
        SELECT array_agg(ARRAY[x, y] ORDER BY label) INTO more FROM (
            SELECT DISTINCT ON (label) label, x, y
            FROM (SELECT x, y, kmeans_predict(m, ARRAY[x, y]) AS label, kmeans_distance(m, ARRAY[x, y]) AS distance FROM radius_rows) AS s
            WHERE distance > radius ORDER BY label, distance DESC, x, y) AS farthest;
        IF more IS NULL THEN RETURN m; END IF;
        m := kmeans_fit('radius_rows', '{x,y}', m.k + array_length(more, 1), options => kmeans_options(tol => 0, init_centroids => m.centroids || more));
    END LOOP;
END
$$;
SELECT k, r, (m).k AS clusters, ROW((m).centroids, (m).size, (m).within_ss) = ROW((e).centroids, (e).size, (e).within_ss) AS same
FROM (SELECT k, r, kmeans_fit('radius_rows', '{x,y}', k, options => kmeans_options(max_radius => r, tol => 0)) AS m, radius_reference(k, r) AS e
      FROM (VALUES (1, 1.5), (3, 1), (10, 0.7)) AS v(k, r)) AS s ORDER BY k;

-- The same by all functions, in any order and plan, with any number of threads; real and double precision.
CREATE TABLE radius_model AS SELECT kmeans(ARRAY[x, y], 3, kmeans_options(max_radius => 1)) AS m FROM radius_rows;
SELECT m = kmeans_fit('radius_rows', '{x,y}', 3, options => kmeans_options(max_radius => 1)) AS fit,
    m = (SELECT kmeans(ARRAY[x, y], 3, kmeans_options(max_radius => 1) ORDER BY md5(id::text)) FROM radius_rows) AS shuffled,
    (SELECT max(cluster_id) + 1 = (m).k AND max(distance) <= 1 FROM kmeans_labels('radius_rows', '{x,y}', 3, options => kmeans_options(max_radius => 1))) AS labels,
    (SELECT count(DISTINCT l) = (m).k FROM (SELECT kmeans_label(ARRAY[x, y], 3, kmeans_options(max_radius => 1)) OVER () AS l FROM radius_rows) AS s) AS label,
    (m).origin.options->'max_radius' AS option
FROM radius_model;
SELECT kmeans_load('radius_rows', '{x,y}');
SELECT m = kmeans_fit('radius_rows', '{x,y}', 3, options => kmeans_options(max_radius => 1), memory => 'loaded') AS loaded FROM radius_model;
SELECT (kmeans_fit('radius_rows', '{x,y}', 3, memory => 'loaded')).k AS next;
SELECT kmeans_unload();
SELECT bool_and(kmeans_distance(m, ARRAY[x, y]::real[]) <= 1) AS within
FROM radius_rows, (SELECT kmeans(ARRAY[x, y]::real[], 3, kmeans_options(max_radius => 1)) AS m FROM radius_rows) AS s;
-- groups: together, and one by one
CREATE VIEW radius_groups AS SELECT part, kmeans(ARRAY[x, y], 2 + part, kmeans_options(max_radius => 1 + part)) AS m FROM radius_rows GROUP BY part;
CREATE VIEW radius_groups_of_one AS SELECT part, kmeans(ARRAY[x, y], 2, kmeans_options(max_radius => 1)) AS m FROM radius_rows GROUP BY part;
SET enable_sort = off;
CREATE TABLE radius_hashed AS SELECT * FROM radius_groups UNION ALL SELECT part + 10, m FROM radius_groups_of_one;
RESET enable_sort;
SET enable_hashagg = off;
SELECT part, (a.m).k, a.m = b.m AS same
FROM (SELECT * FROM radius_groups UNION ALL SELECT part + 10, m FROM radius_groups_of_one) AS a JOIN radius_hashed AS b USING (part) ORDER BY part;
RESET enable_hashagg;

-- with other options; the distance is that of the metric, of standardized features where they are
SELECT o, max(l.distance) <= 0.3 AS within, count(DISTINCT cluster_id) > 3 AS more
FROM unnest(ARRAY['{}', '{"standardize":true}', '{"n_init":3}', '{"refine":true}', '{"weight":"id"}', '{"init":"random"}']::jsonb[]) AS o,
    LATERAL kmeans_labels('radius_rows', '{x,y}', 3, options => kmeans_options(init => coalesce(o->>'init', 'k-means++'), n_init => coalesce((o->>'n_init')::integer, 1),
                          standardize => o ? 'standardize', refine => o ? 'refine', max_radius => 0.3), weight => o->>'weight') AS l
GROUP BY o ORDER BY o;
SELECT max(distance) <= 0.01 AS within, count(DISTINCT cluster_id) > 3 AS more FROM kmeans_labels('radius_rows', '{x,y}', 3, options => kmeans_options(metric => 'cosine', max_radius => 0.01));
-- of several runs the one with the fewest clusters
SELECT (kmeans_fit('radius_rows', '{x,y}', 3, options => kmeans_options(max_radius => 1, n_init => 8))).k < (kmeans_fit('radius_rows', '{x,y}', 3, options => kmeans_options(max_radius => 1))).k AS fewer;

-- rows that repeat, few rows
SELECT m.k, m.size FROM (SELECT kmeans(ARRAY[x / 10], 1, kmeans_options(max_radius => 0.1)) AS m FROM generate_series(1, 40) AS x) AS s, LATERAL (SELECT (s.m).*) AS m;
SELECT (kmeans(ARRAY[1.5], 1, kmeans_options(max_radius => 1e-300))).k FROM generate_series(1, 3);
SELECT (kmeans(ARRAY[x], 1, kmeans_options(max_radius => 0))).k AS no_limit FROM generate_series(1, 10) AS x;
SELECT (kmeans(ARRAY[x], 1, kmeans_options(max_radius => NULL))).k AS no_limit FROM generate_series(1, 10) AS x;
-- one cluster more, and another one that lost its rows when max_iter came
SELECT max(distance) <= 3 AS within
FROM (SELECT kmeans_distance(kmeans(ARRAY[x], 3, kmeans_options(init_centroids => '{{26},{18},{27}}', max_radius => 3, max_iter => 1)) OVER (), ARRAY[x]) AS distance
      FROM unnest('{3,5,6,8,16,18,20,29}'::float8[]) AS x) AS s;
SELECT kmeans_plot('radius_rows', '{x,y}', 1, options => kmeans_options(max_radius => 5)) LIKE '<svg%' AS plot;

-- what cannot be
\set VERBOSITY terse
SELECT kmeans(ARRAY[x + 0.1], 1, kmeans_options(max_radius => 1e-200)) FROM generate_series(1, 3) AS x;
-- also of rows whose weights are too light for their mean
SELECT (kmeans(ARRAY[sin(i), cos(i)], 2, kmeans_options(max_radius => 1e-30, max_iter => 1), 10.0 ^ -i)).k FROM generate_series(1, 40) AS i;
SELECT kmeans_options(max_radius => -1);
SELECT kmeans_options(max_radius => 'NaN');
SELECT kmeans_options(max_radius => 'Infinity');
SELECT kmeans_options(max_radius => 1, batch_size => 10);
SELECT kmeans_options(max_radius => 1, min_size => 10);
SELECT kmeans_options(max_radius => 1, max_size => 10);
SET pg_kmeans.memory_limit = '3MB';
DO $$
BEGIN
    PERFORM kmeans(ARRAY[i, i % 7, 0, 0, 0, 0, 0, 0, 0, 0], 1, kmeans_options(max_radius => 0.1, max_iter => 3)) FROM generate_series(1, 8000) AS i;
EXCEPTION WHEN program_limit_exceeded THEN
    RAISE NOTICE '%', regexp_replace(SQLERRM, '\d+', 'N', 'g');
END $$;
RESET pg_kmeans.memory_limit;
\set VERBOSITY default
DROP VIEW radius_groups, radius_groups_of_one;
DROP FUNCTION radius_reference;
DROP TABLE radius_rows, radius_model, radius_hashed;

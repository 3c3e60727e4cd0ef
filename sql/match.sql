-- kmeans_match beside all permutations; cluster_agreement beside all pairs of rows and all pairings of labels.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
-- Models of small whole numbers in one dimension: distances and their sums are exact, and there are many ties.
CREATE TABLE match_models AS
SELECT i, kmeans_model((SELECT array_agg(ARRAY[(i * 7 + j * j * (3 + i % 5)) % (4 + i)]) FROM generate_series(1, 1 + i % 5) AS j)) AS o,
    kmeans_model((SELECT array_agg(ARRAY[(i * 5 + j * j * (2 + i % 7)) % (3 + i)]) FROM generate_series(1, 1 + i / 5 % 5) AS j)) AS n FROM generate_series(0, 99) AS i;
CREATE TABLE match_distances AS
SELECT i, a.cluster_id AS new_id, b.cluster_id AS old_id, abs(a.centroid[1] - b.centroid[1]) AS distance FROM match_models, kmeans_centroids(n) AS a, kmeans_centroids(o) AS b;
-- Each new cluster with an old one or none, as many as there can be; of the least total the list that comes first, none being last.
CREATE TABLE match_wanted AS
WITH RECURSIVE lists AS (
    SELECT i, ARRAY[]::integer[] AS olds, 0::float8 AS total, 0 AS pairs FROM match_models
    UNION ALL
    SELECT l.i, l.olds || c.old_id, l.total + c.distance, l.pairs + c.one
    FROM lists AS l JOIN match_models AS m USING (i), LATERAL (
        SELECT old_id, distance, 1 AS one FROM match_distances AS d WHERE d.i = l.i AND d.new_id = cardinality(l.olds) AND d.old_id <> ALL (l.olds)
        UNION ALL SELECT 99, 0, 0) AS c
    WHERE cardinality(l.olds) < (m.n).k)
SELECT DISTINCT ON (i) i, array_replace(olds, 99, NULL) AS olds, total FROM lists JOIN match_models AS m USING (i)
WHERE cardinality(olds) = (m.n).k AND pairs = least((m.n).k, (m.o).k) ORDER BY i, total, olds;
SELECT count(*) AS models, count(*) FILTER (WHERE found.olds = wanted.olds) AS first_of_all, count(*) FILTER (WHERE found.total = wanted.total) AS totals,
    count(*) FILTER (WHERE left_over = greatest((o).k - (n).k, 0) AND olds_once) AS whole
FROM match_models JOIN match_wanted AS wanted USING (i), LATERAL (
    SELECT array_agg(p.old_id ORDER BY p.new_id) FILTER (WHERE p.new_id IS NOT NULL) AS olds, coalesce(sum(p.distance), 0) AS total, count(*) FILTER (WHERE p.new_id IS NULL) AS left_over,
        count(p.old_id) = (o).k AND count(DISTINCT p.old_id) = (o).k AS olds_once
    FROM kmeans_match(o, n) AS p) AS found;
-- As they come: by new_id, then old clusters without a partner.
SELECT * FROM kmeans_match(kmeans_model('{{0,0},{9,9},{5,5},{20,0}}'), kmeans_model('{{5,6},{0,1}}'));
SELECT * FROM kmeans_match(kmeans_model('{{5,6},{0,1}}'), kmeans_model('{{0,0},{9,9},{5,5},{20,0}}'));
-- The nearest would be two: the total counts. Equal clusters keep their ids.
SELECT * FROM kmeans_match(kmeans_model('{{0},{3}}'), kmeans_model('{{2},{4}}'));
SELECT * FROM kmeans_match(kmeans_model('{{1},{1},{1}}'), kmeans_model('{{1},{1},{1}}'));
SELECT bool_and(new_id = 41 - old_id AND distance = 0) AS turned, count(*) FROM (SELECT kmeans_model(array_agg(ARRAY[sin(i), cos(i * i)] ORDER BY i)) AS a, kmeans_model(array_agg(ARRAY[sin(i), cos(i * i)] ORDER BY i DESC)) AS b FROM generate_series(0, 41) AS i) AS s, kmeans_match(a, b);
-- In the units of the data, whatever those of the models are.
SELECT * FROM kmeans_match(kmeans_model('{{0,0},{1,1}}', center => '{10,20}', scale => '{2,5}'), kmeans_model('{{12,25.5},{10,20}}'));
-- Directions: 1 - cosine, by the centre and the scale of the new model.
SELECT new_id, old_id, round(distance::numeric, 14) AS distance FROM kmeans_match(kmeans_model('{{3,4},{0,-1}}', metric => 'cosine'), kmeans_model('{{0,-2},{5,0}}', metric => 'cosine'));
SELECT p.*, abs(p.distance - kmeans_distance(n, c.centroid)) < 1e-15 AS as_predicted
FROM (SELECT kmeans_model('{{1,0}}', center => '{5,5}', scale => '{1,2}', metric => 'cosine') AS o, kmeans_model('{{0,1}}', center => '{4,5}', scale => '{2,2}', metric => 'cosine') AS n) AS s, kmeans_match(o, n) AS p, kmeans_centroids(o) AS c;
-- A fit and the same fit by another name.
CREATE TABLE match_rows AS SELECT i AS id, i % 4 * 10 + i % 7 AS x, i % 4 * 3 + i % 5 AS y FROM generate_series(1, 400) AS i;
SELECT bool_and(distance = 0), count(old_id) FROM kmeans_fit('match_rows', '{x,y}', 4) AS a, kmeans_match(a, (SELECT kmeans(ARRAY[x, y]::integer[], 4) FROM match_rows));

-- Wrong input.
SELECT count(*) FROM kmeans_match(NULL, kmeans_model('{{1}}'));
SELECT count(*) FROM kmeans_match(kmeans_model('{{1}}'), NULL);
SELECT arguments, pg_temp.outcome(format('SELECT p FROM kmeans_match(%s) AS p', arguments)) AS outcome FROM unnest(ARRAY['kmeans_model(''{{1}}''), kmeans_model(''{{1,2}}'')',
    'kmeans_model(''{{1}}''), kmeans_model(''{{1}}'', metric => ''cosine'')', 'kmeans_model(''{{1,2}}'', ''{x,y}''), kmeans_model(''{{1,2}}'', ''{x,z}'')', 'kmeans_model(''{{1,2}}'', ''{x,y}''), kmeans_model(''{{1,2}}'')',
    'kmeans_model(''{{1e200}}''), kmeans_model(''{{-1e200}}'')', 'kmeans_model(''{{1}}'', center => ''{-1}'', metric => ''cosine''), kmeans_model(''{{1}}'', metric => ''cosine'')',
    'ROW(1, 1, ''{{2}}'', ''{3}'', ''{0}'', 0, 1, true, 3, ''l2'', 0, ''{}'', ''{}'', NULL, ''{}'', NULL)::kmeans_model, kmeans_model(''{{1}}'')',
    'ROW(2, 1, ''{{2}}'', ''{3}'', ''{0}'', 0, 1, true, 3, ''l2'', 0, ''{}'', ''{}'', NULL, ''{}'', NULL)::kmeans_model, kmeans_model(''{{1}}'')',
    'kmeans_model(''{{1}}''), ROW(1, 1, ''{{NaN}}'', ''{3}'', ''{0}'', 0, 1, true, 3, ''l2'', 0, ''{}'', ''{}'', NULL, ''{}'', NULL)::kmeans_model',
    'kmeans_model(''{{1}}''), ROW(1, NULL, ''{{1}}'', NULL, ''{0}'', 0, 1, true, 3, ''l2'', 0, ''{}'', ''{}'', NULL, ''{}'', NULL)::kmeans_model']) AS arguments;
SET pg_kmeans.memory_limit = '1MB';
SELECT pg_temp.outcome($$SELECT count(*) FROM (SELECT kmeans_model(array_agg(ARRAY[i])) AS m FROM generate_series(1, 400) AS i) AS s, kmeans_match(m, m)$$) AS beyond;
SELECT pg_temp.outcome($$SELECT cluster_agreement(i, i) FROM generate_series(1, 400) AS i$$) AS beyond;
RESET pg_kmeans.memory_limit;
SET statement_timeout = '300ms';
SELECT count(*) FROM (SELECT kmeans_model(array_agg(ARRAY[i * i % 7919, i * 31 % 10007])) AS a, kmeans_model(array_agg(ARRAY[i * 37 % 9973, i * i % 8011])) AS b FROM generate_series(1, 5000) AS i) AS s, kmeans_match(a, b);
RESET statement_timeout;

-- Yeung and Ruzzo (2001): 10 rows, 0.313.
SELECT (g).n, round((g).adjusted_rand::numeric, 3) AS adjusted_rand, (g).moved
FROM (SELECT cluster_agreement(u, v) AS g FROM (VALUES (1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 2), (2, 3, 1), (3, 3, 4)) AS t (u, v, n), generate_series(1, n)) AS s;
-- Names do not matter, nor NULLs, nor the order; any integers.
SELECT cluster_agreement(a, b) FROM (VALUES (1, 5::bigint), (1, 5), (2, -9223372036854775808), (NULL, 5), (2, NULL), (NULL, NULL)) AS t (a, b);
SELECT cluster_agreement(a, b) FROM (VALUES (1::smallint, 1), (1, 2), (1, 3)) AS t (a, b);
SELECT cluster_agreement(a, b) FROM (VALUES (0, 0), (0, 0), (1, 1), (2, 1)) AS t (a, b);
SELECT cluster_agreement(NULL, 1) IS NULL AS nothing, cluster_agreement(i, i) FILTER (WHERE false) IS NULL AS no_row, (cluster_agreement(i, i)).* FROM generate_series(1, 1) AS i;
-- By all pairs of rows, and all ways to name the labels of b by those of a.
CREATE TABLE match_labels AS SELECT g, id, (id * id + g) % (2 + g % 3) AS a, (id * (3 + g) / 7 + id % 2 * (id * id % 5)) % 4 AS b FROM generate_series(1, 12) AS g, generate_series(1, 60) AS id;
CREATE TABLE match_found AS SELECT g, (cluster_agreement(a, b)).* FROM match_labels GROUP BY g;
SELECT count(*) AS groups, bool_and(n = 60) AS n, bool_and(abs(adjusted_rand - (together - ab / every) / ((ones + others) / 2 - ab / every)) < 1e-14) AS adjusted_rand, min(adjusted_rand) < 0.1 AS low, max(adjusted_rand) > 0 AS high
FROM match_found JOIN (SELECT g, count(*) FILTER (WHERE x.a = y.a AND x.b = y.b)::numeric AS together, count(*) FILTER (WHERE x.a = y.a)::numeric AS ones, count(*) FILTER (WHERE x.b = y.b)::numeric AS others, count(*)::numeric AS every,
    (count(*) FILTER (WHERE x.a = y.a) * count(*) FILTER (WHERE x.b = y.b))::numeric AS ab FROM match_labels AS x JOIN match_labels AS y USING (g) WHERE x.id < y.id GROUP BY g) AS s USING (g);
SELECT bool_and(moved = least / 60.0::float8) AS moved FROM match_found JOIN (SELECT g, min(changed) AS least FROM (
    SELECT g, names, count(*) FILTER (WHERE names[1 + b] <> a) AS changed
    FROM match_labels, (SELECT ARRAY[p, q, r, 6 - p - q - r] AS names FROM generate_series(0, 3) AS p, generate_series(0, 3) AS q, generate_series(0, 3) AS r WHERE p <> q AND p <> r AND q <> r) AS o
    GROUP BY g, names) AS t GROUP BY g) AS w USING (g);
-- The order of rows does not count, nor the plan.
SELECT bool_and(x = y AND y = z) AS same FROM (SELECT g, cluster_agreement(a, b ORDER BY id)::text AS x, cluster_agreement(a, b ORDER BY md5(id::text))::text AS y, cluster_agreement(a, b ORDER BY a, b)::text AS z FROM match_labels GROUP BY g) AS s;
SELECT bool_and((x).adjusted_rand = (y).adjusted_rand AND (x).moved = (y).moved) AS swapped FROM (SELECT cluster_agreement(a, b) AS x, cluster_agreement(b, a) AS y FROM match_labels GROUP BY g) AS s;
SELECT id, w.* FROM (SELECT id, cluster_agreement(a, b) OVER (ORDER BY id) AS w FROM match_labels WHERE g = 1) AS s, LATERAL (SELECT (s.w).n) AS w WHERE id IN (1, 33, 60);
CREATE TABLE match_many AS SELECT i % 300 AS a, (i + i % 7 * (i % 90 / 80)) % 300 AS b FROM generate_series(1, 30000) AS i;
CREATE FUNCTION pg_temp.is_partial(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line LIKE '%Partial Aggregate%' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
CREATE TABLE match_serial AS SELECT (cluster_agreement(a, b)).* FROM match_many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.is_partial('SELECT cluster_agreement(a, b) FROM match_many') AS partial, (p.g).n, (p.g).adjusted_rand = s.adjusted_rand AND (p.g).moved = s.moved AND (p.g).n = s.n AS same FROM (SELECT cluster_agreement(a, b) AS g FROM match_many) AS p, match_serial AS s;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
-- Labels are integers.
SELECT call, pg_temp.outcome('SELECT ' || call) AS outcome FROM unnest(ARRAY['cluster_agreement(''a'', 1)', 'cluster_agreement(1.5, 1)', 'cluster_agreement(1)']) AS call;
DROP TABLE match_models, match_distances, match_wanted, match_rows, match_labels, match_found, match_many, match_serial;

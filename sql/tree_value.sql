-- kmeans_tree as a value. Reference: a descent in SQL over the fields of the tree; labels of nested fits are in tree.sql.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TABLE value_rows AS
SELECT i AS id, (i * 7919 % 1009)::double precision / 100 AS x, (i * 104729 % 997)::double precision / 100 AS y, 1 + i % 3 AS w, CASE WHEN i % 9 > 0 THEN i % 13 END AS z,
    CASE WHEN i % 11 > 0 THEN chr(97 + i % 3) END AS t, ARRAY[sin(i), cos(i * i), i % 7]::real[] AS f FROM generate_series(1, 400) AS i;
CREATE TABLE value_steps AS SELECT i AS id, power(3::double precision, i) AS x FROM generate_series(1, 60) AS i;
CREATE TABLE value_few AS SELECT i AS id, i / 4 AS x FROM generate_series(0, 11) AS i;
-- Features of a row as the tree sees them, in the units of the data.
CREATE TABLE value_calls (name text, relation text, arguments text, features text);
INSERT INTO value_calls VALUES
    ('levels', 'value_rows', '''{x,y}'', ''{5,4,3}''', 'ARRAY[x, y]'), ('bisected', 'value_rows', '''{x,y}'', k => 23, options => kmeans_options(tol => 0)', 'ARRAY[x, y]'),
    ('standardized', 'value_rows', '''{x,z}'', ''{4,3}'', nulls => ''skip'', options => kmeans_options(standardize => true)', 'ARRAY[x, z]'),
    ('cosine', 'value_rows', '''{x,y}'', ''{4,3}'', options => kmeans_options(metric => ''cosine'')', 'ARRAY[x, y]'), ('real', 'value_rows', '''{f}'', ''{3,3}''', 'f::double precision[]'),
    ('weights', 'value_rows', '''{x,y}'', ''{3,2}'', weight => ''w''', 'ARRAY[x, y]'), ('means', 'value_rows', '''{x,z}'', ''{3,2}'', nulls => ''mean''', 'ARRAY[x, z]'),
    ('unfinished', 'value_rows', '''{x,y}'', ''{6,4}'', options => kmeans_options(max_iter => 1)', 'ARRAY[x, y]'), ('category', 'value_rows', '''{t,x}'', ''{3,2}''', 'ARRAY[coalesce(t = ''a'', false)::int, coalesce(t = ''b'', false)::int, coalesce(t = ''c'', false)::int, (t IS NULL)::int, x]'),
    ('one node', 'value_rows', '''{x,y}'', k => 1', 'ARRAY[x, y]'), ('deep', 'value_steps', '''{x}'', k => 40', 'ARRAY[x]'), ('repeated', 'value_few', '''{x}'', ''{2,5}''', 'ARRAY[x]');
CREATE TABLE value_trees (name text PRIMARY KEY, tree kmeans_tree NOT NULL CHECK (tree IS NOT NULL));
CREATE TABLE value_relation (name text, node_id integer, parent_id integer, level integer, centroid double precision[], size bigint);
CREATE TABLE value_labels (name text, id integer, w integer, features double precision[], leaf integer, path integer[]);
SET client_min_messages = error;
DO $$
DECLARE c record;
BEGIN
    FOR c IN SELECT * FROM value_calls LOOP
        EXECUTE format('INSERT INTO value_trees SELECT %L, kmeans_tree_fit(%L, %s)', c.name, c.relation, c.arguments);
        EXECUTE format('INSERT INTO value_relation SELECT %L, * FROM kmeans_tree(%L, %s)', c.name, c.relation, c.arguments);
        EXECUTE format('INSERT INTO value_labels SELECT name, r.id, (to_jsonb(r) ->> ''w'')::integer, %s, kmeans_tree_predict(tree, r), kmeans_tree_path(tree, r) FROM %I AS r, value_trees WHERE name = %L%s',
            c.features, c.relation, c.name, CASE c.name WHEN 'standardized' THEN ' AND z IS NOT NULL' ELSE '' END);
    END LOOP;
END $$;
RESET client_min_messages;

-- The nodes are those of the relation form. A row of the fit is in the nodes of its path, and their sizes say how many rows they have.
CREATE TABLE value_nodes AS
SELECT name, n.*, array_remove(ARRAY(SELECT (tree).centroids[n.node_id + 1][j] FROM generate_series(1, (tree).d) AS j), NULL) AS place, NOT n.node_id = ANY ((tree).parents) AS is_leaf FROM value_trees, kmeans_tree_nodes(tree) AS n;
SELECT name, count(*) AS nodes, count(*) FILTER (WHERE is_leaf) AS leaves, max(level) AS depth, bool_and(size = (SELECT count(*) FROM value_labels AS l WHERE l.name = n.name AND n.node_id = ANY (path))) AS sizes
FROM value_nodes AS n GROUP BY name ORDER BY name;
SELECT count(*) AS differ FROM ((SELECT name, node_id, parent_id, level, centroid, size FROM value_nodes EXCEPT TABLE value_relation) UNION ALL (TABLE value_relation EXCEPT SELECT name, node_id, parent_id, level, centroid, size FROM value_nodes)) AS s;
SELECT name, (tree).nodes = count(*) AS nodes, (tree).n = max(size) AS n, (tree).parents[1:4] AS parents, (tree).metric, (tree).converged, abs((tree).inertia - sum((tree).within_ss[node_id + 1]) FILTER (WHERE is_leaf)) <= 1e-12 * (tree).inertia AS inertia, ((tree).origin).features
FROM value_trees JOIN value_nodes USING (name) GROUP BY name, tree ORDER BY name;

-- The descent in SQL: features in the units of the tree, then the nearest child again and again.
CREATE TABLE value_placed AS
SELECT l.*, CASE (tree).metric WHEN 'cosine' THEN ARRAY(SELECT u / sqrt((SELECT sum(o ^ 2) FROM unnest(features) AS o)) FROM unnest(features) WITH ORDINALITY AS e(u, i) ORDER BY i)
    ELSE ARRAY(SELECT coalesce((coalesce(u, (tree).fills[i]) - (tree).center[i]) / (tree).scale[i], u, (tree).fills[i]) FROM unnest(features) WITH ORDINALITY AS e(u, i) ORDER BY i) END AS place FROM value_labels AS l JOIN value_trees USING (name);
CREATE FUNCTION square(double precision[], double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE RETURN (SELECT sum((a - b) ^ 2) FROM unnest($1, $2) AS u(a, b));
WITH RECURSIVE paths AS (
    SELECT name, id, place, ARRAY[0] AS found FROM value_placed
    UNION ALL
    SELECT p.name, p.id, p.place, p.found || c.node_id FROM paths AS p, LATERAL (
        SELECT n.node_id FROM value_nodes AS n WHERE n.name = p.name AND n.parent_id = p.found[cardinality(p.found)] ORDER BY square(n.place, p.place), n.node_id LIMIT 1) AS c
), longest AS (SELECT DISTINCT ON (name, id) name, id, found FROM paths ORDER BY name, id, cardinality(found) DESC)
SELECT name, count(*) AS rows, bool_and(path = found) AS paths, bool_and(leaf = found[cardinality(found)]) AS leaves FROM longest FULL JOIN value_labels USING (name, id) GROUP BY name ORDER BY name;
-- A centroid is the mean of the rows that go there.
SELECT name, bool_and(square(place, means) <= 1e-24 * square(place, array_fill(0, ARRAY[cardinality(place)])) + 1e-24) AS means
FROM value_nodes AS n, LATERAL (SELECT array_agg(mean ORDER BY i) AS means FROM (SELECT i, sum(u * coalesce(CASE n.name WHEN 'weights' THEN w END, 1)) / sum(coalesce(CASE n.name WHEN 'weights' THEN w END, 1)) AS mean FROM value_placed AS p, unnest(p.place) WITH ORDINALITY AS e(u, i) WHERE p.name = n.name AND n.node_id = ANY (path) GROUP BY i) AS s) AS m
WHERE name NOT IN ('cosine', 'real', 'unfinished') GROUP BY name ORDER BY name;

-- A probe is the order of all leaves by their distance.
CREATE TABLE value_probes AS
SELECT name, id, p, f.leaves, f.distances, w.leaves AS wanted, w.distances AS wanted_distances
FROM value_trees JOIN value_placed AS r USING (name), unnest(ARRAY[1, 3, 1000]) AS p,
    LATERAL (SELECT array_agg(leaf ORDER BY number) AS leaves, array_agg(distance ORDER BY number) AS distances FROM kmeans_tree_probe(tree, features, p) WITH ORDINALITY AS s(leaf, distance, number)) AS f,
    LATERAL (SELECT array_agg(node_id ORDER BY square, node_id) AS leaves, array_agg(CASE name WHEN 'cosine' THEN square / 2 ELSE sqrt(square) END ORDER BY square, node_id) AS distances
        FROM (SELECT node_id, square(n.place, r.place) AS square FROM value_nodes AS n WHERE n.name = r.name AND is_leaf ORDER BY 2, 1 LIMIT p) AS s) AS w
WHERE r.id % 10 = 1;
SELECT name, count(*), bool_and(leaves = wanted) AS leaves, bool_and(square(distances, wanted_distances) <= 1e-24 * square(wanted_distances, array_fill(0, ARRAY[cardinality(wanted)])) + 1e-24) AS distances FROM value_probes GROUP BY name ORDER BY name;

-- Rows by their columns, which a plan passes; an array, a vector in text, a row of another type, no row.
CREATE FUNCTION pg_temp.in_plan(query text, OUT calls text[]) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE) ' || query LOOP
        calls := calls || ARRAY(SELECT m[1] FROM regexp_matches(line, 'pgkm_row\w+', 'g') AS m);
    END LOOP;
END $$;
SELECT pg_temp.in_plan($$SELECT kmeans_tree_predict(tree, r), kmeans_tree_path(tree, r) FROM value_rows AS r, value_trees$$);
SELECT count(*), bool_and(kmeans_tree_predict(tree, o) = leaf AND kmeans_tree_path(tree, o) = path) AS other_relation FROM value_labels JOIN value_rows AS r USING (id) JOIN value_trees USING (name), LATERAL (SELECT 5 AS z, r.x::numeric AS x, r.t::varchar AS t) AS o WHERE name = 'category';
SELECT kmeans_tree_predict(tree, '{1,2}') = kmeans_tree_predict(tree, ARRAY[1, 2]) AS text, kmeans_tree_path(tree, '{1,2}') = kmeans_tree_path(tree, ARRAY[1, 2]::numeric[]) AS path, (SELECT count(*) FROM kmeans_tree_probe(tree, o, 3)) AS probe_of_row,
    ARRAY(SELECT p FROM kmeans_tree_probe(tree, o, 3) AS p) = ARRAY(SELECT p FROM kmeans_tree_probe(tree, '{1,2}', 3) AS p) AS same FROM value_trees, (SELECT 2 AS y, 1 AS x) AS o WHERE name = 'levels';
SELECT kmeans_tree_predict(tree, NULL::double precision[]), kmeans_tree_path(tree, '{NULL,NULL}'), kmeans_tree_predict(NULL, ARRAY[1]), (SELECT count(*) FROM kmeans_tree_probe(tree, NULL::real[], 3)) AS probe, (SELECT count(*) FROM kmeans_tree_probe(tree, ARRAY[1, 2], NULL)) AS no_p,
    (SELECT kmeans_tree_predict(tree, o) FROM (SELECT 1 AS id) AS one LEFT JOIN value_rows AS o ON o.id = -one.id) AS outer_join FROM value_trees WHERE name = 'levels';
SELECT kmeans_tree_predict(tree, ARRAY[3, NULL]) = kmeans_tree_predict(tree, ARRAY[3, (tree).fills[2]]) AS fills FROM value_trees WHERE name = 'means';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT bool_and(kmeans_tree_predict(tree, features) = leaf) AS parallel FROM value_labels JOIN value_trees USING (name) WHERE name IN ('levels', 'bisected', 'cosine');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- A value: texts, JSON, comparison; the order of rows and threads do not count.
SELECT bool_and(tree::text::kmeans_tree = tree) AS text, bool_and(jsonb_populate_record(NULL::kmeans_tree, to_jsonb(tree)) = tree) AS json, count(DISTINCT tree) AS trees, bool_and(kmeans_tree_path(tree::text::kmeans_tree, features) = path) AS paths FROM value_trees JOIN value_labels USING (name);
CREATE VIEW value_turned AS SELECT * FROM value_rows ORDER BY id DESC;
SET pg_kmeans.cpu_threads = 1;
SELECT tree = kmeans_tree_fit('value_turned', '{x,y}', '{5,4,3}') AS turned, tree = kmeans_tree_fit('value_turned', '{x,y}', '{5,4,3}', options => kmeans_options(seed => 1)) AS other FROM value_trees WHERE name = 'levels';
RESET pg_kmeans.cpu_threads;
SELECT kmeans_load('value_rows', '{x,y}');
SELECT tree = kmeans_tree_fit('value_rows', '{x,y}', k => 23, options => kmeans_options(tol => 0), memory => 'loaded') AS loaded FROM value_trees WHERE name = 'bisected';
SELECT kmeans_unload();
SELECT function, relid::regclass, n, d, k FROM kmeans_last_run();
SELECT kmeans_tree_fit('value_rows', '{x,y}', '{2}', filter => 'x > 99') IS NULL AS no_rows;
SELECT ((tree).origin).relation, ((tree).origin).options, (tree).center, (tree).fills FROM value_trees WHERE name = 'weights';

-- Made by hand. Of equally near children the first; the leaf of the descent may be farther than another; a long way down.
CREATE FUNCTION hand(parents integer[], centroids double precision[], metric text DEFAULT 'l2') RETURNS kmeans_tree LANGUAGE sql IMMUTABLE AS $$
SELECT ROW(cardinality(parents), array_length(centroids, 2), centroids, array_fill(0::bigint, ARRAY[cardinality(parents)]), array_fill(0::double precision, ARRAY[cardinality(parents)]), 0, 0, true, 0, metric, 0, '{}', '{}', NULL, '{}', parents)::kmeans_tree $$;
SELECT v, kmeans_tree_path(hand('{-1,0,0,1,1,2,2}', '{{0},{-4},{4},{-6},{-2},{2},{6}}'), ARRAY[v]) AS path, ARRAY(SELECT leaf FROM kmeans_tree_probe(hand('{-1,0,0,1,1,2,2}', '{{0},{-4},{4},{-6},{-2},{2},{6}}'), ARRAY[v], 3)) AS nearest FROM unnest('{0,4,-4,-9}'::integer[]) AS v;
SELECT kmeans_tree_path(h, ARRAY[3]) AS path, p.* FROM hand('{-1,0,0,1,1,2,2}', '{{0},{-3},{10},{-8},{2},{3},{17}}') AS h, kmeans_tree_probe(h, ARRAY[3], 9) AS p;
SELECT kmeans_tree_predict(h, ARRAY[7]) AS leaf, cardinality(kmeans_tree_path(h, ARRAY[7])) AS nodes, (SELECT max(level) FROM kmeans_tree_nodes(h)) AS level, p.* FROM (SELECT hand(array_agg(i - 1 ORDER BY i), array_agg(ARRAY[i] ORDER BY i)) AS h FROM generate_series(0, 20000) AS i) AS s, kmeans_tree_probe(h, ARRAY[7], 2) AS p;

INSERT INTO value_trees SELECT 'small', kmeans_tree_fit('value_rows', '{x,y}', k => 3);
-- Forged: each node behind its parent, children side by side.
\set VERBOSITY terse
SELECT change, pg_temp.outcome(format($$SELECT kmeans_tree_predict(jsonb_populate_record(tree, %L), ARRAY[1, 2]) FROM value_trees WHERE name = 'small'$$, change)) AS outcome
FROM unnest(ARRAY['{}', '{"parents": [0, 0, 0, 1, 1]}', '{"parents": [-1, -1, 0, 1, 1]}', '{"parents": [-1, 0, 3, 2, 2]}', '{"parents": [-1, 0, 2, 0, 0]}', '{"parents": [-1, 0, 0, 1, 0]}', '{"parents": [-1, 0, 0, 9, 9]}', '{"parents": [-1, 0, 0, 1]}', '{"parents": [-1, 0, 0, 1, 1, 1]}',
    '{"parents": [-1, 0, 0, null, 1]}', '{"parents": null}', '{"parents": [[-1, 0, 0, 1, 1]]}', '{"parents": []}', '{"nodes": 4}', '{"nodes": 0}', '{"nodes": null}', '{"d": 3}', '{"centroids": [[1, 2]]}', '{"centroids": [[1, 2], [3, 4], [5, 6], [7, 8], ["NaN", 9]]}', '{"size": [1]}', '{"within_ss": null}', '{"metric": "l1"}',
    '{"center": [1, 2]}', '{"center": [1, 2], "scale": [1, 0]}', '{"fills": [1]}', '{"fills": [1, 1e200]}']) AS change;
-- Bad rows and arguments; those of the fit.
SELECT arguments, pg_temp.outcome(format($$SELECT kmeans_tree_predict(%s) FROM value_trees WHERE name = 'small'$$, arguments)) AS predict, pg_temp.outcome(format($$SELECT p FROM value_trees, kmeans_tree_probe(%s, 2) AS p WHERE name = 'small'$$, arguments)) AS probe
FROM unnest(ARRAY['tree, ARRAY[1]', 'tree, ARRAY[1, 2, 3]', 'tree, ''{}''', 'tree, ARRAY[1, NULL]', 'tree, ARRAY[1, ''NaN''::float8]', 'tree, ARRAY[1, ''Infinity''::real]', 'tree, ARRAY[1, 1e200]', 'tree, ARRAY[1e150, 0]', 'tree, 7', 'tree, ROW(1, 2)', 'tree, (SELECT r FROM (SELECT 1 AS x) AS r)',
    'tree, (SELECT r FROM (SELECT 1 AS x, now() AS y) AS r)', 'hand(''{-1}'', ''{{0,1}}''), (SELECT r FROM (SELECT 1 AS x, 2 AS y) AS r)', 'hand(''{-1,0}'', ''{{0,1},{0,1}}'', ''cosine''), ARRAY[0, 0]', 'hand(''{-1,0}'', ''{{0},{-1e250}}''), ARRAY[1]', 'NULL::kmeans_tree, ARRAY[1]', 'kmeans_model(''{{1}}''), ARRAY[1]']) AS arguments;
SELECT p, pg_temp.outcome(format($$SELECT count(*) FROM value_trees, kmeans_tree_probe(tree, ARRAY[1, 2], %s) WHERE name = 'small'$$, p)) AS outcome FROM unnest(ARRAY['1', '2147483647', '0', '-1', '4000000000', '1.5', '''x''']) AS p;
SELECT pg_temp.outcome($$SELECT n FROM value_trees, kmeans_tree_nodes(jsonb_populate_record(tree, '{"parents": [-1, 0, 0, 9, 9]}')) AS n WHERE name = 'small'$$) AS nodes;
SELECT arguments, pg_temp.outcome(format('SELECT kmeans_tree_fit(%s)', arguments)) AS outcome FROM unnest(ARRAY['''value_rows'', ''{x,y}''', '''value_rows'', ''{x,y}'', ''{3}'', 7', '''value_rows'', ''{x,y}'', ''{3,1}''', '''value_rows'', ''{x,y}'', k => 0', '''value_rows'', ''{x,y}'', ''{3}'', options => kmeans_options(max_radius => 1)',
    '''value_rows'', ''{q}'', ''{3}''', '''value_rows'', ''{x,z}'', ''{3}''', '''value_rows'', ''{x,y}'', ''{3}'', memory => ''stream''', '''value_rows'', NULL, ''{3}''']) AS arguments;
DROP VIEW value_turned;
DROP TABLE value_rows, value_steps, value_few, value_calls, value_trees, value_relation, value_labels, value_nodes, value_placed, value_probes;
DROP FUNCTION square, hand;

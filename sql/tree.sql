-- kmeans_tree: clusters of clusters. Reference: nested calls of kmeans_fit over the rows of each cluster.
CREATE TABLE tree_rows AS
SELECT i AS id, (i * 7919 % 1009)::double precision / 100 AS x, (i * 104729 % 997)::double precision / 100 AS y, 1 + i % 3 AS w
FROM generate_series(1, 1500) AS i;
-- The children of each node, by a fit of the rows that its path of labels leads to.
CREATE TABLE tree_parts (id integer, x double precision, y double precision, w integer, path text);
CREATE FUNCTION tree_levels(VARIADIC branches integer[]) RETURNS TABLE (path text, centroid double precision[], size bigint) LANGUAGE plpgsql AS $$
DECLARE
    branch integer;
    at text;
BEGIN
    TRUNCATE tree_parts;
    INSERT INTO tree_parts SELECT t.*, '0' FROM tree_rows AS t;
    RETURN QUERY SELECT '0', c.centroid, c.size FROM kmeans_centroids(kmeans_fit('tree_parts', '{x,y}', 1, options => kmeans_options(seed => 5))) AS c;
    FOREACH branch IN ARRAY branches LOOP
        FOR at IN SELECT DISTINCT p.path FROM tree_parts AS p ORDER BY 1 LOOP
            CREATE TEMPORARY TABLE tree_part AS SELECT p.id, p.x, p.y FROM tree_parts AS p WHERE p.path = at;
            RETURN QUERY SELECT at || '.' || to_char(c.cluster_id, 'FM000'), c.centroid, c.size
                FROM kmeans_centroids(kmeans_fit('tree_part', '{x,y}', branch, options => kmeans_options(seed => 5))) AS c;
            UPDATE tree_parts AS p SET path = at || '.' || to_char(l.cluster_id, 'FM000')
                FROM kmeans_labels('tree_part', '{x,y}', branch, options => kmeans_options(seed => 5)) AS l JOIN tree_part AS t ON t.ctid = l.row_ctid WHERE t.id = p.id;
            DROP TABLE tree_part;
        END LOOP;
    END LOOP;
END
$$;
SET client_min_messages = warning;
CREATE TABLE tree_reference AS SELECT row_number() OVER (ORDER BY length(path), path) - 1 AS node_id, * FROM tree_levels(5, 4, 3);
CREATE TABLE tree_nodes AS SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{5,4,3}', options => kmeans_options(seed => 5));
SELECT level, count(*), sum(t.size), count(*) FILTER (WHERE t.centroid = r.centroid AND t.size = r.size) AS same,
    count(*) FILTER (WHERE (SELECT p.path FROM tree_reference AS p WHERE p.node_id = t.parent_id) || '.' = left(r.path, -3)) AS children
FROM tree_nodes AS t JOIN tree_reference AS r USING (node_id) GROUP BY level ORDER BY level;
SELECT (SELECT count(*) FROM tree_nodes) = (SELECT count(*) FROM tree_reference) AS all_nodes;
SELECT count(*) AS rows, bool_and(kmeans_tree_predict(t, p) = r.node_id) AS labels FROM kmeans_tree_fit('tree_rows', '{x,y}', '{5,4,3}', options => kmeans_options(seed => 5)) AS t, tree_parts AS p JOIN tree_reference AS r USING (path);

-- Bisecting: the leaf of the largest inertia is divided next.
CREATE FUNCTION tree_bisect(k bigint) RETURNS TABLE (node_id integer, parent_id integer, level integer, centroid double precision[], size bigint) LANGUAGE plpgsql AS $$
DECLARE
    leaf record;
    nodes integer := 1;
BEGIN
    TRUNCATE tree_parts;
    INSERT INTO tree_parts SELECT t.*, '0' FROM tree_rows AS t;
    CREATE TEMPORARY TABLE tree_leaves AS SELECT 0 AS node, 0 AS depth, inertia FROM kmeans_fit('tree_parts', '{x,y}', 1, options => kmeans_options(seed => 5));
    RETURN QUERY SELECT 0, NULL::integer, 0, c.centroid, c.size FROM kmeans_centroids(kmeans_fit('tree_parts', '{x,y}', 1, options => kmeans_options(seed => 5))) AS c;
    FOR i IN 2 .. k LOOP
        SELECT * INTO leaf FROM tree_leaves ORDER BY inertia DESC, node LIMIT 1;
        CREATE TEMPORARY TABLE tree_part AS SELECT p.id, p.x, p.y FROM tree_parts AS p WHERE p.path = leaf.node::text;
        RETURN QUERY SELECT nodes + c.cluster_id, leaf.node, leaf.depth + 1, c.centroid, c.size
            FROM kmeans_centroids(kmeans_fit('tree_part', '{x,y}', 2, options => kmeans_options(seed => 5))) AS c;
        INSERT INTO tree_leaves SELECT nodes + c.cluster_id, leaf.depth + 1, c.within_ss
            FROM kmeans_centroids(kmeans_fit('tree_part', '{x,y}', 2, options => kmeans_options(seed => 5))) AS c;
        UPDATE tree_parts AS p SET path = nodes + l.cluster_id
            FROM kmeans_labels('tree_part', '{x,y}', 2, options => kmeans_options(seed => 5)) AS l JOIN tree_part AS t ON t.ctid = l.row_ctid WHERE t.id = p.id;
        DELETE FROM tree_leaves WHERE node = leaf.node;
        DROP TABLE tree_part;
        nodes := nodes + 2;
    END LOOP;
    DROP TABLE tree_leaves;
END
$$;
CREATE TABLE tree_bisected AS SELECT * FROM kmeans_tree('tree_rows', '{x,y}', 'bisecting', 23, options => kmeans_options(seed => 5));
SELECT count(*), count(*) FILTER (WHERE t = r) AS same FROM tree_bisected AS t FULL JOIN tree_bisect(23) AS r USING (node_id);
SELECT count(*) AS rows, bool_and(kmeans_tree_predict(t, p) = p.path::integer) AS labels FROM kmeans_tree_fit('tree_rows', '{x,y}', k => 23, options => kmeans_options(seed => 5)) AS t, tree_parts AS p;
RESET client_min_messages;

-- the same in any order, with any number of threads, of loaded rows, of rows that no scan of pages reads
CREATE TABLE tree_shuffled AS SELECT * FROM tree_rows ORDER BY md5(id::text);
CREATE VIEW tree_view AS SELECT * FROM tree_rows ORDER BY id DESC;
SELECT kmeans_load('tree_rows', '{x,y}');
SET pg_kmeans.cpu_threads = 1;
SELECT r, bool_and(t = n) AS same, (SELECT count(*) FROM (SELECT * FROM kmeans_tree(r::regclass, '{x,y}', 'bisecting', 23, options => kmeans_options(seed => 5)) INTERSECT TABLE tree_bisected) AS s) AS bisected
FROM unnest(ARRAY['tree_rows', 'tree_shuffled', 'tree_view']) AS r, LATERAL kmeans_tree(r::regclass, '{x,y}', '{5,4,3}', options => kmeans_options(seed => 5)) AS t FULL JOIN tree_nodes AS n USING (node_id)
GROUP BY r ORDER BY r;
RESET pg_kmeans.cpu_threads;
SELECT bool_and(t = n) AS loaded FROM kmeans_tree('tree_rows', '{x,y}', '{5,4,3}', options => kmeans_options(seed => 5), memory => 'loaded') AS t FULL JOIN tree_nodes AS n USING (node_id);
SELECT f = kmeans_fit('tree_rows', '{x,y}', 3) AS next_fit FROM kmeans_fit('tree_rows', '{x,y}', 3, memory => 'loaded') AS f;
SELECT kmeans_unload();
SELECT bool_and(t = b) AS by_k_alone FROM kmeans_tree('tree_rows', '{x,y}', k => 23, options => kmeans_options(seed => 5)) AS t FULL JOIN tree_bisected AS b USING (node_id);
SELECT count(*) FROM kmeans_tree('tree_rows', '{x,y}', '{5,4,3}');
SELECT function, relid::regclass, n, d, k FROM kmeans_last_run();

-- options: units are those of all rows; directions; weights; rows without features, and a filter
CREATE VIEW tree_scaled AS SELECT (x - m.center[1]) / m.scale[1] AS x, (y - m.center[2]) / m.scale[2] AS y FROM tree_rows, kmeans_fit('tree_rows', '{x,y}', 1, options => kmeans_options(standardize => true)) AS m;
SELECT count(*), bool_and(a.size = b.size AND a.parent_id IS NOT DISTINCT FROM b.parent_id) AS same
FROM kmeans_tree('tree_rows', '{x,y}', '{4,3}', options => kmeans_options(standardize => true)) AS a JOIN kmeans_tree('tree_scaled', '{x,y}', '{4,3}') AS b USING (node_id);
SELECT level, count(*), bool_and(abs(sqrt(centroid[1] ^ 2 + centroid[2] ^ 2) - 1) < 1e-12) AS unit FROM kmeans_tree('tree_rows', '{x,y}', '{4,3}', options => kmeans_options(metric => 'cosine')) GROUP BY level ORDER BY level;
SELECT bool_and(a.centroid = b.centroid) AS weights_count
FROM kmeans_tree('tree_rows', '{x,y}', '{3}', weight => 'w') AS a
JOIN (SELECT cluster_id + 1 AS node_id, centroid FROM kmeans_centroids(kmeans_fit('tree_rows', '{x,y}', 3, weight => 'w')) UNION ALL
      SELECT 0, centroid FROM kmeans_centroids(kmeans_fit('tree_rows', '{x,y}', 1, weight => 'w'))) AS b USING (node_id);
SELECT level, count(*), sum(size) FROM kmeans_tree('tree_rows', '{x,y}', '{4,3}', options => kmeans_options(init => 'k-means||', n_init => 3, refine => true, tol => 0)) GROUP BY level ORDER BY level;
CREATE TABLE tree_reals AS SELECT id, ARRAY[x, y]::real[] AS f FROM tree_rows UNION ALL SELECT 0, NULL;
SELECT level, count(*), sum(size) FROM kmeans_tree('tree_reals', '{f}', '{3,3}') GROUP BY level ORDER BY level;

-- few rows, rows that repeat, none
CREATE TABLE tree_few AS SELECT i / 4 AS x FROM generate_series(0, 11) AS i;
SELECT * FROM kmeans_tree('tree_few', '{x}', '{2,5}');
SELECT * FROM kmeans_tree('tree_few', '{x}', 'bisecting', 5);
SELECT * FROM kmeans_tree('tree_few', '{x}', 'bisecting', 1);
DELETE FROM tree_few;
SELECT * FROM kmeans_tree('tree_few', '{x}', '{2}');

-- VectorChord's external build takes one root, unique ids, parents that exist, and leaves of one level.
SELECT count(*) FILTER (WHERE parent_id IS NULL) AS roots, count(DISTINCT node_id) = count(*) AS unique_ids,
    bool_and(parent_id IS NULL OR parent_id IN (SELECT node_id FROM tree_nodes)) AS parents,
    count(DISTINCT level) FILTER (WHERE node_id NOT IN (SELECT parent_id FROM tree_nodes WHERE parent_id IS NOT NULL)) AS leaf_levels FROM tree_nodes;

-- errors
\set VERBOSITY terse
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3,1}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3,x}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3,99999999999}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3}}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', 'halves');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', NULL);
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3}', 7);
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', 'bisecting');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', 'bisecting', 0);
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{2,2,2,2,2,2,2,2,2}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3}', options => kmeans_options(init => 'best'));
SELECT * FROM kmeans_tree('tree_rows', '{z}', '{3}');
SELECT * FROM kmeans_tree('tree_none', '{x,y}', '{3}');
SELECT * FROM kmeans_tree(NULL, '{x,y}', '{3}');
SELECT * FROM kmeans_tree('tree_rows', NULL, '{3}');
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', '{3}', memory => 'loaded');
SELECT count(*) FROM kmeans_tree('tree_rows', '{x,y}', ' { 3, 2 } ', options => kmeans_options(max_iter => 1));
CREATE TABLE tree_many AS SELECT i * 0.618 % 1 AS x, i * 0.414 % 1 AS y FROM generate_series(1, 20000) AS i;
SET pg_kmeans.memory_limit = '2MB';
SELECT count(*) FROM kmeans_tree('tree_many', '{x,y}', '{1000,50}');
RESET pg_kmeans.memory_limit;
\set VERBOSITY default
SELECT * FROM kmeans_tree('tree_rows', '{x,y}', 'bisecting');
DROP VIEW tree_view, tree_scaled;
DROP TABLE tree_rows, tree_parts, tree_reference, tree_nodes, tree_bisected, tree_shuffled, tree_reals, tree_few, tree_many;
DROP FUNCTION tree_levels, tree_bisect;

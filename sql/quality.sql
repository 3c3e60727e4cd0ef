-- kmeans_quality and kmeans_silhouettes beside all pairs of rows, computed in SQL.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
-- Labels of any integers, one of a single row, some NULL; rows that repeat, under the same and under other labels; two clusters of one mean.
CREATE TABLE quality_base AS
SELECT i AS id, cos(i % 4) * 6 + sin(j * 7.3) * 2.5 AS x, sin(i % 4) * 5 + cos(j * j * 1.7) * 3 + 20 AS y, (0.25 * (1 + j % 9))::float8 AS w,
    CASE WHEN i % 11 = 0 THEN NULL WHEN i = 70 THEN 9223372036854775807 ELSE (ARRAY[-9223372036854775808, 0, 7, 4000000000])[1 + (i + i / 30) % 4] END AS label
FROM generate_series(1, 70) AS i, LATERAL (SELECT CASE WHEN i BETWEEN 45 AND 56 THEN i - 44 ELSE i END AS j) AS s;
CREATE VIEW quality_rows (kind, id, x, y, w, label) AS
SELECT 'plain', id, x, y, 1::float8, label FROM quality_base
UNION ALL SELECT 'weighted', id, x, y, w, label FROM quality_base
UNION ALL SELECT 'standardized', id, (x - avg(x) OVER ()) / stddev_pop(x) OVER (), (y - avg(y) OVER ()) / stddev_pop(y) OVER (), 1, label FROM quality_base WHERE label IS NOT NULL
UNION ALL SELECT 'cosine', id, x / sqrt(x * x + y * y), y / sqrt(x * x + y * y), 1, label FROM quality_base
UNION ALL SELECT 'filtered', id, x, y, 1, label FROM quality_base WHERE id > 40;
CREATE TABLE quality_clusters AS
SELECT kind, label, count(*) AS size, sum(w) AS mass, sum(w * x) / sum(w) AS x, sum(w * y) / sum(w) AS y,
    CASE WHEN kind = 'cosine' THEN sqrt(sum(x) ^ 2 + sum(y) ^ 2) / count(*) ELSE 1 END AS length FROM quality_rows WHERE label IS NOT NULL GROUP BY kind, label;
CREATE TABLE quality_pairs AS -- mean distances of a row to each cluster
SELECT a.kind, a.id, a.label, c.label AS other, a.w, sum(b.w * sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)) / CASE WHEN c.label = a.label THEN nullif(c.mass - 1, 0) ELSE c.mass END AS mean
FROM quality_rows AS a JOIN quality_rows AS b USING (kind) JOIN quality_clusters AS c ON c.kind = a.kind AND c.label = b.label
WHERE a.label IS NOT NULL GROUP BY a.kind, a.id, a.label, c.label, c.mass, a.w;
CREATE TABLE quality_silhouettes AS
SELECT o.kind, o.id, o.label, o.w, n.other AS nearest, CASE WHEN c.mass <= 1 THEN 0 ELSE (n.mean - o.mean) / greatest(n.mean, o.mean) END AS silhouette
FROM quality_pairs AS o JOIN quality_clusters AS c USING (kind, label), LATERAL (SELECT p.other, p.mean FROM quality_pairs AS p WHERE p.kind = o.kind AND p.id = o.id AND p.other <> o.label ORDER BY p.mean LIMIT 1) AS n
WHERE o.other = o.label;
CREATE TABLE quality_wanted AS
WITH sums AS (
    SELECT kind, label, size, mass, c.x, c.y, sum(r.w * ((r.x - c.x / length) ^ 2 + (r.y - c.y / length) ^ 2)) AS inertia,
        sum(r.w * ((r.x - c.x) ^ 2 + (r.y - c.y) ^ 2)) AS within, sum(r.w * sqrt((r.x - c.x) ^ 2 + (r.y - c.y) ^ 2)) / mass AS spread
    FROM quality_clusters AS c JOIN quality_rows AS r USING (kind, label) GROUP BY kind, label, size, mass, c.x, c.y),
each AS (
    SELECT a.kind, a.label, a.size, a.mass, a.inertia, a.within, a.x, a.y, (SELECT sum(w * silhouette) / sum(w) FROM quality_silhouettes AS s WHERE s.kind = a.kind AND s.label = a.label) AS silhouette,
        (SELECT max((a.spread + b.spread) / sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)) FROM sums AS b WHERE b.kind = a.kind AND b.label <> a.label) AS davies_bouldin FROM sums AS a)
SELECT kind, label, size, mass, inertia, silhouette, davies_bouldin, NULL::float8 AS calinski_harabasz FROM each
UNION ALL
SELECT kind, NULL, sum(size), sum(mass), sum(inertia), (SELECT sum(w * silhouette) / sum(w) FROM quality_silhouettes AS s WHERE s.kind = each.kind), avg(davies_bouldin),
    sum(mass * ((x - mx) ^ 2 + (y - my) ^ 2)) * (sum(mass) - count(*)) / (sum(within) * (count(*) - 1))
FROM each JOIN (SELECT kind, sum(mass * x) / sum(mass) AS mx, sum(mass * y) / sum(mass) AS my FROM each GROUP BY kind) AS m USING (kind) GROUP BY kind;
CREATE TABLE quality_found AS
SELECT 'plain' AS kind, q.* FROM kmeans_quality('quality_base', '{x,y}', 'label') AS q
UNION ALL SELECT 'weighted', q.* FROM kmeans_quality('quality_base', '{x,y}', 'label', weight => 'w') AS q
UNION ALL SELECT 'standardized', q.* FROM kmeans_quality('quality_base', '{x,y}', 'label', kmeans_options(standardize => true)) AS q
UNION ALL SELECT 'cosine', q.* FROM kmeans_quality('quality_base', '{x,y}', 'label', kmeans_options(metric => 'cosine')) AS q
UNION ALL SELECT 'filtered', q.* FROM kmeans_quality('quality_base', '{x,y}', 'label', filter => 'id > 40') AS q;
CREATE FUNCTION quality_near(a float8, b float8) RETURNS boolean LANGUAGE sql AS 'SELECT a IS NOT DISTINCT FROM b OR coalesce(abs(a - b) <= 1e-11 * (1 + abs(b)), false)';
SELECT k.kind, count(*) AS lines, bool_and(f.size = w.size) AS size, bool_and(quality_near(f.mass, w.mass)) AS mass, bool_and(quality_near(f.inertia, w.inertia)) AS inertia,
    bool_and(quality_near(f.silhouette, w.silhouette)) AS silhouette, bool_and(quality_near(f.davies_bouldin, w.davies_bouldin)) AS davies_bouldin,
    bool_and(quality_near(f.calinski_harabasz, w.calinski_harabasz)) AS calinski_harabasz, bool_and(f.silhouette_error = 0) AS exact, min(f.silhouette) < 0 AS bad, max(f.silhouette) > 0 AS good
FROM quality_found AS f FULL JOIN quality_wanted AS w ON f.kind = w.kind AND f.cluster_id IS NOT DISTINCT FROM w.label CROSS JOIN LATERAL (SELECT coalesce(f.kind, w.kind) AS kind) AS k GROUP BY k.kind ORDER BY kind;
-- Of each row, by its place; rows without a label are left out.
CREATE TABLE quality_each AS
SELECT 'plain' AS kind, s.* FROM kmeans_silhouettes('quality_base', '{x,y}', 'label') AS s
UNION ALL SELECT 'weighted', s.* FROM kmeans_silhouettes('quality_base', '{x,y}', 'label', weight => 'w') AS s
UNION ALL SELECT 'standardized', s.* FROM kmeans_silhouettes('quality_base', '{x,y}', 'label', kmeans_options(standardize => true)) AS s
UNION ALL SELECT 'cosine', s.* FROM kmeans_silhouettes('quality_base', '{x,y}', 'label', kmeans_options(metric => 'cosine')) AS s
UNION ALL SELECT 'filtered', s.* FROM kmeans_silhouettes('quality_base', '{x,y}', 'label', filter => 'id > 40') AS s;
SELECT kind, count(*) AS rows, count(w.id) AS wanted, bool_and(f.cluster_id = w.label) AS labels, bool_and(quality_near(f.silhouette, w.silhouette)) AS silhouettes, bool_and(f.nearest_id = w.nearest) AS nearest,
    count(*) FILTER (WHERE f.silhouette = 0) AS alone, bool_and(row_table = 'quality_base'::regclass) AS row_table
FROM quality_each AS f JOIN quality_base AS b ON b.ctid = f.row_ctid LEFT JOIN quality_silhouettes AS w USING (kind, id) GROUP BY kind ORDER BY kind;
-- The lines come by label, that of all rows last.
SELECT cluster_id, size FROM kmeans_quality('quality_base', '{x,y}', 'label');

-- Labels of a fit: what kmeans_sweep and kmeans_fit say of it.
CREATE TABLE quality_fit AS SELECT sin(i)::real * (1 + i % 3) AS x, cos(i * 7)::real + i % 3 AS y, NULL::smallint AS c FROM generate_series(1, 2000) AS i;
SELECT (kmeans_cluster('quality_fit', '{x,y}', 5, kmeans_options(tol => 0, n_init => 2), label_column => 'c', overwrite => true)).k;
SELECT s.k, quality_near(q.silhouette, s.silhouette) AS silhouette, quality_near(q.davies_bouldin, s.davies_bouldin) AS davies_bouldin, quality_near(q.calinski_harabasz, s.calinski_harabasz) AS calinski_harabasz, q.inertia = s.inertia AS inertia
FROM kmeans_sweep('quality_fit', '{x,y}', 5, 5, kmeans_options(tol => 0, n_init => 2)) AS s, kmeans_quality('quality_fit', '{*}', 'c') AS q WHERE q.cluster_id IS NULL;
-- A sample: of each cluster at least two rows; twice the error holds the truth, mostly. All rows are no sample.
CREATE TABLE quality_exact AS SELECT * FROM kmeans_quality('quality_fit', '{x,y}', 'c');
SELECT count(*) AS estimates, count(*) FILTER (WHERE s.silhouette_error > 0) AS with_error, count(*) FILTER (WHERE abs(s.silhouette - e.silhouette) <= 2 * s.silhouette_error) * 100 / count(*) >= 85 AS hold,
    abs(avg((s.silhouette - e.silhouette) / s.silhouette_error)) < 0.3 AS unbiased, bool_and((s.size, s.mass, s.inertia, s.davies_bouldin) = (e.size, e.mass, e.inertia, e.davies_bouldin)) AS others
FROM generate_series(1, 100) AS seed, LATERAL kmeans_quality('quality_fit', '{x,y}', 'c', kmeans_options(seed => seed), sample => 200) AS s JOIN quality_exact AS e ON s.cluster_id IS NOT DISTINCT FROM e.cluster_id;
SELECT count(*) FROM (TABLE quality_exact INTERSECT SELECT * FROM kmeans_quality('quality_fit', '{x,y}', 'c', sample => 2000)) AS s;
SELECT bool_and(silhouette IS NOT NULL AND silhouette_error > 0) AS two_of_each FROM kmeans_quality('quality_fit', '{x,y}', 'c', sample => 1);
SELECT count(*) AS lines, count(silhouette) AS silhouettes, count(silhouette_error) AS errors, count(davies_bouldin) AS davies_bouldin FROM kmeans_quality('quality_fit', '{x,y}', 'c', sample => 0);
-- Neither the number of threads nor the order of rows shows in them, even where rows repeat under other labels. (Sums of float64 that Davies-Bouldin is of are of rows in their order.)
CREATE TABLE quality_sums AS SELECT i, (i * i % 101)::real AS x, (i * 31 % 17)::real AS y, (1 + i % 5) * 0.3 AS w, i % 7 AS c FROM generate_series(1, 3000) AS i;
CREATE TABLE quality_turned AS TABLE quality_sums ORDER BY md5(i::text);
SET pg_kmeans.cpu_threads = 1;
CREATE TABLE quality_one AS SELECT * FROM kmeans_quality('quality_sums', '{x,y}', 'c', weight => 'w', sample => 100);
SET pg_kmeans.cpu_threads = 3;
SELECT count(*) FROM (TABLE quality_one INTERSECT SELECT * FROM kmeans_quality('quality_sums', '{x,y}', 'c', weight => 'w', sample => 100)) AS s;
RESET pg_kmeans.cpu_threads;
SELECT count(*), bool_and(quality_near(a.davies_bouldin, b.davies_bouldin)) AS davies_bouldin FROM quality_one AS a JOIN kmeans_quality('quality_turned', '{x,y}', 'c', weight => 'w', sample => 100) AS b
    ON (a.cluster_id, a.size, a.mass, a.inertia, a.silhouette, a.silhouette_error) IS NOT DISTINCT FROM (b.cluster_id, b.size, b.mass, b.inertia, b.silhouette, b.silhouette_error);
-- Categories, arrays, NULLs, views, partitions.
CREATE TABLE quality_parts (f real[], t text, x integer, c integer) PARTITION BY LIST (c);
CREATE TABLE quality_part_1 PARTITION OF quality_parts FOR VALUES IN (1, NULL);
CREATE TABLE quality_part_2 PARTITION OF quality_parts FOR VALUES IN (2);
INSERT INTO quality_parts SELECT ARRAY[i % 5, i % 2 * 9], CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' END, nullif(i % 5, 4), nullif(1 + i % 2, (i = 6)::integer) FROM generate_series(1, 40) AS i;
CREATE VIEW quality_view AS TABLE quality_parts;
SELECT cluster_id, size, inertia, round(silhouette::numeric, 6) AS silhouette, round(davies_bouldin::numeric, 6) AS davies_bouldin FROM kmeans_quality('quality_view', '{f}', 'c');
SELECT cluster_id, size, inertia FROM kmeans_quality('quality_parts', '{x,t}', 'c', nulls => 'mean');
SELECT cluster_id, size, inertia FROM kmeans_quality('quality_parts', ARRAY['x * 2'], 'c', nulls => 'skip', filter => 't = ''even''');
SELECT row_table, cluster_id, nearest_id, count(*), count(DISTINCT row_ctid), min(silhouette) > 0 AS good FROM kmeans_silhouettes('quality_parts', '{f}', 'c') GROUP BY 1, 2, 3 ORDER BY 2;
SELECT function, n, k, d FROM kmeans_last_run();

-- Where indices are not defined: one cluster, as many clusters as rows; and no row at all, or none with a label.
CREATE TABLE quality_few (x integer, y integer, c smallint, one integer, name text);
SELECT * FROM kmeans_quality('quality_few', '{x}', 'c');
INSERT INTO quality_few VALUES (1, 1, 1, NULL, 'a'), (1, 1, 1, NULL, 'b'), (5, 5, 2, NULL, 'c'), (9, NULL, NULL, NULL, NULL);
SELECT * FROM kmeans_quality('quality_few', '{x}', 'one');
SELECT * FROM kmeans_silhouettes('quality_few', '{x}', 'one');
SELECT * FROM kmeans_quality('quality_few', '{x}', 'c');
SELECT * FROM kmeans_silhouettes('quality_few', '{x}', 'c');
UPDATE quality_few SET one = 3;
SELECT * FROM kmeans_quality('quality_few', '{x}', 'one');
SELECT cluster_id, silhouette, nearest_id FROM kmeans_silhouettes('quality_few', '{x}', 'one');
SELECT * FROM kmeans_quality('quality_few', '{x}', 'x', filter => 'name <> ''b''');
-- Equal rows under two labels: means coincide, all distances are 0.
SELECT cluster_id, size, inertia, silhouette, davies_bouldin, calinski_harabasz FROM (SELECT 1) AS s, kmeans_quality('quality_few', '{one}', 'c');
-- Directions that cancel each other: their mean has none.
CREATE TABLE quality_directions AS SELECT * FROM (VALUES (1, 0, 1), (-1, 0, 1), (0, 1, 2), (0, 3, 2)) AS v (x, y, c);
SELECT cluster_id, inertia, silhouette FROM kmeans_quality('quality_directions', '{x,y}', 'c', kmeans_options(metric => 'cosine'));

-- Wrong input.
SELECT arguments, pg_temp.outcome(format('SELECT q FROM kmeans_quality(%s) AS q', arguments)) AS outcome FROM unnest(ARRAY[
    'NULL, ''{x}'', ''c''', '''quality_few'', NULL, ''c''', '''quality_few'', ''{x}'', NULL', '''quality_few'', ''{x}'', ''nothing''', '''quality_few'', ''{x}'', ''C''', '''quality_few'', ''{x}'', ''name''', '''quality_few'', ''{x}'', ''x + 1''',
    '''quality_few'', ''{x,y}'', ''x''', '''quality_few'', ''{x}'', ''c'', sample => -1', '''quality_few'', ''{x}'', ''c'', weight => ''name''', '''quality_few'', ''{x}'', ''c'', filter => ''x''', '''quality_few'', ''{x}'', ''c'', nulls => ''none''',
    '''quality_few'', ''{x}'', ''c'', kmeans_options(init_model => kmeans_model(''{{1}}''))', '''quality_few'', ''{x}'', ''c'', kmeans_options(init_centroids => ''{{1}}'')', '''quality_few'', ''{x}'', ''c'', kmeans_options(max_radius => 1)',
    '''quality_few'', ''{x}'', ''c'', kmeans_options(batch_size => 1)', '''quality_few'', ''{x}'', ''c'', memory => ''loaded''', '''quality_few'', ''{x}'', ''c'', memory => ''stream''',
    '''quality_directions'', ''{x - x,y - y}'', ''c'', kmeans_options(metric => ''cosine'')']) AS arguments;
SELECT call, pg_temp.outcome('SELECT q FROM ' || call || ' AS q') AS outcome FROM unnest(ARRAY['kmeans_silhouettes(''quality_view'', ''{f}'', ''c'')', 'kmeans_silhouettes(''quality_few'', ''{x}'', ''name'')', 'kmeans_silhouettes(''quality_few'', ''{x}'', NULL)']) AS call;
CREATE TABLE quality_bad AS SELECT i::float8 AS x, i % 2 AS c FROM generate_series(1, 5) AS i UNION ALL SELECT 'NaN', 1;
SELECT pg_temp.outcome($$SELECT q FROM kmeans_quality('quality_bad', '{x}', 'c') AS q$$);
SELECT size FROM kmeans_quality('quality_bad', '{x}', 'c', filter => 'x <> ''NaN''');
-- Columns that are named have to be granted, no others; places need the table.
CREATE ROLE quality_reader;
GRANT SELECT (x, c) ON quality_few TO quality_reader;
SET ROLE quality_reader;
SELECT cluster_id, size FROM kmeans_quality('quality_few', '{x}', 'c');
SELECT kmeans_quality('quality_few', '{x}', 'one');
SELECT kmeans_quality('quality_few', '{x,y}', 'c');
SELECT kmeans_silhouettes('quality_few', '{x}', 'c');
RESET ROLE;
-- Of many rows the silhouette is an estimate by itself: of x, whose clusters are alike, it is near 0. A cancel among the pairs of rows; memory that does not suffice.
CREATE TABLE quality_many AS SELECT i, i % 1000 AS x, i % 3 AS c FROM generate_series(1, 200000) AS i;
SELECT cluster_id, size, abs(silhouette) < 0.01 AS near_0, silhouette_error BETWEEN 1e-9 AND 0.01 AS with_error FROM kmeans_quality('quality_many', '{x}', 'c');
SET statement_timeout = '300ms';
SELECT count(*) FROM kmeans_silhouettes('quality_many', '{i,x}', 'c');
RESET statement_timeout;
SET pg_kmeans.memory_limit = '8MB';
SELECT pg_temp.outcome($$SELECT count(*) FROM kmeans_quality('quality_many', '{i,x}', 'c')$$) AS beyond;
RESET pg_kmeans.memory_limit;
DROP VIEW quality_rows, quality_view;
DROP TABLE quality_base, quality_clusters, quality_pairs, quality_silhouettes, quality_wanted, quality_found, quality_each, quality_fit, quality_exact, quality_sums, quality_turned, quality_one, quality_parts, quality_few, quality_directions, quality_bad, quality_many;
DROP FUNCTION quality_near;
DROP ROLE quality_reader;

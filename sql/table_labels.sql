-- kmeans_labels: the cluster of every row of a table, in the order of ctid.
CREATE TABLE label_points (id integer, x real, y real, f real[], w real);
INSERT INTO label_points
SELECT id, x, y, ARRAY[x, y], 1
FROM (VALUES (1, 0, 0), (2, 0, 2), (3, 10, 10), (4, 12, 10), (5, 2, 0), (6, 10, 12), (7, 2, 2), (8, 12, 12)) AS v (id, x, y);
INSERT INTO label_points VALUES (9, NULL, NULL, NULL, 1), (10, 1, 1, '{1,1}', 0), (11, 11, 11, '{11,11}', NULL), (12, 14, 11, '{14,11}', 1);

SELECT row_ctid, cluster_id, distance, row_table = 'label_points'::regclass AS here
FROM kmeans_labels('label_points', features => '{x,y}', k => 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}', max_iter => 1));
SELECT p.id, l.cluster_id, round(l.distance::numeric, 6) AS distance
FROM label_points AS p JOIN kmeans_labels('label_points', '{f}', 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'), weight => 'w') AS l ON p.ctid = l.row_ctid
ORDER BY p.id;

-- The same labels and distances as the model's functions.
CREATE TABLE label_many AS SELECT i AS id, ARRAY[(i * 7919) % 1009, (i * 104729) % 997]::double precision[] AS f FROM generate_series(1, 5000) AS i;
SELECT count(*), count(*) FILTER (WHERE l.cluster_id = kmeans_predict(m, f) AND l.distance = kmeans_distance(m, f)) AS same
FROM label_many AS t JOIN kmeans_labels('label_many', '{f}', 17, options => kmeans_options(seed => 3)) AS l ON t.ctid = l.row_ctid,
    kmeans_fit('label_many', '{f}', 17, options => kmeans_options(seed => 3)) AS m;
SELECT count(*), count(*) FILTER (WHERE l.cluster_id = kmeans_predict(m, f) AND l.distance = kmeans_distance(m, f)) AS same
FROM label_many AS t JOIN kmeans_labels('label_many', '{f}', 5, options => kmeans_options(metric => 'cosine')) AS l ON t.ctid = l.row_ctid,
    kmeans_fit('label_many', '{f}', 5, options => kmeans_options(metric => 'cosine')) AS m;
SELECT count(*), count(*) FILTER (WHERE l.cluster_id = kmeans_predict(m, f) AND l.distance = kmeans_distance(m, f)) AS same
FROM label_many AS t JOIN kmeans_labels('label_many', '{f}', 5, options => kmeans_options(standardize => true)) AS l ON t.ctid = l.row_ctid,
    kmeans_fit('label_many', '{f}', 5, options => kmeans_options(standardize => true)) AS m;
SELECT bool_and(previous IS NULL OR previous < row_ctid) AS in_order
FROM (SELECT row_ctid, lag(row_ctid) OVER () AS previous FROM kmeans_labels('label_many', '{f}', 3)) AS l;

-- Partitions: ctid and tableoid together name a row, a ctid alone does not.
CREATE TABLE label_parted (id integer, x real) PARTITION BY RANGE (id);
CREATE TABLE label_parted_1 PARTITION OF label_parted FOR VALUES FROM (0) TO (10);
CREATE TABLE label_parted_2 PARTITION OF label_parted FOR VALUES FROM (10) TO (20);
INSERT INTO label_parted VALUES (1, 0), (2, 9), (11, 1), (12, 8), (13, NULL);
SELECT l.row_table, l.row_ctid, p.id, l.cluster_id, l.distance
FROM kmeans_labels('label_parted', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{9}}')) AS l
    JOIN label_parted AS p ON p.ctid = l.row_ctid AND p.tableoid = l.row_table;
SELECT count(*) AS by_ctid_alone FROM kmeans_labels('label_parted', '{x}', 2) AS l JOIN label_parted AS p ON p.ctid = l.row_ctid;
-- The columns are such as a table may have.
CREATE TABLE label_kept AS SELECT * FROM kmeans_labels('label_parted', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{9}}'));
SELECT p.id, k.cluster_id FROM label_kept AS k JOIN label_parted AS p ON p.ctid = k.row_ctid AND p.tableoid = k.row_table ORDER BY p.id;
CREATE MATERIALIZED VIEW label_matview AS SELECT x FROM label_parted WHERE x IS NOT NULL;
SELECT row_ctid, cluster_id FROM kmeans_labels('label_matview', '{x}', 2, options => kmeans_options(init => 'first'));

-- No rows, and only rows without features.
TRUNCATE label_points;
SELECT * FROM kmeans_labels('label_points', '{x,y}', 2);
INSERT INTO label_points DEFAULT VALUES;
SELECT row_ctid, cluster_id, distance FROM kmeans_labels('label_points', '{x,y}', 2);

-- Where a row has no place of its own: other roads.
CREATE VIEW label_view AS SELECT * FROM label_many;
SELECT * FROM kmeans_labels('label_view', '{f}', 2);

DROP TABLE label_points, label_kept;
DROP TABLE label_many CASCADE;
DROP TABLE label_parted CASCADE;

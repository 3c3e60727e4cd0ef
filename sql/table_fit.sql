-- kmeans_fit: a relation by name. Two squares whose means and sums of squares are known:
-- (0.5, 0.5) with 2, and (11, 11) with 8.
CREATE TABLE fit_points (
    x real, y real, x8 double precision, y8 double precision, s smallint, i integer, b bigint, n numeric, w integer,
    f4 real[], f8 double precision[], fi integer[], fn numeric[]);
INSERT INTO fit_points
SELECT x, y, x, y, x, y, x, y, 1 + (x > 5)::integer, ARRAY[x, y], ARRAY[x, y], ARRAY[x, y], ARRAY[x, y]
FROM (VALUES (0, 0), (0, 1), (10, 10), (12, 10), (1, 0), (10, 12), (1, 1), (12, 12)) AS v (x, y);

-- Every kind of column gives the same model.
SELECT k, d, centroids, size, within_ss, inertia, n_iter, converged, n, metric, seed, center, scale FROM kmeans_fit('fit_points', features => '{x,y}', k => 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}'));
SELECT names, m.centroids, m.size, m.within_ss, m.inertia, m.n_iter, m.converged
FROM (VALUES ('{x8,y8}'), ('{s,i}'), ('{b,n}'), ('{x,y8}'), ('{n,x}'), ('{f4}'), ('{f8}'), ('{fi}'), ('{fn}')) AS v (names),
    kmeans_fit('fit_points', names::text[], 2, options => kmeans_options(init_centroids => '{{0,0},{10,10}}')) AS m;
SELECT m.centroids, m.d FROM kmeans_fit('fit_points', ARRAY['x', 'y', 'x'], 2, options => kmeans_options(init_centroids => '{{0,0,0},{9,9,9}}')) AS m;
SELECT m.centroids, m.within_ss FROM kmeans_fit('fit_points', '{x}', 2, options => kmeans_options(init_centroids => '{{0},{9}}')) AS m;

-- The same bits as the aggregate over the rows in the order of the table.
SELECT (SELECT kmeans(ARRAY[x, y], 3) FROM fit_points) = kmeans_fit('fit_points', '{x,y}', 3) AS defaults,
    (SELECT kmeans(f8, 3, kmeans_options(init => 'random', n_init => 3, max_iter => 2, tol => 0, seed => 5)) FROM fit_points)
        = kmeans_fit('fit_points', '{x8,y8}', 3, options => kmeans_options(init => 'random', n_init => 3, max_iter => 2, tol => 0, seed => 5)) AS options,
    (SELECT kmeans(f8, 2, kmeans_options(standardize => true)) FROM fit_points)
        = kmeans_fit('fit_points', '{f8}', 2, options => kmeans_options(standardize => true)) AS standardized;
CREATE VIEW fit_cosine AS SELECT * FROM fit_points WHERE f8 <> '{0,0}';
SELECT (SELECT kmeans(f8, 2, kmeans_options(metric => 'cosine')) FROM fit_points WHERE f8 <> '{0,0}')
    = kmeans_fit('fit_cosine', '{f8}', 2, options => kmeans_options(metric => 'cosine')) AS cosine,
    (SELECT kmeans(f4, 2, NULL, w) FROM fit_points) = kmeans_fit('fit_points', '{f4}', 2, weight => 'w') AS weighted,
    kmeans_fit('fit_points', '{f4}', 2) = kmeans_fit('fit_points', '{f4}', 2, options => kmeans_options(init => NULL, n_init => NULL,
        max_iter => NULL, tol => NULL, seed => NULL, metric => NULL, standardize => NULL, refine => NULL, min_size => NULL, max_size => NULL), weight => NULL) AS nulls_are_defaults;

-- Weights: the mean moves, the sizes do not.
SELECT m.centroids, m.size, m.inertia
FROM kmeans_fit('fit_points', '{x,y}', 1, weight => 'w') AS m;

-- NULL rows and rows of weight NULL or 0 are skipped.
CREATE TABLE fit_nulls (x integer, y integer, f real[], w numeric);
INSERT INTO fit_nulls VALUES (NULL, NULL, NULL, 1), (1, 2, '{1,2}', 1), (3, 4, '{3,4}', NULL), (5, 6, '{5,6}', 0), (7, 8, '{7,8}', 2.5);
SELECT m.centroids, m.n FROM kmeans_fit('fit_nulls', '{x,y}', 1) AS m;
SELECT m.centroids, m.n FROM kmeans_fit('fit_nulls', '{f}', 1) AS m;
SELECT m.centroids, m.n FROM kmeans_fit('fit_nulls', '{f}', 2, weight => 'w', options => kmeans_options(init => 'first')) AS m;
DELETE FROM fit_nulls WHERE x > 0;
SELECT kmeans_fit('fit_nulls', '{x,y}', 1) IS NULL AS only_nulls;
TRUNCATE fit_nulls;
SELECT kmeans_fit('fit_nulls', '{f}', 1) IS NULL AS empty;

-- Fewer distinct rows than k.
SELECT m.k, m.inertia FROM kmeans_fit('fit_points', '{w}', 5) AS m;

-- Whatever has rows: views, materialized views, partitions, children, temporary tables.
CREATE VIEW fit_view AS SELECT x + 1 AS x, y FROM fit_points WHERE x < 5;
CREATE MATERIALIZED VIEW fit_matview AS SELECT x, y FROM fit_points WHERE x > 5;
CREATE TABLE fit_parted (x real, y real) PARTITION BY RANGE (x);
SELECT kmeans_fit('fit_parted', '{x,y}', 2) IS NULL AS no_partitions;
CREATE TABLE fit_parted_high PARTITION OF fit_parted FOR VALUES FROM (5) TO (100);
CREATE TABLE fit_parted_low PARTITION OF fit_parted FOR VALUES FROM (-100) TO (5);
INSERT INTO fit_parted SELECT x, y FROM fit_points;
CREATE TABLE fit_parent (x real, y real);
CREATE TABLE fit_child (z real) INHERITS (fit_parent);
INSERT INTO fit_parent SELECT x, y FROM fit_points WHERE x < 5;
INSERT INTO fit_child SELECT x, y, 0 FROM fit_points WHERE x > 5;
CREATE TEMPORARY TABLE fit_temporary AS SELECT x, y FROM fit_points;
SELECT name, m.centroids, m.size
FROM (VALUES ('fit_view', 1), ('fit_matview', 1), ('fit_parted', 2), ('fit_parent', 2), ('fit_child', 1), ('pg_temp.fit_temporary', 2)) AS v (name, clusters),
    kmeans_fit(name, '{x,y}', clusters, options => kmeans_options(init_centroids => CASE clusters WHEN 2 THEN '{{0,0},{10,10}}'::float8[] END)) AS m;

-- Domains count as what they are made of; another type as a vector when it has a cast to real[].
CREATE DOMAIN fit_length AS real CHECK (VALUE >= 0);
CREATE DOMAIN fit_row AS double precision[];
CREATE TYPE fit_vector AS (a real, b real);
CREATE FUNCTION fit_vector_to_array(fit_vector) RETURNS real[] LANGUAGE sql IMMUTABLE AS 'SELECT ARRAY[$1.a, $1.b]';
CREATE TABLE fit_types (x fit_length, f fit_row, v fit_vector);
INSERT INTO fit_types SELECT x, f8, ROW(x, y)::fit_vector FROM fit_points;
SELECT kmeans_fit('fit_types', '{v}', 2);
CREATE CAST (fit_vector AS real[]) WITH FUNCTION fit_vector_to_array(fit_vector);
SELECT name, m.centroids, m.size
FROM (VALUES ('{x}', '{{0},{9}}'), ('{f}', '{{0,0},{10,10}}'), ('{v}', '{{0,0},{10,10}}')) AS v (name, c),
    kmeans_fit('fit_types', name::text[], 2, options => kmeans_options(init_centroids => c::float8[])) AS m;
DROP TABLE fit_types;
DROP TYPE fit_vector CASCADE;
DROP DOMAIN fit_length, fit_row;

-- Names are names: nothing in them is SQL.
CREATE SCHEMA "odd schema";
CREATE TABLE "odd schema"."Te""st; DROP TABLE fit_points; --" ("a,b" real, "x"")::int" real, "select" real);
INSERT INTO "odd schema"."Te""st; DROP TABLE fit_points; --" VALUES (1, 2, 3), (3, 4, 5);
SELECT m.centroids
FROM kmeans_fit('"odd schema"."Te""st; DROP TABLE fit_points; --"', ARRAY['a,b', 'x")::int', 'select'], 1) AS m;
SELECT m.centroids FROM kmeans_fit(' Fit_Points ', '{x}', 1) AS m;

-- A row added in this transaction counts, as in any query.
BEGIN;
INSERT INTO fit_points (x, y) VALUES (100, 100);
SELECT m.n FROM kmeans_fit('fit_points', '{x,y}', 1) AS m;
ROLLBACK;
SELECT m.n FROM kmeans_fit('fit_points', '{x,y}', 1) AS m;

DROP SCHEMA "odd schema" CASCADE;
DROP TABLE fit_parent CASCADE;
DROP TABLE fit_parted, fit_nulls, fit_temporary;
DROP VIEW fit_view, fit_cosine;
DROP MATERIALIZED VIEW fit_matview;
DROP TABLE fit_points;

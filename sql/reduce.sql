-- Users' own reductions.
CREATE TABLE reduce_rows AS
SELECT i AS id, (i % 10) + 0.25 AS x, i::real AS y, (i % 5)::smallint AS g, ARRAY[i % 7, i % 3, sin(i)]::double precision[] AS f
FROM generate_series(1, 100) AS i;

-- A histogram, and figures by cell, beside GROUP BY.
SELECT cell, value FROM kmeans_reduce('reduce_rows', index => 'least(3, floor(x / 3))', cells => '4', op => 'count');
SELECT count(*) AS cells, bool_and(ARRAY[n, s, q] = value) AS same
FROM (SELECT floor(x)::bigint AS cell, count(*)::double precision AS n, sum(y)::double precision AS s, sum(y::double precision ^ 2) AS q FROM reduce_rows GROUP BY 1) AS t
    JOIN kmeans_reduce('reduce_rows', cells => '10', index => 'floor(x)', value => '{1, y, y*y}') USING (cell);
SELECT * FROM kmeans_reduce('reduce_rows', value => '{x, x, y, g, 1}', op => '{min, max, sum, max, count}');

-- A cell that no row comes to: 0 for sums and counts, nothing for others. A filter leaves rows out.
SELECT * FROM kmeans_reduce('reduce_rows', index => 'g', cells => '6', value => '{y, y, y, y, 0}', op => '{sum, min, max, argmin, count}',
    key => 'id', filter => 'id > 50 AND g <> 2');

-- The row with the least value, by its key; the least key on a tie.
SELECT * FROM kmeans_reduce('reduce_rows', value => 'abs(x - 5)', op => 'argmin', key => 'id');
SELECT * FROM kmeans_reduce('reduce_rows', value => '{abs(x - 5), -y}', op => 'argmin', key => '-id');

-- One step of k-means, beside kmeans_step.
WITH reduced AS (
    SELECT array_agg(value[1] ORDER BY cell) AS masses, array_agg(value[2:4] ORDER BY cell) AS sums
    FROM kmeans_reduce('reduce_rows', cells => 'k', index => 'argmin(j, k, sum(i, d, power(f[i] - c[j][i], 2)))', value => '{1, f}',
        params => '{"k": 2, "d": 3, "c": [[0, 0, 0], [5, 1, 0]]}', exact => true)),
step AS (SELECT kmeans_step(f, '{{0,0,0},{5,1,0}}') AS s FROM reduce_rows)
SELECT masses = kmeans_sums_masses(s) AS masses,
    (SELECT bool_and(abs(a - b) < 1e-12) FROM unnest(sums, kmeans_sums_features(s)) AS t (a, b)) AS sums FROM reduced, step;

-- The same by vectors, in other words.
SELECT a.value = b.value AND a.value = c.value AND a.value = e.value AS same
FROM kmeans_reduce('reduce_rows', value => 'min(j, 2, sum(i, 3, power(f[i] - c[j][i], 2)))', params => '{"c": [[0, 0, 0], [5, 1, 0]]}') AS a,
    kmeans_reduce('reduce_rows', value => 'min(j, array_length(c, 1), sum((f - c[j]) ^ 2))', params => '{"c": [[0, 0, 0], [5, 1, 0]]}') AS b,
    kmeans_reduce('reduce_rows', value => 'min(distances)', let => '{"distances": "vector(j, 2, sum((f - c[j]) ^ 2))"}',
        params => '{"c": [[0, 0, 0], [5, 1, 0]]}') AS c,
    kmeans_reduce('reduce_rows', value => 'least(a, b)', let => '{"a": "s[0]", "b": "s[1]", "s": "vector(j, 2, sum(i, cardinality(f), (f[i] - c[j][i]) ^ 2))"}',
        params => '{"c": [[0, 0, 0], [5, 1, 0]]}') AS e;

-- Several objects in one pass.
SELECT * FROM kmeans_reduce_many('reduce_rows',
    '{"total": {"value": "{1, y}"}, "by_g": {"index": "g", "cells": "k", "op": "max", "value": "y * s", "filter": "id < 50"}}',
    params => '{"k": 5}', let => '{"s": "2"}');

-- Vectors, matrices and triangles as values.
SELECT value FROM kmeans_reduce('reduce_rows', value => '{f * 0 + 1, vector(a, 3, vector(b, 2, 10 * a + b)), vector(a, 3, vector(b, a + 1, 1)), m, -v}',
    params => '{"m": [[1, 2, 3], [4, 5, 6]], "v": [7, 8]}', filter => 'id = 1');
SELECT value FROM kmeans_reduce('reduce_rows', value => '{cardinality(f), cardinality(m), array_length(m, 1), array_length(m, 2), sum(i, 0, f[i]), prod(i, 0, f[i]), count(i, 0, true)}',
    params => '{"m": [[1, 2, 3], [4, 5, 6]]}', filter => 'id = 1');
SELECT value FROM kmeans_reduce('reduce_rows', value => '{sum(f), prod(f + 1), min(f), max(f), argmin(f), argmax(f), count(i, 3, f[i] > 1), argmax(i, 3, -i), argmin(i, 3, 0)}',
    filter => 'id = 11') AS r;
-- More than two dimensions: as a value alone. Rows of different lengths: in a value alone.
SELECT value FROM kmeans_reduce('reduce_rows', value => 'vector(a, 2, vector(b, a + 1, vector(c, b + 1, 100 * a + 10 * b + c)))', filter => 'id = 1');
SELECT value FROM kmeans_reduce('reduce_rows', value => 'vector(a, 2, 2 * vector(b, a + 1, 1))', filter => 'id = 1');
SELECT kmeans_reduce('reduce_rows', value => '{x, t[0][0][0]}', let => '{"t": "vector(a, 2, vector(b, 2, vector(c, 2, 1)))"}');
SELECT kmeans_reduce('reduce_rows', value => 'm', let => '{"m": "vector(a, 2, vector(b, a + 1, f[a] * f[b]))"}');
SELECT kmeans_reduce('reduce_rows', value => '2 * vector(a, 2, vector(b, a + 1, f[a] * f[b]))');
SELECT kmeans_reduce('reduce_rows', value => 'vector(a, 2, vector(b, u[a], y))', let => '{"u": "vector(i, 2, i + 1)"}');

-- The indexes of a matrix are within what is as long as it.
SELECT value FROM kmeans_reduce('reduce_rows', value => '{vector(a, 3, vector(b, 2, u[a] * u[b] - b)), vector(a, 2, f[a] * vector(b, 2, sum(l, a + 1, f[b])))}',
    let => '{"u": "vector(i, 3, id + i)"}', filter => 'id = 1');
SELECT kmeans_reduce('reduce_rows', value => 'vector(a, 3, vector(b, 4, u[a] * u[b]))', let => '{"u": "vector(i, 3, id + i)"}');

-- The functions and operators, each row beside the executor.
SELECT count(*) AS rows, bool_and(value = ARRAY[
    abs(-y), sqrt(y), floor(-x), ceil(x), round(x::double precision), trunc(-x), sign(y - 50), greatest(x, g, 3), least(x, y), (id % 7), mod(id, 4),
    power(g, 3), g ^ 2, -g, +g, x / 4, CASE WHEN g = 1 OR NOT (x < 3) THEN 1 WHEN x <= 1 THEN 2 ELSE 3 END, CASE g WHEN 2 THEN 1 WHEN 3 THEN 2 ELSE 0 END,
    (x BETWEEN 2 AND 4)::int, (x NOT BETWEEN 2 AND 4 AND g <> 1)::int, (x >= g)::int, 1, (g > 2 OR g = 0 AND x > 5)::int]::double precision[]) AS exact
FROM kmeans_reduce('reduce_rows', index => 'id - 1', cells => '100', value => '{abs(-y), sqrt(y), floor(-x), ceil(x), round(x), trunc(-x), sign(y - 50),
    greatest(x, g, 3), least(x, y), id % 7, mod(id, 4), power(g, 3), g ^ 2, -g, +g, x / 4, CASE WHEN g = 1 OR NOT (x < 3) THEN 1 WHEN x <= 1 THEN 2 ELSE 3 END,
    CASE g WHEN 2 THEN 1 WHEN 3 THEN 2 ELSE 0 END, CASE WHEN x BETWEEN 2 AND 4 THEN 1 ELSE 0 END,
    CASE WHEN x NOT BETWEEN 2 AND 4 AND g <> 1 THEN 1 ELSE 0 END, CASE WHEN x >= g THEN 1 ELSE 0 END, CASE WHEN true THEN 1 ELSE 1 / 0 END,
    CASE WHEN g > 2 OR g = 0 AND x > 5 THEN 1 ELSE 0 END}') JOIN reduce_rows ON id = cell + 1;
SELECT count(*) AS rows, bool_and(abs(a - b) <= 1e-15 * greatest(1, abs(b))) AS near
FROM kmeans_reduce('reduce_rows', index => 'id - 1', cells => '100',
        value => '{exp(x), ln(y), sin(y), cos(y), tan(x), asin(x / 10), acos(x / 10), atan(y), tanh(x), atan2(x, y), pi(), power(x, 0.3), 0.1 + 1e-3}')
    JOIN reduce_rows ON id = cell + 1,
    unnest(value, ARRAY[exp(x), ln(y), sin(y), cos(y), tan(x), asin(x / 10), acos(x / 10), atan(y), tanh(x), atan2(x, y), pi(), power(x, 0.3), 0.101]::double precision[]) AS t (a, b);

-- Numbers are double precision: 7 / 2 is 3.5. Subscripts and cells begin at 0.
SELECT value FROM kmeans_reduce('reduce_rows', value => '{7 / 2, f[0], f[2 - 1], -2 ^ 2}', filter => 'id = 8');

-- A boolean column is a condition, and a number.
CREATE VIEW reduce_truths AS SELECT id, y, id % 3 = 0 AS b FROM reduce_rows;
SELECT * FROM kmeans_reduce('reduce_truths', index => 'CASE WHEN b AND NOT y < 50 THEN 1 ELSE 0 END', cells => '2', value => '{1, b}', filter => 'b OR id = 1');
SELECT kmeans_reduce('reduce_truths', value => 'count(i, 2, b + 1)');
SELECT value FROM kmeans_reduce('reduce_truths', value => '{count(i, 2, b), count(i, 3, c), min(i, 2, b), CASE WHEN CASE WHEN y > 50 THEN b ELSE y < 4 END THEN 1 ELSE 0 END}', let => '{"c": "b"}');
SELECT sum(2 * b::int), sum(3 * b::int), sum(b::int), sum((CASE WHEN y > 50 THEN b ELSE y < 4 END)::int) FROM reduce_truths;

-- Rows come from what a SELECT may read; those whose columns are all null take no part.
CREATE VIEW reduce_view AS SELECT id, f, y FROM reduce_rows WHERE id <= 10;
CREATE TABLE reduce_parts (id integer, x double precision, f real[]) PARTITION BY RANGE (id);
CREATE TABLE reduce_part_1 PARTITION OF reduce_parts FOR VALUES FROM (0) TO (50);
CREATE TABLE reduce_part_2 PARTITION OF reduce_parts FOR VALUES FROM (50) TO (100);
INSERT INTO reduce_parts SELECT i, NULLIF(i % 10, 3), CASE WHEN i % 10 <> 3 THEN ARRAY[i, i % 4] END FROM generate_series(0, 99) AS i;
SELECT value FROM kmeans_reduce('reduce_view', value => '{1, y, f[0]}');
SELECT value FROM kmeans_reduce('reduce_parts', value => '{1, x}');
SELECT value FROM kmeans_reduce('reduce_parts', value => '{1, f}');
SELECT value FROM kmeans_reduce('reduce_parts', value => '{1, x, f}');
SELECT scan, n, d FROM kmeans_last_run();
SELECT value FROM kmeans_reduce('reduce_parts', value => '{1, id, x}');
SELECT value FROM kmeans_reduce('reduce_parts', value => '{x + id}', filter => 'id = 3');
SELECT value FROM kmeans_reduce('reduce_parts', value => '{f[0] + id}');
SELECT * FROM kmeans_reduce('reduce_view', value => 'y', filter => 'y > 1000');
CREATE TABLE reduce_empty (LIKE reduce_rows);
SELECT * FROM kmeans_reduce('reduce_empty', value => 'sum(f)');
INSERT INTO reduce_empty (id, f) VALUES (1, '{1,2}'), (2, '{1,2,3}');
SELECT * FROM kmeans_reduce('reduce_empty', value => 'sum(f)');
SELECT * FROM kmeans_reduce('reduce_empty', value => '{id, f}');

-- The same bits, whatever the order of the rows and whoever reads them.
CREATE TABLE reduce_many_rows AS SELECT i AS id, sin(i) * 10 ^ (i % 20) AS x FROM generate_series(1, 20000) AS i;
CREATE TABLE reduce_many_again AS TABLE reduce_many_rows ORDER BY x;
SELECT a.value = b.value AS same FROM kmeans_reduce('reduce_many_rows', value => '{x, x * x}', exact => true) AS a,
    kmeans_reduce('reduce_many_again', value => '{x, x * x}', exact => true) AS b;
SET pg_kmeans.scan = executor;
SELECT a.value = b.value AS same, c.value = a.value AS same_again FROM kmeans_reduce('reduce_many_rows', value => '{x, x * x}') AS a,
    kmeans_reduce('reduce_many_rows', value => '{x, x * x}') AS b, LATERAL (SELECT set_config('pg_kmeans.scan', 'auto', false)) AS s,
    kmeans_reduce('reduce_many_rows', value => '{x, x * x}') AS c;
RESET pg_kmeans.scan;
SELECT function, relid::regclass, n, d, n_iter, scan FROM kmeans_last_run();

-- Arrays beside other columns: read by several processes, and by a SELECT.
CREATE TABLE reduce_mixed WITH (parallel_workers = 2) AS SELECT i AS id, CASE WHEN i % 97 > 0 THEN i / 7.0 END AS x, CASE WHEN i % 97 > 0 THEN ARRAY[i % 7, i % 11]::real[] END AS f,
    CASE WHEN i % 97 > 0 THEN ARRAY[sin(i)] END AS h FROM generate_series(1, 30000) AS i;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE TABLE reduce_direct AS SELECT value FROM kmeans_reduce('reduce_mixed', value => '{1, f, x, h, f[0] * h[0]}');
SELECT scan, workers > 0 AS in_parallel, n, d FROM kmeans_last_run();
SET pg_kmeans.scan = executor;
SELECT d.value = e.value AS same, d.value[1:3] AS value FROM reduce_direct AS d, kmeans_reduce('reduce_mixed', value => '{1, f, x, h, f[0] * h[0]}') AS e;
RESET pg_kmeans.scan;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0; -- or a worker may meet the bad row, and says that it did
CREATE TABLE reduce_bad AS SELECT * FROM reduce_mixed WHERE id <= 3;
INSERT INTO reduce_bad VALUES (1, 1, '{1,2,3}', '{1}');
SELECT kmeans_reduce('reduce_bad', value => 'x + f[0]');
DELETE FROM reduce_bad WHERE f[3] = 3;
INSERT INTO reduce_bad VALUES (1, 1, NULL, '{1}');
SELECT kmeans_reduce('reduce_bad', value => 'x + f[0]', filter => 'h[0] > 2');
RESET max_parallel_workers_per_gather;

-- What a row does: the error names the place in the text, and the row.
SELECT kmeans_reduce('reduce_rows', index => 'x', cells => '10', value => '1');
SELECT kmeans_reduce('reduce_rows', index => 'g', cells => '4', op => 'count');
SELECT kmeans_reduce('reduce_rows', index => 'g - 1', cells => '4', op => 'count');
SELECT kmeans_reduce('reduce_rows', value => 'f[g]');
SELECT kmeans_reduce('reduce_rows', value => '1 + f[0.5]');
\set VERBOSITY terse
SELECT kmeans_reduce('reduce_rows', value => 'm[g][1]', params => '{"m": [[1, 2], [3, 4]]}');
SELECT kmeans_reduce('reduce_rows', value => '{1, 10 / (g - 3)}');
SELECT kmeans_reduce('reduce_rows', value => 'y % (g - 3)');
SELECT kmeans_reduce('reduce_rows', value => 'ln(g)');
SELECT kmeans_reduce('reduce_rows', value => 'sqrt(1 - g)');
\set VERBOSITY default
SELECT kmeans_reduce('reduce_rows', value => 'exp(100 * y)');
SELECT kmeans_reduce('reduce_rows', value => 'y * exp(700) * exp(700)');
SELECT kmeans_reduce('reduce_rows', value => '1e308 * y * 0 + 1e308', exact => true);
SELECT kmeans_reduce('reduce_rows', value => '1e308 + 0 * y');
SELECT kmeans_reduce('reduce_rows', value => 'b * 2', let => '{"b": "1 / (id - 7)"}');
SELECT kmeans_reduce('reduce_view', value => '1 / (id - 7)');
SELECT kmeans_reduce('reduce_parts', value => '1 / (id - 51)');
SELECT kmeans_reduce('reduce_rows', value => 'CASE WHEN g = 0 THEN 0 ELSE 1 / g END') IS NOT NULL AS "a branch not taken";

-- What the language has not.
SELECT kmeans_reduce('reduce_rows', value => 'y + (SELECT 1)');
\set VERBOSITY terse
SELECT kmeans_reduce('reduce_rows', value => 'random()');
SELECT kmeans_reduce('reduce_rows', value => 'pg_catalog.abs(y)');
SELECT kmeans_reduce('reduce_rows', value => 'y || y');
SELECT kmeans_reduce('reduce_rows', value => 'y OPERATOR(pg_catalog.+) y');
SELECT kmeans_reduce('reduce_rows', value => 'y::integer');
SELECT kmeans_reduce('reduce_rows', value => '''text''');
SELECT kmeans_reduce('reduce_rows', value => 'NULL');
SELECT kmeans_reduce('reduce_rows', value => 'y IS NULL');
SELECT kmeans_reduce('reduce_rows', value => 'y IN (1, 2)');
SELECT kmeans_reduce('reduce_rows', value => 'ARRAY[y]');
SELECT kmeans_reduce('reduce_rows', value => 'f[0:1]');
SELECT kmeans_reduce('reduce_rows', value => '*');
SELECT kmeans_reduce('reduce_rows', value => 'reduce_rows.y');
SELECT kmeans_reduce('reduce_rows', value => 'y AS z');
SELECT kmeans_reduce('reduce_rows', value => '$1');
SELECT kmeans_reduce('reduce_rows', value => 'sum(y) OVER ()');
SELECT kmeans_reduce('reduce_rows', value => 'count(*)');
SELECT kmeans_reduce('reduce_rows', value => 'abs(DISTINCT y)');
SELECT kmeans_reduce('reduce_rows', value => 'abs(x => y)');
SELECT kmeans_reduce('reduce_rows', value => 'CASE WHEN y > 1 THEN 1 END');
SELECT kmeans_reduce('reduce_rows', value => 'y FROM reduce_rows');
SELECT kmeans_reduce('reduce_rows', value => 'y; DROP TABLE reduce_rows');
SELECT kmeans_reduce('reduce_rows', value => 'y) FROM (VALUES (1)');
SELECT kmeans_reduce('reduce_rows', value => 'y -- }');
SELECT kmeans_reduce('reduce_rows', value => '');
SELECT kmeans_reduce('reduce_rows', value => '{}');
SELECT kmeans_reduce('reduce_rows', value => 'y +');
SELECT kmeans_reduce('reduce_rows', value => '(f - f)[0]');
SELECT kmeans_reduce('reduce_rows', value => 'd[3]', let => '{"d": "f - 1"}');
\set VERBOSITY default

-- Names and types.
SELECT kmeans_reduce('reduce_rows', value => 'y + nothing');
\set VERBOSITY terse
SELECT kmeans_reduce('reduce_rows', value => '"Y"');
SELECT kmeans_reduce('reduce_rows', value => 'y + id', params => '{"id": 1}');
SELECT kmeans_reduce('reduce_rows', value => 'y + z', params => '{"z": 1}', let => '{"z": "2"}');
SELECT kmeans_reduce('reduce_rows', value => 'y', let => '{"x": "2"}');
\set VERBOSITY default
SELECT kmeans_reduce('reduce_rows', value => 'y + a', let => '{"a": "b", "b": "1 + a"}');
\set VERBOSITY terse
SELECT kmeans_reduce('reduce_rows', value => 'sum(i, 3, f[i]) + i');
SELECT kmeans_reduce('reduce_rows', value => 'sum(i, i, f[0])');
SELECT kmeans_reduce('reduce_rows', value => 'sum(i, 3, sum(i, 2, f[i]) + f[i] + j)');
SELECT kmeans_reduce('reduce_rows', value => 'sum(x, 2, x)');
SELECT kmeans_reduce('reduce_rows', value => 'y > 1');
SELECT kmeans_reduce('reduce_rows', value => 'CASE y WHEN 1 THEN true ELSE 2 END');
SELECT kmeans_reduce('reduce_rows', value => 'y', filter => 'y');
SELECT kmeans_reduce('reduce_rows', value => 'y', filter => '{y > 1, x > 1}');
SELECT kmeans_reduce('reduce_rows', value => 'least(f, 1)', index => 'f', cells => '2');
SELECT kmeans_reduce('reduce_rows', value => 'f[0] + m[0]', index => 'm[0]', cells => '1', params => '{"m": [[1, 2]]}');
SELECT kmeans_reduce('reduce_rows', value => 'y', index => '0', cells => 'g');
CREATE TABLE reduce_texts (t text, n integer);
INSERT INTO reduce_texts VALUES ('a', 1);
SELECT kmeans_reduce('reduce_texts', value => 't + n');
\set VERBOSITY default

-- Arguments.
SELECT kmeans_reduce(NULL, value => 'y');
SELECT kmeans_reduce('reduce_rows');
SELECT kmeans_reduce('reduce_rows', value => '1');
SELECT kmeans_reduce('reduce_rows', index => 'g', value => 'y');
SELECT kmeans_reduce('reduce_rows', cells => '2', value => 'y');
SELECT kmeans_reduce('reduce_rows', value => 'y', op => 'median');
SELECT kmeans_reduce('reduce_rows', value => '{x, y, g}', op => '{sum, min}');
SELECT kmeans_reduce('reduce_rows', value => 'y', op => 'argmin');
SELECT kmeans_reduce('reduce_rows', value => 'y', key => 'id');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '[1]');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": "1"}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": []}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": [[1, 2], [3]]}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": [[1, 2], 3]}');
-- A list of other lists than its first is refused before memory is taken for all.
SET pg_kmeans.memory_limit = '8MB';
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => (SELECT jsonb_build_object('k', jsonb_build_array(jsonb_agg(i)) || jsonb_agg(i)) FROM generate_series(1, 3000) AS i));
RESET pg_kmeans.memory_limit;
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": [[[1]]]}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": [3, [1]]}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": null}');
SELECT kmeans_reduce('reduce_rows', value => 'y + k', params => '{"k": 1e400}');
SELECT kmeans_reduce('reduce_rows', value => 'y + 1e400');
SELECT kmeans_reduce('reduce_rows', value => 'y', let => '[1]');
SELECT kmeans_reduce('reduce_rows', value => 'y', let => '{"a": 1}');
SELECT kmeans_reduce_many('reduce_rows', NULL);
SELECT kmeans_reduce_many('reduce_rows', '[]');
SELECT kmeans_reduce_many('reduce_rows', '{}');
SELECT kmeans_reduce_many('reduce_rows', '{"a": 1}');
SELECT kmeans_reduce_many('reduce_rows', '{"a": {"values": "y"}}');
SELECT kmeans_reduce_many('reduce_rows', '{"a": {"value": "y"}, "b": {"value": "z"}}');

-- Limits.
\set VERBOSITY sqlstate
SELECT kmeans_reduce('reduce_rows', value => repeat('(', 5000) || 'y' || repeat(')', 5000));
SELECT kmeans_reduce('reduce_rows', value => 'y' || repeat(' + y', 3000));
SELECT kmeans_reduce('reduce_rows', value => repeat('abs(', 3000) || 'y' || repeat(')', 3000));
SELECT kmeans_reduce('reduce_rows', value => 'y' || repeat(' + y', 20000));
SELECT kmeans_reduce('reduce_rows', value => 'sum(i, 1000000, sum(j, 1000000, sum(k, 1000000, y)))');
SELECT kmeans_reduce('reduce_rows', value => 'vector(i, 1000000, vector(j, i + 1, y * i))');
SELECT kmeans_reduce('reduce_rows', index => 'g', cells => '1000000000000', value => 'y');
SELECT kmeans_reduce('reduce_rows', value => 'a9', let => (SELECT json_object_agg('a' || i, CASE i WHEN 0 THEN 'y' ELSE format('%1$s+%1$s+%1$s+%1$s+%1$s+%1$s', 'a' || i - 1) END)::jsonb FROM generate_series(0, 9) AS i));
SELECT kmeans_reduce('reduce_rows', value => repeat('y + ', 3000) || 'y');
SELECT kmeans_reduce_iterate('reduce_rows', kmeans_reduction(index => 'g', cells => '3000000000', value => 'y'), '{"c": 0}', '{"c": "1"}');
SET pg_kmeans.memory_limit = '1MB';
SELECT kmeans_reduce('reduce_rows', index => 'g', cells => '1000000', value => 'y');
SELECT kmeans_reduce_iterate('reduce_rows', '{"value": "y"}', '{"c": 0}', '{"c": "vector(i, 1000000, vector(j, 1, i))"}');
RESET pg_kmeans.memory_limit;
SET statement_timeout = '200ms';
SELECT kmeans_reduce('reduce_rows', value => 'sum(i, 100000, sum(j, 100000, sin(i + j + y)))');
RESET statement_timeout;
\set VERBOSITY default

-- A reduction is a value, which a table keeps.
CREATE TABLE reduce_kept (name text PRIMARY KEY, reduction jsonb);
INSERT INTO reduce_kept VALUES ('step', kmeans_reduction(index => 'argmin(j, k, sum((f - c[j]) ^ 2))', cells => 'k', value => '{1, f}', exact => true)),
    ('with_let', kmeans_reduction(value => 'y * s', let => '{"s": "2"}')), ('count', kmeans_reduction(op => 'count', filter => 'x > 1', exact => false));
SELECT * FROM reduce_kept;
SELECT reduction AS step FROM reduce_kept WHERE name = 'step' \gset
SELECT kmeans_reduction(value => 'y +');
SELECT kmeans_reduction(value => 'random()');
SELECT kmeans_reduction();
SELECT kmeans_reduction(value => 'y', let => '{"a": 1}');
SELECT cell, value[1] FROM reduce_kept, kmeans_reduce('reduce_rows', reduction, '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}') WHERE name = 'step';
SELECT value FROM kmeans_reduce('reduce_rows', (SELECT reduction FROM reduce_kept WHERE name = 'with_let')) UNION ALL
SELECT value FROM kmeans_reduce('reduce_rows', '{"op": "count", "value": null, "filter": "x > 1"}');
SELECT kmeans_reduce('reduce_rows', :'step', '{"k": 2}');
SELECT kmeans_reduce('reduce_rows', :'step', value => 'y');
SELECT kmeans_reduce('reduce_rows', :'step', exact => true);
SELECT kmeans_reduce('reduce_rows', '[1]');
SELECT kmeans_reduce('reduce_rows', '"x"');
SELECT kmeans_reduce('reduce_rows', '{"value": 1}');
SELECT kmeans_reduce('reduce_rows', '{"value": "y", "values": "x"}');
SELECT kmeans_reduce('reduce_rows', '{"value": "y", "let": ["x"]}');
SELECT kmeans_reduce('reduce_rows', '{"value": "y", "let": 1}');
SELECT kmeans_reduce('reduce_rows', value => 'y', let => '1');
SELECT kmeans_reduce('reduce_rows', '{"value": "y", "exact": 1}');
SELECT kmeans_reduce('reduce_rows', '{"value": "y); DROP TABLE reduce_rows; --"}');

-- Loops whose parameters come from the last result.
SELECT params->'c'->1->>0 AS c, n_iter, converged FROM kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}',
    '{"c": "vector(j, k, vector(i, 3, CASE WHEN counts[j] > 0 THEN r[j][1 + i] / r[j][0] ELSE c[j][i] END))"}',
    'sum(j, k, sum((c[j] - old.c[j]) ^ 2)) = 0');
SELECT function, relid::regclass, n, d FROM kmeans_last_run();
SELECT params, n_iter, converged FROM kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "s": 0, "v": [1, 2], "w": 0, "m": 0}',
    '[{"s": "s + counts[0]", "v": "r[1][0] * v"}, {"w": "v + s", "m": "vector(i, 2, vector(j, 2, i * 10 + j + s))"}]', max_iter => 2);
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "b": 0, "d": 0, "m": 0}', '[{"a": "k + 1"}, {"b": "c * a", "d": "vector(i, a, a / (i - 1))", "m": "c"}]');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "a": 0, "b": 0}', '{"a": "k + 1", "b": "c * none"}');
SELECT kmeans_reduce_iterate('reduce_rows', NULL, '{}', '{"c": "1"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": 1}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c["}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c + y"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c > 1"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c / 0"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "vector(i, 2, vector(j, 2, vector(k, 2, 1)))"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "r[2][0]"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c"}', 'sum(c[0] - old.d[0])');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c"}', 'sum(c[0] - old.c[0])');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c"}', 'true', 0);
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "r": 1}', '{"c": "c"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', NULL, '{"c": "c"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "vector(j, 3, c[0])"}', max_iter => 2);
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "old.c": 1}', '{"c": "c"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"old.c": "1"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"c": "c", "f": "1"}');
SELECT kmeans_reduce_iterate('reduce_rows', reduction, '{}', '{"s": "3"}') FROM reduce_kept WHERE name = 'with_let';
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "m": 0}', '{"m": "vector(a, 2, vector(b, a + 1, 1))"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]], "m": 0}', '{"m": "2 * vector(a, 2, vector(b, a + 1, 1))"}');
SELECT params, n_iter, converged FROM kmeans_reduce_iterate('reduce_texts', :'step', '{}', '{"c": "1"}');
SELECT kmeans_reduce_iterate('reduce_rows', :'step', '{"k": 2, "c": [[0, 0, 0], [5, 1, 0]]}', '{"centroid": "c"}');
TRUNCATE reduce_empty;
SELECT params, n_iter, converged FROM kmeans_reduce_iterate('reduce_empty', :'step', '{"k": 1, "c": [[1]]}', '{"c": "c"}');

-- The text for a GPU.
SELECT source ~ '__global__' AS a_kernel, length(source) > 1000 AS long FROM kmeans_reduce_source('reduce_rows', index => 'g', cells => '5', value => '{1, f}') AS source;
SELECT count(DISTINCT kmeans_reduce_source('reduce_rows', value => 'sum(f)', layout => layout)) > 1 AS differ FROM unnest('{block,global}'::text[]) AS layout;
SELECT kmeans_reduce_source('reduce_rows', value => 'y', layout => 'none');
SELECT kmeans_reduce_source('reduce_rows', value => 'y', capability => 75) IS NOT NULL AS older;
SELECT kmeans_reduce_source('reduce_empty', value => 'y') IS NULL AS nothing;
SELECT kmeans_reduce_source('reduce_rows', value => 'y', capability => 9);

-- kmeans_step: one assignment to given centroids, with sums that can be merged.
CREATE TABLE step_points (id integer, f8 double precision[], f4 real[], f2 smallint[], fi integer[], fb bigint[], fn numeric[], w double precision);
INSERT INTO step_points
SELECT id, f, f, f, f, f, f, w
FROM (VALUES (1, '{0,0}', 1), (2, '{0,2}', 2), (3, '{10,10}', 0.5), (4, '{12,10}', 1), (5, NULL, 1), (6, '{5,5}', NULL)) AS v (id, t, w),
    LATERAL (SELECT v.t::double precision[]) AS d (f);

-- The row (5, 5) is as far from the first as from the second: the lower index takes it.
SELECT kmeans_step(f8, '{{0,0},{10,10},{100,100}}') FROM step_points;
SELECT kmeans_sums_centroids(s), kmeans_sums_masses(s), kmeans_sums_features(s), kmeans_sums_inertia(s)
FROM (SELECT kmeans_step(f8, '{{0,0},{10,10},{100,100}}') AS s FROM step_points) AS t;
-- Every array type gives the same; columns and constants need no cast.
SELECT count(DISTINCT t.s::text)
FROM (SELECT unnest(ARRAY[kmeans_step(f8, c), kmeans_step(f4, c), kmeans_step(f2, c), kmeans_step(fi, c), kmeans_step(fb, c),
    kmeans_step(fn, c), kmeans_step(ARRAY[f8[1], f4[2]], c), kmeans_step(ARRAY[fi[1], fn[2]], c) FILTER (WHERE fi IS NOT NULL)]) AS s
    FROM step_points, (SELECT ARRAY[[0, 0], [10, 10]]::double precision[]) AS g (c) WHERE f8 IS NOT NULL) AS t;
-- Weights: 0 and NULL skip the row.
SELECT kmeans_step(f8, '{{0,0},{10,10}}', w) FROM step_points;
SELECT kmeans_step(f4, '{{0,0},{10,10}}', 1 - w) FROM step_points WHERE w <= 1;
-- One dimension, one cluster.
SELECT kmeans_step(ARRAY[id], '{{3}}') FROM step_points;

-- No rows: no sums. In groups, with FILTER, DISTINCT, ORDER BY, HAVING and as a window aggregate.
SELECT kmeans_step(f8, '{{0,0}}') IS NULL FROM step_points WHERE false;
SELECT kmeans_step(f8, '{{0,0}}') IS NULL FROM step_points WHERE f8 IS NULL;
SELECT id % 2 AS g, kmeans_sums_masses(kmeans_step(f8, '{{0,0},{10,10}}')) FROM step_points GROUP BY g ORDER BY g;
SELECT kmeans_sums_masses(kmeans_step(f8, '{{0,0},{10,10}}') FILTER (WHERE id > 2)) AS filtered,
    kmeans_sums_masses(kmeans_step(DISTINCT fi, '{{0,0},{10,10}}')) AS distinct_rows,
    kmeans_sums_masses(kmeans_step(f8, '{{0,0},{10,10}}' ORDER BY id DESC)) AS ordered
FROM step_points, generate_series(1, 2) HAVING count(*) > 5;
SELECT id, kmeans_sums_masses(kmeans_step(f8, '{{0,0},{10,10}}') OVER (ORDER BY id)) AS running,
    kmeans_sums_masses(kmeans_step(f8, '{{0,0},{10,10}}') OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)) AS moving
FROM step_points ORDER BY id;

-- A loop of steps is Lloyd's algorithm.
CREATE TABLE step_many AS SELECT ARRAY[(i * 7919) % 1009, (i * 104729) % 997]::double precision[] AS f FROM generate_series(1, 3000) AS i;
CREATE FUNCTION step_loop(c double precision[]) RETURNS double precision[] LANGUAGE plpgsql AS $$
DECLARE
    previous double precision[];
BEGIN
    WHILE c IS DISTINCT FROM previous LOOP
        previous := c;
        c := (SELECT kmeans_sums_centroids(kmeans_step(f, c)) FROM step_many);
    END LOOP;
    RETURN c;
END$$;
SELECT max(abs(a - b)) < 1e-9 AS agrees
FROM unnest(step_loop('{{0,0},{500,500},{1000,0}}'),
    (kmeans_fit('step_many', '{f}', 3, options => kmeans_options(init_centroids => '{{0,0},{500,500},{1000,0}}', tol => 0))).centroids) AS t (a, b);

-- Merging: parts, groups of parts, the operator, NULLs.
CREATE TABLE step_parts AS SELECT g, kmeans_step(f, '{{0,0},{500,500},{1000,0}}') AS s FROM step_many, generate_series(1, 3) AS g GROUP BY g;
SELECT kmeans_sums_masses(kmeans_merge(s)), kmeans_sums_inertia(kmeans_merge(s)) = sum(kmeans_sums_inertia(s)) AS inertia FROM step_parts;
SELECT ((SELECT s FROM step_parts WHERE g = 1) + (SELECT s FROM step_parts WHERE g = 2))::text
    = (SELECT kmeans_merge(s)::text FROM step_parts WHERE g <= 2) AS same;
SELECT kmeans_merge(s) IS NULL AS nothing FROM step_parts WHERE g > 3;
SELECT kmeans_sums_masses(kmeans_merge(CASE g WHEN 2 THEN s END)) AS one_part FROM step_parts;
SELECT pgkm_step_combine(NULL, NULL) IS NULL AS both, pgkm_step_combine(b, NULL) = b AS right_null, pgkm_step_combine(NULL, b) = b AS left_null,
    pgkm_step_final(b) = s AS as_it_was, s + NULL IS NULL AS plus_null
FROM step_parts, LATERAL (SELECT pgkm_merge_accum(NULL, s) AS b) AS t WHERE g = 1;
-- The arguments of + are not changed.
SELECT kmeans_sums_masses(s + s) AS twice, kmeans_sums_masses(s) AS once FROM step_parts WHERE g = 1;
-- Different centroids do not merge, be they of another shape or not.
SELECT kmeans_merge(s ORDER BY i) FROM (SELECT 1, kmeans_step(f8, '{{0,0}}') FROM step_points UNION ALL SELECT 2, kmeans_step(f8, '{{0,0},{1,1}}') FROM step_points) AS t (i, s);
SELECT kmeans_merge(s ORDER BY i) FROM (SELECT 1, kmeans_step(f8, '{{0,0}}') FROM step_points UNION ALL SELECT 2, kmeans_step(f8, '{{0,1}}') FROM step_points) AS t (i, s);

-- Sums keep what float64 rounds away: 10^16 + 1 - 10^16, and a tenth a hundred thousand times.
SELECT kmeans_sums_features(kmeans_step(ARRAY[v], '{{0}}' ORDER BY i)) FROM (VALUES (1, 1e16), (2, 1), (3, -1e16)) AS t (i, v);
SELECT kmeans_sums_features(kmeans_step('{0.1}'::double precision[], '{{0}}')) FROM generate_series(1, 100000);
SELECT kmeans_step(ARRAY[v], '{{0}}' ORDER BY i) FROM (VALUES (1, 1e16), (2, 1)) AS t (i, v);

-- The text form reads back as itself, JSON as the same sums.
SELECT count(*), bool_and(s::text::kmeans_sums = s) AS same, bool_and(jsonb_populate_record(NULL::kmeans_sums, to_jsonb(s)) = s) AS jsonb
FROM (SELECT kmeans_step(ARRAY[random() * 1e10, random(), -random() * 1e-10], '{{0,0,0},{5e9,0,0}}', random()) AS s
    FROM generate_series(1, 1000) AS i GROUP BY i % 10) AS t;
SELECT to_jsonb(s) -> 'features' AS features FROM (SELECT kmeans_step(f8, '{{0,0}}') FROM step_points) AS t (s);
-- Sums made by hand: those that no rows have are refused.
SELECT kmeans_merge(s) FROM (VALUES ('(1,2,1,0,{1},"{{-1.5,2}}","{0,0,1e-20,0}",255)'::kmeans_sums), ('(1,2,1,0,[5:5]={1},"[0:0][3:4]={{-1.5,2}}",,255)')) AS v (s);
CREATE FUNCTION step_read(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    RETURN kmeans_merge(t::kmeans_sums)::text;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN SQLSTATE || ' ' || SQLERRM || ' ' || detail;
END$$;
SELECT t, step_read(t) FROM (VALUES ('(,,,,,,,)'), ('(0,1,1,0,{},{},,0)'), ('(1,2,,0,{1},"{{1,2}}",,0)'), ('(1,2,0,0,{1},"{{1,2}}",,0)'), ('(1,2,9007199254740994,0,{1},"{{1,2}}",,0)'),
    ('(2147483647,2147483647,1,0,{1},"{{1,2}}",,0)'), ('(1,2,1,,{1},"{{1,2}}",,0)'), ('(1,2,1,-1,{1},"{{1,2}}",,0)'), ('(1,2,1,NaN,{1},"{{1,2}}",,0)'), ('(1,2,1,Infinity,{1},"{{1,2}}",,0)'),
    ('(1,2,1,0,{-1},"{{1,2}}",,0)'), ('(1,2,1,0,"{1,2}","{{1,2}}",,0)'), ('(1,2,1,0,{NULL},"{{1,2}}",,0)'), ('(1,2,1,0,{1},"{1,2}",,0)'), ('(1,2,1,0,{1},"{{1,NaN}}",,0)'), ('(1,2,1,0,{1},,,0)'),
    ('(1,2,1,0,{1},"{{1,2}}","{0,0}",0)'), ('(1,2,1,0,{1},"{{1,2}}","{0,0,0,NaN}",0)'), ('(1,2,1,0,{1},"{{1,2}}",{},)'), ('(1,2,1,0,{1},"{{1,2}}",{},7)')) AS v (t);
SELECT kmeans_sums_centroids('(1,1,1,0,{-1},"{{1}}",,0)');
-- Bytes that are no state.
SELECT pgkm_step_final('');
SELECT pgkm_step_final(substr(pgkm_merge_accum(NULL, s), 2)) FROM step_parts WHERE g = 1;
SELECT pgkm_step_combine(b, substr(b, 1, length(b) - 1)) FROM (SELECT pgkm_merge_accum(NULL, s) FROM step_parts WHERE g = 1) AS t (b);
SELECT pgkm_step_accum(set_byte(b, 5, 1), '{1,2}'::real[], '{{0,0}}') FROM (SELECT pgkm_merge_accum(NULL, s) FROM step_parts WHERE g = 1) AS t (b);
-- What the aggregate refuses.
SELECT kmeans_step(f8, '{{0}}') FROM step_points;
SELECT kmeans_step('{}'::real[], '{{0}}');
SELECT kmeans_step('{{0}}'::real[], '{{0}}');
SELECT kmeans_step('{NULL,1}'::real[], '{{0,0}}');
SELECT kmeans_step('{1,NaN}'::real[], '{{0,0}}');
SELECT kmeans_step('{1,-Infinity}'::real[], '{{0,0}}');
SELECT kmeans_step('{1e200}'::double precision[], '{{0}}');
SELECT kmeans_step(f8, '{0,0}') FROM step_points;
SELECT kmeans_step(f8, '{}') FROM step_points;
SELECT kmeans_step(f8, '{{{0,0}}}') FROM step_points;
SELECT kmeans_step(f8, '{{0,NULL}}') FROM step_points;
SELECT kmeans_step(f8, '{{0,1},{2,NaN}}') FROM step_points;
SELECT kmeans_step(f8, '{{0,Infinity}}') FROM step_points;
SELECT kmeans_step(f8, NULL) FROM step_points;
SELECT kmeans_step(f8, CASE WHEN id < 3 THEN '{{0,0}}' ELSE '{{0,0},{1,1}}' END::double precision[]) FROM step_points;
SELECT kmeans_step(f8, CASE WHEN id < 3 THEN '{{0,0}}' ELSE '{{0,1}}' END::double precision[]) FROM step_points;
SELECT kmeans_step(f8, '{{0,0}}', -1) FROM step_points;
SELECT kmeans_step(f8, '{{0,0}}', 'NaN') FROM step_points;
SELECT kmeans_step(f8, '{{0,0}}', 'Infinity') FROM step_points;
SELECT kmeans_step(f8, '{{0,0}}', 1e151) FROM step_points;
SELECT kmeans_step(ARRAY[1e150], '{{-1e150}}', 1e150);
\set VERBOSITY terse
SELECT kmeans_step(ARRAY['a'], '{{0}}');
\set VERBOSITY default
SELECT kmeans_sums_centroids(kmeans_step('{3}'::float8[], '{{0}}', 1e-320));
SELECT kmeans_sums_centroids('(1,1,1,0,{1e-320},"{{1}}",,0)');

DROP FUNCTION step_loop, step_read;
DROP TABLE step_points, step_many, step_parts;

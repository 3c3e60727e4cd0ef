-- kmeans_plot, kmeans_sweep_plot and gmm_plot: what their text says, and that it depends on the set of rows alone.
SET client_min_messages = warning;
CREATE TABLE plot_rows AS
SELECT i AS id, (i % 5 * 10 + sin(i * 1.7))::real AS x, (i % 5 * 7 % 20 + cos(i * 2.3))::real AS y, (sin(i) * 3)::real AS z, 1 + i % 3 AS w,
    NULL::integer AS cluster_id
FROM generate_series(1, 4000) AS i;
CREATE FUNCTION plot_times(svg text, pattern text) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM regexp_matches(svg, pattern, ''g'')';

-- Its parts: a card, a title, axes, a dot for each row, a number and a line of the legend for each cluster.
CREATE TABLE plots AS SELECT kmeans_plot('plot_rows', '{x,y}', 5) AS svg;
SELECT left(svg, 92) AS head, right(svg, 7) AS tail, svg ~ '^[[:ascii:]]*$' AS ascii, svg ~ 'script|href|[nN]a[nN]|inf[^eo]' AS bad FROM plots;
SELECT match[1] AS text FROM plots, regexp_matches(svg, '<text[^>]*>([^<]*)', 'g') AS match;
SELECT plot_times(svg, 'M[0-9.]+ [0-9.]+h[.]1') AS dots, plot_times(svg, '<rect rx="8" height="16"') AS numbers, plot_times(svg, '<text') AS texts,
    plot_times(svg, '<g') = plot_times(svg, '</g>') AS groups_closed, plot_times(svg, '"') % 2 AS odd FROM plots;
-- All of it lies on the card.
SELECT bool_and(m[1]::numeric BETWEEN 0 AND 720 AND m[2]::numeric BETWEEN 0 AND 480) AS inside
FROM plots, regexp_matches(svg, 'M([0-9.]+) ([0-9.]+)', 'g') AS m;
DROP TABLE plots;

-- The same bytes for the rows in another order, after an UPDATE of each row, from a view, from loaded rows, with any threads.
CREATE TABLE plot_shuffled AS TABLE plot_rows ORDER BY md5(id::text);
CREATE VIEW plot_view AS SELECT * FROM plot_rows ORDER BY -id;
CREATE FUNCTION plot_all(relation regclass, memory text DEFAULT 'auto') RETURNS TABLE (kind text, md5 text) LANGUAGE sql AS $$
    SELECT kind, md5(svg) FROM (VALUES
        ('two features', kmeans_plot(relation, '{x,y}', 5, memory => memory, title => 'a')),
        ('sampled', kmeans_plot(relation, '{x,y}', 5, memory => memory, title => 'a', sample => 300)),
        ('components', kmeans_plot(relation, '{x,y,z}', 5, memory => memory, title => 'a', sample => 300)),
        ('weights', kmeans_plot(relation, '{x,y}', 5, weight => 'w', memory => memory, title => 'a', sample => 300)),
        ('weighted components', kmeans_plot(relation, '{x,y,z}', 5, weight => 'w', memory => memory, title => 'a', sample => 300)),
        ('one feature', kmeans_plot(relation, '{x}', 3, memory => memory, title => 'a')),
        ('standardized', kmeans_plot(relation, '{x,y,z}', 3, options => kmeans_options(standardize => true), memory => memory, title => 'a')),
        ('sweep', kmeans_sweep_plot(relation, '{x,y}', 1, 7, memory => memory, title => 'a'))) AS s (kind, svg) $$;
CREATE TABLE plot_wanted AS SELECT * FROM plot_all('plot_rows');
SELECT count(DISTINCT md5) AS different FROM plot_wanted;
SELECT 'shuffled' AS kind, count(*) FROM (TABLE plot_wanted EXCEPT SELECT * FROM plot_all('plot_shuffled')) AS s
UNION ALL SELECT 'view', count(*) FROM (TABLE plot_wanted EXCEPT SELECT * FROM plot_all('plot_view')) AS s;
UPDATE plot_rows SET z = z WHERE id % 3 = 0;
SET pg_kmeans.cpu_threads = 1;
SELECT 'updated' AS kind, count(*) FROM (TABLE plot_wanted EXCEPT SELECT * FROM plot_all('plot_rows')) AS s;
RESET pg_kmeans.cpu_threads;
SELECT kmeans_load('plot_rows', '{x,y}'), kmeans_load('plot_rows', '{x,y,z}'), kmeans_load('plot_rows', '{x}'), kmeans_load('plot_rows', '{x,y}', 'w'),
    kmeans_load('plot_rows', '{x,y,z}', 'w');
SELECT 'loaded' AS kind, count(*) FROM (TABLE plot_wanted EXCEPT SELECT * FROM plot_all('plot_rows', 'loaded')) AS s;
-- A picture leaves loaded rows as they are.
SELECT kmeans_fit('plot_rows', '{x,y,z}', 5, weight => 'w', memory => 'loaded') = kmeans_fit('plot_rows', '{x,y,z}', 5, weight => 'w') AS same;
SELECT kmeans_unload();
-- Another seed takes other rows.
SELECT kmeans_plot('plot_rows', '{x,y}', 1, sample => 300) = kmeans_plot('plot_rows', '{x,y}', 1, sample => 300, options => kmeans_options(seed => 1)) AS same;

-- By labels that a fit wrote: the picture of that fit, but for its inertia.
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('plot_rows', '{x,y}', 5, label_column => 'cluster'));
SELECT regexp_replace(kmeans_plot('plot_rows', '{x,y}', 5, title => 'a'), ', inertia [0-9.e+]+', '', 'g') =
    kmeans_plot('plot_rows', '{x,y}', label_column => 'cluster', title => 'a') AS same;
-- Labels that are no clusters, and rows without features.
UPDATE plot_rows SET cluster_id = CASE WHEN id % 2 = 0 THEN NULL WHEN id % 3 = 0 THEN -1 ELSE id % 2 * 2147483647 END, x = CASE WHEN id > 3 THEN x END,
    y = CASE WHEN id > 3 THEN y END, z = CASE WHEN id > 3 THEN z END;
SELECT match[1] AS text FROM kmeans_plot('plot_rows', '{x,y}', label_column => 'cluster_id', title => '') AS svg, regexp_matches(svg, '<text[^>]*>([^<]*)', 'g') AS match;

-- nulls and filter, as for the fits: the picture of the rows that take part.
CREATE TABLE plot_gaps AS SELECT CASE WHEN i % 9 > 0 THEN sin(i) + i % 3 * 9 END AS x, CASE WHEN i % 7 > 0 THEN cos(i) END AS y, i % 5 > 0 AS kept, i % 3 AS label
FROM generate_series(1, 500) AS i;
CREATE VIEW plot_kept AS SELECT * FROM plot_gaps WHERE kept AND x IS NOT NULL AND y IS NOT NULL;
SELECT kmeans_plot('plot_gaps', '{x,y}', 3, nulls => 'skip', filter => 'kept', title => 'a') = kmeans_plot('plot_kept', '{x,y}', 3, title => 'a') AS fit,
    kmeans_plot('plot_gaps', '{x,y}', label_column => 'label', nulls => 'skip', filter => 'kept', title => 'a') = kmeans_plot('plot_kept', '{x,y}', label_column => 'label', title => 'a') AS labels,
    kmeans_sweep_plot('plot_gaps', '{x,y}', 2, 4, nulls => 'skip', filter => 'kept', title => 'a') = kmeans_sweep_plot('plot_kept', '{x,y}', 2, 4, title => 'a') AS sweep,
    kmeans_plot('plot_gaps', '{x,y}', 3, nulls => 'mean') ~ '>493 rows,' AS filled;
SELECT kmeans_plot('plot_gaps', '{x,y}', 3, filter => 'kept');
SELECT kmeans_sweep_plot('plot_gaps', '{x,y}', 2, 4, nulls => 'mend');
-- Each of 42 clusters has a mark of its own, in one of 7 colours; the next one has the first mark again.
SELECT count(*) AS clusters, count(DISTINCT m) AS marks, count(DISTINCT m[1]) AS colours FROM kmeans_plot('plot_gaps', '{x,y}', 43, nulls => 'mean', height => 1000) AS svg,
    regexp_matches(svg, '<path fill="(#[0-9a-f]+)" stroke="[^"]*" stroke-width="([0-9.]+)" stroke-linecap="([a-z]+)" d="M[0-9. ]+([^"M]*)"/>\n<text', 'g') AS m;

-- A sample is about as large as asked for.
CREATE TABLE plot_many AS SELECT exp(3 * sin(i * 2.1)) AS x, exp(3 * cos(i * 1.3)) AS y, i % 3 AS small, i % 20 AS label FROM generate_series(1, 50000) AS i;
SELECT sample, plot_times(svg, 'h[.]1') BETWEEN sample * 0.9 AND sample * 1.1 + 3 AS about, length(svg) < 8000 + 20 * sample AS short
FROM unnest(ARRAY[100, 1000, 5000]) AS sample, kmeans_plot('plot_many', '{x,y}', 3, options => kmeans_options(max_iter => 2), sample => sample) AS svg;
-- A row apart is drawn, and so is each of few places that many rows share.
INSERT INTO plot_many VALUES (1000, 1000, 0, 0);
SELECT svg ~ 'M5[0-9]+(\.[0-9])? [0-9]{2}(\.[0-9])?h[.]1' AS drawn FROM kmeans_plot('plot_many', '{x,y}', 1, sample => 100) AS svg;
SELECT plot_times(kmeans_plot('plot_many', '{small,label}', 1), 'h[.]1') >= 60 AS all_places;

-- Equal values, one row, none; very large and very small values; values far from 0.
CREATE TABLE plot_edges AS SELECT 7 AS a, 0 AS b, 5e149 * (i % 7 - 3) AS huge, 5e-324 AS tiny, 1e15 + i % 3 AS far, -1e-7 * (i % 4) AS small FROM generate_series(1, 20) AS i;
SELECT columns, svg ~ '[nN]a[nN]|[^a-z]inf[^e]' AS bad, array(SELECT m[1] FROM regexp_matches(svg, '<text[^>]*>([^<]*)', 'g') AS m) AS texts
FROM unnest(ARRAY['a b', 'huge tiny', 'far small', 'a', 'far']) AS columns, kmeans_plot('plot_edges', string_to_array(columns, ' '), 1, title => '') AS svg;
SELECT plot_times(kmeans_plot('plot_edges', '{a,b,far}', 1), 'variance') AS components;
DELETE FROM plot_edges WHERE ctid > '(0,1)';
SELECT plot_times(svg, 'h[.]1') AS dots, svg ~ '>1 row,' AS one FROM kmeans_plot('plot_edges', '{a,b,far}', 1) AS svg;
DELETE FROM plot_edges;
SELECT kmeans_plot('plot_edges', '{a,b}', 1) IS NULL AS no_rows, kmeans_plot('plot_edges', '{a,b}', label_column => 'a') IS NULL AS no_labels,
    kmeans_sweep_plot('plot_edges', '{a,b}', 1, 2) IS NULL AS no_sweep, gmm_plot(NULL) IS NULL AS no_model;

-- Names are escaped and cut.
CREATE TABLE "plot <&> ""q""" AS SELECT i AS "a<b", i % 7 AS "c&""d'	e" FROM generate_series(1, 20) AS i;
SELECT array(SELECT m[1] FROM regexp_matches(svg, '<(?:text|title)[^>]*>([^<]*[&c][^<]*)', 'g') AS m) AS texts
FROM kmeans_plot('"plot <&> ""q"""', ARRAY['a<b', 'c&"d''	e'], 2) AS svg;
SELECT m[1] AS title FROM regexp_matches(kmeans_plot('plot_many', '{x,y}', 1, width => 320, title => repeat('long ', 20)), 'font-size="16">([^<]*)') AS m;
-- What XML has no place for is a blank.
SELECT m[1] = 'a b c d e f' || E'\uFFFD' AS blanks FROM regexp_matches(kmeans_plot('plot_many', '{x,y}', 1, title => E'a\x01b\x1ec\x1fd\uFFFEe\uFFFFf\uFFFD'), 'font-size="16">([^<]*)') AS m;
CREATE TABLE plot_vectors AS SELECT ARRAY[x, y] AS f FROM plot_many LIMIT 100;
SELECT m[1] AS axis FROM regexp_matches(kmeans_plot('plot_vectors', '{f}', 1), '>(f[^<]*)<', 'g') AS m;

-- A sweep marks the best k of each index; the inertia has none.
SELECT match[1] AS text FROM kmeans_sweep_plot('plot_shuffled', '{x,y}', 1, 7) AS svg, regexp_matches(svg, '<text[^>]*>([^<]*[a-z][^<]*)', 'g') AS match;
SELECT plot_times(kmeans_sweep_plot('plot_shuffled', '{x,y}', 1, 1), 'not defined') AS not_defined;
-- An index that is infinite has no place.
CREATE TABLE plot_near AS SELECT unnest(ARRAY[0, 1e-160, 1, 1]::float8[]) AS x;
SELECT bool_and(m[1]::numeric BETWEEN 0 AND 720 AND m[2]::numeric BETWEEN 0 AND 480) AS inside, svg ~ '[nN]a[nN]|[^a-z]inf[^e]' AS bad
FROM kmeans_sweep_plot('plot_near', '{x}', 1, 3) AS svg, regexp_matches(svg, '[ML](-?[0-9.]+) (-?[0-9.]+)', 'g') AS m GROUP BY svg;
DROP TABLE plot_near;
-- EM: a dot for each iteration.
SELECT n_iter = plot_times(svg, 'h[.]1') AS dots, svg ~ '>log-likelihood of all rows' AS named, svg ~ 'covariances: diag, [0-9]+ iterations, converged' AS told
FROM (SELECT (m).n_iter, gmm_plot(m) AS svg FROM (SELECT gmm_fit('plot_shuffled', '{x,y}', 3, options => gmm_options(covariance_type => 'diag')) AS m) AS s) AS t;

-- A profile: a line for each feature, a column for all rows and for each cluster, coloured where it lies apart.
CREATE TABLE plot_profiles AS SELECT kmeans_model('{{0,0.5,0.25,7},{19000,0.9995,-3.5,7}}', ARRAY['since', E'a<b & "c\x01"', repeat('long ', 20), 'same'],
    sources => ARRAY[ROW('timestamp without time zone', 'date', '{}', NULL), ROW('boolean', 'number', '{}', NULL), ROW('interval', 'interval', '{}', NULL), ROW('integer', 'number', '{}', NULL)]::kmeans_source[]) AS m;
SELECT match[1] AS text FROM plot_profiles, regexp_matches(kmeans_profile_plot(m), '<text[^>]*>([^<]*)', 'g') AS match;
SELECT width, array_agg(match[1]) AS texts FROM plot_profiles, unnest('{320,400,4000}'::integer[]) AS width, regexp_matches(kmeans_profile_plot(m, width, title => ''), '<text[^>]*>([^<]*)', 'g') AS match GROUP BY width ORDER BY width;
SELECT match[1] AS colour, match[2] AS opacity, count(*) FROM plot_profiles, regexp_matches(kmeans_profile_plot(m), '<rect fill="(#[0-9a-f]+)" fill-opacity="([0-9.]+)"', 'g') AS match GROUP BY 1, 2 ORDER BY 1, 2;
-- What has no place is left out: those features are drawn that differ most, and the largest clusters; nothing lies beside the card.
SELECT width, height, match[1] AS told, plot_times(svg, 'font-weight') AS bold, plot_times(svg, '>f.[0-9]+.<') AS lines,
    (SELECT bool_and(m[1]::numeric BETWEEN 0 AND coalesce(width, 720) AND m[2]::numeric BETWEEN 0 AND h) FROM string_to_table(svg, E'\n') AS line, regexp_match(line, ' x="(-?[0-9.]+)" y="(-?[0-9.]+)"') AS m) AS inside,
    (SELECT bool_and(m[1]::numeric + m[3]::numeric <= coalesce(width, 720) AND m[2]::numeric + m[4]::numeric <= h) FROM string_to_table(svg, E'\n') AS line, regexp_match(line, ' x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)" height="([0-9.]+)"') AS m) AS whole, svg ~ '[nN]a[nN]|[^a-z]inf[^e]' AS bad
FROM (SELECT kmeans_model(array_agg(ARRAY(SELECT sin(i * j) * j FROM generate_series(1, 768) AS j)), '{f}') AS m FROM generate_series(1, 50) AS i) AS a,
    (VALUES (NULL, NULL), (320, 240), (1500, 1000)) AS v (width, height), LATERAL kmeans_profile_plot(m, width, height) AS svg, regexp_matches(svg, '<desc>([^<]*)') AS match,
    LATERAL (SELECT substring(svg FROM 'height="([0-9]+)"')::integer AS h OFFSET 0) AS s;
SELECT array_agg(match[1]) AS features FROM kmeans_profile_plot(jsonb_populate_record(kmeans_model('{{0,0,5,9,1,1,1},{0,1,5,-9,1,2,3}}', NULL, '{0,0,5,0,0,0,0}', '{1,1,1,1,1,1,1}'), '{"size": [3, 4]}'), height => 240) AS svg, regexp_matches(svg, 'text-anchor="start" font-size="11">([0-9]+)<', 'g') AS match;
SELECT array(SELECT m[1] FROM regexp_matches(svg, 'font-size="9">([0-9]+)</text>', 'g') AS m) AS clusters FROM (SELECT kmeans_model(array_agg(ARRAY[i])) AS m FROM generate_series(1, 30) AS i) AS s,
    kmeans_profile_plot(jsonb_populate_record(m, jsonb_build_object('size', (SELECT jsonb_agg(i % 4) FROM generate_series(1, 30) AS i))), 320) AS svg;
-- A model that was stored; numbers of any magnitude.
SELECT kmeans_profile_plot(m) = kmeans_profile_plot(m::text::kmeans_model) AS same, kmeans_profile_plot(NULL) IS NULL AS no_model FROM plot_profiles;
SELECT svg ~ '[nN]a[nN]|[^a-z]inf[^e]' AS bad FROM unnest(ARRAY['{{5e-324},{1e-323}}', '{{8e307},{-8e307}}', '{{0},{0}}', '{{1e300},{1}}']) AS c, kmeans_profile_plot(kmeans_model(c::float8[])) AS svg GROUP BY 1;
SELECT kmeans_profile_plot(m, width => 319) FROM plot_profiles;
SELECT kmeans_profile_plot(m, height => 4001) FROM plot_profiles;
SELECT kmeans_profile_plot(jsonb_populate_record(m, '{"size": [1]}')) FROM plot_profiles;
DROP TABLE plot_profiles;

-- Wrong input.
SELECT kmeans_plot('plot_many', '{x,y}');
SELECT kmeans_plot('plot_many', '{x,y}', 2, label_column => 'label');
SELECT kmeans_plot('plot_many', '{x,y}', 0);
SELECT kmeans_plot('plot_many', '{x,nothing}', 2);
SELECT kmeans_plot('plot_many', '{x,y}', label_column => 'Label');
SELECT kmeans_plot('plot_many', '{x,y}', label_column => 'x');
SELECT kmeans_plot('plot_many', '{x,y}', label_column => 'label', memory => 'loaded');
SELECT kmeans_plot('plot_nothing', '{x,y}', 2);
SELECT kmeans_plot(NULL, '{x,y}', 2);
SELECT kmeans_plot('plot_many', NULL, 2);
SELECT kmeans_plot('plot_many', '{x,y}', 2, width => 319);
SELECT kmeans_plot('plot_many', '{x,y}', 2, height => 4001);
SELECT kmeans_plot('plot_many', '{x,y}', 2, sample => 9);
SELECT kmeans_plot('plot_many', '{x,y}', 2, options => kmeans_options(init => 'x'));
SELECT kmeans_sweep_plot('plot_many', '{x,y}', 3, 2);
SELECT kmeans_sweep_plot('plot_many', '{x,y}', 2, 3, height => 0);
SELECT gmm_plot(jsonb_populate_record(m, '{"trace": [1]}')) FROM (SELECT gmm_fit('plot_many', '{x,y}', 2, options => gmm_options(max_iter => 2)) AS m) AS s;
SELECT gmm_plot(jsonb_populate_record(m, '{"n_iter": null}')) FROM (SELECT gmm_fit('plot_many', '{x,y}', 2, options => gmm_options(max_iter => 2)) AS m) AS s;
SELECT gmm_plot(m, width => 1) FROM (SELECT gmm_fit('plot_many', '{x,y}', 2, options => gmm_options(max_iter => 2)) AS m) AS s;
CREATE TABLE plot_labels AS SELECT i AS label, i % 7 AS a FROM generate_series(1, 100001) AS i;
SELECT kmeans_plot('plot_labels', '{label,a}', label_column => 'label');
SELECT kmeans_plot('plot_labels', '{label,a}', 1000000);
-- The rights are the caller's: of the columns that are named.
CREATE ROLE plot_role;
GRANT SELECT (x, y) ON plot_many TO plot_role;
SET ROLE plot_role;
SELECT length(kmeans_plot('plot_many', '{x,y}', 2)) > 0 AS drawn;
SELECT kmeans_plot('plot_many', '{x,y}', label_column => 'label');
RESET ROLE;
DROP TABLE plot_rows, plot_shuffled, plot_wanted, plot_many, plot_edges, plot_vectors, plot_labels, "plot <&> ""q""", plot_gaps CASCADE;
DROP ROLE plot_role;

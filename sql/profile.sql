-- kmeans_profile in the terms of the columns, and models that are made of centroids alone.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
CREATE TYPE profile_mood AS ENUM ('low', 'high');
CREATE TABLE profile_rows AS
SELECT 20 + i % 3 * 15 + i % 7 AS age, (20000 * (1 + i % 3) ^ 2)::numeric AS income, (ARRAY['free', 'pro', NULL, 'pro', 'pro'])[1 + (i % 3 * 2 + i % 2) % 5] AS plan, i % 3 > 0 AS newsletter,
    date '2023-01-01' + i % 3 * 200 + i % 30 AS since, timestamp '2024-05-01 12:00' + i % 3 * interval '27 hours' AS seen, timestamptz '2024-05-01 12:00+02' - i % 3 * interval '1 day' AS paid,
    i % 3 * interval '1 day 90 min' AS stay, time '08:00' + i % 3 * interval '1 hour' AS opens, (ARRAY['low', 'high'])[1 + i % 2]::profile_mood AS "a ""mood"""
FROM generate_series(1, 420) AS i;
CREATE TABLE profile_models AS SELECT kmeans_fit('profile_rows', ARRAY['age', 'income', 'plan', 'newsletter', 'since', 'seen', 'paid', 'stay', 'opens', 'a "mood"'], 3,
    options => kmeans_options(standardize => true, init => 'first')) AS m;
SELECT cluster_id, summary FROM profile_models, kmeans_profile(m);
-- Values stay numbers: the means of the matrix that SQL makes.
SELECT feature, value = min(value) OVER (PARTITION BY feature) AS least, abs(overall_mean - wanted) < 1e-9 * abs(wanted) + 1e-12 AS mean
FROM (SELECT avg(age) AS age, avg((plan = 'pro' AND plan IS NOT NULL)::int) AS pro, avg((plan IS NULL)::int) AS none, avg(since - date '1970-01-01') AS since, avg(extract(epoch FROM stay) / 86400) AS stay FROM profile_rows) AS s,
    profile_models, kmeans_profile(m), LATERAL (SELECT CASE feature WHEN 'age' THEN age WHEN 'plan = pro' THEN pro WHEN 'plan IS NULL' THEN none WHEN 'since' THEN since ELSE stay END::float8 AS wanted) AS w
WHERE cluster_id = 0 AND feature IN ('age', 'plan = pro', 'plan IS NULL', 'since', 'stay') ORDER BY feature COLLATE "C";
-- Settings do not matter.
CREATE TABLE profile_texts AS SELECT array_agg(p.summary) AS texts, kmeans_profile_plot(m) AS svg FROM profile_models, kmeans_profile(m) AS p GROUP BY m;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = -9;
SELECT texts = (SELECT array_agg(p.summary) FROM profile_models, kmeans_profile(m) AS p) AS profile, svg = (SELECT kmeans_profile_plot(m) FROM profile_models) AS picture FROM profile_texts;
RESET TimeZone;
RESET DateStyle;
RESET IntervalStyle;
RESET extra_float_digits;
-- Times before Christ, beyond the range of timestamps, below 0; numbers of all magnitudes; values that stand alone.
SELECT type, encoding, value, (SELECT summary FROM kmeans_profile(kmeans_model(ARRAY[[value]], '{x}', sources => ARRAY[ROW(type, encoding, '{}', NULL)::kmeans_source]))) AS summary
FROM (VALUES ('date', 'date', -0.4::float8), ('date', 'date', 19000.6), ('date', 'date', -800000), ('date', 'date', 1e9), ('date', 'date', -1e300), ('timestamp without time zone', 'date', -0.25),
    ('timestamp with time zone', 'date', 0.999999), ('timestamp with time zone', 'date', -2440588), ('interval', 'interval', -1.5), ('interval', 'interval', -1e-9), ('interval', 'interval', 30), ('interval', 'interval', 1e300),
    ('time without time zone', 'interval', 0.999), ('boolean', 'number', 0.0994), ('boolean', 'number', 0.0996), ('boolean', 'number', -1e-15), ('integer', 'number', 0), ('integer', 'number', -0.0004), ('real', 'number', 1234567.8),
    ('numeric', 'number', 1e15), ('money', 'number', 5e-324), ('a type of another version', 'number', 7), ('a type of another version', 'date', 0)) AS v (type, encoding, value);
SELECT feature, summary FROM kmeans_profile(kmeans_model('{{1e9,2019,0,7},{1000000001,2021.25,1e-9,7}}', '{far,year,small,same}'));
-- Directions are no shares and no dates.
SELECT cluster_id, summary FROM kmeans_profile(kmeans_model('{{3,4,0},{0,0,1}}', '{since,plan}', metric => 'cosine', sources => ARRAY[ROW('date', 'date', '{}', NULL)::kmeans_source, ROW('text', 'category', '{free,pro}', NULL)::kmeans_source]));
-- Without names, of an array, and with names that are not as many.
SELECT feature, summary FROM kmeans_profile((SELECT kmeans(ARRAY[i, i * i], 1) FROM generate_series(1, 3) AS i));
SELECT feature, summary FROM kmeans_profile(kmeans_model('{{1,2,3}}', '{f}'));
SELECT feature FROM kmeans_profile(jsonb_populate_record(kmeans_model('{{1,2,3}}', '{f}'), '{"origin": {"features": ["a", "b"]}}'));
SELECT feature, value, overall_mean, deviations, summary FROM kmeans_profile(kmeans_model('{{1,-1}}', '{a,b}', '{10,20}', '{2,5}'));
SELECT pg_temp.outcome('SELECT summary FROM kmeans_profile(kmeans_model(''{{1e308},{1e308}}''))') AS beyond, pg_temp.outcome('SELECT summary FROM kmeans_profile(kmeans_model(''{{1e308}}'', scale => ''{1e300}''))') AS scaled;

-- A model of the centroids of another one has its labels and its profile, and a fit goes on from it.
CREATE TABLE profile_copies AS SELECT m, kmeans_model((m).centroids, (m).origin.features, (m).center, (m).scale, (m).metric, (m).origin.sources) AS c FROM profile_models;
SELECT c IS NOT NULL AS whole, (c).k, (c).d, (c).n, (c).size, (c).within_ss, (c).inertia, (c).n_iter, (c).converged, (c).seed, (c).fills,
    (SELECT array_agg((p.cluster_id, p.feature, p.value, p.summary)) FROM kmeans_profile(m) AS p) = (SELECT array_agg((p.cluster_id, p.feature, p.value, p.summary)) FROM kmeans_profile(c) AS p) AS profile,
    (SELECT array_agg(centroid) FROM kmeans_centroids(m)) = (SELECT array_agg(centroid) FROM kmeans_centroids(c)) AS centroids,
    c::text::kmeans_model = c AND jsonb_populate_record(NULL::kmeans_model, to_jsonb(c)) = c AND jsonb_populate_record(NULL::kmeans_model, to_jsonb(c)) *= c AS stored FROM profile_copies;
SELECT metric, standardize, count(*), count(*) FILTER (WHERE kmeans_predict(m, v) <> kmeans_predict(c, v) OR kmeans_transform(m, v) <> kmeans_transform(c, v)) AS different, bool_and(fits) AS goes_on
FROM (SELECT v.metric, v.standardize, m, c, kmeans_fit('profile_rows', '{age,income}', 3, options => kmeans_options(init_model => m)) = kmeans_fit('profile_rows', '{age,income}', 3, options => kmeans_options(init_model => c)) AS fits
    FROM (VALUES ('l2', true), ('l2', false), ('cosine', true), ('cosine', false)) AS v (metric, standardize),
        LATERAL kmeans_fit('profile_rows', '{age,income}', 3, options => kmeans_options(standardize => v.standardize, metric => v.metric, seed => 3)) AS m, LATERAL kmeans_model((m).centroids, '{age,income}', (m).center, (m).scale, v.metric) AS c) AS s,
    (SELECT ARRAY[age, income]::float8[] AS v FROM profile_rows) AS r GROUP BY metric, standardize ORDER BY metric, standardize;
SELECT kmeans_predict(kmeans_model('{{0,0},{3,4}}'), ARRAY[2.9, 4]) AS label, kmeans_distance(kmeans_model('{{3,4}}', metric => 'cosine'), ARRAY[6, 8]) AS same_direction,
    kmeans_distance(kmeans_model('{{1,1}}', scale => '{2,4}'), ARRAY[2, 4]) AS scaled, kmeans_distance(kmeans_model('{{1,1}}', center => '{2,4}'), ARRAY[3, 5]) AS moved;
-- Lower bounds of arrays do not matter, nor a NULL metric.
SELECT kmeans_model('[5:6][0:1]={{1,2},{3,4}}', '[0:1]={a,b}', '[7:8]={0,1}', '[3:4]={1,2}', NULL) = kmeans_model('{{1,2},{3,4}}', '{a,b}', '{0,1}', '{1,2}') AS same;
-- The function has the type's name: casts, and a column of that name, go on meaning what they did.
SELECT (m::text)::kmeans_model = m AS text, CAST(m::text AS kmeans_model) = m AS standard, '(1,1,{{2}},{3},{0},0,1,t,3,l2,0,{},{},,{},)'::kmeans_model AS literal, ROW(1, 1, '{{2}}', '{3}', '{0}', 0, 1, true, 3, 'l2', 0, '{}', '{}', NULL, '{}', NULL)::kmeans_model AS composite
FROM profile_models;
SELECT (s).kmeans_model, kmeans_model(s) AS field FROM (SELECT 5 AS kmeans_model) AS s;

-- Wrong input.
SELECT arguments, pg_temp.outcome(format('SELECT kmeans_model(%s)', arguments)) AS outcome FROM unnest(ARRAY['NULL', '''{}''', '''{1,2}''', '''{{{1,2}}}''', '''{{1,NULL}}''', '''{{1,NaN}}''', '''{{1,-Infinity}}''',
    '''{{1,2}}'', ''{}''', '''{{1,2}}'', ''{a,NULL}''', '''{{1,2}}'', ''{a,b,c}''', '''{{1,2}}'', ''{{a,b}}''', '''{{1}}'', center => ''{1,2}''', '''{{1}}'', center => ''{NULL}''', '''{{1}}'', center => ''{{1}}''',
    '''{{1}}'', scale => ''{Infinity}''', '''{{1}}'', scale => ''{0}''', '''{{1}}'', scale => ''{-1}''', '''{{1}}'', center => ''{1}'', scale => ''{1,2}''', '''{{1}}'', metric => ''l1''', '''{{1,2},{0,0}}'', metric => ''cosine''',
    '''{{1}}'', sources => ARRAY[ROW(''date'', ''date'', ''{}'', NULL)::kmeans_source]', '''{{1}}'', ''{a}'', sources => ARRAY[NULL::kmeans_source]', '''{{1,2}}'', ''{a,b}'', sources => ARRAY[ROW(''date'', ''date'', ''{}'', NULL)::kmeans_source]',
    '''{{1,2}}'', ''{a}'', sources => ARRAY[ROW(''date'', ''date'', ''{}'', NULL)::kmeans_source]', '''{{1}}'', ''{a}'', sources => ARRAY[ROW(''date'', ''day'', ''{}'', NULL)::kmeans_source]',
    '''{{1,2}}'', ''{a}'', sources => ARRAY[ROW(''text'', ''category'', ''{b,a}'', NULL)::kmeans_source]']) AS arguments;
DROP TABLE profile_rows, profile_models, profile_texts, profile_copies;
DROP TYPE profile_mood;

-- Bits as features: k-means by Hamming distance, beside the same in SQL and beside l2 over arrays of 0 and 1.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/sql/outcome.psql
SET pg_kmeans.backend = auto; -- the CPU alone has rows of bits
-- 300 rows around 5 rows of so many bits, each of which is turned in one of 8 cases, with weights, and the same as real[].
CREATE FUNCTION pg_temp.drawn(bits integer, seed text) RETURNS bit varying LANGUAGE sql IMMUTABLE AS
$$SELECT substring(string_agg(('x' || md5(seed || i))::bit(128)::text, '' ORDER BY i) FROM 1 FOR bits)::bit varying FROM generate_series(0, (bits - 1) / 128) AS i$$;
CREATE FUNCTION pg_temp.as_array(b bit varying) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$SELECT string_to_array(b::text, NULL)::real[]$$;
CREATE FUNCTION pg_temp.as_bits(a double precision[]) RETURNS bit varying LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(x::integer::text, '' ORDER BY n)::bit varying FROM unnest(a) WITH ORDINALITY AS u (x, n)$$;
CREATE TABLE hamming_rows AS
SELECT bits, i, b, pg_temp.as_array(b) AS a, w FROM (
    SELECT bits, i, pg_temp.drawn(bits, 'centre' || i % 5) # (pg_temp.drawn(bits, 'a' || i) & pg_temp.drawn(bits, 'b' || i) & pg_temp.drawn(bits, 'c' || i)) AS b, 1 + i % 3 AS w
    FROM unnest(ARRAY[1, 7, 8, 63, 64, 65, 100, 130, 300, 1100]) AS bits, generate_series(1, 300) AS i) AS s;

-- Lloyd's iterations in SQL: the nearest centroid, the first on a tie; then the majority of each bit by weight, 0 on a tie.
CREATE FUNCTION pg_temp.lloyd(rows text, INOUT centroids bit varying[], steps integer, OUT inertia numeric, OUT sizes bigint[]) LANGUAGE plpgsql AS $$
DECLARE
    labels text := format('SELECT r.b, r.w, c.j, c.distance FROM %s AS r, LATERAL (SELECT j - 1 AS j, bit_count(r.b # c) AS distance FROM unnest($1) WITH ORDINALITY AS u (c, j) ORDER BY distance, j LIMIT 1) AS c', rows);
BEGIN
    FOR step IN 1..steps LOOP
        EXECUTE format('SELECT array_agg(coalesce(fresh, $1[j + 1]) ORDER BY j) FROM generate_series(0, cardinality($1) - 1) AS j LEFT JOIN (
            SELECT j, string_agg(CASE WHEN 2 * ones > mass THEN ''1'' ELSE ''0'' END, '''' ORDER BY f)::bit varying AS fresh
            FROM (SELECT j, f, sum(w) AS mass, sum(w * get_bit(b, f)) AS ones FROM (%s) AS l, generate_series(0, length(b) - 1) AS f GROUP BY j, f) AS s GROUP BY j) AS m USING (j)', labels) INTO centroids USING centroids;
    END LOOP;
    EXECUTE format('SELECT sum(w * distance) FROM (%s) AS l', labels) INTO inertia USING centroids;
    EXECUTE format('SELECT array_agg(coalesce(n, 0) ORDER BY j) FROM generate_series(0, cardinality($1) - 1) AS j LEFT JOIN (SELECT j, count(*) AS n FROM (%s) AS l GROUP BY j) AS s USING (j)', labels) INTO sizes USING centroids;
END$$;
-- First centroids are rows 1 to 4, where no cluster becomes empty.
SELECT bits, weighted, count(*) AS fits, bool_and(centroids = found AND inertia = (m).inertia AND sizes = (m).size) AS as_in_sql, max((m).n_iter) AS n_iter
FROM (SELECT bits, array_agg(b ORDER BY i) AS firsts FROM hamming_rows WHERE i <= 4 AND bits > 8 GROUP BY bits) AS f, unnest(ARRAY[false, true]) AS weighted, unnest(ARRAY[1, 2, 20]) AS steps,
    LATERAL pg_temp.lloyd(format('(SELECT b, %s AS w FROM hamming_rows WHERE bits = %s)', CASE WHEN weighted THEN 'w' ELSE '1' END, bits), firsts, steps) AS l,
    LATERAL (SELECT kmeans(b, 4, kmeans_options(init_centroids => (SELECT array_agg(pg_temp.as_array(c)::float8[]) FROM unnest(firsts) AS c), metric => 'hamming', max_iter => steps, tol => 0),
                CASE WHEN weighted THEN w ELSE 1 END) AS m FROM hamming_rows WHERE bits = f.bits) AS k,
    LATERAL (SELECT array_agg(pg_temp.as_bits(c.centroid) ORDER BY cluster_id) AS found FROM kmeans_centroids(m) AS c) AS c
GROUP BY bits, weighted ORDER BY bits, weighted;
-- With a cluster for each row, centroids stand in the order in which they were drawn: that of the same rows as real[], with weights too.
SELECT bits, count(*) AS fits, bool_and((h).centroids = (l).centroids AND (h).k = (l).k AND (h).size = (l).size AND (h).inertia = 0) AS as_real, min((h).k) AS least_k
FROM (VALUES (7), (64), (65), (300), (1100)) AS s (bits), unnest(ARRAY['k-means++', 'random', 'first', 'auto']) AS init, unnest(ARRAY[0, 1]) AS seed, LATERAL (
    SELECT kmeans(b, 300, kmeans_options(metric => 'hamming', init => init, seed => seed), w) AS h, kmeans(a, 300, kmeans_options(init => init, seed => seed), w) AS l FROM hamming_rows AS r WHERE r.bits = s.bits) AS m
GROUP BY bits ORDER BY bits;
SELECT bits, bool_and((h).centroids = (l).centroids) AS as_real FROM (VALUES (64), (100), (300)) AS s (bits), LATERAL (
    SELECT kmeans(b, 300, kmeans_options(metric => 'hamming')) AS h, kmeans(a, 300) AS l FROM hamming_rows AS r WHERE r.bits = s.bits) AS m GROUP BY bits ORDER BY bits;
-- A row of weight 3 counts as three rows.
SELECT bool_and((weighted).centroids = (repeated).centroids AND (weighted).inertia = (repeated).inertia) AS same FROM unnest(ARRAY[7, 65, 300]) AS bits, LATERAL (
    SELECT kmeans(b, 4, o, w) AS weighted FROM (SELECT b, w, kmeans_options(metric => 'hamming', init_centroids => (SELECT array_agg(pg_temp.as_array(b)::float8[] ORDER BY i) FROM hamming_rows AS f WHERE f.bits = s.bits AND i <= 4)) AS o FROM hamming_rows AS s WHERE s.bits = bits.bits) AS r) AS a, LATERAL (
    SELECT kmeans(b, 4, kmeans_options(metric => 'hamming', init_centroids => (SELECT array_agg(pg_temp.as_array(b)::float8[] ORDER BY i) FROM hamming_rows AS f WHERE f.bits = bits.bits AND i <= 4))) AS repeated FROM hamming_rows AS s, generate_series(1, w) WHERE s.bits = bits.bits) AS b;
-- Majorities: of 2 and 1, of weights 1 and 2.5, and a tie.
SELECT (kmeans(b, 1, kmeans_options(metric => 'hamming'))).centroids AS most, (kmeans(b, 1, kmeans_options(metric => 'hamming'), w)).centroids AS heaviest, (kmeans(b, 1, kmeans_options(metric => 'hamming')) FILTER (WHERE w < 2)).centroids AS tie
FROM (VALUES (B'110', 1), (B'100', 1.5), (B'011', 2.5)) AS v (b, w);
-- A cluster that no row chooses gets the row that lies farthest, which its cluster loses.
SELECT (kmeans(b, 2, kmeans_options(metric => 'hamming', max_iter => 1, init_centroids => '{{0,0,0,0,0,0},{1,0,0,0,0,0}}'))).centroids FROM (VALUES (B'000001'), (B'000010'), (B'000100'), (B'011111')) AS v (b);
-- Light rows beside heavy ones keep their say.
SELECT (kmeans(b, 1, kmeans_options(metric => 'hamming'), w)).centroids FROM (VALUES (B'10', 1e15), (B'01', 1e15), (B'01', 1)) AS v (b, w);

-- The functions over tables.
CREATE TABLE hamming_table AS SELECT i, b::bit(100) AS b, b AS v, a, w, i % 2 = 0 AS even FROM hamming_rows WHERE bits = 100;
INSERT INTO hamming_table (i) VALUES (1001), (1002);
CREATE TABLE hamming_models AS SELECT kmeans_fit('hamming_table', '{b}', 4, kmeans_options(metric => 'hamming', n_init => 3)) AS m;
SELECT (m).k, (m).d, (m).n, (m).metric, (m).converged, (m).center, (m).scale, (m).fills, (m).origin.features, (m).origin.sources[1].type, (m).origin.sources[1].encoding, (m).origin.options->>'init' AS init FROM hamming_models;
SELECT count(*), bool_and(cluster_id = kmeans_predict(m, b) AND cluster_id = kmeans_predict(m, v) AND cluster_id = kmeans_predict(m, a) AND cluster_id = kmeans_predict(m, t)) AS predicted,
    bool_and(distance = kmeans_distance(m, b) AND distance = (SELECT min(bit_count(b # pg_temp.as_bits(centroid))) FROM kmeans_centroids(m)) AND distance = (kmeans_transform(m, b))[cluster_id + 1]) AS distances, sum(distance) = min((m).inertia) AS inertia
FROM kmeans_labels('hamming_table', '{b}', 4, kmeans_options(metric => 'hamming', n_init => 3)) AS l JOIN hamming_table AS t ON t.ctid = l.row_ctid, hamming_models WHERE b IS NOT NULL;
SELECT count(*) FROM kmeans_labels('hamming_table', '{b}', 4, kmeans_options(metric => 'hamming')) WHERE cluster_id IS NULL;
SELECT bool_and((m).centroids = (fit).centroids AND (m).inertia = (fit).inertia) AS same, count(*) FROM hamming_models, (
    SELECT kmeans_fit('hamming_table', '{v}', 4, kmeans_options(metric => 'hamming', n_init => 3)) UNION ALL
    SELECT kmeans_fit('hamming_table', '{v}', 4, kmeans_options(metric => 'hamming', n_init => 3), nulls => 'mean') UNION ALL
    SELECT kmeans_fit('hamming_table', '{b | B''0''::bit(100)}', 4, kmeans_options(metric => 'hamming', n_init => 3), memory => 'resident') UNION ALL
    SELECT kmeans(b, 4, kmeans_options(metric => 'hamming', n_init => 3)) FROM (SELECT * FROM hamming_table ORDER BY md5(i::text)) AS t) AS f (fit);
SELECT kmeans_load('hamming_table', '{b}');
SELECT (kmeans_fit('hamming_table', '{b}', 4, kmeans_options(metric => 'hamming', n_init => 3), memory => 'loaded')).centroids = (m).centroids AS loaded FROM hamming_models;
SELECT pg_temp.outcome($$SELECT kmeans_fit('hamming_table', '{b}', 4, memory => 'loaded')$$) AS loaded_l2;
SELECT kmeans_unload();
SELECT (kmeans_fit('hamming_table', '{b}', 3, kmeans_options(metric => 'hamming'), weight => 'w', filter => 'even')).centroids = (kmeans(b, 3, kmeans_options(metric => 'hamming'), w) FILTER (WHERE even)).centroids AS weighted FROM hamming_table;
SELECT (kmeans_cluster('hamming_table', '{b}', 4, kmeans_options(metric => 'hamming', n_init => 3))).inertia = (m).inertia AS clustered FROM hamming_models;
SELECT count(*), bool_and(cluster_id IS NOT DISTINCT FROM kmeans_predict(m, b)) AS written FROM hamming_table, hamming_models;
SELECT bool_and(kmeans_label = l) AS window FROM (SELECT kmeans_predict(kmeans(b, 4, kmeans_options(metric => 'hamming')) OVER (), b) AS l, kmeans_label(b, 4, kmeans_options(metric => 'hamming')) OVER () FROM hamming_table) AS w WHERE l IS NOT NULL;
-- Going on from a model; another option follows from it.
SELECT (n).centroids = (m).centroids AS rests, (n).metric, (n).n_iter FROM (SELECT m, kmeans_fit('hamming_table', '{b}', 4, kmeans_options(init_model => m)) AS n FROM hamming_models) AS s;
-- Outliers: a row of twice the mean distance and more.
SELECT count(*) > 0 AS some, bool_and(distance = kmeans_distance(m, b) AND o.cluster_id = kmeans_predict(m, b) AND abs(score - distance / ((m).within_ss[o.cluster_id + 1] / (m).size[o.cluster_id + 1])) < 1e-12) AS scores, count(*) FILTER (WHERE score > 1.3) = (
    SELECT count(*) FROM hamming_table AS u, hamming_models AS n WHERE kmeans_distance(n.m, u.b) > 1.3 * (n.m).within_ss[kmeans_predict(n.m, u.b) + 1] / (n.m).size[kmeans_predict(n.m, u.b) + 1]) AS all_found
FROM hamming_models, kmeans_outliers('hamming_table', '{b}', m, 1.1) AS o JOIN hamming_table AS t ON t.ctid = o.row_ctid;
-- Few rows: one, the same ones, fewer than k, one bit.
SELECT name, (m).k, (m).centroids, (m).size, (m).inertia FROM (VALUES ('one', ARRAY[B'101']), ('same', ARRAY[B'01', B'01', B'01']), ('two', ARRAY[B'01', B'10', B'01']), ('bit', ARRAY[B'1', B'0', B'1']), ('zeros', ARRAY[B'000', B'000'])) AS v (name, list),
    LATERAL (SELECT kmeans(b, 3, kmeans_options(metric => 'hamming')) AS m FROM unnest(list) AS b) AS f;
SELECT kmeans(NULL::bit(3), 2, kmeans_options(metric => 'hamming')) IS NULL AS none, (kmeans_fit('hamming_table', '{b}', 2, kmeans_options(metric => 'hamming'), filter => 'i < 0')) IS NULL AS empty;
-- Whatever threads and workers do it; groups beside one another, too.
CREATE TABLE hamming_many AS SELECT i, i % 5 AS g, b FROM (SELECT i, (('x' || md5(i % 9000 || ''))::bit(128) || ('x' || md5('b' || i % 700))::bit(128) || ('x' || md5('c' || i % 40))::bit(128))::bit(384) AS b FROM generate_series(1, 20000) AS i) AS s;
CREATE TABLE hamming_found (how text, m kmeans_model);
CREATE PROCEDURE pg_temp.note(how text) LANGUAGE sql AS $$INSERT INTO hamming_found SELECT how, kmeans_fit('hamming_many', '{b}', 30, kmeans_options(metric => 'hamming', seed => 7))$$;
SET pg_kmeans.cpu_threads = 1;
CALL pg_temp.note('1 thread');
SET pg_kmeans.cpu_threads = 5;
CALL pg_temp.note('5 threads');
RESET pg_kmeans.cpu_threads;
SET max_parallel_workers_per_gather = 0;
CALL pg_temp.note('one process');
RESET max_parallel_workers_per_gather;
INSERT INTO hamming_found SELECT 'aggregate', kmeans(b, 30, kmeans_options(metric => 'hamming', seed => 7)) FROM hamming_many;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
INSERT INTO hamming_found SELECT 'parallel aggregate', (SELECT kmeans(b, 30, kmeans_options(metric => 'hamming', seed => 7)) FROM hamming_many);
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
SELECT how, ROW((m).centroids, (m).size, (m).within_ss, (m).n_iter) = ROW((first).centroids, (first).size, (first).within_ss, (first).n_iter) AS same FROM hamming_found, (SELECT m FROM hamming_found WHERE how = '1 thread') AS f (first) ORDER BY how;
SELECT bool_and(one.m = all_groups.m) AS groups FROM (SELECT g, kmeans(b, 6, kmeans_options(metric => 'hamming')) AS m FROM hamming_many GROUP BY g) AS all_groups, LATERAL (SELECT kmeans(b, 6, kmeans_options(metric => 'hamming')) AS m FROM hamming_many AS h WHERE h.g = all_groups.g) AS one;

-- Models by hand.
SELECT kmeans_predict(m, B'110') AS bits, kmeans_distance(m, '{1,1,0}') AS numbers, kmeans_transform(m, B'011') AS transformed FROM kmeans_model('{{1,0,0},{0,1,1}}', metric => 'hamming') AS m;
SELECT * FROM kmeans_match(kmeans_model('{{1,0,0},{0,1,1}}', metric => 'hamming'), kmeans_model('{{0,1,0},{1,1,0}}', metric => 'hamming'));
SELECT summary FROM kmeans_profile(kmeans_fit('hamming_table', '{b}', 1, kmeans_options(metric => 'hamming'))) LIMIT 2;

-- What it does without, and wrong input.
SELECT call, pg_temp.outcome('SELECT ' || call) AS outcome FROM unnest(ARRAY[
    $$kmeans_fit('hamming_table', '{b}', 2)$$, $$kmeans_fit('hamming_table', '{a}', 2, kmeans_options(metric => 'hamming'))$$, $$kmeans_fit('hamming_table', '{b,w}', 2, kmeans_options(metric => 'hamming'))$$,
    $$kmeans_fit('hamming_table', '{b}', 2, kmeans_options(metric => 'hamming'), memory => 'stream')$$, $$kmeans(b, 2) FROM hamming_table$$, $$kmeans(a, 2, kmeans_options(metric => 'hamming')) FROM hamming_table$$,
    $$kmeans_sweep('hamming_table', '{b}', 1, 3, kmeans_options(metric => 'hamming'))$$, $$kmeans_tree('hamming_table', '{b}', '{2}', options => kmeans_options(metric => 'hamming'))$$, $$kmeans_plot('hamming_table', '{b}', 2, kmeans_options(metric => 'hamming'))$$,
    $$gmm_fit('hamming_table', '{b}', 2)$$, $$gmm(b, 2) FROM hamming_table$$, $$pca_fit('hamming_table', '{b}')$$, $$kmeans_update(m, b) FROM hamming_table, hamming_models$$, $$kmeans_outliers('hamming_table', '{b}', kmeans_model('{{0}}'))$$,
    $$kmeans(b, 2, kmeans_options(metric => 'hamming', init_centroids => '{{1,0.5},{0,1}}')) FROM (VALUES (B'10'), (B'01')) AS v (b)$$, $$kmeans(b, 1, kmeans_options(metric => 'hamming', init_centroids => '{{1,0,0}}')) FROM (VALUES (B'10')) AS v (b)$$,
    $$kmeans(b, 2, kmeans_options(metric => 'hamming')) FROM (VALUES (B'10'::bit varying), (B'101')) AS v (b)$$, $$kmeans(b, 2, kmeans_options(metric => 'hamming')) FROM (VALUES (B''::bit varying)) AS v (b)$$, $$kmeans(B'1', 0, kmeans_options(metric => 'hamming'))$$,
    $$kmeans(B'1', 1, kmeans_options(metric => 'hamming'), -1)$$, $$kmeans_predict(m, B'101') FROM hamming_models$$, $$kmeans_predict(kmeans_model('{{1,0}}', metric => 'hamming'), '{0.5,1}')$$, $$kmeans_predict(kmeans_model('{{1,0}}', metric => 'hamming'), '{NaN,1}')$$,
    $$kmeans_model('{{1,2}}', metric => 'hamming')$$, $$kmeans_model('{{1,0}}', metric => 'hamming', scale => '{2,1}')$$, $$kmeans_match(kmeans_model('{{1,0}}', metric => 'hamming'), kmeans_model('{{1,0}}'))$$]
    || ARRAY(SELECT format($$kmeans(b, 2, kmeans_options(metric => 'hamming', %s)) FROM hamming_table$$, o) FROM unnest(ARRAY[$$init => 'k-means||'$$, $$init => 'optimal'$$, 'standardize => true', 'refine => true', 'min_size => 2', 'max_size => 0.9', 'batch_size => 10', 'max_radius => 2']) AS o)) AS call;
SET pg_kmeans.backend = 'cuda';
SELECT left(pg_temp.outcome($$SELECT kmeans(b, 2, kmeans_options(metric => 'hamming')) FROM hamming_table$$), 6) AS on_gpu;
SET pg_kmeans.backend = auto;
SET pg_kmeans.memory_limit = '1MB';
SELECT pg_temp.outcome($$SELECT kmeans_fit('hamming_many', '{b}', 30, kmeans_options(metric => 'hamming'))$$) AS beyond;
RESET pg_kmeans.memory_limit;
SET statement_timeout = '300ms';
SELECT kmeans_fit('hamming_many', '{b}', 2000, kmeans_options(metric => 'hamming', n_init => 1000));
RESET statement_timeout;
DROP TABLE hamming_rows, hamming_table, hamming_models, hamming_many, hamming_found;

-- The error table: what is wrong with the input, and its SQLSTATE, in every function that can meet it.
BEGIN;
SELECT plan(104);

CREATE TABLE code_rows (id serial, f8 double precision[], f4 real[], x real, y double precision, t text, j jsonb);
CREATE MATERIALIZED VIEW code_matview AS SELECT 1::real AS x;
CREATE VIEW code_view AS SELECT 1::real AS x;
CREATE SEQUENCE code_sequence;

-- Bad rows: by array in the aggregates and table functions.
CREATE FUNCTION check_row(bad text, code text, what text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call text;
BEGIN
    TRUNCATE code_rows;
    INSERT INTO code_rows (f8, f4) VALUES ('{1,2}', '{1,2}');
    EXECUTE format('INSERT INTO code_rows (f8, f4) VALUES (%L, %L)', bad, bad);
    FOREACH call IN ARRAY ARRAY[
        'SELECT kmeans(f8, 1) FROM code_rows', 'SELECT kmeans(f4, 1) FROM code_rows',
        'SELECT kmeans_label(f8, 1) OVER () FROM code_rows',
        'SELECT kmeans_predict((SELECT kmeans(f8, 1) FROM code_rows WHERE id = (SELECT min(id) FROM code_rows)), f8) FROM code_rows',
        'SELECT kmeans_step(f8, ''{{0,0}}'') FROM code_rows',
        'SELECT kmeans_fit(''code_rows'', ''{f8}'', 1)', 'SELECT kmeans_labels(''code_rows'', ''{f4}'', 1)',
        'SELECT kmeans_cluster(''code_rows'', ''{f8}'', 1)']
    LOOP
        RETURN NEXT throws_ok(call, code, NULL, what || ': ' || call);
    END LOOP;
END$$;
SELECT check_row('{1,NULL}', '22004', 'null element');
SELECT check_row('{1,NaN}', '22023', 'NaN');
SELECT check_row('{Infinity,1}', '22023', 'infinite');
SELECT check_row('{1,2,3}', '2202E', 'another length');
SELECT check_row('{}', '2202E', 'empty');
SELECT check_row('{{1,2},{3,4}}', '2202E', 'two-dimensional');

-- k and options
TRUNCATE code_rows;
INSERT INTO code_rows (f8, x) VALUES ('{1,2}', 1), ('{3,4}', 2);
CREATE FUNCTION check_call(options text, code text, k text DEFAULT '1') RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT throws_ok(format('SELECT kmeans(f8, %s%s) FROM code_rows', k, ', kmeans_options(' || options || ')'), code, NULL,
        format('kmeans: k = %s %s', k, options));
    RETURN NEXT throws_ok(format('SELECT kmeans_fit(''code_rows'', ''{f8}'', %s%s)', k, ', options => kmeans_options(' || options || ')'), code, NULL,
        format('kmeans_fit: k = %s %s', k, options));
END$$;
SELECT check_call(NULL, '22023', k) FROM (VALUES ('NULL'), ('0'), ('-5'), ('2147483648')) AS v (k);
SELECT check_call(options, '22023') FROM (VALUES ('init => ''nonsense'''), ('n_init => 0'), ('max_iter => 0'), ('tol => -1'),
    ('tol => ''NaN'''), ('metric => ''l1'''), ('init_centroids => ''{1,2}'''), ('init_centroids => ''{{1,2,3}}'''),
    ('init_centroids => ''{{1,2},{3,4}}'''), ('max_radius => -1'), ('max_radius => 1, batch_size => 2')) AS v (options);
SELECT throws_ok(call, code, NULL, call) FROM (VALUES
    ($$SELECT kmeans_tree('code_rows', '{f8}', '{3,1}')$$, '22023'), ($$SELECT kmeans_tree('code_rows', '{f8}', NULL)$$, '22023'),
    ($$SELECT kmeans_tree('code_rows', '{f8}', 'bisecting')$$, '22023'), ($$SELECT kmeans_tree_fit('code_rows', '{f8}', NULL)$$, '22023'), ($$SELECT kmeans_tree('code_rows', '{f8}', '{2}', 3)$$, '22023'),
    ($$SELECT kmeans_tree('code_rows', '{f8}', '{2}', options => kmeans_options(metric => 'l1'))$$, '22023'), ($$SELECT kmeans_tree('nowhere', '{f8}', '{2}')$$, '42P01'),
    ($$SELECT kmeans_tree('code_rows', '{f8}', '{2}', memory => 'loaded')$$, '55000'), ($$SELECT kmeans_sweep('code_rows', '{f8}', 1, 2, sample => -1)$$, '22023'),
    ($$SELECT gmm_sweep('code_rows', '{f8}', 2, 1)$$, '22023'), ($$SELECT gmm_sweep('code_rows', '{f8}', NULL, 1)$$, '22023'),
    ($$SELECT gmm_sweep('code_rows', '{j}', 1, 2)$$, '42804'), ($$SELECT gmm_sweep('code_rows', NULL, 1, 2)$$, '22004')) AS v (call, code);

-- Names
SELECT throws_ok($$SELECT kmeans_fit('nowhere', '{x}', 1)$$, '42P01', NULL, 'unknown table');
SELECT throws_ok($$SELECT kmeans_fit('nowhere.code_rows', '{x}', 1)$$, '3F000', NULL, 'unknown schema');
SELECT throws_ok($$SELECT kmeans_fit('code_rows', '{nowhere}', 1)$$, '42703', NULL, 'unknown column');
SELECT throws_ok($$SELECT kmeans_fit('code_rows', '{j}', 1)$$, '42804', NULL, 'a column that is no feature');
SELECT throws_ok($$SELECT kmeans_fit('code_sequence', '{last_value}', 1)$$, '42809', NULL, 'a sequence');
SELECT throws_ok($$SELECT kmeans_labels('code_view', '{x}', 1)$$, '42809', NULL, 'labels of a view');
SELECT throws_ok($$SELECT kmeans_cluster('code_matview', '{x}', 1)$$, '42809', NULL, 'update of a materialized view');
SELECT throws_ok($$SELECT kmeans_cluster('code_rows', '{x}', 1, label_column => 't')$$, '42804', NULL, 'a label column that is no integer');
SELECT throws_ok($$SELECT kmeans_cluster('code_rows', '{id}', 1, label_column => 'id')$$, '22023', NULL, 'a label column among the features');
SELECT throws_ok($$SELECT kmeans_merge('(1,1,0,0,{1},"{{1}}",,0)'::kmeans_sums)$$, '22023', NULL, 'kmeans_sums that no rows have');
SELECT throws_ok($$SELECT kmeans_step(f8, '{{1,2},{3,NULL}}') FROM code_rows$$, '22004', NULL, 'a null in centroids');
SELECT throws_ok($$SELECT kmeans_step(f8, '{1,2}') FROM code_rows$$, '22023', NULL, 'centroids of one dimension');
SELECT throws_ok($$SET pg_kmeans.backend = 'abacus'$$, '22023', NULL, 'an unknown backend');

SELECT * FROM finish();
ROLLBACK;

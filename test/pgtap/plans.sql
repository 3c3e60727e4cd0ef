-- Plans and markings: what may run in parallel does, and gives the same.
BEGIN;
SELECT plan(28);

CREATE TABLE plan_rows AS
SELECT i % 7 AS g, ARRAY[sin(i), cos(i * 3), (i % 1000) * 1e3] AS f, (i % 5)::double precision AS w
FROM generate_series(1, 60000) AS i;
ANALYZE plan_rows;
CREATE TABLE plan_sums AS
SELECT kmeans_step(f, '{{0,0,0},{0,0,500000},{0,0,900000}}') AS s FROM plan_rows GROUP BY w, g;
ANALYZE plan_sums;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    lines text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        lines := lines || line || E'\n';
    END LOOP;
    RETURN lines;
END$$;
CREATE FUNCTION run(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$BEGIN RETURN QUERY EXECUTE query; END$$;

CREATE TABLE plan_queries (name text, query text);
INSERT INTO plan_queries VALUES
('step', $$SELECT kmeans_step(f, '{{0,0,0},{0,0,500000},{0,0,900000}}')::text FROM plan_rows$$),
('weighted step', $$SELECT kmeans_step(f, '{{0,0,0},{0,0,500000},{0,0,900000}}', w)::text FROM plan_rows$$),
('grouped step', $$SELECT g || kmeans_step(f, '{{0,0,0},{0,0,500000},{0,0,900000}}')::text FROM plan_rows GROUP BY g ORDER BY g$$),
('merge', $$SELECT kmeans_merge(s)::text FROM plan_sums$$);
CREATE TABLE plan_serial AS SELECT name, run(query) AS result FROM plan_queries;

SET LOCAL parallel_setup_cost = 0; SET LOCAL cpu_operator_cost = 0.00001;
SET LOCAL parallel_tuple_cost = 0.01;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 2;

SELECT matches(plan_of('SELECT kmeans(f, 3) FROM plan_rows'), 'Partial Aggregate', 'kmeans is aggregated in parallel');
SELECT matches(plan_of('SELECT kmeans(f, 3, NULL, w) FROM plan_rows'), 'Partial Aggregate', 'kmeans with weights likewise');
SELECT matches(plan_of(query), 'Partial (Hash|Group)?Aggregate', name || ' is aggregated in parallel') FROM plan_queries;
SELECT matches(plan_of('SELECT pca(f) FROM plan_rows'), 'Partial Aggregate', 'pca is aggregated in parallel');
SELECT matches(plan_of('SELECT g, pca(f, pca_options(2)) FROM plan_rows GROUP BY g'), 'Partial (Hash|Group)?Aggregate', 'pca in groups likewise');
SELECT matches(plan_of('SELECT kmeans_predict((SELECT kmeans(f, 3) FROM plan_rows), f) FROM plan_rows'), 'Gather',
    'kmeans_predict runs in workers');

-- Both halves of a partitionwise aggregate below the Gather: the workers each run the subquery.
CREATE TABLE plan_parts (g integer, f real[]) PARTITION BY LIST (g);
CREATE TABLE plan_part0 PARTITION OF plan_parts FOR VALUES IN (0) WITH (parallel_workers = 0);
CREATE TABLE plan_part1 PARTITION OF plan_parts FOR VALUES IN (1) WITH (parallel_workers = 0);
INSERT INTO plan_parts SELECT i % 2, ARRAY[i, i] FROM generate_series(1, 10000) AS i;
ANALYZE plan_parts;
SET LOCAL enable_partitionwise_aggregate = on;
SET LOCAL enable_parallel_append = off;
SELECT matches(plan_of('SELECT count(*) FROM plan_rows WHERE g NOT IN (SELECT (kmeans(f, 1)).n FROM plan_parts)'),
    'Gather.*SubPlan.*Finalize Aggregate.*Partial Aggregate', 'a partitionwise aggregate may lie below a Gather');
SELECT results_eq('SELECT count(*) FROM plan_rows WHERE g NOT IN (SELECT (kmeans(f, 1)).n FROM plan_parts)',
    ARRAY[60000::bigint], 'and finds its rows there');
RESET enable_partitionwise_aggregate;
RESET enable_parallel_append;

-- The sums carry what float64 rounds away, so not even the last digit tells how rows were divided.
CREATE TABLE plan_parallel AS SELECT name, run(query) AS result FROM plan_queries;
SELECT bag_eq(format('SELECT result FROM plan_serial WHERE name = %L', name),
    format('SELECT result FROM plan_parallel WHERE name = %L', name), name || ' gives the same in parallel')
FROM plan_queries;

SELECT matches(plan_of('SELECT gmm(f, 2, gmm_options(means_init => ''{{0,0,1},{0,0,9}}'')) FROM plan_rows'), 'Partial Aggregate', 'gmm is aggregated in parallel');
SELECT ok(max(abs(a - b)) < 1e-6, 'gmm gives nearly the same in parallel')
FROM (SELECT (gmm(f, 2, gmm_options('diag', max_iter => 3, weights_init => '{0.5,0.5}', means_init => '{{0,0,250000},{0,0,750000}}', precisions_init => '{{1,1,1e-10},{1,1,1e-10}}'))).means AS parallel,
    (SELECT (gmm(f, 2, gmm_options('diag', max_iter => 3, weights_init => '{0.5,0.5}', means_init => '{{0,0,250000},{0,0,750000}}', precisions_init => '{{1,1,1e-10},{1,1,1e-10}}') ORDER BY g)).means FROM plan_rows) AS serial FROM plan_rows) AS t,
    unnest(parallel, serial) AS u (a, b);

-- Moments are float64: the parts agree to a rounding, whatever they are.
SELECT ok(max(abs(a - b)) < 1e-9, 'pca gives nearly the same in parallel')
FROM (SELECT (pca(f)).components AS parallel, (SELECT (pca(f ORDER BY g)).components FROM plan_rows) AS serial FROM plan_rows) AS t,
    unnest(parallel, serial) AS u (a, b);
SELECT is((SELECT typtype FROM pg_type WHERE oid = (SELECT aggtranstype FROM pg_aggregate WHERE aggfnoid = 'pca(real[])'::regprocedure)), 'b',
    'the state of pca is a type that can travel between nodes');

-- The promise itself: 1e-12.
SELECT ok(bool_and(abs(a - b) <= 1e-12 * abs(b)), 'sums agree with numeric arithmetic to 1e-12')
FROM (SELECT kmeans_sums_features(kmeans_step(f, '{{0,0,0}}')) AS sums FROM plan_rows) AS s,
    (SELECT sum(f[1]::numeric)::float8 AS x, sum(f[2]::numeric)::float8 AS y, sum(f[3]::numeric)::float8 AS z FROM plan_rows) AS n,
    LATERAL (VALUES (sums[1][1], x), (sums[1][2], y), (sums[1][3], z)) AS v (a, b);

-- Groups of few rows: a hash aggregate fits them together, and no row goes from process to process. Sorted, each
-- is fitted by itself, and is the same.
CREATE TABLE plan_tenants AS SELECT i % 500 AS tenant, ARRAY[sin(i), cos(i * 7)]::real[] AS f FROM generate_series(1, 20000) AS i;
ANALYZE plan_tenants;
RESET parallel_tuple_cost;
RESET cpu_operator_cost;
SET LOCAL pg_kmeans.max_threads = 4;
SET LOCAL pg_kmeans.cpu_threads = 4;
CREATE TABLE plan_fits (name text, query text);
INSERT INTO plan_fits VALUES
('clusters', $$SELECT ROW(tenant, kmeans(f, 2, kmeans_options(init_centroids => '{{0,1},{0,-1}}')))::text FROM plan_tenants GROUP BY tenant$$),
('mixtures', $$SELECT ROW(tenant, gmm(f, 1))::text FROM plan_tenants GROUP BY tenant$$);
SELECT matches(plan_of(query), '^HashAggregate\s+Group Key: tenant\s+->  Seq Scan', name || ' of many groups are fitted together') FROM plan_fits;
CREATE TABLE plan_together AS SELECT name, run(query) AS result FROM plan_fits;
SET LOCAL enable_hashagg = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT bag_eq(format('SELECT result FROM plan_together WHERE name = %L', name), query, name || ' of sorted groups are the same')
FROM plan_fits WHERE name = 'clusters'; -- a mixture's last digits depend on the rows' order, which a sort changes
RESET enable_hashagg;
RESET max_parallel_workers_per_gather;

-- Labels are as many as the rows of the table, or of all partitions. Of a view nothing is known.
CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END$$;
CREATE VIEW plan_view AS SELECT * FROM plan_tenants;
SELECT is(rows_of($$SELECT row_ctid FROM kmeans_labels('plan_tenants', '{f}', 2)$$), 20000::bigint, 'labels of a table');
SELECT is(rows_of($$SELECT * FROM gmm_labels('plan_parts', '{f}', 2)$$), 10000::bigint, 'labels of partitions');
SELECT is(rows_of($$SELECT * FROM kmeans_labels('plan_view', '{f}', 2)$$), 100000::bigint, 'labels of a view');

SELECT is_empty($$
    SELECT p.oid::regprocedure FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid JOIN pg_proc AS p ON p.oid = d.objid
    WHERE e.extname = 'pg_kmeans' AND d.classid = 'pg_proc'::regclass AND obj_description(p.oid, 'pg_proc') IS NULL$$,
    'every function has a comment');
SELECT results_eq($$
    SELECT p.proname::text COLLATE "C", p.provolatile::text COLLATE "C", p.proparallel::text COLLATE "C"
    FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid JOIN pg_proc AS p ON p.oid = d.objid
    WHERE e.extname = 'pg_kmeans' AND d.classid = 'pg_proc'::regclass AND p.prokind = 'f' AND p.proname IN
        ('kmeans_fit', 'kmeans_labels', 'kmeans_cluster', 'kmeans_predict', 'pgkm_step_accum', 'pgkm_step_combine',
            'gmm_fit', 'gmm_cluster', 'gmm_posterior', 'gmm_sweep', 'kmeans_tree', 'kmeans_tree_fit', 'kmeans_tree_predict', 'pgkm_pca_accum', 'pgkm_pca_combine', 'pgkm_pca_final', 'pca_fit', 'pca_transform')
    GROUP BY 1, 2, 3 ORDER BY 1$$,
    $$VALUES ('gmm_cluster' COLLATE "C", 'v' COLLATE "C", 'u' COLLATE "C"), ('gmm_fit', 'v', 'r'), ('gmm_posterior', 'i', 's'), ('gmm_sweep', 's', 'r'), ('kmeans_cluster' COLLATE "C", 'v' COLLATE "C", 'u' COLLATE "C"), ('kmeans_fit', 'v', 'r'), ('kmeans_labels', 's', 'r'), ('kmeans_predict', 'i', 's'), ('kmeans_tree', 's', 'r'), ('kmeans_tree_fit', 'v', 'r'), ('kmeans_tree_predict', 'i', 's'),
        ('pca_fit', 'v', 'r'), ('pca_transform', 'i', 's'), ('pgkm_pca_accum', 'i', 's'), ('pgkm_pca_combine', 'i', 's'), ('pgkm_pca_final', 'i', 's'),
        ('pgkm_step_accum', 'i', 's'), ('pgkm_step_combine', 'i', 's')$$,
    'functions are marked with what they do');

SELECT * FROM finish();
ROLLBACK;

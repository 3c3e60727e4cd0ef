-- How many workers a scan gets and where its rows go depends on what statistics promise. Whatever they
-- promise, the rows are the same, in the same order, and so is the result.
BEGIN;
SELECT plan(10);
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 3;
CREATE TABLE estimate_rows WITH (parallel_workers = 3, autovacuum_enabled = false) AS
SELECT sin(i)::real AS a, cos(i * 7)::real AS b, sin(i * 0.3)::real AS c, CASE WHEN i % 9 > 0 THEN cos(i * 0.7)::real END AS d, (1 + i % 3)::real AS w
FROM generate_series(1, 600000) AS i;
UPDATE estimate_rows SET a = NULL, b = NULL, c = NULL, d = NULL WHERE d IS NULL;
ANALYZE estimate_rows;

CREATE TEMPORARY TABLE estimate_fits (name text, weight text, body text, workers integer);
CREATE FUNCTION pg_temp.fit(name text, factor double precision, weight text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    true_rows real := (SELECT reltuples FROM pg_class WHERE relname = 'estimate_rows');
    fitted text;
BEGIN
    UPDATE pg_class SET reltuples = true_rows * factor WHERE relname = 'estimate_rows';
    fitted := md5((to_jsonb(kmeans_fit('estimate_rows', '{a,b,c,d}', 6, options => kmeans_options(seed => 3, max_iter => 3), weight => weight)) - 'origin')::text);
    INSERT INTO estimate_fits SELECT name, weight, fitted, workers FROM kmeans_last_run();
    UPDATE pg_class SET reltuples = true_rows WHERE relname = 'estimate_rows';
END $$;

SELECT pg_temp.fit('right', 1);
SELECT pg_temp.fit('a hundredth', 0.01);
SELECT pg_temp.fit('half', 0.5);
SELECT pg_temp.fit('nearly', 0.97);
SELECT pg_temp.fit('three times', 3);
SELECT pg_temp.fit('weighted, right', 1, 'w');
SELECT pg_temp.fit('weighted, half', 0.5, 'w');
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT pg_temp.fit('alone', 1);
SELECT pg_temp.fit('weighted, alone', 1, 'w');

SELECT is(body, (SELECT body FROM estimate_fits WHERE name = 'alone'), name) FROM estimate_fits WHERE weight IS NULL AND name <> 'alone';
SELECT is(body, (SELECT body FROM estimate_fits WHERE name = 'weighted, alone'), name) FROM estimate_fits WHERE weight IS NOT NULL AND name <> 'weighted, alone';
SELECT ok(min(workers) > 0, 'by several processes') FROM estimate_fits WHERE name NOT LIKE '%alone';
SELECT isnt((SELECT body FROM estimate_fits WHERE name = 'alone'), (SELECT body FROM estimate_fits WHERE name = 'weighted, alone'), 'weights count');

-- What workers read is the statement's.
CREATE FUNCTION pg_temp.blocks() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    explained json;
BEGIN
    EXECUTE $q$EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT kmeans_fit('estimate_rows', '{a,b,c}', 1, options => kmeans_options(init => 'first', max_iter => 1))$q$ INTO explained;
    RETURN (explained -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (explained -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
END $$;
SET LOCAL max_parallel_workers_per_gather = 3;
SELECT cmp_ok(pg_temp.blocks(), '>=', pg_relation_size('estimate_rows') / current_setting('block_size')::bigint, 'EXPLAIN counts the blocks that workers read');

SELECT * FROM finish();
ROLLBACK;

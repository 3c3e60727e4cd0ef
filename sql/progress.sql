-- what a session tells of its k-means
SELECT count(*) FROM kmeans_last_run();
SELECT count(*) FROM pg_stat_progress_kmeans;

CREATE TABLE progress_points (x real, y real);
INSERT INTO progress_points SELECT i % 10, i / 10 FROM generate_series(0, 99) AS i;

-- A view that looks at the progress of the function that reads it. A first look at the
-- server's array of backends lasts for the transaction.
CREATE FUNCTION progress_note() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    line record;
BEGIN
    FOR line IN SELECT * FROM pg_stat_progress_kmeans WHERE pid = pg_backend_pid() LOOP
        RAISE NOTICE '% of %: %, rows %, max_iter %', line.relid::regclass, line.datname = current_database(),
            line.phase, line.rows_scanned, line.max_iter;
    END LOOP;
    RETURN 0;
END
$$;
CREATE VIEW progress_view AS SELECT x, y + CASE WHEN x = 0 AND y = 0 THEN progress_note() ELSE 0 END AS y FROM progress_points;
SELECT (kmeans_fit('progress_view', '{x,y}', 4, options => kmeans_options(init => 'first'))).k;
SELECT count(*) FROM pg_stat_progress_kmeans;

-- after it
CREATE VIEW progress_last AS
SELECT function, relid::regclass, started <= clock_timestamp() AS started, n, d, k, n_iter > 0 AS iterated, n_init, backend,
       assignment, execution, feature_sum, mass_sum, instruction_set IS NOT NULL AS has_set, scan, workers, rows_scanned, bytes_moved,
       scan_ms > 0 AS scanned, transfer_ms > 0 AS transferred, seeding_ms > 0 AS seeded, iterations_ms > 0 AS ms,
       labels_ms > 0 AS labelled, total_ms >= coalesce(scan_ms, 0) + transfer_ms + seeding_ms + iterations_ms + refining_ms + labels_ms - 0.002 AS adds_up
FROM kmeans_last_run();
SET pg_kmeans.backend = cpu;
\x
SELECT count(kmeans_fit('progress_view', '{x,y}', 4, options => kmeans_options(init => 'first'))) FROM (VALUES (1)) AS v;
SELECT * FROM progress_last;
SELECT count(*) FROM kmeans_labels('progress_points', '{x,y}', 3, options => kmeans_options(init => 'first'));
SELECT * FROM progress_last;
SELECT count(*) FROM kmeans_centroids(kmeans_cluster('progress_points', '{x,y}', 3, options => kmeans_options(init => 'first', n_init => 2)));
SELECT function, scan, n_init FROM kmeans_last_run();
SELECT (kmeans(ARRAY[x, y], 5, kmeans_options(init => 'random', n_init => 3))).k FROM progress_points;
SELECT * FROM progress_last;
SELECT count(l) FROM (SELECT kmeans_label(ARRAY[x, y], 2) OVER () AS l FROM progress_points) AS s;
SELECT function, relid, scan, scan_ms FROM kmeans_last_run();
-- mixtures and principal components: without strategies; the latter with components, but nothing
-- to seed or iterate
SELECT count(gmm_fit('progress_points', '{x,y}', 2, options => gmm_options(n_init => 2, covariance_type => 'diag'))) FROM (VALUES (1)) AS v;
SELECT * FROM progress_last;
SELECT (gmm(ARRAY[x, y], 3, gmm_options(max_iter => 2))).k FROM progress_points;
SELECT function, relid, n, d, k, n_iter, n_init, backend, scan FROM kmeans_last_run();
SELECT count(l) FROM (SELECT gmm_label(ARRAY[x, y], 2) OVER () AS l FROM progress_points) AS s;
SELECT function, k FROM kmeans_last_run();
SELECT count(pca_fit('progress_points', '{x,y}', options => pca_options(n_components => 1))) FROM (VALUES (1)) AS v;
SELECT function, relid::regclass, groups, n, d, k, n_iter, n_init, backend, scan, rows_scanned, bytes_moved, transfer_ms > 0 AS transferred,
       seeding_ms, iterations_ms > 0 AS solved, labels_ms FROM kmeans_last_run();
SELECT (pca(ARRAY[x, y])).n_components FROM progress_points;
SELECT function, relid, n, d, k, n_iter, n_init, backend, scan, iterations_ms > 0 AS solved FROM kmeans_last_run();
\x
-- a forced strategy is the one that is told
SET pg_kmeans.assignment = tiled;
SELECT count(kmeans_fit('progress_points', '{x,y}', 4));
SELECT function, assignment FROM kmeans_last_run();
RESET pg_kmeans.assignment;

-- no rows: no fit, and no new last run
TRUNCATE progress_points;
SELECT kmeans_fit('progress_points', '{x,y}', 7) IS NULL AS no_rows;
SELECT k FROM kmeans_last_run();

-- after an error nothing is shown
SELECT kmeans_fit('progress_points', '{x,z}', 4);
INSERT INTO progress_points VALUES ('NaN', 1);
SELECT kmeans_fit('progress_points', '{x,y}', 4);
SELECT count(*) FROM pg_stat_progress_kmeans;
-- in a subtransaction neither
DO $$
BEGIN
    BEGIN
        PERFORM kmeans_fit('progress_points', '{x,y}', 4);
    EXCEPTION WHEN invalid_parameter_value THEN
        RAISE NOTICE 'caught, % shown', (SELECT count(*) FROM pg_stat_progress_kmeans);
    END;
END
$$;

-- what was shown before is shown again: a COPY
TRUNCATE progress_points;
INSERT INTO progress_points SELECT i % 10, i / 10 FROM generate_series(0, 99) AS i;
CREATE FUNCTION progress_copy() RETURNS text LANGUAGE sql VOLATILE AS
    $$ SELECT command || ' ' || tuples_processed FROM pg_stat_progress_copy WHERE pid = pg_backend_pid() $$;
COPY (SELECT CASE i WHEN 1 THEN 'a row' WHEN 2 THEN 'k ' || (kmeans_fit('progress_points', '{x,y}', 4)).k ELSE progress_copy() END
      FROM generate_series(1, 3) AS i) TO STDOUT;

DROP VIEW progress_last, progress_view;
DROP TABLE progress_points;
DROP FUNCTION progress_note, progress_copy;

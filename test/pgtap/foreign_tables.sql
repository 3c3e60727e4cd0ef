-- Foreign tables: kmeans_fit reads them; their rows have no ctid, so nothing else does.
BEGIN;
SELECT plan(6);
SELECT count(*) > 0 AS available FROM pg_available_extensions WHERE name = 'file_fdw' \gset
\if :available
CREATE EXTENSION file_fdw;
CREATE SERVER foreign_server FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE foreign_points (x real, y real) SERVER foreign_server
    OPTIONS (program 'printf "0,0\n0,1\n10,10\n10,11\n"', format 'csv');
SELECT is((kmeans_fit('foreign_points', '{x,y}', 2, options => kmeans_options(init_centroids => '{{0,0},{9,9}}'))).centroids,
    '{{0,0.5},{10,10.5}}'::double precision[], 'kmeans_fit reads a foreign table');
SELECT throws_ok($$SELECT kmeans_labels('foreign_points', '{x,y}', 2)$$, '42809', NULL, 'kmeans_labels does not');
SELECT throws_ok($$SELECT kmeans_cluster('foreign_points', '{x,y}', 2)$$, '42809', NULL, 'nor kmeans_cluster');

CREATE TABLE foreign_parted (x real, y real) PARTITION BY RANGE (x);
ALTER TABLE foreign_parted ATTACH PARTITION foreign_points FOR VALUES FROM (0) TO (50);
CREATE TABLE foreign_local PARTITION OF foreign_parted FOR VALUES FROM (50) TO (100);
INSERT INTO foreign_local VALUES (60, 60);
SELECT is((kmeans_fit('foreign_parted', '{x,y}', 3, options => kmeans_options(init_centroids => '{{0,0},{9,9},{50,50}}'))).size, '{2,2,1}'::bigint[],
    'kmeans_fit reads a foreign partition beside others');
SELECT throws_ok($$SELECT kmeans_labels('foreign_parted', '{x,y}', 2)$$, '42809', NULL, 'kmeans_labels does not');
SELECT throws_ok($$SELECT kmeans_cluster('foreign_parted', '{x,y}', 2)$$, '42809', NULL, 'nor kmeans_cluster');
\else
SELECT * FROM skip('file_fdw is not installed', 6);
\endif
SELECT * FROM finish();
ROLLBACK;

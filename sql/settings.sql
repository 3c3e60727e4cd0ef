-- the settings pg_kmeans.*
LOAD 'pg_kmeans';
SELECT name, boot_val, unit, context, vartype, min_val, max_val, enumvals FROM pg_settings WHERE name LIKE 'pg\_kmeans.%' ORDER BY name;
-- a line about each strategy
SELECT name, extra_desc FROM pg_settings WHERE name ~ 'pg_kmeans.(assignment|execution|(feature|mass)_sum|reduction_layout)' ORDER BY name;
SET pg_kmeans.backend = 'gpu';
SET pg_kmeans.cpu_threads = -1;
SET pg_kmeans.max_threads = 4097;
SET pg_kmeans.device = -2;
SET pg_kmeans.assignment = 'fast';
SET pg_kmeans.unknown = 1;

-- the result does not depend on them
CREATE TEMP TABLE points AS SELECT i AS id, ARRAY[i * 31 % 97, i * 17 % 89, i % 7]::real[] AS f FROM generate_series(1, 3000) AS i;
CREATE TEMP TABLE expected AS SELECT kmeans(f, 7, kmeans_options(seed => 3) ORDER BY id) AS m FROM points;
CREATE FUNCTION pg_temp.same() RETURNS boolean LANGUAGE sql AS
    'SELECT kmeans(f, 7, kmeans_options(seed => 3) ORDER BY id) = (SELECT m FROM expected) FROM points';
SET pg_kmeans.cpu_threads = 1;
SELECT pg_temp.same();
SET pg_kmeans.cpu_threads = 3;
SELECT pg_temp.same();
SET pg_kmeans.max_threads = 1;
SELECT pg_temp.same();
RESET pg_kmeans.max_threads;
RESET pg_kmeans.cpu_threads;
SET pg_kmeans.backend = 'cpu';
SELECT pg_temp.same();
SET pg_kmeans.assignment = 'direct';
SELECT pg_temp.same();
SET pg_kmeans.assignment = 'tiled';
SELECT pg_temp.same();
-- strategies of other backends are an error where they are forced
SET pg_kmeans.assignment = 'tensor_core';
SELECT pg_temp.same();
RESET pg_kmeans.assignment;
SET pg_kmeans.feature_sum = 'ballot';
SELECT pg_temp.same();
RESET pg_kmeans.feature_sum;
SET pg_kmeans.mass_sum = 'global_atomic';
SELECT pg_temp.same();
RESET pg_kmeans.mass_sum;
SET pg_kmeans.execution = 'multi_pass';
SELECT pg_temp.same();
RESET pg_kmeans.execution;
-- a device that is not there
SET pg_kmeans.backend = 'cuda';
SET pg_kmeans.device = 1000;
DO $$
BEGIN
    PERFORM pg_temp.same();
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'refused';
END $$;
SET pg_kmeans.backend = 'auto';
SELECT pg_temp.same();
RESET pg_kmeans.device;
RESET pg_kmeans.backend;

-- limits are the administrator's
CREATE ROLE regress_kmeans_user;
SET ROLE regress_kmeans_user;
SET pg_kmeans.memory_limit = '1MB';
SET pg_kmeans.gpu_memory_limit = '1MB';
SET pg_kmeans.max_threads = 64;
SET pg_kmeans.cpu_threads = 1;
SET pg_kmeans.backend = cpu;
RESET ROLE;
RESET pg_kmeans.cpu_threads;
RESET pg_kmeans.backend;
-- and so is what forces a strategy; who may have it can be granted
SELECT name, context FROM pg_settings WHERE name LIKE 'pg_kmeans.%' AND short_desc LIKE 'Forces%' ORDER BY name COLLATE "C";
GRANT SET ON PARAMETER pg_kmeans.assignment TO regress_kmeans_user;
SET ROLE regress_kmeans_user;
SET pg_kmeans.scan = executor;
SET pg_kmeans.execution = auto;
SET pg_kmeans.assignment = auto;
RESET ROLE;
REVOKE SET ON PARAMETER pg_kmeans.assignment FROM regress_kmeans_user;
DROP ROLE regress_kmeans_user;
-- a list of devices
SET pg_kmeans.devices = ' 0, 1 ,0';
SET pg_kmeans.devices = '';
SET pg_kmeans.devices = '0,';
SET pg_kmeans.devices = '-1';
SET pg_kmeans.devices = '0 1';
SET pg_kmeans.devices = '1024';
SET pg_kmeans.devices = '0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0';

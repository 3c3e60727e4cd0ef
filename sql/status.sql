-- kmeans_status(): what can be said on every machine
SELECT backend, available, device, name <> '' AS named, units > 0 AS units, compute_capability, memory_total > memory_free AS memory,
       driver, version, reason
FROM kmeans_status() WHERE backend = 'cpu';
-- with a CUDA device or without, there is a line, and a reason where it is not available
SELECT DISTINCT backend, available OR reason IS NOT NULL AS consistent FROM kmeans_status() WHERE backend <> 'cpu';

-- every object of the extension has a comment
SELECT pg_describe_object(classid, objid, objsubid) AS without_comment
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans')
    AND deptype = 'e' AND classid IN ('pg_proc'::regclass, 'pg_type'::regclass)
    AND obj_description(objid, classid::regclass::text) IS NULL
    AND NOT EXISTS (SELECT FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid WHERE classid = 'pg_type'::regclass AND t.oid = objid
                    AND (t.typname LIKE '\_%' OR c.relkind = 'v'))
ORDER BY 1;
-- and so has every column
SELECT attrelid::regclass, attname AS without_comment
FROM pg_depend JOIN pg_attribute ON attrelid = objid LEFT JOIN pg_class AS c ON c.oid = attrelid
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans')
    AND classid = 'pg_class'::regclass AND relkind IN ('r', 'v', 'c') AND attnum > 0 AND col_description(attrelid, attnum) IS NULL
UNION ALL
SELECT typrelid::regclass, attname FROM pg_depend JOIN pg_type AS t ON t.oid = objid AND classid = 'pg_type'::regclass JOIN pg_attribute ON attrelid = typrelid
WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans') AND attnum > 0 AND col_description(typrelid, attnum) IS NULL
ORDER BY 1, 2;
-- and no function's body takes names from the caller's search path
SELECT p.oid::regprocedure AS unsafe FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang JOIN pg_depend AS e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans') AND lanname IN ('sql', 'plpgsql') AND prosqlbody IS NULL
    AND NOT EXISTS (SELECT FROM unnest(proconfig) AS setting WHERE setting LIKE 'search\_path=%');
-- volatility, strictness, parallel marking and cost of the functions on rows and models
SELECT p.oid::regprocedure, prokind, provolatile, proisstrict, proparallel, procost, prorows
FROM pg_proc AS p JOIN pg_depend AS e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kmeans')
    AND proname ~ '^(kmeans(|_label|_predict|_distance|_transform|_centroids|_options|_status)|pgkm_(transition|combine|final|serialize|deserialize))$'
    AND pg_get_function_arguments(p.oid) !~ 'smallint|integer\[|bigint\[|numeric|features double precision\[\]|internal, double precision\[\]|^double precision\[\]'
ORDER BY p.oid::regprocedure::text COLLATE "C";

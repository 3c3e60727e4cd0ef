/* pg_kmeans 1.0 */
-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_kmeans" to load this file. \quit

-- Calls in this script name the function's schema. Otherwise somebody could create a function in the
-- extension's schema that fits the arguments better, and it would run with the rights of who installs.

-- model and options

CREATE TYPE kmeans_source AS (
    type       text,
    encoding   text,
    levels     text[],
    expression boolean
);
COMMENT ON TYPE kmeans_source IS 'what a model knows of a column, or an expression, that features come from';

CREATE TYPE kmeans_origin AS (
    features   text[],
    relation   text,
    options    jsonb,
    fitted_at  timestamptz,
    means      double precision[],
    deviations double precision[],
    sources    kmeans_source[]
);
COMMENT ON TYPE kmeans_origin IS 'where a model comes from; does not count when models are compared';

-- Two origins are always equal: so models are equal if their clusters are.
CREATE FUNCTION pgkm_origin_equal(kmeans_origin, kmeans_origin) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN true;
COMMENT ON FUNCTION pgkm_origin_equal IS 'implementation of =, <= and >= operators: always true';
CREATE FUNCTION pgkm_origin_differs(kmeans_origin, kmeans_origin) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN false;
COMMENT ON FUNCTION pgkm_origin_differs IS 'implementation of <>, < and > operators: always false';
CREATE FUNCTION pgkm_origin_compare(kmeans_origin, kmeans_origin) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 0;
COMMENT ON FUNCTION pgkm_origin_compare IS 'used by B-trees: always 0';
CREATE FUNCTION pgkm_origin_hash(kmeans_origin) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 0;
COMMENT ON FUNCTION pgkm_origin_hash IS 'used by hashing: always 0';
CREATE FUNCTION pgkm_origin_hash_extended(kmeans_origin, bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN $2;
COMMENT ON FUNCTION pgkm_origin_hash_extended IS 'used by hashing: always the seed';
CREATE OPERATOR = (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_equal,
    COMMUTATOR = =, NEGATOR = <>, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_differs,
    COMMUTATOR = <>, NEGATOR = =);
CREATE OPERATOR < (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_differs,
    COMMUTATOR = >, NEGATOR = >=);
CREATE OPERATOR > (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_differs,
    COMMUTATOR = <, NEGATOR = <=);
CREATE OPERATOR <= (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_equal,
    COMMUTATOR = >=, NEGATOR = >);
CREATE OPERATOR >= (LEFTARG = kmeans_origin, RIGHTARG = kmeans_origin, FUNCTION = pgkm_origin_equal,
    COMMUTATOR = <=, NEGATOR = <);
COMMENT ON OPERATOR = (kmeans_origin, kmeans_origin) IS 'always true';
COMMENT ON OPERATOR <> (kmeans_origin, kmeans_origin) IS 'always false';
COMMENT ON OPERATOR < (kmeans_origin, kmeans_origin) IS 'always false';
COMMENT ON OPERATOR > (kmeans_origin, kmeans_origin) IS 'always false';
COMMENT ON OPERATOR <= (kmeans_origin, kmeans_origin) IS 'always true';
COMMENT ON OPERATOR >= (kmeans_origin, kmeans_origin) IS 'always true';
CREATE OPERATOR CLASS kmeans_origin_ops DEFAULT FOR TYPE kmeans_origin USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 pgkm_origin_compare(kmeans_origin, kmeans_origin);
CREATE OPERATOR CLASS kmeans_origin_hash_ops DEFAULT FOR TYPE kmeans_origin USING hash AS
    OPERATOR 1 =, FUNCTION 1 pgkm_origin_hash(kmeans_origin), FUNCTION 2 pgkm_origin_hash_extended(kmeans_origin, bigint);

CREATE TYPE kmeans_model AS (
    k         integer,
    d         integer,
    centroids double precision[],
    size      bigint[],
    within_ss double precision[],
    inertia   double precision,
    n_iter    integer,
    converged boolean,
    n         bigint,
    metric    text,
    seed      bigint,
    center    double precision[],
    scale     double precision[],
    origin    kmeans_origin,
    fills     double precision[],
    mass      double precision[]
);
COMMENT ON TYPE kmeans_model IS 'result of a k-means fit; centroids are k x d, in units of (value - center) / scale; no field is NULL';

CREATE TYPE kmeans_options AS (
    init           text,
    init_centroids double precision[],
    n_init         integer,
    max_iter       integer,
    tol            double precision,
    seed           bigint,
    metric         text,
    standardize    boolean,
    refine         boolean,
    min_size       double precision,
    max_size       double precision,
    batch_size     integer,
    init_model     kmeans_model,
    max_radius     double precision,
    min_sizes      double precision[],
    max_sizes      double precision[],
    min_weight     double precision,
    max_weight     double precision,
    min_weights    double precision[],
    max_weights    double precision[]
);
COMMENT ON TYPE kmeans_options IS 'how to cluster; made by the function kmeans_options()';

CREATE FUNCTION kmeans_options(
    init           text               DEFAULT 'auto',
    init_centroids double precision[] DEFAULT NULL,
    n_init         integer            DEFAULT 1,
    max_iter       integer            DEFAULT 300,
    tol            double precision   DEFAULT 1e-4,
    seed           bigint             DEFAULT 0,
    metric         text               DEFAULT 'l2',
    standardize    boolean            DEFAULT false,
    refine         boolean            DEFAULT false,
    min_size       double precision   DEFAULT NULL,
    max_size       double precision   DEFAULT NULL,
    batch_size     integer            DEFAULT NULL,
    init_model     kmeans_model       DEFAULT NULL,
    max_radius     double precision   DEFAULT 0,
    min_sizes      double precision[] DEFAULT NULL,
    max_sizes      double precision[] DEFAULT NULL,
    min_weight     double precision   DEFAULT NULL,
    max_weight     double precision   DEFAULT NULL,
    min_weights    double precision[] DEFAULT NULL,
    max_weights    double precision[] DEFAULT NULL
) RETURNS kmeans_options
AS 'MODULE_PATHNAME', 'pgkm_kmeans_options'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kmeans_options IS 'options of k-means, checked; NULL means the default';

CREATE FUNCTION kmeans_model(
    centroids double precision[],
    features  text[]             DEFAULT NULL,
    center    double precision[] DEFAULT NULL,
    scale     double precision[] DEFAULT NULL,
    metric    text               DEFAULT 'l2',
    sources   kmeans_source[]    DEFAULT NULL
) RETURNS kmeans_model
AS 'MODULE_PATHNAME', 'pgkm_kmeans_model'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION kmeans_model IS 'a model from centroids alone, k x d, in units of (value - center) / scale';

CREATE FUNCTION pgkm_part(parts double precision[], i integer) RETURNS double precision[]
AS 'MODULE_PATHNAME', 'pgkm_array_part'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION pgkm_part IS 'part i, from 1, of an array of such parts: a row of a matrix, say';

CREATE FUNCTION pgkm_checked(model kmeans_model) RETURNS kmeans_model
AS 'MODULE_PATHNAME', 'pgkm_kmeans_checked'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_checked(kmeans_model) IS 'the model, checked, with centroids in the units of the data';

-- A model is made once (OFFSET 0), and the series depends on its k alone: a plan may keep series by what they depend on.
CREATE FUNCTION kmeans_centroids(
    model      kmeans_model,
    cluster_id OUT integer,
    centroid   OUT double precision[],
    size       OUT bigint,
    within_ss  OUT double precision
) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
BEGIN ATOMIC
    SELECT j - 1, pgkm_part((c.m).centroids, j), (c.m).size[j], (c.m).within_ss[j]
    FROM (SELECT m, (m).k FROM (SELECT pgkm_checked(model) AS m OFFSET 0) AS b OFFSET 0) AS c, pg_catalog.generate_series(1, c.k) AS j;
END;
COMMENT ON FUNCTION kmeans_centroids IS 'the clusters of a model as a relation, centroids in the units of the data';

CREATE FUNCTION kmeans_profile(
    model        kmeans_model,
    cluster_id   OUT integer,
    feature      OUT text,
    value        OUT double precision,
    overall_mean OUT double precision,
    deviations   OUT double precision,
    summary      OUT text
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_profile'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 ROWS 100;
COMMENT ON FUNCTION kmeans_profile IS 'each feature of each centroid beside the mean of all rows, in units of the data and standard deviations, and in words';

CREATE FUNCTION kmeans_match(
    old      kmeans_model,
    new      kmeans_model,
    new_id   OUT integer,
    old_id   OUT integer,
    distance OUT double precision
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_match'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION kmeans_match IS 'the clusters of two models paired one to one, at the least total distance; NULL: no partner';

-- A tree of clusters

CREATE TYPE kmeans_tree AS (
    nodes     integer,
    d         integer,
    centroids double precision[],
    size      bigint[],
    within_ss double precision[],
    inertia   double precision,
    n_iter    integer,
    converged boolean,
    n         bigint,
    metric    text,
    seed      bigint,
    center    double precision[],
    scale     double precision[],
    origin    kmeans_origin,
    fills     double precision[],
    parents   integer[]
);
COMMENT ON TYPE kmeans_tree IS 'a tree of clusters; centroids are nodes x d, in units of (value - center) / scale; no field is NULL';

CREATE FUNCTION kmeans_tree_nodes(
    tree      kmeans_tree,
    node_id   OUT integer,
    parent_id OUT integer,
    level     OUT integer,
    centroid  OUT double precision[],
    size      OUT bigint
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_tree_nodes'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 1000;
COMMENT ON FUNCTION kmeans_tree_nodes IS 'the nodes of a tree as a relation, centroids in the units of the data';

-- Two labellings compared

CREATE TYPE cluster_agreement AS (
    adjusted_rand double precision,
    moved         double precision,
    n             bigint
);
COMMENT ON TYPE cluster_agreement IS 'how much two labellings of the same rows agree';

CREATE FUNCTION pgkm_agreement_accum(internal, bigint, bigint) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_agreement_accum'
LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION pgkm_agreement_accum IS 'transition function of the aggregate cluster_agreement';
CREATE FUNCTION pgkm_agreement_combine(internal, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_agreement_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_agreement_combine IS 'combine function of the aggregate cluster_agreement';
CREATE FUNCTION pgkm_agreement_serialize(internal) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_agreement_serialize'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_agreement_serialize IS 'serialization function of the aggregate cluster_agreement';
CREATE FUNCTION pgkm_agreement_deserialize(bytea, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_agreement_deserialize'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_agreement_deserialize IS 'deserialization function of the aggregate cluster_agreement';
CREATE FUNCTION pgkm_agreement_final(internal) RETURNS cluster_agreement
AS 'MODULE_PATHNAME', 'pgkm_agreement_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_agreement_final IS 'final function of the aggregate cluster_agreement';

CREATE AGGREGATE cluster_agreement(a bigint, b bigint) (
    SFUNC = pgkm_agreement_accum, STYPE = internal, SSPACE = 4096, FINALFUNC = pgkm_agreement_final,
    FINALFUNC_MODIFY = READ_ONLY, COMBINEFUNC = pgkm_agreement_combine, SERIALFUNC = pgkm_agreement_serialize,
    DESERIALFUNC = pgkm_agreement_deserialize, PARALLEL = SAFE);
COMMENT ON AGGREGATE cluster_agreement(bigint, bigint) IS 'how much two labellings of the same rows agree: (a, b)';

-- aggregate

CREATE FUNCTION pgkm_plan_support(internal) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_plan_support'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION pgkm_plan_support IS 'planner support function';

CREATE FUNCTION pgkm_final(internal) RETURNS kmeans_model
AS 'MODULE_PATHNAME', 'pgkm_aggregate_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT pgkm_plan_support;
COMMENT ON FUNCTION pgkm_final IS 'final function of the aggregate kmeans: clusters the rows';

CREATE FUNCTION pgkm_auto_final(internal) RETURNS kmeans_model
AS 'MODULE_PATHNAME', 'pgkm_auto_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT pgkm_plan_support;
COMMENT ON FUNCTION pgkm_auto_final IS 'final function of the aggregate kmeans_auto: clusters the rows';

-- In a parallel plan all rows of a group go from process to process, and the groups are fitted one by one. To the planner
-- a state is one value, whatever the rows in it. This cost makes such a plan worth while for groups of 10,000 rows or so.
CREATE FUNCTION pgkm_combine(internal, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_aggregate_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20000;
COMMENT ON FUNCTION pgkm_combine IS 'combine function of the aggregate kmeans: appends rows to rows';

CREATE FUNCTION pgkm_serialize(internal) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_aggregate_serialize'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_serialize IS 'serialization function of the aggregate kmeans';

CREATE FUNCTION pgkm_deserialize(bytea, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'pgkm_aggregate_deserialize'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_deserialize IS 'deserialization function of the aggregate kmeans';

CREATE FUNCTION pgkm_update_final(internal) RETURNS kmeans_model
AS 'MODULE_PATHNAME', 'pgkm_update_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_update_final IS 'final function of the aggregate kmeans_update: the model with its new rows';

-- status

CREATE FUNCTION kmeans_status(
    backend            OUT text,
    available          OUT boolean,
    device             OUT integer,
    name               OUT text,
    units              OUT integer,
    compute_capability OUT text,
    memory_total       OUT bigint,
    memory_free        OUT bigint,
    driver             OUT text,
    version            OUT text,
    reason             OUT text,
    service_pid        OUT integer,
    jobs               OUT integer,
    jobs_waiting       OUT integer,
    memory_held        OUT bigint
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_status'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 2;
COMMENT ON FUNCTION kmeans_status IS 'backends and devices, and why one is not available';

-- progress and insight

CREATE FUNCTION pgkm_progress(
    pid           OUT integer,
    datid         OUT oid,
    relid         OUT oid,
    phase         OUT text,
    rows_scanned  OUT bigint,
    rows_expected OUT bigint,
    bytes_moved   OUT bigint,
    iteration     OUT integer,
    max_iter      OUT integer,
    restart       OUT integer,
    n_init        OUT integer,
    shift         OUT double precision,
    backend       OUT text,
    devices       OUT integer[],
    pass          OUT bigint,
    seeded        OUT integer,
    k             OUT integer
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_progress'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 10;
COMMENT ON FUNCTION pgkm_progress IS 'rows of the view pg_stat_progress_kmeans';

CREATE VIEW pg_stat_progress_kmeans AS
SELECT p.pid, p.datid, d.datname, p.relid, p.phase, p.rows_scanned, p.rows_expected, p.bytes_moved, p.iteration,
       p.max_iter, p.restart, p.n_init, p.shift, p.backend, p.devices, p.pass, p.seeded, p.k
FROM pgkm_progress() AS p LEFT JOIN pg_catalog.pg_database AS d ON d.oid = p.datid;
COMMENT ON VIEW pg_stat_progress_kmeans IS 'fits that run now, and how far they are';
GRANT SELECT ON pg_stat_progress_kmeans TO PUBLIC;

CREATE FUNCTION pgkm_statistics(
    function    OUT text,
    backend     OUT text,
    fits        OUT bigint,
    rows        OUT bigint,
    seconds     OUT double precision,
    stats_reset OUT timestamptz
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_statistics'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION pgkm_statistics IS 'rows of the view pg_stat_kmeans';

CREATE VIEW pg_stat_kmeans AS
SELECT s.function, s.backend, s.fits, s.rows, s.seconds, s.stats_reset FROM pgkm_statistics() AS s;
COMMENT ON VIEW pg_stat_kmeans IS 'fits of all sessions since the last reset, by function and backend';
GRANT SELECT ON pg_stat_kmeans TO PUBLIC;

CREATE FUNCTION pg_stat_kmeans_reset() RETURNS void
AS 'MODULE_PATHNAME', 'pgkm_statistics_reset'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION pg_stat_kmeans_reset IS 'counts the fits of pg_stat_kmeans from now on';
REVOKE EXECUTE ON FUNCTION pg_stat_kmeans_reset() FROM PUBLIC;

CREATE FUNCTION kmeans_last_run(
    function        OUT text,
    relid           OUT oid,
    started         OUT timestamptz,
    groups          OUT bigint,
    n               OUT bigint,
    d               OUT integer,
    k               OUT integer,
    n_iter          OUT integer,
    n_init          OUT integer,
    backend         OUT text,
    assignment      OUT text,
    execution       OUT text,
    feature_sum     OUT text,
    mass_sum        OUT text,
    instruction_set OUT text,
    devices         OUT integer[],
    scan            OUT text,
    workers         OUT integer,
    rows_scanned    OUT bigint,
    bytes_moved     OUT bigint,
    scan_ms         OUT double precision,
    transfer_ms     OUT double precision,
    seeding_ms      OUT double precision,
    iterations_ms   OUT double precision,
    refining_ms     OUT double precision,
    labels_ms       OUT double precision,
    total_ms        OUT double precision
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_last_run'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 1;
COMMENT ON FUNCTION kmeans_last_run IS 'how the last fit of this session went: times, backend and strategies';

-- Whole tables

CREATE FUNCTION pgkm_new_label(lookup internal, tableoid oid, ctid tid) RETURNS integer
AS 'MODULE_PATHNAME', 'pgkm_new_label'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION pgkm_new_label IS 'used in the UPDATE of kmeans_cluster: the new label of a row';
CREATE FUNCTION pgkm_keep_label(lookup internal, tableoid oid, ctid tid, label integer) RETURNS integer
AS 'MODULE_PATHNAME', 'pgkm_keep_label'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION pgkm_keep_label IS 'used in the UPDATE of kmeans_cluster where rows are streamed: the new label of a row';

CREATE FUNCTION kmeans_outliers(
    relation regclass, features text[] DEFAULT NULL, model kmeans_model DEFAULT NULL, threshold double precision DEFAULT 3,
    nulls text DEFAULT NULL, filter text DEFAULT NULL)
RETURNS TABLE (row_ctid tid, cluster_id integer, distance double precision, score double precision, row_table regclass)
AS 'MODULE_PATHNAME', 'pgkm_kmeans_outliers'
LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 100;
COMMENT ON FUNCTION kmeans_outliers IS 'rows of a table that lie far from the centroids of a model, for their cluster';

CREATE FUNCTION kmeans_load(
    relation regclass, features text[], weight text DEFAULT NULL, nulls text DEFAULT 'error', filter text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'pgkm_kmeans_load'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION kmeans_load IS 'reads the rows of a table and keeps them in the session, for calls with memory => ''loaded''';

CREATE FUNCTION kmeans_unload(relation regclass DEFAULT NULL, features text[] DEFAULT NULL, weight text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pgkm_kmeans_unload'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION kmeans_unload IS 'drops rows that kmeans_load keeps: one load, all loads of a relation, or all';

CREATE FUNCTION kmeans_loaded(
    relid     OUT oid,
    relation  OUT text,
    features  OUT text[],
    weight    OUT text,
    n         OUT bigint,
    d         OUT integer,
    bytes     OUT bigint,
    loaded_at OUT timestamptz,
    nulls     OUT text,
    filter    OUT text
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgkm_kmeans_loaded'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 2;
COMMENT ON FUNCTION kmeans_loaded IS 'the loads that kmeans_load keeps in the session';

-- Users' own reductions

CREATE FUNCTION kmeans_reduction(
    index text DEFAULT NULL, value text DEFAULT NULL, cells text DEFAULT NULL, op text DEFAULT NULL,
    filter text DEFAULT NULL, key text DEFAULT NULL, let jsonb DEFAULT NULL, exact boolean DEFAULT NULL)
RETURNS jsonb
AS 'MODULE_PATHNAME', 'pgkm_reduction_define'
LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION kmeans_reduction IS 'a reduction as a value, to keep in a table and to give to kmeans_reduce and kmeans_reduce_iterate';

CREATE FUNCTION kmeans_reduce(
    relation regclass, reduction jsonb DEFAULT NULL, params jsonb DEFAULT NULL,
    index text DEFAULT NULL, value text DEFAULT NULL, cells text DEFAULT NULL, op text DEFAULT NULL,
    filter text DEFAULT NULL, key text DEFAULT NULL, let jsonb DEFAULT NULL, exact boolean DEFAULT NULL)
RETURNS TABLE (cell bigint, value double precision[])
AS 'MODULE_PATHNAME', 'pgkm_reduce'
LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 1000;
COMMENT ON FUNCTION kmeans_reduce IS 'reduces the rows of a table to cells: for each row R[index] = R[index] op value';

CREATE FUNCTION kmeans_reduce_many(
    relation regclass, objects jsonb, params jsonb DEFAULT NULL, let jsonb DEFAULT NULL, exact boolean DEFAULT false)
RETURNS TABLE (object text, cell bigint, value double precision[])
AS 'MODULE_PATHNAME', 'pgkm_reduce_many'
LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000 ROWS 1000;
COMMENT ON FUNCTION kmeans_reduce_many IS 'reduces the rows of a table to several reduction objects in one pass';

CREATE FUNCTION kmeans_reduce_source(
    relation regclass, reduction jsonb DEFAULT NULL, params jsonb DEFAULT NULL,
    index text DEFAULT NULL, value text DEFAULT NULL, cells text DEFAULT NULL, op text DEFAULT NULL,
    filter text DEFAULT NULL, key text DEFAULT NULL, let jsonb DEFAULT NULL, exact boolean DEFAULT NULL,
    layout text DEFAULT NULL, capability integer DEFAULT 90)
RETURNS text
AS 'MODULE_PATHNAME', 'pgkm_source_of_reduction'
LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION kmeans_reduce_source IS 'the CUDA C++ that a reduction becomes on a GPU';

CREATE FUNCTION kmeans_reduce_iterate(
    relation regclass, reduction jsonb, start jsonb, update jsonb, until text DEFAULT NULL, max_iter integer DEFAULT 100,
    params OUT jsonb, n_iter OUT integer, converged OUT boolean)
RETURNS record
AS 'MODULE_PATHNAME', 'pgkm_reduction_iterate'
LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION kmeans_reduce_iterate IS 'runs a reduction in a loop, with parameters made of its last result';

-- Several servers: what a server that runs a fit calls on those that hold rows

CREATE FUNCTION pgkm_node_version() RETURNS text
AS 'MODULE_PATHNAME', 'pgkm_node_version'
LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION pgkm_node_version IS 'used between servers: the version that all servers of a fit must have';

CREATE FUNCTION pgkm_node_load(relations regclass[], features text[], weights text[], need_direction boolean)
RETURNS TABLE (n bigint, d integer, element text)
AS 'MODULE_PATHNAME', 'pgkm_node_load'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000000 ROWS 1;
COMMENT ON FUNCTION pgkm_node_load IS 'used between servers: reads the rows of tables and keeps them in the session';

CREATE FUNCTION pgkm_node_call(request bytea) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_node_call'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 1000000;
COMMENT ON FUNCTION pgkm_node_call IS 'used between servers: one step of a fit over the rows that pgkm_node_load keeps';

CREATE FUNCTION pgkm_node_unload() RETURNS boolean
AS 'MODULE_PATHNAME', 'pgkm_node_unload'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION pgkm_node_unload IS 'used between servers: drops the rows that pgkm_node_load keeps';

-- One step

CREATE TYPE kmeans_sums AS (
    k           integer,
    d           integer,
    n           bigint,
    inertia     double precision,
    masses      double precision[],
    features    double precision[],
    low         double precision[],
    fingerprint bigint
);
COMMENT ON TYPE kmeans_sums IS 'sums of one k-means step: features and weights of each cluster, and the inertia; can be merged';

CREATE FUNCTION kmeans_sums_centroids(sums kmeans_sums) RETURNS double precision[]
AS 'MODULE_PATHNAME', 'pgkm_step_centroids'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION kmeans_sums_centroids IS 'the new centroids, k x d; NULLs for a cluster without rows';
CREATE FUNCTION kmeans_sums_masses(sums kmeans_sums) RETURNS double precision[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (sums).masses;
COMMENT ON FUNCTION kmeans_sums_masses IS 'the number of rows, or the sum of weights, of each cluster';
CREATE FUNCTION kmeans_sums_features(sums kmeans_sums) RETURNS double precision[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (sums).features;
COMMENT ON FUNCTION kmeans_sums_features IS 'sums of the features of each cluster, k x d';
CREATE FUNCTION kmeans_sums_inertia(sums kmeans_sums) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (sums).inertia;
COMMENT ON FUNCTION kmeans_sums_inertia IS 'sum of squared distances to the nearest centroids';

-- A state is bytea, changed in place: a row of arrays would be made anew for each row. What it holds is kmeans_sums in
-- the order of the machine's bytes.
CREATE FUNCTION pgkm_step_combine(bytea, bytea) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_step_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_step_combine IS 'combine function of kmeans_step and kmeans_merge';
CREATE FUNCTION pgkm_step_final(bytea) RETURNS kmeans_sums
AS 'MODULE_PATHNAME', 'pgkm_step_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_step_final IS 'final function of kmeans_step and kmeans_merge: the sums of a state';
CREATE FUNCTION pgkm_merge_accum(bytea, kmeans_sums) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_merge_accum'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pgkm_merge_accum IS 'transition function of the aggregate kmeans_merge';
CREATE FUNCTION pgkm_sums_add(kmeans_sums, kmeans_sums) RETURNS kmeans_sums
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pgkm_step_final(pgkm_merge_accum(pgkm_merge_accum(NULL, $1), $2));
COMMENT ON FUNCTION pgkm_sums_add IS 'implementation of + operator';
CREATE OPERATOR + (LEFTARG = kmeans_sums, RIGHTARG = kmeans_sums, FUNCTION = pgkm_sums_add, COMMUTATOR = +);
COMMENT ON OPERATOR + (kmeans_sums, kmeans_sums) IS 'merges sums over the same centroids';

CREATE AGGREGATE kmeans_merge(sums kmeans_sums) (
    SFUNC = pgkm_merge_accum, STYPE = bytea, FINALFUNC = pgkm_step_final, FINALFUNC_MODIFY = READ_ONLY,
    COMBINEFUNC = pgkm_step_combine, PARALLEL = SAFE);
COMMENT ON AGGREGATE kmeans_merge(kmeans_sums) IS 'merges sums over the same centroids';

-- Principal component analysis

CREATE TYPE pca_options AS (
    n_components double precision,
    whiten       boolean,
    standardize  boolean
);
COMMENT ON TYPE pca_options IS 'how to analyse; made by the function pca_options()';

CREATE FUNCTION pca_options(
    n_components double precision DEFAULT NULL,
    whiten       boolean          DEFAULT false,
    standardize  boolean          DEFAULT false
) RETURNS pca_options
AS 'MODULE_PATHNAME', 'pgkm_pca_options'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION pca_options IS 'options of a PCA, checked; n_components is a number, a share of the variance, or NULL for all';

CREATE TYPE pca_model AS (
    n_components             integer,
    d                        integer,
    mean                     double precision[],
    scale                    double precision[],
    components               double precision[],
    explained_variance       double precision[],
    explained_variance_ratio double precision[],
    singular_values          double precision[],
    n                        bigint,
    whiten                   boolean,
    fills                    double precision[],
    origin                   kmeans_origin
);
COMMENT ON TYPE pca_model IS 'result of a PCA; components are n_components x d, of (features - mean) / scale; no field is NULL';

CREATE FUNCTION pgkm_checked(model pca_model) RETURNS pca_model
AS 'MODULE_PATHNAME', 'pgkm_pca_checked'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_checked(pca_model) IS 'the model, checked';

CREATE FUNCTION pca_components(
    model                    pca_model,
    component_id             OUT integer,
    component                OUT double precision[],
    explained_variance       OUT double precision,
    explained_variance_ratio OUT double precision,
    singular_value           OUT double precision
) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
BEGIN ATOMIC
    SELECT j - 1, pgkm_part((c.m).components, j), (c.m).explained_variance[j], (c.m).explained_variance_ratio[j], (c.m).singular_values[j]
    FROM (SELECT m, (m).n_components AS k FROM (SELECT pgkm_checked(model) AS m OFFSET 0) AS b OFFSET 0) AS c, pg_catalog.generate_series(1, c.k) AS j;
END;
COMMENT ON FUNCTION pca_components IS 'the components of a model as a relation, the largest variance first';

CREATE FUNCTION pgkm_pca_combine(bytea, bytea) RETURNS bytea
AS 'MODULE_PATHNAME', 'pgkm_pca_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_pca_combine IS 'combine function of the aggregate pca';
CREATE FUNCTION pgkm_pca_final(bytea) RETURNS pca_model
AS 'MODULE_PATHNAME', 'pgkm_pca_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10000;
COMMENT ON FUNCTION pgkm_pca_final IS 'final function of the aggregate pca: computes the components from the covariance';

-- Gaussian mixtures

CREATE TYPE gmm_model AS (
    k               integer,
    d               integer,
    covariance_type text,
    weights         double precision[],
    means           double precision[],
    covariances     double precision[],
    log_likelihood  double precision,
    trace           double precision[],
    n_iter          integer,
    converged       boolean,
    aic             double precision,
    bic             double precision,
    n               bigint,
    seed            bigint,
    center          double precision[],
    scale           double precision[],
    fills           double precision[],
    origin          kmeans_origin,
    mass            double precision
);
COMMENT ON TYPE gmm_model IS 'a mixture of k Gaussian densities, in units of (value - center) / scale; no field is NULL';

CREATE TYPE gmm_options AS (
    covariance_type text,
    tol             double precision,
    reg_covar       double precision,
    max_iter        integer,
    n_init          integer,
    weights_init    double precision[],
    means_init      double precision[],
    precisions_init double precision[],
    seed            bigint,
    standardize     boolean,
    init_model      gmm_model
);
COMMENT ON TYPE gmm_options IS 'how to fit a mixture; made by the function gmm_options()';

CREATE FUNCTION gmm_options(
    covariance_type text               DEFAULT 'full',
    tol             double precision   DEFAULT 1e-3,
    reg_covar       double precision   DEFAULT 1e-6,
    max_iter        integer            DEFAULT 100,
    n_init          integer            DEFAULT 1,
    weights_init    double precision[] DEFAULT NULL,
    means_init      double precision[] DEFAULT NULL,
    precisions_init double precision[] DEFAULT NULL,
    seed            bigint             DEFAULT 0,
    standardize     boolean            DEFAULT false,
    init_model      gmm_model          DEFAULT NULL
) RETURNS gmm_options
AS 'MODULE_PATHNAME', 'pgkm_gmm_options'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION gmm_options IS 'options of a mixture, checked; NULL means the default';

CREATE FUNCTION pgkm_checked(model gmm_model) RETURNS gmm_model
AS 'MODULE_PATHNAME', 'pgkm_gmm_checked'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION pgkm_checked(gmm_model) IS 'the model, checked, with means and covariances in the units of the data';

CREATE FUNCTION gmm_components(
    model        gmm_model,
    component_id OUT integer,
    weight       OUT double precision,
    mean         OUT double precision[],
    covariance   OUT double precision[]
) RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
BEGIN ATOMIC
    SELECT j - 1, (c.m).weights[j], pgkm_part((c.m).means, j),
        CASE (c.m).covariance_type
            WHEN 'tied' THEN (c.m).covariances
            WHEN 'spherical' THEN ARRAY[(c.m).covariances[j]]
            ELSE pgkm_part((c.m).covariances, j)
        END
    FROM (SELECT m, (m).k FROM (SELECT pgkm_checked(model) AS m OFFSET 0) AS b OFFSET 0) AS c, pg_catalog.generate_series(1, c.k) AS j;
END;
COMMENT ON FUNCTION gmm_components IS 'the components of a mixture as a relation, in the units of the data';

CREATE FUNCTION pgkm_gmm_final(internal) RETURNS gmm_model
AS 'MODULE_PATHNAME', 'pgkm_gmm_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT pgkm_plan_support;
COMMENT ON FUNCTION pgkm_gmm_final IS 'final function of the aggregate gmm: fits the mixture';

CREATE FUNCTION pgkm_gmm_update_final(internal) RETURNS gmm_model
AS 'MODULE_PATHNAME', 'pgkm_gmm_update_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION pgkm_gmm_update_final IS 'final function of the aggregate gmm_update: the mixture with its new rows';

-- Functions over whole tables. All of them take the same about the rows, which stands behind their options (%s).
DO $do$
DECLARE
    shared text := ' DEFAULT NULL, weight text DEFAULT NULL,
        nulls text DEFAULT ''error'', filter text DEFAULT NULL, memory text DEFAULT ''auto''';
    made   record;
BEGIN
    FOR made IN SELECT * FROM (VALUES
        ('kmeans_fit', 'k bigint, options kmeans_options%s',
         'kmeans_model', 'pgkm_kmeans_fit', 'VOLATILE PARALLEL RESTRICTED SUPPORT pgkm_plan_support',
         'clusters the rows of a table, view or foreign table by the columns that features names'),
        ('kmeans_labels', 'k bigint, options kmeans_options%s',
         'TABLE (row_ctid tid, cluster_id integer, distance double precision, row_table regclass)',
         'pgkm_kmeans_labels', 'STABLE PARALLEL RESTRICTED ROWS 100000 SUPPORT pgkm_plan_support',
         'clusters the rows of a table and returns the cluster id of each row'),
        ('kmeans_cluster', 'k bigint, options kmeans_options%s, label_column text DEFAULT NULL, overwrite boolean DEFAULT false',
         'kmeans_model', 'pgkm_kmeans_cluster', 'VOLATILE PARALLEL UNSAFE',
         'clusters the rows of a table, writes the cluster id of each row into a column of the table, and returns the model'),
        ('kmeans_sweep', 'k_min bigint DEFAULT NULL, k_max bigint DEFAULT NULL, options kmeans_options%s, sample integer DEFAULT NULL, ks bigint[] DEFAULT NULL',
         'TABLE (k bigint, inertia double precision, davies_bouldin double precision, calinski_harabasz double precision,
            simplified_silhouette double precision, clusters integer, n_iter integer, converged boolean,
            silhouette double precision, silhouette_error double precision, bic double precision, suggestion text, knee boolean)',
         'pgkm_kmeans_sweep', 'STABLE PARALLEL RESTRICTED ROWS 20 SUPPORT pgkm_plan_support',
         'clusters the rows of a table for each k of a range or list and returns how good the clusters are'),
        ('kmeans_quality', 'label_column text, options kmeans_options%s, sample integer DEFAULT NULL',
         'TABLE (cluster_id bigint, size bigint, mass double precision, inertia double precision, silhouette double precision,
            silhouette_error double precision, davies_bouldin double precision, calinski_harabasz double precision)',
         'pgkm_kmeans_quality', 'STABLE PARALLEL RESTRICTED ROWS 100',
         'how compact and separated the clusters are that a label column of a table tells, each and all'),
        ('kmeans_silhouettes', 'label_column text, options kmeans_options%s',
         'TABLE (row_ctid tid, cluster_id bigint, silhouette double precision, nearest_id bigint, row_table regclass)',
         'pgkm_kmeans_silhouettes', 'STABLE PARALLEL RESTRICTED ROWS 100000',
         'silhouette of each row of a table under the clusters that its label column tells'),
        ('kmeans_tree', 'branches text DEFAULT NULL, k bigint DEFAULT NULL, options kmeans_options%s',
         'TABLE (node_id integer, parent_id integer, level integer, centroid double precision[], size bigint)',
         'pgkm_kmeans_tree', 'STABLE PARALLEL RESTRICTED ROWS 1000',
         'divides the rows of a table into clusters and these into clusters, by levels or by bisecting'),
        ('kmeans_tree_fit', 'branches text DEFAULT NULL, k bigint DEFAULT NULL, options kmeans_options%s',
         'kmeans_tree', 'pgkm_kmeans_tree_fit', 'VOLATILE PARALLEL RESTRICTED SUPPORT pgkm_plan_support',
         'divides the rows of a table into clusters and these into clusters, and returns the tree as a value'),
        ('pca_fit', 'options pca_options%s',
         'pca_model', 'pgkm_pca_table_fit', 'VOLATILE PARALLEL RESTRICTED SUPPORT pgkm_plan_support',
         'principal component analysis of a table, view or foreign table by the columns that features names'),
        ('gmm_fit', 'k bigint, options gmm_options%s',
         'gmm_model', 'pgkm_gmm_table_fit', 'VOLATILE PARALLEL RESTRICTED SUPPORT pgkm_plan_support',
         'Gaussian mixture of a table, view or foreign table by the columns that features names'),
        ('gmm_sweep', 'k_min bigint DEFAULT NULL, k_max bigint DEFAULT NULL, options gmm_options%s, ks bigint[] DEFAULT NULL',
         'TABLE (k bigint, log_likelihood double precision, aic double precision, bic double precision,
            components integer, n_iter integer, converged boolean, suggestion text)',
         'pgkm_gmm_table_sweep', 'STABLE PARALLEL RESTRICTED ROWS 20',
         'fits Gaussian mixtures of each number of components of a range or list and returns how well they describe the rows'),
        ('gmm_labels', 'k bigint, options gmm_options%s',
         'TABLE (row_ctid tid, component_id integer, row_table regclass)',
         'pgkm_gmm_table_labels', 'STABLE PARALLEL RESTRICTED ROWS 100000 SUPPORT pgkm_plan_support',
         'fits a Gaussian mixture to the rows of a table and returns the component id of each row'),
        ('gmm_cluster', 'k bigint, options gmm_options%s, label_column text DEFAULT NULL, overwrite boolean DEFAULT false',
         'gmm_model', 'pgkm_gmm_table_cluster', 'VOLATILE PARALLEL UNSAFE',
         'fits a Gaussian mixture to the rows of a table and writes the component id of each row into a column of the table, and returns the model'),
        ('kmeans_plot',
         'k bigint DEFAULT NULL, options kmeans_options%s, label_column text DEFAULT NULL,
            width integer DEFAULT 720, height integer DEFAULT 480, title text DEFAULT NULL, sample integer DEFAULT 5000',
         'text', 'pgkm_clusters_plot', 'STABLE PARALLEL RESTRICTED',
         'draws the clusters of a table, or what its label column says, as SVG'),
        ('kmeans_sweep_plot', 'k_min bigint DEFAULT NULL, k_max bigint DEFAULT NULL, options kmeans_options%s,
            width integer DEFAULT 720, height integer DEFAULT 480, title text DEFAULT NULL, ks bigint[] DEFAULT NULL',
         'text', 'pgkm_curves_plot', 'STABLE PARALLEL RESTRICTED',
         'draws how good the clusters of a table are for each k of a range or list, as SVG')
    ) AS list (name, arguments, result, symbol, properties, comment)
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION %s(relation regclass, features text[], %s) RETURNS %s AS ''MODULE_PATHNAME'', %L LANGUAGE C COST 1000000 %s',
            made.name, pg_catalog.format(made.arguments, shared), made.result, made.symbol, made.properties);
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s IS %L', made.name, made.comment);
    END LOOP;
END
$do$;

CREATE PROCEDURE kmeans_cluster_batches(
    relation regclass, features text[], k bigint, options kmeans_options DEFAULT NULL, weight text DEFAULT NULL,
    nulls text DEFAULT 'error', filter text DEFAULT NULL, memory text DEFAULT 'auto',
    label_column text DEFAULT NULL, overwrite boolean DEFAULT false, batch_rows integer DEFAULT 10000,
    INOUT model kmeans_model DEFAULT NULL, INOUT rows_written bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'pgkm_kmeans_cluster_batches'
LANGUAGE C;
COMMENT ON PROCEDURE kmeans_cluster_batches IS 'clusters the rows of a table while others write it, and writes the cluster id of each row in batches, each a transaction of its own';

CREATE FUNCTION kmeans_profile_plot(
    model kmeans_model, width integer DEFAULT 720, height integer DEFAULT NULL, title text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'pgkm_profile_plot'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10000;
COMMENT ON FUNCTION kmeans_profile_plot IS 'draws what tells the clusters of a model apart, features by clusters, as SVG';

CREATE FUNCTION gmm_plot(
    model gmm_model, width integer DEFAULT 720, height integer DEFAULT 320, title text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'pgkm_gmm_plot'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION gmm_plot IS 'draws the log-likelihood of a mixture at each iteration of its fit, as SVG';

-- Functions and aggregates of feature vectors

-- A vector (%1$s) is "any", whose type the function looks at, or text: literals, NULLs and parameters without a type are
-- taken for text. Aggregates that Citus runs on its workers have a signature for each type of array instead, since it
-- sends no "any" there. Of each there is one for each number of optional arguments (%2$s). States of gmm are made of rows
-- as those of kmeans are, and merged, written and read by its functions. SSPACE = -1 says that a state grows with its
-- rows: without it PostgreSQL 19 collects rows below a join (eager aggregation), and the join multiplies whole states.
DO $do$
DECLARE
    features  text;
    optional  text;
    signature text;
    made      record;
BEGIN
    FOR made IN SELECT * FROM (VALUES
        ('FUNCTION', 'pgkm_transition(internal, %1$s, bigint%2$s)', ARRAY['', ', kmeans_options', ', kmeans_options, double precision'],
         $$RETURNS internal AS 'MODULE_PATHNAME', 'pgkm_aggregate_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1$$,
         'transition function of the aggregate kmeans: collects a row'),
        ('AGGREGATE', 'kmeans(features %1$s, k bigint%2$s)',
         ARRAY['', ', options kmeans_options', ', options kmeans_options, weight double precision'],
         '(SFUNC = pgkm_transition, STYPE = internal, SSPACE = -1, FINALFUNC = pgkm_final, FINALFUNC_MODIFY = READ_ONLY,
           COMBINEFUNC = pgkm_combine, SERIALFUNC = pgkm_serialize, DESERIALFUNC = pgkm_deserialize, PARALLEL = SAFE)',
         'k-means clustering of feature vectors: (features, k [, options [, weight]])'),
        ('FUNCTION', 'pgkm_auto_transition(internal, %1$s, bigint, bigint%2$s)',
         ARRAY['', ', kmeans_options', ', kmeans_options, double precision'],
         $$RETURNS internal AS 'MODULE_PATHNAME', 'pgkm_auto_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1$$,
         'transition function of the aggregate kmeans_auto: collects a row'),
        ('AGGREGATE', 'kmeans_auto(features %1$s, k_min bigint, k_max bigint%2$s)',
         ARRAY['', ', options kmeans_options', ', options kmeans_options, weight double precision'],
         '(SFUNC = pgkm_auto_transition, STYPE = internal, SSPACE = -1, FINALFUNC = pgkm_auto_final,
           FINALFUNC_MODIFY = READ_ONLY, COMBINEFUNC = pgkm_combine, SERIALFUNC = pgkm_serialize,
           DESERIALFUNC = pgkm_deserialize, PARALLEL = SAFE)',
         'k-means clustering into as many clusters of a range as suit the rows: (features, k_min, k_max [, options [, weight]])'),
        ('FUNCTION', 'kmeans_label(features %1$s, k bigint%2$s)', ARRAY['', ', options kmeans_options'],
         $$RETURNS integer AS 'MODULE_PATHNAME', 'pgkm_kmeans_label' LANGUAGE C IMMUTABLE WINDOW PARALLEL SAFE COST 100$$,
         'cluster of each row in a k-means clustering of its partition'),
        ('FUNCTION', 'kmeans_predict(model kmeans_model, features %1$s)', ARRAY[''],
         $$RETURNS integer AS 'MODULE_PATHNAME', 'pgkm_kmeans_predict' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the cluster nearest to a feature vector'),
        ('FUNCTION', 'kmeans_distance(model kmeans_model, features %1$s)', ARRAY[''],
         $$RETURNS double precision AS 'MODULE_PATHNAME', 'pgkm_kmeans_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'distance of a feature vector to the nearest centroid'),
        ('FUNCTION', 'kmeans_transform(model kmeans_model, features %1$s)', ARRAY[''],
         $$RETURNS double precision[] AS 'MODULE_PATHNAME', 'pgkm_kmeans_transform' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'distances of a feature vector to all centroids'),
        ('FUNCTION', 'kmeans_tree_predict(tree kmeans_tree, features %1$s)', ARRAY[''],
         $$RETURNS integer AS 'MODULE_PATHNAME', 'pgkm_kmeans_tree_predict' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the leaf of a feature vector, by the nearest child at each node'),
        ('FUNCTION', 'kmeans_tree_path(tree kmeans_tree, features %1$s)', ARRAY[''],
         $$RETURNS integer[] AS 'MODULE_PATHNAME', 'pgkm_kmeans_tree_path' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the nodes from the root to the leaf of a feature vector'),
        ('FUNCTION', 'kmeans_tree_probe(tree kmeans_tree, features %1$s, p bigint)', ARRAY[''],
         $$RETURNS TABLE (leaf integer, distance double precision) AS 'MODULE_PATHNAME', 'pgkm_kmeans_tree_probe' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000 ROWS 10$$,
         'the p leaves nearest to a feature vector, of all leaves'),
        ('FUNCTION', 'pgkm_update_accum(internal, kmeans_model, %1$s%2$s)',
         ARRAY['', ', double precision', ', double precision, double precision'],
         $$RETURNS internal AS 'MODULE_PATHNAME', 'pgkm_update_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50$$,
         'transition function of the aggregate kmeans_update'),
        ('AGGREGATE', 'kmeans_update(model kmeans_model, features %1$s%2$s)',
         ARRAY['', ', weight double precision', ', weight double precision, decay double precision'],
         '(SFUNC = pgkm_update_accum, STYPE = internal, SSPACE = 65536, FINALFUNC = pgkm_update_final,
           FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE)',
         'adds rows to a model by the masses of its clusters: (model, features [, weight [, decay]])'),
        ('FUNCTION', 'pgkm_step_accum(bytea, %1$s, double precision[]%2$s)', ARRAY['', ', double precision'],
         $$RETURNS bytea AS 'MODULE_PATHNAME', 'pgkm_step_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20$$,
         'transition function of the aggregate kmeans_step'),
        ('AGGREGATE', 'kmeans_step(features %1$s, centroids double precision[]%2$s)', ARRAY['', ', weight double precision'],
         '(SFUNC = pgkm_step_accum, STYPE = bytea, FINALFUNC = pgkm_step_final, FINALFUNC_MODIFY = READ_ONLY,
           COMBINEFUNC = pgkm_step_combine, PARALLEL = SAFE)',
         'assigns rows to the nearest centroids and sums them: (features, centroids [, weight])'),
        ('FUNCTION', 'pgkm_pca_accum(bytea, %1$s%2$s)', ARRAY['', ', pca_options', ', pca_options, double precision'],
         $$RETURNS bytea AS 'MODULE_PATHNAME', 'pgkm_pca_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20$$,
         'transition function of the aggregate pca'),
        ('AGGREGATE', 'pca(features %1$s%2$s)', ARRAY['', ', options pca_options', ', options pca_options, weight double precision'],
         '(SFUNC = pgkm_pca_accum, STYPE = bytea, FINALFUNC = pgkm_pca_final, FINALFUNC_MODIFY = READ_ONLY,
           COMBINEFUNC = pgkm_pca_combine, PARALLEL = SAFE)',
         'principal component analysis of feature vectors: (features [, options [, weight]])'),
        ('FUNCTION', 'pca_transform(model pca_model, features %1$s)', ARRAY[''],
         $$RETURNS double precision[] AS 'MODULE_PATHNAME', 'pgkm_pca_transform' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'a feature vector in the coordinates of the components'),
        ('FUNCTION', 'pca_inverse_transform(model pca_model, scores %1$s)', ARRAY[''],
         $$RETURNS double precision[] AS 'MODULE_PATHNAME', 'pgkm_pca_inverse_transform' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the feature vector of given coordinates'),
        ('FUNCTION', 'pgkm_gmm_transition(internal, %1$s, bigint%2$s)', ARRAY['', ', gmm_options', ', gmm_options, double precision'],
         $$RETURNS internal AS 'MODULE_PATHNAME', 'pgkm_gmm_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1$$,
         'transition function of the aggregate gmm: collects a row'),
        ('AGGREGATE', 'gmm(features %1$s, k bigint%2$s)',
         ARRAY['', ', options gmm_options', ', options gmm_options, weight double precision'],
         '(SFUNC = pgkm_gmm_transition, STYPE = internal, SSPACE = -1, FINALFUNC = pgkm_gmm_final, FINALFUNC_MODIFY = READ_ONLY,
           COMBINEFUNC = pgkm_combine, SERIALFUNC = pgkm_serialize, DESERIALFUNC = pgkm_deserialize, PARALLEL = SAFE)',
         'Gaussian mixture of feature vectors: (features, k [, options [, weight]])'),
        ('FUNCTION', 'pgkm_gmm_update_accum(internal, gmm_model, %1$s%2$s)',
         ARRAY['', ', double precision', ', double precision, double precision'],
         $$RETURNS internal AS 'MODULE_PATHNAME', 'pgkm_gmm_update_accum' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200$$,
         'transition function of the aggregate gmm_update'),
        ('AGGREGATE', 'gmm_update(model gmm_model, features %1$s%2$s)',
         ARRAY['', ', weight double precision', ', weight double precision, decay double precision'],
         '(SFUNC = pgkm_gmm_update_accum, STYPE = internal, SSPACE = 65536, FINALFUNC = pgkm_gmm_update_final,
           FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE)',
         'adds rows to a mixture by a step of EM: (model, features [, weight [, decay]])'),
        ('FUNCTION', 'gmm_label(features %1$s, k bigint%2$s)', ARRAY['', ', options gmm_options'],
         $$RETURNS integer AS 'MODULE_PATHNAME', 'pgkm_gmm_label' LANGUAGE C IMMUTABLE WINDOW PARALLEL SAFE COST 100$$,
         'component of each row in a Gaussian mixture of its partition'),
        ('FUNCTION', 'gmm_predict(model gmm_model, features %1$s)', ARRAY[''],
         $$RETURNS integer AS 'MODULE_PATHNAME', 'pgkm_gmm_predict' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the most probable component of a feature vector'),
        ('FUNCTION', 'gmm_posterior(model gmm_model, features %1$s)', ARRAY[''],
         $$RETURNS double precision[] AS 'MODULE_PATHNAME', 'pgkm_gmm_posterior' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'the probability of each component for a feature vector'),
        ('FUNCTION', 'gmm_score(model gmm_model, features %1$s)', ARRAY[''],
         $$RETURNS double precision AS 'MODULE_PATHNAME', 'pgkm_gmm_score' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50$$,
         'logarithm of the density of a mixture at a feature vector')
    ) AS list (kind, signature, optional, definition, comment)
    LOOP
        FOREACH features IN ARRAY CASE
            WHEN made.signature ~ '^pgkm_' THEN ARRAY['"any"']
            WHEN made.signature ~ '^(kmeans_step|pca)[(]' THEN ARRAY['real[]', 'double precision[]', 'smallint[]', 'integer[]', 'bigint[]', 'numeric[]']
            ELSE ARRAY['"any"', 'text']
        END
        LOOP
            FOREACH optional IN ARRAY made.optional
            LOOP
                signature := pg_catalog.format(made.signature, features, optional);
                EXECUTE pg_catalog.format('CREATE %s %s %s', made.kind, signature, made.definition);
                EXECUTE pg_catalog.format('COMMENT ON %s %s IS %L', made.kind, signature, made.comment);
            END LOOP;
        END LOOP;
    END LOOP;
END
$do$;

-- A row of any relation in the place of features, kmeans_predict(m, t): a plan has its columns instead, and their names.
DO $do$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT * FROM (VALUES
        ('kmeans_predict', 'kmeans_model', 'integer'),
        ('kmeans_distance', 'kmeans_model', 'double precision'),
        ('kmeans_transform', 'kmeans_model', 'double precision[]'),
        ('kmeans_tree_predict', 'kmeans_tree', 'integer'),
        ('kmeans_tree_path', 'kmeans_tree', 'integer[]'),
        ('gmm_predict', 'gmm_model', 'integer'),
        ('gmm_posterior', 'gmm_model', 'double precision[]'),
        ('gmm_score', 'gmm_model', 'double precision'),
        ('pca_transform', 'pca_model', 'double precision[]')
    ) AS list (name, model, result)
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION pgkm_row_%1$s(model %2$s, names text[], VARIADIC columns "any") RETURNS %3$s AS ''MODULE_PATHNAME'', %4$L
             LANGUAGE C IMMUTABLE PARALLEL SAFE COST 50', made.name, made.model, made.result, 'pgkm_' || made.name);
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION pgkm_row_%1$s IS %2$L', made.name,
            pg_catalog.format('used in plans: %s of a row, by its columns', made.name));
        EXECUTE pg_catalog.format('ALTER FUNCTION %s(%s, "any") SUPPORT pgkm_plan_support', made.name, made.model);
    END LOOP;
END
$do$;

-- Comments of columns

DO $do$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT name, comment FROM (VALUES
        ('kmeans_options.init', 'auto, k-means++, k-means||, random or first'),
        ('kmeans_options.init_centroids', 'first centroids, k x d, instead of init'),
        ('kmeans_options.n_init', 'runs from different first centroids; the best one counts'),
        ('kmeans_options.max_iter, gmm_options.max_iter, pg_stat_progress_kmeans.max_iter', 'iterations at most'),
        ('kmeans_options.tol', 'a run ends when the centroids move less: a share of the mean variance of the features'),
        ('kmeans_options.seed, kmeans_model.seed, kmeans_tree.seed, gmm_options.seed, gmm_model.seed', 'of the random choices'),
        ('kmeans_options.metric, kmeans_model.metric', 'l2, cosine or hamming'),
        ('kmeans_tree.metric', 'l2 or cosine'),
        ('kmeans_options.standardize, gmm_options.standardize', 'whether each feature is brought to mean 0 and standard deviation 1'),
        ('kmeans_options.refine', 'whether better optima are searched for'),
        ('kmeans_options.min_size', 'least rows of each cluster; below 1 a share of all rows'),
        ('kmeans_options.max_size', 'most rows of each cluster; below 1 a share of all rows'),
        ('kmeans_options.min_sizes', 'least rows of each cluster in its order; NULL: min_size for all'),
        ('kmeans_options.max_sizes', 'most rows of each cluster in its order; NULL: max_size for all'),
        ('kmeans_options.min_weight', 'least sum of the weights of each cluster'),
        ('kmeans_options.max_weight', 'most sum of the weights of each cluster'),
        ('kmeans_options.min_weights', 'least sum of weights of each cluster in its order; NULL: min_weight for all'),
        ('kmeans_options.max_weights', 'most sum of weights of each cluster in its order; NULL: max_weight for all'),
        ('kmeans_options.batch_size', 'rows of a mini-batch; NULL: iterations over all rows'),
        ('kmeans_options.init_model, gmm_options.init_model', 'model from which the fit goes on, in its units'),
        ('kmeans_options.max_radius', 'clusters are added until each row is so near to its centroid; 0: no limit'),
        ('kmeans_model.k', 'number of clusters found'),
        ('kmeans_model.d, kmeans_tree.d, kmeans_sums.d, pca_model.d, gmm_model.d', 'number of features'),
        ('kmeans_model.centroids, gmm_model.means', 'k x d, in units of (value - center) / scale'),
        ('kmeans_model.size', 'number of rows of each cluster'),
        ('kmeans_model.within_ss', 'sum of weighted squared distances of each cluster'),
        ('kmeans_model.inertia', 'sum of within_ss'),
        ('kmeans_model.n_iter, gmm_model.n_iter', 'iterations run'),
        ('kmeans_model.converged, gmm_model.converged', 'false if max_iter ended the run'),
        ('kmeans_model.n, kmeans_tree.n, pca_model.n, gmm_model.n', 'number of rows used'),
        ('kmeans_model.center, kmeans_tree.center, gmm_model.center', 'mean of each feature if standardized, else empty'),
        ('kmeans_model.scale, kmeans_tree.scale, pca_model.scale, gmm_model.scale', 'standard deviation of each feature if standardized, else empty'),
        ('kmeans_model.origin, kmeans_tree.origin, pca_model.origin, gmm_model.origin', 'where the model comes from'),
        ('kmeans_model.fills, kmeans_tree.fills, pca_model.fills, gmm_model.fills', 'value that stands in the place of NULL, of each feature; empty: NULLs are errors'),
        ('kmeans_tree.nodes', 'number of nodes'),
        ('kmeans_tree.centroids', 'nodes x d, in units of (value - center) / scale'),
        ('kmeans_tree.size', 'number of rows of each node'),
        ('kmeans_tree.within_ss', 'sum of weighted squared distances of the rows of each node'),
        ('kmeans_tree.inertia', 'sum of within_ss of the leaves'),
        ('kmeans_tree.n_iter', 'most iterations of a fit'),
        ('kmeans_tree.converged', 'false if max_iter ended a fit'),
        ('kmeans_tree.parents', 'parent of each node, from 0; -1 of the root'),
        ('kmeans_model.mass', 'sum of the weights of each cluster; empty: size'),
        ('kmeans_origin.features', 'the columns; NULL from an aggregate'),
        ('kmeans_origin.relation', 'name of the relation; NULL from an aggregate'),
        ('kmeans_origin.options', 'options of the fit, and weight, nulls and filter where they were given'),
        ('kmeans_origin.fitted_at', 'start of the transaction of the fit; NULL from an aggregate'),
        ('kmeans_origin.means', 'mean of each feature of the rows; NULL with tol 0 unless standardized'),
        ('kmeans_origin.deviations', 'standard deviation of each feature of the rows; NULL where means is'),
        ('kmeans_origin.sources', 'what the model knows of each of these columns; NULL from an aggregate'),
        ('kmeans_source.type', 'of the values'),
        ('kmeans_source.encoding', 'number, date, interval, category or vector'),
        ('kmeans_source.levels', 'of a category: each is a feature, in the order of their bytes; NULL behind them if it is one'),
        ('kmeans_source.expression', 'whether it is an expression, not a column'),
        ('kmeans_sums.k', 'number of centroids'),
        ('kmeans_sums.n', 'number of rows'),
        ('kmeans_sums.inertia', 'sum of squared distances to the nearest centroids'),
        ('kmeans_sums.masses', 'number of rows, or sum of weights, of each cluster'),
        ('kmeans_sums.features', 'sums of the features of each cluster, k x d'),
        ('kmeans_sums.low', 'what rounding has taken from inertia, masses and features, in this order; empty: nothing'),
        ('kmeans_sums.fingerprint', 'of the centroids; sums of others do not merge'),
        ('cluster_agreement.adjusted_rand', 'adjusted Rand index (Hubert, Arabie 1985): 1 where they are the same but for names, about 0 by chance'),
        ('cluster_agreement.moved', 'share of the rows whose label is not the partner of the other, under the best one-to-one pairing of labels'),
        ('cluster_agreement.n', 'rows without a NULL'),
        ('pca_options.n_components', 'components to keep; below 1: the share of the variance that they explain'),
        ('pca_options.whiten, pca_model.whiten', 'whether scores have variance 1'),
        ('pca_options.standardize', 'whether each feature is divided by its standard deviation'),
        ('pca_model.n_components', 'number of components kept'),
        ('pca_model.mean', 'of each feature'),
        ('pca_model.components', 'n_components x d, each of length 1, of (features - mean) / scale'),
        ('pca_model.explained_variance', 'variance along each component, descending'),
        ('pca_model.explained_variance_ratio', 'share of each component in the variance of all'),
        ('pca_model.singular_values', 'sqrt((n - 1) explained_variance)'),
        ('gmm_options.covariance_type, gmm_model.covariance_type', 'full, tied, diag or spherical'),
        ('gmm_options.tol', 'EM ends when the mean log-likelihood of a row gains less'),
        ('gmm_options.reg_covar', 'added to the diagonal of each covariance'),
        ('gmm_options.n_init', 'runs from different first parameters; the best one counts'),
        ('gmm_options.weights_init', 'first weights, k values'),
        ('gmm_options.means_init', 'first means, k x d'),
        ('gmm_options.precisions_init', 'first inverse covariances'),
        ('gmm_model.k', 'number of components'),
        ('gmm_model.weights', 'k values, their sum is 1'),
        ('gmm_model.covariances', 'k x d x d, d x d, k x d or k, as covariance_type says'),
        ('gmm_model.log_likelihood', 'total over the rows, in the units of the data'),
        ('gmm_model.trace', 'log-likelihood at each iteration, before its M step'),
        ('gmm_model.aic', 'information criterion of Akaike; lower is better'),
        ('gmm_model.mass', 'what the rows count for: n, or what gmm_update has made of it by weights and decay'),
        ('gmm_model.bic', 'Bayesian information criterion; lower is better'),
        ('pg_stat_progress_kmeans.pid', 'process of the session'),
        ('pg_stat_progress_kmeans.datid', 'its database'),
        ('pg_stat_progress_kmeans.datname', 'name of that database'),
        ('pg_stat_progress_kmeans.relid', 'the table; NULL for an aggregate'),
        ('pg_stat_progress_kmeans.phase', 'what it does now'),
        ('pg_stat_progress_kmeans.rows_scanned', 'rows read'),
        ('pg_stat_progress_kmeans.rows_expected', 'rows that the planner expects; NULL: no estimate'),
        ('pg_stat_progress_kmeans.bytes_moved', 'bytes moved to and from the device'),
        ('pg_stat_progress_kmeans.iteration', 'the iteration that runs'),
        ('pg_stat_progress_kmeans.restart', 'the run of n_init'),
        ('pg_stat_progress_kmeans.n_init', 'runs in all'),
        ('pg_stat_progress_kmeans.shift', 'sum of squared distances that the centroids moved; of a mixture the growth of the mean log-likelihood'),
        ('pg_stat_progress_kmeans.backend', 'cpu or cuda'),
        ('pg_stat_progress_kmeans.devices', 'numbers of the CUDA devices that have a part of the rows'),
        ('pg_stat_progress_kmeans.pass', 'the pass over a table whose rows are streamed; 1 counts them'),
        ('pg_stat_progress_kmeans.seeded', 'while seeding: first centroids that are chosen; NULL: not known'),
        ('pg_stat_progress_kmeans.k', 'while seeding: first centroids to choose'),
        ('pg_stat_kmeans.function', 'what was called'),
        ('pg_stat_kmeans.backend', 'cpu, cuda, or nodes: with other servers; NULL: none'),
        ('pg_stat_kmeans.fits', 'fits that ended without error; of a sweep one for each k'),
        ('pg_stat_kmeans.rows', 'rows that took part in the calls'),
        ('pg_stat_kmeans.seconds', 'how long the calls took'),
        ('pg_stat_kmeans.stats_reset', 'since when')
    ) AS list (names, comment), pg_catalog.string_to_table(names, ', ') AS name
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN %s IS %L', made.name, made.comment);
    END LOOP;
END
$do$;

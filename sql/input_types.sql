-- every kind of number, alone and mixed, with no cast
CREATE TEMP TABLE numbers AS
SELECT i AS id, i::smallint AS s, (i * 2)::integer AS i, (i * 3)::bigint AS b, (i / 2.0)::numeric AS n,
       (i / 4.0)::real AS r, (i / 8.0)::double precision AS d
FROM generate_series(1, 4) AS i;

SELECT (kmeans(ARRAY[s], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[i], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[b], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[n], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[r], 1)).centroids FROM numbers;
SELECT (kmeans(ARRAY[d], 1)).centroids FROM numbers;
SELECT x, y, (m).centroids, (m).inertia
FROM (SELECT 's' AS x, 'i' AS y, kmeans(ARRAY[s, i], 1) AS m FROM numbers
      UNION ALL SELECT 's', 'b', kmeans(ARRAY[s, b], 1) FROM numbers
      UNION ALL SELECT 's', 'n', kmeans(ARRAY[s, n], 1) FROM numbers
      UNION ALL SELECT 's', 'r', kmeans(ARRAY[s, r], 1) FROM numbers
      UNION ALL SELECT 's', 'd', kmeans(ARRAY[s, d], 1) FROM numbers
      UNION ALL SELECT 'i', 'b', kmeans(ARRAY[i, b], 1) FROM numbers
      UNION ALL SELECT 'i', 'n', kmeans(ARRAY[i, n], 1) FROM numbers
      UNION ALL SELECT 'i', 'r', kmeans(ARRAY[i, r], 1) FROM numbers
      UNION ALL SELECT 'i', 'd', kmeans(ARRAY[i, d], 1) FROM numbers
      UNION ALL SELECT 'b', 'n', kmeans(ARRAY[b, n], 1) FROM numbers
      UNION ALL SELECT 'b', 'r', kmeans(ARRAY[b, r], 1) FROM numbers
      UNION ALL SELECT 'b', 'd', kmeans(ARRAY[b, d], 1) FROM numbers
      UNION ALL SELECT 'n', 'r', kmeans(ARRAY[n, r], 1) FROM numbers
      UNION ALL SELECT 'n', 'd', kmeans(ARRAY[n, d], 1) FROM numbers
      UNION ALL SELECT 'r', 'd', kmeans(ARRAY[r, d], 1) FROM numbers) AS t;
SELECT (kmeans(ARRAY[s, i, b, n, r, d], 1)).centroids FROM numbers;
-- literals and expressions
SELECT (kmeans(ARRAY[s, 1.5], 1)).centroids, (kmeans(ARRAY[i + 1, r * 2], 1)).centroids FROM numbers;
SELECT (kmeans('{1,2}'::real[], 1)).centroids;
-- the other functions resolve alike
SELECT kmeans_label(ARRAY[s, n], 1) OVER (), kmeans_label(ARRAY[i, r], 1) OVER (), kmeans_label(ARRAY[b], 1) OVER ()
FROM numbers LIMIT 1;
SELECT kmeans_predict(m, ARRAY[1]), kmeans_predict(m, ARRAY[1.5]), kmeans_predict(m, ARRAY[s]), kmeans_predict(m, ARRAY[b]),
       kmeans_predict(m, ARRAY[r]), kmeans_predict(m, ARRAY[d])
FROM (SELECT kmeans(ARRAY[i], 1) AS m FROM numbers) AS t, numbers WHERE id = 1;

-- real[] is clustered in float32, everything else in float64
SELECT (kmeans(ARRAY[16777217]::real[], 1)).centroids AS "real", (kmeans(ARRAY[16777217]::float8[], 1)).centroids AS "double precision",
       (kmeans(ARRAY[16777217::numeric], 1)).centroids AS "numeric";
SELECT (kmeans(ARRAY[2147483647, -2147483648], 1)).centroids AS "integer", (kmeans(ARRAY[32767, -32768]::smallint[], 1)).centroids AS "smallint",
       (kmeans(ARRAY[4611686018427387904], 1)).centroids AS "bigint", (kmeans(ARRAY[1024.25, -0.5], 1)).centroids AS "numeric";
-- domains over an array
CREATE DOMAIN feature_vector AS real[];
SELECT (kmeans('{1,2}'::feature_vector, 1)).centroids;
-- arrays however they are stored: short, long, compressed, out of line, expanded, with other subscripts
CREATE TEMP TABLE stored (id int, how text, f real[], n numeric[], d float8[]);
INSERT INTO stored SELECT i, 'short', ARRAY[i, 1, 2], ARRAY[i, 1, 2], ARRAY[i, 1, 2] FROM generate_series(1, 3) AS i;
INSERT INTO stored
SELECT i, 'compressed', array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000])
FROM generate_series(1, 3) AS i;
ALTER TABLE stored ALTER f SET STORAGE EXTERNAL, ALTER n SET STORAGE EXTERNAL, ALTER d SET STORAGE EXTERNAL;
INSERT INTO stored
SELECT i, 'external', array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000]), array_fill(i, ARRAY[2000])
FROM generate_series(1, 3) AS i;
SELECT how, (m).d, (m).centroids[1][1], (m).inertia, (n).centroids[1][1], (n).inertia, (d).centroids[1][1], (d).inertia
FROM (SELECT how, kmeans(f, 1) AS m, kmeans(n, 1) AS n, kmeans(d, 1) AS d FROM stored GROUP BY how) AS s ORDER BY how;
SELECT (kmeans('[-1:1]={1,2,3}'::real[], 1)).centroids;
DO $$
DECLARE
    a real[] := '{1,2}';
    m kmeans_model;
BEGIN
    a[1] := 5;
    m := (SELECT kmeans(a, 1));
    RAISE NOTICE '%', m.centroids;
    RAISE NOTICE '%', kmeans_distance(m, a);
END $$;
-- a bitmap of NULLs without a NULL in it
SELECT (kmeans((ARRAY[1, NULL, 3]::real[])[3:3], 1)).centroids, (kmeans(array_replace('{1,NULL,3}'::float8[], NULL, 2), 1)).centroids;
-- one feature and many
SELECT (m).d, (m).centroids[1][1600], (m).inertia
FROM (SELECT kmeans(array_fill(i::real, ARRAY[1600]), 2, kmeans_options(init => 'first')) AS m FROM generate_series(1, 2) AS i) AS s;
DROP DOMAIN feature_vector;

-- text, a literal, NULL and a parameter without a type are read as double precision[]
CREATE TEMP TABLE type_models AS SELECT kmeans(ARRAY[i, b], 2) AS m, gmm(ARRAY[i, b + i % 3], 1) AS g, pca(ARRAY[i, b]) AS p FROM numbers;
SELECT kmeans_predict(m, '{2,3}') = kmeans_predict(m, ARRAY[2, 3]) AS literal, kmeans_predict(m, '{2,3}'::text) = kmeans_predict(m, ARRAY[2, 3]) AS text,
    kmeans_predict(m, '{2,3}'::varchar) = kmeans_predict(m, ARRAY[2, 3]) AS varchar, kmeans_predict(m, NULL) AS "null", kmeans_predict(m, '{NULL,NULL}') AS nulls FROM type_models;
SELECT kmeans_distance(m, '{2,3}') = kmeans_distance(m, ARRAY[2, 3]) AS distance, kmeans_transform(m, '{2,3}') = kmeans_transform(m, ARRAY[2, 3]) AS transform,
    gmm_predict(g, '{2,3}') = gmm_predict(g, ARRAY[2, 3]) AS gmm, gmm_score(g, '{2,3}') = gmm_score(g, ARRAY[2, 3]) AS score, gmm_posterior(g, '{2,3}') = gmm_posterior(g, ARRAY[2, 3]) AS posterior,
    pca_transform(p, '{2,3}') = pca_transform(p, ARRAY[2, 3]) AS pca, pca_inverse_transform(p, '{2,3}') = pca_inverse_transform(p, ARRAY[2, 3]) AS inverse FROM type_models;
PREPARE type_predict AS SELECT kmeans_predict(m, $1) = kmeans_predict(m, ARRAY[2, 3]) AS same FROM type_models;
EXECUTE type_predict('{2,3}');
EXECUTE type_predict(NULL);
PREPARE type_fit AS SELECT (kmeans($1, $2)).centroids, (kmeans($1, $2, NULL)).n, (kmeans($1, $2, kmeans_options(), 2)).size FROM numbers;
EXECUTE type_fit('{1,2}', 1);
SELECT kmeans(NULL, 1) IS NULL AS none, kmeans_label('{1,2}', 1) OVER () AS label, gmm_label(NULL, 1) OVER () AS component, kmeans_update(m, '{2,3}') OVER () = kmeans_update(m, ARRAY[2, 3]) OVER () AS updated
FROM type_models GROUP BY m;
SELECT (kmeans_step(ARRAY[i, b], '{{0,0}}')).n AS step, (pca(ARRAY[i, b]::real[])).n AS pca FROM numbers;
SELECT kmeans_predict(m, 'no array') FROM type_models;
SELECT kmeans_predict(m, '{2,x}') FROM type_models;
-- another type by its cast, in each of the forms that a cast can have, and whether it is implicit or for assignments
CREATE TYPE type_pair AS (a real, b real);
CREATE TYPE type_half AS (a real, b real);
CREATE TYPE type_shy AS (a real, b real);
CREATE FUNCTION type_reals(type_pair, integer, boolean) RETURNS real[] LANGUAGE sql IMMUTABLE RETURN CASE WHEN $1.a >= 0 AND $2 = -1 AND NOT $3 THEN ARRAY[$1.a, $1.b] END;
CREATE FUNCTION type_doubles(type_half) RETURNS double precision[] LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN ARRAY[$1.a, $1.b]; END';
CREATE FUNCTION type_reals(type_shy) RETURNS real[] LANGUAGE sql IMMUTABLE RETURN ARRAY[$1.a, $1.b];
CREATE CAST (type_pair AS real[]) WITH FUNCTION type_reals(type_pair, integer, boolean) AS IMPLICIT;
CREATE CAST (type_half AS double precision[]) WITH FUNCTION type_doubles(type_half) AS ASSIGNMENT;
CREATE CAST (type_shy AS real[]) WITH FUNCTION type_reals(type_shy);
CREATE DOMAIN type_domain AS type_pair;
SELECT kmeans(ROW(i, b)::type_pair, 2) = kmeans(ARRAY[i, b]::real[], 2) AS aggregate, kmeans(ROW(i, b)::type_half, 2) = kmeans(ARRAY[i, b], 2) AS assignment,
    kmeans(ROW(i, b)::type_domain, 2) = kmeans(ARRAY[i, b]::real[], 2) AS domain, gmm(ROW(i, b)::type_pair, 1)::text = gmm(ARRAY[i, b]::real[], 1)::text AS gmm FROM numbers;
SELECT id, kmeans_label(ROW(i, b)::type_half, 2) OVER () = kmeans_label(ARRAY[i, b], 2) OVER () AS label, kmeans_predict(m, ROW(i, b)::type_pair) = kmeans_predict(m, ARRAY[i, b]) AS predict FROM numbers, type_models;
SELECT kmeans_predict(m, ROW(-1, 1)::type_pair) AS cast_to_null, kmeans_predict(m, NULL::type_pair) AS "null" FROM type_models;
-- the cast is the caller's
REVOKE EXECUTE ON FUNCTION type_doubles FROM PUBLIC;
CREATE ROLE type_role;
GRANT SELECT ON type_models TO type_role;
SET ROLE type_role;
SELECT kmeans_predict(m, ROW(1, 1)::type_half) FROM type_models;
RESET ROLE;
-- what is no vector
\set SHOW_CONTEXT never
SELECT kmeans_predict(m, ROW(1, 1)::type_shy) FROM type_models;
\set VERBOSITY sqlstate
SELECT kmeans_predict(m, 1) FROM type_models;
SELECT kmeans_predict(m, date '2026-01-01') FROM type_models;
SELECT kmeans_predict(m, 1::money) FROM type_models;
SELECT kmeans_predict(m, '[1,2]'::jsonb) FROM type_models;
SELECT kmeans_predict(m, point '(1,2)') FROM type_models;
SELECT kmeans_predict(m, polygon '((1,2),(3,4))') FROM type_models;
SELECT kmeans_predict(m, ARRAY[true]) FROM type_models;
SELECT kmeans(ROW(i, b), 1) FROM numbers;
SELECT pca(ROW(i, b)::type_pair::real[]) IS NULL, kmeans_step(i, '{{0}}') FROM numbers;
SELECT pgkm_pca_accum(NULL, 'x'::text);
SELECT pgkm_pca_accum(NULL, 7);
\set VERBOSITY default
DROP TABLE type_models;
DROP ROLE type_role;
SET client_min_messages = warning;
DROP TYPE type_pair, type_half, type_shy CASCADE;

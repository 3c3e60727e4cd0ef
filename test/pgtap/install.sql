-- CREATE EXTENSION in a schema where somebody else has put functions that fit better than those of
-- pg_catalog runs none of them, and a role that may create objects in the database needs no more for it. (Run as a
-- superuser, in a database of its own.)
DROP EXTENSION pg_kmeans CASCADE;
BEGIN;
SELECT plan(6);
CREATE SCHEMA trap;
CREATE FUNCTION trap.spring(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the trap "%" was sprung by %', name, current_user;
END $$;
-- Exact matches for the arguments of format(), which pg_catalog has as variadic "any" alone.
CREATE FUNCTION trap.format(text, text) RETURNS text LANGUAGE sql AS $$SELECT trap.spring('format'); SELECT ''::text$$;
CREATE FUNCTION trap.format(text, text, text) RETURNS text LANGUAGE sql AS $$SELECT trap.spring('format'); SELECT ''::text$$;
CREATE FUNCTION trap.equal(oid, oid) RETURNS boolean LANGUAGE sql AS $$SELECT trap.spring('='); SELECT true$$;
CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.equal);
SELECT lives_ok('CREATE EXTENSION pg_kmeans SCHEMA trap', 'CREATE EXTENSION calls no function of others');
SELECT lives_ok('SELECT count(*) FROM trap.pg_stat_progress_kmeans', 'neither does the view');
SELECT lives_ok('SELECT count(*) FROM trap.pg_stat_kmeans', 'nor the other one');
SELECT is((trap.kmeans(ARRAY[1, 2], 1)).n, 1::bigint, 'all is there');
DROP EXTENSION pg_kmeans;
CREATE ROLE install_guest;
ALTER SCHEMA trap OWNER TO install_guest;
SELECT format('GRANT CREATE ON DATABASE %I TO install_guest', current_database()) \gexec
SET LOCAL ROLE install_guest;
SELECT lives_ok('CREATE EXTENSION pg_kmeans SCHEMA trap', 'no superuser is needed');
SELECT is((trap.kmeans(ARRAY[1, 2], 1)).n, 1::bigint, 'and it works for that role');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;

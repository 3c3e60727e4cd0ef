#!/bin/bash
# What changes while a job is in the GPU service: its table dropped or truncated, the extension
# dropped or updated, the service one of another version.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
folder=$(mktemp -d)
other=
update=$(query -c "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'")/extension/pg_kmeans--1.0--1.0test.sql
trap 'fault; [ -z "$other" ] || kill $other; rm -rf "$folder" "$update"' EXIT

query <<'SQL'
CREATE TABLE changing AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 100000) AS i;
ALTER TABLE changing SET (parallel_workers = 2);
CREATE TABLE staying AS TABLE changing;
ANALYZE changing, staying;
SQL
fit="SELECT md5(ROW(k, d, centroids, size, within_ss, inertia, n_iter, converged, n, center, scale)::text) FROM kmeans_fit('changing', '{x,y}', 20, options => kmeans_options(max_iter => 5)) WHERE k > 0"
stays=${fit/changing/staying}
right=$(query -c "SET pg_kmeans.backend = cpu" -c "$fit")

# begin STATEMENT: a session that runs it; returns when the service pauses in its fit.
begin() {
    fault "fit slow 1500 once"
    say cuda "$1" >"$folder/job" &
    job=$!
    await_pause
}
# state STATEMENT: its SQLSTATE, or what it returns.
state() { psql -XqAt -v VERBOSITY=sqlstate -c "SET lock_timeout = 100" -c "$1" 2>&1 | sed 's/^ERROR: *//'; }

begin "$fit"
for change in "TRUNCATE changing" "DROP TABLE changing" "ALTER TABLE changing DROP COLUMN x" "VACUUM FULL changing"; do
    is "$(state "$change")" 55P03 "${change%% changing*} waits for the job's lock"
done
is "$(state "INSERT INTO changing VALUES (1, 1) RETURNING x")" 1 "INSERT does not"
query -c "DELETE FROM changing WHERE x = 1 AND y = 1"
wait $job
is "$(cat "$folder/job")" "$right" "the job is right"

# A change that comes first is waited for.
late() { # CHANGE: what a fit says that begins while the change is not committed yet
    : >"$folder/change" # or the last one's word is taken for this one's
    query -c "BEGIN" -c "$1" -c "SELECT 'changed'" -c "SELECT pg_sleep(0.5)" -c "COMMIT" >"$folder/change" &
    local change=$!
    until grep -q changed "$folder/change"; do sleep 0.01; done
    say cuda "${2:-$fit}"
    wait $change
}
is "$(late "TRUNCATE changing")" "" "a table that is truncated first has no rows"
query -c "INSERT INTO changing TABLE staying"
is "$(late "ALTER TABLE changing RENAME TO changed" "SET lock_timeout = 0; $fit")" "$right" "one that is renamed first is the same table"
query -c "ALTER TABLE changed RENAME TO changing"
is "$(late "DROP TABLE changing")" 42P01 "one that is dropped first is not there"
query -c "CREATE TABLE changing AS TABLE staying" -c "ALTER TABLE changing SET (parallel_workers = 2)" -c "ANALYZE changing"
is "$(say cuda "$fit")" "$right" "a new one of its name is"

# Rows that stay with a session do so whatever becomes of the table.
loaded=${fit/max_iter => 5)/max_iter => 5), memory => \'loaded\'}
kept() { # CHANGE
    {
        echo "\\set VERBOSITY sqlstate"
        echo "SET pg_kmeans.backend = cuda; SET client_min_messages = error; SELECT kmeans_load('changing', '{x,y}') = 0;"
        echo "\\! psql -Xqc '$1'"
        echo "$loaded;"
    } | psql -XqAt 2>&1 | sed 's/^.*ERROR: *//' | paste -sd ' '
}
is "$(kept 'TRUNCATE changing')" "f $right" "loaded rows of a table that was truncated since"
query -c "INSERT INTO changing TABLE staying"
is "$(kept 'DROP TABLE changing')" "f 42P01" "of one that was dropped"
query -c "CREATE TABLE changing AS TABLE staying" -c "ALTER TABLE changing SET (parallel_workers = 2)" -c "ANALYZE changing"
is "$(kept 'DROP TABLE changing; CREATE TABLE changing AS TABLE staying')" "f 55000" "of one whose name another has"
is "$(at_rest)" "0|0|0" "nothing is held"

# The extension goes while a job is at work, and comes again.
pid=$(service_pid)
begin "$stays"
query -c "DROP EXTENSION pg_kmeans"
wait $job
is "$(cat "$folder/job")" "$right" "DROP EXTENSION does not disturb a job"
is "$(state "$stays")" 42883 "the next finds no function"
query -c "CREATE EXTENSION pg_kmeans"
is "$(say cuda "$stays")" "$right" "CREATE EXTENSION: the next is right"

echo "CREATE FUNCTION kmeans_updated() RETURNS integer LANGUAGE sql AS 'SELECT 1';" >"$update"
begin "$stays"
query -c "ALTER EXTENSION pg_kmeans UPDATE TO '1.0test'"
is "$(query -c "SELECT kmeans_updated()" -c "SELECT extversion FROM pg_extension WHERE extname = 'pg_kmeans'" | paste -sd ' ')" "1 1.0test" "ALTER EXTENSION UPDATE beside a job"
wait $job
is "$(cat "$folder/job")" "$right" "the job is right"
is "$(say cuda "$stays")" "$right" "and the next"
is "$(service_pid)" "$pid" "the service stays through all of it"
query -c "DROP EXTENSION pg_kmeans" -c "CREATE EXTENSION pg_kmeans"

# Another version of the library left a service running: its number in each answer is another, or
# its answers have another length. It ends when it is told to.
other_service() { # LENGTH
    stop_service
    : >"$folder/other" # or what the last one said is taken for this one's word
    setpriv "--reuid=$(stat -c %U "$PGHOST")" "--regid=$(stat -c %g "$PGHOST")" --clear-groups perl -e '
use strict; use Fcntl ":flock"; use Socket; $| = 1;
my ($folder, $length, $lock, $listening, $client, $request) = ("$ARGV[0]/pg_stat_tmp", $ARGV[1]);
open($lock, ">", "$folder/pg_kmeans.lock") && flock($lock, LOCK_EX) || die $!;
unlink("$folder/pg_kmeans.service");
socket($listening, AF_UNIX, SOCK_SEQPACKET, 0) && bind($listening, pack_sockaddr_un("$folder/pg_kmeans.service")) &&
    listen($listening, 64) || die $!;
$SIG{CHLD} = "IGNORE";
print "listening\n";
while (accept($client, $listening)) {
    next if fork;
    close($listening); close($lock); # with the parent they end
    while (defined(recv($client, $request, 65536, 0)) && length $request) { send($client, "\xff" x $length, 0) }
    exit;
}
' "$(query -c "SHOW data_directory")" "$1" >"$folder/other" &
    other=$!
    until grep -q listening "$folder/other" || ! kill -0 $other; do sleep 0.01; done
}
same_length=$(sed -n 's/^static_assert(sizeof(Reply) == \([0-9]*\).*/\1/p' "$here/src/service/wire/protocol.hpp")
for length in "$same_length" 7; do
    other_service "$length"
    began=$(date +%s%N)
    is "$(say cuda "$stays")" "$right" "another version's service (answers of $length bytes): the session opens the device itself"
    [ $((($(date +%s%N) - began) / 1000000)) -lt 2000 ]
    result $? "before long"
    is "$(query -c "SELECT service_pid IS NULL FROM kmeans_status() WHERE backend = 'cuda'")" t "it is not taken for ours"
    kill $other
    wait $other 2>/dev/null
    other=
    is "$(say cuda "$stays")" "$right" "when it has ended"
    [ -n "$(service_pid)" ]
    result $? "ours starts"
done
echo "1..$number"

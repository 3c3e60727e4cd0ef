#!/bin/bash
# Rows that stay with the GPU service: the right results from fit to fit, also when the service
# has ended in between or the device fails; nothing is held once they are unloaded.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/common.sh"
source "$here/scripts/lib/tap.sh"
source "$here/scripts/lib/service.sh"
folder=$(mktemp -d)
trap 'fault; rm -rf "$folder"' EXIT
query -c "CREATE TABLE kept_rows AS SELECT sin(i)::real AS x, cos(i * 7)::real AS y FROM generate_series(1, 100000) AS i" \
    -c "ANALYZE kept_rows"
fit() { echo "SELECT md5((to_jsonb(kmeans_fit('kept_rows', '{x,y}', $1, options => kmeans_options(max_iter => 20)${2:-})) - 'origin')::text);"; }
wanted=$(for k in 3 60 20; do fit $k; done | query)
stop="DO \$\$ BEGIN
    LOOP
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_kmeans GPU service';
        EXIT WHEN NOT FOUND;
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
    END LOOP;
END \$\$;"
# session BACKEND BETWEEN: three fits of loaded rows, with something between them; what is said.
session() {
    {
        echo "SET client_min_messages = error; SET pg_kmeans.backend = $1; SELECT kmeans_load('kept_rows', '{x,y}') = 0;"
        fit 3 ", memory => 'loaded'"
        echo "$2"
        fit 60 ", memory => 'loaded'"
        fit 20 ", memory => 'loaded'"
        echo "SELECT kmeans_unload();"
        echo "SELECT coalesce(jobs, 0), coalesce(jobs_waiting, 0), coalesce(memory_held, 0) FROM kmeans_status() WHERE backend = 'cuda';"
    } | psql -XqAt 2>&1
}
expected="f"$'\n'"$wanted"$'\n'"1"$'\n'"0|0|0"
is "$(session cuda '')" "$expected" 'fits of rows that stay, and nothing is held afterwards'
is "$(session cuda "$stop")" "$expected" 'the service ended between two fits'
is "$(session auto "$stop")" "$expected" 'likewise with auto'
is "$(session cuda "SET pg_kmeans.gpu_memory_limit = '200MB';")" "$expected" 'a setting changed between two fits'
is "$(session cuda "SET pg_kmeans.backend = cpu;")" "$expected" 'the CPU in between'
is "$(session cuda "$(fit 7)" | grep -vxF "$(fit 7 | query)")" "$expected" 'another fit in between'
failing="\\set VERBOSITY sqlstate
\\! echo 'fit device_error once' >$SERVICE_FOLDER/faults.txt"
is "$(session cuda "$failing" | sed 's/.*ERROR: *//')" "$(sed 3s/.*/58000/ <<<"$expected")" 'the device failed once: an error, and the next fit is right'
fault

# Two sets of rows in turn: each has its own place in the service.
query -c "CREATE TABLE kept_more AS SELECT y + 3 AS x, x AS y FROM kept_rows"
other() { fit "$@" | sed s/kept_rows/kept_more/; }
in_turn() { # LOADED
    for k in 3 60 20; do
        fit $k "$1"
        other $k "$1"
    done
}
turns=$({
    echo "SET pg_kmeans.backend = cuda; SELECT kmeans_load('kept_rows', '{x,y}') + kmeans_load('kept_more', '{x,y}');"
    in_turn ", memory => 'loaded'"
} | query)
is "$turns" "200000"$'\n'"$(in_turn '' | query)" 'two sets of rows in turn'

# In the device's memory from the first fit to the last: the second moves next to nothing.
moved=$({
    echo "SET pg_kmeans.backend = cuda; SELECT kmeans_load('kept_rows', '{x,y}') = 0;"
    fit 3 ", memory => 'loaded'"
    fit 3 ", memory => 'loaded'"
    echo "SELECT memory_held >= 800000 FROM kmeans_status() WHERE backend = 'cuda';"
} | query | tail -n 1)
is "$moved" t 'they lie in the memory of the device'

# Whatever is fitted first: what follows finds them there, and would fail if it loaded them again.
one_of() { # ALGORITHM LOADED
    case $1 in
        kmeans) fit 3 "$2" ;;
        gmm) echo "SELECT md5((to_jsonb(gmm_fit('kept_rows', '{x,y}', 2, options => gmm_options(covariance_type => 'tied', max_iter => 2)$2)) - 'origin')::text);" ;;
        pca) echo "SELECT md5((to_jsonb(pca_fit('kept_rows', '{x,y}'$2)) - 'origin')::text);" ;;
    esac
}
for first in kmeans gmm pca; do
    algorithms="$first gmm pca kmeans"
    found=$({
        echo "SET pg_kmeans.backend = cuda; SET client_min_messages = error; SELECT kmeans_load('kept_rows', '{x,y}') = 0;"
        for algorithm in $algorithms; do
            one_of $algorithm ", memory => 'loaded'"
            echo "\\! echo 'load device_error' >$SERVICE_FOLDER/faults.txt"
        done
    } | psql -XqAt 2>&1)
    fault
    is "$found" "f"$'\n'"$(for algorithm in $algorithms; do one_of $algorithm ''; done | query)" \
        "a mixture, components and k-means after $first: no row is loaded again"
done

# Rows that several processes have read lie in shared memory, which the service maps once for all who use it:
# those of k-means stay there while mixtures and principal components work on them.
query -c "CREATE TABLE kept_shared WITH (parallel_workers = 2) AS SELECT x, y FROM kept_rows"
of_shared() { # LOADED
    fit 3 "$1" | sed s/kept_rows/kept_shared/
    echo "SELECT md5((to_jsonb(gmm_fit('kept_shared', '{x,y}', 2, options => gmm_options(max_iter => 2)$1)) - 'origin')::text);
        SELECT md5((to_jsonb(pca_fit('kept_shared', '{x,y}'$1)) - 'origin')::text);"
    fit 20 "$1" | sed s/kept_rows/kept_shared/
}
mapped() {
    query -c "SELECT count(*) FROM regexp_split_to_table(pg_read_file('/proc/$(service_pid)/maps'), '\n') AS line WHERE line ~ 'memfd:pg_kmeans'"
}
before=$(mapped)
shared=$({
    echo "SET pg_kmeans.backend = cuda; SET client_min_messages = error; SELECT kmeans_load('kept_shared', '{x,y}');"
    of_shared ", memory => 'loaded'"
    of_shared ", memory => 'loaded'"
    echo "SELECT count(*) > $before FROM regexp_split_to_table(pg_read_file('/proc/$(service_pid)/maps'), '\n') AS line WHERE line ~ 'memfd:pg_kmeans';
        SELECT kmeans_unload();"
} | psql -XqAt 2>&1)
wanted=$(of_shared '' | query)
is "$shared" "100000"$'\n'"$wanted"$'\n'"$wanted"$'\n'"t"$'\n'"1" 'rows in shared memory: k-means, a mixture and components in turn'
is "$(at_rest)" "0|0|0" 'nothing is held afterwards'
sleep 0.1
is "$(mapped)" "$before" 'and no segment stays mapped'
echo "1..$number"

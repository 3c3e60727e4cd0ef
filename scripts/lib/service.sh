# What the tests of the GPU service share. Sourced after common.sh and tap.sh, with the server of PGHOST.

# Builds the test plugin and makes the server use it, from a folder where it looks for faults.
install_service_plugin() {
    quietly locked "$build" "$here/scripts/configure" "$build" && quietly locked "$build" cmake --build "$build" -j"$jobs" --target service_plugin || return 1
    export SERVICE_FOLDER
    SERVICE_FOLDER=$(mktemp -d /tmp/pgkm_plugin.XXXXXX) || return 1
    chmod 777 "$SERVICE_FOLDER" # the server's user removes a fault that it has suffered
    use_plugin plugin
}

# Makes the server load a copy of the plugin under this name: a new one for the server.
use_plugin() {
    cp "$build/service_plugin.so" "$SERVICE_FOLDER/$1.so" && chmod 755 "$SERVICE_FOLDER/$1.so" || return 1
    configure cuda_plugin "$SERVICE_FOLDER/$1.so"
    stop_service
}

remove_service_plugin() {
    configure cuda_plugin ''
    stop_service
    rm -rf "$SERVICE_FOLDER"
}

# configure SETTING VALUE: in the server's configuration, for all sessions from now on.
configure() {
    PGOPTIONS= psql -XqAt -d postgres -v ON_ERROR_STOP=1 -c "LOAD 'pg_kmeans'" -c "ALTER SYSTEM SET pg_kmeans.$1 = '$2'" \
        -c "SELECT pg_reload_conf()" >/dev/null
}

service_pid() {
    PGOPTIONS= psql -XqAt -d postgres -c "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_kmeans GPU service'"
}

# Ends the service, if there is one, and waits for its end.
stop_service() {
    PGOPTIONS= psql -XqAt -d postgres -v ON_ERROR_STOP=1 >/dev/null <<'SQL'
DO $$
BEGIN
    LOOP
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_kmeans GPU service';
        EXIT WHEN NOT FOUND;
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
    END LOOP;
END $$;
SQL
}

# fault LINE: what the plugin does from now on; none: nothing.
fault() {
    rm -f "$SERVICE_FOLDER/reached"
    if [ $# -eq 0 ]; then
        rm -f "$SERVICE_FOLDER/faults.txt"
    else
        echo "$1" >"$SERVICE_FOLDER/faults.new"
        mv "$SERVICE_FOLDER/faults.new" "$SERVICE_FOLDER/faults.txt"
    fi
}

# Waits until the plugin pauses by a fault that fault() has set. Called in time, it does.
await_pause() {
    local i
    for ((i = 0; i < 1000; i++)); do
        [ ! -e "$SERVICE_FOLDER/reached" ] || return 0
        sleep 0.01
    done
    return 1
}

# The state of the service when all is over, once it has come to rest: a line for each device, or one where it does not run.
at_rest() {
    local i state
    for ((i = 0; i < 100; i++)); do
        state=$(query -c "SELECT coalesce(jobs, 0), coalesce(jobs_waiting, 0), coalesce(memory_held, 0) FROM kmeans_status() WHERE backend = 'cuda'")
        [ -n "$(grep -vxF "0|0|0" <<<"$state")" ] || break
        sleep 0.02
    done
    echo "$state"
}
# What a session says to a statement: its result, or its SQLSTATE; and WARNING if there was one other than 01K01, which
# says that max_iter ended a fit.
say() { # BACKEND STATEMENT [SETTING]...
    local backend=$1 statement=$2
    shift 2
    {
        echo '\set VERBOSITY sqlstate'
        printf '%s;\n' "SET client_min_messages = warning" "SET pg_kmeans.backend = $backend" "$@" "$statement"
    } | psql -XqAt 2>&1 | sed -E '/WARNING: +01K01$/d; s/^(psql:[^ ]* )?ERROR: +//; s/^(psql:[^ ]* )?WARNING:.*/WARNING/' | paste -sd ' '
}

# hang PHASE KIND [BACKEND]: $fit, whose call never ends, is ended by KIND (timeout, cancel, terminate, or
# service: that one is terminated). Prints how late, unless within $limit_ms, and what was said: SQLSTATE,
# WARNING, and the result if it is $right. Files go to $folder. The session waits and computes nothing; the
# limit is one that no busy machine reaches, and far below what any of its waits may last.
limit_ms=5000
hang() {
    local phase=$1 kind=$2 backend=${3:-cuda} pid began ended
    fault "$phase hang"
    : >"$folder/out" # or an earlier session's pid is taken for this one's
    {
        echo '\set VERBOSITY sqlstate'
        echo "SELECT pg_backend_pid(); SET client_min_messages = warning; SET pg_kmeans.backend = $backend;"
        [ "$kind" != timeout ] || echo "SET statement_timeout = 200;"
        echo "$fit;"
        echo "SELECT 'ended ' || extract(epoch from clock_timestamp()) * 1000;"
    } | psql -XqAt >"$folder/out" 2>"$folder/err" &
    local session=$!
    if [ "$kind" != timeout ]; then
        until pid=$(head -n 1 "$folder/out") && [ -n "$pid" ]; do sleep 0.01; done
        await_pause || echo "it never got there"
        case $kind in
        service) fault && pid=$(service_pid) ;;
        esac
        began=$(query -c "SELECT extract(epoch from clock_timestamp()) * 1000, pg_$([ "$kind" = cancel ] && echo cancel || echo terminate)_backend($pid)")
        wait $session
        ended=$(awk '/^ended/ { print $2 }' "$folder/out")
        [ -z "$ended" ] || [ "$kind" = service ] || awk -v a="${began%|*}" -v b="$ended" -v limit=$limit_ms 'BEGIN { exit b - a > limit }' || echo "late: $began $ended"
    else
        wait $session
    fi
    fault
    grep -v 01K01 "$folder/err" | grep -oE '57014|57P01|58000|WARNING'
    grep -xF "$right" "$folder/out"
}

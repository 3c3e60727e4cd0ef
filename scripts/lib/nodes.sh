# More servers beside that of PGHOST, as other nodes of one fit. Sourced after common.sh, in a command of with-postgres.
#
# They are copies of the same programs, each with a folder and a socket of its own. Every function names a node by its
# number, from 1; 0 is the server of PGHOST.

nodes_folder=
declare -A node_pid=()

# start_nodes COUNT [SETTING]...: servers 1 .. COUNT, each with the extension in database postgres; "name = 'value'".
start_nodes() {
    local i count=$1
    shift
    nodes_folder=$(mktemp -d /tmp/pgkn.XXXXXX)
    chmod 755 "$nodes_folder"
    nodes_as=()
    if [ "$(id -u)" -eq 0 ]; then
        local user=nobody
        if id -u postgres >/dev/null 2>&1; then user=postgres; fi
        nodes_as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
        chown "$user" "$nodes_folder"
    fi
    for ((i = 1; i <= count; i++)); do
        (cd / && quietly "${nodes_as[@]}" initdb -D "$nodes_folder/data$i" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync) || return 1
        "${nodes_as[@]}" mkdir "$nodes_folder/socket$i"
        printf "%s\n" "listen_addresses = ''" "unix_socket_directories = '$nodes_folder/socket$i'" "port = 5432" \
            "fsync = off" "full_page_writes = off" "shared_buffers = '32MB'" \
            "max_connections = 20" "log_line_prefix = '%m [%p] '" "$@" >>"$nodes_folder/data$i/postgresql.conf"
        start_node "$i" || return 1
        on_node "$i" -c "CREATE EXTENSION pg_kmeans" || return 1
    done
}

# begin_with_nodes COUNT: for a test (tap.sh). The servers, until it ends, and postgres_fdw here; skips without that.
begin_with_nodes() {
    if [ "$(query -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'")" = 0 ]; then
        echo "1..0 # SKIP postgres_fdw is not installed"
        exit
    fi
    trap stop_nodes EXIT
    start_nodes "$1" || exit 1
    query -c "CREATE EXTENSION IF NOT EXISTS postgres_fdw"
}

# begin_with_citus COUNT: for a test (tap.sh). The server of PGHOST is a coordinator, others are its workers.
begin_with_citus() {
    local i
    trap stop_nodes EXIT
    start_nodes "$1" "shared_preload_libraries = 'citus'" "citus.enable_statistics_collection = off" || exit 1
    query -c "CREATE EXTENSION citus" -c "SELECT citus_set_coordinator_host('$PGHOST', $PGPORT)" >/dev/null
    for ((i = 1; i <= $1; i++)); do
        on_node "$i" -c "CREATE EXTENSION citus"
        query -c "SELECT citus_add_node('$nodes_folder/socket$i', 5432)" >/dev/null
    done
    query -c "CREATE EXTENSION pg_kmeans"
}

start_node() {
    local i=$1 try
    (cd / && exec "${nodes_as[@]}" env LC_ALL=C.UTF-8 postgres -D "$nodes_folder/data$i" >>"$nodes_folder/log$i" 2>&1 </dev/null) &
    node_pid[$i]=$!
    for ((try = 0; try < 600; try++)); do
        if pg_isready -q -h "$nodes_folder/socket$i" -p 5432; then return 0; fi
        sleep 0.1
    done
    cat "$nodes_folder/log$i" >&2
    return 1
}

# kill_node NUMBER [SIGNAL]: ends it and waits for that; QUIT is an immediate shutdown.
kill_node() {
    kill "-${2:-QUIT}" "${node_pid[$1]}" && wait "${node_pid[$1]}" 2>/dev/null
    unset "node_pid[$1]"
}

stop_nodes() {
    local i
    for i in "${!node_pid[@]}"; do
        kill_node "$i" INT || true
    done
    [ -z "$nodes_folder" ] || rm -rf "$nodes_folder"
}

# on_node NUMBER PSQL-ARGUMENT...
on_node() {
    local i=$1
    shift
    if [ "$i" -eq 0 ]; then
        psql -XqAt -v ON_ERROR_STOP=1 "$@"
    else
        psql -XqAt -v ON_ERROR_STOP=1 -h "$nodes_folder/socket$i" -p 5432 -U postgres -d postgres "$@"
    fi
}

# join_node NUMBER: makes it the foreign server node NUMBER of the current database of server 0.
join_node() {
    on_node 0 <<SQL
CREATE SERVER node$1 FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host '$nodes_folder/socket$1', port '5432', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER node$1 OPTIONS (user 'postgres');
SQL
}

# near ONE ALL NAME FUNCTION ARGUMENTS: a test (tap.sh) that all numbers of the models of table ONE, here, and of table ALL,
# over all servers, are the same to 1e-12: sums in float64 are added server by server.
near() {
    local numbers="jsonb_path_query(to_jsonb(m), 'strict \$.** ? (@.type() == \"number\")')::float8 AS v"
    is "$(query -c "WITH a AS MATERIALIZED (SELECT row_number() OVER () AS i, v FROM (SELECT $numbers FROM $4('$1', $5) AS m) AS q),
        b AS MATERIALIZED (SELECT row_number() OVER () AS i, v FROM (SELECT $numbers FROM $4('$2', $5) AS m) AS q)
        SELECT count(*) > 5 AND bool_and(coalesce(abs(a.v - b.v) <= 1e-12 * greatest(1, abs(a.v)), false)) FROM a FULL JOIN b USING (i)" -c "SELECT scan FROM kmeans_last_run()" | paste -sd ' ')" 't nodes' "$3"
}

# nothing_left NUMBER TEXT [COMMAND]: a test (tap.sh) that the sessions of fits on that node end; COMMAND after each look that
# finds one.
nothing_left() {
    local left i
    for ((i = 0; i < 300; i++)); do
        left=$(on_node "$1" -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pg_kmeans'")
        [ "$left" = 0 ] && break
        ${3:-:}
        sleep 0.05
    done
    is "$left" 0 "$2"
}

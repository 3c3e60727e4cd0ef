# The throw-away server of with-postgres, step by step. Sourced after common.sh.

# A folder that the server's user can reach; short, for the socket's name has a limit.
make_server_directory() {
    server=$(mktemp -d /tmp/pgkm.XXXXXX)
    chmod 755 "$server"
    postmaster=
    as_server=()
    if [ "$(id -u)" -eq 0 ]; then # PostgreSQL refuses to run as root
        local user=nobody
        if id -u postgres >/dev/null 2>&1; then user=postgres; fi
        as_server=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
        [ -z "${WITH_POSTGRES_VALGRIND:-}" ] || chown "$user" "$WITH_POSTGRES_VALGRIND"
        install -d -o "$user" "$server/home" "$server/data" "$server/socket"
    else
        mkdir "$server/home" "$server/data" "$server/socket"
    fi
    chmod 700 "$server/data"
}

# PostgreSQL finds its folders relative to its programs, so copies of the programs under a
# root of their own, with the same folders below it, look there for extensions. What the
# installed server has (pgTAP, contrib) is linked beside our files.
stage_server() {
    local root=$server/root share lib
    bin=$root$("$PG_CONFIG" --bindir)
    share=$("$PG_CONFIG" --sharedir)
    lib=$("$PG_CONFIG" --pkglibdir)
    mkdir -p "$bin"
    cp -L "$("$PG_CONFIG" --bindir)"/* "$bin"
    rm "$bin/pg_config" # the original goes on answering for builds
    quietly locked "$build" make -C "$here" "BUILD=$build" -j"$jobs" all || die "the build failed"
    quietly locked "$build" make -C "$here" "BUILD=$build" install "DESTDIR=$root" || die "the staged installation failed"
    [ -z "${WITH_POSTGRES_ALSO:-}" ] || cp -R "$WITH_POSTGRES_ALSO/." "$root"
    link_missing "$share" "$root$share"
    link_missing "$share/extension" "$root$share/extension"
    link_missing "$lib" "$root$lib"
}

# Links everything in folder $1 that $2 lacks; an installed pg_kmeans stays out of it.
link_missing() {
    local file
    mkdir -p "$2"
    for file in "$1"/*; do
        case ${file##*/} in
        pg_kmeans*) ;;
        *) [ -e "$2/${file##*/}" ] || ln -s "$file" "$2" ;;
        esac
    done
}

init_server() {
    (quietly exec_as_server "$bin/initdb" -D "$server/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 \
        --no-sync) || die "initdb failed"
    {
        printf "%s\n" "listen_addresses = ''" "unix_socket_directories = '$server/socket'" "port = 5432" \
            "fsync = off" "synchronous_commit = off" "full_page_writes = off" "shared_buffers = '128MB'" \
            "max_connections = 40" "logging_collector = off" "log_line_prefix = '%m [%p] '"
        extra_settings
    } >>"$server/data/postgresql.conf"
}

# WITH_POSTGRES_SETTINGS as lines of postgresql.conf.
extra_settings() {
    local settings=${WITH_POSTGRES_SETTINGS:-} line
    case $settings in
    *$'\n'*) ;;
    *) settings=${settings// /$'\n'} ;;
    esac
    while IFS= read -r line; do
        line=${line#"${line%%[![:space:]]*}"}
        [ -z "$line" ] || printf "%s = '%s'\n" "${line%%=*}" "$(sed "s/'/''/g" <<<"${line#*=}")"
    done <<<"$settings"
}

# Becomes the command as the server's user, in a folder and with a home that it may read.
exec_as_server() {
    cd "$server/home"
    exec "${as_server[@]}" env HOME="$server/home" LC_ALL=C.UTF-8 "$@"
}

start_server() {
    local under=() patience=60 i
    if [ -n "${WITH_POSTGRES_VALGRIND:-}" ]; then
        under=(valgrind --quiet --trace-children=yes --leak-check=no --num-callers=30 --error-limit=no --fullpath-after=
            "--suppressions=$here/scripts/lib/valgrind.supp"
            "--log-file=$WITH_POSTGRES_VALGRIND/%p.log")
        patience=300
    fi
    exec_as_server "${under[@]}" "$bin/postgres" -D "$server/data" >"$server/log" 2>&1 </dev/null &
    postmaster=$!
    for ((i = 0; i < patience * 10; i++)); do
        if "$bin/pg_isready" -q -h "$server/socket" -p 5432; then return; fi
        kill -0 "$postmaster" 2>/dev/null || break
        sleep 0.1
    done
    cat "$server/log" >&2
    die "the server did not start"
}

# On every exit: end our server, and only ours, then remove all of it.
stop_server() {
    local i
    trap '' HUP INT TERM
    if [ -n "$postmaster" ]; then
        kill -INT "$postmaster" 2>/dev/null || true # fast shutdown
        for ((i = 0; i < 600; i++)); do
            kill -0 "$postmaster" 2>/dev/null || break
            [ $i -ne 300 ] || kill -QUIT "$postmaster" 2>/dev/null || true # immediate shutdown
            sleep 0.1
        done
        wait "$postmaster" 2>/dev/null || true
    fi
    [ -z "${WITH_POSTGRES_LOG:-}" ] || cp "$server/log" "$WITH_POSTGRES_LOG" || true
    rm -rf "$server"
}

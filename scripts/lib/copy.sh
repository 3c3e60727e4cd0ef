# A copy of the server of PGHOST, run beside it on the next port, for tests. Sourced after tap.sh. It
# belongs to the same user; $folder holds its data and its log.
port=$((PGPORT + 1))
folder=$(mktemp -d /tmp/pgkm.XXXXXX)
copy=
as_server=()
if [ "$(id -u)" -eq 0 ]; then
    user=$(stat -c %U "$PGHOST")
    as_server=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
    chown "$user" "$folder"
fi

# make_copy [OPTION of pg_basebackup]...
make_copy() {
    (cd "$folder" && "${as_server[@]}" pg_basebackup -D "$folder/data" -X stream -c fast --no-sync -h "$PGHOST" -p "$PGPORT" -U "$PGUSER" "$@") >&2
}
# start_copy [SETTING=VALUE]...: under the command ${under[@]}; waits until it answers.
under=()
start_copy() {
    local i settings=()
    for i in "$@"; do settings+=(-c "$i"); done
    (cd "$folder" && exec "${under[@]}" "${as_server[@]}" postgres -D "$folder/data" -c port="$port" "${settings[@]}") >>"$folder/log" 2>&1 &
    copy=$!
    for ((i = 0; i < 300; i++)); do
        pg_isready -q -h "$PGHOST" -p "$port" && return 0
        kill -0 "$copy" 2>/dev/null || break
        sleep 0.1
    done
    cat "$folder/log" >&2
    return 1
}
stop_copy() {
    [ -z "$copy" ] || { kill -INT "$copy" && wait "$copy"; } 2>/dev/null
    copy=
}
remove_copy() {
    stop_copy
    rm -rf "$folder"
}

# A session's statements there.
there() { query -p "$port" "$@"; }

# Waits until a standby has all that the primary has committed. The server's commits are asynchronous: one that
# is not brings all before it to disk.
await_replay() {
    local target i
    target=$(query -c "SET synchronous_commit = on" -c "SELECT pg_logical_emit_message(true, 'replay', '')" \
        -c "SELECT pg_current_wal_flush_lsn()" | tail -n 1)
    for ((i = 0; i < 200; i++)); do
        [ "$(there -c "SELECT pg_last_wal_replay_lsn() >= '$target'")" = t ] && break
        sleep 0.05
    done
}

# A hot standby of the server of PGHOST, for tests. Sourced after tap.sh. It belongs to the primary's
# user and listens beside it, on the next port. $folder holds its data and its log.
port=$((PGPORT + 1))
folder=$(mktemp -d /tmp/pgkm.XXXXXX)
standby=
as_server=()
if [ "$(id -u)" -eq 0 ]; then
    user=$(stat -c %U "$PGHOST")
    as_server=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
    chown "$user" "$folder"
fi

# Copies the primary, starts the copy, and waits until it answers.
start_standby() {
    local i
    (cd "$folder" && "${as_server[@]}" pg_basebackup -D "$folder/data" -R -X stream -c fast --no-sync -h "$PGHOST" -p "$PGPORT" -U "$PGUSER") >&2
    (cd "$folder" && exec "${as_server[@]}" postgres -D "$folder/data" -c port="$port" -c max_standby_streaming_delay=100ms) >"$folder/log" 2>&1 &
    standby=$!
    for ((i = 0; i < 300; i++)); do
        pg_isready -q -h "$PGHOST" -p "$port" && break
        kill -0 "$standby" 2>/dev/null || break
        sleep 0.1
    done
}
stop_standby() {
    [ -z "$standby" ] || { kill -INT "$standby" && wait "$standby"; } 2>/dev/null
    rm -rf "$folder"
}

# A session's statements on the standby.
there() { query -p "$port" "$@"; }

# Waits until the standby has all that the primary has written.
await_replay() {
    local target i
    target=$(query -c "SELECT pg_current_wal_lsn()")
    for ((i = 0; i < 200; i++)); do
        [ "$(there -c "SELECT pg_last_wal_replay_lsn() >= '$target'")" = t ] && break
        sleep 0.05
    done
}

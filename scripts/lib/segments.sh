# Leaks of shared memory, for tests: what is in /dev/shm when this is sourced, and what orphans() finds later.
# Sourced after tap.sh, with the server of PGHOST.

# The names there that belong to the server's user.
segments() { find /dev/shm -maxdepth 1 -type f -user "$(stat -c %U "$PGHOST")" -printf '%f\n' | sort; }
segments_before=$(segments)

# A statement that prints a word of the caller's, the session's process, and the segments that it has mapped.
mapped() {
    echo "SELECT concat_ws(' ', '$1', pg_backend_pid(), string_agg(DISTINCT substring(line FROM '/dev/shm/[^ ]+'), ' '))
          FROM regexp_split_to_table(pg_read_file('/proc/self/maps'), '\\n') AS line"
}

# holds_no_more OUT: whether a session, which has ended, had no more segments of its own where it printed `after` than
# where it printed `before`. Its own ones go with it. The server's statistics, which grow at any time, have some that
# stay.
holds_no_more() {
    local after=() name
    read -r -a after <<<"$(grep '^after ' "$1")"
    grep -q '^before ' "$1" && [ ${#after[@]} -ge 2 ] || return 1
    while [ -d "/proc/${after[1]}" ]; do sleep 0.01; done
    for name in "${after[@]:2}"; do
        grep '^before ' "$1" | grep -qwF "$name" || [ -e "$name" ] || return 1
    done
}

# Prints the new names that no process has mapped and that are not another server's. From version 17 on what
# the GPU service's few words are in stays with the server: a session maps it meanwhile.
orphans() {
    local name output session
    exec {output}< <(exec psql -XqAt -v ON_ERROR_STOP=1 -c "SET client_connection_check_interval = 100" \
        -c "SELECT count(*) FROM kmeans_status()" -c "SELECT pg_sleep(600)")
    session=$!
    read -r <&"$output"
    for name in $(comm -13 <(echo "$segments_before") <(segments)); do
        held "$name" || echo "$name"
    done
    kill "$session"
    exec {output}<&-
}

# Whether a segment has an owner, or goes. One that is just being made or removed is looked at again.
held() {
    local i
    for ((i = 0; i < 50; i++)); do
        if [ ! -e "/dev/shm/$1" ] || grep -qsFw "/dev/shm/$1" /proc/[0-9]*/maps || listed_elsewhere "${1#PostgreSQL.}"; then
            return 0
        fi
        sleep 0.2
    done
    return 1
}

# Whether another server knows of the segment with this handle, the number in its name; it may keep one that none
# of its processes has mapped at the moment. A server lists its segments in one more, which its postmaster has
# mapped all the time (dsm_control_header in the server's dsm.c).
listed_elsewhere() {
    local postmaster list
    postmaster=$(query -c "SELECT pg_read_file('postmaster.pid')" | head -n 1)
    for list in /dev/shm/PostgreSQL.*; do
        [ "$(od -An -tx4 -N4 "$list" 2>/dev/null)" = " 9a503d32" ] || continue
        ! grep -qsFw "$list" "/proc/$postmaster/maps" || continue
        ! od -An -v -w4 -tu4 "$list" 2>/dev/null | grep -qxE " *$1" || return 0
    done
    return 1
}

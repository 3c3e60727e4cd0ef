# What shell tests in TAP share. Sourced by the tests of test/pgtap and test/service.

# One session's statements, of which none may fail.
query() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

# result STATUS TEXT: one line of TAP. $number counts them.
number=0
result() {
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
}

# The same, and what was got instead.
is() { # GOT WANTED TEXT
    [ "$1" = "$2" ]
    result $? "$3"
    [ "$1" = "$2" ] || printf '# got: %s\n# wanted: %s\n' "${1//$'\n'/ / }" "$2"
}

# Repeats a command until it prints WANTED, for a minute at most; 0 if it does.
await() { # WANTED COMMAND...
    local ended=$((SECONDS + 60))
    until [ "$("${@:2}")" = "$1" ]; do
        [ $SECONDS -lt $ended ] || return 1
        sleep 0.02
    done
}

# processor_ms PID: what a process has used, in milliseconds, by steps of ten. The machine's load does not show in it.
processor_ms() {
    local line fields
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    read -r -a fields <<<"${line##*) }"
    echo $(((fields[11] + fields[12]) * 10))
}

# A statement that prints what its session has used so far, beside a word of the caller's, and an expression of awk that reads it.
used() { echo "SELECT '$1 used ' || pg_read_file('/proc/self/stat')"; }
used_ms='($16 + $17) * 10'

# timeouts_late FILE: of a session that printed used "start MS" and used end around statements with these timeouts, each one that
# timed out: how much more of the processor it used than the timeout allows. The session has one thread.
timeouts_late() {
    awk "/^start/ { allowed = \$2; sub(/^start [0-9]+/, \"start\"); from = $used_ms } /^state 57014 true/ { hit = 1 }
         /^end/ { if (hit) print $used_ms - from - allowed; hit = 0 }" "$1"
}

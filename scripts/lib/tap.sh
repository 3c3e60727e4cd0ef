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

# How often to measure a delay of which the best counts: where more is to run than there are processors, a
# process is delayed by more than the code does.
attempts() { awk -v processors="$(nproc)" '{ print ($1 > processors ? 10 : 3) }' /proc/loadavg; }

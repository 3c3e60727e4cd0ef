# The steps of the test scripts. Sourced after common.sh and results.sh.
#
# A step has a budget of processor seconds, and the seconds that it takes by the clock on two idle cores. One that takes more than
# twice its budget gets a warning. Processor time does not depend on who else uses the machine.
#
#   PGKM_SECONDS   what may pass by the clock, from here on: a step that would pass it is left out, one that does is ended
table=$results/steps
exec 3>&1 4>&2 # what a step prints, beside its times
began=$(date +%s)

begin_steps() {
    mkdir -p "$results"
    rm -f "$results"/*summary
    : >"$results/summary"
    : >"$table"
}
failures() { awk '{ n += $3 } END { print n + 0 }' "$results/summary"; }

# step NAME BUDGET SECONDS COMMAND...: a failure that the command did not count itself counts as one.
step() {
    local name=$1 budget=$2 seconds=$3 before status=0 under=() left times elapsed user system
    shift 3
    if [ -n "${PGKM_SECONDS:-}" ]; then
        left=$((began + PGKM_SECONDS - $(date +%s)))
        if [ "$left" -lt $((seconds * 5 / 4)) ]; then
            echo "$name - - $budget left out: $left seconds are left" >>"$table"
            return
        fi
        under=(timeout --kill-after=60 "$left")
    fi
    before=$(failures)
    echo "== $name"
    local TIMEFORMAT='%R %U %S'
    times=$({ time "${under[@]}" "$@" </dev/null >&3 2>&4; } 2>&1) || status=$?
    read -r elapsed user system <<<"$times"
    echo "$name $elapsed $(awk -v u="$user" -v s="$system" 'BEGIN { print u + s }') $budget" >>"$table"
    if [ $status -eq 124 ] && [ -n "${PGKM_SECONDS:-}" ]; then
        sed -i '$ s/$/ left out unfinished: the time was up/' "$table"
    elif [ $status -ne 0 ] && [ "$(failures)" -eq "$before" ]; then
        record "$name" 0 1
    fi
}

# The table of the steps and the counts of the tests; fails where one of these did.
end_steps() {
    echo "step                    seconds  processor  budget"
    awk '{ note = ""
           for (i = 5; i <= NF; i++) note = note " " $i
           if (note == "" && $3 > 2 * $4) note = " warning: more than twice its budget"
           printf "%-20s %10s %10s %7s%s\n", $1, $2 == "-" ? "-" : sprintf("%.0f", $2), $3 == "-" ? "-" : sprintf("%.0f", $3), $4, note
           seconds += $2; processor += $3; budget += $4 }
         END { printf "%-20s %10.0f %10.0f %7d\n", "all", seconds, processor, budget }' "$table"
    awk '{ p += $2; f += $3; s += $4 }
         END { if (s) printf "skipped: %d\n", s; printf "tests: %d passed, %d failed\n", p, f; exit f > 0 || p == 0 }' "$results/summary"
}

# Counting test results. Sourced after common.sh. Each step records lines
# "name passed failed skipped" in $PGKM_SUMMARY; scripts/test sums them up.
results=$build/test-results

record() {
    mkdir -p "$results"
    echo "$1 $2 $3 ${4:-0}" >>"${PGKM_SUMMARY:-$results/summary}"
    printf '%-22s %5d passed, %d failed%s\n' "$1:" "$2" "$3" "$([ "${4:-0}" -eq 0 ] || echo ", $4 skipped")"
}

# The sum of an attribute of the <testsuites> elements of some GoogleTest reports.
report_sum() {
    local attribute=$1
    shift
    sed -nE "s/.*<testsuites [^>]*\b$attribute=\"([0-9]+)\".*/\1/p" "$@" | awk '{ n += $1 } END { print n + 0 }'
}

# Records a GoogleTest program from the reports of its parts. A part that died left none;
# that alone is seen in CTest's status.
record_reports() {
    local name=$1 tests failures skipped
    shift
    if [ ! -s "$1" ]; then
        record "$name" 0 1
        return
    fi
    tests=$(report_sum tests "$@")
    failures=$(report_sum failures "$@")
    skipped=$(cat "$@" | grep -c 'result="skipped"' || true)
    record "$name" $((tests - failures - skipped)) "$failures" "$skipped"
}

# Records that every one of the test sources left its name in one of the reports:
# record_all_run NAME REPORT... -- SOURCE...
record_all_run() {
    local name=$1 reports=() source missing=0
    shift
    while [ "$1" != -- ]; do
        reports+=("$1")
        shift
    done
    shift
    for source in "$@"; do
        if ! grep -qsF "${source#"$here"/}" "${reports[@]}"; then
            echo "not run: ${source#"$here"/}" >&2
            missing=$((missing + 1))
        fi
    done
    record "$name" $(($# - missing)) $missing
}

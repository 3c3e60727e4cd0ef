# Counting test results. Sourced after common.sh. Each step records lines
# "name passed failed skipped"; scripts/test sums them up.
results=$build/test-results

record() {
    mkdir -p "$results"
    echo "$1 $2 $3 ${4:-0}" >>"$results/summary"
    printf '%-22s %5d passed, %d failed%s\n' "$1:" "$2" "$3" "$([ "${4:-0}" -eq 0 ] || echo ", $4 skipped")"
}

# An attribute of the <testsuites> element of a GoogleTest report.
report_attribute() {
    sed -nE "s/.*<testsuites [^>]*\b$2=\"([0-9]+)\".*/\1/p" "$1" | head -n 1
}

# Records a GoogleTest program from its report; one that died left none.
record_report() {
    local name=$1 report=$2 tests failures skipped
    if [ ! -s "$report" ]; then
        record "$name" 0 1
        return
    fi
    tests=$(report_attribute "$report" tests)
    failures=$(report_attribute "$report" failures)
    skipped=$(grep -c 'result="skipped"' "$report" || true)
    record "$name" $((tests - failures - skipped)) "$failures" "$skipped"
}

# Records that every test source of a folder left its name in the report of its program.
record_all_run() {
    local name=$1 report=$2 source missing=0 count=0
    shift 2
    for source in "$@"; do
        [ -e "$source" ] || continue
        count=$((count + 1))
        if ! grep -qF "${source#"$here"/}" "$report" 2>/dev/null; then
            echo "not run: ${source#"$here"/}" >&2
            missing=$((missing + 1))
        fi
    done
    [ $count -eq 0 ] || record "$name" $((count - missing)) $missing
}

#!/bin/bash
# A short run of test/fuzz/fuzz_roads.py, the same in every run: random calls give the same by every road to the rows.
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi
echo 1..1
if answer=$("$(dirname "$0")/../../fuzz/fuzz_roads.py" --cases 120); then echo "ok 1 - $answer"; else printf 'not ok 1 - random calls\n%s\n' "${answer//$'\n'/$'\n'# }"; fi

#!/bin/bash
# A short run of test/fuzz/fuzz_reduce.py, the same in every run: random reductions give what the executor gives, and
# random text is refused.
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi
echo 1..1
if answer=$("$(dirname "$0")/../../fuzz/fuzz_reduce.py" --cases 1000); then echo "ok 1 - $answer"; else printf 'not ok 1 - random reductions\n%s\n' "${answer//$'\n'/$'\n'# }"; fi

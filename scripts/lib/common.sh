# What all scripts share. Sourced, with $here set to the checkout.

# make passes its own flags on; the makes that scripts start shall not look for its jobserver.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

PG_CONFIG=${PG_CONFIG:-pg_config}
build=$here/build
jobs=$(nproc 2>/dev/null || echo 2)

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Runs a command (which may be a function that ends in exec) without its output, unless it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    ("$@") >"$log" 2>&1 </dev/null || status=$?
    [ $status -eq 0 ] || cat "$log" >&2
    rm -f "$log"
    return $status
}

# One build at a time in this checkout: scripts may run side by side.
locked() {
    mkdir -p "$build"
    flock "$build/.lock" "$@"
}

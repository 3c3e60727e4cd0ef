# What all scripts share. Sourced, with $here set to the checkout.

# make passes its own flags on; the makes that scripts start shall not look for its jobserver.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

PG_CONFIG=${PG_CONFIG:-pg_config}
# What scripts build, with a cache of its own: they never touch build/, which is for `make` and `make install`.
build=$here/build/test
jobs=$(nproc 2>/dev/null || echo 2)

# A throw-away server has the plugin for the GPU at hand. Where there is none, nobody could run it, and to compile it takes
# longer than all else: it is built only where PGKM_CUDA=ON is said, to see that it compiles ("test", cmake/CudaPlugin.cmake).
gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || gpu=
[ "$gpu" != 90 ] || gpu=90a # with what only Hopper has
export PGKM_CUDA=${PGKM_CUDA:-$([ -n "$gpu" ] && echo AUTO || echo OFF)}
gpu=${gpu:+$gpu-real}
export PGKM_CUDA_ARCHS=${PGKM_CUDA_ARCHS-${gpu:-test}}

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

# locked FOLDER COMMAND...: one build at a time in that folder; scripts may run side by side.
locked() {
    local folder=$1
    shift
    mkdir -p "$folder"
    flock "$folder/.lock" "$@"
}

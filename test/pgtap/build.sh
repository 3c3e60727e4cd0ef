#!/bin/bash
# The folders of the build: scripts leave build/ to `make` and `make install`, a copied or moved checkout is configured
# anew, and the GPU architectures stay until others are given. CMake configures a copy of the checkout, without CUDA;
# nothing is built.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$here/scripts/lib/tap.sh"
folder=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$folder"' EXIT
unset PGKM_CUDA_ARCHS MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# cmake that builds nothing, and make that goes no further than CMake's configuration.
mkdir "$folder/bin"
cat >"$folder/bin/cmake" <<SH
#!/bin/bash
[ "\$1" != --build ] || exit 0
echo "\$*" >>"$folder/configured"
exec $(command -v cmake) "\$@" -DPGKM_CUDA=OFF
SH
cat >"$folder/bin/make" <<SH
#!/bin/bash
arguments=()
for one; do
    case \$one in all | install) one=configure ;; esac
    arguments+=("\$one")
done
exec $(command -v make) "\${arguments[@]}"
SH
chmod +x "$folder"/bin/*
PATH=$folder/bin:$PATH

cached() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt"; } # NAME FOLDER
configure() { make -C "$1" configure >>"$folder/log" 2>&1; }
# What scripts/unit-tests does before it builds.
configure_tests() (
    here=$1
    source "$here/scripts/lib/common.sh"
    "$here/scripts/configure" "$build" -DPGKM_TESTS=ON >>"$folder/log" 2>&1
)
# What scripts/with-postgres does before it starts a server.
stage() (
    here=$1
    source "$here/scripts/lib/common.sh"
    source "$here/scripts/lib/server.sh"
    make_server_directory
    stage_server
    rm -rf "$server"
)

mkdir "$folder/first"
tar -C "$here" --exclude=./build --exclude=./.git --exclude='*.o' --exclude='*.so' -cf - . | tar -C "$folder/first" -xf -
configure_tests "$folder/first" && stage "$folder/first" >>"$folder/log" 2>&1
result $? "the scripts configure"
is "$(ls -A "$folder/first/build")" test "and touch nothing of what make builds"
[ -n "$(cached PGKM_CUDA_ARCHS "$folder/first/build/test")" ]
result $? "tests are built for one generation"
configure "$folder/first"
is "$(cached PGKM_CUDA_ARCHS "$folder/first/build")" "" "make is told no generation, after the tests too"

touch "$folder/first/build/CMakeFiles/old.o"
cp -a "$folder/first" "$folder/second"
: >"$folder/configured"
configure "$folder/first"
is "$(cat "$folder/configured")" "" "nothing is configured twice"
configure "$folder/second"
is "$(cached CMAKE_HOME_DIRECTORY "$folder/second/build")" "$folder/second" "a copy is built from its own sources"
is "$(cached CMAKE_CACHEFILE_DIR "$folder/second/build")" "$folder/second/build" "in its own folder"
[ ! -e "$folder/second/build/CMakeFiles/old.o" ]
result $? "without the objects of the other place"
mv "$folder/second" "$folder/third"
configure_tests "$folder/third"
is "$(cached CMAKE_HOME_DIRECTORY "$folder/third/build/test")" "$folder/third" "and so are its tests where it is moved to"

PGKM_CUDA_ARCHS=90a-real configure "$folder/first"
is "$(cached PGKM_CUDA_ARCHS "$folder/first/build")" 90a-real "architectures can be given later"
configure "$folder/first"
is "$(cached PGKM_CUDA_ARCHS "$folder/first/build")" 90a-real "and stay, as for make install"
PGKM_CUDA_ARCHS= configure "$folder/first"
is "$(cached PGKM_CUDA_ARCHS "$folder/first/build")" "" "until none is named"

# Which ones it then chooses: what a stand-in for nvidia-smi says that the machine has.
echo 'include(PresentGpus)
pgkm_present_archs("80-real;90a-real;100-real;120-real" chosen)
message("${chosen}")' >"$folder/chosen.cmake"
chosen() { # CAPABILITY...
    printf '#!/bin/sh\nprintf "%%s\\n" %s\n' "$*" >"$folder/bin/nvidia-smi"
    chmod +x "$folder/bin/nvidia-smi"
    cmake "-DCMAKE_MODULE_PATH=$here/cmake" -P "$folder/chosen.cmake" 2>&1
}
is "$(chosen 9.0)" 90a-real "the GPUs of the machine decide"
is "$(chosen 8.9 8.6 12.0)" "80-real;120-real" "each generation counts once"
is "$(chosen 9.0 7.5)" "" "all are built where one of them is unknown"
is "$(chosen)" "" "and where there is none"
echo 1..$number

# The compiler flags of all our targets, as the interface library pgkm_flags.
add_library(pgkm_flags INTERFACE)
target_compile_features(pgkm_flags INTERFACE cxx_std_20)

# No contraction: a fused multiply-add only where the source says so, or results would
# depend on the compiler and the instruction set (the numeric contract).
# Never -march: the binary runs on any machine of its architecture, dispatch is at run time.
set(pgkm_host_flags -ffp-contract=off -Wall -Wextra)
if(PGKM_WERROR)
  list(APPEND pgkm_host_flags -Werror)
endif()
target_compile_options(pgkm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${pgkm_host_flags}>")

if(PGKM_SANITIZE)
  # No -DNDEBUG: the asserts shall run too. Optimised, since the vector code would be ten times slower without; but
  # -O2 would take the compiler as long again, and the tests no less. Errors end the program; a signed overflow ends
  # it by a run-time option instead (scripts/sanitize), because only then can it be suppressed by file.
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
  set(pgkm_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all
    -fsanitize-recover=signed-integer-overflow -fno-omit-frame-pointer)
  target_compile_options(pgkm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${pgkm_sanitizers}>")
  target_link_options(pgkm_flags INTERFACE ${pgkm_sanitizers})
endif()

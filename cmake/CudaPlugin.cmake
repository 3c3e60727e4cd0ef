# pg_kmeans_cuda.so from cuda/, where nvcc is found. The target `plugin` always exists, so
# that the Makefile can ask for it without knowing whether there is anything to build.
add_custom_target(plugin)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS cuda/*.cu cuda/*.cpp)
if(NOT cuda_sources OR PGKM_CUDA STREQUAL "OFF" OR PGKM_SANITIZE)
  return()
endif()

# Ends this file: there is nothing that could build the plugin.
macro(pgkm_skip_plugin reason)
  if(PGKM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PGKM_CUDA is ON, but ${reason}")
  endif()
  message(STATUS "The CUDA plugin is skipped: ${reason}")
  return()
endmacro()

find_program(PGKM_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT PGKM_NVCC)
  pgkm_skip_plugin("there is no nvcc")
endif()

# An nvcc that is too old, or one without the runtime's headers or a compiler that it accepts, is none.
if(NOT PGKM_NVCC_USABLE STREQUAL PGKM_NVCC)
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/nvcc_probe)
  file(WRITE ${probe}.cu "#include <cuda_runtime.h>
#if CUDART_VERSION < 13000
#error CUDA 13 or later is needed
#endif
__global__ void kernel() {}
")
  set(host_compiler)
  if(DEFINED ENV{CUDAHOSTCXX})
    set(host_compiler -ccbin $ENV{CUDAHOSTCXX})
  endif()
  execute_process(COMMAND ${PGKM_NVCC} ${host_compiler} -std=c++20 -c ${probe}.cu -o ${probe}.o
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    pgkm_skip_plugin("${PGKM_NVCC} cannot be used: ${output}")
  endif()
  set(PGKM_NVCC_USABLE ${PGKM_NVCC} CACHE INTERNAL "The nvcc that has been tried")
endif()

# Machine code for each generation that this nvcc knows, and PTX of the first and the last
# for what lies between and ahead. 90a has wgmma and TMA; its PTX would run nowhere else.
execute_process(COMMAND ${PGKM_NVCC} --list-gpu-code OUTPUT_VARIABLE known)
set(every_arch "")
foreach(arch 80 90a 100 120)
  string(REGEX REPLACE "[a-z]$" "" generation ${arch})
  if(known MATCHES "sm_${generation}[^0-9]")
    list(APPEND every_arch ${arch}-real)
    if(NOT arch MATCHES "a$")
      set(newest ${arch})
    endif()
  endif()
endforeach()
set(present_archs "")
if(NOT PGKM_CUDA_ARCHS)
  include(PresentGpus)
  pgkm_present_archs("${every_arch}" present_archs)
endif()
list(APPEND every_arch 80-virtual)
if(NOT newest STREQUAL "80")
  list(APPEND every_arch ${newest}-virtual)
endif()

set(optimised "-O3")
set(minutes 15)
if(PGKM_CUDA_ARCHS STREQUAL "test")
  # To see, on a machine without a GPU, that it compiles: assembled to the end, for only then is inline PTX looked at.
  set(CMAKE_CUDA_ARCHITECTURES 80-real)
  set(optimised "-O1 -Ofc=max")
  set(minutes 3)
elseif(PGKM_CUDA_ARCHS AND NOT PGKM_CUDA_ARCHS STREQUAL "all")
  set(CMAKE_CUDA_ARCHITECTURES ${PGKM_CUDA_ARCHS})
elseif(present_archs)
  set(CMAKE_CUDA_ARCHITECTURES ${present_archs})
else()
  set(CMAKE_CUDA_ARCHITECTURES ${every_arch})
endif()
set(generations ${CMAKE_CUDA_ARCHITECTURES})
list(FILTER generations EXCLUDE REGEX "virtual") # PTX takes little
list(LENGTH generations n_generations)
math(EXPR minutes "${minutes} * ${n_generations}")
message(STATUS "The CUDA plugin is built for ${CMAKE_CUDA_ARCHITECTURES}: about ${minutes} minutes on two cores. "
  "PGKM_CUDA_ARCHS=90a-real (Hopper), 80-real, 100-real, 120-real or all chooses; without it the GPUs of this machine, if any")

set(CMAKE_CUDA_COMPILER ${PGKM_NVCC})
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CUDA_FLAGS_RELEASE "${optimised} -DNDEBUG")

# The standard by hand: CMake 3.25 does not know that nvcc has it.
# --fmad=false and -ffp-contract=off: the numeric contract, as on the CPU.
string(REPLACE ";" "," cuda_host_flags "${pgkm_host_flags}")
function(pgkm_cuda_settings target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static)
  target_compile_definitions(${target} PRIVATE PGKM_CUDA_PLUGIN)
  target_include_directories(${target} PRIVATE src cuda)
  target_link_libraries(${target} PRIVATE pgkm_flags)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--fmad=false;-Xcompiler=${cuda_host_flags}>")
endfunction()

# The objects apart: the benchmark of the kernels is made of them too.
add_library(pgkm_cuda OBJECT ${cuda_sources})
pgkm_cuda_settings(pgkm_cuda)
add_library(pg_kmeans_cuda MODULE $<TARGET_OBJECTS:pgkm_cuda>)
pgkm_cuda_settings(pg_kmeans_cuda)
set_target_properties(pg_kmeans_cuda PROPERTIES
  PREFIX "" LINKER_LANGUAGE CUDA LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
# The runtime is linked in and hidden: beside the C library the plugin needs nothing, and
# it exports the one entry point of src/backend/backend.h.
target_link_options(pg_kmeans_cuda PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/plugin.map -Wl,--as-needed)
target_link_libraries(pg_kmeans_cuda PRIVATE pgkm CUDA::cudart_static)
add_dependencies(plugin pg_kmeans_cuda)

if(PGKM_BENCH)
  file(GLOB bench_gpu_sources CONFIGURE_DEPENDS bench/gpu/*.cu)
  add_executable(bench_gpu ${bench_gpu_sources} $<TARGET_OBJECTS:pgkm_cuda>)
  pgkm_cuda_settings(bench_gpu)
  target_include_directories(bench_gpu PRIVATE bench/gpu)
  target_link_libraries(bench_gpu PRIVATE pgkm CUDA::cudart_static)
  set_target_properties(bench_gpu PROPERTIES
    OUTPUT_NAME gpu RUNTIME_OUTPUT_DIRECTORY ${bench_programs})
endif()

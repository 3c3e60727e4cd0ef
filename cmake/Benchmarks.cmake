# One program per bench/*.cpp, and one of bench/fits; bench/gpu is one more, built with the plugin (CudaPlugin.cmake).
if(NOT PGKM_BENCH)
  return()
endif()
set(bench_programs ${CMAKE_SOURCE_DIR}/build/bench) # whichever folder they are built from
find_package(benchmark QUIET)

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cpp)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE pgkm)
  if(benchmark_FOUND)
    target_link_libraries(bench_${name} PRIVATE benchmark::benchmark)
  endif()
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${bench_programs})
endforeach()

# Whole fits, made of several files.
file(GLOB fits_sources CONFIGURE_DEPENDS bench/fits/*.cpp)
add_executable(bench_fits ${fits_sources})
target_link_libraries(bench_fits PRIVATE pgkm)
set_target_properties(bench_fits PROPERTIES OUTPUT_NAME fits RUNTIME_OUTPUT_DIRECTORY ${bench_programs})

# One program per bench/*.cpp, bench/fits, bench/reduce and bench/papers; bench/gpu is one more, built with the plugin (CudaPlugin.cmake).
if(NOT PGKM_BENCH)
  return()
endif()
set(bench_programs ${CMAKE_SOURCE_DIR}/build/bench) # whichever folder they are built from

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cpp)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE pgkm)
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${bench_programs})
endforeach()

# Made of several files: whole fits, users' reductions, the experiments of the papers.
foreach(name fits reduce papers)
  file(GLOB sources CONFIGURE_DEPENDS bench/${name}/*.cpp)
  add_executable(bench_${name} ${sources})
  target_link_libraries(bench_${name} PRIVATE pgkm)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${bench_programs})
endforeach()
target_sources(bench_papers PRIVATE bench/fits/lines.cpp bench/fits/rows.cpp bench/reduce/loaded.cpp)

# unit_tests (test/unit), conformance_tests (test/backend) and cuda_tests (test/cuda),
# GoogleTest programs registered with CTest.
if(PGKM_TESTS STREQUAL "OFF")
  return()
elseif(PGKM_TESTS STREQUAL "AUTO")
  find_package(GTest QUIET)
else()
  find_package(GTest REQUIRED)
endif()
if(NOT GTest_FOUND)
  message(STATUS "no GoogleTest: the tests are not built")
  return()
endif()

enable_testing()
set(results ${CMAKE_BINARY_DIR}/test-results)

# One program from all sources of a folder. A main() of its own there wins over
# GoogleTest's, which is taken from the archive only when it is missing. CTest runs it in
# that many parts, side by side.
function(pgkm_test_program name folder parts)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  file(GLOB support CONFIGURE_DEPENDS test/support/*.cpp test/reference/*.cpp)
  add_executable(${name} ${sources} ${support})
  target_include_directories(${name} PRIVATE test cuda)
  target_compile_definitions(${name} PRIVATE "PGKM_CHECKOUT=\"${CMAKE_SOURCE_DIR}/\"")
  target_link_libraries(${name} PRIVATE pgkm GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h>)
  if(PGKM_SANITIZE)
    target_compile_options(${name} PRIVATE -O1) # the time goes into the library; these take the compiler long
    target_compile_definitions(${name} PRIVATE PGKM_SANITIZED)
  endif()
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${name}_${part} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    # The counts that scripts/test sums up come from these reports.
    set_tests_properties(${name}_${part} PROPERTIES ENVIRONMENT
      "GTEST_OUTPUT=xml:${results}/${name}.${part}.xml;GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()

pgkm_test_program(unit_tests test/unit 2)
target_sources(unit_tests PRIVATE bench/fits/lines.cpp bench/fits/rows.cpp bench/papers/data.cpp bench/papers/measure.cpp
  bench/reduce/loaded.cpp)
pgkm_test_program(conformance_tests test/backend 2)
pgkm_test_program(cuda_tests test/cuda 1)

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

# The reference calls fma() for each term: an instruction takes a tenth of the library's time. Tests run where they are
# built, so that the processor's own may be used; what they test is compiled without.
set(fma "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo has_fma REGEX "^flags.* fma( |$)" LIMIT_COUNT 1)
  if(has_fma)
    set(fma -mfma)
  endif()
endif()

function(pgkm_test_settings target)
  target_include_directories(${target} PRIVATE test cuda)
  target_compile_definitions(${target} PRIVATE "PGKM_CHECKOUT=\"${CMAKE_SOURCE_DIR}/\"")
  target_compile_options(${target} PRIVATE ${fma})
  target_link_libraries(${target} PRIVATE pgkm GTest::gtest)
  # Neither -fPIC nor -fPIE: libraries and programs that share a precompiled header need the same flags.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(PGKM_SANITIZE)
    target_compile_definitions(${target} PRIVATE PGKM_SANITIZED)
  endif()
endfunction()

# What all programs are made with is compiled once.
file(GLOB reference CONFIGURE_DEPENDS test/reference/*.cpp)
add_library(test_reference OBJECT ${reference})
pgkm_test_settings(test_reference)
target_precompile_headers(test_reference PRIVATE <gtest/gtest.h>)

# One program from all sources of a folder. A main() of its own there wins over
# GoogleTest's, which is taken from the archive only when it is missing. CTest runs it in
# that many parts, side by side.
function(pgkm_test_program name folder parts)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources} $<TARGET_OBJECTS:test_reference>)
  pgkm_test_settings(${name})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM test_reference)
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
# The driver of the plugin's checks, which without a plugin compares the reference with itself.
if(NOT PGKM_SANITIZE)
  pgkm_test_program(cuda_tests test/cuda 1)
endif()

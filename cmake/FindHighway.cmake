# Google Highway, with its sort, as PGKM::highway. The static archives are preferred, so that the extension
# needs no library beside it at run time, but only where they are position-independent.
include(FindPackageHandleStandardArgs)
include(CheckCXXSourceCompiles)

find_path(PGKM_HIGHWAY_INCLUDE hwy/contrib/sort/vqsort.h)
find_library(PGKM_HIGHWAY_STATIC NAMES libhwy.a)
find_library(PGKM_HIGHWAY_SORT_STATIC NAMES libhwy_contrib.a)
find_library(PGKM_HIGHWAY_SHARED NAMES hwy)
find_library(PGKM_HIGHWAY_SORT_SHARED NAMES hwy_contrib)

if(PGKM_HIGHWAY_STATIC AND PGKM_HIGHWAY_SORT_STATIC)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
  set(CMAKE_REQUIRED_LIBRARIES
    -Wl,--whole-archive ${PGKM_HIGHWAY_SORT_STATIC} ${PGKM_HIGHWAY_STATIC} -Wl,--no-whole-archive)
  check_cxx_source_compiles("int pgkm_probe() { return 0; }" PGKM_HIGHWAY_STATIC_IS_PIC)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(PGKM_HIGHWAY_STATIC_IS_PIC)
  set(PGKM_HIGHWAY_LIBRARY ${PGKM_HIGHWAY_STATIC})
  set(PGKM_HIGHWAY_SORT_LIBRARY ${PGKM_HIGHWAY_SORT_STATIC})
else()
  set(PGKM_HIGHWAY_LIBRARY ${PGKM_HIGHWAY_SHARED})
  set(PGKM_HIGHWAY_SORT_LIBRARY ${PGKM_HIGHWAY_SORT_SHARED})
endif()

find_package_handle_standard_args(Highway
  REQUIRED_VARS PGKM_HIGHWAY_LIBRARY PGKM_HIGHWAY_SORT_LIBRARY PGKM_HIGHWAY_INCLUDE)
if(Highway_FOUND AND NOT TARGET PGKM::highway)
  add_library(PGKM::highway UNKNOWN IMPORTED)
  set_target_properties(PGKM::highway PROPERTIES
    IMPORTED_LOCATION ${PGKM_HIGHWAY_SORT_LIBRARY}
    INTERFACE_LINK_LIBRARIES ${PGKM_HIGHWAY_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PGKM_HIGHWAY_INCLUDE})
endif()

# find_package(windrow) gives windrow::windrow, and windrow::static without a shared library.
get_filename_component(_windrow_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET windrow::windrow)
  add_library(windrow::windrow SHARED IMPORTED)
  set_target_properties(windrow::windrow PROPERTIES
    IMPORTED_LOCATION "${_windrow_prefix}/lib/libwindrow.so.0"
    IMPORTED_SONAME "libwindrow.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_windrow_prefix}/include")
  add_library(windrow::static STATIC IMPORTED)
  set_target_properties(windrow::static PROPERTIES
    IMPORTED_LOCATION "${_windrow_prefix}/lib/libwindrow.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_windrow_prefix}/include"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m")
endif()
unset(_windrow_prefix)

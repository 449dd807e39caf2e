# SPDX-License-Identifier: Apache-2.0
#
# Headers that files which are compiled alike need not read themselves, where files are compiled together
# (cmake/together.cmake).
include_guard()

# carillon_headers(TARGET HEADERS h ... LINKS lib ...): for target_precompile_headers(PROGRAM REUSE_FROM TARGET).
function(carillon_headers target)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS" ${ARGN})
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/tests/support/headers.cc)
  target_link_libraries(${target} PRIVATE ${ARG_LINKS})
  carillon_has_headers(${target} ${ARG_HEADERS})
endfunction()

# carillon_has_headers(TARGET h ...): such a target, of objects that there are.
function(carillon_has_headers target)
  # As programs are compiled, or it does not fit them.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# carillon_read_before(PROGRAM TARGET): the program's files need not read the headers of the target.
function(carillon_read_before program target)
  target_precompile_headers(${program} REUSE_FROM ${target})
  target_compile_options(${program} PRIVATE -fpch-preprocess) # for ccache
endfunction()

# carillon_mpi_headers(NAME PROGRAMS p ... HEADERS h ...): that for programs of carillon_mpi_program, once per
# MPI. Its header and those of the standard library are half of the time of a short file.
function(carillon_mpi_headers name)
  cmake_parse_arguments(ARG "" "" "PROGRAMS;HEADERS" ${ARGN})
  if(NOT CARILLON_TOGETHER)
    return()
  endif()
  carillon_mpi_program(${name} OBJECTS ${PROJECT_SOURCE_DIR}/tests/support/headers.cc)
  foreach(suffix openmpi mpich mpiabi)
    if(NOT TARGET ${name}-${suffix})
      continue()
    endif()
    carillon_has_headers(${name}-${suffix} ${ARG_HEADERS})
    target_compile_features(${name}-${suffix} PRIVATE cxx_std_20)
    foreach(program ${ARG_PROGRAMS})
      carillon_read_before(${program}-${suffix} ${name}-${suffix})
    endforeach()
  endforeach()
endfunction()

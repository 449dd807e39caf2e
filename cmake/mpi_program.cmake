# SPDX-License-Identifier: Apache-2.0
#
# carillon_mpi_program(NAME [OBJECTS] SOURCES...): the C program NAME once per MPI that the interposer
# was built for (shim/mpi/CMakeLists.txt finds them), as NAME-openmpi, NAME-mpich, NAME-mpiabi. With
# OBJECTS it is objects that several programs link.
include_guard()

function(carillon_mpi_program name)
  cmake_parse_arguments(ARG "OBJECTS" "" "" ${ARGN})
  foreach(pair OMPI:openmpi MPICH:mpich MPIABI:mpiabi)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 abi)
    list(GET pair 1 suffix)
    if(NOT CARILLON_${abi}_WRAPPER)
      continue()
    endif()
    set(target ${name}-${suffix})
    if(ARG_OBJECTS)
      add_library(${target} OBJECT ${ARG_UNPARSED_ARGUMENTS})
    else()
      add_executable(${target} ${ARG_UNPARSED_ARGUMENTS})
    endif()
    target_include_directories(${target} SYSTEM PRIVATE ${CARILLON_${abi}_INCLUDES})
    target_compile_definitions(${target} PRIVATE ${CARILLON_${abi}_DEFINITIONS})
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
    target_link_libraries(${target} PRIVATE ${CARILLON_${abi}_LINKS} ${CMAKE_DL_LIBS})
  endforeach()
endfunction()

# SPDX-License-Identifier: Apache-2.0
#
# carillon_library(NAME FOLDER folder DEPENDS a b ...): one static library per folder of src/.
#
# Its include path is a folder of the build tree that holds links to the folders it may see: its
# own and those of its dependencies. So an include that the layering forbids does not compile.
include_guard()

add_library(carillon_flags INTERFACE)
target_compile_features(carillon_flags INTERFACE cxx_std_20)
target_compile_options(carillon_flags INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror
  -fvisibility=hidden $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)

function(carillon_see target folder)
  set(links ${PROJECT_BINARY_DIR}/layers/${target})
  file(MAKE_DIRECTORY ${links})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${folder} ${links}/${folder} SYMBOLIC)
endfunction()

function(carillon_library name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER}/*.cc)
  if(sources)
    set(scope PUBLIC)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PRIVATE carillon_flags)
  else()
    set(scope INTERFACE)
    add_library(${name} INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${PROJECT_BINARY_DIR}/layers/${name}
                             ${PROJECT_SOURCE_DIR}/include)
  carillon_see(${name} ${ARG_FOLDER})
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS})
endfunction()

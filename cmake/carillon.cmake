# SPDX-License-Identifier: Apache-2.0
#
# carillon_library(NAME FOLDER folder [TOP] [DEPENDS a b ...] [HIDES c d ...]): one static library
# per folder of src/, or, with TOP, of the project. Its users may include it and what it DEPENDS on.
# One that HIDES what it is made of is used by its public header in include/ only.
#
# Its include path is a folder of the build tree that holds a link to its own folder; those of
# its dependencies stand beside it. So an include that the layering forbids does not compile.
include_guard()

add_library(carillon_flags INTERFACE)
target_compile_features(carillon_flags INTERFACE cxx_std_20)
target_compile_options(carillon_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wcast-qual -Wformat=2 -Wvla
  -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<BOOL:${CARILLON_WERROR}>:-Werror>
  -fvisibility=hidden $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  # __FILE__ names no path of the machine that it is built on.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

function(carillon_library name)
  cmake_parse_arguments(ARG "TOP" "FOLDER" "DEPENDS;HIDES" ${ARGN})
  set(links ${PROJECT_BINARY_DIR}/layers/${name})
  set(folder ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER})
  if(ARG_TOP)
    set(folder ${PROJECT_SOURCE_DIR}/${ARG_FOLDER})
  endif()
  cmake_path(GET ARG_FOLDER PARENT_PATH above)
  file(MAKE_DIRECTORY ${links}/${above})
  file(CREATE_LINK ${folder} ${links}/${ARG_FOLDER} SYMBOLIC)

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  if(sources)
    set(scope PUBLIC)
    add_library(${name} STATIC ${sources})
    carillon_together(${name})
    target_link_libraries(${name} PRIVATE carillon_flags ${ARG_HIDES})
    target_compile_options(${name} PRIVATE -fmacro-prefix-map=${PROJECT_BINARY_DIR}/layers/=)
    set_property(GLOBAL APPEND PROPERTY CARILLON_OBJECTS $<TARGET_OBJECTS:${name}>)
  else()
    set(scope INTERFACE)
    add_library(${name} INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR}/include)
  if(ARG_HIDES)
    target_include_directories(${name} PRIVATE ${links})
  else()
    target_include_directories(${name} ${scope} ${links})
  endif()
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS})
endfunction()

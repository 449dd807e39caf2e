# SPDX-License-Identifier: Apache-2.0
#
# CARILLON_TOGETHER: the files of a folder are compiled as one, so that headers, which are half of the time
# of a usual file, are read less often; the tests share a precompiled header. Who changes a file waits
# longer then, and clangd wants commands of single files: the presets dev and debug have it off.
include_guard()

option(CARILLON_TOGETHER "Compile the files of a folder as one: quicker, if nothing has been built" ON)

# GCC looks for memory that it no longer needs as soon as it has 128 MiB, which most files here need and few
# give back: a tenth to a fifth of their time. Of clangd's commands it is no part.
if(CARILLON_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>) # KiB
endif()

# carillon_together(TARGET): the target's files of one folder are compiled as one. Of functions of one name
# in unnamed namespaces the one that fits better is called, whichever file it is in: -Wunused shows that, if
# none calls the other. Files with options of their own stay alone.
function(carillon_together target)
  if(NOT CARILLON_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()

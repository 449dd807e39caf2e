# SPDX-License-Identifier: Apache-2.0
#
# BUILD_FROM_SCRATCH is for a machine that builds everything once and has none of it in ccache, as CI's.
# Half of the time of a usual file goes into its headers, so they are read less often. Who changes a file
# then waits longer, and other checkouts find less in ccache: elsewhere it is off. The environment's
# BUILD_FROM_SCRATCH is what it is at first.
include_guard()

option(BUILD_FROM_SCRATCH "Quicker, if nothing has been built: files are compiled together"
  $ENV{BUILD_FROM_SCRATCH})

# carillon_together(TARGET): the library's files of one folder are compiled as one, which takes a third of
# the time; only with a sanitizer, so that what CI tests first is compiled as it is for users. Of functions
# of one name in unnamed namespaces the one that fits better is called, whichever file it is in: -Wunused
# shows that, if none calls the other.
function(carillon_together target)
  if(NOT BUILD_FROM_SCRATCH OR NOT CARILLON_SANITIZE)
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

# SPDX-License-Identifier: Apache-2.0
#
# carillon_verilate(TARGET MODULE ARGS ...): a library TARGET_rtl with the class TARGET, which is the
# module of switch/rtl, made by Verilator. CARILLON_HAS_VERILATOR says whether there is one; builds
# with a sanitizer do without, since what would be watched is code that Verilator makes. What another
# version warns of ends no build: scripts/lint-rtl is there for warnings. What runs once is not
# optimized, which would take longer than running it, and the rest a little: with -O2 its
# larger files take two to seven times as long to compile, and it runs up to a third faster. Registers
# are generated bit by bit (sw_record), 16 times as many bits as --unroll-count at most: that of all 66
# ports' addresses has 6,864.
include_guard()

set(CARILLON_HAS_VERILATOR OFF)
if(NOT CARILLON_SANITIZE)
  find_package(verilator QUIET HINTS $ENV{VERILATOR_ROOT} /usr/share/verilator)
  set(CARILLON_HAS_VERILATOR ${verilator_FOUND})
  if(NOT verilator_FOUND)
    message(STATUS "No Verilator: without the switch in hardware (scripts/setup installs it)")
  endif()
endif()

function(carillon_verilate target module)
  set(rtl ${PROJECT_SOURCE_DIR}/switch/rtl)
  add_library(${target}_rtl STATIC)
  verilate(${target}_rtl TOP_MODULE ${module} PREFIX ${target} INCLUDE_DIRS ${rtl}
    SOURCES ${rtl}/lint.vlt ${PROJECT_SOURCE_DIR}/switch/protocol/sw_protocol_pkg.sv
      ${rtl}/sw_reduce_pkg.sv ${rtl}/sw_switch_pkg.sv ${rtl}/${module}.sv
    VERILATOR_ARGS -Wall -Wno-fatal -O3 --unroll-count 512 ${ARGN}
    OPT_SLOW -O0
    OPT_FAST -O1)
  target_compile_options(${target}_rtl PRIVATE -g0) # whose lines are nobody's
  target_link_libraries(${target}_rtl PUBLIC Threads::Threads)
  carillon_share_verilator(${target}_rtl)
  carillon_join_verilated(${target}_rtl)
endfunction()

# What Verilator makes of a module is many files, and each reads its header and all of the standard
# library that this needs, which takes a second: they are compiled together, those that are optimized
# alike, as many as are no longer than a large one.
function(carillon_join_verilated target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(number 0)
  foreach(source ${sources})
    get_source_file_property(flags ${source} COMPILE_FLAGS)
    file(SIZE ${source} bytes)
    string(MAKE_C_IDENTIFIER "${flags}" kind)
    if(NOT DEFINED joined_${kind} OR joined_bytes_${kind} GREATER 2000000)
      math(EXPR number "${number} + 1")
      set(joined_${kind} ${CMAKE_CURRENT_BINARY_DIR}/${target}/joined_${number}.cpp)
      set(joined_bytes_${kind} 0)
      list(APPEND all ${joined_${kind}})
      set_source_files_properties(${joined_${kind}} PROPERTIES COMPILE_FLAGS "${flags}")
    endif()
    math(EXPR joined_bytes_${kind} "${joined_bytes_${kind}} + ${bytes}")
    string(APPEND text_of_${joined_${kind}} "#include \"${source}\"\n")
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  foreach(file ${all})
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_of_${file}}" @ONLY)
  endforeach()
  target_sources(${target} PRIVATE ${all})
endfunction()

# Verilator's own sources are in each library that it makes, and take 7 s of a core to compile: they go
# into one library for all that are made with the same definitions.
function(carillon_share_verilator target)
  get_target_property(sources ${target} SOURCES)
  set(shared ${sources})
  list(FILTER shared INCLUDE REGEX "/verilated[a-z_]*\\.cpp$")
  get_target_property(definitions ${target} COMPILE_DEFINITIONS)
  string(MD5 hash "${shared} ${definitions}")
  set(library verilator_${hash})
  if(NOT TARGET ${library})
    get_target_property(includes ${target} INCLUDE_DIRECTORIES)
    get_target_property(links ${target} LINK_LIBRARIES)
    add_library(${library} STATIC ${shared})
    foreach(include ${includes})
      cmake_path(IS_PREFIX VERILATOR_ROOT "${include}" is_verilator)
      if(is_verilator)
        target_include_directories(${library} PRIVATE ${include})
      endif()
    endforeach()
    if(definitions)
      target_compile_definitions(${library} PRIVATE ${definitions})
    endif()
    target_compile_features(${library} PRIVATE cxx_std_17)
    target_link_libraries(${library} PUBLIC ${links})
  endif()
  list(REMOVE_ITEM sources ${shared})
  set_property(TARGET ${target} PROPERTY SOURCES ${sources})
  target_link_libraries(${target} PUBLIC ${library})
endfunction()

# carillon_link_verilated(USER TARGET): its headers are Verilator's, and so are their warnings.
function(carillon_link_verilated user target)
  target_link_libraries(${user} PRIVATE ${target}_rtl)
  target_include_directories(${user} SYSTEM PRIVATE
    $<TARGET_PROPERTY:${target}_rtl,INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()

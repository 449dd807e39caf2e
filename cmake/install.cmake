# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install`: the libraries, the header, and how CMake and pkg-config find them.
include_guard()
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/carillon)
add_dependencies(programs carillon carillon_static)
install(TARGETS carillon carillon_static EXPORT carillon-config)
install(DIRECTORY include/carillon TYPE INCLUDE)
install(EXPORT carillon-config NAMESPACE carillon:: DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/carillon-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/carillon-config-version.cmake DESTINATION ${config_dir})

cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE CARILLON_PREFIX_FROM_PC)
configure_file(cmake/carillon.pc.in carillon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/carillon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

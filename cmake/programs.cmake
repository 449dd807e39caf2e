# SPDX-License-Identifier: Apache-2.0
#
# The target `programs`: the command, the libraries, and the programs that the command starts; all that
# is installed is of it, and nothing of the tests. `make run` builds no more.
include_guard()

add_custom_target(programs)

# carillon_install(TARGETS...): part of `programs`, and installed.
function(carillon_install)
  add_dependencies(programs ${ARGN})
  install(TARGETS ${ARGN})
endfunction()

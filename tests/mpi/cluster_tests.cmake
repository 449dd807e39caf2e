# SPDX-License-Identifier: Apache-2.0
#
# The interposer's tests on virtual clusters.

# On several nodes; a program passes only if carillon takes its calls there, too.
function(carillon_cluster_tests mpi)
  set(number 0)
  foreach(program data_test reduction_test communicator_test error_test thread_test progress_test
      local_failure_test alias_test lifetime_test uneven_test request_test persistent_test
      neighbour_test window_test)
    foreach(shape "2,2,2,2" "3,1,2")
      string(REPLACE "," "-" short ${shape})
      math(EXPR number "${number} + 1")
      carillon_take_turns(in_turn ${mpi} ${number})
      add_test(NAME ${program}-${mpi}-nodes-${short}
        COMMAND ${in_turn} ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/on_cluster.py
          $<TARGET_FILE:carillon_cli> ${shape} ${mpi} $<TARGET_FILE:${program}-${mpi}>)
      set_tests_properties(${program}-${mpi}-nodes-${short} PROPERTIES
        LABELS "mpi;nodes" TIMEOUT 300 SKIP_RETURN_CODE 77)
    endforeach()
  endforeach()
  # Runs go from where they stand in the callers' memory, whichever network it is.
  foreach(shape "2,2,2,2" "3,1,2")
    string(REPLACE "," "-" short ${shape})
    add_test(NAME local_failure_test-${mpi}-lists-nodes-${short}
      COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/on_cluster.py
        $<TARGET_FILE:carillon_cli> ${shape} ${mpi} $<TARGET_FILE:local_failure_test-${mpi}>)
    set_tests_properties(local_failure_test-${mpi}-lists-nodes-${short} PROPERTIES
      LABELS "mpi;nodes" TIMEOUT 300 SKIP_RETURN_CODE 77
      ENVIRONMENT "CARILLON_GATHER_ENTRIES=3;CARILLON_GATHER_BYTES=32768")
  endforeach()
  add_test(NAME neighbour_test-${mpi}-nodes-4-4-3
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/on_cluster.py
      $<TARGET_FILE:carillon_cli> 4,4,3 ${mpi} $<TARGET_FILE:neighbour_test-${mpi}>)
  set_tests_properties(neighbour_test-${mpi}-nodes-4-4-3 PROPERTIES
    LABELS "mpi;nodes" TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_test(NAME overlap_test-${mpi}-nodes-2-1
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/on_cluster.py
      $<TARGET_FILE:carillon_cli> 2,1 ${mpi} $<TARGET_FILE:overlap_test-${mpi}>)
  set_tests_properties(overlap_test-${mpi}-nodes-2-1 PROPERTIES
    LABELS "mpi;nodes" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT CARILLON_SERVLET=on)
  # No network: the team of the world cannot be made, which non-blocking collectives learn late.
  # Persistent ones are then the host's from the start: nothing of carillon's to be tested.
  foreach(program request_test maker_test)
    add_test(NAME ${program}-${mpi}-unserved
      COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/on_cluster.py
        $<TARGET_FILE:carillon_cli> 2,1 ${mpi} $<TARGET_FILE:${program}-${mpi}>)
    set_tests_properties(${program}-${mpi}-unserved PROPERTIES
      LABELS "mpi;nodes" TIMEOUT 300 SKIP_RETURN_CODE 77
      ENVIRONMENT "CARILLON_NETWORK=off;MPI_TEST_UNSERVED=1")
  endforeach()
endfunction()

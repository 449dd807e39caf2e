! SPDX-License-Identifier: Apache-2.0
!
! Neighbourhood collectives called in Fortran, blocking and not, must be taken, and right, whatever the
! binding. Compiled once with each.
#include "begin.inc"
  call test_line()
  call test_lists()
  call test_types()
#include "support.inc"

  ! Each rank has one below and one above, but for the ends: of nobody nothing comes.
  subroutine test_line()
    integer, asynchronous :: mine(n), two(n, 2), both(n, 2)
    HANDLE(MPI_Comm) :: line
    HANDLE(MPI_Request) :: request
    call MPI_Cart_create(comm, 1, [ranks], [.false.], .false., line IERROR)
    mine = value_of(rank, 0, indices())
    two(:, 1) = value_of(rank, rank - 1, indices())
    two(:, 2) = value_of(rank, rank + 1, indices())
    both = -1
    call MPI_Neighbor_allgather(mine, n, MPI_INTEGER, both, n, MPI_INTEGER, line IERROR)
    call took('neighbor_allgather')
    call check_sides(both, 0, 'neighbor_allgather')
    both = -1
    call MPI_Ineighbor_allgather(mine, n, MPI_INTEGER, both, n, MPI_INTEGER, line, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(both)
    call took('ineighbor_allgather')
    call check_sides(both, 0, 'ineighbor_allgather')
    both = -1
    call MPI_Neighbor_alltoall(two, n, MPI_INTEGER, both, n, MPI_INTEGER, line IERROR)
    call took('neighbor_alltoall')
    call check_sides(both, rank, 'neighbor_alltoall')
    both = -1
    call MPI_Ineighbor_alltoall(two, n, MPI_INTEGER, both, n, MPI_INTEGER, line, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(both)
    call took('ineighbor_alltoall')
    call check_sides(both, rank, 'ineighbor_alltoall')
    call MPI_Comm_free(line IERROR)
  end subroutine

  subroutine check_sides(both, to, what)  ! from below, and from above
    integer, intent(in) :: both(n, 2), to
    character(len=*), intent(in) :: what
    integer :: side, from
    do side = 1, 2
      from = rank + 2 * side - 3
      if (from < 0 .or. from >= ranks) then
        call check(all(both(:, side) == -1), what // ': something came from nobody')
      else
        call check_numbers(both(:, side), value_of(from, to, indices()), what)
      end if
    end do
  end subroutine

  ! Each rank sends to the next one and to itself. Of what it gets, the previous one's is first in
  ! memory, and its own first in the graph.
  subroutine make_graph(graph)
    HANDLE(MPI_Comm), intent(out) :: graph
    call MPI_Dist_graph_create_adjacent(comm, 2, [rank, previous()], MPI_UNWEIGHTED, 2, &
        [mod(rank + 1, ranks), rank], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph IERROR)
  end subroutine

  integer function previous()
    previous = mod(rank + ranks - 1, ranks)
  end function

  subroutine fill_both(two)
    integer, intent(out) :: two(n, 2)
    two(:, 1) = value_of(rank, rank, indices())
    two(:, 2) = value_of(rank, mod(rank + 1, ranks), indices())
  end subroutine

  subroutine check_both(both, to, what)
    integer, intent(in) :: both(n, 2), to
    character(len=*), intent(in) :: what
    call check_numbers(both(:, 1), value_of(previous(), to, indices()), what)
    call check_numbers(both(:, 2), value_of(rank, to, indices()), what)
  end subroutine

  subroutine test_lists()
    integer, asynchronous :: mine(n), two(n, 2), both(n, 2)
    integer :: counts(2), offsets(2)
    HANDLE(MPI_Comm) :: graph
    HANDLE(MPI_Request) :: request
    call make_graph(graph)
    mine = value_of(rank, 0, indices())
    call fill_both(two)
    counts = n
    offsets = [n, 0]
    both = -1
    call MPI_Neighbor_allgatherv(mine, n, MPI_INTEGER, both, counts, offsets, MPI_INTEGER, &
        graph IERROR)
    call took('neighbor_allgatherv')
    call check_both(both, 0, 'neighbor_allgatherv')
    both = -1
    call MPI_Ineighbor_allgatherv(mine, n, MPI_INTEGER, both, counts, offsets, MPI_INTEGER, &
        graph, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(both)
    call took('ineighbor_allgatherv')
    call check_both(both, 0, 'ineighbor_allgatherv')
    both = -1
    call MPI_Neighbor_alltoallv(two, counts, offsets, MPI_INTEGER, both, counts, offsets, &
        MPI_INTEGER, graph IERROR)
    call took('neighbor_alltoallv')
    call check_both(both, rank, 'neighbor_alltoallv')
    both = -1
    call MPI_Ineighbor_alltoallv(two, counts, offsets, MPI_INTEGER, both, counts, offsets, &
        MPI_INTEGER, graph, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(both)
    call took('ineighbor_alltoallv')
    call check_both(both, rank, 'ineighbor_alltoallv')
    call MPI_Comm_free(graph IERROR)
  end subroutine

  subroutine test_types()
    integer, asynchronous :: two(n, 2), both(n, 2)
    integer :: counts(2)
    integer(MPI_ADDRESS_KIND) :: places(2)
    HANDLE(MPI_Datatype) :: types(2)
    HANDLE(MPI_Comm) :: graph
    HANDLE(MPI_Request) :: request
    call make_graph(graph)
    call fill_both(two)
    counts = n
    types = MPI_INTEGER
    places = [n * storage_size(n) / 8, 0]
    both = -1
    call MPI_Neighbor_alltoallw(two, counts, places, types, both, counts, places, types, &
        graph IERROR)
    call took('neighbor_alltoallw')
    call check_both(both, rank, 'neighbor_alltoallw')
    both = -1
    call MPI_Ineighbor_alltoallw(two, counts, places, types, both, counts, places, types, graph, &
        request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(both)
    call took('ineighbor_alltoallw')
    call check_both(both, rank, 'ineighbor_alltoallw')
    call MPI_Comm_free(graph IERROR)
  end subroutine

end program

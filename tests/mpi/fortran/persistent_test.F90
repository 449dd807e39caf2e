! SPDX-License-Identifier: Apache-2.0
!
! Persistent collectives called in Fortran must be taken each time that they are started, and right,
! whatever the binding. Compiled once with each binding.
#ifdef EXTENSIONS
! Open MPI 4 has them as extensions.
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Gather_init MPIX_Gather_init
#define MPI_Scatter_init MPIX_Scatter_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#define MPI_Reduce_scatter_init MPIX_Reduce_scatter_init
#define MPI_Scan_init MPIX_Scan_init
#define MPI_Exscan_init MPIX_Exscan_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Neighbor_allgather_init MPIX_Neighbor_allgather_init
#define MPI_Neighbor_allgatherv_init MPIX_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init
#define MPI_Neighbor_alltoallv_init MPIX_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init
#endif
#include "begin.inc"
  call test_rounds()
  call test_reductions()
  call test_data()
  call test_lists()
  call test_neighbours()
  call test_types_of_neighbours()
#include "support.inc"

  ! Starts them, and completes them in one of two ways.
  subroutine go_round(round, count, requests)
    integer, intent(in) :: round, count
    HANDLE(MPI_Request), intent(inout) :: requests(count)
    STATUSES(states, count)
    STATUS(state)
    integer :: i
    call MPI_Startall(count, requests IERROR)
    if (round == 1) then
      call MPI_Waitall(count, requests, states IERROR)
    else
      do i = 1, count
        call MPI_Wait(requests(i), state IERROR)
      end do
    end if
  end subroutine

  subroutine release(count, requests)
    integer, intent(in) :: count
    HANDLE(MPI_Request), intent(inout) :: requests(count)
    integer :: i
    do i = 1, count
      call check(requests(i) /= MPI_REQUEST_NULL, 'a persistent handle is gone')
      call MPI_Request_free(requests(i) IERROR)
    end do
  end subroutine

  ! For each rank, other values in each round.
  subroutine fill_round(round, mine, blocks)
    integer, intent(in) :: round
    integer, intent(out) :: mine(n), blocks(n * ranks)
    mine = value_of(rank, round, indices())
    call fill_blocks(blocks)
    blocks = blocks + 500 * round
  end subroutine

  subroutine test_rounds()
    integer :: round, counts(ranks), offsets(ranks)
    integer, asynchronous :: mine(n), sums(n), numbers(n), blocks(n * ranks), others(n * ranks)
    HANDLE(MPI_Request) :: requests(4)
    call make_backwards(counts, offsets)
    call MPI_Barrier_init(comm, MPI_INFO_NULL, requests(1) IERROR)
    call MPI_Bcast_init(numbers, n, MPI_INTEGER, 0, comm, MPI_INFO_NULL, requests(2) IERROR)
    call MPI_Allreduce_init(mine, sums, n, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        requests(3) IERROR)
    call MPI_Alltoallv_init(blocks, counts, offsets, MPI_INTEGER, others, counts, offsets, &
        MPI_INTEGER, comm, MPI_INFO_NULL, requests(4) IERROR)
    counts = -1
    offsets = -1
    do round = 1, rounds
      numbers = merge(value_of(0, round, indices()), -1, rank == 0)
      call fill_round(round, mine, blocks)
      call turn(blocks)
      call go_round(round, 4, requests)
      call see(sums)
      call see(numbers)
      call see(others)
      call check_numbers(sums, sum_of(ranks - 1, indices()) + 1000 * round * ranks, &
          'allreduce_init')
      call check_numbers(numbers, value_of(0, round, indices()), 'bcast_init')
      call turn(others)
      others = others - 500 * round
      call check_blocks(others, 'alltoallv_init')
    end do
    call release(4, requests)
    call took_each_time('barrier_init')
    call took_each_time('bcast_init')
    call took_each_time('allreduce_init')
    call took_each_time('alltoallv_init')
  end subroutine

  subroutine test_reductions()
    integer :: round, counts(ranks), all(n)
    integer, asynchronous :: mine(n), blocks(n * ranks), sums(n), up_to(n), before(n), own(n), same(n)
    HANDLE(MPI_Request) :: requests(5)
    counts = n
    call MPI_Reduce_init(mine, sums, n, MPI_INTEGER, MPI_SUM, 0, comm, MPI_INFO_NULL, &
        requests(1) IERROR)
    call MPI_Scan_init(mine, up_to, n, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        requests(2) IERROR)
    call MPI_Exscan_init(mine, before, n, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        requests(3) IERROR)
    call MPI_Reduce_scatter_block_init(blocks, own, n, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        requests(4) IERROR)
    call MPI_Reduce_scatter_init(blocks, same, counts, MPI_INTEGER, MPI_SUM, comm, MPI_INFO_NULL, &
        requests(5) IERROR)
    counts = -1
    do round = 1, rounds
      call fill_round(round, mine, blocks)
      call go_round(round, 5, requests)
      call see(sums)
      call see(up_to)
      call see(before)
      call see(own)
      call see(same)
      all = sum_of(ranks - 1, indices())
      if (rank == 0) call check_numbers(sums, all + 1000 * round * ranks, 'reduce_init')
      call check_numbers(up_to, sum_of(rank, indices()) + 1000 * round * (rank + 1), 'scan_init')
      if (rank > 0) then
        call check_numbers(before, sum_of(rank - 1, indices()) + 1000 * round * rank, 'exscan_init')
      end if
      all = all + (1000 * rank + 500 * round) * ranks
      call check_numbers(own, all, 'reduce_scatter_block_init')
      call check_numbers(same, all, 'reduce_scatter_init')
    end do
    call release(5, requests)
    call took_each_time('reduce_init')
    call took_each_time('scan_init')
    call took_each_time('exscan_init')
    call took_each_time('reduce_scatter_block_init')
    call took_each_time('reduce_scatter_init')
  end subroutine

  ! The own numbers of each rank.
  subroutine check_all(numbers, round, what)
    integer, intent(in) :: numbers(n * ranks), round
    character(len=*), intent(in) :: what
    integer :: i
    do i = 0, ranks - 1
      call check_numbers(numbers(n * i + 1 : n * i + n), value_of(i, round, indices()), what)
    end do
  end subroutine

  subroutine test_data()
    integer :: round
    integer, asynchronous :: mine(n), blocks(n * ranks), everything(n * ranks), others(n * ranks)
    integer, asynchronous :: gathered(n * ranks), one(n)
    HANDLE(MPI_Request) :: requests(4)
    call MPI_Allgather_init(mine, n, MPI_INTEGER, everything, n, MPI_INTEGER, comm, MPI_INFO_NULL, &
        requests(1) IERROR)
    call MPI_Alltoall_init(blocks, n, MPI_INTEGER, others, n, MPI_INTEGER, comm, MPI_INFO_NULL, &
        requests(2) IERROR)
    call MPI_Gather_init(mine, n, MPI_INTEGER, gathered, n, MPI_INTEGER, 0, comm, MPI_INFO_NULL, &
        requests(3) IERROR)
    call MPI_Scatter_init(blocks, n, MPI_INTEGER, one, n, MPI_INTEGER, ranks - 1, comm, &
        MPI_INFO_NULL, requests(4) IERROR)
    do round = 1, rounds
      call fill_round(round, mine, blocks)
      call go_round(round, 4, requests)
      call see(everything)
      call see(others)
      call see(gathered)
      call see(one)
      call check_all(everything, round, 'allgather_init')
      others = others - 500 * round
      call check_blocks(others, 'alltoall_init')
      if (rank == 0) call check_all(gathered, round, 'gather_init')
      call check_numbers(one, value_of(ranks - 1, rank, indices()) + 500 * round, 'scatter_init')
    end do
    call release(4, requests)
    call took_each_time('allgather_init')
    call took_each_time('alltoall_init')
    call took_each_time('gather_init')
    call took_each_time('scatter_init')
  end subroutine

  subroutine test_lists()
    integer :: round, counts(ranks), offsets(ranks), places(ranks)
    integer, asynchronous :: mine(n), blocks(n * ranks), everything(n * ranks), others(n * ranks)
    integer, asynchronous :: gathered(n * ranks), one(n)
    HANDLE(MPI_Datatype) :: types(ranks)
    HANDLE(MPI_Request) :: requests(4)
    call make_backwards(counts, offsets)
    places = offsets * (storage_size(n) / 8)
    types = MPI_INTEGER
    call MPI_Allgatherv_init(mine, n, MPI_INTEGER, everything, counts, offsets, MPI_INTEGER, comm, &
        MPI_INFO_NULL, requests(1) IERROR)
    call MPI_Gatherv_init(mine, n, MPI_INTEGER, gathered, counts, offsets, MPI_INTEGER, 0, comm, &
        MPI_INFO_NULL, requests(2) IERROR)
    call MPI_Scatterv_init(blocks, counts, offsets, MPI_INTEGER, one, n, MPI_INTEGER, ranks - 1, &
        comm, MPI_INFO_NULL, requests(3) IERROR)
    call MPI_Alltoallw_init(blocks, counts, places, types, others, counts, places, types, comm, &
        MPI_INFO_NULL, requests(4) IERROR)
    counts = -1
    offsets = -1
    places = -1
    do round = 1, rounds
      call fill_round(round, mine, blocks)
      call turn(blocks)
      call go_round(round, 4, requests)
      call see(everything)
      call see(gathered)
      call see(one)
      call see(others)
      call turn(everything)
      call check_all(everything, round, 'allgatherv_init')
      call turn(gathered)
      if (rank == 0) call check_all(gathered, round, 'gatherv_init')
      call check_numbers(one, value_of(ranks - 1, rank, indices()) + 500 * round, 'scatterv_init')
      call turn(others)
      others = others - 500 * round
      call check_blocks(others, 'alltoallw_init')
    end do
    call release(4, requests)
    call took_each_time('allgatherv_init')
    call took_each_time('gatherv_init')
    call took_each_time('scatterv_init')
    call took_each_time('alltoallw_init')
  end subroutine

  ! What comes from the rank below, and from the one above, if there is one.
  subroutine check_sides(below, above, to, more, what)
    integer, intent(in) :: below(n), above(n), to, more
    character(len=*), intent(in) :: what
    if (rank > 0) call check_numbers(below, value_of(rank - 1, to, indices()) + more, what)
    if (rank == 0) call check(all(below == -1), what // ': something came from nobody')
    if (rank < ranks - 1) call check_numbers(above, value_of(rank + 1, to, indices()) + more, what)
    if (rank == ranks - 1) call check(all(above == -1), what // ': something came from nobody')
  end subroutine

  ! On a line; where blocks are listed, the upper one comes first in memory.
  subroutine test_neighbours()
    integer :: round, counts(2), offsets(2)
    integer, asynchronous :: mine(n), two(n, 2), back(n, 2)
    integer, asynchronous :: g(n, 2), gv(n, 2), a(n, 2), av(n, 2)
    HANDLE(MPI_Comm) :: line
    HANDLE(MPI_Request) :: requests(4)
    call MPI_Cart_create(comm, 1, [ranks], [.false.], .false., line IERROR)
    counts = n
    offsets = [n, 0]
    call MPI_Neighbor_allgather_init(mine, n, MPI_INTEGER, g, n, MPI_INTEGER, line, MPI_INFO_NULL, &
        requests(1) IERROR)
    call MPI_Neighbor_allgatherv_init(mine, n, MPI_INTEGER, gv, counts, offsets, MPI_INTEGER, &
        line, MPI_INFO_NULL, requests(2) IERROR)
    call MPI_Neighbor_alltoall_init(two, n, MPI_INTEGER, a, n, MPI_INTEGER, line, MPI_INFO_NULL, &
        requests(3) IERROR)
    call MPI_Neighbor_alltoallv_init(back, counts, offsets, MPI_INTEGER, av, counts, offsets, &
        MPI_INTEGER, line, MPI_INFO_NULL, requests(4) IERROR)
    counts = -1
    offsets = -1
    do round = 1, rounds
      mine = value_of(rank, round, indices())
      two(:, 1) = value_of(rank, rank - 1, indices()) + 500 * round
      two(:, 2) = value_of(rank, rank + 1, indices()) + 500 * round
      back = two(:, 2:1:-1)
      g = -1
      gv = -1
      a = -1
      av = -1
      call go_round(round, 4, requests)
      call see(g)
      call see(gv)
      call see(a)
      call see(av)
      call check_sides(g(:, 1), g(:, 2), round, 0, 'neighbor_allgather_init')
      call check_sides(gv(:, 2), gv(:, 1), round, 0, 'neighbor_allgatherv_init')
      call check_sides(a(:, 1), a(:, 2), rank, 500 * round, 'neighbor_alltoall_init')
      call check_sides(av(:, 2), av(:, 1), rank, 500 * round, 'neighbor_alltoallv_init')
    end do
    call release(4, requests)
    call MPI_Comm_free(line IERROR)
    call took_each_time('neighbor_allgather_init')
    call took_each_time('neighbor_allgatherv_init')
    call took_each_time('neighbor_alltoall_init')
    call took_each_time('neighbor_alltoallv_init')
  end subroutine

  ! Each rank sends to the next one and to itself. (MPICH's mpi_f08 knows no grid here.)
  subroutine test_types_of_neighbours()
    integer :: round, counts(2), previous, next
    integer(MPI_ADDRESS_KIND) :: places(2)
    integer, asynchronous :: two(n, 2), both(n, 2)
    HANDLE(MPI_Datatype) :: types(2)
    HANDLE(MPI_Comm) :: graph
    HANDLE(MPI_Request) :: requests(1)
    previous = mod(rank + ranks - 1, ranks)
    next = mod(rank + 1, ranks)
    call MPI_Dist_graph_create_adjacent(comm, 2, [rank, previous], MPI_UNWEIGHTED, 2, [next, rank], &
        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph IERROR)
    counts = n
    places = [n * storage_size(n) / 8, 0]
    types = MPI_INTEGER
    call MPI_Neighbor_alltoallw_init(two, counts, places, types, both, counts, places, types, &
        graph, MPI_INFO_NULL, requests(1) IERROR)
    counts = -1
    places = -1
    do round = 1, rounds
      two(:, 1) = value_of(rank, rank, indices()) + 500 * round
      two(:, 2) = value_of(rank, next, indices()) + 500 * round
      both = -1
      call go_round(round, 1, requests)
      call see(both)
      call check_numbers(both(:, 1), value_of(previous, rank, indices()) + 500 * round, &
          'neighbor_alltoallw_init')
      call check_numbers(both(:, 2), value_of(rank, rank, indices()) + 500 * round, &
          'neighbor_alltoallw_init')
    end do
    call release(1, requests)
    call MPI_Comm_free(graph IERROR)
    call took_each_time('neighbor_alltoallw_init')
  end subroutine

  subroutine took_each_time(name)
    character(len=*), intent(in) :: name
    call check(taken(name // c_null_char) == rounds, name // ' was not taken each time')
    call check(left(name // c_null_char) == 0, name // ' was left to the MPI')
  end subroutine

end program

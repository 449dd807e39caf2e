! SPDX-License-Identifier: Apache-2.0
!
! Persistent collectives called in Fortran must be taken each time that they are started, and right,
! whatever the binding. Compiled once with each binding.
#ifdef EXTENSIONS
! Open MPI 4 has them as extensions.
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#endif
#include "begin.inc"
  call test_rounds()
#include "support.inc"

  subroutine test_rounds()
    integer, parameter :: rounds = 3
    integer :: round, counts(ranks), offsets(ranks), i
    integer, asynchronous :: mine(n), sums(n), numbers(n), blocks(n * ranks), others(n * ranks)
    HANDLE(MPI_Request) :: requests(4)
    STATUSES(states, 4)
    STATUS(state)
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
      mine = value_of(rank, round, indices())
      numbers = merge(value_of(0, round, indices()), -1, rank == 0)
      call fill_blocks(blocks)
      blocks = blocks + 500 * round
      call turn(blocks)
      call MPI_Startall(4, requests IERROR)
      if (round == 1) then
        call MPI_Waitall(4, requests, states IERROR)
      else
        do i = 1, 4
          call MPI_Wait(requests(i), state IERROR)
        end do
      end if
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
    do i = 1, 4
      call check(requests(i) /= MPI_REQUEST_NULL, 'a persistent handle is gone')
      call MPI_Request_free(requests(i) IERROR)
    end do
    call took_each_time('barrier_init', rounds)
    call took_each_time('bcast_init', rounds)
    call took_each_time('allreduce_init', rounds)
    call took_each_time('alltoallv_init', rounds)
  end subroutine

  subroutine took_each_time(name, times)
    character(len=*), intent(in) :: name
    integer, intent(in) :: times
    call check(taken(name // c_null_char) == times, name // ' was not taken each time')
    call check(left(name // c_null_char) == 0, name // ' was left to the MPI')
  end subroutine

end program

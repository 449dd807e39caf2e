! SPDX-License-Identifier: Apache-2.0
!
! Non-blocking collectives called in Fortran must be taken, and right, whatever the binding, and
! completed by any function that completes requests. Compiled once with each binding.
#include "begin.inc"
  call test_started_reductions()
  call test_started_data()
  call test_started_lists()
  call test_completions()
  call test_own_operator()
  call test_messages()
#include "support.inc"

  subroutine test_started_reductions()
    integer, asynchronous :: mine(n), a(n), b(n), c(n), d(n), e(n), f(n), g(n), blocks(n * ranks)
    integer :: counts(ranks), i
    HANDLE(MPI_Request) :: requests(8)
    STATUSES(states, 8)
    mine = value_of(rank, 0, indices())
    counts = n
    b = mine
    call fill_blocks(blocks)
    call MPI_Ibarrier(comm, requests(1) IERROR)
    call MPI_Iallreduce(mine, a, n, MPI_INTEGER, MPI_SUM, comm, requests(2) IERROR)
    call MPI_Iallreduce(MPI_IN_PLACE, b, n, MPI_INTEGER, MPI_SUM, comm, requests(3) IERROR)
    call MPI_Ireduce(mine, c, n, MPI_INTEGER, MPI_SUM, ranks - 1, comm, requests(4) IERROR)
    call MPI_Iscan(mine, d, n, MPI_INTEGER, MPI_SUM, comm, requests(5) IERROR)
    call MPI_Iexscan(mine, e, n, MPI_INTEGER, MPI_SUM, comm, requests(6) IERROR)
    call MPI_Ireduce_scatter_block(blocks, f, n, MPI_INTEGER, MPI_SUM, comm, requests(7) IERROR)
    call MPI_Ireduce_scatter(blocks, g, counts, MPI_INTEGER, MPI_SUM, comm, requests(8) IERROR)
    call MPI_Waitall(8, requests, states IERROR)
    do i = 1, 8
      call check(requests(i) == MPI_REQUEST_NULL, 'a request of waitall is not null')
    end do
    call see(a)
    call took('ibarrier')
    call check_numbers(a, sum_of(ranks - 1, indices()), 'iallreduce')
    call check_numbers(b, sum_of(ranks - 1, indices()), 'iallreduce in place')
    seen(size(names) + 4) = seen(size(names) + 4) + 1  ! the first of two
    call took('iallreduce')
    if (rank == ranks - 1) call check_numbers(c, sum_of(ranks - 1, indices()), 'ireduce')
    call took('ireduce')
    call check_numbers(d, sum_of(rank, indices()), 'iscan')
    call took('iscan')
    if (rank > 0) call check_numbers(e, sum_of(rank - 1, indices()), 'iexscan')
    call took('iexscan')
    call check_numbers(f, sum_of(ranks - 1, indices()) + 1000 * rank * ranks, &
        'ireduce_scatter_block')
    call took('ireduce_scatter_block')
    call check_numbers(g, f, 'ireduce_scatter')
    call took('ireduce_scatter')
  end subroutine

  subroutine test_started_data()
    integer, asynchronous :: blocks(n * ranks), others(n * ranks), mine(n)
    integer :: i
    logical :: done
    HANDLE(MPI_Request) :: request
    STATUS(state)
    mine = -1
    if (rank == 0) mine = value_of(0, 9, indices())
    call MPI_Ibcast(mine, n, MPI_INTEGER, 0, comm, request IERROR)
    done = .false.
    do while (.not. done)
      call MPI_Test(request, done, state IERROR)
    end do
    call see(mine)
    call took('ibcast')
    call check(request == MPI_REQUEST_NULL, 'the request of test is not null')
    call check_numbers(mine, value_of(0, 9, indices()), 'ibcast')
    call fill_blocks(blocks)
    call MPI_Ialltoall(blocks, n, MPI_INTEGER, others, n, MPI_INTEGER, comm, request IERROR)
    call MPI_Wait(request, state IERROR)
    call see(others)
    call took('ialltoall')
    call check_blocks(others, 'ialltoall')
    mine = value_of(rank, 4, indices())
    call MPI_Iallgather(mine, n, MPI_INTEGER, others, n, MPI_INTEGER, comm, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(others)
    call took('iallgather')
    do i = 0, ranks - 1
      call check_numbers(others(n * i + 1 : n * i + n), value_of(i, 4, indices()), 'iallgather')
    end do
    mine = value_of(rank, 0, indices())
    call MPI_Igather(mine, n, MPI_INTEGER, others, n, MPI_INTEGER, 0, comm, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(others)
    call took('igather')
    if (rank == 0) call check_blocks(others, 'igather')
    call MPI_Iscatter(blocks, n, MPI_INTEGER, mine, n, MPI_INTEGER, 0, comm, request IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call see(mine)
    call took('iscatter')
    call check_numbers(mine, value_of(0, rank, indices()), 'iscatter')
  end subroutine

  subroutine test_started_lists()
    integer :: counts(ranks), offsets(ranks), done, which(4), finished
    integer, asynchronous :: blocks(n * ranks), a(n * ranks), b(n * ranks), c(n * ranks), mine(n)
    integer, asynchronous :: one(n)
    HANDLE(MPI_Request) :: requests(4)
    STATUSES(states, 4)
    call make_backwards(counts, offsets)
    call fill_blocks(blocks)
    call turn(blocks)
    mine = value_of(rank, 0, indices())
    call MPI_Ialltoallv(blocks, counts, offsets, MPI_INTEGER, a, counts, offsets, MPI_INTEGER, &
        comm, requests(1) IERROR)
    call MPI_Iallgatherv(mine, n, MPI_INTEGER, b, counts, offsets, MPI_INTEGER, comm, &
        requests(2) IERROR)
    call MPI_Igatherv(mine, n, MPI_INTEGER, c, counts, offsets, MPI_INTEGER, 0, comm, &
        requests(3) IERROR)
    call MPI_Iscatterv(blocks, counts, offsets, MPI_INTEGER, one, n, MPI_INTEGER, 0, comm, &
        requests(4) IERROR)
    finished = 0
    do while (finished < 4)
      call MPI_Waitsome(4, requests, done, which, states IERROR)
      finished = finished + done
      call check(outstanding(requests) == 4 - finished, 'waitsome')
    end do
    call see(a)
    call took('ialltoallv')
    call turn(a)
    call check_blocks(a, 'ialltoallv')
    call took('iallgatherv')
    call turn(b)
    call check_numbers(b(n * (ranks - 1) + 1 :), value_of(ranks - 1, 0, indices()), 'iallgatherv')
    call took('igatherv')
    call turn(c)
    if (rank == 0) call check_blocks(c, 'igatherv')
    call took('iscatterv')
    call check_numbers(one, value_of(0, rank, indices()), 'iscatterv')
  end subroutine

  integer function outstanding(requests)
    HANDLE(MPI_Request), intent(in) :: requests(:)
    integer :: i
    outstanding = 0
    do i = 1, size(requests)
      if (requests(i) /= MPI_REQUEST_NULL) outstanding = outstanding + 1
    end do
  end function

  ! The other functions that complete requests, among them one of a message.
  subroutine test_completions()
    integer, asynchronous :: numbers(2), sums(2), message
    integer :: which, i, some(3), done
    logical :: flag
    HANDLE(MPI_Request) :: requests(3)
    STATUS(state)
    STATUSES(states, 3)
    do i = 1, 5
      numbers = [rank, i]
      message = -1
      call MPI_Irecv(message, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), i, comm, &
          requests(1) IERROR)
      call MPI_Iallreduce(numbers, sums, 2, MPI_INTEGER, MPI_SUM, comm, requests(2) IERROR)
      call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), i, comm, requests(3) IERROR)
      flag = .false.
      select case (i)
      case (1)  ! all, one after the other
        do which = 1, 3
          call MPI_Waitany(3, requests, done, state IERROR)
          call check(outstanding(requests) == 3 - which, 'waitany')
        end do
      case (2)
        do while (.not. flag)
          call MPI_Testall(3, requests, flag, states IERROR)
        end do
      case (3)
        done = 0
        do while (done < 3)
          call MPI_Testany(3, requests, which, flag, MPI_STATUS_IGNORE IERROR)
          if (flag) done = done + 1
        end do
      case (4)
        which = 0
        do while (which < 3)
          call MPI_Testsome(3, requests, done, some, states IERROR)
          which = which + done
        end do
      case (5)
        do while (.not. flag)
          call MPI_Request_get_status(requests(2), flag, state IERROR)
        end do
        call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE IERROR)
      end select
      call see(sums)
      call took('iallreduce')
      call check(message == mod(rank + ranks - 1, ranks), 'a message beside a collective')
      call check_numbers(sums, [ranks * (ranks - 1) / 2, ranks * i], 'iallreduce, completed')
    end do
  end subroutine

  ! Keeps the first of two, so that the order of the ranks counts.
  subroutine keep_first(in, inout, length, datatype)
#if BINDING == 3
    type(c_ptr), value :: in, inout
    type(MPI_Datatype) :: datatype
    integer :: length
    integer, pointer :: first(:), second(:)
    call c_f_pointer(in, first, [length])
    call c_f_pointer(inout, second, [length])
    second = first
    if (datatype == MPI_DATATYPE_NULL) failures = failures + 1
#else
    integer :: length, datatype
    integer :: in(length), inout(length)
    inout = in
    if (datatype == MPI_DATATYPE_NULL) failures = failures + 1
#endif
  end subroutine

  subroutine test_own_operator()
    HANDLE(MPI_Op) :: op
    HANDLE(MPI_Request) :: request
    integer, asynchronous :: mine(n), firsts(n)
    mine = value_of(rank, 1, indices())
    call MPI_Op_create(keep_first, .false., op IERROR)
    call MPI_Allreduce(mine, firsts, n, MPI_INTEGER, op, comm IERROR)
    call took('allreduce')
    call check_numbers(firsts, value_of(0, 1, indices()), 'allreduce with an own operator')
    call MPI_Iallreduce(mine, firsts, n, MPI_INTEGER, op, comm, request IERROR)
    call MPI_Op_free(op IERROR)
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call took('iallreduce')
    call see(firsts)
    call check_numbers(firsts, value_of(0, 1, indices()), 'iallreduce with an own operator')
  end subroutine

  ! A rank waits in a receive, or a probe, while others need it for a broadcast.
  subroutine test_messages()
    integer, asynchronous :: number(1)
    integer :: message
    HANDLE(MPI_Request) :: request
    STATUS(state)
    number = merge(17, -1, rank == 0)
    message = -1
    call MPI_Ibcast(number, 1, MPI_INTEGER, 0, comm, request IERROR)
    if (rank == ranks - 1) then
      call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
      do message = 0, ranks - 2
        call MPI_Send(message, 1, MPI_INTEGER, message, 5, comm IERROR)
      end do
    else
      call MPI_Probe(ranks - 1, 5, comm, state IERROR)
      call MPI_Recv(message, 1, MPI_INTEGER, ranks - 1, 5, comm, state IERROR)
      call check(message == rank, 'a message while a broadcast is in flight')
#if BINDING == 3
      call check(state%MPI_SOURCE == ranks - 1 .and. state%MPI_TAG == 5, 'its status')
#else
      call check(state(MPI_SOURCE) == ranks - 1 .and. state(MPI_TAG) == 5, 'its status')
#endif
      call MPI_Wait(request, state IERROR)
    end if
    call took('ibcast')
    call see(number)
    call check(number(1) == 17, 'a broadcast while messages are')
  end subroutine

end program

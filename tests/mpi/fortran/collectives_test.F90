! SPDX-License-Identifier: Apache-2.0
!
! Collectives called in Fortran must be taken, and right, whatever the binding. Compiled once with each.
#include "begin.inc"
  call test_reductions()
  call test_types()
  call test_data()
  call test_lists()
  call test_list_of_types()
  call test_copies()
#if BINDING == 3
  call test_sections()
#ifdef LARGE_COUNTS
  call test_large_counts()
#endif
#endif
#include "support.inc"

  subroutine test_reductions()
    integer :: mine(n), sums(n), blocks(n * ranks), counts(ranks), root
    mine = value_of(rank, 0, indices())
    counts = n
    call MPI_Barrier(comm IERROR)
    call took('barrier')
    call MPI_Allreduce(mine, sums, n, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('allreduce')
    call check_numbers(sums, sum_of(ranks - 1, indices()), 'allreduce')
    sums = mine
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('allreduce')
    call check_numbers(sums, sum_of(ranks - 1, indices()), 'allreduce in place')
    do root = 0, ranks - 1
      sums = mine
      if (rank == root) then
        call MPI_Reduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, MPI_SUM, root, comm IERROR)
        call check_numbers(sums, sum_of(ranks - 1, indices()), 'reduce in place')
      else
        call MPI_Reduce(sums, mine, n, MPI_INTEGER, MPI_SUM, root, comm IERROR)
      end if
      call took('reduce')
    end do
    call MPI_Scan(mine, sums, n, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('scan')
    call check_numbers(sums, sum_of(rank, indices()), 'scan')
    call MPI_Exscan(mine, sums, n, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('exscan')
    if (rank > 0) call check_numbers(sums, sum_of(rank - 1, indices()), 'exscan')
    call fill_blocks(blocks)
    call MPI_Reduce_scatter_block(blocks, sums, n, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('reduce_scatter_block')
    call check_numbers(sums, sum_of(ranks - 1, indices()) + 1000 * rank * ranks, &
        'reduce_scatter_block')
    call MPI_Reduce_scatter(blocks, sums, counts, MPI_INTEGER, MPI_SUM, comm IERROR)
    call took('reduce_scatter')
    call check_numbers(sums, sum_of(ranks - 1, indices()) + 1000 * rank * ranks, 'reduce_scatter')
  end subroutine

  subroutine test_types()
    logical :: truth, truths(2), any_true(2)
    complex :: z(2), zs(2)
    double complex :: w, ws
    real :: x, xs
    double precision :: d(3), ds(3)
    character(len=11) :: text
    integer :: pair(2), pairs(2)
    truth = rank /= ranks - 1
    call MPI_Allreduce(truth, any_true(1), 1, MPI_LOGICAL, MPI_LAND, comm IERROR)
    call took('allreduce')
    call check(.not. any_true(1), 'land')
    truths = [rank == 0, .false.]
    call MPI_Allreduce(truths, any_true, 2, MPI_LOGICAL, MPI_LOR, comm IERROR)
    call took('allreduce')
    call check(any_true(1) .and. .not. any_true(2), 'lor')
    z = [cmplx(rank, 1.0), cmplx(1.0, -rank)]
    call MPI_Allreduce(z, zs, 2, MPI_COMPLEX, MPI_SUM, comm IERROR)
    call took('allreduce')
    call check(zs(1) == cmplx(ranks * (ranks - 1) / 2, ranks) .and. &
        zs(2) == cmplx(ranks, -ranks * (ranks - 1) / 2), 'sum of complex')
    w = (0d0, 1d0)
    call MPI_Allreduce(w, ws, 1, MPI_DOUBLE_COMPLEX, MPI_PROD, comm IERROR)
    call took('allreduce')
    call check(ws == (0d0, 1d0) ** ranks, 'product of double complex')
    x = 0.5 * rank
    call MPI_Allreduce(x, xs, 1, MPI_REAL, MPI_MAX, comm IERROR)
    call took('allreduce')
    call check(xs == 0.5 * (ranks - 1), 'max of real')
    d = [0.25d0, -1d0 * rank, 1d0]
    call MPI_Allreduce(d, ds, 3, MPI_DOUBLE_PRECISION, MPI_SUM, comm IERROR)
    call took('allreduce')
    call check(all(ds == [0.25d0 * ranks, -0.5d0 * ranks * (ranks - 1), 1d0 * ranks]), &
        'sum of double precision')
    pair = [100 - rank, rank]
    call MPI_Allreduce(pair, pairs, 1, MPI_2INTEGER, MPI_MINLOC, comm IERROR)
    call took('allreduce')
    call check_numbers(pairs, [101 - ranks, ranks - 1], 'minloc')
    text = merge('from rank 0', 'from others', rank == 0)
    call MPI_Bcast(text, 11, MPI_CHARACTER, 0, comm IERROR)
    call took('bcast')
    call check(text == 'from rank 0', 'bcast of text')
  end subroutine

  subroutine test_data()
    integer :: mine(n), one(n), blocks(n * ranks), others(n * ranks), root
    do root = 0, ranks - 1
      one = -1
      if (rank == root) one = value_of(root, 7, indices())
      call MPI_Bcast(one, n, MPI_INTEGER, root, comm IERROR)
      call took('bcast')
      call check_numbers(one, value_of(root, 7, indices()), 'bcast')
      mine = value_of(rank, root, indices())
      others = -1
      if (rank == root) then
        others(n * rank + 1 : n * rank + n) = mine
        call MPI_Gather(MPI_IN_PLACE, n, MPI_INTEGER, others, n, MPI_INTEGER, root, comm IERROR)
        call check_blocks(others, 'gather in place')
      else
        call MPI_Gather(mine, n, MPI_INTEGER, others, n, MPI_INTEGER, root, comm IERROR)
      end if
      call took('gather')
      call fill_blocks(blocks)
      one = -1
      if (rank == root) then
        call MPI_Scatter(blocks, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, root, comm IERROR)
      else
        call MPI_Scatter(blocks, n, MPI_INTEGER, one, n, MPI_INTEGER, root, comm IERROR)
        call check_numbers(one, value_of(root, rank, indices()), 'scatter')
      end if
      call took('scatter')
    end do
    call fill_blocks(blocks)
    call MPI_Alltoall(blocks, n, MPI_INTEGER, others, n, MPI_INTEGER, comm IERROR)
    call took('alltoall')
    call check_blocks(others, 'alltoall')
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, blocks, n, MPI_INTEGER, comm IERROR)
    call took('alltoall')
    call check_blocks(blocks, 'alltoall in place')
    mine = value_of(rank, 3, indices())
    call MPI_Allgather(mine, n, MPI_INTEGER, others, n, MPI_INTEGER, comm IERROR)
    call took('allgather')
    do root = 0, ranks - 1
      call check_numbers(others(n * root + 1 : n * root + n), value_of(root, 3, indices()), &
          'allgather')
    end do
  end subroutine

  subroutine test_lists()
    integer :: counts(ranks), offsets(ranks), blocks(n * ranks), others(n * ranks), mine(n)
    call make_backwards(counts, offsets)
    call fill_blocks(blocks)
    call turn(blocks)
    call MPI_Alltoallv(blocks, counts, offsets, MPI_INTEGER, others, counts, offsets, MPI_INTEGER, &
        comm IERROR)
    call took('alltoallv')
    call turn(others)
    call check_blocks(others, 'alltoallv')
    mine = value_of(rank, 0, indices())
    others = -1
    call MPI_Gatherv(mine, n, MPI_INTEGER, others, counts, offsets, MPI_INTEGER, 0, comm IERROR)
    call took('gatherv')
    call turn(others)
    if (rank == 0) call check_blocks(others, 'gatherv')
    call MPI_Scatterv(blocks, counts, offsets, MPI_INTEGER, mine, n, MPI_INTEGER, ranks - 1, &
        comm IERROR)
    call took('scatterv')
    call check_numbers(mine, value_of(ranks - 1, rank, indices()), 'scatterv')
    mine = value_of(rank, 2, indices())
    call MPI_Allgatherv(mine, n, MPI_INTEGER, others, counts, offsets, MPI_INTEGER, comm IERROR)
    call took('allgatherv')
    call check_numbers(others(1:n), value_of(ranks - 1, 2, indices()), 'allgatherv')
    call check_numbers(others(n * (ranks - 1) + 1 :), value_of(0, 2, indices()), 'allgatherv')
  end subroutine

  subroutine test_copies()
    HANDLE(MPI_Comm) :: copy, half
    integer :: sums(1), mine(1), i
    call MPI_Comm_dup(comm, copy IERROR)
    call MPI_Comm_split(comm, mod(rank, 2), -rank, half IERROR)
    mine = rank
    call MPI_Allreduce(mine, sums, 1, MPI_INTEGER, MPI_SUM, copy IERROR)
    call took('allreduce')
    call check(sums(1) == ranks * (ranks - 1) / 2, 'allreduce on a copy')
    call MPI_Allreduce(mine, sums, 1, MPI_INTEGER, MPI_SUM, half IERROR)
    call took('allreduce')
    call check(sums(1) == sum([(i, i = mod(rank, 2), ranks - 1, 2)]), 'allreduce on a half')
    call MPI_Comm_free(copy IERROR)
    call MPI_Comm_free(half IERROR)
  end subroutine

  ! From addresses, with MPI_BOTTOM.
  subroutine test_list_of_types()
    integer, asynchronous :: blocks(n * ranks), others(n * ranks)
    integer :: counts(ranks), offsets(ranks)
    integer(MPI_ADDRESS_KIND) :: address(1)
    HANDLE(MPI_Datatype) :: from(ranks), to(ranks)
    HANDLE(MPI_Request) :: request
    integer :: i
    call fill_blocks(blocks)
    others = -1
    do i = 1, ranks
      call MPI_Get_address(blocks(n * i - n + 1), address(1) IERROR)
      call MPI_Type_create_hindexed(1, [n], address, MPI_INTEGER, from(i) IERROR)
      call MPI_Type_commit(from(i) IERROR)
      call MPI_Get_address(others(n * i - n + 1), address(1) IERROR)
      call MPI_Type_create_hindexed(1, [n], address, MPI_INTEGER, to(i) IERROR)
      call MPI_Type_commit(to(i) IERROR)
    end do
    counts = 1
    offsets = 0
    call MPI_Alltoallw(MPI_BOTTOM, counts, offsets, from, MPI_BOTTOM, counts, offsets, to, &
        comm IERROR)
    call took('alltoallw')
    call see(others)
    call check_blocks(others, 'alltoallw')
    others = -1
    call MPI_Ialltoallw(MPI_BOTTOM, counts, offsets, from, MPI_BOTTOM, counts, offsets, to, comm, &
        request IERROR)
    do i = 1, ranks
      call MPI_Type_free(from(i) IERROR)
      call MPI_Type_free(to(i) IERROR)
    end do
    call MPI_Wait(request, MPI_STATUS_IGNORE IERROR)
    call took('ialltoallw')
    call see(others)
    call check_blocks(others, 'ialltoallw')
  end subroutine

#if BINDING == 3
  ! Every second element of an array: a descriptor, or a copy that the compiler makes.
  subroutine test_sections()
    integer :: numbers(2 * n)
    numbers = -7
    if (rank == ranks - 1) numbers(1::2) = value_of(rank, 0, indices())
    call MPI_Bcast(numbers(1::2), n, MPI_INTEGER, ranks - 1, comm)
    call took('bcast')
    call check_numbers(numbers(1::2), value_of(ranks - 1, 0, indices()), 'bcast of a section')
    call check(all(numbers(2::2) == -7), 'bcast of a section: between')
  end subroutine
#endif

#if BINDING == 3 && defined(LARGE_COUNTS)
  ! By the names of the others, as mpi_f08 has it: functions of their own, as in C.
  subroutine test_large_counts()
    integer(MPI_COUNT_KIND), parameter :: many = n
    integer, asynchronous :: mine(n), sums(n)
    HANDLE(MPI_Request) :: request
    mine = merge(value_of(0, 9, indices()), -1, rank == 0)
    call MPI_Bcast(mine, many, MPI_INTEGER, 0, comm)
    call took('bcast')
    call check_numbers(mine, value_of(0, 9, indices()), 'bcast of a large count')
    mine = value_of(rank, 0, indices())
    sums = -1
    call MPI_Iallreduce(mine, sums, many, MPI_INTEGER, MPI_SUM, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call see(sums)
    call took('iallreduce')
    call check_numbers(sums, sum_of(ranks - 1, indices()), 'iallreduce of a large count')
  end subroutine
#endif

end program

! SPDX-License-Identifier: Apache-2.0
!
! Large arrays of `allocate` are in the shared heap, and the other ranks read them where they stand.
! To be run with libcarillon_heap.so. Compiled once with each binding.
#include "begin.inc"
  call test_places()
  call test_collectives()
#include "support.inc"

  logical function in_heap(place)
    type(c_ptr), intent(in) :: place
    abstract interface
      function region(base, bytes, fd) bind(C)
        import :: c_ptr, c_size_t, c_int
        type(c_ptr), intent(out) :: base
        integer(c_size_t), intent(out) :: bytes
        integer(c_int), intent(out) :: fd
        integer(c_int) :: region
      end function
    end interface
    procedure(region), pointer :: heap_region
    type(c_funptr) :: found
    type(c_ptr) :: base
    integer(c_size_t) :: bytes
    integer(c_int) :: fd
    integer(c_intptr_t) :: offset
    in_heap = .false.
    found = dlsym(c_null_ptr, 'carillon_heap_region' // c_null_char)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, heap_region)
    if (heap_region(base, bytes, fd) /= 0) return
    offset = transfer(place, offset) - transfer(base, offset)
    in_heap = offset >= 0 .and. offset < bytes
  end function

  ! Bytes that this rank has given to the others: (1) read where they stood, (2) copied to be read.
  function given() result(bytes)
    abstract interface
      subroutine node_bytes(in_place, copied) bind(C)
        import :: c_long_long
        integer(c_long_long), intent(out) :: in_place, copied
      end subroutine
    end interface
    procedure(node_bytes), pointer :: count
    type(c_funptr) :: found
    integer(c_long_long) :: bytes(2)
    bytes = 0
    found = dlsym(c_null_ptr, 'carillon_shim_node_bytes' // c_null_char)
    call check(c_associated(found), 'the interposer counts no bytes')
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, count)
    call count(bytes(1), bytes(2))
  end function

  subroutine test_places()
    integer, allocatable, target :: small(:), large(:), grown(:)
    real(c_double), allocatable, target :: cube(:, :, :)
    allocate (small(100), large(20000), cube(40, 50, 60))
    call check(.not. in_heap(c_loc(small)), 'a small array is in the heap')
    call check(in_heap(c_loc(large)), 'a large array is not in the heap')
    call check(in_heap(c_loc(cube)), 'an array of three dimensions is not in the heap')
    small = 0
    large = 7
    grown = [large, small]  ! allocated by the assignment
    call check(in_heap(c_loc(grown)), 'an array that an assignment allocates is not in the heap')
    call check(all(grown(:20000) == 7) .and. all(grown(20001:) == 0), 'a copy of the arrays')
  end subroutine

  subroutine test_collectives()
    integer, parameter :: length = 100000
    integer, allocatable, asynchronous :: mine(:), others(:)
    integer :: i, root
    integer(c_long_long) :: before(2), bytes(2), each
    each = 4_c_long_long * length
    allocate (mine(length), others(length * ranks))
    do root = 0, ranks - 1
      mine = [(value_of(merge(rank, -1, rank == root), 0, i), i = 1, length)]
      before = given()
      call MPI_Bcast(mine, length, MPI_INTEGER, root, comm IERROR)
      bytes = given() - before
      call check(all(mine == [(value_of(root, 0, i), i = 1, length)]), 'bcast: wrong values')
      if (rank == root) call check(bytes(1) >= each, 'bcast: read elsewhere than where it stood')
      call check(bytes(2) == 0, 'bcast: a copy for the others')
    end do
    mine = [(value_of(rank, 1, i), i = 1, length)]
    before = given()
    call MPI_Allgather(mine, length, MPI_INTEGER, others, length, MPI_INTEGER, comm IERROR)
    bytes = given() - before
    do i = 0, ranks - 1
      call check_numbers(others(i * length + 1 : i * length + n), value_of(i, 1, indices()), &
          'allgather')
      call check(all(others(i * length + 1 : (i + 1) * length) - others(i * length + 1) == &
          mine - mine(1)), 'allgather: wrong values')
    end do
    call check(bytes(1) >= each, 'allgather: read elsewhere than where it stood')
    call check(bytes(2) == 0, 'allgather: a copy for the others')
  end subroutine
end program

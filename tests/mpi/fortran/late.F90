! SPDX-License-Identifier: Apache-2.0
!
! A library that is loaded late, see late_test.c.
integer function sum_in_fortran(comm, number)
  implicit none
  include 'mpif.h'
  integer :: comm, number, ierror
  call MPI_Allreduce(number, sum_in_fortran, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
end function

! The same, started, and ended by functions that have no buffer: MPICH's call PMPI_Wait.
integer function wait_in_fortran(comm, number)
  use mpi_f08
  implicit none
  integer :: comm, number, ierror
  integer, asynchronous :: sum
  type(MPI_Comm) :: team
  type(MPI_Request) :: request
  team%MPI_VAL = comm
  call MPI_Iallreduce(number, sum, 1, MPI_INTEGER, MPI_SUM, team, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call MPI_Barrier(team, ierror)
  wait_in_fortran = sum
end function

! Memory that others of the node can read; MPICH's calls PMPI_Alloc_mem.
subroutine allocate_in_fortran(bytes, memory)
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  integer(MPI_ADDRESS_KIND) :: bytes
  type(c_ptr) :: memory
  integer :: ierror
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, memory, ierror)
end subroutine

#ifdef SESSIONS
! A communicator of a session's group.
integer function make_in_fortran(group)
  use mpi_f08
  implicit none
  integer :: group, ierror
  type(MPI_Group) :: of
  type(MPI_Comm) :: made
  of%MPI_VAL = group
  call MPI_Comm_create_from_group(of, 'late', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, made, ierror)
  make_in_fortran = made%MPI_VAL
end function
#endif

! SPDX-License-Identifier: Apache-2.0
!
! A library that is loaded late, see late_test.c.
integer function sum_in_fortran(comm, number)
  implicit none
  include 'mpif.h'
  integer :: comm, number, ierror
  call MPI_Allreduce(number, sum_in_fortran, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
end function

// SPDX-License-Identifier: Apache-2.0
//
// Moves points between ranks: one axis was whole on every rank, afterwards another one is.
//
// The axis that is not concerned is cut into slices, each of which is exchanged on its own: packed
// into one message per rank, sent by MPI_Alltoallv or MPI_Ialltoallv, unpacked from there. A
// message holds its points in the order 0 1 2, so that of packing and unpacking one is done in runs
// and the other one turns the axes.
#ifndef FFT3D_TRANSPOSE_H
#define FFT3D_TRANSPOSE_H

#include <mpi.h>

#include <complex>
#include <vector>

#include "messages.h"

namespace fft3d {

// Rows and columns of the grid of ranks.
class Communicators {
 public:
  Communicators(MPI_Comm world, const Decomposition& decomposition);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  MPI_Comm world() const { return world_; }
  int rank() const { return rank_; }
  MPI_Comm between(int from, int to) const { return from + to == 3 ? row_ : column_; }

 private:
  MPI_Comm world_, row_ = MPI_COMM_NULL, column_ = MPI_COMM_NULL;
  int rank_ = 0;
};

template <class Real>
class Transpose {
 public:
  using Complex = std::complex<Real>;

  // Axis `from` is whole before, `to` afterwards. `send` and `receive` have room for all points of
  // this rank before and afterwards; they belong to this object while an exchange is under way.
  Transpose(const Decomposition& decomposition, const Communicators& communicators, int from,
            int to, int slices, Complex* send, Complex* receive);

  // The same number on all ranks that exchange with each other. None if they have no points.
  int slices() const { return static_cast<int>(slices_.size()); }
  int slice_axis() const { return slice_axis_; }
  Range slice(int which) const { return slices_[which].range; }

  void pack(int slice, const Complex* from);
  void unpack(int slice, Complex* to) const;

  void exchange(int slice);  // blocking
  void start(int slice);
  void test(int slice);
  void wait(int slice);

 private:
  MPI_Comm communicator_;
  Layout before_, after_;
  int slice_axis_;
  std::vector<Slice> slices_;
  std::vector<MPI_Request> requests_;
  Complex *send_, *receive_;
};

}  // namespace fft3d

#endif

// SPDX-License-Identifier: Apache-2.0
#include "transpose.h"

namespace fft3d {

namespace {

template <class Real>
MPI_Datatype type_of() {
  return sizeof(Real) == sizeof(float) ? MPI_C_FLOAT_COMPLEX : MPI_C_DOUBLE_COMPLEX;
}

constexpr Order kMessageOrder{0, 1, 2};

}  // namespace

Communicators::Communicators(MPI_Comm world, const Decomposition& decomposition) : world_(world) {
  MPI_Comm_rank(world, &rank_);
  const int columns = decomposition.grid()[1];
  MPI_Comm_split(world, rank_ / columns, rank_ % columns, &row_);
  MPI_Comm_split(world, rank_ % columns, rank_ / columns, &column_);
  MPI_Comm_set_name(row_, "row");
  MPI_Comm_set_name(column_, "column");
}

Communicators::~Communicators() {
  MPI_Comm_free(&row_);
  MPI_Comm_free(&column_);
}

template <class Real>
Transpose<Real>::Transpose(const Decomposition& decomposition, const Communicators& communicators,
                           int from, int to, int slices, Complex* send, Complex* receive)
    : communicator_(communicators.between(from, to)),
      before_(decomposition.layout(from, communicators.rank())),
      after_(decomposition.layout(to, communicators.rank())),
      slice_axis_(3 - from - to),
      slices_(slices_of(decomposition, from, to, communicators.rank(), slices)),
      requests_(slices_.size(), MPI_REQUEST_NULL),
      send_(send),
      receive_(receive) {}

template <class Real>
void Transpose<Real>::pack(int slice, const Complex* from) {
  const Messages& out = slices_[slice].out;
  for (int to = 0; to < static_cast<int>(out.boxes.size()); ++to) {
    copy_box(out.boxes[to], before_, from, Layout(out.boxes[to], kMessageOrder),
             send_ + out.first + out.begins[to]);
  }
}

template <class Real>
void Transpose<Real>::unpack(int slice, Complex* to) const {
  const Messages& in = slices_[slice].in;
  for (int from = 0; from < static_cast<int>(in.boxes.size()); ++from) {
    copy_box(in.boxes[from], Layout(in.boxes[from], kMessageOrder),
             receive_ + in.first + in.begins[from], after_, to);
  }
}

template <class Real>
void Transpose<Real>::exchange(int slice) {
  const Messages &out = slices_[slice].out, &in = slices_[slice].in;
  MPI_Alltoallv(send_ + out.first, out.counts.data(), out.begins.data(), type_of<Real>(),
                receive_ + in.first, in.counts.data(), in.begins.data(), type_of<Real>(),
                communicator_);
}

template <class Real>
void Transpose<Real>::start(int slice) {
  const Messages &out = slices_[slice].out, &in = slices_[slice].in;
  MPI_Ialltoallv(send_ + out.first, out.counts.data(), out.begins.data(), type_of<Real>(),
                 receive_ + in.first, in.counts.data(), in.begins.data(), type_of<Real>(),
                 communicator_, &requests_[slice]);
}

template <class Real>
void Transpose<Real>::test(int slice) {
  int done = 0;
  MPI_Test(&requests_[slice], &done, MPI_STATUS_IGNORE);
}

template <class Real>
void Transpose<Real>::wait(int slice) {
  // The checker looks within one function; the call that this completes is in start().
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
  MPI_Wait(&requests_[slice], MPI_STATUS_IGNORE);
}

template class Transpose<float>;
template class Transpose<double>;

}  // namespace fft3d

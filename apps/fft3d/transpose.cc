// SPDX-License-Identifier: Apache-2.0
#include "transpose.h"

#include <algorithm>
#include <climits>
#include <stdexcept>

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
}

Communicators::~Communicators() {
  MPI_Comm_free(&row_);
  MPI_Comm_free(&column_);
}

long largest_slice(const Decomposition& decomposition, int slices) {
  // Longer parts come first: no rank and no slice has more than the first.
  long largest = 0;
  for (int whole = 0; whole < 3; ++whole) {
    for (const int slice_axis : {0, 2}) {
      const int exchanging = decomposition.grid()[slice_axis == 0 ? 1 : 0];
      if (whole == slice_axis || exchanging == 1) continue;
      Box box = decomposition.box(whole, 0);
      const Range range = box.axis[slice_axis];
      const int parts = static_cast<int>(std::clamp<long>(range.length(), 1, slices));
      box.axis[slice_axis] = part_of(range, parts, 0);
      largest = std::max(largest, box.volume());
    }
  }
  return largest;
}

template <class Real>
long Transpose<Real>::Messages::fill(const std::vector<Box>& all, const Box& mine, long begin) {
  first = begin;
  long points = 0;
  for (const Box& theirs : all) {
    boxes.push_back(intersection(mine, theirs));
    begins.push_back(static_cast<int>(points));
    counts.push_back(static_cast<int>(boxes.back().volume()));
    points += boxes.back().volume();
    if (points > INT_MAX) throw std::runtime_error("a slice has more points than MPI can count");
  }
  return begin + points;
}

template <class Real>
Transpose<Real>::Transpose(const Decomposition& decomposition, const Communicators& communicators,
                           int from, int to, int slices, Complex* send, Complex* receive)
    : communicator_(communicators.between(from, to)),
      before_(decomposition.layout(from, communicators.rank())),
      after_(decomposition.layout(to, communicators.rank())),
      slice_axis_(3 - from - to),
      send_(send),
      receive_(receive) {
  std::vector<Box> before, after;
  for (const int member : decomposition.members(from, to, communicators.rank())) {
    before.push_back(decomposition.box(from, member));
    after.push_back(decomposition.box(to, member));
  }
  const Range all = before_.box().axis[slice_axis_];
  slices_.resize(std::min<long>(slices, all.length()));
  long sent = 0, received = 0;
  for (int which = 0; which < this->slices(); ++which) {
    Slice& slice = slices_[which];
    slice.range = part_of(all, this->slices(), which);
    sent = slice.out.fill(after, before_.box().with(slice_axis_, slice.range), sent);
    received = slice.in.fill(before, after_.box().with(slice_axis_, slice.range), received);
  }
}

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
                 communicator_, &slices_[slice].request);
}

template <class Real>
void Transpose<Real>::test(int slice) {
  int done = 0;
  MPI_Test(&slices_[slice].request, &done, MPI_STATUS_IGNORE);
}

template <class Real>
void Transpose<Real>::wait(int slice) {
  // The checker looks within one function; the call that this completes is in start().
  // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
  MPI_Wait(&slices_[slice].request, MPI_STATUS_IGNORE);
}

template class Transpose<float>;
template class Transpose<double>;

}  // namespace fft3d

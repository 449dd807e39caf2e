// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <algorithm>

namespace fft3d {

template <class Real>
Stage<Real>::Stage(const Decomposition& decomposition, const Communicators& communicators,
                   const StageSetup& setup, const Arrays<Real>& before, const Arrays<Real>& after,
                   Complex* send, Complex* receive)
    : method_(setup.method), before_(before), after_(after) {
  const int slice_axis = 3 - setup.from - setup.to;
  std::vector<Range> ranges;
  if (decomposition.members(setup.from, setup.to, communicators.rank()).size() > 1) {
    transpose_.emplace(decomposition, communicators, setup.from, setup.to, method_.slices, send,
                       receive);
    for (int i = 0; i < transpose_->slices(); ++i) ranges.push_back(transpose_->slice(i));
  } else if (!before.layout.box().empty()) {
    ranges.push_back(before.layout.box().axis[slice_axis]);
  }
  slices_ = static_cast<int>(ranges.size());

  LineWork work{setup.from, setup.direction, setup.to, std::max(1, method_.tests), setup.planner};
  for (int i = 0; setup.lines_before && i < slices_; ++i) {
    lines_before_.emplace_back(before, before.layout.box().with(slice_axis, ranges[i]), work);
  }
  std::swap(work.axis, work.cut_axis);
  for (int i = 0; setup.lines_after && i < slices_; ++i) {
    lines_after_.emplace_back(after, after.layout.box().with(slice_axis, ranges[i]), work);
  }
}

template <class Real>
void Stage<Real>::run(Times& times) {
  if (!transpose_) {
    rearrange(times);
  } else if (method_.overlapped) {
    run_overlapped(times);
  } else {
    run_blocking(times);
  }
}

template <class Real>
void Stage<Real>::run_blocking(Times& times) {
  for (int slice = 0; slice < slices_; ++slice) {
    run_lines(lines_before_, slice, times);
    Laps laps;
    transpose_->pack(slice, before_.points);
    laps.add_to(times.pack_s);
    transpose_->exchange(slice);
    laps.add_to(times.exchange_s);
    transpose_->unpack(slice, after_.points);
    laps.add_to(times.unpack_s);
    run_lines(lines_after_, slice, times);
  }
}

template <class Real>
void Stage<Real>::run_overlapped(Times& times) {
  oldest_ = newest_ = 0;
  while (newest_ < slices_) {
    run_lines(lines_before_, newest_, times);
    Laps laps;
    transpose_->pack(newest_, before_.points);
    laps.add_to(times.pack_s);
    transpose_->start(newest_++);
    laps.add_to(times.exchange_s);
    // Not before the next slice is under way, too, unless the window is 1.
    while (newest_ - oldest_ >= method_.window) finish_oldest(times);
  }
  while (oldest_ < newest_) finish_oldest(times);
}

template <class Real>
void Stage<Real>::finish_oldest(Times& times) {
  const int slice = oldest_++;
  Laps laps;
  transpose_->wait(slice);
  laps.add_to(times.exchange_s);
  transpose_->unpack(slice, after_.points);
  laps.add_to(times.unpack_s);
  run_lines(lines_after_, slice, times);
}

template <class Real>
void Stage<Real>::run_lines(const std::vector<Lines<Real>>& lines, int slice, Times& times) {
  if (lines.empty()) return;
  Laps laps;
  for (int piece = 0; piece < lines[slice].pieces(); ++piece) {
    lines[slice].execute(piece);
    if (method_.tests == 0) continue;
    laps.add_to(times.transform_s);
    for (int other = oldest_; other < newest_; ++other) transpose_->test(other);
    laps.add_to(times.exchange_s);
  }
  laps.add_to(times.transform_s);
}

template <class Real>
void Stage<Real>::rearrange(Times& times) {
  if (slices_ == 0) return;
  run_lines(lines_before_, 0, times);
  if (before_.points != after_.points) {
    Laps laps;
    copy_box(before_.layout.box(), before_.layout, before_.points, after_.layout, after_.points);
    laps.add_to(times.unpack_s);
  }
  run_lines(lines_after_, 0, times);
}

template <class Real>
void Stage<Real>::exchange_alone() {
  if (!transpose_) return;
  for (int slice = 0; slice < slices_; ++slice) {
    if (!method_.overlapped) {
      transpose_->exchange(slice);
      continue;
    }
    transpose_->start(slice);
    if (slice + 1 >= method_.window) transpose_->wait(slice + 1 - method_.window);
  }
  if (!method_.overlapped) return;
  for (int slice = std::max(0, slices_ + 1 - method_.window); slice < slices_; ++slice) {
    transpose_->wait(slice);
  }
}

template class Stage<float>;
template class Stage<double>;

}  // namespace fft3d

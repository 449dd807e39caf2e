// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include <algorithm>
#include <climits>
#include <stdexcept>

namespace fft3d {

namespace {

// What `mine` and each of theirs have in common; returns where the next slice begins.
long fill(const std::vector<Box>& all, const Box& mine, long begin, Messages& messages) {
  messages.first = begin;
  long points = 0;
  for (const Box& theirs : all) {
    messages.boxes.push_back(intersection(mine, theirs));
    messages.begins.push_back(static_cast<int>(points));
    messages.counts.push_back(static_cast<int>(messages.boxes.back().volume()));
    points += messages.boxes.back().volume();
    if (points > INT_MAX) throw std::runtime_error("a slice has more points than MPI can count");
  }
  return begin + points;
}

}  // namespace

std::vector<Slice> slices_of(const Decomposition& decomposition, int from, int to, int rank,
                             int slices) {
  std::vector<Box> before, after;
  for (const int member : decomposition.members(from, to, rank)) {
    before.push_back(decomposition.box(from, member));
    after.push_back(decomposition.box(to, member));
  }
  const int axis = 3 - from - to;
  const Box mine = decomposition.box(from, rank), mine_after = decomposition.box(to, rank);
  const Range all = mine.axis[axis];
  std::vector<Slice> result(std::min<long>(slices, all.length()));
  long sent = 0, received = 0;
  for (int which = 0; which < static_cast<int>(result.size()); ++which) {
    Slice& slice = result[which];
    slice.range = part_of(all, static_cast<int>(result.size()), which);
    sent = fill(after, mine.with(axis, slice.range), sent, slice.out);
    received = fill(before, mine_after.with(axis, slice.range), received, slice.in);
  }
  return result;
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

}  // namespace fft3d

// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/link.h"

#include <cstring>

namespace carillon::tree {

Cycles Link::send(Cycles cycle, const rtl::Bytes& frame) {
  for (std::size_t at = 0; at < frame.size(); at += kWordBytes) {
    const std::size_t bytes = std::min(kWordBytes, frame.size() - at);
    Word word{.keep = static_cast<std::uint8_t>((1U << bytes) - 1),
              .last = at + bytes == frame.size()};
    std::memcpy(&word.data, &frame[at], bytes);
    send(cycle++, word);
  }
  return cycle;
}

std::size_t Link::waiting(Cycles cycle) const {
  const auto first = there_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto after =
      std::upper_bound(first, there_.end(), cycle,
                       [](Cycles value, const Timed& each) { return value < each.cycle; });
  return static_cast<std::size_t>(after - first);
}

void Link::pass() {
  if (at_ == there_.size()) {
    there_.clear();
    at_ = 0;
  } else if (at_ > there_.size() / 2) {
    there_.erase(there_.begin(), there_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  there_.insert(there_.end(), sent_.begin(), sent_.end());
  sent_.clear();
}

bool FrameReader::add(const Word& word) {
  if (whole_) frame_.clear();
  for (std::size_t byte = 0; byte < kWordBytes && (word.keep >> byte & 1) != 0; ++byte) {
    frame_.push_back(static_cast<std::byte>(word.data >> (8 * byte)));
  }
  whole_ = word.last;
  return whole_;
}

}  // namespace carillon::tree

// SPDX-License-Identifier: Apache-2.0
//
// What one run puts to other nodes from where it stands: the lists, kept for the next call with the
// same buffers, and the posts under way, until which the memory must stay as it is. Lists of places
// that the network fills are kept with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/net/buffers.h"
#include "transport/wire.h"

namespace carillon::net {

/// One put of a plan, or one recv, which has no posts here.
struct GatheredPut {
  std::vector<wire::Piece> list;  ///< the first place is the message's head's
  std::uint64_t made_for = 0;     ///< which buffers: Gathers::buffers(); 0: good for one message
  std::vector<Buffer*> under_way;

  /// Does the network no longer read what the list names?
  [[nodiscard]] bool ended();
};

class Gathers {
 public:
  GatheredPut& put(std::size_t index) {
    if (puts_.size() <= index) puts_.resize(index + 1);
    return puts_[index];
  }
  /// Messages that are placed, and were copied for that.
  [[nodiscard]] std::vector<Buffer*>& copied() { return copied_.under_way; }
  /// Have the posts of this put ended?
  [[nodiscard]] bool ended(std::size_t index) {
    return index >= puts_.size() || put(index).ended();
  }
  [[nodiscard]] bool all_ended();
  [[nodiscard]] bool under_way(std::size_t index) const {
    return index < puts_.size() && !puts_[index].under_way.empty();
  }
  /// In a call with other buffers than the last one's no list is good any more.
  void use_other_buffers() { ++buffers_; }
  [[nodiscard]] std::uint64_t buffers() const { return buffers_; }
  /// The run has failed: nobody waits for the posts any more.
  void abandon();

 private:
  std::vector<GatheredPut> puts_;  // by index
  GatheredPut copied_;
  std::uint64_t buffers_ = 1;
};

}  // namespace carillon::net

// SPDX-License-Identifier: Apache-2.0
//
// The floor of what goes over TCP: a binomial allreduce of floats on bare sockets.
#pragma once

#include <vector>

#include "bootstrap.h"

namespace carillon::bench {

class SocketTree {
 public:
  explicit SocketTree(Bootstrap& bootstrap);
  /// Sums over all ranks, in place.
  void allreduce(float* values, std::size_t count);

 private:
  Socket parent_;
  std::vector<Socket> children_;  // smallest subtree first
  std::vector<float> part_;
};

}  // namespace carillon::bench

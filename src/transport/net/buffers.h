// SPDX-License-Identifier: Apache-2.0
//
// Where messages to and from other nodes stand while the network has to do with them: registered
// buffers of three sizes. Nobody frees a buffer of a message that is sent: it is free when its
// operation is done. One that is received is held until it has been read. There are as many as are
// in use at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "transport/net/memory.h"

namespace carillon::net {

class Pair;

struct Buffer {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  const wire::Registration* registration = nullptr;
  wire::Operation operation;
  Pair* owner = nullptr;  ///< hears of it if the operation fails
  int process = -1;       ///< the owner's, when that has gone; -1: there was none
  bool held = false;      ///< also when the operation is done: somebody has yet to look at it
  bool lends = false;     ///< the operation reads memory beside this
};

class Buffers {
 public:
  Buffers(Memory& memory, std::uint64_t largest_bytes);

  /// A free buffer of at least `bytes` (at most largest_bytes). It is taken when its operation
  /// begins. An error if no more memory can be had.
  Result<Buffer*> take(std::uint64_t bytes);
  /// Tells owners of operations that failed.
  void check();
  /// The pair is about to go.
  void forget(const Pair* pair);
  /// Is nothing under way, but to processes that are gone?
  [[nodiscard]] bool idle(const std::function<bool(int process)>& gone) const;
  /// The processes to which the network is sending what was lent to it for these pairs.
  [[nodiscard]] std::vector<int> lent_to(const std::function<bool(const Pair*)>& pairs) const;

 private:
  struct Ring {
    std::uint64_t bytes = 0;
    std::deque<Buffer> buffers;
    std::size_t next = 0;
  };
  Status grow(Ring& ring);
  template <typename Is>
  [[nodiscard]] bool none(Is is) const;

  Memory& memory_;
  std::array<Ring, 3> rings_;
};

}  // namespace carillon::net

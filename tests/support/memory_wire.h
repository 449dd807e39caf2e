// SPDX-License-Identifier: Apache-2.0
//
// A network within one process, for tests that decide what happens when: bytes land when they are
// posted, and are told at the receiver's next progress().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transport/wire.h"

namespace carillon::test {

class MemoryNet {
 public:
  /// Ends may not outlive the net.
  std::unique_ptr<wire::Wire> open_end();

  /// The next so many posts are refused.
  void refuse(int posts) { refusals_ = posts; }
  /// The immediates of all puts and the tags of all sends, in the order of posting.
  [[nodiscard]] const std::vector<std::uint64_t>& posted() const { return posted_; }
  [[nodiscard]] int refused() const { return refused_; }
  /// Recvs that nothing has come for.
  [[nodiscard]] std::size_t waiting_recvs() const;

 private:
  class End;
  std::vector<End*> ends_;  // by address
  std::vector<std::uint64_t> posted_;
  int refusals_ = 0;
  int refused_ = 0;
};

}  // namespace carillon::test

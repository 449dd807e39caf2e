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

  /// Ends opened from now on say that what is posted first may get lost.
  void say_that_crossing_loses() { crossing_loses_ = true; }
  /// The next so many posts are refused.
  void refuse(int posts) { refusals_ = posts; }
  /// The next so many puts are done, and never arrive.
  void lose(int puts) { losses_ = puts; }
  /// The next so many puts fail, as if the peer had ended.
  void fail(int puts) { failures_ = puts; }
  /// The next so many puts arrive and fail all the same, once their end has looked what has come.
  void fail_later(int puts) { late_failures_ = puts; }
  /// The immediates of all puts and the tags of all sends, in the order of posting.
  [[nodiscard]] const std::vector<std::uint64_t>& posted() const { return posted_; }
  [[nodiscard]] int refused() const { return refused_; }
  /// Recvs that nothing has come for.
  [[nodiscard]] std::size_t waiting_recvs() const;

 private:
  class End;
  std::vector<End*> ends_;  // by address
  std::vector<std::uint64_t> posted_;
  bool crossing_loses_ = false;
  int losses_ = 0;
  int failures_ = 0;
  int late_failures_ = 0;
  int refusals_ = 0;
  int refused_ = 0;
};

}  // namespace carillon::test

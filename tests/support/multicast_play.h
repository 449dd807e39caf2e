// SPDX-License-Identifier: Apache-2.0
//
// A program of broadcasts, played by the members of a simulated group: what each member does next,
// whether every byte is right, and what a message holds.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "support/datagram_net.h"
#include "transport/multicast/group.h"

namespace carillon::test {

struct Broadcast {
  multicast::Member root = 0;
  std::size_t bytes = 0;
};

/// Byte i of broadcast number n: depends on both, and on who sends it.
inline std::byte byte_of(std::size_t n, multicast::Member root, std::size_t i) {
  return static_cast<std::byte>((n * 131 + root * 29 + i * 7 + (i >> 8) * 3) & 0xff);
}

inline std::vector<std::byte> message_of(std::size_t n, const Broadcast& broadcast) {
  std::vector<std::byte> bytes(broadcast.bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(n, broadcast.root, i);
  return bytes;
}

/// One member's part: takes up the broadcasts in order, with at most `depth` under way.
class Part {
 public:
  Part(std::unique_ptr<multicast::Group> group, const std::vector<Broadcast>& program,
       std::size_t depth)
      : group_(std::move(group)), program_(program), depth_(depth) {}
  ~Part() { group_.reset(); }  // which ends what is under way, before that goes
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] multicast::Group& group() { return *group_; }
  [[nodiscard]] bool done() const { return started_ == program_.size() && under_way_.empty(); }
  [[nodiscard]] bool failed() const { return !failure_.ok(); }
  [[nodiscard]] const Status& failure() const { return failure_; }

  /// Starts what can be started and ends what has ended; whether there was anything.
  bool step() {
    bool moved = false;
    while (started_ < program_.size() && under_way_.size() < depth_ && start()) moved = true;
    while (!under_way_.empty() && finish()) {
      under_way_.pop_front();
      moved = true;
    }
    return moved;
  }

 private:
  struct Call {
    std::size_t number = 0;
    std::vector<std::byte> memory;
    wire::Operation sending;
    multicast::Receiving receiving;
  };

  bool start() {
    const Broadcast& broadcast = program_[started_];
    auto call = std::make_unique<Call>();
    call->number = started_;
    Result<bool> posted = false;
    if (broadcast.root == group_->config().member) {
      call->memory = message_of(started_, broadcast);
      posted = group_->post(call->memory, call->sending);
    } else {
      call->memory.assign(broadcast.bytes, std::byte{0});
      posted = group_->receive(broadcast.root, call->memory, call->receiving);
    }
    if (!posted.ok()) failure_ = posted.status();
    if (!posted.ok() || !posted.value()) return false;
    under_way_.push_back(std::move(call));
    ++started_;
    return true;
  }

  // Whether the oldest has ended. What has arrived of it is looked at as it comes.
  bool finish() {
    Call& call = *under_way_.front();
    const Broadcast& broadcast = program_[call.number];
    if (broadcast.root == group_->config().member) {
      if (call.sending.done() && !call.sending.status().ok()) failure_ = call.sending.status();
      return call.sending.done();
    }
    const multicast::Receiving& receiving = call.receiving;
    if (receiving.done() && !receiving.status().ok()) {
      failure_ = receiving.status();
      return true;
    }
    const std::size_t there =
        receiving.done() ? receiving.received_bytes() : receiving.arrived_bytes();
    EXPECT_LE(there, broadcast.bytes);
    for (std::size_t i = checked_; i < there; ++i) {
      if (call.memory[i] == byte_of(call.number, broadcast.root, i)) continue;
      ADD_FAILURE() << "member " << group_->config().member << ", broadcast " << call.number
                    << " from " << broadcast.root << ": byte " << i << " is wrong";
      break;
    }
    checked_ = receiving.done() ? 0 : there;
    if (receiving.done()) {
      EXPECT_EQ(receiving.received_bytes(), broadcast.bytes);
    }
    return receiving.done();
  }

  std::unique_ptr<multicast::Group> group_;
  const std::vector<Broadcast>& program_;
  std::size_t depth_;
  std::size_t started_ = 0;
  std::size_t checked_ = 0;  // bytes of the oldest
  std::deque<std::unique_ptr<Call>> under_way_;
  Status failure_;
};

}  // namespace carillon::test

// SPDX-License-Identifier: Apache-2.0
//
// A host that reduces with others by recursive doubling: in step k each two hosts whose numbers
// differ in bit k exchange what they have, and combine it. Of hosts beyond a power of two each
// gives its operand to one of the others first, and gets the result at the end:
//
//   6 hosts   4 5 -> 0 1   0-1 2-3   0-2 1-3   0 1 -> 4 5
//
// A message is one request of the processor's, and frames that follow one another. No network of
// these loses any.
#pragma once

#include <map>
#include <vector>

#include "base/status.h"
#include "machine/machine.h"
#include "switch/tree/link.h"
#include "switch/tree/values.h"

namespace carillon::tree {

/// How hosts send messages to each other.
enum class Messages : std::uint8_t {
  kWrites,  ///< by adapters that programs write to: put and wait
  kMpi      ///< through the kernel: send and receive; long ones, too, without asking first
};

class DoublingHost final : public Node {
 public:
  /// All live as long. Elements are integers: floats' sums would be another order's.
  DoublingHost(const machine::Machine& machine, Messages messages, std::uint32_t rank,
               std::uint32_t ranks, const Message& message, Link& in, Link& out);

  void begin();
  /// When it has the result; kNever: not yet.
  [[nodiscard]] Cycles done() const { return at_ == steps_.size() ? free_ : kNever; }
  [[nodiscard]] const rtl::Bytes& result() const { return value_; }
  /// An error: what came was none of the others' messages.
  [[nodiscard]] const Status& status() const { return status_; }

  [[nodiscard]] Cycles next() const override { return in_.next(); }
  void run(Cycles begin, Cycles end) override;

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  struct Step {
    std::uint16_t number = 0;  // of all hosts' steps
    std::uint32_t to = kNobody, from = kNobody;
    bool combines = true;  // else what comes is the result
    bool sent = false;
  };
  struct Arrival {
    rtl::Bytes bytes;
    std::size_t there = 0;  // bytes
    Cycles last = 0;
  };

  void send(const Step& step);
  void take(const rtl::Bytes& frame, Cycles cycle);
  void finish(const Step& step, const Arrival& arrival);
  void proceed();

  const machine::Machine& machine_;
  Messages messages_;
  std::uint32_t rank_;
  const Message& message_;
  Link& in_;
  Link& out_;
  FrameReader reader_;
  std::vector<Step> steps_;
  std::size_t at_ = 0;                         // of these
  std::map<std::uint16_t, Arrival> arrivals_;  // by step
  rtl::Bytes value_;
  Cycles free_ = 0;       // the processor does nothing from then on
  Cycles link_free_ = 0;  // and the link
  Status status_;
};

}  // namespace carillon::tree

// SPDX-License-Identifier: Apache-2.0
//
// Hosts below switches in hardware, cycle by cycle: allreduces of theirs, whose results are
// compared with the reference bit for bit. Hosts that follow one another are at one switch, and so
// are such switches, up to the root: as full as can be.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "switch/tree/hardware_switch.h"
#include "switch/tree/host.h"
#include "switch/tree/network.h"
#include "switch/tree/places.h"

namespace carillon::tree {

inline constexpr std::uint32_t kMostHosts = 4096;

struct TreeConfig {
  std::uint32_t hosts = 2;
  /// Clock, links, ports and window of the switches, and what hosts cost: its section `switch`, and
  /// `memory`. Of ports and window no more than the hardware has.
  machine::Machine machine;
  int threads = 1;
  bool rests = true;  ///< switches are not evaluated while nothing can come of it
};

/// From the last word that a switch waits for to the last of what it sends, of calls of one packet:
/// the most of any switch of a level, the lowest first; the root sends down what comes up.
struct Hop {
  Cycles up = 0;
  std::optional<Cycles> down;
};

struct Call {
  Cycles cycles = 0;  ///< from the begin on all hosts to the last one's result
  std::vector<Hop> hops;
  std::size_t most_waiting_words = 0;  ///< at the end of a link, so far
  std::uint64_t evaluated_cycles = 0;  ///< of all switches
  std::uint64_t switch_cycles = 0;     ///< the same without rest
};

class Tree {
 public:
  static Result<std::unique_ptr<Tree>> make(const TreeConfig& config);

  /// The next call. An error: a result is not the reference's, or does not come.
  Result<Call> allreduce(const Message& message);

  [[nodiscard]] std::size_t levels() const { return places_.levels().size(); }
  [[nodiscard]] std::size_t switches() const { return switches_.size(); }
  [[nodiscard]] std::size_t radix() const { return radix_; }
  [[nodiscard]] std::uint16_t window() const { return membership_.window; }
  [[nodiscard]] const rtl::Bytes& result(std::uint32_t rank) const {
    return hosts_[rank]->result();
  }

 private:
  explicit Tree(const TreeConfig& config);
  Status build();
  Status write_tables();
  Status write_group(std::size_t at);
  [[nodiscard]] std::vector<Hop> hops() const;

  TreeConfig config_;
  std::size_t radix_;
  Places places_;
  Membership membership_;
  Network network_;
  std::vector<std::unique_ptr<HardwareSwitch>> switches_;
  std::vector<std::unique_ptr<Host>> hosts_;
  Cycles now_ = 0;
};

}  // namespace carillon::tree

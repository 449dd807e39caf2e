// SPDX-License-Identifier: Apache-2.0
//
// The streams of messages in one of a team's groups. A group of a transport knows members 0, 1,
// ...; here they are ranks of the team.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"
#include "transport/multicast/group.h"

namespace carillon {

/// One group as the engine uses it. Messages of a stream are numbered in the order in which the
/// collectives take numbers, and are sent and received in that order.
class GroupStreams {
 public:
  /// `ranks`: the members', in their order.
  GroupStreams(std::unique_ptr<multicast::Group> group, std::vector<Rank> ranks);

  std::uint64_t take_out(std::uint64_t count) { return std::exchange(taken_, taken_ + count); }
  std::uint64_t take_in(Rank writer, std::uint64_t count);
  [[nodiscard]] bool has(Rank rank) const;
  [[nodiscard]] multicast::Member member(Rank rank) const;

  /// Both: true once it is done, which is before the others have it, or when all bytes are there.
  /// To be called again with the same bytes until then; false before the message's turn, too.
  Result<bool> send(std::uint64_t number, std::span<const std::byte> message);
  Result<bool> receive(Rank writer, std::uint64_t number, std::span<std::byte> to);
  /// Memory for what does not lie together, free until send() or receive() of this number is done;
  /// null before its turn.
  std::byte* out_memory(std::uint64_t number, std::size_t bytes);
  std::byte* in_memory(Rank writer, std::uint64_t number, std::size_t bytes);

  /// The longest message of which `window` fit into what a sender keeps.
  [[nodiscard]] std::int64_t longest_message(std::int32_t window) const;
  [[nodiscard]] multicast::Group& group() { return *group_; }
  /// The ranks' calls do not fit together.
  static Status differs(Rank writer, std::uint64_t bytes, std::uint64_t expected);

 private:
  struct In {
    std::uint64_t taken = 0, next = 0;
    bool under_way = false;
    multicast::Receiving receiving;
    std::vector<std::byte> memory;
  };
  In& in(Rank writer) { return *ins_[member(writer)]; }

  std::vector<Rank> ranks_;
  // Out.
  std::uint64_t taken_ = 0, next_ = 0;
  bool under_way_ = false;
  wire::Operation operation_;
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<In>> ins_;     // by member
  std::unique_ptr<multicast::Group> group_;  // ends the operations above when it goes
};

}  // namespace carillon

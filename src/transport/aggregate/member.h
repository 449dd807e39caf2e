// SPDX-License-Identifier: Apache-2.0
//
// A host of a group that does not depend on the switch: when that is gone, the hosts do its work.
// Like Stream: no socket, no clock, no thread.
//
//   a switch gone, or another host says so --> stopped: tell all the first packet without a result
//       --all have told--> go on from the first that anybody lacks; slot i is combined by host
//                          i mod hosts, in the switch's order: the same bits
//
// Every host still holds the operands of all packets that anybody lacks (Stream), so that those can
// be sent again, and results are the same whoever combines them: a host that has some already, and
// whose memory has been used again since, loses nothing.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "switch/model/group.h"
#include "transport/aggregate/stream.h"

namespace carillon::aggregate {

/// The hosts of a group, of one switch or of a tree of them.
struct Hosts {
  std::vector<Endpoint> at;           ///< by number, this one included
  std::vector<std::uint32_t> places;  ///< of each, in the switches' order (tree.h)
  std::uint16_t own = 0;              ///< this one's number
};

class Member {
 public:
  Member(const StreamConfig& config, Hosts hosts);

  std::optional<Stream::Ticket> post(const Operation& operation) { return stream_.post(operation); }
  [[nodiscard]] bool done(Stream::Ticket ticket) const { return stream_.done(ticket); }
  /// Not ok: hosts do not agree about a packet. That the switch is gone is no error.
  [[nodiscard]] const Status& status() const { return status_; }
  /// Why it does without the switch; ok: it does not.
  [[nodiscard]] const Status& fall_back_reason() const { return reason_; }
  /// It does so because another host does, and only that knows why.
  [[nodiscard]] bool was_told() const { return was_told_; }

  void progress(std::int64_t now_ns, Output& output);
  /// Whether the datagram was of this group.
  bool take(const Endpoint& from, std::span<const std::byte> datagram, std::int64_t now_ns,
            Output& output);
  [[nodiscard]] std::optional<std::int64_t> due_ns() const;
  [[nodiscard]] const Stream& stream() const { return stream_; }

 private:
  void fall_back(const Status& why);
  void tell(std::size_t host, bool asks, Output& output);
  bool take_told(const Endpoint& from, const Header& header, Output& output);
  void go_on(std::int64_t now_ns, Output& output);

  StreamConfig config_;
  Hosts hosts_;
  Stream stream_;
  Status status_, reason_;
  bool was_told_ = false;
  std::vector<std::optional<std::uint32_t>> told_;  // by host, while stopped and after
  std::int64_t asked_ns_ = 0;                       // when the hosts were last asked,
  std::uint32_t asked_ = 0;                         // and how often
  std::unique_ptr<Group> group_;                    // null: it has not gone on
  Counters counters_;
};

}  // namespace carillon::aggregate

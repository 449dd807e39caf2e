// SPDX-License-Identifier: Apache-2.0
//
// A team's multicast at this rank: its groups (all members; the leaders of the nodes; all members,
// node by node) and how they are set up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "carillon/carillon.h"
#include "engine/multicast_streams.h"
#include "engine/reception.h"
#include "schedule/nodes.h"
#include "transport/multicast/setup.h"
#include "transport/wire.h"

namespace carillon {

/// What this process would multicast with.
struct MulticastWish {
  enum Kind : std::uint32_t { kOff, kUdp, kUd };
  Kind kind = kOff;
  std::string device;  ///< udp: the interface; ud: the device; empty: the first that will do
  bool later = false;  ///< not while a team is made: when calls gain by it
  bool pays = false;   ///< against the network's own messages: for selection
  /// How long members wait to hear each other.
  multicast::Nanoseconds patience = 0;
};
/// What CARILLON_MULTICAST asks for, on that network.
MulticastWish multicast_wish(const Config& settings, const wire::Wire& network);

/// What a member of a team tells the others first. Plain data: it travels as bytes.
struct MulticastOffer {
  std::uint32_t kind = MulticastWish::kOff;
  std::uint16_t later = 0;
  std::uint16_t pays = 0;
  std::uint64_t reception_offset = 0;
};

class TeamMulticast {
 public:
  /// Begins to set the groups up, over the team's exchange. All members at the same time.
  TeamMulticast(const crl_oob_t& oob, const Nodes& nodes, const MulticastWish& wish,
                const std::string& faults, const ReceptionPlace& place, bool crowded);
  ~TeamMulticast();
  TeamMulticast(const TeamMulticast&) = delete;
  TeamMulticast& operator=(const TeamMulticast&) = delete;

  /// True when it is over, and status() says how: to all members the same. An error: the exchange
  /// has failed.
  Result<bool> set_up();
  /// It will not be used any more: groups and sockets go. Its memory must stay if set_up() is not
  /// over, since the exchange may still write there.
  void abandon();
  /// kUnsupported: there are no groups, and why.
  [[nodiscard]] const Status& status() const { return status_; }
  /// Of all groups (Limits::multicast_bytes).
  [[nodiscard]] std::int64_t longest_message() const { return longest_; }

  /// Of channel team, leaders or nodes; of leaders only on leaders. To nodes one sends by it, and
  /// receives by reception().
  GroupStreams& streams(Channel channel) {
    if (channel == Channel::kNodes) return *nodes_;
    return channel == Channel::kLeaders && !singles_ ? *leaders_ : *team_;
  }
  Reception& reception() { return *reception_; }
  /// An error: a group is broken. `arrived`: false if none of wait_descriptors() has been seen to
  /// be readable.
  Status progress(bool arrived = true);
  /// Whether something has come for this node's other processes since it was asked last.
  bool take_news() { return reception_ && reception_->take_news(); }
  /// To be slept on right after ready_to_wait() has said so, until due() at most.
  [[nodiscard]] std::vector<int> wait_descriptors() const;
  [[nodiscard]] bool ready_to_wait();
  [[nodiscard]] multicast::Nanoseconds due() const;
  /// Nobody needs this member any more: it has been silent a while, and what it sent, or was to
  /// tell of others, has been acknowledged.
  bool quiet();
  /// The second of it: not whether it has been silent.
  [[nodiscard]] bool settled() const;
  /// Until it has acknowledged something, or told that others have.
  [[nodiscard]] bool awaits(Rank rank) const;
  /// This rank of the team has ended, and needs nothing any more.
  void member_left(Rank rank);

  /// The time that groups go by.
  static multicast::Nanoseconds now();

 private:
  [[nodiscard]] multicast::SetupOptions options(
      std::shared_ptr<const multicast::Places> places) const;
  class Exchange;
  struct Verdict;
  enum class Step : std::uint8_t { kTeam, kLeaders, kNodes, kVerdict, kOver };

  Result<bool> set_up_group(std::unique_ptr<GroupStreams>* streams, std::vector<Rank> ranks);
  void begin_leaders();
  void begin_nodes();
  Status begin_verdict();
  void conclude();
  template <typename Body>
  void each_but_nodes(Body body) const;
  template <typename Body>
  void each_group(Body body) const;

  crl_oob_t oob_;
  MulticastWish wish_;
  std::string faults_;
  ReceptionPlace place_;
  bool crowded_;
  std::shared_ptr<multicast::Places> places_;  // the nodes
  std::vector<Rank> all_ranks_, leader_ranks_;
  bool singles_;  // each member has a node for itself: the groups are one
  bool is_leader_;
  Step step_ = Step::kTeam;
  std::unique_ptr<multicast::Setup> setup_;
  std::unique_ptr<Exchange> exchange_;    // of the leaders
  std::unique_ptr<Reception> reception_;  // of nodes_, which ends what is under way when it goes
  std::unique_ptr<GroupStreams> team_, leaders_, nodes_;
  std::int64_t longest_ = 0;
  Status status_;
  std::vector<Verdict> verdicts_;  // mine at the end
  void* request_ = nullptr;
  std::uint64_t heard_ = 0;  // packets
  multicast::Nanoseconds silent_since_ = 0;
};

}  // namespace carillon

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

namespace carillon {

/// What this process would multicast with.
struct MulticastWish {
  enum Kind : std::uint32_t { kOff, kUdp, kUd };
  Kind kind = kOff;
  std::string device;       ///< udp: the interface; ud: the device; empty: the first that will do
  std::int64_t join_s = 2;  ///< how long members wait to hear each other
};
/// What CARILLON_MULTICAST asks for, on a network of that name.
MulticastWish multicast_wish(const Config& settings, const std::string& network);

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
  /// An error: a group is broken.
  Status progress();
  /// Whether something has come for this node's other processes since it was asked last.
  bool take_news() { return reception_ && reception_->take_news(); }
  /// Nobody needs this member any more: it has been silent a while, and what it sent, or was to
  /// tell of others, has been acknowledged.
  bool quiet();

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
  void each_group(Body body);

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

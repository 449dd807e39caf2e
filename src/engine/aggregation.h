// SPDX-License-Identifier: Apache-2.0
//
// A team's aggregation at this rank: how its nodes' leaders join a group of a switch, or of a tree
// of them, and their end of it. The other ranks only take part in the agreement.
//
// A host that has its result may be needed by others when the switch goes away, whatever its
// program does meanwhile: a thread looks after the group when nobody else has for a while.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "carillon/carillon.h"
#include "schedule/nodes.h"
#include "transport/aggregate/control.h"
#include "transport/aggregate/member.h"
#include "transport/aggregate/tree.h"
#include "transport/aggregate/udp_port.h"

namespace carillon {

/// What CARILLON_SWITCH and CARILLON_SWITCH_KEY say.
struct SwitchWish {
  std::vector<aggregate::Endpoint> path;  ///< this node's switch, the one above, ..., the root;
                                          ///< empty: there is none, or it has failed
  std::string key_file;
  enum class State : std::uint32_t { kNone, kWanted, kFailed };
  State state = State::kNone;
};
Result<SwitchWish> switch_wish(const Config& settings);

class TeamAggregation final : private aggregate::DatagramListener {
 public:
  /// Begins to join, over the team's exchange. All members at the same time; of several nodes.
  TeamAggregation(const crl_oob_t& oob, const Nodes& nodes, const SwitchWish& wish);
  ~TeamAggregation() override;
  TeamAggregation(const TeamAggregation&) = delete;
  TeamAggregation& operator=(const TeamAggregation&) = delete;

  /// True when it is over, and status() says how: to all members the same. An error: the exchange
  /// has failed.
  Result<bool> set_up();
  /// Not ok: the team has no switch, and why.
  [[nodiscard]] const Status& status() const { return status_; }
  /// It will not be used any more: its socket goes. Its memory must stay if set_up() is not over,
  /// since the exchange may still write there.
  void abandon();

  /// Once it is set up; on leaders, in the order of numbers. False: it is not its turn, or as much
  /// is in flight as may be.
  bool post(std::uint64_t number, const aggregate::Operation& operation, std::uint64_t* ticket);
  [[nodiscard]] bool done(std::uint64_t ticket) const;
  std::uint64_t take_numbers(std::uint64_t count);
  /// An error: what is in flight will not end.
  Status progress();
  /// Whether it does without the switch since it was asked last, and, if so, was told by another
  /// host, who knows why.
  bool take_fall_back(Status* why, bool* was_told);
  /// To be slept on; -1: nothing comes here.
  [[nodiscard]] int wait_descriptor() const { return port_ ? port_->descriptor() : -1; }
  /// When it needs progress at the latest, in ns of the monotonic clock; nothing: never.
  [[nodiscard]] std::optional<std::int64_t> due_ns() const;
  /// The team is no longer used: no host needs this one any more, and the switch has been told.
  bool quiet();

  static std::int64_t now_ns();

 private:
  struct Word;
  struct Place;
  struct Verdict;
  struct Exchanges;
  enum class Step : std::uint8_t { kPlaces, kGroup, kTrial, kOver };

  void on_datagram(const aggregate::Endpoint& from, std::span<const std::byte> datagram) override;
  void open_port();
  void move_port();
  Status take_places();
  void begin_control();
  [[nodiscard]] bool control_is_over();
  void build_group();
  void begin_trial();
  [[nodiscard]] bool trial_is_over();
  Result<bool> move_on();
  Result<bool> end_group();
  Result<bool> end_trial();
  void try_shorter_packets();
  [[nodiscard]] bool group_is_freed();
  bool has_said(std::optional<std::uint64_t>& word);
  void start_thread();
  void stop_thread();
  void look_after();
  [[nodiscard]] int look_now();

  crl_oob_t oob_;
  SwitchWish wish_;
  int nodes_ = 0, node_ = 0;
  bool is_leader_ = false;
  std::vector<Rank> leaders_;
  Step step_ = Step::kPlaces;
  Status status_, mine_, broken_;  // mine_: why this rank cannot join; broken_: the exchange
  std::unique_ptr<Exchanges> exchanges_;
  std::unique_ptr<aggregate::UdpPort> port_;  // leaders
  std::vector<aggregate::Endpoint> hosts_;    // by node
  aggregate::HostTree host_tree_;             // and theirs
  // Of a packet: what this host's interface takes, then all of them; and what rank 0 was allotted.
  std::uint16_t operand_bytes_ = 0, allotted_operand_bytes_ = 0;
  // Of rank 0: what it asks of the switches.
  SipKey administrator_;
  std::unique_ptr<aggregate::Requests> jobs_;
  std::unique_ptr<aggregate::TreeControl> tree_;
  std::uint32_t job_ = 0, next_request_ = 1;  // the latter with the job's key
  std::uint16_t window_ = 0;
  std::uint64_t nonce_ = 0;
  bool removing_ = false;
  std::unique_ptr<aggregate::Member> member_;
  std::optional<std::uint64_t> trial_, farewell_, last_word_;
  std::vector<std::byte> trial_data_;
  std::int64_t trial_ends_ns_ = 0;
  std::uint64_t next_number_ = 0;  // to be taken,
  std::uint64_t next_posted_ = 0;  // and to be posted
  bool told_ = false;              // that it does without the switch
  mutable std::mutex mutex_;       // of all of it, once it is set up
  std::int64_t moved_ns_ = 0;      // when the program has last made progress
  std::int64_t said_farewell_ns_ = 0;
  UniqueFd end_;  // of the thread
  std::thread thread_;
};

}  // namespace carillon

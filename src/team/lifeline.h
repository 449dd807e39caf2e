// SPDX-License-Identifier: Apache-2.0
//
// Lifelines: who lives on other nodes. Networks do not always tell that a process has ended (some
// go on refusing posts to it, as if it were only slow). So each process listens on a TCP port, and
// holds one plain connection to each process that it exchanges data with. The kernel closes it when
// either process ends, however it ends, and notices when the host at the other end vanishes.
//
// The process that calls says hello, the one that is called answers (lifeline_message.h); before
// that nobody believes anything. If both call each other, there are two connections: a process
// lives as long as one of them does.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "team/lifeline_message.h"
#include "team/lifeline_socket.h"

namespace carillon {

/// What a process tells others so that they can reach its lifeline. Plain data: it travels as
/// bytes, among machines of one byte order.
struct LifelineAddress {
  std::uint32_t version = 0;
  std::uint16_t port = 0;
  std::uint16_t count = 0;  ///< of addresses
  std::uint64_t node = 0;   ///< differs between nodes, and between network namespaces
  std::array<lifeline::Ip, 4> ips = {};
};

/// Not thread-safe: one call at a time. Nothing blocks, and nothing happens unless progress() is
/// called. In a forked child it is dead wood: its connections are closed there, the parent's live
/// on; calls do nothing, and it may be destroyed.
class Lifeline {
 public:
  enum class State {
    kUnknown,      ///< not watched, and has not called
    kConnecting,   ///< cannot tell yet; a process that never calls progress() stays so
    kAlive,        ///< the connection is there; the process may be stopped or busy
    kUnreachable,  ///< cannot tell: no connection can be made. Tried again now and then
    kLeft,         ///< has ended its lifelines in order. Final
    kDead          ///< has ended, or its host has vanished. Final
  };

  /// Listens, as rank `rank` of `ranks`. Nobody is let in before join().
  static Result<std::unique_ptr<Lifeline>> open(int rank, int ranks);
  /// Tells those who are connected that this is an orderly end.
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// What others give to watch().
  [[nodiscard]] const LifelineAddress& address() const { return address_; }
  /// Once, before all of what follows: the random number that all processes of the job share.
  void join(std::uint64_t world);

  /// Begins to watch the process of that rank, whose address() came from there: its bytes are
  /// checked. Idempotent. The process must have been listening before (its address is proof): if
  /// its port refuses now, again and again, it is dead.
  void watch(int rank, const LifelineAddress& address);
  /// As of the last progress(). This process itself is alive; ranks that cannot be are unknown.
  [[nodiscard]] State state(int rank) const;
  /// If dead, left or unreachable: what happened and what to do; otherwise ok.
  [[nodiscard]] const Status& reason(int rank) const;

  /// Accepts, connects, notices ends. One system call if nothing has happened; a few times per
  /// second is often enough.
  void progress();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Id = std::uint64_t;  // a link's place, and how often the place was used before

  // One connection.
  struct Link {
    enum class Kind {
      kFree,
      kCalling,   // under way to the peer
      kAsking,    // has said hello to the peer, hears nothing yet
      kStranger,  // has called, and not yet said who it is
      kLive
    };
    Kind kind = Kind::kFree;
    int rank = -1;  // unless a stranger
    bool called_us = false;
    std::uint32_t uses = 0;
    std::size_t place = 0;  // in links_
    lifeline::OwnFd fd;
    Time deadline;
    lifeline::HelloBytes hello = {};
    std::size_t hello_bytes = 0;  // that have come
  };

  struct Peer {
    State state = State::kUnknown;
    Status reason;
    int live = 0;             // connections
    bool has_called = false;  // one of them
    std::uint16_t port = 0;
    std::vector<lifeline::Ip> ips;  // to call, in turn
    std::size_t next = 0;           // of them, in this round
    std::size_t refused = 0;        // of them, in this round
    int refused_rounds = 0;         // in succession, in which all refused
    int hung_up = 0;                // calls in succession that ended without a hello
    std::string trouble;            // in this round, per address
    Id call = 0;                    // under way; 0: none
    Time call_at = Time::max();     // when to begin a round; max(): do not
  };

  Lifeline(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  [[nodiscard]] bool inherited() const { return !epoll_.valid(); }
  [[nodiscard]] static bool final(State state) {
    return state == State::kDead || state == State::kLeft;
  }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::string name(int rank) const { return "rank " + std::to_string(rank); }

  Id add_link(Link::Kind kind, lifeline::OwnFd fd, std::uint32_t events, Time deadline);
  Link* find_link(Id id);
  void close_link(Link& link);
  bool say(Link& link, const lifeline::Hello& hello);

  // lifeline_call.cc: this process calls.
  void call_next(int rank);
  void call_failed(int rank, const std::string& what, bool refused);
  void end_round(int rank);
  void on_called(Id id);
  void hung_up(Link& link, int error);
  void call_again(int rank, Clock::duration after);
  void take_answer(Link& link, const lifeline::Verdict& verdict);

  void on_event(Id id);
  void accept_some();
  void read_hello(Id id);
  void take_caller(Id id, const lifeline::Verdict& verdict);
  void read_live(Link& link);
  void live_ended(Link& link, int error);
  void became_live(Link& link, int rank);
  void settle(int rank, State state, Status reason);
  void drop_stranger(Link& link, const std::string& why);
  void note_descriptors(int error);
  void check_timers();
  void at(Time deadline) { next_timer_ = std::min(next_timer_, deadline); }

  int rank_, ranks_;
  bool joined_ = false;
  std::uint64_t world_ = 0;
  LifelineAddress address_;
  std::vector<lifeline::Ip> own_;
  lifeline::OwnFd listener_, epoll_;
  std::vector<Peer> peers_;
  std::deque<Link> links_;  // never shrinks; a link stays where it is
  std::vector<std::size_t> free_;
  std::deque<Id> strangers_;  // by age; those that are none any more stay until they are the oldest
  int stranger_count_ = 0;
  std::vector<int> calling_;  // ranks with a call under way or to be made
  Time next_timer_ = Time::max();
  bool told_of_strangers_ = false, told_of_versions_ = false, told_of_descriptors_ = false;
};

}  // namespace carillon

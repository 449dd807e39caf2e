// SPDX-License-Identifier: Apache-2.0
//
// A context's end of the network between nodes: the Wire, the processes on it, and whom a put that
// arrives concerns.
//
// Each process has a lobby: registered memory with two places per other process, where that process
// writes notes. A request says where its block of a pair is, or asks for receives; the reply says
// where the other one is, or that the team is gone. A process has one request to another under way
// at a time, so that neither place is ever overwritten unread. The first one may get lost on some
// networks (wire::Capabilities::crossing_loses), and nothing but requests is sent before something
// has come from there: so it is sent again until it is answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/offset_allocator.h"
#include "base/status.h"
#include "transport/net/buffers.h"
#include "transport/net/memory.h"
#include "transport/net/pair.h"

namespace carillon::net {

inline constexpr std::uint32_t kVersion = 7;

/// What a process tells all others once. Plain data: it travels as bytes.
struct Contact {
  std::uint32_t version = 0;  ///< 0: it has no network
  std::uint32_t address_bytes = 0;
  std::byte address[wire::Wire::kMaxAddressBytes] = {};
  char transport[64] = {};  ///< "verbs", "fabric tcp": must be equal on all
  wire::RemoteMemory lobby;
  std::uint64_t max_bytes = 0;       ///< of a message that is put
  std::uint64_t max_send_bytes = 0;  ///< of one that is sent
};

/// A note in a lobby. Plain data: it travels as bytes.
struct Note {
  enum Kind : std::uint32_t { kOpen = 1, kGaveUp = 2, kOpened = 3, kGone = 4, kExpect = 5 };
  std::uint32_t kind = 0;
  std::uint32_t id = 0;          ///< of the pair, at the receiver
  std::uint64_t generation = 0;  ///< of the receiver's area of that team
  wire::RemoteMemory block;      ///< the sender's: there the receiver may write
  std::uint64_t done = 0;        ///< the sender's `done` word; of kGone: if it gave up, else 0
  std::uint64_t own_id = 0;      ///< of kGaveUp: of the pair, at the sender
  std::uint64_t reserved[2] = {};
};
static_assert(sizeof(Note) == 64);

/// What is done beside the network's own work (wire::Counters): for measurements.
struct Counters {
  std::uint64_t notes = 0;              ///< requests and replies put to other processes
  std::uint64_t asked_again = 0;        ///< of these, requests that were put before
  std::uint64_t statuses = 0;           ///< put to members of teams
  std::uint64_t copied_bytes = 0;       ///< of messages, and within collectives of several nodes
  std::uint64_t sent_copied_bytes = 0;  ///< of these, to where messages are sent from
  std::uint64_t gathered = 0;           ///< messages that were sent from where they stood,
  std::uint64_t gathered_posts = 0;     ///< in so many posts
  std::uint64_t gathered_entries = 0;   ///< of so many entries, messages' heads not among them
  std::uint64_t lists_made = 0;         ///< for them, and for what is received in place
  std::uint64_t scattered = 0;          ///< messages that were got to the places of a list,
  std::uint64_t scattered_entries = 0;  ///< of so many entries
};

/// A message that the process awaits, and places: its first part is sent after `first` others, as
/// many as the process has posted receives before. Without a pair: the parts are of no bytes.
struct Turn {
  std::uint32_t first = 0;
  Pair* pair = nullptr;
  unsigned line = 0;
  std::uint64_t tag = 0;
  std::uint32_t count = 0;  ///< of parts
  std::uint32_t sent = 0;
};

/// A message that a pair which is gone had announced. Who awaits it all the same gets nothing: what
/// others place in that process comes after it.
struct Unsent {
  std::uint32_t id = 0;  ///< of the pair; there is no other of that id
  int process = 0;
  unsigned line = 0;
  std::uint64_t number = 0, bytes = 0, tag = 0;
  const std::byte* ready = nullptr;  ///< where the reader says that it awaits it
};

/// Another process of the job.
struct Process {
  wire::Peer peer = -1;  ///< once it is used
  Contact contact;
  std::deque<Note> requests;  ///< to be sent; the first may be under way
  bool asking = false;        ///< the first has been sent and not been answered
  bool answering = false;     ///< `reply` is to be sent
  Note reply;
  Pair* asking_for = nullptr;
  std::uint64_t requests_sent = 0, replies_sent = 0;
  std::uint64_t requests_seen = 0, replies_seen = 0;
  bool unsure = false;    ///< the request that has been sent may have got lost
  bool may_fail = false;  ///< or its operation fail: nothing had come from there when it was sent
  int failures = 0;       ///< of that
  std::chrono::steady_clock::time_point ask_again_at;
  std::chrono::milliseconds patience{0};
  Status trouble;                ///< not ok: nothing can be sent there any more
  std::uint64_t arrivals = 0;    ///< of what it put or sent here
  std::uint64_t last_words = 0;  ///< arrivals, when it was last asked after (may_still_come)
  std::optional<std::chrono::steady_clock::time_point> silent_since;  ///< with that
  wire::Operation request_operation, reply_operation;
  std::uint32_t placed_posted = 0;    ///< receives of what it places here
  const Placed* numbering = nullptr;  ///< the message whose receives are being posted
  std::uint32_t turn = 0;   ///< so many of what is placed there have been sent, or are up to
  std::vector<Turn> turns;  ///< in no order
};

class Network final : public wire::Listener {
 public:
  /// This end; `processes` are in the job, this is `self` of them.
  static Result<std::unique_ptr<Network>> create(std::unique_ptr<wire::Wire> wire, int processes,
                                                 int self, std::uint64_t largest_message);
  ~Network() override;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// What others must know of this end.
  [[nodiscard]] Contact contact() const;
  /// What they told, one per process. An error if they do not fit together; equal on all.
  Status meet(std::span<const Contact> contacts);

  [[nodiscard]] wire::Wire& wire() { return *wire_; }
  [[nodiscard]] const std::string& name() const { return wire_->capabilities().name; }
  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] Buffers& buffers() { return buffers_; }
  [[nodiscard]] Buffers& receive_buffers() { return receive_buffers_; }
  /// For what is placed: unlike others' operations, theirs end when readers have done something. So
  /// nobody who waits for a buffer that was free since may be waiting for them.
  [[nodiscard]] Buffers& placed_buffers() { return placed_buffers_; }
  /// The processes to which the network is sending what was lent to it for these pairs.
  [[nodiscard]] std::vector<int> lent_to(const std::function<bool(const Pair*)>& pairs) const;
  /// Tells pairs whose operations have failed.
  void check_buffers();
  [[nodiscard]] std::uint64_t largest_message() const { return largest_message_; }
  /// Of one that is sent and received.
  [[nodiscard]] std::uint64_t largest_send() const { return largest_send_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  /// What a collective puts must have ended before it does: else it might not be sent until
  /// somebody makes progress, or land after what is said of the collective.
  [[nodiscard]] bool puts_must_end() const {
    return wire_->capabilities().manual_progress || !wire_->capabilities().ordered;
  }
  /// May a put overtake another one to the same process that is not done?
  [[nodiscard]] bool overtakes() const { return !wire_->capabilities().ordered; }

  /// `count` consecutive names for the pairs of a team in the making; `generation` is its own.
  /// Others may be ready, and ask for pairs, before this process is: they wait until end_making.
  /// None if they are used up.
  std::optional<std::uint32_t> take_ids(int count, std::uint64_t generation);
  /// The team's pairs are named, or never will be.
  void end_making(std::uint32_t first);
  void return_ids(std::uint32_t first);
  void name_pair(std::uint32_t id, Pair* pair);

  // For pairs.
  Result<wire::Peer> peer_of(int process);
  void ask(int process, const Note& note);
  /// Why nothing can be sent there, if so.
  [[nodiscard]] Status trouble_with(int process) const;
  /// The process has ended, or cannot be reached: nothing more is tried.
  void give_up_on(int process, const Status& why);
  /// Of a process that has ended: may more come of what it has sent? Asked again and again, with
  /// progress in between; false once nothing has come for a while.
  bool may_still_come(int process);
  /// Something that the process has sent has come.
  void note_arrival(int process) { ++processes_[static_cast<std::size_t>(process)].arrivals; }
  /// Calls pair.retry() until it succeeds.
  void retry_later(Pair& pair) { retries_.push_back(&pair); }
  void forget(Pair& pair);

  // Of what is placed (network_placed.cc).
  using Turn = net::Turn;
  /// The process is given up if such a turn cannot be.
  void take_turn(int process, const Turn& turn);
  void note_unsent(const Unsent& message) { unsent_.push_back(message); }
  /// Parts of no bytes.
  Result<bool> send_nothing(int process, std::uint64_t tag);
  /// Calls pair.settle_placed() until it succeeds.
  void watch_placed(Pair& pair);
  /// Which of the process's receives the next one is; none: those of another message come first.
  std::optional<std::uint32_t> number_placed(int process, const Placed& placed);
  /// It is posted.
  void count_placed(int process, const Placed& placed);

  /// Moves everything on. An error: the end is broken; it stays so.
  Status progress();
  /// Processes used for the first time since this was asked last.
  std::vector<int> take_new_processes() { return std::exchange(new_processes_, {}); }
  /// What to sleep on until progress() has something to do, right after ready_to_wait(); or -1.
  [[nodiscard]] int wait_descriptor() const { return wire_->wait_descriptor(); }
  bool ready_to_wait() {
    return talking_.empty() && retries_.empty() && turning_.empty() && wire_->ready_to_wait();
  }
  /// Makes progress until `done`. False: not in that time, or the end is broken.
  bool settle(const std::function<bool()>& done,
              std::chrono::milliseconds within = std::chrono::seconds(2));
  /// Gives the process up for good, and what is under way to it: that touches no memory any more.
  void cut_off(int process, const Status& why);
  /// Is nothing under way from here, but to processes that were given up?
  [[nodiscard]] bool idle() const;
  /// The processes for which it is not idle, or would not be; some may be named several times.
  [[nodiscard]] std::vector<int> waited_for() const;

  void on_put(std::uint32_t immediate) override;

  /// kNote: the id is the process that wrote it.
  enum class Kind : std::uint32_t { kShort = 0, kLong = 1, kStatus = 2, kNote = 3 };
  static constexpr int kIdBits = 24;
  static constexpr int kNumberBits = 6;
  /// Of `number` the last bits: so that what is told twice is not taken for what comes next in its
  /// place. Of a message, its number; of the n-th request to a process, 2n, and of the reply to it,
  /// 2n + 1.
  static std::uint32_t immediate(Kind kind, std::uint64_t number, std::uint32_t id) {
    return static_cast<std::uint32_t>(kind) << (kIdBits + kNumberBits) |
           low_bits(number) << kIdBits | id;
  }
  static constexpr std::uint32_t low_bits(std::uint64_t number) {
    return static_cast<std::uint32_t>(number) & ((1U << kNumberBits) - 1);
  }

 private:
  Network(std::unique_ptr<wire::Wire> wire, int processes, int self, std::uint64_t largest_message);
  [[nodiscard]] Pair* pair_of(std::uint32_t id) const;
  [[nodiscard]] Note note_from(int process, bool reply) const;
  void on_note(int process, std::uint32_t number);
  void on_request(int process);
  void answer(int process, const Note& note);
  [[nodiscard]] Note gone(int process, std::uint32_t id) const;
  [[nodiscard]] bool in_the_making(const Note& note) const;
  void on_reply(int process);
  void send_notes();
  bool send_note(int process, const Note& note, bool reply, wire::Operation& operation);
  Result<bool> post_note(int process, const Note& note, bool reply, std::uint64_t number,
                         wire::Operation& operation);
  void ask_again();
  void progress_placed();
  bool send_turns(int process);
  void answer_unsent(std::uint32_t id, unsigned line);
  void forget_placed(const Pair& pair);
  [[nodiscard]] bool all_sent(const std::function<bool(int process)>& gone) const;

  std::unique_ptr<wire::Wire> wire_;
  Memory memory_;
  Buffers buffers_, receive_buffers_, placed_buffers_;
  int self_;
  std::uint64_t largest_message_;
  std::uint64_t largest_send_;
  Counters counters_;
  std::vector<Process> processes_;
  Block lobby_, staging_;  // a request and a reply for and from each process
  OffsetAllocator ids_{0, std::uint64_t{1} << kIdBits};
  std::vector<Pair*> pairs_;  // by id
  struct Making {
    std::uint32_t count = 0;
    std::uint64_t generation = 0;
  };
  std::map<std::uint32_t, Making> making_;  // by first id
  std::vector<int> waiting_;                // processes whose requests are for these
  std::vector<int> talking_;                // processes with notes to send
  std::vector<int> unsure_;                 // processes that a request may not have come to
  std::vector<Pair*> retries_;
  std::vector<int> new_processes_;
  std::vector<int> turning_;    // processes whose turn is to be sent
  std::vector<Pair*> placing_;  // pairs that have announced something
  std::vector<Unsent> unsent_;
  Status status_;
  bool garbage_told_ = false;
};

}  // namespace carillon::net

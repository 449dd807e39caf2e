// SPDX-License-Identifier: Apache-2.0
//
// This rank and a member of its team on another node. Messages are those of shared memory
// (transport/shm/endpoint.h): numbered, a window of lines, released by counts. Only the way is
// another: the line and what belongs to it are put into the reader's memory with an immediate, and
// the reader's progress makes the header visible where Run::poll looks.
//
//   block, at the reader, written by the one member it belongs to
//   +--------+---------+--------+-----+--------+--------+-----+--------+
//   | status | readies | line 0 | ... | line 7 | slot 0 | ... | slot 7 |
//   +--------+---------+--------+-----+--------+--------+-----+--------+
//   status: the member's `done`, its count of this rank's messages and of its own, the call it
//   waits in, whether it has closed, and a check that all of it is there: the next one may be
//   landing. readies: for which of this rank's messages it has receives (placed.h). line n: a
//   message that fits in a line: length, header, payload. Side by side, so that short messages use
//   one page. slot n: a longer one, its payload aligned. Of a long one whose bytes the writer can
//   keep as they are for a while, only the place is told, in a line (exposure.h).
//
// Two-sided (pair_two_sided.cc), a message is sent and received instead of put. The reader keeps a
// receive posted for each line, in a buffer of the network's, from the writer's first such message
// on: it asks for that. There the message stays until it has been copied out. Numbers, window and
// counts are the same, so that no message ever comes before its receive: some networks would let
// it bar the way of all that come after it.
//
// A pair is opened by the first message in either direction: each side allocates a block and tells
// the other where it is (network.h, Note). Nothing is allocated or registered after that.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/net/buffers.h"
#include "transport/net/memory_use.h"
#include "transport/net/placed.h"
#include "transport/shm/endpoint.h"

namespace carillon::net {

class Network;
struct Process;
struct Note;

/// What a pair needs to know of its team; equal for all pairs of a team but for the ids.
struct PairPlace {
  int process = 0;               ///< the member's, in the network
  std::uint32_t id = 0;          ///< names this pair in immediates to this rank
  std::uint32_t peer_id = 0;     ///< names it at the member
  std::uint64_t generation = 0;  ///< of this rank's area
  std::uint64_t peer_generation = 0;
  std::uint64_t slot_bytes = 0;    ///< the longest message
  std::uint64_t send_bytes = 0;    ///< the longest that is sent and received
  std::size_t gather_entries = 1;  ///< of a list in one post, a message's head not among them
};

/// Which line a message is in.
inline unsigned line_of(std::uint64_t number) {
  return static_cast<unsigned>(number % shm::kWindow);
}

/// Of what is placed in that line of a pair, as the reader names it.
std::uint64_t placed_tag(std::uint32_t id, std::uint64_t generation, unsigned line);

class Pair {
 public:
  Pair(Network& network, const PairPlace& place);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// Makes the pair what the endpoint sees of this member.
  void attach(shm::Peer& peer);

  // Writing.
  /// Where to write the payload of message `number`; null: no room now, or the pair is broken
  /// (status()).
  std::byte* prepare(std::uint64_t number, std::uint64_t length, bool two_sided);
  /// What was prepared is the message that was refused last: its payload is there.
  [[nodiscard]] bool is_filled() const { return filled_; }
  /// Sends what was written there, as message `number`; false as above. Then `buffer` holds it
  /// until its operation is done.
  bool post(std::uint64_t number, std::uint64_t header, Buffer** buffer);
  /// The same, by send: what was prepared so.
  bool send(std::uint64_t number, std::uint64_t header, Buffer** buffer);
  /// Sends message `number` from where it stands: the bytes of the list, whose first place is for
  /// its head. One that is longer than a post takes is put in parts, also if it is two-sided. False
  /// as above; then the same again. `under_way` gets what holds the bytes until its operations are
  /// done.
  struct Listed {
    std::uint64_t number = 0, header = 0, length = 0;
    bool two_sided = false;
  };
  bool post_list(const Listed& message, std::vector<wire::Piece>& list,
                 std::vector<Buffer*>* under_way);

  // Writing what is placed (pair_placed.cc).
  /// May message `number` be announced now? False as above.
  bool may_announce(std::uint64_t number);
  /// Does a list go as it is?
  [[nodiscard]] bool takes_placed(std::span<const wire::Piece> list) {
    return told_cut(ListUse::kPlace, list).has_value();
  }
  /// Tells of the message; its bytes stay in the list's places until the operation of what
  /// `under_way` gets is done. That is `packed` if not null, the list being of that buffer alone.
  bool announce(const Listed& message, std::span<const wire::Piece> list, Buffer* packed,
                std::vector<Buffer*>* under_way);
  /// If the reader has not asked for the message yet: copies it to a buffer of the network's, from
  /// which it goes then, and ends the operation. Null: it has, or there is no such message.
  Result<Buffer*> stand_in(const Buffer& under_way);
  /// What has been announced will not be sent, whoever asks.
  void withdraw_announced();
  /// The n-th part of the message of that line.
  Result<bool> send_part(unsigned line, std::uint32_t part, std::uint64_t tag);
  /// Ends what has been sent. False: there may be more.
  bool settle_placed();
  // Reading it.
  /// The parts in which a list can be filled; none: it is to be copied to.
  std::optional<Parts> parts_to_fill(std::span<const wire::Piece> list) {
    return told_cut(ListUse::kFill, list);
  }
  /// Fills the list with message `number`, which was announced. False: not all is there yet.
  Result<bool> receive_placed(std::uint64_t number, Placed& placed);

  /// The network knows these bytes: they are of a message in this pair's block.
  [[nodiscard]] const wire::Registration* registration_of(std::span<const std::byte> bytes) const;
  /// The member could not be reached.
  [[nodiscard]] const Status& status() const { return status_; }
  void fail(const Status& status);

  // Reading.
  /// Fills `to` from what the member has exposed. As wire::Wire::get.
  Result<bool> get(wire::RemoteMemory from, std::span<const wire::Piece> to,
                   wire::Operation& operation);

  // Reading, two-sided.
  /// Makes the message that has come to the line of this one, if any, visible. False: the pair is
  /// broken.
  bool show(std::uint64_t number);
  /// The message has been read: its line's receive is posted again.
  void free_received(std::uint64_t number);

  // Reading: telling the member what has been released.
  /// All its messages below `count` are released. `awaited`: the member waits to hear of it.
  void note_acknowledged(std::uint64_t count, bool awaited);
  /// So many more messages of completed collectives; true if the member should hear of it soon.
  bool note_received(std::uint64_t messages, bool awaited) {
    const bool was_due = untold_ >= kTellEvery;
    untold_ += awaited ? kTellEvery : messages;
    return !was_due && untold_ >= kTellEvery;
  }
  /// A message that says this rank has completed all it received from there goes out.
  void told_in_passing() { untold_ = 0; }
  /// Tells `done` (with generation) and the counts; soon, if it cannot be now.
  void tell(std::uint64_t done, std::uint64_t call, bool covers_all);
  /// Has the member said that it has sent this message? Then it will come, if it has not.
  [[nodiscard]] bool was_sent(std::uint64_t number) const { return number < told_sent_; }
  /// Has the member yet to be sent what it is to be told?
  [[nodiscard]] bool owes() const {
    const bool going = last_status_ != nullptr && !last_status_->operation.done();
    return state_ == State::kOpen && (status_pending_ || going);
  }
  /// Of a pair that is not used yet: the member is told where it may write, and answers, or that it
  /// has no such team any more, and the pair fails.
  void ask();
  /// How long a message has been waiting for the member to answer; 0: none is.
  [[nodiscard]] double opening_s() const;
  [[nodiscard]] bool is_open() const { return state_ == State::kOpen; }
  [[nodiscard]] bool is_used() const { return state_ != State::kUnused; }

  /// Tells the member, used or not, that this rank has given the team up.
  void give_up(std::uint64_t word);
  /// Tells the member that nothing will come any more. True once both sides have and all is sent.
  bool close(std::uint64_t done);
  /// The member has told so.
  [[nodiscard]] bool peer_closed() const { return peer_closed_; }

  // For the network.
  [[nodiscard]] const PairPlace& place() const { return place_; }
  /// `number`: the last bits of the message's.
  void on_message(std::uint32_t number, bool is_long);
  void on_status();
  /// It has receives for what was announced in that line.
  void on_ready(unsigned line);
  /// The member says where its block is.
  void on_opened(const Note& note);
  /// It asks for receives for what it sends.
  void on_expect();
  /// It has posted those this side asked for.
  void on_expecting() { sending_ = Sending::kReady; }
  /// It gave the team up; `done` says why.
  void on_gave_up(std::uint64_t done);
  /// What this side tells it.
  [[nodiscard]] wire::RemoteMemory block() const { return block_.remote; }
  bool allocate_block();
  /// A status that could not be sent: again. True if it is sent.
  bool retry();

  /// What stands before the payload of a message: its length and header.
  static constexpr std::uint64_t kHeadBytes = BlockLayout::kHeads;
  /// A member hears of every so many of its messages that were released; of the others not.
  static constexpr std::uint64_t kTellEvery = shm::kWindow / 2;
  /// So many messages a member can always write without hearing of more.
  static constexpr std::uint64_t kSureWindow = shm::kWindow - (kTellEvery - 1);

 private:
  enum class State : std::uint8_t { kUnused, kOpening, kOpen, kFailed };

  void open();
  void note_giving_up();
  bool post_status();
  bool status_under_way();
  void write_head(std::uint64_t header);
  Result<Buffer*> take_to_lend();
  enum class ListUse : std::uint8_t { kPut, kPlace, kFill, kUses };
  void tell_of_list(ListUse use, std::size_t entries, std::size_t parts);
  std::optional<Parts> told_cut(ListUse use, std::span<const wire::Piece> list);
  Result<bool> put_list(std::uint64_t number, std::span<const wire::Piece> list,
                        std::uint64_t offset, wire::Operation& operation);
  Result<bool> send_list(std::uint64_t number, std::span<const wire::Piece> list,
                         wire::Operation& operation);
  bool posted(const Result<bool>& answer, Buffer** buffer);
  void later();
  bool may_send();
  void post_receive(unsigned line);
  void show_line(unsigned line);
  void on_garbage();
  bool end_receives();
  struct Placing;
  void hold(Placing& placing, Buffer* buffer);
  void end_placing(Placing& placing, const Status& status);
  void leave_announced();
  [[nodiscard]] std::size_t most_placed() const;  // entries of a part
  Result<bool> post_receives(std::uint64_t number, Placed& placed);
  Result<bool> tell_ready(std::uint64_t number, Placed& placed);
  [[nodiscard]] BlockLayout layout() const { return {place_.slot_bytes}; }

  Network& network_;
  PairPlace place_;
  State state_ = State::kUnused;
  bool status_pending_ = false;
  bool closing_ = false;
  bool peer_closed_ = false;
  Status status_;
  std::optional<std::chrono::steady_clock::time_point> opening_since_;  // for a message
  Block block_;
  wire::RemoteMemory out_;
  std::unique_ptr<shm::Line[]> arrived_;
  Buffer* prepared_ = nullptr;
  std::uint64_t prepared_bytes_ = 0;
  std::uint64_t prepared_number_ = 0;
  bool filled_ = false;
  struct {  // the message sent from where it stands that was refused last
    bool begun = false;
    std::uint64_t number = 0;
    std::size_t left = 0;     // pieces to post, from the first on
    std::uint64_t bytes = 0;  // of these
  } parts_;
  // Of the longest list that was told of, as one that does not go in one post.
  std::array<std::size_t, static_cast<std::size_t>(ListUse::kUses)> told_entries_ = {};
  Buffer* last_status_ = nullptr;  // where it must end before something else
  struct Receive {
    Buffer* buffer = nullptr;
    bool posted = false;
    bool shown = false;
  };
  std::unique_ptr<Receive[]> receives_;  // by line; null: the member has not asked for them
  enum class Sending : std::uint8_t { kUnused, kAsked, kReady };
  Sending sending_ = Sending::kUnused;
  unsigned ended_receives_ = 0;
  int end_tries_ = 0;
  bool retrying_ = false;  // in the network's list of those to try again
  // A message that is placed, by line; null until the first.
  struct Placing {
    enum class State : std::uint8_t { kNone, kAnnounced, kWithdrawn, kAwaited };
    State state = State::kNone;
    std::uint64_t number = 0, bytes = 0;
    std::vector<wire::Piece> list;
    Buffer* holder = nullptr;  // whose operation is done when the list is free
    bool packed = false;       // the list is of that buffer
    Parts parts;               // where it must be cut, and then, where it is
    std::uint32_t posted = 0;
    std::array<wire::Operation, kMostParts> operations;
  };
  std::array<std::unique_ptr<Placing>, shm::kWindow> placings_;
  shm::Peer* peer_ = nullptr;
  // The member's, as it told them; the endpoint reads them.
  shm::Progress told_ = {};
  shm::Acks acks_ = {};
  // This rank's, to tell.
  std::uint64_t done_ = 0;
  std::uint64_t call_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t told_acknowledged_ = 0;
  std::uint64_t untold_ = 0;
  std::uint64_t sent_ = 0;       // messages, up to the last
  std::uint64_t told_sent_ = 0;  // by the member
};

}  // namespace carillon::net

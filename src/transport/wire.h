// SPDX-License-Identifier: Apache-2.0
//
// Between nodes: what a network can do for the engine. A Wire is this process's end of one; verbs
// and libfabric implement it, and the same conformance tests (tests/procs/wire_test.cc) hold for
// both.
//
// Nothing here blocks, and nothing happens unless progress() is called. An operation is posted, and
// is done when its Operation says so; the memory it names stays as it is until then. A post can be
// refused for want of room: progress, then try again. Operations under way to a process that has
// ended end, too; but some networks go on refusing posts to it, as if it were only slow: who lives
// is found out elsewhere.
//
// Order. A put's bytes are all there when its immediate is told; nothing is promised of the order
// within one put. Puts to one peer land in the order in which they were posted if the network is
// `ordered`. If not, they may overtake each other, but one that is posted after another was done
// lands after it. Nothing is promised of puts to different peers, of gets, nor of puts and sends
// among each other; sends keep their order within one tag.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"

namespace carillon::wire {

/// What this end can do, asked of the device. Others may have less: a team agrees on the least.
struct Capabilities {
  std::string name;                   ///< for people: "verbs rxe0", "fabric tcp;ofi_rxm"
  std::size_t max_pieces = 1;         ///< entries in the list of a put, get, send or recv
  std::size_t inline_bytes = 0;       ///< puts of so much leave their memory free when posted
  std::size_t max_bytes = 0;          ///< of one put or get
  std::size_t max_send_bytes = 0;     ///< of one send
  bool registers_local = false;       ///< pieces must lie in registered memory
  std::size_t get_from_bytes = 0;     ///< gets of so much are cheaper than two copies; 0: never
  std::size_t gather_from_bytes = 0;  ///< from here on an entry is cheaper than a copy; 0: never
  /// What is posted may stay here until progress() is called. What is done has left.
  bool manual_progress = false;
  bool ordered = false;  ///< puts to one peer land in the order of posting
  bool sockets = false;  ///< each message goes through the kernel
  /// Of two ends that begin with each other at once, what is posted first may fail, or be done and
  /// never arrive, though both live. What is posted after something has come from there does not.
  bool crossing_loses = false;
  /// Entries in the list of a get, where it takes fewer than others.
  std::size_t max_get_pieces = SIZE_MAX;
};

/// Where others put to and get from. Plain data: a member tells it to the others as bytes.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;

  [[nodiscard]] RemoteMemory at(std::uint64_t offset) const { return {address + offset, key}; }
};

/// Memory that the network may reach, as long as this lives.
class Registration {
 public:
  virtual ~Registration() = default;
  [[nodiscard]] virtual RemoteMemory remote() const = 0;
};

/// A run of bytes of this process.
struct Piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  const Registration* registration = nullptr;  ///< that holds it; may be null if not needed
};

/// One operation under way. It stays where it is until it is done, and may then be used again.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  [[nodiscard]] bool done() const { return done_; }
  /// Once done: what became of it. kPeerDead: the connection is gone.
  [[nodiscard]] const Status& status() const { return status_; }
  /// Of a recv, once done.
  [[nodiscard]] std::size_t received_bytes() const { return received_bytes_; }

  // For the transports.
  void begin() {
    done_ = false;
    status_ = Status();
  }
  void finish(Status status, std::size_t received_bytes = 0) {
    status_ = std::move(status);
    received_bytes_ = received_bytes;
    done_ = true;
  }
  [[nodiscard]] void* provider_space() { return provider_.data(); }
  static Operation* of_provider_space(void* space) { return static_cast<Operation*>(space); }

 private:
  alignas(16) std::array<std::byte, 64> provider_{};  // first: its address is the operation's
  Status status_;
  std::size_t received_bytes_ = 0;
  bool done_ = true;
};

/// What an end has done since it was opened: for measurements.
struct Counters {
  std::uint64_t puts = 0, gets = 0, sends = 0;  ///< posted, the transport's own among them
  std::uint64_t receives = 0;        ///< posted: by recv, or kept ready for whatever comes
  std::uint64_t completions = 0;     ///< taken from the device's queues
  std::uint64_t immediates = 0;      ///< of puts that have arrived
  std::uint64_t registrations = 0;   ///< of memory
  std::uint64_t copied_bytes = 0;    ///< by the transport, from where messages come to their recv's
  std::uint64_t placed = 0;          ///< receives posted by recv_placed,
  std::uint64_t placed_entries = 0;  ///< of so many entries
};

/// Told of what others did to this end's memory.
class Listener {
 public:
  virtual ~Listener() = default;
  /// A put with this immediate, and all its bytes, have arrived. Called by progress().
  virtual void on_put(std::uint32_t immediate) = 0;
};

using Peer = std::int32_t;

/// So many sends to one peer may be ahead of their recvs, whatever their tags; more may be refused
/// until it receives.
inline constexpr int kEarlySends = 8;

/// Tags have so many bits: that is all that some networks take (libfabric's cxi).
inline constexpr int kTagBits = 48;

/// Not thread-safe: one call at a time.
class Wire {
 public:
  virtual ~Wire() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const = 0;
  /// What others give to add_peer; at most kMaxAddressBytes.
  [[nodiscard]] virtual std::span<const std::byte> address() const = 0;
  static constexpr std::size_t kMaxAddressBytes = 128;

  /// Makes the process with that address known. It is connected on first use. The bytes come from
  /// another process: what cannot be an address is refused.
  virtual Result<Peer> add_peer(std::span<const std::byte> address) = 0;
  virtual Result<std::unique_ptr<Registration>> register_memory(std::span<std::byte> memory) = 0;

  // Posts. True: the operation is under way (or done already). False: no room now. An error: it
  // can never be posted, and `operation` is not used.

  /// One-sided: the pieces, one after another, go to the peer's memory. With an immediate the
  /// peer's listener is told when they are there; without, it is told nothing.
  virtual Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                           std::optional<std::uint32_t> immediate, Operation& operation) = 0;
  /// One-sided: the peer's memory fills the pieces.
  virtual Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                           Operation& operation) = 0;
  /// Two-sided: meets the peer's recv of the same tag. Of one tag, first come first served.
  virtual Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                            Operation& operation) = 0;
  virtual Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                            Operation& operation) = 0;

  // Placed: sent to a list that the peer has posted already, so that nothing on the way needs to
  // know where the bytes belong. The n-th send_placed to a peer fills its n-th recv_placed of this
  // end, both of the same tag. To be posted only when the peer has said that its own is there.

  /// False: not yet can the peer post its recv_placed.
  virtual Result<bool> meet(Peer /*peer*/) { return true; }
  virtual Result<bool> send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                                   Operation& operation) {
    return send(peer, from, tag, operation);
  }
  virtual Result<bool> recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                                   Operation& operation) {
    auto posted = recv(peer, to, tag, operation);
    if (posted.ok() && posted.value()) count_placed(to.size());
    return posted;
  }
  /// Of a recv_placed: it is not awaited any more. It ends now, or when something comes to it, or
  /// when the peer is cut off.
  virtual void stop_awaiting(Operation& /*operation*/) {}

  /// What is under way to the peer is given up: when this returns nothing of it touches this
  /// process's memory any more, whatever the peer does, and all further posts to it fail with
  /// `why`. Its operations end with `why`, or, where the network can only give up all peers at
  /// once, stay as they are, and progress() says from then on that the end is broken.
  virtual void cut_off(Peer peer, const Status& why) = 0;

  /// A descriptor that becomes readable when progress() has something to do; -1: there is none.
  /// To be slept on only right after ready_to_wait() has said so.
  [[nodiscard]] virtual int wait_descriptor() const { return -1; }
  /// False: there is something to do already.
  virtual bool ready_to_wait() { return false; }

  /// Moves everything on. An error means that the end itself is broken.
  virtual Status progress(Listener& listener) = 0;

  [[nodiscard]] const Counters& counters() const { return counters_; }

 protected:
  void count_placed(std::size_t entries) {
    ++counters_.placed;
    counters_.placed_entries += entries;
  }
  Counters counters_;
};

/// The bytes of a list.
inline std::size_t total_bytes(std::span<const Piece> pieces) {
  std::size_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.bytes;
  return sum;
}

/// What every transport refuses: too many pieces, too many bytes, memory that is not registered.
Status check_list(const Capabilities& capabilities, std::span<const Piece> pieces,
                  std::size_t max_bytes, std::size_t max_pieces = SIZE_MAX);

}  // namespace carillon::wire

// SPDX-License-Identifier: Apache-2.0
//
// Connections of one end. Each goes one way: the end that posts opens it, on first use; the other
// accepts it, and writes nothing on it but how many messages it has taken up (credits). So two ends
// that begin at the same time need not agree who was first.
//
// Those for messages that are placed are others: what comes by them takes the receive entries that
// were posted for it, lists in their order, and not whichever is next for all peers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/verbs/device.h"

namespace carillon::verbs {

/// What an end tells the others of itself. Plain data.
struct Address {
  std::uint64_t magic = 0;
  std::uint64_t id = 0;  ///< of the end, random
  std::uint32_t ipv4 = 0;
  std::uint16_t port = 0;  ///< both in network order
  std::uint16_t unused = 0;
};
inline constexpr std::uint64_t kMagic = 0x3230'7362'7672'6c63;  // and version

/// What comes by a connection.
enum class Purpose : std::uint64_t { kMessages, kPlaced };

/// What comes with a request to connect; at most 56 bytes.
struct Request {
  std::uint64_t magic = 0;
  std::uint64_t to = 0;    ///< id of the end that is meant
  std::uint64_t from = 0;  ///< id of the end that asks
  std::uint64_t credit_address = 0;
  std::uint64_t credit_key = 0;
  Purpose purpose = Purpose::kMessages;
};
static_assert(sizeof(Request) <= 56);

/// Why a request was refused, and what comes with the refusal.
enum class Refusal : std::uint64_t { kStranger = 1, kNoRoom = 2 };
struct Refused {
  std::uint64_t magic = 0;
  Refusal why = Refusal::kStranger;
};
void refuse(const Library& library, rdma_cm_id* id, Refusal why);

/// What has happened to a connection, and what was said with it.
struct Event {
  rdma_cm_event what = {};
  std::array<std::byte, 256> data = {};
};
/// False: nothing more, or errno says why not.
bool next_event(const Device& device, Event* event);

/// Opened by this end: what it posts to a peer.
class Outgoing {
 public:
  Outgoing(Device& device, const Address& self, const Address& peer, std::uint32_t index,
           Purpose purpose = Purpose::kMessages)
      : device_(device), self_(self), peer_(peer), index_(index), purpose_(purpose) {}
  ~Outgoing();
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  /// True: a post may be made now. False: not yet. An error: never again.
  Result<bool> ready(bool needs_credit);
  using Clock = std::chrono::steady_clock;
  /// An event of the connection manager.
  void on_event(const rdma_cm_event& event, Clock::time_point now = Clock::now());

  /// After ready(): posts the request. `head` goes before the pieces if not null. `inline_data`:
  /// the memory is free at once, and the operation is done.
  Status post(ibv_send_wr& request, std::span<ibv_sge> pieces, const MessageHead* head,
              bool inline_data, bool uses_credit, wire::Operation& operation);
  /// Everything up to the post of that number has been completed, or it has failed.
  void on_completion(std::uint16_t number, ibv_wc_status status);
  void break_off(Status why);
  /// Nobody waits for the posts under way any more. True: they have got there, or never will.
  bool leave();
  /// Opens it. False: it is not open yet.
  Result<bool> is_up();
  [[nodiscard]] const Address& peer() const { return peer_; }

 private:
  enum class State { kIdle, kConnecting, kUp, kBroken };
  Status start();
  Status connect(Clock::time_point now);
  void drop_id();
  /// The oldest post is over.
  void retire(const Status& status);

  Device& device_;
  Address self_, peer_;
  std::uint32_t index_;
  Purpose purpose_;
  State state_ = State::kIdle;
  Status why_;
  rdma_cm_id* id_ = nullptr;
  Clock::time_point called_at_;

  struct Shared {                            // in registered memory
    alignas(64) std::uint64_t taken_up = 0;  // written by the peer
    std::array<MessageHead, kSendDepth> heads;
  };
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<Memory> memory_;
  std::uint64_t credits_used_ = 0;
  // Posts under way are those numbered completed_ to posted_ - 1; in a ring.
  std::array<wire::Operation*, kSendDepth> under_way_{};
  std::uint64_t posted_ = 0, completed_ = 0;
  int unsignaled_ = 0;
  bool last_posted_ = false;
};

/// wr_id of what an Incoming posts; an Outgoing's has its index and the post's number.
inline constexpr std::uint64_t kCreditsTold = ~UINT64_C(0);
/// wr_id of a receive whose message is placed; all others have an entry's address.
inline constexpr std::uint64_t kPlacedReceive = 1;

/// Opened by a peer: from where messages come.
class Incoming {
 public:
  Incoming(Device& device, rdma_cm_id* id, const Request& request)
      : device_(device), id_(id), request_(request) {}
  ~Incoming();
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  Status accept();
  [[nodiscard]] std::uint64_t from() const { return request_.from; }
  [[nodiscard]] bool places() const { return request_.purpose == Purpose::kPlaced; }
  /// The next message fills the list; `label` is what it must have as its immediate. False: too
  /// many are posted.
  Result<bool> post_placed(std::span<ibv_sge> list, std::uint32_t label,
                           wire::Operation& operation);
  /// The oldest receive is over.
  void on_placed(const ibv_wc& completion);
  /// So are all: the device lets go of their memory.
  void end_placed(const Status& why);
  [[nodiscard]] std::uint32_t number() const { return id_->qp->qp_num; }
  /// One more message has been taken up; now and then the peer is told.
  void take_up();
  /// Tells it what it has not been told for want of room.
  void tell_rest();
  void on_completion() { under_way_ = false; }
  void close() { closed_ = true; }

 private:
  void tell();

  Device& device_;
  rdma_cm_id* id_;
  Request request_;
  std::uint64_t taken_up_ = 0, told_ = 0;
  std::unique_ptr<std::uint64_t> word_;  // what is being told, in registered memory
  std::unique_ptr<Memory> memory_;
  bool under_way_ = false;
  bool closed_ = false;
  struct Placed {
    wire::Operation* operation = nullptr;
    std::uint32_t label = 0;
  };
  std::array<Placed, kPlacedDepth> placed_{};  // posted: ended_ to posted_ - 1; in a ring
  std::uint64_t posted_ = 0, ended_ = 0;
  bool broken_ = false;  // none is posted any more
};

}  // namespace carillon::verbs

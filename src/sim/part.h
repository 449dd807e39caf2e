// SPDX-License-Identifier: Apache-2.0
//
// A strand of a rank's schedule, as compactly as the simulator needs it: steps without addresses.
// What differs from rank to rank in the usual algorithm is only who the peers are; so the steps
// are a *shape*, which ranks share, and the peers a list of each rank's own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "machine/port.h"
#include "schedule/schedule.h"

namespace carillon::sim {

/// How long a buffer is, or a list.
std::int64_t length_of(const Buffer& buffer, const Tables& tables);
std::int64_t length_of(std::span<const Buffer> list, const Tables& tables);

/// Of what switches send down: no channel of a schedule.
inline constexpr auto kFromSwitches = static_cast<Channel>(kChannels);

/// What lending (base/lent_messages.h) has to do with an op.
enum class Lending : std::uint8_t {
  kNone,
  kAlways,    ///< put, send: the message is lent
  kIfLanded,  ///< put: it is, if the message that it passes on was, and landed
  kLands,     ///< wait, recv: a lent message is read to where it stays; copy: which spares this
};

/// One op. Shapes are compared bytewise: there is no padding.
struct Step {
  OpKind kind = OpKind::kCopy;
  Channel channel = Channel::kPair;
  bool credited = false;  ///< put, signal: the channel takes more messages than its window
  Lending lending = Lending::kNone;
  std::uint32_t peer = 0;      ///< place in the list of peers
  std::uint32_t transfer = 0;  ///< messages: which Transfer
  /// wait: the step that releases the message; repeat: its body; aggregate: whether it gives any.
  std::uint32_t link = 0;
  /// Messages: the number, and how it moves per round. copy and reduce: how long (time());
  /// aggregate: the bytes of the result (time()).
  std::int32_t number = 0, stride = 0;

  [[nodiscard]] std::int64_t time() const {  ///< or of a repeat the rounds
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) << 32 |
                                     static_cast<std::uint32_t>(number));
  }
  void set_time(std::int64_t value) {
    number = static_cast<std::int32_t>(value & 0xffffffff);
    stride = static_cast<std::int32_t>(value >> 32);
  }
};
static_assert(sizeof(Step) == 24);

struct Shape {
  std::vector<Step> steps;
  std::size_t peers = 0;  ///< how many its ranks name
  std::int64_t users = 0;
};

/// The shapes in use.
class ShapeTable {
 public:
  /// The shape of these steps, with one more user.
  Shape* get(const std::vector<Step>& steps, std::size_t peers);
  static void give_back(Shape* shape) { --shape->users; }

 private:
  void sweep();

  std::unordered_multimap<std::uint64_t, std::unique_ptr<Shape>> shapes_;
  std::array<Shape*, 64> recent_{};  // by hash: those used last
  std::size_t sweep_at_ = 1024;
};

/// The different messages of a call, by length and list, and what they cost.
class TransferTable {
 public:
  struct Costs {
    machine::Transfer transfer;
    std::int64_t put_ps = 0, send_ps = 0, recv_ps = 0;    ///< CPU, between nodes
    std::int64_t local_put_ps = 0, local_recv_ps = 0;     ///< CPU, within one
    std::int64_t multicast_ps = 0, receive_group_ps = 0;  ///< CPU, to and from a group
    std::int64_t deliver_ps = 0;  ///< NIC, per process of a node after the first
    /// What of those is copying a payload together or apart.
    std::int64_t put_copy_ps = 0, send_copy_ps = 0, recv_copy_ps = 0;
    std::int64_t group_copy_ps = 0;  ///< of a multicast, and of receiving one
    std::int64_t local_put_copy_ps = 0, local_recv_copy_ps = 0;
    std::int64_t read_lent_ps = 0;              ///< CPU, to read it in the memory of its writer
    std::vector<machine::Occupancy> by_levels;  ///< of NICs and buses
    std::int64_t memory_ps = 0;                 ///< of the node's memory, to copy it once
  };

  explicit TransferTable(const machine::Machine& machine) : machine_(machine) {}
  /// Of a put, signal or wait, of what a copy or reduce makes, or of a send or recv.
  std::uint32_t index(machine::Transfer transfer, OpKind kind);
  [[nodiscard]] const Costs& operator[](std::uint32_t index) const { return costs_[index]; }

 private:
  struct Key {
    std::int64_t bytes = -1;
    std::int32_t entries = 0;
    bool registered = false;
    bool two_sided = false;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(key.bytes) * 0x9e3779b9 +
             static_cast<std::size_t>(key.entries) * 4 + (key.registered ? 2 : 0) +
             (key.two_sided ? 1 : 0);
    }
  };

  const machine::Machine& machine_;
  std::vector<Costs> costs_;
  std::unordered_map<Key, std::uint32_t, Hash> indices_;
  struct Last {  // of each kind of op
    Key key;
    std::uint32_t index = 0;
  };
  std::array<Last, kOpKinds> last_;
};

/// Lists of peers, in memory that is used again.
class PeerPool {
 public:
  std::uint32_t* take(std::size_t size);
  void give_back(std::uint32_t* list, std::size_t size);

 private:
  static std::size_t rounded(std::size_t size) { return (size + 3) / 4; }  // in fours

  std::vector<std::vector<std::uint32_t*>> free_;
  std::vector<std::unique_ptr<std::uint32_t[]>> blocks_;
  std::size_t left_ = 0;  // of the last block
};

/// A strand, or a window of it.
struct Part {
  Shape* shape = nullptr;
  std::uint32_t* peers = nullptr;
};

/// Makes parts of schedules.
class Compiler {
 public:
  /// Messages of a stage, and stages, that can be told apart.
  static constexpr std::int32_t kStageMessages = 1 << 24, kStages = 16;
  Compiler(const machine::Machine& machine, TransferTable* transfers)
      : machine_(machine), transfers_(*transfers) {}

  /// How messages are matched, and which puts take credits.
  enum class Messages : std::uint8_t {
    kNumbered,         ///< by their numbers; credits for channels with more than the window
    kInOrder,          ///< in their order, numbers are zero; credits as far as the part shows,
    kInOrderCredited,  ///< or for every put
  };
  struct Rules {
    Messages messages = Messages::kNumbered;
    std::int32_t window = 1;    ///< Limits::window
    std::int32_t stage = 0;     ///< whose messages are numbered from 0 again
    bool all_credited = false;  ///< a stage's part does not tell how many there are in all
    bool tells_read = false;    ///< a wait's link says whether anything reads the message
    const Call* lender =
        nullptr;  ///< the call, where its messages may be lent; it is emitted whole
  };
  Part compile(const Schedule& schedule, const Strand& strand, const Local& local,
               const Rules& rules);
  /// Whether a channel has more messages than the window.
  [[nodiscard]] static bool needs_credits(const Schedule& schedule, std::int32_t window);
  void give_back(Part* part);

 private:
  struct Context {
    const Schedule& schedule;
    const Strand& strand;
    const Local& local;
    const Rules& rules;
  };

  [[nodiscard]] bool is_registered(std::span<const Buffer> list) const;
  [[nodiscard]] static bool has_many(const Schedule& schedule, std::int32_t window);
  [[nodiscard]] static bool credits_all(const Rules& rules) {
    return rules.messages == Messages::kInOrderCredited || rules.all_credited;
  }
  Step step_of(const Context& context, const Op& op);
  std::uint32_t place(Rank peer);
  void mark_credited(const Context& context);
  void link_releases(const Context& context);
  bool mark_lent(const Context& context);
  void shorten_loops(const Context& context);

  const machine::Machine& machine_;
  TransferTable& transfers_;
  ShapeTable shapes_;
  PeerPool pool_;
  std::vector<Step> steps_;            // of the part being compiled,
  std::vector<std::uint32_t> places_;  // in them, of each op, or of what comes after one without,
  std::vector<std::uint32_t> peers_;   // and its peers
};

}  // namespace carillon::sim

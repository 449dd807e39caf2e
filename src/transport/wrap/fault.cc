// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/fault.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace carillon::wrap {
namespace {

using wire::Operation;
using wire::Peer;
using wire::Piece;
using wire::RemoteMemory;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostRounds = 8;  // of progress, that something comes late
constexpr auto kRetransmission = std::chrono::milliseconds(10);  // until a loss is noticed
constexpr std::size_t kMostHeld = 256;                           // then posts are refused

enum class Kind { kPut, kGet, kSend, kSendPlaced };

// A post that is kept back. Its pieces stay where they are: its operation is under way.
struct Held {
  Kind kind = Kind::kPut;
  Peer peer = -1;
  std::vector<Piece> pieces;
  RemoteMemory remote;
  std::optional<std::uint32_t> immediate;
  std::uint64_t tag = 0;
  Operation* operation = nullptr;
  std::uint64_t due_round = 0;
  Clock::time_point due_time;
  bool overtakable = false;
};

struct Arrival {
  std::uint32_t immediate = 0;
  std::uint64_t due_round = 0;
};

class FaultWire final : public wire::Wire, private wire::Listener {
 public:
  FaultWire(std::unique_ptr<wire::Wire> inner, const Faults& faults)
      : inner_(std::move(inner)),
        faults_(faults),
        random_(faults.seed),
        capabilities_(inner_->capabilities()) {
    capabilities_.inline_bytes = 0;  // what is kept back is read later
    if (faults.reorder > 0) capabilities_.ordered = false;
  }

  [[nodiscard]] const wire::Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }
  Result<Peer> add_peer(std::span<const std::byte> address) override;
  Result<std::unique_ptr<wire::Registration>> register_memory(
      std::span<std::byte> memory) override {
    return inner_->register_memory(memory);
  }
  Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                   std::optional<std::uint32_t> immediate, Operation& operation) override;
  Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                   Operation& operation) override;
  Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                    Operation& operation) override;
  Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                    Operation& operation) override;
  Result<bool> meet(Peer peer) override { return inner_->meet(peer); }
  Result<bool> send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                           Operation& operation) override;
  Result<bool> recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                           Operation& operation) override;
  void stop_awaiting(Operation& operation) override { inner_->stop_awaiting(operation); }
  void cut_off(Peer peer, const Status& why) override {
    end_held(peer, why);
    inner_->cut_off(peer, why);
  }
  [[nodiscard]] int wait_descriptor() const override { return inner_->wait_descriptor(); }
  bool ready_to_wait() override {
    return held_.empty() && arrivals_.empty() && repeated_.empty() && inner_->ready_to_wait();
  }
  Status progress(wire::Listener& listener) override;

 private:
  bool drawn(double share) { return share > 0 && shares_(random_) < share; }
  std::uint64_t some_rounds_on() { return round_ + 1 + random_() % kMostRounds; }
  [[nodiscard]] Status broken() const {
    return {Code::kPeerDead, capabilities_.name + ": the connection broke (CARILLON_FAULT)"};
  }
  Result<bool> post(Held what, std::span<const Piece> pieces, std::size_t max_bytes,
                    Operation& operation);
  void break_connection(Peer peer);
  void end_held(Peer peer, const Status& why);
  // Must `what` wait for `earlier`, which is kept back?
  static bool waits_for(const Held& what, const Held& earlier) {
    return what.peer == earlier.peer &&
           (!earlier.overtakable ||
            (what.kind == Kind::kSendPlaced && earlier.kind == Kind::kSendPlaced) ||
            (what.kind == Kind::kSend && earlier.kind == Kind::kSend && what.tag == earlier.tag));
  }
  Result<bool> pass_on(const Held& what, std::span<const Piece> pieces);
  void pass_on_held();
  void on_put(std::uint32_t immediate) override;
  void tell(wire::Listener& listener);

  std::unique_ptr<wire::Wire> inner_;
  Faults faults_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> shares_;
  wire::Capabilities capabilities_;
  std::vector<bool> is_broken_;  // by peer
  std::uint64_t posts_ = 0;
  std::uint64_t round_ = 0;
  std::deque<Held> held_;         // in the order of posting
  std::deque<Arrival> arrivals_;  // told in this order
  std::vector<Arrival> repeated_;
};

Result<Peer> FaultWire::add_peer(std::span<const std::byte> address) {
  auto peer = inner_->add_peer(address);
  if (peer.ok()) is_broken_.resize(static_cast<std::size_t>(peer.value()) + 1);
  return peer;
}

Result<bool> FaultWire::pass_on(const Held& what, std::span<const Piece> pieces) {
  switch (what.kind) {
    case Kind::kPut:
      return inner_->put(what.peer, pieces, what.remote, what.immediate, *what.operation);
    case Kind::kGet: return inner_->get(what.peer, what.remote, pieces, *what.operation);
    case Kind::kSendPlaced:
      return inner_->send_placed(what.peer, pieces, what.tag, *what.operation);
    case Kind::kSend: break;
  }
  return inner_->send(what.peer, pieces, what.tag, *what.operation);
}

Result<bool> FaultWire::post(Held what, std::span<const Piece> pieces, std::size_t max_bytes,
                             Operation& operation) {
  what.operation = &operation;
  const bool known = what.peer >= 0 && static_cast<std::size_t>(what.peer) < is_broken_.size();
  if (!known || !check_list(capabilities_, pieces, max_bytes).ok()) return pass_on(what, pieces);
  if (is_broken_[static_cast<std::size_t>(what.peer)]) return broken();
  if (held_.size() >= kMostHeld || drawn(faults_.refuse)) return false;
  if (++posts_ == faults_.break_post) {
    break_connection(what.peer);
    operation.begin();
    operation.finish(broken());
    return true;
  }
  const bool delayed = drawn(faults_.delay);
  const bool lost = drawn(faults_.lose);
  what.overtakable = drawn(faults_.reorder) || ((delayed || lost) && !capabilities_.ordered);
  const bool waits = std::any_of(held_.begin(), held_.end(),
                                 [&](const Held& one) { return waits_for(what, one); });
  if (!delayed && !lost && !what.overtakable && !waits) return pass_on(what, pieces);
  if (delayed || what.overtakable) what.due_round = some_rounds_on();
  if (lost) what.due_time = Clock::now() + kRetransmission;
  what.pieces.assign(pieces.begin(), pieces.end());
  operation.begin();
  held_.push_back(std::move(what));
  return true;
}

void FaultWire::break_connection(Peer peer) {
  is_broken_[static_cast<std::size_t>(peer)] = true;
  end_held(peer, broken());
}

void FaultWire::end_held(Peer peer, const Status& why) {
  std::erase_if(held_, [&](const Held& one) {
    if (one.peer != peer) return false;
    one.operation->finish(why);
    return true;
  });
}

Result<bool> FaultWire::put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                            std::optional<std::uint32_t> immediate, Operation& operation) {
  return post({.kind = Kind::kPut, .peer = peer, .remote = to, .immediate = immediate}, from,
              capabilities_.max_bytes, operation);
}

Result<bool> FaultWire::get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                            Operation& operation) {
  return post({.kind = Kind::kGet, .peer = peer, .remote = from}, to, capabilities_.max_bytes,
              operation);
}

Result<bool> FaultWire::send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                             Operation& operation) {
  return post({.kind = Kind::kSend, .peer = peer, .tag = tag}, from, capabilities_.max_send_bytes,
              operation);
}

Result<bool> FaultWire::send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                                    Operation& operation) {
  return post({.kind = Kind::kSendPlaced, .peer = peer, .tag = tag}, from, capabilities_.max_bytes,
              operation);
}

Result<bool> FaultWire::recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                                    Operation& operation) {
  const auto index = static_cast<std::size_t>(peer);
  if (peer >= 0 && index < is_broken_.size() && is_broken_[index]) return broken();
  if (drawn(faults_.refuse)) return false;
  return inner_->recv_placed(peer, to, tag, operation);
}

// Nothing of it goes over the network.
Result<bool> FaultWire::recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                             Operation& operation) {
  const auto index = static_cast<std::size_t>(peer);
  if (peer >= 0 && index < is_broken_.size() && is_broken_[index]) return broken();
  if (drawn(faults_.refuse)) return false;
  return inner_->recv(peer, to, tag, operation);
}

void FaultWire::pass_on_held() {
  std::deque<Held> still;
  while (!held_.empty()) {
    Held one = std::move(held_.front());
    held_.pop_front();
    const bool waits = std::any_of(still.begin(), still.end(),
                                   [&](const Held& earlier) { return waits_for(one, earlier); });
    bool posted = false;
    if (!waits && one.due_round <= round_ && one.due_time <= Clock::now()) {
      const Result<bool> answer = pass_on(one, one.pieces);
      posted = !answer.ok() || answer.value();
      if (!answer.ok()) one.operation->finish(answer.status());
      if (!posted) one.operation->begin();  // a refusal has ended it
    }
    if (!posted) still.push_back(std::move(one));
  }
  held_ = std::move(still);
}

void FaultWire::on_put(std::uint32_t immediate) {
  arrivals_.push_back({immediate, drawn(faults_.delay) ? some_rounds_on() : 0});
}

void FaultWire::tell(wire::Listener& listener) {
  while (!arrivals_.empty() && arrivals_.front().due_round <= round_) {
    const Arrival first = arrivals_.front();
    arrivals_.pop_front();
    listener.on_put(first.immediate);
    if (drawn(faults_.duplicate)) repeated_.push_back({first.immediate, some_rounds_on()});
  }
  std::vector<Arrival> due;
  std::erase_if(repeated_, [&](const Arrival& one) {
    if (one.due_round > round_) return false;
    due.push_back(one);
    return true;
  });
  for (const Arrival& one : due) listener.on_put(one.immediate);
}

Status FaultWire::progress(wire::Listener& listener) {
  ++round_;
  if (!held_.empty()) pass_on_held();
  Status status = inner_->progress(*this);
  counters_ = inner_->counters();
  tell(listener);
  return status;
}

}  // namespace

std::unique_ptr<wire::Wire> with_faults(std::unique_ptr<wire::Wire> wire, const Faults& faults) {
  return std::make_unique<FaultWire>(std::move(wire), faults);
}

}  // namespace carillon::wrap

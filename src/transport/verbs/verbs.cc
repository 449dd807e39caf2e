// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/verbs.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <random>
#include <unordered_map>

#include "base/log.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/list.h"

namespace carillon::verbs {
namespace {

using wire::Operation;
using wire::Peer;
using wire::Piece;
using wire::RemoteMemory;

constexpr int kCompletionsAtOnce = 16;
// From here on two copies cost more than the extra round trip and registering do.
constexpr std::size_t kGetFromBytes = 16384;
// By models of such devices an entry of a list costs 10 to 50 ns, about what copying so many bytes
// costs. Measured only on soft-RoCE (benchmarks/list_entries.cc), where it is twice as much.
constexpr std::size_t kGatherFromBytes = 256;
// So many messages may wait for their recvs without holding back the credits that other messages of
// the same peers need. Who sends further ahead than its receivers allow runs out of credits.
constexpr std::size_t kMostEarly = 4096;
constexpr std::uint32_t kPlacedIndex = 1U << 31;  // in the index of a connection for what is placed
constexpr std::chrono::milliseconds kEndWithin(200);
constexpr int kRoundsPerEvents = 64;  // how often the connection manager is asked: a system call

// What tells a placed message from others.
std::uint32_t label_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag ^ tag >> 32); }

// A recv that waits for its message.
struct Posted {
  std::uint64_t from = 0;
  std::uint64_t tag = 0;
  std::vector<Piece> to;
  Operation* operation = nullptr;
};

// A message that waits for its recv.
struct Early {
  Incoming* connection = nullptr;
  bool holds_credit = false;
  std::uint64_t tag = 0;
  std::vector<std::byte> bytes;
};

class VerbsWire final : public wire::Wire {
 public:
  explicit VerbsWire(std::unique_ptr<Device> device);
  ~VerbsWire() override;

  [[nodiscard]] const wire::Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const override {
    return std::as_bytes(std::span(&self_, 1));
  }
  Result<Peer> add_peer(std::span<const std::byte> address) override;
  Result<std::unique_ptr<wire::Registration>> register_memory(std::span<std::byte> memory) override;
  Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                   std::optional<std::uint32_t> immediate, Operation& operation) override;
  Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                   Operation& operation) override;
  Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                    Operation& operation) override;
  Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                    Operation& operation) override;
  Result<bool> meet(Peer peer) override;
  Result<bool> send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                           Operation& operation) override;
  Result<bool> recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                           Operation& operation) override;
  void cut_off(Peer peer, const Status& why) override;
  Status progress(wire::Listener& listener) override;

 private:
  struct Post {  // what differs between the kinds of posts
    ibv_send_wr request = {};
    const MessageHead* head = nullptr;
    bool may_be_inline = false;
    bool uses_credit = false;
  };
  Result<bool> post(Outgoing& connection, std::span<const Piece> pieces, Post& what,
                    Operation& operation, std::uint64_t& counter);
  [[nodiscard]] Outgoing& messages_to(Peer peer) const {
    return *peers_[static_cast<std::size_t>(peer)];
  }
  Outgoing& placed_to(Peer peer);
  [[nodiscard]] Incoming* placed_from(std::uint64_t peer) const;
  void deliver(std::span<const std::byte> bytes, std::span<const Piece> to, Operation& operation);
  [[nodiscard]] Status check_peer(Peer peer) const;
  Status manage_connections();
  void on_event(const rdma_cm_event& event);
  void on_request(const rdma_cm_event& event);
  [[nodiscard]] Status gone() const;
  [[nodiscard]] bool has_gone(std::uint64_t peer) const;
  void end_posts();
  void give_up_gone();
  Status take_sent();
  Status take_received(wire::Listener& listener);
  void take_message(Incoming& connection, const ReceiveEntry& entry, std::uint32_t bytes);

  std::unique_ptr<Device> device_;
  wire::Capabilities capabilities_;
  Address self_;
  std::vector<std::unique_ptr<Outgoing>> peers_;
  std::vector<std::unique_ptr<Outgoing>> placed_;  // by peer, for what is placed; null: none yet
  std::unordered_map<std::uint32_t, std::unique_ptr<Incoming>> incoming_;  // by queue pair
  std::unordered_map<std::uint64_t, Incoming*> placing_;  // of these, for what is placed, by peer
  std::list<Posted> posted_;
  std::list<Early> early_;
  std::vector<std::uint64_t> gone_;  // peers that have closed their connection to here
  bool more_have_gone_ = false;
  bool refusal_told_ = false;
  int rounds_ = 0;
};

VerbsWire::VerbsWire(std::unique_ptr<Device> device) : device_(std::move(device)) {
  self_ = {.magic = kMagic,
           .id = 0,
           .ipv4 = device_->address().sin_addr.s_addr,
           .port = device_->address().sin_port};
  std::random_device random;
  self_.id = std::uint64_t{random()} << 32 | random();
  capabilities_ = {.name = "verbs " + device_->name(),
                   .max_pieces = static_cast<std::size_t>(device_->max_pieces()),
                   .inline_bytes = device_->inline_bytes(),
                   .max_bytes = device_->max_message_bytes(),
                   .max_send_bytes = kEagerBytes,
                   .registers_local = true,
                   .get_from_bytes = kGetFromBytes,
                   .gather_from_bytes = kGatherFromBytes,
                   .ordered = true,  // a reliable connection is
                   .max_get_pieces = static_cast<std::size_t>(device_->max_read_pieces())};
}

VerbsWire::~VerbsWire() {
  end_posts();
  incoming_.clear();
  placed_.clear();
  peers_.clear();
}

// What was copied when it was posted is done, and may not have left yet.
void VerbsWire::end_posts() {
  const auto end = std::chrono::steady_clock::now() + kEndWithin;
  const auto has_left = [](const auto& peer) { return peer->leave(); };
  while (std::ranges::count_if(peers_, has_left) < std::ssize(peers_)) {
    if (!take_sent().ok() || std::chrono::steady_clock::now() > end) return;
  }
}

Result<Peer> VerbsWire::add_peer(std::span<const std::byte> address) {
  Address peer;
  if (address.size() == sizeof peer) std::memcpy(&peer, address.data(), sizeof peer);
  if (address.size() != sizeof peer || peer.magic != kMagic) {
    return Status(Code::kUnsupported, "a member has an address that is none of " +
                                          capabilities_.name +
                                          "; do all nodes choose the same transport and run the "
                                          "same version of carillon?");
  }
  const auto index = static_cast<std::uint32_t>(peers_.size());
  peers_.push_back(std::make_unique<Outgoing>(*device_, self_, peer, index));
  return static_cast<Peer>(index);
}

Result<std::unique_ptr<wire::Registration>> VerbsWire::register_memory(
    std::span<std::byte> memory) {
  auto registered = device_->register_memory(memory.data(), memory.size());
  if (!registered.ok()) return registered.status();
  ++counters_.registrations;
  return std::unique_ptr<wire::Registration>(std::move(registered.value()));
}

Status VerbsWire::check_peer(Peer peer) const {
  if (peer >= 0 && static_cast<std::size_t>(peer) < peers_.size()) return {};
  return {Code::kInvalidArgument, "no peer " + std::to_string(peer)};
}

void VerbsWire::deliver(std::span<const std::byte> bytes, std::span<const Piece> to,
                        Operation& operation) {
  if (bytes.size() > wire::total_bytes(to)) {
    operation.finish({Code::kMismatch, "a message of " + std::to_string(bytes.size()) +
                                           " bytes where " + std::to_string(wire::total_bytes(to)) +
                                           " were expected"});
    return;
  }
  scatter(bytes, to);
  counters_.copied_bytes += bytes.size();
  operation.finish({}, bytes.size());
}

Result<bool> VerbsWire::post(Outgoing& connection, std::span<const Piece> pieces, Post& what,
                             Operation& operation, std::uint64_t& counter) {
  Result<bool> ready = connection.ready(what.uses_credit);
  if (!ready.ok() || !ready.value()) return ready;
  List list(pieces, what.head != nullptr);
  const std::size_t bytes =
      wire::total_bytes(pieces) + (what.head == nullptr ? 0 : sizeof(MessageHead));
  const bool inline_data = what.may_be_inline && bytes <= device_->inline_bytes();
  Status status = connection.post(what.request, list.all(), what.head, inline_data,
                                  what.uses_credit, operation);
  if (!status.ok()) return status;
  ++counter;
  return true;
}

Result<bool> VerbsWire::put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                            std::optional<std::uint32_t> immediate, Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  if (Status s = check_list(capabilities_, from, capabilities_.max_bytes); !s.ok()) return s;
  Post what{.may_be_inline = true, .uses_credit = immediate.has_value()};
  what.request.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  what.request.imm_data = htonl(immediate.value_or(0));
  what.request.wr.rdma.remote_addr = to.address;
  what.request.wr.rdma.rkey = static_cast<std::uint32_t>(to.key);
  return post(messages_to(peer), from, what, operation, counters_.puts);
}

Result<bool> VerbsWire::get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                            Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  const wire::Capabilities& can = capabilities_;
  if (Status s = check_list(can, to, can.max_bytes, can.max_get_pieces); !s.ok()) return s;
  Post what;
  what.request.opcode = IBV_WR_RDMA_READ;
  what.request.wr.rdma.remote_addr = from.address;
  what.request.wr.rdma.rkey = static_cast<std::uint32_t>(from.key);
  return post(messages_to(peer), to, what, operation, counters_.gets);
}

Result<bool> VerbsWire::send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                             Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  if (Status s = check_list(capabilities_, from, capabilities_.max_send_bytes); !s.ok()) return s;
  const MessageHead head{.tag = tag, .bytes = wire::total_bytes(from)};
  Post what{.head = &head, .may_be_inline = true, .uses_credit = true};
  what.request.opcode = IBV_WR_SEND;
  return post(messages_to(peer), from, what, operation, counters_.sends);
}

Result<bool> VerbsWire::recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                             Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  if (Status s = check_list(capabilities_, to, SIZE_MAX); !s.ok()) return s;
  const std::uint64_t from = peers_[static_cast<std::size_t>(peer)]->peer().id;
  operation.begin();
  const auto early = std::find_if(early_.begin(), early_.end(), [&](const Early& message) {
    return message.tag == tag && message.connection->from() == from;
  });
  if (early == early_.end() && has_gone(from)) {
    operation.finish(gone());
    return true;
  }
  if (early == early_.end()) {
    posted_.push_back({from, tag, {to.begin(), to.end()}, &operation});
    return true;
  }
  deliver(early->bytes, to, operation);
  if (early->holds_credit) early->connection->take_up();
  early_.erase(early);
  return true;
}

Outgoing& VerbsWire::placed_to(Peer peer) {
  const auto index = static_cast<std::size_t>(peer);
  if (placed_.size() <= index) placed_.resize(index + 1);
  if (!placed_[index]) {
    placed_[index] = std::make_unique<Outgoing>(*device_, self_, messages_to(peer).peer(),
                                                static_cast<std::uint32_t>(index) | kPlacedIndex,
                                                Purpose::kPlaced);
  }
  return *placed_[index];
}

Incoming* VerbsWire::placed_from(std::uint64_t peer) const {
  const auto found = placing_.find(peer);
  return found == placing_.end() ? nullptr : found->second;
}

Result<bool> VerbsWire::meet(Peer peer) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  return placed_to(peer).is_up();
}

Result<bool> VerbsWire::send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                                    Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  if (Status s = check_list(capabilities_, from, capabilities_.max_bytes); !s.ok()) return s;
  Post what{.may_be_inline = true};
  what.request.opcode = IBV_WR_SEND_WITH_IMM;
  what.request.imm_data = htonl(label_of(tag));
  return post(placed_to(peer), from, what, operation, counters_.sends);
}

Result<bool> VerbsWire::recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                                    Operation& operation) {
  if (Status s = check_peer(peer); !s.ok()) return s;
  if (Status s = check_list(capabilities_, to, capabilities_.max_bytes); !s.ok()) return s;
  const std::uint64_t from = messages_to(peer).peer().id;
  if (has_gone(from)) return gone();
  Incoming* const connection = placed_from(from);
  if (connection == nullptr) return false;
  List list(to, false);
  auto posted = connection->post_placed(list.all(), label_of(tag), operation);
  if (!posted.ok() || !posted.value()) return posted;
  ++counters_.receives;
  count_placed(list.count);
  return true;
}

void VerbsWire::cut_off(Peer peer, const Status& why) {
  if (!check_peer(peer).ok()) return;
  Outgoing& connection = messages_to(peer);
  connection.break_off(why);
  placed_to(peer).break_off(why);
  if (Incoming* const places = placed_from(connection.peer().id)) places->end_placed(why);
  posted_.remove_if([&](const Posted& one) {
    if (one.from != connection.peer().id) return false;
    one.operation->finish(why);
    return true;
  });
}

// The entry may hold anything: a peer wrote it.
void VerbsWire::take_message(Incoming& connection, const ReceiveEntry& entry, std::uint32_t bytes) {
  if (bytes < sizeof(MessageHead) || entry.head.bytes != bytes - sizeof(MessageHead)) {
    connection.take_up();
    return;
  }
  const std::span<const std::byte> message(entry.bytes, entry.head.bytes);
  const auto posted = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& one) {
    return one.tag == entry.head.tag && one.from == connection.from();
  });
  if (posted == posted_.end()) {
    const bool holds_credit = early_.size() >= kMostEarly;
    counters_.copied_bytes += message.size();
    early_.push_back({&connection, holds_credit, entry.head.tag, {message.begin(), message.end()}});
    if (!holds_credit) connection.take_up();
    return;
  }
  deliver(message, posted->to, *posted->operation);
  posted_.erase(posted);
  connection.take_up();
}

Status VerbsWire::take_sent() {
  std::array<ibv_wc, kCompletionsAtOnce> done;
  for (;;) {
    const int count = ibv_poll_cq(device_->sent(), kCompletionsAtOnce, done.data());
    if (count < 0) return failure(capabilities_.name + ": completion queue", EIO);
    counters_.completions += static_cast<std::uint64_t>(count);
    for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
      if (one.wr_id == kCreditsTold) {
        ++counters_.puts;
        const auto incoming = incoming_.find(one.qp_num);
        if (incoming != incoming_.end()) incoming->second->on_completion();
      } else {
        const auto index = static_cast<std::uint32_t>(one.wr_id >> 16);
        auto& connections = (index & kPlacedIndex) != 0 ? placed_ : peers_;
        connections[index & ~kPlacedIndex]->on_completion(static_cast<std::uint16_t>(one.wr_id),
                                                          one.status);
      }
    }
    if (count < kCompletionsAtOnce) return {};
  }
}

Status VerbsWire::take_received(wire::Listener& listener) {
  std::array<ibv_wc, kCompletionsAtOnce> done;
  for (;;) {
    const int count = ibv_poll_cq(device_->received(), kCompletionsAtOnce, done.data());
    if (count < 0) return failure(capabilities_.name + ": completion queue", EIO);
    counters_.completions += static_cast<std::uint64_t>(count);
    for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
      const auto from = incoming_.find(one.qp_num);
      if (one.wr_id == kPlacedReceive) {
        if (from != incoming_.end()) from->second->on_placed(one);
        continue;
      }
      auto& entry = *reinterpret_cast<ReceiveEntry*>(one.wr_id);
      if (one.status == IBV_WC_SUCCESS && from != incoming_.end()) {
        if (one.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
          ++counters_.immediates;
          listener.on_put(ntohl(one.imm_data));
          from->second->take_up();
        } else {
          take_message(*from->second, entry, one.byte_len);
        }
      }
      if (Status status = device_->post_receive(entry); !status.ok()) return status;
      ++counters_.receives;
    }
    if (count < kCompletionsAtOnce) return {};
  }
}

void VerbsWire::on_request(const rdma_cm_event& event) {
  Request request;
  const rdma_conn_param& param = event.param.conn;
  if (param.private_data != nullptr && param.private_data_len >= sizeof request) {
    std::memcpy(&request, param.private_data, sizeof request);
  }
  if (request.magic != kMagic || request.to != self_.id) {
    refuse(device_->library(), event.id, Refusal::kStranger);
    device_->library().destroy_id(event.id);
    return;
  }
  auto connection = std::make_unique<Incoming>(*device_, event.id, request);
  if (Status status = connection->accept(); !status.ok()) {
    if (!std::exchange(refusal_told_, true)) log(LogLevel::kWarning, status.to_string());
    refuse(device_->library(), event.id, Refusal::kNoRoom);
    connection->close();
    return;
  }
  const std::uint32_t number = connection->number();
  if (connection->places()) placing_.emplace(request.from, connection.get());
  incoming_[number] = std::move(connection);
}

Status VerbsWire::gone() const {
  return {Code::kPeerDead, capabilities_.name + ": the peer has closed its connection to here"};
}

bool VerbsWire::has_gone(std::uint64_t peer) const {
  return std::find(gone_.begin(), gone_.end(), peer) != gone_.end();
}

// What has not been received yet from there never will be. What had come is in the queue: first
// that is taken.
void VerbsWire::give_up_gone() {
  posted_.remove_if([&](const Posted& posted) {
    if (!has_gone(posted.from)) return false;
    posted.operation->finish(gone());
    return true;
  });
  for (auto& [number, connection] : incoming_) {
    if (has_gone(connection->from())) connection->end_placed(gone());
  }
  // Nor will puts come, and only a post that fails tells of that.
  for (const auto& peer : peers_) {
    if (has_gone(peer->peer().id)) peer->break_off(gone());
  }
  more_have_gone_ = false;
}

void VerbsWire::on_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    on_request(event);
  } else if (event.id->context != nullptr) {
    static_cast<Outgoing*>(event.id->context)->on_event(event);
  } else if (event.event == RDMA_CM_EVENT_DISCONNECTED && event.id->qp != nullptr) {
    const auto incoming = incoming_.find(event.id->qp->qp_num);
    if (incoming == incoming_.end()) return;
    incoming->second->close();
    gone_.push_back(incoming->second->from());
    more_have_gone_ = true;
  }
}

Status VerbsWire::manage_connections() {
  Event event;
  while (next_event(*device_, &event)) on_event(event.what);
  return errno == EAGAIN || errno == EINTR ? Status()
                                           : failure(capabilities_.name + ": events", errno);
}

Status VerbsWire::progress(wire::Listener& listener) {
  if (rounds_++ % kRoundsPerEvents == 0) {
    if (Status status = manage_connections(); !status.ok()) return status;
  }
  if (Status status = take_sent(); !status.ok()) return status;
  if (Status status = take_received(listener); !status.ok()) return status;
  if (more_have_gone_) give_up_gone();
  if (rounds_ % kRoundsPerEvents != 0) return {};
  for (auto& [number, connection] : incoming_) connection->tell_rest();
  return {};
}

}  // namespace

Result<std::unique_ptr<wire::Wire>> open_wire(const Options& options) {
  const auto library = Library::load();
  if (!library.ok()) return library.status();
  auto device = Device::open(*library.value(), options);
  if (!device.ok()) return device.status();
  return std::unique_ptr<wire::Wire>(std::make_unique<VerbsWire>(std::move(device.value())));
}

}  // namespace carillon::verbs

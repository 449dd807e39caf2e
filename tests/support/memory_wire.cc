// SPDX-License-Identifier: Apache-2.0
#include "support/memory_wire.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace carillon::test {
namespace {

using wire::Operation;
using wire::Peer;
using wire::Piece;
using wire::RemoteMemory;

class Region final : public wire::Registration {
 public:
  explicit Region(std::byte* start) : start_(reinterpret_cast<std::uint64_t>(start)) {}
  [[nodiscard]] RemoteMemory remote() const override { return {start_, 1}; }

 private:
  std::uint64_t start_;
};

std::vector<std::byte> joined(std::span<const Piece> pieces) {
  std::vector<std::byte> bytes;
  for (const Piece& piece : pieces) {
    bytes.insert(bytes.end(), piece.data, piece.data + piece.bytes);
  }
  return bytes;
}

std::size_t spread(std::span<const std::byte> bytes, std::span<const Piece> pieces) {
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    const std::size_t part = std::min(piece.bytes, bytes.size() - at);
    std::memcpy(piece.data, bytes.data() + at, part);
    at += part;
  }
  return at;
}

}  // namespace

class MemoryNet::End final : public wire::Wire {
 public:
  explicit End(MemoryNet& net) : net_(net), self_(net.ends_.size()) {
    capabilities_ = {.name = "memory",
                     .max_pieces = 4,
                     .inline_bytes = 64,
                     .max_bytes = 1 << 20,
                     .max_send_bytes = 1 << 20,
                     .ordered = true,
                     .crossing_loses = net.crossing_loses_};
    net_.ends_.push_back(this);
  }
  ~End() override { net_.ends_[self_] = nullptr; }

  [[nodiscard]] const wire::Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const override {
    return std::as_bytes(std::span(&self_, 1));
  }
  Result<Peer> add_peer(std::span<const std::byte> address) override {
    std::uint64_t other = 0;
    if (address.size() != sizeof other) return Status(Code::kUnsupported, "no address");
    std::memcpy(&other, address.data(), sizeof other);
    peers_.push_back(other);
    return static_cast<Peer>(peers_.size() - 1);
  }
  Result<std::unique_ptr<wire::Registration>> register_memory(
      std::span<std::byte> memory) override {
    return std::unique_ptr<wire::Registration>(std::make_unique<Region>(memory.data()));
  }
  Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                   std::optional<std::uint32_t> immediate, Operation& operation) override {
    auto room = begin(peer, operation);
    if (!room.ok() || !room.value()) return room;
    net_.posted_.push_back(immediate.value_or(0));
    if (net_.failures_ > 0 || net_.losses_ > 0) {
      const bool fails = net_.failures_ > 0;
      --(fails ? net_.failures_ : net_.losses_);
      operation.finish(fails ? ended() : Status());
      return true;
    }
    const std::vector<std::byte> bytes = joined(from);
    if (!bytes.empty())
      std::memcpy(reinterpret_cast<void*>(to.address), bytes.data(), bytes.size());
    if (immediate) end_of(peer).arrived_.push_back(*immediate);
    if (net_.late_failures_ > 0) {
      --net_.late_failures_;
      failing_.push_back(&operation);
    } else {
      operation.finish({});
    }
    return true;
  }
  Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                   Operation& operation) override {
    auto room = begin(peer, operation);
    if (!room.ok() || !room.value()) return room;
    spread({reinterpret_cast<const std::byte*>(from.address), wire::total_bytes(to)}, to);
    operation.finish({});
    return true;
  }
  Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                    Operation& operation) override {
    if (tag >> wire::kTagBits != 0) return Status(Code::kInvalidArgument, "such a long tag");
    auto room = begin(peer, operation);
    if (!room.ok() || !room.value()) return room;
    net_.posted_.push_back(tag);
    End& other = end_of(peer);
    other.early_.push_back({self_, tag, joined(from), nullptr});
    other.match();
    operation.finish({});
    return true;
  }
  Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                    Operation& operation) override {
    auto room = begin(peer, operation);
    if (!room.ok() || !room.value()) return room;
    recvs_.push_back(
        {{peers_[static_cast<std::size_t>(peer)], tag, {}, &operation}, {to.begin(), to.end()}});
    match();
    return true;
  }
  void cut_off(Peer peer, const Status& why) override {
    const std::uint64_t from = peers_[static_cast<std::size_t>(peer)];
    cut_off_[from] = why;
    std::erase_if(recvs_, [&](const Recv& recv) {
      if (recv.wanted.from != from) return false;
      recv.wanted.operation->finish(why);
      return true;
    });
  }
  Status progress(wire::Listener& listener) override {
    const std::vector<Operation*> failing = std::exchange(failing_, {});
    for (const std::uint32_t immediate : std::exchange(arrived_, {})) listener.on_put(immediate);
    for (Operation* const one : failing) one->finish(ended());
    return {};
  }
  bool ready_to_wait() override { return arrived_.empty() && failing_.empty(); }

  [[nodiscard]] std::size_t waiting() const { return recvs_.size(); }

 private:
  struct Message {
    std::uint64_t from = 0;
    std::uint64_t tag = 0;
    std::vector<std::byte> bytes;
    Operation* operation = nullptr;
  };
  struct Recv {
    Message wanted;
    std::vector<Piece> to;
  };

  Result<bool> begin(Peer peer, Operation& operation) {
    if (peer < 0 || static_cast<std::size_t>(peer) >= peers_.size()) {
      return Status(Code::kInvalidArgument, "no such peer");
    }
    const auto cut = cut_off_.find(peers_[static_cast<std::size_t>(peer)]);
    if (cut != cut_off_.end()) return cut->second;
    if (net_.refusals_ > 0) {
      --net_.refusals_;
      ++net_.refused_;
      return false;
    }
    operation.begin();
    return true;
  }
  static Status ended() { return {Code::kPeerDead, "the connection has ended"}; }
  End& end_of(Peer peer) { return *net_.ends_[peers_[static_cast<std::size_t>(peer)]]; }
  void match() {
    std::erase_if(recvs_, [&](const Recv& recv) {
      const auto found = std::find_if(early_.begin(), early_.end(), [&](const Message& one) {
        return one.from == recv.wanted.from && one.tag == recv.wanted.tag;
      });
      if (found == early_.end()) return false;
      recv.wanted.operation->finish({}, spread(found->bytes, recv.to));
      early_.erase(found);
      return true;
    });
  }

  MemoryNet& net_;
  const std::uint64_t self_;
  wire::Capabilities capabilities_;
  std::vector<std::uint64_t> peers_;
  std::map<std::uint64_t, Status> cut_off_;  // by address
  std::vector<std::uint32_t> arrived_;
  std::vector<Operation*> failing_;
  std::deque<Message> early_;
  std::vector<Recv> recvs_;
};

std::unique_ptr<wire::Wire> MemoryNet::open_end() { return std::make_unique<End>(*this); }

std::size_t MemoryNet::waiting_recvs() const {
  std::size_t sum = 0;
  for (const End* const end : ends_) sum += end == nullptr ? 0 : end->waiting();
  return sum;
}

}  // namespace carillon::test

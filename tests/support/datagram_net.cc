// SPDX-License-Identifier: Apache-2.0
#include "support/datagram_net.h"

#include <utility>

namespace carillon::test {
namespace {

using multicast::kMicrosecond;
constexpr multicast::Nanoseconds kLatency = 20 * kMicrosecond;

}  // namespace

class DatagramNet::End final : public multicast::Carrier {
 public:
  End(DatagramNet& net, std::size_t self) : net_(net), self_(self) {
    limits_ = {.name = "memory",
               .datagram_bytes = net.options_.datagram_bytes,
               .receive_packets = net.options_.receive_packets};
  }
  [[nodiscard]] const multicast::CarrierLimits& limits() const override { return limits_; }
  [[nodiscard]] std::span<const std::byte> address() const override {
    return std::as_bytes(std::span(&self_, 1));
  }
  Status add_member(std::span<const std::byte> address) override {
    if (address.size() != sizeof self_) return {Code::kInvalidArgument, "no address"};
    return {};
  }
  Status join(std::uint64_t /*name*/) override { return {}; }
  Result<bool> joined() override { return true; }
  bool send_group(std::span<const std::byte> packet) override {
    if (net_.refuses()) return false;
    for (std::size_t i = 0; i < net_.ends_.size(); ++i) {
      const bool hears = !net_.ends_[i].deaf && (i != self_ || net_.options_.loops_back);
      if (hears) net_.send(self_, i, packet);
    }
    return true;
  }
  bool send_member(multicast::Member member, std::span<const std::byte> packet) override {
    if (net_.refuses()) return false;
    net_.send(self_, member, packet);
    return true;
  }
  Status receive(multicast::CarrierListener& listener) override {
    ++net_.ends_[self_].reads;
    auto& queue = net_.ends_[self_].queue;
    while (!queue.empty()) {
      const Bytes bytes = std::move(queue.front());
      queue.pop_front();
      listener.on_packet(bytes);
    }
    return {};
  }
  [[nodiscard]] bool tells_at_any_time() const override { return true; }

 private:
  DatagramNet& net_;
  std::size_t self_;
  multicast::CarrierLimits limits_;
};

std::unique_ptr<multicast::Carrier> DatagramNet::carrier() {
  ends_.emplace_back();
  return std::make_unique<End>(*this, ends_.size() - 1);
}

bool DatagramNet::refuses() {
  const bool refused = drawn(options_.shares.refuse);
  refused_ += refused ? 1 : 0;
  return refused;
}

void DatagramNet::send(std::size_t from, std::size_t to, std::span<const std::byte> packet) {
  if (ends_[from].cut_off || ends_[to].cut_off || drawn(options_.shares.lose)) return;
  if (filter_ && filter_(from, to, packet)) return;
  const int copies = drawn(options_.shares.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    Bytes bytes(packet.begin(), packet.end());
    if (drawn(options_.shares.corrupt)) {
      bytes[random_() % bytes.size()] ^= static_cast<std::byte>(1U << (random_() % 8));
      if (drawn(0.3)) bytes.resize(random_() % bytes.size());
    }
    multicast::Nanoseconds time = now_ + kLatency + random_() % kMicrosecond;
    if (drawn(options_.shares.reorder)) time += random_() % (40 * kLatency);
    under_way_.emplace(time, Arrival{to, std::move(bytes)});
  }
}

void DatagramNet::advance_to(multicast::Nanoseconds time) {
  now_ = std::max(now_, time);
  while (!under_way_.empty() && under_way_.begin()->first <= now_) {
    Arrival& arrival = under_way_.begin()->second;
    Queue& end = ends_[arrival.to];
    if (end.queue.size() >= options_.receive_packets) {
      ++overflowed_;
    } else if (!end.cut_off) {
      end.queue.push_back(std::move(arrival.bytes));
    }
    under_way_.erase(under_way_.begin());
  }
}

}  // namespace carillon::test

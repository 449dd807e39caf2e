// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/fault_carrier.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace carillon::wrap {
namespace {

using multicast::CarrierListener;
constexpr std::uint64_t kMostRoundsLate = 8;
constexpr std::size_t kMostPacketsHeld = 1024;

class FaultCarrier final : public multicast::Carrier, private CarrierListener {
 public:
  FaultCarrier(std::unique_ptr<multicast::Carrier> inner, const Faults& faults)
      : inner_(std::move(inner)), faults_(faults), random_(faults.seed) {}

  [[nodiscard]] const multicast::CarrierLimits& limits() const override { return inner_->limits(); }
  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }
  Status add_member(std::span<const std::byte> address) override {
    return inner_->add_member(address);
  }
  Status join(std::uint64_t name) override { return inner_->join(name); }
  Result<bool> joined() override { return inner_->joined(); }
  Status attach(bool on) override { return inner_->attach(on); }
  bool send_group(std::span<const std::byte> packet) override {
    return !drawn(faults_.refuse) && inner_->send_group(packet);
  }
  bool send_member(multicast::Member member, std::span<const std::byte> packet) override {
    return !drawn(faults_.refuse) && inner_->send_member(member, packet);
  }
  Status receive(CarrierListener& listener) override;
  [[nodiscard]] int wait_descriptor() const override { return inner_->wait_descriptor(); }
  bool ready_to_wait() override { return held_.empty() && inner_->ready_to_wait(); }
  [[nodiscard]] bool tells_at_any_time() const override {
    return held_.empty() && inner_->tells_at_any_time();
  }

 private:
  struct Held {
    std::vector<std::byte> bytes;
    std::uint64_t due_round = 0;
  };
  bool drawn(double share) { return share > 0 && shares_(random_) < share; }
  void on_packet(std::span<const std::byte> bytes) override;
  void hold(std::span<const std::byte> bytes) {
    held_.push_back({{bytes.begin(), bytes.end()}, round_ + 1 + random_() % kMostRoundsLate});
  }

  std::unique_ptr<multicast::Carrier> inner_;
  Faults faults_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> shares_;
  CarrierListener* listener_ = nullptr;
  std::uint64_t round_ = 0;
  std::vector<Held> held_;
  std::vector<std::byte> damaged_;
};

void FaultCarrier::on_packet(std::span<const std::byte> bytes) {
  if (bytes.empty() || drawn(faults_.lose)) return;
  if (drawn(faults_.corrupt)) {
    damaged_.assign(bytes.begin(), bytes.end());
    damaged_[random_() % damaged_.size()] ^= static_cast<std::byte>(1U << random_() % 8);
    bytes = damaged_;
  }
  if (held_.size() < kMostPacketsHeld && drawn(faults_.duplicate)) hold(bytes);
  if (held_.size() < kMostPacketsHeld && (drawn(faults_.reorder) || drawn(faults_.delay))) {
    hold(bytes);
  } else {
    listener_->on_packet(bytes);
  }
}

Status FaultCarrier::receive(CarrierListener& listener) {
  ++round_;
  listener_ = &listener;
  Status status = inner_->receive(*this);
  std::vector<Held> due;
  std::erase_if(held_, [&](Held& one) {
    if (one.due_round > round_) return false;
    due.push_back(std::move(one));
    return true;
  });
  for (const Held& one : due) listener.on_packet(one.bytes);
  return status;
}

}  // namespace

std::unique_ptr<multicast::Carrier> with_faults(std::unique_ptr<multicast::Carrier> carrier,
                                                const Faults& faults) {
  return std::make_unique<FaultCarrier>(std::move(carrier), faults);
}

}  // namespace carillon::wrap

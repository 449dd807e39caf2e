// SPDX-License-Identifier: Apache-2.0
//
// The switch in hardware behind a socket: each datagram becomes a frame that comes to a port, and
// what leaves the ports is sent. The reference is given the same, and has to send the same and to
// count the same. It is also the processor beside the hardware: what that hands to it, requests of
// jobs and groups, is answered by the reference, and written to the tables.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "switch/daemon/engine.h"
#include "switch/verilated/hardware.h"
#include "switch/verilated/tables.h"

namespace carillon::rtl {

class HardwareEngine final : public aggregate::Engine {
 public:
  /// Of what the switch may have, no more than there is room for in hardware.
  explicit HardwareEngine(const aggregate::SwitchConfig& config);

  /// An error: the hardware has done something else than the reference. Nothing is sent then.
  Status receive(const Endpoint& from, std::span<const std::byte> datagram,
                 aggregate::Output& output) override;
  Status pass_time(std::uint64_t most) override;
  [[nodiscard]] const aggregate::Switch& reference() const override { return reference_; }
  [[nodiscard]] bool is_slow() const override { return true; }
  [[nodiscard]] std::uint64_t cycles() const override { return hardware_.cycles(); }

 private:
  // The reference's counters that the hardware has, too, in its order.
  static constexpr std::size_t kBoth = 15, kForwarded = 15;
  using Counts = std::array<std::uint64_t, kBoth>;

  // Keeps what the reference sends, as frames.
  class Expected final : public aggregate::Output {
   public:
    void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override;
    std::vector<std::pair<Endpoint, SentFrame>> frames;
  };

  [[nodiscard]] Counts counts() const;
  void order_sent();  // as the reference sends
  [[nodiscard]] Status check_sent(const Bytes& in, bool control) const;
  [[nodiscard]] Status check_counts() const;

  Hardware hardware_;
  HardwareTables tables_;
  aggregate::Switch reference_;
  Expected expected_;
  std::vector<SentFrame> sent_;
  Counts counted_ = {};          // by the reference, but for what is the processor's
  std::uint64_t forwarded_ = 0;  // to the processor
};

}  // namespace carillon::rtl

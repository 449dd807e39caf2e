// SPDX-License-Identifier: Apache-2.0
//
// The switch in hardware (switch/rtl), as Verilator makes it: a frame in, frames out, cycle by
// cycle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "switch/frames/frames.h"

class HostedSwitch;

namespace carillon::rtl {

// As CMakeLists.txt has Verilator make it.
inline constexpr std::size_t kHostPorts = 5;  ///< of hosts and parents
inline constexpr std::uint8_t kProcessorPort = 5;
inline constexpr std::size_t kPorts = 6;
inline constexpr std::uint16_t kChildren = 8;
inline constexpr std::uint32_t kJobs = 9;  ///< that of the administrator's key among them
inline constexpr std::uint32_t kGroups = 8;
inline constexpr std::uint16_t kWindow = 64;
inline constexpr std::uint16_t kOperandBytes = aggregate::kBurstOperandBytes;
inline constexpr std::size_t kCounters = 18;  ///< in the order of counter_e of sw_switch_pkg

/// What the switch calls itself; its packets come from there.
inline constexpr Address kOwn = {
    .port = kProcessorPort, .mac = 0x02ff00000001, .endpoint = {0xc0000201, aggregate::kUdpPort}};

struct SentFrame {
  std::size_t port = 0;
  Bytes frame;
  bool operator==(const SentFrame&) const = default;
};

class Hardware {
 public:
  Hardware();
  Hardware(const Hardware&) = delete;
  Hardware& operator=(const Hardware&) = delete;
  ~Hardware();

  /// A frame comes to a port; until the switch is done with it, what leaves it is added to `sent`,
  /// in order as far as it leaves by the same port. An error: it does not become done.
  Status pass(std::size_t port, const Bytes& frame, std::vector<SentFrame>& sent);
  Status write(Table table, std::size_t index, const Record& record);

  [[nodiscard]] std::uint64_t counter(std::size_t i) const;
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }

 private:
  void offer(std::size_t port, const Bytes& frame, std::size_t at);
  void collect(std::vector<SentFrame>& sent);
  void tick();

  std::unique_ptr<HostedSwitch> module_;
  std::array<Bytes, kPorts> out_;  // of frames that are leaving
  std::uint64_t cycles_ = 0;
};

}  // namespace carillon::rtl

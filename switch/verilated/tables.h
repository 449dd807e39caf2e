// SPDX-License-Identifier: Apache-2.0
//
// The tables of the switch in hardware: each job and group that the reference has is written to a
// free place, as the processor beside the switch does it.
#pragma once

#include <array>
#include <cstdint>

#include "switch/model/switch.h"
#include "switch/verilated/hardware.h"

namespace carillon::rtl {

/// Where a host or switch is: who comes from a socket has a port and an Ethernet address of its own
/// here.
Address address_of(const Endpoint& endpoint);

class HardwareTables final : public aggregate::SwitchObserver {
 public:
  /// The hardware is the caller's, and lives as long. `first`: sequence of each group.
  HardwareTables(Hardware& hardware, const SipKey& administrator, std::uint32_t first);

  void on_job(std::uint32_t job, const SipKey& key) override;
  void on_job_gone(std::uint32_t job) override;
  void on_group(std::uint32_t job, std::uint32_t group, const aggregate::Shape& shape) override;
  void on_group_gone(std::uint32_t job, std::uint32_t group) override;

  /// The first error of all that was written.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void write(Table table, std::size_t index, const Record& record);

  Hardware& hardware_;
  std::uint32_t first_;
  Status status_;
  // Whose each place is; 0: nobody's.
  std::array<std::uint32_t, kJobs> jobs_ = {};
  std::array<std::uint64_t, kGroups> groups_ = {};  // job and id
};

}  // namespace carillon::rtl

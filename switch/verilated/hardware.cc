// SPDX-License-Identifier: Apache-2.0
#include "switch/verilated/hardware.h"

#include <HostedSwitch.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace carillon::rtl {
namespace {

constexpr std::uint16_t kPatienceWithoutEnd = 0xffff;
constexpr std::uint64_t kMostCycles = 1'000'000;  // for a frame: many times those of the longest
constexpr std::size_t kWordBytes = 8;

Status stands_still(const std::string& what) {
  return {Code::kInternal, "switchd: the hardware stands still with " + what + " after " +
                               std::to_string(kMostCycles) + " cycles"};
}

}  // namespace

Hardware::Hardware() : module_(std::make_unique<HostedSwitch>()) {
  HostedSwitch& it = *module_;
  it.clk_i = 0;
  it.own_mac_i = kOwn.mac;
  it.own_ip_i = kOwn.endpoint.ip;
  it.own_udp_port_i = kOwn.endpoint.port;
  it.control_port_i = kOwn.port;
  it.patience_i = kPatienceWithoutEnd;  // each frame is passed when the one before is done
  it.control_valid_i = 0;
  it.s_valid_i = 0;
  it.m_ready_i = (1U << kPorts) - 1;
  for (const int level : {1, 0, 1}) {
    it.rst_ni = level != 0;
    tick();
  }
}

Hardware::~Hardware() { module_->final(); }

void Hardware::tick() {
  for (const int level : {1, 0}) {
    module_->clk_i = level != 0;
    module_->eval();
  }
  ++cycles_;
}

// The word at `at`, if the frame has one.
void Hardware::offer(std::size_t port, const Bytes& frame, std::size_t at) {
  HostedSwitch& it = *module_;
  it.s_valid_i = it.s_last_i = 0;
  if (at >= frame.size()) return;
  const std::size_t bytes = std::min(kWordBytes, frame.size() - at);
  std::uint64_t word = 0;
  std::memcpy(&word, &frame[at], bytes);
  it.s_valid_i = static_cast<std::uint8_t>(1U << port);
  it.s_data_i[2 * port] = static_cast<std::uint32_t>(word);
  it.s_data_i[2 * port + 1] = static_cast<std::uint32_t>(word >> 32);
  it.s_keep_i = std::uint64_t{(1U << bytes) - 1} << (kWordBytes * port);
  if (at + bytes == frame.size()) it.s_last_i = it.s_valid_i;
}

void Hardware::collect(std::vector<SentFrame>& sent) {
  const HostedSwitch& it = *module_;
  for (std::size_t port = 0; port < kPorts; ++port) {
    if ((it.m_valid_o >> port & 1) == 0) continue;
    Bytes& out = out_[port];
    for (std::size_t byte = 0; byte < kWordBytes; ++byte) {
      if ((it.m_keep_o >> (kWordBytes * port + byte) & 1) == 0) continue;
      const std::uint32_t half = it.m_data_o[2 * port + byte / 4];
      out.push_back(static_cast<std::byte>(half >> (8 * (byte % 4))));
    }
    if ((it.m_last_o >> port & 1) == 0) continue;
    sent.push_back({port, std::move(out)});
    out.clear();
  }
}

Status Hardware::pass(std::size_t port, const Bytes& frame, std::vector<SentFrame>& sent) {
  HostedSwitch& it = *module_;
  std::size_t at = 0;
  bool begun = false;
  for (std::uint64_t i = 0; i < kMostCycles; ++i) {
    offer(port, frame, at);
    it.eval();
    if (it.s_valid_i != 0 && (it.s_ready_o >> port & 1) != 0) at += kWordBytes;
    collect(sent);
    // Records can be written again: nothing is under way.
    if (begun && it.control_ready_o != 0) return {};
    begun = begun || it.taken_o != 0;
    tick();
  }
  return stands_still("a frame of " + std::to_string(frame.size()) + " bytes");
}

Status Hardware::write(Table table, std::size_t index, const Record& record) {
  HostedSwitch& it = *module_;
  it.control_table_i = static_cast<std::uint8_t>(table);
  it.control_index_i = static_cast<std::uint16_t>(index);
  for (std::size_t i = 0; i < Record::kBits / 32; ++i) it.control_record_i[i] = record.word(i);
  it.control_valid_i = 1;
  bool taken = false;
  for (std::uint64_t i = 0; i < kMostCycles && !taken; ++i) {
    it.eval();
    taken = it.control_ready_o != 0;
    tick();
  }
  it.control_valid_i = 0;
  return taken ? Status() : stands_still("a record of a table");
}

std::uint64_t Hardware::counter(std::size_t i) const {
  return std::uint64_t{module_->counters_o[2 * i + 1]} << 32 | module_->counters_o[2 * i];
}

}  // namespace carillon::rtl

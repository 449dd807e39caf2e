// SPDX-License-Identifier: Apache-2.0
//
// A switch behind a UDP socket: the reference (switch/model), or another engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "switch/daemon/engine.h"
#include "transport/aggregate/udp_port.h"

namespace carillon::aggregate {

/// Of the machine's clock.
inline std::int64_t steady_seconds() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::steady_clock;
  return duration_cast<seconds>(steady_clock::now().time_since_epoch()).count();
}

struct ServerConfig {
  Endpoint at;                ///< as UdpPort::open()
  std::int64_t idle_s = 600;  ///< groups of which nothing comes for so long are freed
  std::int64_t (*now_s)() = steady_seconds;
};

class Server final : private DatagramListener {
 public:
  static Result<std::unique_ptr<Server>> open(const ServerConfig& config,
                                              std::unique_ptr<Engine> engine);

  [[nodiscard]] const Endpoint& at() const { return port_->at(); }
  /// Works until the descriptor is readable, or the engine fails. May be called again.
  Status serve(int until);

  [[nodiscard]] const Engine& engine() const { return *engine_; }
  /// What it holds and has counted.
  [[nodiscard]] const Switch& model() const { return engine_->reference(); }
  [[nodiscard]] const UdpPort::Counts& counts() const { return port_->counts(); }

 private:
  Server(const ServerConfig& config, std::unique_ptr<UdpPort> port, std::unique_ptr<Engine> engine);
  void on_datagram(const Endpoint& from, std::span<const std::byte> datagram) override {
    if (failure_.ok()) failure_ = engine_->receive(from, datagram, *port_);
    if (engine_->is_slow()) port_->flush();
  }
  Status pass_time();

  ServerConfig config_;
  std::unique_ptr<UdpPort> port_;
  std::unique_ptr<Engine> engine_;
  Status failure_;           // the engine's
  std::int64_t second_ = 0;  // by its clock, when a second has last passed for the engine
};

}  // namespace carillon::aggregate

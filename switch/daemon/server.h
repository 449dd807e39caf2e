// SPDX-License-Identifier: Apache-2.0
//
// The switch in software: the reference (switch/model) behind a UDP socket.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "switch/model/switch.h"
#include "transport/aggregate/udp_port.h"

namespace carillon::aggregate {

struct ServerConfig {
  Endpoint at;  ///< as UdpPort::open()
  SwitchConfig model;
  std::int64_t idle_s = 600;  ///< groups of which nothing comes for so long are freed
};

class Server final : private DatagramListener {
 public:
  static Result<std::unique_ptr<Server>> open(const ServerConfig& config);

  [[nodiscard]] const Endpoint& at() const { return port_->at(); }
  /// Works until the descriptor is readable. May be called again.
  Status serve(int until);

  [[nodiscard]] const Switch& model() const { return model_; }
  [[nodiscard]] const UdpPort::Counts& counts() const { return port_->counts(); }

 private:
  Server(const ServerConfig& config, std::unique_ptr<UdpPort> port);
  void on_datagram(const Endpoint& from, std::span<const std::byte> datagram) override {
    model_.receive(from, datagram, *port_);
  }

  ServerConfig config_;
  std::unique_ptr<UdpPort> port_;
  Switch model_;
  std::int64_t second_ = 0;  // up to which the model knows the time
};

}  // namespace carillon::aggregate

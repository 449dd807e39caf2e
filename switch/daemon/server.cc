// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/server.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace carillon::aggregate {
namespace {

constexpr int kSecondMs = 1000;

}  // namespace

Server::Server(const ServerConfig& config, std::unique_ptr<UdpPort> port,
               std::unique_ptr<Engine> engine)
    : config_(config),
      port_(std::move(port)),
      engine_(std::move(engine)),
      second_(config.now_s()) {}

Result<std::unique_ptr<Server>> Server::open(const ServerConfig& config,
                                             std::unique_ptr<Engine> engine) {
  auto port = UdpPort::open(config.at);
  if (!port.ok()) return port.status();
  port.value()->allow_fragments();
  return std::unique_ptr<Server>(new Server(config, std::move(port.value()), std::move(engine)));
}

Status Server::serve(int until) {
  std::array<pollfd, 2> wait = {pollfd{.fd = port_->descriptor(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = until, .events = POLLIN, .revents = 0}};
  for (;;) {
    if (poll(wait.data(), wait.size(), kSecondMs) < 0 && errno != EINTR) {
      return {Code::kSystem, std::string("switchd: poll: ") + std::strerror(errno)};
    }
    if (wait[1].revents != 0) return {};
    Status status = wait[0].revents == 0 ? Status() : port_->receive(*this);
    port_->flush();
    if (!status.ok()) return status;
    if (!failure_.ok()) return failure_;
    if (status = pass_time(); !status.ok()) return status;
  }
}

// One second at most, after what has come: who was stopped, or slept, has heard nobody meanwhile,
// and what he would take for idle has been waiting at the socket.
Status Server::pass_time() {
  const std::int64_t now = config_.now_s();
  if (now <= second_) return {};
  second_ = now;
  return engine_->pass_time(static_cast<std::uint64_t>(config_.idle_s));
}

}  // namespace carillon::aggregate

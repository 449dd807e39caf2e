// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/server.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace carillon::aggregate {
namespace {

constexpr int kSecondMs = 1000;

std::int64_t now_s() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::steady_clock;
  return duration_cast<seconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Server::Server(const ServerConfig& config, std::unique_ptr<UdpPort> port,
               std::unique_ptr<Engine> engine)
    : config_(config), port_(std::move(port)), engine_(std::move(engine)), second_(now_s()) {}

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
    for (const std::int64_t now = now_s(); second_ < now; ++second_) {
      Status passed = engine_->pass_time(static_cast<std::uint64_t>(config_.idle_s));
      if (!passed.ok()) return passed;
    }
    if (wait[0].revents == 0) continue;
    Status status = port_->receive(*this);
    port_->flush();
    if (!status.ok()) return status;
    if (!failure_.ok()) return failure_;
  }
}

}  // namespace carillon::aggregate

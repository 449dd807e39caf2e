// SPDX-License-Identifier: Apache-2.0
//
// What lifelines need of the system: sockets that end with this process and no later, the node's
// addresses, room for descriptors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace carillon::lifeline {

/// A descriptor that only this process has: a forked child closes it before fork() returns there.
/// (A child made by vfork or posix_spawn execs, which closes it, too. One made by a bare clone()
/// keeps it until it ends.) In the child the object is as if empty.
class OwnFd {
 public:
  OwnFd() = default;
  OwnFd(OwnFd&& other) noexcept;
  OwnFd& operator=(OwnFd&& other) noexcept;
  OwnFd(const OwnFd&) = delete;
  OwnFd& operator=(const OwnFd&) = delete;
  ~OwnFd();

  // Makers. All are non-blocking and close-on-exec. Empty on failure: errno says why. Out of
  // descriptors, the soft limit is raised if the hard one allows.
  static OwnFd tcp_socket(int family);
  static OwnFd accept(const OwnFd& listener);
  static OwnFd epoll();

  /// -1 in a forked child.
  [[nodiscard]] int get() const { return valid() ? fd_ : -1; }
  [[nodiscard]] bool valid() const { return fd_ >= 0 && generation_ == forks(); }
  /// How many forks lie between this process and the first one that used lifelines.
  static unsigned forks();

 private:
  template <typename Make>
  static OwnFd make(Make make_fd);

  int fd_ = -1;
  unsigned generation_ = 0;
};

/// The kernel notices within about 3 s that the host at the other end has vanished; its packets go
/// before data, where queues make a difference.
void watch_closely(const OwnFd& connection);

/// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
using Ip = std::array<std::uint8_t, 16>;
std::string to_string(const Ip& ip);

/// Of the interfaces that are up, the likeliest to be reached from other nodes first; link-local
/// ones, which mean nothing elsewhere, are not among them. Loopback, if there is nothing else.
std::vector<Ip> node_addresses();
/// The loopback addresses, and all others that this node has.
std::vector<Ip> every_own_address();
/// Differs between nodes, and between network namespaces.
std::uint64_t node_id();

/// Begins to connect. 0: connected; EINPROGRESS: under way; or another errno.
int start_connect(const OwnFd& socket, const Ip& ip, std::uint16_t port);
int family_of(const Ip& ip);

struct Listening {
  OwnFd fd;
  std::uint16_t port = 0;
};
/// On all interfaces, on a port of the system's choice.
Result<Listening> listen_anywhere();

}  // namespace carillon::lifeline

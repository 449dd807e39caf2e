// SPDX-License-Identifier: Apache-2.0
#include "team/lifeline_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/boot_id.h"

namespace carillon::lifeline {
namespace {

constexpr int kBacklog = 4096;             // all of a large job may call at once
constexpr rlim_t kSpareDescriptors = 128;  // left to the program, if the limits allow
constexpr int kIdleS = 1, kIntervalS = 1, kProbes = 2;
constexpr unsigned kSilenceMs = 3000;

// Which descriptors a forked child is to close. The lock is held over each fork, so that the child
// finds the table whole and no descriptor on its way into it.
struct Registry {
  std::mutex mutex;
  std::vector<char> open;  // by descriptor
  std::atomic<unsigned> forks{0};
};

// Never destroyed: a process may fork while it ends.
Registry& registry();

void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }
// Only calls what may be called in the child of a process with threads.
void after_fork_in_child() {
  Registry& all = registry();
  for (std::size_t fd = 0; fd < all.open.size(); ++fd) {
    if (all.open[fd] != 0) close(static_cast<int>(fd));
    all.open[fd] = 0;
  }
  all.forks.fetch_add(1, std::memory_order_relaxed);  // the child has no other thread
  all.mutex.unlock();
}

Registry& registry() {
  static Registry& all = *[] {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new Registry();
  }();
  return all;
}

// The descriptors up to that number are in use: makes room above it while the hard limit allows.
// False: there is no more.
bool make_room(rlim_t used) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (used + std::min(kSpareDescriptors, limit.rlim_cur / 2) < limit.rlim_cur) return true;
  if (limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = std::min(limit.rlim_max, limit.rlim_cur + 8 * kSpareDescriptors);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

OwnFd::OwnFd(OwnFd&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}

OwnFd& OwnFd::operator=(OwnFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(generation_, other.generation_);
  return *this;
}

OwnFd::~OwnFd() {
  if (!valid()) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.open[static_cast<std::size_t>(fd_)] = 0;
  close(fd_);
}

unsigned OwnFd::forks() { return registry().forks.load(std::memory_order_relaxed); }

template <typename Make>
OwnFd OwnFd::make(Make make_fd) {
  Registry& all = registry();
  OwnFd made;
  const std::lock_guard lock(all.mutex);
  int fd = make_fd();
  if (fd < 0 && errno == EMFILE) {
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && make_room(limit.rlim_cur))
      fd = make_fd();
    else
      errno = EMFILE;
  }
  if (fd < 0) return made;
  make_room(static_cast<rlim_t>(fd));
  if (all.open.size() <= static_cast<std::size_t>(fd)) all.open.resize(fd + 64U);
  all.open[static_cast<std::size_t>(fd)] = 1;
  made.fd_ = fd;
  made.generation_ = all.forks.load(std::memory_order_relaxed);
  return made;
}

OwnFd OwnFd::tcp_socket(int family) {
  return make([&] { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}
OwnFd OwnFd::accept(const OwnFd& listener) {
  return make(
      [&] { return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
}
OwnFd OwnFd::epoll() {
  return make([] { return epoll_create1(EPOLL_CLOEXEC); });
}

namespace {

// Best effort: without it a host that vanishes is noticed later, nothing else.
void set(const OwnFd& socket, int level, int name, int value) {
  (void)setsockopt(socket.get(), level, name, &value, sizeof value);
}

// What a host has queued for another may take longer than an end may be silent. Signs of life do
// not wait behind that where a queue knows what is urgent: Linux's usual one does, on the host by
// the priority, and others on the way by the packet's mark.
void go_before_data(const OwnFd& socket) {
  constexpr int kInteractive = 6;  // TC_PRIO_INTERACTIVE; more takes a privilege
  set(socket, IPPROTO_IP, IP_TOS, IPTOS_LOWDELAY);
  set(socket, IPPROTO_IPV6, IPV6_TCLASS, IPTOS_LOWDELAY);
  set(socket, SOL_SOCKET, SO_PRIORITY, kInteractive);  // the others set it, too
}

}  // namespace

void watch_closely(const OwnFd& connection) {
  go_before_data(connection);
  set(connection, IPPROTO_TCP, TCP_NODELAY, 1);
  set(connection, IPPROTO_TCP, TCP_KEEPIDLE, kIdleS);
  set(connection, IPPROTO_TCP, TCP_KEEPINTVL, kIntervalS);
  set(connection, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
  set(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
}

namespace {

constexpr Ip kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_v4(const Ip& ip) { return std::equal(kMapped.begin(), kMapped.begin() + 12, ip.begin()); }

Ip ip_of(const sockaddr& address) {
  Ip ip = {};
  if (address.sa_family == AF_INET) {
    ip = kMapped;
    sockaddr_in v4 = {};
    std::memcpy(&v4, &address, sizeof v4);
    std::memcpy(&ip[12], &v4.sin_addr, 4);
  } else {
    sockaddr_in6 v6 = {};
    std::memcpy(&v6, &address, sizeof v6);
    std::memcpy(ip.data(), &v6.sin6_addr, ip.size());
  }
  return ip;
}

bool is_link_local(const Ip& ip) {
  if (is_v4(ip)) return ip[12] == 169 && ip[13] == 254;
  return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool is_bridge(const char* interface) {
  return access(("/sys/class/net/" + std::string(interface) + "/bridge").c_str(), F_OK) == 0;
}

struct Found {
  Ip ip = {};
  int order = 0;  // less: likelier to be reached from other nodes
  bool loopback = false;
};

// Bridges often join only what runs on the node itself, each node's with the same address.
std::vector<Found> find_addresses() {
  std::vector<Found> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Found one{.ip = ip_of(*entry->ifa_addr)};
    if (is_link_local(one.ip)) continue;
    one.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    one.order = family == AF_INET6 ? 1 : 0;
    if ((entry->ifa_flags & IFF_POINTOPOINT) != 0 || is_bridge(entry->ifa_name)) one.order += 2;
    found.push_back(one);
  }
  freeifaddrs(list);
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.order < b.order; });
  return found;
}

}  // namespace

std::string to_string(const Ip& ip) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (is_v4(ip)) {
    inet_ntop(AF_INET, &ip[12], text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  }
  return text.data();
}

std::vector<Ip> node_addresses() {
  std::vector<Ip> outside, loopback;
  for (const Found& one : find_addresses()) (one.loopback ? loopback : outside).push_back(one.ip);
  return outside.empty() ? loopback : outside;
}

std::vector<Ip> every_own_address() {
  std::vector<Ip> all;
  for (const Found& one : find_addresses()) all.push_back(one.ip);
  return all;
}

std::uint64_t node_id() {
  std::string text = boot_id();
  struct stat network = {};
  if (stat("/proc/self/ns/net", &network) == 0) text += " " + std::to_string(network.st_ino);
  return std::hash<std::string>()(text);
}

int family_of(const Ip& ip) { return is_v4(ip) ? AF_INET : AF_INET6; }

int start_connect(const OwnFd& socket, const Ip& ip, std::uint16_t port) {
  int failed = 0;
  if (is_v4(ip)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, &ip[12], 4);
    failed = connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  } else {
    sockaddr_in6 to = {};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    std::memcpy(&to.sin6_addr, ip.data(), ip.size());
    failed = connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  if (failed == 0) return 0;
  return errno == EINTR ? EINPROGRESS : errno;
}

namespace {

Status cannot_listen(const char* what) {
  return {Code::kSystem, std::string("lifelines: cannot listen on a TCP port: ") + what + ": " +
                             std::strerror(errno)};
}

}  // namespace

Result<Listening> listen_anywhere() {
  Listening made;
  // One socket for both kinds of addresses; a kernel without IPv6 has IPv4 alone.
  made.fd = OwnFd::tcp_socket(AF_INET6);
  const bool both = made.fd.valid();
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  if (both) {
    const int no = 0;
    (void)setsockopt(made.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (!both || bind(made.fd.get(), reinterpret_cast<const sockaddr*>(&six), sizeof six) != 0) {
    made.fd = OwnFd::tcp_socket(AF_INET);
    if (!made.fd.valid()) return cannot_listen("socket");
    if (bind(made.fd.get(), reinterpret_cast<const sockaddr*>(&four), sizeof four) != 0) {
      return cannot_listen("bind");
    }
  }
  go_before_data(made.fd);  // so do the connections that it takes, before they are accepted
  if (listen(made.fd.get(), kBacklog) != 0) return cannot_listen("listen");
  sockaddr_in6 bound = {};  // the port has the same place in both kinds
  socklen_t length = sizeof bound;
  if (getsockname(made.fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return cannot_listen("getsockname");
  }
  made.port = ntohs(bound.sin6_port);
  return made;
}

}  // namespace carillon::lifeline

// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/udp_carrier.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"
#include "transport/multicast/group_address.h"

namespace carillon::multicast {
namespace {

constexpr std::size_t kHeadersBytes = 28;  // of IPv4 and UDP
constexpr std::size_t kPackets = 32;       // packets read at once
constexpr int kMostReads = 8;              // of one socket in one receive()
Status failure(const std::string& what) {
  return {Code::kSystem, "multicast: " + what + ": " + std::strerror(errno)};
}

// What others need to reach a member.
struct SocketAddress {
  std::uint32_t ip = 0;    // network order
  std::uint16_t port = 0;  // network order
  std::uint16_t zero = 0;
};

struct Interface {
  std::string name;
  int index = 0;
  in_addr ip = {};
  std::size_t mtu = 0;
};

std::string text(in_addr ip) {
  std::array<char, INET_ADDRSTRLEN> buffer{};
  inet_ntop(AF_INET, &ip, buffer.data(), buffer.size());
  return buffer.data();
}

// Loopback delivers multicasts, too, though it does not say so.
Result<Interface> find_interface(const std::string& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return failure("the interfaces cannot be listed");
  Interface found;
  std::string seen;
  for (const ifaddrs* i = list; i != nullptr && found.index == 0; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    const in_addr ip = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    const bool up = (i->ifa_flags & IFF_UP) != 0;
    const bool fits =
        wanted.empty() ? (i->ifa_flags & IFF_MULTICAST) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0
                       : wanted == i->ifa_name || wanted == text(ip);
    seen += std::string(seen.empty() ? "" : ", ") + i->ifa_name + (up ? "" : " (down)");
    if (!up || !fits) continue;
    found.name = i->ifa_name;
    found.index = static_cast<int>(if_nametoindex(i->ifa_name));
    found.ip = ip;
  }
  freeifaddrs(list);
  if (found.index != 0) return found;
  return Status(Code::kUnsupported,
                "multicast: no interface" +
                    (wanted.empty() ? " is up and can multicast" : " '" + wanted + "' is up") +
                    "; with IPv4 addresses there are: " + (seen.empty() ? "none" : seen));
}

class UdpCarrier final : public Carrier {
 public:
  Status open(const UdpOptions& options);

  [[nodiscard]] const CarrierLimits& limits() const override { return limits_; }
  [[nodiscard]] std::span<const std::byte> address() const override {
    return std::as_bytes(std::span(&own_, 1));
  }
  Status add_member(std::span<const std::byte> address) override;
  Status join(std::uint64_t name) override;
  Result<bool> joined() override { return true; }
  Status attach(bool on) override;
  bool send_group(std::span<const std::byte> packet) override { return send(group_, packet); }
  bool send_member(Member member, std::span<const std::byte> packet) override {
    return send(members_[member], packet);
  }
  Status receive(CarrierListener& listener) override;
  [[nodiscard]] int wait_descriptor() const override { return events_.get(); }
  bool ready_to_wait() override { return true; }  // the descriptor stays readable
  [[nodiscard]] bool tells_at_any_time() const override { return true; }

 private:
  bool send(const sockaddr_in& to, std::span<const std::byte> packet);
  bool allow_fragments(std::size_t bytes);
  Status receive_from(int fd, CarrierListener& listener);
  Status size_buffer(int fd, int bytes);
  Status watch(int fd);

  CarrierLimits limits_;
  Interface interface_;
  int receive_bytes_ = 0;
  UniqueFd own_socket_, group_socket_, events_;
  SocketAddress own_;
  std::vector<sockaddr_in> members_;
  sockaddr_in group_ = {};
  ip_mreqn membership_ = {};
  bool attached_ = false;
  std::size_t taken_bytes_ = 0;    // of the longest packet that was sent
  bool fragments_ = false;         // the kernel may cut packets into several
  std::vector<std::byte> memory_;  // kPackets datagrams
  std::array<iovec, kPackets> places_{};
  std::array<mmsghdr, kPackets> batch_{};
};

template <typename T>
bool set(int fd, int level, int option, const T& value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

Status UdpCarrier::size_buffer(int fd, int bytes) {
  // Past the system's limit, for who may.
  if (!set(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes)) (void)set(fd, SOL_SOCKET, SO_RCVBUF, bytes);
  int given = 0;
  socklen_t size = sizeof given;
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &size) != 0) return failure("SO_RCVBUF");
  // The kernel counts the memory that packets take, about twice their bytes.
  const auto packets = static_cast<std::size_t>(given) / (2 * limits_.datagram_bytes + 512);
  limits_.receive_packets = static_cast<std::uint32_t>(std::max<std::size_t>(packets, 1));
  return {};
}

Status UdpCarrier::watch(int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return failure("epoll_ctl");
  return {};
}

Status UdpCarrier::open(const UdpOptions& options) {
  auto interface = find_interface(options.interface);
  if (!interface.ok()) return interface.status();
  interface_ = interface.value();
  own_socket_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  events_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!own_socket_.valid() || !events_.valid()) return failure("no socket");
  ifreq request = {};
  std::strncpy(request.ifr_name, interface_.name.c_str(), IFNAMSIZ - 1);
  const int fd = own_socket_.get();
  if (ioctl(fd, SIOCGIFMTU, &request) != 0) return failure("the MTU of " + interface_.name);
  limits_.name = "udp " + interface_.name;
  const auto mtu = static_cast<std::size_t>(request.ifr_mtu);
  if (mtu < kHeadersBytes + kMinDatagramBytes) {
    return {Code::kUnsupported, "multicast: the MTU of " + interface_.name + " is only " +
                                    std::to_string(mtu) + " bytes"};
  }
  limits_.datagram_bytes = std::min(mtu - kHeadersBytes, options.datagram_bytes);
  receive_bytes_ = options.receive_bytes;
  if (Status status = size_buffer(fd, receive_bytes_); !status.ok()) return status;

  sockaddr_in here = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = interface_.ip};
  socklen_t bytes = sizeof here;
  auto* const generic = reinterpret_cast<sockaddr*>(&here);
  if (bind(fd, generic, bytes) != 0 || getsockname(fd, generic, &bytes) != 0) {
    return failure("cannot bind to " + text(interface_.ip));
  }
  own_ = {.ip = here.sin_addr.s_addr, .port = here.sin_port};
  const ip_mreqn by = {.imr_multiaddr = {}, .imr_address = {}, .imr_ifindex = interface_.index};
  const int discover = IP_PMTUDISC_DO;  // a packet is not cut into several that can be lost
  if (!set(fd, IPPROTO_IP, IP_MULTICAST_IF, by) ||
      !set(fd, IPPROTO_IP, IP_MULTICAST_TTL, options.hops) ||
      !set(fd, IPPROTO_IP, IP_MTU_DISCOVER, discover)) {
    return failure("cannot multicast by " + interface_.name);
  }
  memory_.resize(kPackets * limits_.datagram_bytes);
  for (std::size_t i = 0; i < kPackets; ++i) {
    places_[i] = {memory_.data() + i * limits_.datagram_bytes, limits_.datagram_bytes};
    batch_[i].msg_hdr.msg_iov = &places_[i];
    batch_[i].msg_hdr.msg_iovlen = 1;
  }
  return watch(fd);
}

Status UdpCarrier::add_member(std::span<const std::byte> address) {
  SocketAddress other;
  if (address.size() != sizeof other) {
    return {Code::kInvalidArgument, "multicast: what should be the UDP address of member " +
                                        std::to_string(members_.size()) + " is none"};
  }
  std::memcpy(&other, address.data(), sizeof other);
  const std::uint32_t ip = ntohl(other.ip);
  if (other.port == 0 || ip == 0 || IN_MULTICAST(ip) || ip == INADDR_BROADCAST) {
    return {Code::kInvalidArgument, "multicast: member " + std::to_string(members_.size()) +
                                        " says that it is at " + text({other.ip})};
  }
  members_.push_back(
      {.sin_family = AF_INET, .sin_port = other.port, .sin_addr = {.s_addr = other.ip}});
  return {};
}

Status UdpCarrier::join(std::uint64_t name) {
  group_ = group_address(name);
  const in_addr ip = group_.sin_addr;
  const int port = ntohs(group_.sin_port);
  group_socket_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = group_socket_.get();
  if (fd < 0) return failure("no socket");
  // Members on one host share the port. Who is alone there need not hear itself.
  const int on = 1, off = 0;
  const auto here = std::count_if(members_.begin(), members_.end(), [&](const sockaddr_in& one) {
    return one.sin_addr.s_addr == own_.ip;
  });
  membership_ = {.imr_multiaddr = ip, .imr_address = {}, .imr_ifindex = interface_.index};
  if (!set(fd, SOL_SOCKET, SO_REUSEADDR, on) ||
      !set(own_socket_.get(), IPPROTO_IP, IP_MULTICAST_LOOP, here > 1 ? on : off) ||
      bind(fd, reinterpret_cast<const sockaddr*>(&group_), sizeof group_) != 0 ||
      !set(fd, IPPROTO_IP, IP_MULTICAST_ALL, off)) {
    return failure("cannot bind to port " + std::to_string(port) + " of " + text(ip) + " on " +
                   interface_.name);
  }
  if (Status status = attach(true); !status.ok()) return status;
  if (Status status = size_buffer(fd, receive_bytes_); !status.ok()) return status;
  return watch(fd);
}

// The host stays in the group as long as one of its sockets is.
Status UdpCarrier::attach(bool on) {
  if (on == attached_) return {};
  const int option = on ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP;
  if (!set(group_socket_.get(), IPPROTO_IP, option, membership_)) {
    return failure((on ? "cannot join " : "cannot leave ") + text(membership_.imr_multiaddr) +
                   " port " + std::to_string(ntohs(group_.sin_port)) + " on " + interface_.name);
  }
  attached_ = on;
  return {};
}

// Where what was sent before is too long now: all members go by that length. Late and in several
// packets is better than never. While they look for a length, what is too long counts as lost.
bool UdpCarrier::allow_fragments(std::size_t bytes) {
  const int discover = IP_PMTUDISC_DONT;
  if (fragments_ || bytes > taken_bytes_) return false;
  fragments_ = set(own_socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, discover);
  if (fragments_) {
    log(LogLevel::kWarning, "multicast: packets of " + std::to_string(bytes) + " bytes (" +
                                limits_.name +
                                ") go in fragments now; has an MTU been lowered? A team that is "
                                "made now sends shorter ones");
  }
  return fragments_;
}

bool UdpCarrier::send(const sockaddr_in& to, std::span<const std::byte> packet) {
  const auto put = [&] {
    return sendto(own_socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
  };
  ssize_t sent = put();
  if (sent < 0 && errno == EMSGSIZE && allow_fragments(packet.size())) sent = put();
  if (sent >= 0) taken_bytes_ = std::max(taken_bytes_, packet.size());
  // What the network does not take for another reason than want of room counts as lost.
  return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

Status UdpCarrier::receive(CarrierListener& listener) {
  if (Status status = receive_from(own_socket_.get(), listener); !status.ok()) return status;
  return group_socket_.valid() ? receive_from(group_socket_.get(), listener) : Status();
}

Status UdpCarrier::receive_from(int fd, CarrierListener& listener) {
  for (int round = 0; round < kMostReads; ++round) {
    const int count = recvmmsg(fd, batch_.data(), kPackets, MSG_DONTWAIT, nullptr);
    if (count < 0) {
      // A member that has gone may be told of as an error of the socket.
      if (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED || errno == EMSGSIZE ||
          errno == ENETDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH) {
        return {};
      }
      return failure("recvmmsg");
    }
    for (int i = 0; i < count; ++i) {
      const mmsghdr& one = batch_[static_cast<std::size_t>(i)];
      if ((one.msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
      listener.on_packet(std::span(memory_).subspan(
          static_cast<std::size_t>(i) * limits_.datagram_bytes, one.msg_len));
    }
    if (static_cast<std::size_t>(count) < kPackets) return {};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Carrier>> open_udp(const UdpOptions& options) {
  auto carrier = std::make_unique<UdpCarrier>();
  if (Status status = carrier->open(options); !status.ok()) return status;
  return std::unique_ptr<Carrier>(std::move(carrier));
}

}  // namespace carillon::multicast

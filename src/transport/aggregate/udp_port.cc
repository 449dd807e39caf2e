// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/udp_port.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "transport/aggregate/text.h"

namespace carillon::aggregate {
namespace {

constexpr std::size_t kBatch = 64;     // datagrams per system call
constexpr int kMostBatches = 8;        // in one receive()
constexpr int kBufferBytes = 4 << 20;  // of the socket, each way; the system may give less
constexpr int kMostWaits = 10;         // for room, of
constexpr int kWaitMs = 10;            // each, before a datagram counts as lost
constexpr std::size_t kDatagramBytes = kMaxDatagramBytes + 1;  // one more shows what is too long
constexpr std::int64_t kEthernetBytes = 14;                    // of a frame, before IP's header

sockaddr_in address_of(const Endpoint& at) {
  return {.sin_family = AF_INET, .sin_port = htons(at.port), .sin_addr = {.s_addr = htonl(at.ip)}};
}

Endpoint endpoint_of(const sockaddr_in& name) {
  return {ntohl(name.sin_addr.s_addr), ntohs(name.sin_port)};
}

Status failure(const std::string& what, const std::string& remedy = "") {
  return {Code::kSystem, "aggregate: " + what + ": " + std::strerror(errno) + remedy};
}

// Past the system's limit, for who may.
void size_buffer(int fd, int force, int ask) {
  const int bytes = kBufferBytes;
  if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0) {
    (void)setsockopt(fd, SOL_SOCKET, ask, &bytes, sizeof bytes);
  }
}

// What came of an earlier datagram, or of a system short of memory; the next may go well.
bool is_passing(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNREFUSED || error == EHOSTUNREACH ||
         error == ENETUNREACH || error == ENETDOWN || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

std::uint16_t operand_bytes_of(std::int64_t mtu) {
  constexpr std::int64_t kHeaders = kFrameHeaderBytes - kEthernetBytes + kHeaderBytes;
  constexpr std::int64_t kStep = 128;
  const std::int64_t room = std::clamp<std::int64_t>(mtu - kHeaders, 0, kMaxOperandBytes);
  return static_cast<std::uint16_t>(room / kStep * kStep);
}

Result<Route> route_to(const Endpoint& to) {
  const UniqueFd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = address_of(to);
  socklen_t bytes = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  if (!probe.valid() || connect(probe.get(), generic, bytes) != 0 ||
      getsockname(probe.get(), generic, &bytes) != 0) {
    return failure("no way to " + text(to));
  }
  int mtu = 0;
  socklen_t mtu_bytes = sizeof mtu;
  if (getsockopt(probe.get(), IPPROTO_IP, IP_MTU, &mtu, &mtu_bytes) != 0) {
    return failure("the MTU of the way to " + text(to));
  }
  return Route{.from = endpoint_of(name).ip, .operand_bytes = operand_bytes_of(mtu)};
}

Result<std::uint16_t> operand_bytes_at(std::uint32_t ip) {
  ifaddrs* list = nullptr;
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.valid() || getifaddrs(&list) != 0) return failure("the addresses of this host");
  std::int64_t outside = 0, least = 0;  // 0: none so far
  const auto lessen = [](std::int64_t& to, std::int64_t mtu) {
    to = to == 0 ? mtu : std::min(to, mtu);
  };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in name = {};
    std::memcpy(&name, entry->ifa_addr, sizeof name);
    if (ip != 0 && ntohl(name.sin_addr.s_addr) != ip) continue;
    ifreq asked = {};
    std::strncpy(asked.ifr_name, entry->ifa_name, sizeof asked.ifr_name - 1);
    if (ioctl(any.get(), SIOCGIFMTU, &asked) != 0) continue;
    lessen(least, asked.ifr_mtu);
    if ((entry->ifa_flags & IFF_LOOPBACK) == 0) lessen(outside, asked.ifr_mtu);
  }
  freeifaddrs(list);
  // What does not say how long packets may be takes what everybody does.
  if (least == 0) return static_cast<std::uint16_t>(kBurstOperandBytes);
  return operand_bytes_of(outside != 0 ? outside : least);
}

std::uint32_t UdpPort::OwnAddress::ip(msghdr& message) {
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != IPPROTO_IP || head->cmsg_type != IP_PKTINFO) return 0;
  in_pktinfo info = {};
  std::memcpy(&info, CMSG_DATA(head), sizeof info);
  return ntohl(info.ipi_spec_dst.s_addr);
}

void UdpPort::OwnAddress::set(std::uint32_t ip, msghdr& message) {
  message.msg_control = ip == 0 ? nullptr : bytes.data();
  message.msg_controllen = ip == 0 ? 0 : bytes.size();
  if (ip == 0) return;
  bytes = {};
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = IPPROTO_IP;
  head->cmsg_type = IP_PKTINFO;
  head->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info = {};
  info.ipi_spec_dst.s_addr = htonl(ip);
  std::memcpy(CMSG_DATA(head), &info, sizeof info);
}

UdpPort::Batch::Batch(std::size_t datagrams)
    : memory(std::make_unique_for_overwrite<std::byte[]>(datagrams * kDatagramBytes)),
      names(datagrams),
      places(datagrams),
      owns(datagrams),
      messages(datagrams) {
  for (std::size_t i = 0; i < datagrams; ++i) {
    const auto bytes = datagram(i);
    places[i] = {bytes.data(), bytes.size()};
    messages[i].msg_hdr.msg_name = &names[i];
    messages[i].msg_hdr.msg_namelen = sizeof names[i];
    messages[i].msg_hdr.msg_iov = &places[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
}

std::span<std::byte> UdpPort::Batch::datagram(std::size_t i) {
  return {memory.get() + i * kDatagramBytes, kDatagramBytes};
}

UdpPort::UdpPort() : in_(kBatch), out_(kBatch) {}

Result<std::unique_ptr<UdpPort>> UdpPort::open(const Endpoint& at) {
  std::unique_ptr<UdpPort> port(new UdpPort());
  port->socket_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = port->socket_.get();
  if (fd < 0) return failure("no socket");
  size_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  size_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  const int whole = IP_PMTUDISC_DO;  // a packet is not cut into several that can be lost
  const int told = at.ip == 0 ? 1 : 0;
  sockaddr_in name = address_of(at);
  socklen_t bytes = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) != 0 ||
      setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &told, sizeof told) != 0 ||
      bind(fd, generic, bytes) != 0 || getsockname(fd, generic, &bytes) != 0) {
    return failure("cannot listen on " + text(at),
                   "; take an address of this machine and a port that is free");
  }
  port->at_ = endpoint_of(name);
  return port;
}

void UdpPort::send(std::span<const Endpoint> to, std::span<const std::byte> datagram) {
  if (datagram.size() > kDatagramBytes) return;
  for (std::size_t done = 0; done < to.size();) {
    if (out_.count == kBatch) flush();
    // One copy for all of them that fit in the batch.
    const auto copy = out_.datagram(copies_++);
    std::copy(datagram.begin(), datagram.end(), copy.begin());
    for (; done < to.size() && out_.count < kBatch; ++done, ++out_.count) {
      out_.names[out_.count] = address_of(to[done]);
      out_.owns[out_.count].set(to[done].own_ip, out_.messages[out_.count].msg_hdr);
      out_.places[out_.count] = {copy.data(), datagram.size()};
    }
  }
}

// Late and in several packets is better than never: nobody but the system knows that it is too
// long, and the switch goes on answering what is short.
bool UdpPort::begin_fragments(std::size_t bytes) {
  const int cut = IP_PMTUDISC_DONT;
  if (!may_fragment_ || fragments_ || bytes > taken_bytes_) return false;
  fragments_ = setsockopt(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, &cut, sizeof cut) == 0;
  if (fragments_) {
    log(LogLevel::kWarning, "aggregate: packets of " + std::to_string(bytes) + " bytes from " +
                                text(at_) +
                                " go in fragments now; has an MTU been lowered? A team that is "
                                "made now sends shorter ones");
  }
  return fragments_;
}

void UdpPort::flush() {
  std::size_t done = 0;
  int waits = 0;
  while (done < out_.count) {
    ++counts_.send_calls;
    const int sent = sendmmsg(socket_.get(), &out_.messages[done],
                              static_cast<unsigned>(out_.count - done), MSG_NOSIGNAL);
    if (sent > 0) {
      for (const std::size_t end = done + static_cast<std::size_t>(sent); done < end; ++done) {
        taken_bytes_ = std::max(taken_bytes_, out_.places[done].iov_len);
      }
      counts_.sent += static_cast<std::uint64_t>(sent);
      waits = 0;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EMSGSIZE && begin_fragments(out_.places[done].iov_len)) continue;
    const bool full = errno == EAGAIN || errno == ENOBUFS;
    if (full && waits++ < kMostWaits) {
      pollfd room = {.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      (void)poll(&room, 1, kWaitMs);
      continue;
    }
    // Lost, as in a network: who needs it asks again.
    ++counts_.unsent;
    ++done;
  }
  out_.count = 0;
  copies_ = 0;
}

Status UdpPort::receive(DatagramListener& listener) {
  for (int round = 0; round < kMostBatches; ++round) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      msghdr& head = in_.messages[i].msg_hdr;
      head.msg_namelen = sizeof(sockaddr_in);
      if (at_.ip != 0) continue;
      head.msg_control = in_.owns[i].bytes.data();
      head.msg_controllen = in_.owns[i].bytes.size();
    }
    ++counts_.receive_calls;
    const int count = recvmmsg(socket_.get(), in_.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count < 0) return is_passing(errno) ? Status() : failure("cannot receive");
    counts_.received += static_cast<std::uint64_t>(count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      Endpoint from = endpoint_of(in_.names[i]);
      if (at_.ip == 0) from.own_ip = in_.owns[i].ip(in_.messages[i].msg_hdr);
      listener.on_datagram(from, in_.datagram(i).first(in_.messages[i].msg_len));
    }
    if (static_cast<std::size_t>(count) < kBatch) return {};
  }
  return {};
}

}  // namespace carillon::aggregate

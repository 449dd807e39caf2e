// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/udp_port.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/aggregate/text.h"

namespace carillon::aggregate {
namespace {

constexpr std::size_t kBatch = 64;     // datagrams per system call
constexpr int kMostBatches = 8;        // in one receive()
constexpr int kBufferBytes = 4 << 20;  // of the socket, each way; the system may give less
constexpr int kMostWaits = 10;         // for room, of
constexpr int kWaitMs = 10;            // each, before a datagram counts as lost
constexpr std::size_t kDatagramBytes = kMaxDatagramBytes + 1;  // one more shows what is too long

sockaddr_in address_of(const Endpoint& at) {
  return {.sin_family = AF_INET, .sin_port = htons(at.port), .sin_addr = {.s_addr = htonl(at.ip)}};
}

Endpoint endpoint_of(const sockaddr_in& name) {
  return {ntohl(name.sin_addr.s_addr), ntohs(name.sin_port)};
}

Status failure(const std::string& what) {
  return {Code::kSystem, "aggregate: " + what + ": " + std::strerror(errno)};
}

// Past the system's limit, for who may.
void size_buffer(int fd, int force, int ask) {
  const int bytes = kBufferBytes;
  if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0) {
    (void)setsockopt(fd, SOL_SOCKET, ask, &bytes, sizeof bytes);
  }
}

// What came of an earlier datagram; the next may go well.
bool is_passing(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNREFUSED || error == EHOSTUNREACH ||
         error == ENETUNREACH || error == ENETDOWN;
}

}  // namespace

Result<std::uint32_t> address_towards(const Endpoint& to) {
  const UniqueFd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = address_of(to);
  socklen_t bytes = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  if (!probe.valid() || connect(probe.get(), generic, bytes) != 0 ||
      getsockname(probe.get(), generic, &bytes) != 0) {
    return failure("no way to " + text(to));
  }
  return endpoint_of(name).ip;
}

UdpPort::Batch::Batch(std::size_t datagrams)
    : memory(datagrams * kDatagramBytes), names(datagrams), places(datagrams), messages(datagrams) {
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
  return std::span(memory).subspan(i * kDatagramBytes, kDatagramBytes);
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
  sockaddr_in name = address_of(at);
  socklen_t bytes = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) != 0 ||
      bind(fd, generic, bytes) != 0 || getsockname(fd, generic, &bytes) != 0) {
    return failure("cannot listen on " + text(at));
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
      out_.places[out_.count] = {copy.data(), datagram.size()};
    }
  }
}

void UdpPort::flush() {
  std::size_t done = 0;
  int waits = 0;
  while (done < out_.count) {
    ++counts_.send_calls;
    const int sent = sendmmsg(socket_.get(), &out_.messages[done],
                              static_cast<unsigned>(out_.count - done), MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      counts_.sent += static_cast<std::uint64_t>(sent);
      waits = 0;
      continue;
    }
    if (errno == EINTR) continue;
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
    for (mmsghdr& message : in_.messages) message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
    ++counts_.receive_calls;
    const int count = recvmmsg(socket_.get(), in_.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count < 0) return is_passing(errno) ? Status() : failure("cannot receive");
    counts_.received += static_cast<std::uint64_t>(count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      listener.on_datagram(endpoint_of(in_.names[i]),
                           in_.datagram(i).first(in_.messages[i].msg_len));
    }
    if (static_cast<std::size_t>(count) < kBatch) return {};
  }
  return {};
}

}  // namespace carillon::aggregate

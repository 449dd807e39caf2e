// SPDX-License-Identifier: Apache-2.0
//
// Handing the segment's descriptor over: abstract unix sockets leave no file behind and need no
// rights over the other process.
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "transport/shm/segment.h"

namespace carillon::shm {
namespace {

// As long as it is a signal of the program's that ends the call.
template <typename Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

struct Address {
  sockaddr_un value = {};
  socklen_t length = 0;
};

Address address_of(std::uint64_t name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  char* const path = address.value.sun_path;  // the first byte stays 0: an abstract name
  const int written = std::snprintf(path + 1, sizeof(address.value.sun_path) - 1,
                                    "carillon.%016llx", static_cast<unsigned long long>(name));
  address.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path)) + 1 + static_cast<socklen_t>(written);
  return address;
}

Status failed_to_join(const char* what) {
  return {Code::kSystem, std::string("joining the node: ") + what + ": " + std::strerror(errno)};
}

bool same_user(int fd) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

using Clock = std::chrono::steady_clock;

Clock::time_point after(int timeout_ms) {
  return Clock::now() + std::chrono::milliseconds(timeout_ms);
}

Status wait_readable(int fd, Clock::time_point end, int timeout_ms, const char* what) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  const int ready = uninterrupted([&] {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    return poll(&entry, 1, left < 0 ? 0 : static_cast<int>(left));
  });
  if (ready > 0) return {};
  if (ready == 0) {
    return {Code::kTimeout, std::string("joining the node: ") + what + " for " +
                                std::to_string(timeout_ms / 1000) +
                                " s; did a rank die, or start without carillon?"};
  }
  return failed_to_join("poll");
}

struct FdMessage {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  char byte = 0;
  iovec iov = {};
  msghdr header = {};

  FdMessage() {
    iov = {.iov_base = &byte, .iov_len = 1};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;
};

bool send_fd(int socket, int fd) {
  FdMessage message;
  cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  return uninterrupted([&] { return sendmsg(socket, &message.header, MSG_NOSIGNAL); }) == 1;
}

Result<UniqueFd> receive_fd(int socket) {
  FdMessage message;
  if (uninterrupted([&] { return recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC); }) != 1) {
    return failed_to_join("recvmsg");
  }
  const cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS) {
    return Status(Code::kSystem, "joining the node: the leader sent no descriptor");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Result<Exchange> Exchange::listen() {
  std::uint64_t name = 0;
  if (getrandom(&name, sizeof name, 0) != sizeof name) return failed_to_join("getrandom");
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return failed_to_join("socket");
  const Address address = address_of(name);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) != 0 ||
      ::listen(fd.get(), 4096) != 0) {
    return failed_to_join("cannot listen on an abstract socket");
  }
  return Exchange(std::move(fd), name);
}

Status Exchange::serve(int fd, int clients, int timeout_ms) {
  const auto end = after(timeout_ms);  // for all of them
  while (clients > 0) {
    if (Status status =
            wait_readable(fd_.get(), end, timeout_ms, "the leader has waited for a rank");
        !status.ok()) {
      return status;
    }
    const UniqueFd client(
        uninterrupted([&] { return accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC); }));
    if (!client.valid()) return failed_to_join("accept");
    if (same_user(client.get()) && send_fd(client.get(), fd)) --clients;
  }
  return {};
}

Result<UniqueFd> Exchange::request(std::uint64_t name, int timeout_ms) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return failed_to_join("socket");
  const Address address = address_of(name);
  const int reached = uninterrupted([&] {
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length);
  });
  if (reached != 0) {
    return failed_to_join("cannot reach the leader (another network namespace?)");
  }
  if (!same_user(fd.get())) {
    return Status(Code::kSystem, "joining the node: the leader is another user's process");
  }
  if (Status status = wait_readable(fd.get(), after(timeout_ms), timeout_ms,
                                    "a rank has waited for the leader");
      !status.ok()) {
    return status;
  }
  return receive_fd(fd.get());
}

}  // namespace carillon::shm

// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.h"

#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace carillon::bench {
namespace {

constexpr double kJoinSeconds = 60;

void be_quick(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// How many bytes came, 0 if none are there now.
std::size_t receive_some(const Socket& socket, void* data, std::size_t bytes) {
  const ssize_t got = recv(socket.fd(), data, bytes, MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) give_up("another rank has ended");
  if (errno != EAGAIN && errno != EINTR) give_up(std::string("recv: ") + std::strerror(errno));
  return 0;
}

}  // namespace

// The launcher of the program reads this line; the others of the job are ended with this process.
void give_up(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket listen_at(sockaddr_in* address) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t bytes = sizeof *address;
  auto* const generic = reinterpret_cast<sockaddr*>(address);
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.fd(), generic, bytes) != 0 || listen(socket.fd(), SOMAXCONN) != 0 ||
      getsockname(socket.fd(), generic, &bytes) != 0) {
    give_up(std::string("cannot listen: ") + std::strerror(errno));
  }
  return socket;
}

Socket connect_to(const sockaddr_in& address, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      be_quick(socket.fd());
      return socket;
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (passed.count() > seconds) give_up(std::string("cannot connect: ") + std::strerror(errno));
    usleep(10000);
  }
}

Socket accept_from(const Socket& listening) {
  Socket socket(accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.fd() < 0) give_up(std::string("accept: ") + std::strerror(errno));
  be_quick(socket.fd());
  return socket;
}

void send_all(const Socket& socket, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket.fd(), at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EINTR) {
      sched_yield();
    } else {
      give_up(std::string("send: ") + std::strerror(errno));
    }
  }
}

void receive_all(const Socket& socket, void* data, std::size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const std::size_t got = receive_some(socket, at, bytes);
    if (got == 0) sched_yield();
    at += got;
    bytes -= got;
  }
}

Bootstrap::Bootstrap(int rank, int ranks, const sockaddr_in& rank_0, Socket listening)
    : rank_(rank), ranks_(ranks), listening_(std::move(listening)) {
  if (rank != 0) {
    sockets_.push_back(connect_to(rank_0, kJoinSeconds));
    send_all(sockets_[0], &rank, sizeof rank);
    return;
  }
  sockets_.resize(static_cast<std::size_t>(ranks));
  for (int i = 1; i < ranks; ++i) {
    Socket socket = accept_from(listening_);
    int who = 0;
    receive_all(socket, &who, sizeof who);
    if (who < 1 || who >= ranks) give_up("somebody else has connected");
    sockets_[static_cast<std::size_t>(who)] = std::move(socket);
  }
}

crl_oob_t Bootstrap::oob() {
  return {
      .arg = this, .rank = rank_, .size = ranks_, .allgather_post = post, .allgather_test = test};
}

sockaddr_in Bootstrap::own_address() const {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  const Socket& socket = rank_ != 0 ? sockets_[0] : listening_;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &bytes);
  address.sin_port = 0;
  return address;
}

int Bootstrap::post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  auto& self = *static_cast<Bootstrap*>(arg);
  self.out_ = static_cast<char*>(out);
  self.bytes_ = bytes;
  self.received_.assign(static_cast<std::size_t>(self.ranks_), 0);
  if (self.rank_ == 0) {
    std::memcpy(out, in, bytes);
    self.received_[0] = bytes;
  } else {
    send_all(self.sockets_[0], in, bytes);
  }
  *request_p = arg;
  return 0;
}

// True once everything is here.
bool Bootstrap::gather() {
  const auto ranks = static_cast<std::size_t>(ranks_);
  bool all = true;
  for (std::size_t i = 1; rank_ == 0 && i < ranks; ++i) {
    if (received_[i] < bytes_) {
      received_[i] +=
          receive_some(sockets_[i], out_ + i * bytes_ + received_[i], bytes_ - received_[i]);
    }
    all = all && received_[i] == bytes_;
  }
  if (rank_ == 0) return all;
  received_[0] += receive_some(sockets_[0], out_ + received_[0], ranks * bytes_ - received_[0]);
  return received_[0] == ranks * bytes_;
}

int Bootstrap::test(void* arg, void* /*request*/) {
  auto& self = *static_cast<Bootstrap*>(arg);
  if (self.bytes_ > 0 && !self.gather()) return 1;
  const auto ranks = static_cast<std::size_t>(self.ranks_);
  for (std::size_t i = 1; self.rank_ == 0 && i < ranks; ++i) {
    send_all(self.sockets_[i], self.out_, ranks * self.bytes_);
  }
  return 0;
}

void Bootstrap::allgather(const void* in, void* out, std::size_t bytes) {
  void* request = nullptr;
  post(this, in, out, bytes, &request);
  while (test(this, request) != 0) sched_yield();
}

}  // namespace carillon::bench

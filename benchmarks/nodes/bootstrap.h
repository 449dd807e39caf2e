// SPDX-License-Identifier: Apache-2.0
//
// How ranks on nodes find each other without a launcher: all connect to rank 0,
// which gathers and hands out (crl_oob_t).
#pragma once

#include <netinet/in.h>

#include <string>
#include <utility>
#include <vector>

#include "carillon/carillon.h"

namespace carillon::bench {

[[noreturn]] void give_up(const std::string& why);

/// Closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

/// A listening socket; port 0: any. Its address, with the port, is written back.
Socket listen_at(sockaddr_in* address);
/// Connects, trying for `seconds`: the other end may not listen yet.
Socket connect_to(const sockaddr_in& address, double seconds);
/// With TCP_NODELAY, never blocking.
Socket accept_from(const Socket& listening);
/// Moves all the bytes, yielding the core while there is nothing to do.
void send_all(const Socket& socket, const void* data, std::size_t bytes);
void receive_all(const Socket& socket, void* data, std::size_t bytes);

class Bootstrap {
 public:
  /// `listening`: of rank 0, where it waits for the others.
  Bootstrap(int rank, int ranks, const sockaddr_in& rank_0, Socket listening);
  /// For contexts and teams, one exchange after another.
  [[nodiscard]] crl_oob_t oob();
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Of this rank's own end towards rank 0, without port.
  [[nodiscard]] sockaddr_in own_address() const;
  void allgather(const void* in, void* out, std::size_t bytes);

 private:
  bool gather();
  static int post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p);
  static int test(void* arg, void* request);

  int rank_, ranks_;
  Socket listening_;
  std::vector<Socket> sockets_;  // rank 0: to each; else one, to rank 0
  // The exchange under way.
  char* out_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::size_t> received_;
};

}  // namespace carillon::bench

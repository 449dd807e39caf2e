// SPDX-License-Identifier: Apache-2.0
//
// The ranks that a machine is measured with: processes forked from this one, which make a team and
// play the same piece together.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "carillon/carillon.h"

namespace carillon::cli {

inline constexpr int kMaxPlayers = 16;

/// Where the ranks are.
struct Seats {
  bool between_nodes = false;  ///< each rank counts as a node
  bool one_core = false;       ///< all share one core; else they are spread over those there are
  /// Whether long messages are read in the sender's own memory.
  enum class Lending { kNever, kAsSet, kAlways };
  Lending lending = Lending::kAsSet;
  bool multicast = true;          ///< teams may multicast between nodes
  std::vector<pid_t> nodes = {};  ///< processes of a virtual cluster's nodes, one per rank; or none
};

/// What the processes share: memory for the bootstrap, two rounds' worth (a rank is at most one
/// round ahead of another), to start together, and for what they found out.
struct Meeting {
  static constexpr std::size_t kBytes = 1024;
  static constexpr std::size_t kResults = 64;
  struct Result {
    double ns[2] = {};
    char text[64] = {};
  };
  int ranks = 2;
  std::atomic<long> arrived{0};  // over all rounds
  char data[2][kMaxPlayers][kBytes] = {};
  std::atomic<long> at_line{0};  // over all starts
  Result results[kResults];
  char error[256] = {};
};

/// One of the processes.
class Player {
 public:
  Player(Meeting* meeting, int rank);

  using Body = std::function<void(Player& player)>;
  int run(const Body& body);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return meeting_->ranks; }
  [[nodiscard]] crl_team_h team() const { return team_; }
  /// Of rank 0: what the parent gets.
  [[nodiscard]] Meeting::Result& result(std::size_t i) const { return meeting_->results[i]; }
  /// Ends the process if it is not CRL_OK.
  void check(crl_status_t status) const;
  void start_together();

 private:
  static int gather_post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p);
  static int gather_test(void* arg, void* request);

  Meeting* meeting_;
  int rank_;
  long round_ = 0;
  void* out_ = nullptr;
  std::size_t bytes_ = 0;
  crl_team_h team_ = nullptr;
  long starts_ = 0;
};

/// Every rank is a process that does `body`; `algorithms` as in CARILLON_ALGORITHM. Fails if one of
/// them does.
std::vector<Meeting::Result> play(int ranks, const Seats& seats, const std::string& algorithms,
                                  const Player::Body& body);

}  // namespace carillon::cli

// SPDX-License-Identifier: Apache-2.0
//
// A job on this node: `ranks` threads or forked processes, each with a crl_oob_t to the others.
// What carillon's users get from their launcher, the tests get from here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "carillon/carillon.h"

namespace carillon::test {

/// An allgather over memory that all ranks of the job share. Members use it in the same order.
class Meeting {
 public:
  /// Before the ranks start. `size` members.
  explicit Meeting(int size);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// What member `rank` gives to carillon.
  crl_oob_t oob(int rank);
  /// All members wait for each other, yielding.
  void barrier(int rank);

  struct Member;
  struct Shared;

 private:
  Shared* shared_;
  std::vector<Member> members_;
};

/// Runs body(rank) in `ranks` threads of this process.
void run_threads(int ranks, const std::function<void(int)>& body);

/// Has this process look for networks as libfabric does it once in each process, which costs more
/// than most jobs here do: processes that it starts later inherit what it has seen.
/// (run_processes does so itself if ranks count as nodes, by CARILLON_NODE_RANKS.)
void look_for_networks();

/// Runs body(rank) in `ranks` child processes, for at most timeout_s; returns each one's exit
/// status (0: body returned without a test failure; -9: killed by signal 9, and so on).
std::vector<int> run_processes(int ranks, const std::function<void(int)>& body, int timeout_s = 60);

/// A context made over the meeting; aborts the test process with a message if that fails.
crl_context_h make_context(Meeting& meeting, int rank, bool threaded = false, int dead_peer_ms = 0);
crl_team_h make_team(crl_context_h context, const crl_oob_t& oob);

}  // namespace carillon::test

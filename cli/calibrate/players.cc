// SPDX-License-Identifier: Apache-2.0
#include "calibrate/players.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/cores.h"
#include "support/failure.h"
#include "support/machine.h"

namespace carillon::cli {
namespace {

constexpr unsigned kPatienceS = 120;

// Shared with the processes that are forked while it lives.
class SharedMeeting {
 public:
  explicit SharedMeeting(int ranks) {
    void* const memory =
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("no memory for {} ranks", ranks);
    meeting_ = new (memory) Meeting();
    meeting_->ranks = ranks;
  }
  ~SharedMeeting() { munmap(meeting_, sizeof(Meeting)); }
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;
  Meeting* get() const { return meeting_; }

 private:
  Meeting* meeting_ = nullptr;
};

// Gives this process one of the cores that may be used. If there are enough for all, its own: two
// ranks that happen to share a core wait for its time slices. Else the one that it has in a
// simulation of a machine with as many (sim/cores.h).
void take_core(int rank, bool one_core) {
  const std::vector<int> usable = allowed_cores();
  if (usable.empty()) return;
  // Without it, it is only less exact.
  pin_to_core(usable[one_core ? 0 : static_cast<std::size_t>(rank) % usable.size()]);
}

void enter_network_of(pid_t node) {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, node, 0));
  if (process < 0 || setns(process, CLONE_NEWNET) != 0) {
    fail("cannot enter a node of the virtual cluster: {}", std::strerror(errno));
  }
  close(process);
}

void take_seat(const Seats& seats, int rank, int ranks) {
  if (!seats.nodes.empty()) enter_network_of(seats.nodes.at(static_cast<std::size_t>(rank)));
  const bool crowded = seats.one_core || ranks > usable_cores();
  take_core(rank, seats.one_core);
  // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
  if (seats.between_nodes) setenv("CARILLON_NODE_RANKS", "1", 1);
  if (crowded) setenv("CARILLON_CROWDED", "1", 0);
  if (seats.lending == Seats::Lending::kNever) setenv("CARILLON_LEND_BYTES", "0", 1);
  if (seats.lending == Seats::Lending::kAlways) setenv("CARILLON_LEND_BYTES", "1", 1);
  if (!seats.multicast) setenv("CARILLON_MULTICAST", "off", 1);
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace

Player::Player(Meeting* meeting, int rank) : meeting_(meeting), rank_(rank) {}

int Player::gather_post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  Player& player = *static_cast<Player*>(arg);
  if (bytes > Meeting::kBytes) return 1;
  std::memcpy(player.meeting_->data[player.round_ % 2][player.rank_], in, bytes);
  player.out_ = out;
  player.bytes_ = bytes;
  player.meeting_->arrived.fetch_add(1, std::memory_order_release);  // partner: gather_test
  *request_p = &player;
  return 0;
}

int Player::gather_test(void* /*arg*/, void* request) {
  Player& player = *static_cast<Player*>(request);
  const Meeting& meeting = *player.meeting_;
  // partner: gather_post
  if (meeting.arrived.load(std::memory_order_acquire) < meeting.ranks * (player.round_ + 1)) {
    return 1;
  }
  for (int i = 0; i < meeting.ranks; ++i) {
    std::memcpy(static_cast<char*>(player.out_) + static_cast<std::size_t>(i) * player.bytes_,
                meeting.data[player.round_ % 2][i], player.bytes_);
  }
  ++player.round_;
  return 0;
}

void Player::check(crl_status_t status) const {
  if (status == CRL_OK) return;
  const char* const reason = crl_last_error();
  std::snprintf(meeting_->error, sizeof meeting_->error, "%s",
                reason == nullptr || *reason == '\0' ? crl_status_string(status) : reason);
  _exit(1);
}

int Player::run(const Body& body) {
  const crl_oob_t oob{.arg = this,
                      .rank = rank_,
                      .size = ranks(),
                      .allgather_post = gather_post,
                      .allgather_test = gather_test};
  crl_context_config_t config{};
  config.struct_bytes = sizeof config;
  config.oob = oob;
  crl_context_h context = nullptr;
  check(crl_context_create(&config, &context));
  check(crl_team_create(context, &oob, &team_));
  crl_status_t status = CRL_IN_PROGRESS;
  while ((status = crl_team_test(team_)) == CRL_IN_PROGRESS) sched_yield();
  check(status);
  body(*this);
  crl_team_destroy(team_);
  crl_context_destroy(context);
  return 0;
}

// Waiters look for some microseconds, so that they start as nearly together as can be.
void Player::start_together() {
  constexpr int kLooks = 10'000;
  const long all = (starts_++ + 1) * ranks();
  meeting_->at_line.fetch_add(1, std::memory_order_acq_rel);  // partner: the load below
  for (int looks = 0; meeting_->at_line.load(std::memory_order_acquire) < all; ++looks) {
    if (looks > kLooks) sched_yield();
  }
}

std::vector<Meeting::Result> play(int ranks, const Seats& seats, const std::string& algorithms,
                                  const Player::Body& body) {
  const SharedMeeting shared(ranks);
  Meeting* const meeting = shared.get();
  std::fflush(nullptr);
  std::vector<pid_t> players;
  for (int rank = 0; rank < ranks; ++rank) {
    players.push_back(fork());
    if (players.back() != 0) continue;
    alarm(kPatienceS);  // ends this process if it hangs
    try {
      take_seat(seats, rank, ranks);
      // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet
      if (!algorithms.empty()) setenv("CARILLON_ALGORITHM", algorithms.c_str(), 1);
      _exit(Player(meeting, rank).run(body));
    } catch (const std::exception& error) {
      std::snprintf(meeting->error, sizeof meeting->error, "%s", error.what());
      _exit(1);
    }
  }
  bool ok = true;
  for (const pid_t player : players) {
    int status = -1;
    ok = player > 0 && waitpid(player, &status, 0) == player && status == 0 && ok;
  }
  if (ok) return {meeting->results, meeting->results + Meeting::kResults};
  const std::string error = meeting->error;
  fail("the measurement between {} {} did not end well: {}", ranks,
       seats.between_nodes ? "nodes" : "ranks of a node",
       error.empty() ? "a process was killed or took too long" : error);
}

}  // namespace carillon::cli

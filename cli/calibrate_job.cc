// SPDX-License-Identifier: Apache-2.0
#include "calibrate_job.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "carillon/carillon.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

using machine::MemoryCost;
using machine::PingPong;

constexpr int kBatches = 15;
constexpr unsigned kPatienceS = 120;
constexpr std::size_t kMeetingBytes = 1024;
constexpr std::size_t kMaxRows = 64;
// Until a rank has gone through its pool of 4 MiB once, its messages touch new pages.
constexpr int kWarm = 1200;

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count());
}

// The value that such a part of them do not exceed.
double quantile(std::vector<double> values, double part) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// What comes out of measure_collectives, as the processes tell it.
struct TimedRow {
  double us = 0;
  char algorithm[64] = {};
};

// The memory of all processes: for the bootstrap, two rounds' worth (a rank is at most one round
// ahead of another), to start together, and for what comes out.
struct Meeting {
  int ranks = 2;
  std::atomic<long> arrived{0};  // over all rounds
  char data[2][kMaxTimedRanks][kMeetingBytes] = {};
  std::atomic<long> at_line{0};  // over all starts
  double begin[kMaxTimedRanks] = {}, end[kMaxTimedRanks] = {};
  PingPong ping_pong;
  TimedRow rows[kMaxRows];
  char error[256] = {};
};

struct Member {
  Meeting* meeting = nullptr;
  int rank = 0;
  long round = 0;
  void* out = nullptr;
  std::size_t bytes = 0;
};

int gather_post(void* arg, const void* in, void* out, std::size_t bytes, void** request_p) {
  Member& member = *static_cast<Member*>(arg);
  if (bytes > kMeetingBytes) return 1;
  std::memcpy(member.meeting->data[member.round % 2][member.rank], in, bytes);
  member.out = out;
  member.bytes = bytes;
  member.meeting->arrived.fetch_add(1, std::memory_order_release);  // partner: gather_test
  *request_p = &member;
  return 0;
}

int gather_test(void* /*arg*/, void* request) {
  Member& member = *static_cast<Member*>(request);
  const Meeting& meeting = *member.meeting;
  // partner: gather_post
  if (meeting.arrived.load(std::memory_order_acquire) < meeting.ranks * (member.round + 1)) {
    return 1;
  }
  for (int i = 0; i < meeting.ranks; ++i) {
    std::memcpy(static_cast<char*>(member.out) + static_cast<std::size_t>(i) * member.bytes,
                meeting.data[member.round % 2][i], member.bytes);
  }
  ++member.round;
  return 0;
}

// One of the processes.
class Player {
 public:
  Player(Meeting* meeting, int rank) : member_{.meeting = meeting, .rank = rank} {}

  using Body = std::function<bool(Player& player)>;

  int run(const Body& body) {
    const crl_oob_t oob{.arg = &member_,
                        .rank = member_.rank,
                        .size = meeting().ranks,
                        .allgather_post = gather_post,
                        .allgather_test = gather_test};
    crl_context_config_t config{};
    config.struct_bytes = sizeof config;
    config.oob = oob;
    crl_context_h context = nullptr;
    if (!done(crl_context_create(&config, &context))) return 1;
    if (!done(crl_team_create(context, &oob, &team_))) return 1;
    crl_status_t status = CRL_IN_PROGRESS;
    while ((status = crl_team_test(team_)) == CRL_IN_PROGRESS) sched_yield();
    if (!done(status) || !body(*this)) return 1;
    crl_team_destroy(team_);
    crl_context_destroy(context);
    return 0;
  }

  bool play_ping_pong() {
    for (std::size_t i = 0; i < PingPong::kBytes.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(PingPong::kBytes[i]);
      if (!measure(bytes, &meeting().ping_pong.points[i])) return false;
    }
    return true;
  }

  // The median over repetitions of `call`, which all begin together.
  bool time_call(TimedRow* row, const std::function<crl_status_t(crl_team_h team)>& call) {
    constexpr int kRepetitions = 101;
    std::vector<double> times;
    for (int i = 0; i < kWarm + kRepetitions; ++i) {
      start_together();
      meeting().begin[member_.rank] = now_ns();
      if (!done(call(team_))) return false;
      meeting().end[member_.rank] = now_ns();
      start_together();
      const int ranks = meeting().ranks;
      times.push_back(*std::max_element(meeting().end, meeting().end + ranks) -
                      *std::max_element(meeting().begin, meeting().begin + ranks));
    }
    times.erase(times.begin(), times.begin() + kWarm);
    if (member_.rank != 0) return true;
    row->us = std::max(0.0, quantile(std::move(times), 0.5) - clock_ns_) / 1e3;
    std::snprintf(row->algorithm, sizeof row->algorithm, "%s", crl_team_last_algorithm(team_));
    return true;
  }

 private:
  Meeting& meeting() { return *member_.meeting; }

  bool done(crl_status_t status) {
    if (status == CRL_OK) return true;
    const char* const reason = crl_last_error();
    std::snprintf(meeting().error, sizeof meeting().error, "%s",
                  reason == nullptr || *reason == '\0' ? crl_status_string(status) : reason);
    return false;
  }

  // Waiters look for some microseconds, so that they start as nearly together as can be.
  void start_together() {
    constexpr int kLooks = 10'000;
    const long all = (starts_++ + 1) * meeting().ranks;
    meeting().at_line.fetch_add(1, std::memory_order_acq_rel);  // partner: the load below
    for (int looks = 0; meeting().at_line.load(std::memory_order_acquire) < all; ++looks) {
      if (looks > kLooks) sched_yield();
    }
  }

  // Of single rounds the undisturbed ones: where processes lose their cores, many are not.
  bool measure(std::size_t bytes, PingPong::Point* point) {
    std::vector<char> buffer(bytes, 1);
    const int rounds = bytes > 4096 ? 200 : 1000;
    std::vector<double> one_way, posting;
    for (int i = 0; i < kWarm + rounds; ++i) {
      double posted = 0;
      const double begin = now_ns();
      for (int root = 0; root < meeting().ranks; ++root) {
        if (!done(crl_bcast(team_, buffer.data(), bytes, root))) return false;
        if (root == member_.rank) posted = now_ns() - begin;  // of rank 0, the first root
      }
      if (i < kWarm) continue;
      one_way.push_back(std::max(0.0, now_ns() - begin - 2 * clock_ns_) / meeting().ranks);
      posting.push_back(std::max(0.0, posted - clock_ns_));
    }
    constexpr double kUndisturbed = 0.25;
    if (member_.rank == 0) {
      *point = {quantile(std::move(one_way), kUndisturbed),
                quantile(std::move(posting), kUndisturbed)};
    }
    return true;
  }

  static double clock_cost_ns() {
    constexpr int kTimes = 1000;
    const double begin = now_ns();
    for (int i = 0; i < kTimes; ++i) now_ns();
    return (now_ns() - begin) / kTimes;
  }

  Member member_;
  crl_team_h team_ = nullptr;
  long starts_ = 0;
  double clock_ns_ = clock_cost_ns();
};

// Gives this process the rank-th of the cores that may be used, if there are enough for all: two
// ranks that happen to share a core wait for its time slices.
void take_core(int rank, int ranks) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < ranks) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || rank-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);  // without it, it is only less exact
    return;
  }
}

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
  Meeting* operator->() const { return meeting_; }

  // Every rank is a process that does `body`. Fails if one of them does.
  void play(const std::string& algorithms, bool between_nodes, const Player::Body& body) {
    std::fflush(nullptr);
    std::vector<pid_t> players;
    for (int rank = 0; rank < meeting_->ranks; ++rank) {
      players.push_back(fork());
      if (players.back() != 0) continue;
      alarm(kPatienceS);  // ends this process if it hangs
      take_core(rank, meeting_->ranks);
      // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
      if (!algorithms.empty()) setenv("CARILLON_ALGORITHM", algorithms.c_str(), 1);
      if (between_nodes) setenv("CARILLON_NODE_RANKS", "1", 1);
      // NOLINTEND(concurrency-mt-unsafe)
      _exit(Player(meeting_, rank).run(body));
    }
    bool ok = true;
    for (const pid_t player : players) {
      int status = -1;
      ok = player > 0 && waitpid(player, &status, 0) == player && status == 0 && ok;
    }
    if (ok) return;
    const std::string error = meeting_->error;
    fail("the measurement between {} {} did not end well: {}", meeting_->ranks,
         between_nodes ? "nodes" : "ranks of a node",
         error.empty() ? "a process was killed or took too long" : error);
  }

 private:
  Meeting* meeting_ = nullptr;
};

// The least of several runs: what the machine does when nobody is in the way.
double least_ns(const std::function<void()>& body) {
  double least = 1e18;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now_ns();
    body();
    least = std::min(least, now_ns() - begin);
  }
  return least;
}

// Of an operation on vectors of doubles, whose result is not to be thought away.
MemoryCost measure_memory(std::int64_t cache_bytes,
                          const std::function<void(std::size_t count)>& operate) {
  constexpr int kCalls = 1000;
  const auto per_call = [&](std::int64_t bytes, int calls) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(double);
    operate(count);
    return least_ns([&] {
             for (int i = 0; i < calls; ++i) operate(count);
           }) /
           calls;
  };
  const std::int64_t fits = std::min<std::int64_t>(cache_bytes / 8, 65536);
  const double small = per_call(8, kCalls), middle = per_call(fits, kCalls / 10);
  const std::int64_t exceeds = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  MemoryCost cost;
  cost.cached_ns_per_byte = std::max(0.0, (middle - small) / static_cast<double>(fits - 8));
  cost.call_ns = std::max(0.0, small - 8 * cost.cached_ns_per_byte);
  cost.ns_per_byte =
      std::max(cost.cached_ns_per_byte, per_call(exceeds, 1) / static_cast<double>(exceeds));
  return cost;
}

// What stands before it is in memory.
void keep() { std::atomic_signal_fence(std::memory_order_seq_cst); }

std::vector<double> operand(std::int64_t cache_bytes) {
  const std::int64_t longest = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  return std::vector<double>(static_cast<std::size_t>(longest) / sizeof(double), 1.0);
}

}  // namespace

PingPong measure_ping_pong(const std::string& parameters, bool between_nodes) {
  SharedMeeting meeting(2);
  meeting.play("bcast=binomial" + parameters, between_nodes,
               [](Player& player) { return player.play_ping_pong(); });
  return meeting->ping_pong;
}

std::vector<Timed> measure_collectives(int ranks, bool between_nodes,
                                       const std::vector<std::int64_t>& sizes) {
  constexpr std::array kCollectives{Collective::kBcast, Collective::kAllreduce,
                                    Collective::kAlltoall};
  if (ranks > kMaxTimedRanks) fail("at most {} ranks can be timed", kMaxTimedRanks);
  if (sizes.size() * kCollectives.size() > kMaxRows) fail("too many sizes to be timed");
  std::vector<Timed> list;
  for (const Collective collective : kCollectives) {
    for (const std::int64_t bytes : sizes) list.push_back({collective, bytes, {}, 0});
  }
  SharedMeeting meeting(ranks);
  meeting.play("", between_nodes, [&](Player& player) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(list[i].bytes);
      const std::size_t room = bytes * static_cast<std::size_t>(ranks);
      std::vector<char> in(room, 1), out(room, 2);
      const auto call = [&](crl_team_h team) {
        if (list[i].collective == Collective::kBcast) return crl_bcast(team, in.data(), bytes, 0);
        if (list[i].collective == Collective::kAlltoall) {
          return crl_alltoall(team, in.data(), out.data(), bytes);
        }
        return crl_allreduce(team, in.data(), out.data(), bytes / sizeof(std::int64_t), CRL_INT64,
                             CRL_SUM);
      };
      if (!player.time_call(&meeting->rows[i], call)) return false;
    }
    return true;
  });
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].choice = value_or_fail(parse_choice(meeting->rows[i].algorithm));
    list[i].us = meeting->rows[i].us;
  }
  return list;
}

MemoryCost measure_copy(std::int64_t cache_bytes) {
  const std::vector<double> from = operand(cache_bytes);
  std::vector<double> to = from;
  return measure_memory(cache_bytes, [&](std::size_t count) {
    std::memcpy(to.data(), from.data(), count * sizeof(double));
    keep();
  });
}

MemoryCost measure_reduce(std::int64_t cache_bytes) {
  const std::vector<double> left = operand(cache_bytes), right = left;
  std::vector<double> sum = left;
  return measure_memory(cache_bytes, [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
    keep();
  });
}

}  // namespace carillon::cli
